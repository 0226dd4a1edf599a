// Which layers are being called. A call of a method of a layer is a frame; the outermost one is of
// the layer that the user called, and what it computes with is expected to be its own (held.ts).
// Kept by the Proxy around each layer (layer/watch.ts).

import type { Handle } from './handle.ts';

/** The call of a layer that no other layer made. */
export interface OuterCall {
  readonly layer: object;
  readonly args: readonly unknown[];
  /** Leaves that were made while it ran. */
  readonly made: WeakSet<Handle>;
  /** The tensors among the arguments; undefined until they are first needed. */
  given: ReadonlySet<Handle> | undefined;
}

/** The layers called, outermost first. */
const layers: object[] = [];
let outer: OuterCall | undefined;

/** The outermost call; undefined outside of layers. */
export function outerCall(): OuterCall | undefined {
  return outer;
}

/** The layer whose method was called last, and runs. */
export function innermostLayer(): object | undefined {
  return layers.at(-1);
}

/**
 * A method of a layer is called; gives what `leave` takes when it returns or throws. Of a method
 * that waits, what is before its first `await` belongs to the frame.
 */
export function enter(layer: object, args: readonly unknown[]): OuterCall | undefined {
  const before = outer;
  outer ??= { layer, args, made: new WeakSet(), given: undefined };
  layers.push(layer);
  return before;
}

/** The method called last has ended. */
export function leave(before: OuterCall | undefined): void {
  layers.pop();
  outer = before;
}

/** The value has become a leaf, which gradients are accumulated in. */
export function noteLeaf(handle: Handle): void {
  outer?.made.add(handle);
}
