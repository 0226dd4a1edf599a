// Which layers are being called. A call of a method of a layer is a frame; the outermost one is of
// the layer that the user called, and what it computes with is expected to be its own (held.ts).
// Kept by the Proxy around each layer (layer/watch.ts).

import type { Handle } from './handle.ts';
import { recorded, type OuterCall } from './recorded.ts';

/** The outermost call; undefined outside of layers. */
export function outerCall(): OuterCall | undefined {
  return recorded().outerCall;
}

/** The layer whose method was called last, and runs. */
export function innermostLayer(): object | undefined {
  return recorded().layers.at(-1);
}

/**
 * A method of a layer is called; gives what `leave` takes when it returns or throws. Of a method
 * that waits, what is before its first `await` belongs to the frame.
 */
export function enter(layer: object, args: readonly unknown[]): OuterCall | undefined {
  const state = recorded();
  const before = state.outerCall;
  state.outerCall ??= { layer, args, made: new WeakSet(), given: undefined };
  state.layers.push(layer);
  return before;
}

/** The method called last has ended. */
export function leave(before: OuterCall | undefined): void {
  const state = recorded();
  state.layers.pop();
  state.outerCall = before;
}

/** The value has become a leaf, which gradients are accumulated in. */
export function noteLeaf(handle: Handle): void {
  recorded().outerCall?.made.add(handle);
}
