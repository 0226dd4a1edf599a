// A trace: one run of a function on stand-ins, so that its graph can be compiled once and run many times. Tensors from outside
// are replaced by stand-ins when they are met; what the function assigns to them, or accumulates in their gradients, becomes
// outputs that every call hands back. Random draws become run-time scalars.

import type { DType } from '../ir/dtype.ts';
import { GraphBuilder, type Node } from '../ir/graph.ts';
import { Handle } from './handle.ts';
import type { RandomWords } from './generator.ts';
import { freshParameter } from './leaf.ts';
import { bindLeaf } from './recording.ts';

/** Whose value a slot takes at each call: an argument (by its position among the leaves) or a captured tensor. */
export type Origin =
  | { readonly kind: 'argument'; readonly leaf: number }
  | { readonly kind: 'captured'; readonly handle: Handle };

/** One value from outside. */
export interface Slot {
  readonly origin: Origin;
  readonly standIn: Handle;
  /** What stood for the value at first; another node at the end means that the function assigned it. */
  readonly parameter: Node;
  /** What happened to its gradient: whether the value from outside was read (and was there), and whether it was replaced. */
  grad: { readonly hadBefore: boolean; readonly parameter: Node | undefined } | undefined;
  gradWritten: boolean;
  /** The gradient that the value had when it was met. */
  readonly outsideGrad: Handle | undefined;
}

/** Where a run-time scalar comes from. */
export type ScalarOrigin =
  | { readonly kind: 'number'; readonly leaf: number }
  | { readonly kind: 'seed'; readonly high: boolean }
  | { readonly kind: 'counter'; readonly offset: bigint; readonly high: boolean };

export class Trace {
  readonly builder: GraphBuilder = new GraphBuilder();
  readonly slots: Slot[] = [];
  readonly scalars: { readonly origin: ScalarOrigin; readonly parameter: Node }[] = [];
  readonly #ofOutside = new Map<Handle, Slot>();
  readonly #ofStandIn = new Map<Handle, Slot>();
  #seed: readonly [Node, Node] | undefined = undefined;
  #counts = 0n;

  /** Groups of random words that one call draws. */
  get counts(): bigint {
    return this.#counts;
  }

  /** The stand-in of a value from outside that the function captured. */
  standIn(outside: Handle): Handle {
    const known = this.#ofOutside.get(outside);
    if (known !== undefined) return known.standIn;
    const slot = this.#slot({ kind: 'captured', handle: outside }, outside);
    this.#ofOutside.set(outside, slot);
    return slot.standIn;
  }

  /** The stand-in of a value from outside, where the function has met it. */
  met(outside: Handle): Handle | undefined {
    return this.#ofOutside.get(outside)?.standIn;
  }

  /** The stand-in of an argument that is like this value. */
  argument(leaf: number, like: Handle): Handle {
    return this.#slot({ kind: 'argument', leaf }, like).standIn;
  }

  /** The stand-in of a number among the arguments: a rank-0 f32 supplied at each call. */
  number(leaf: number): Handle {
    const handle = new Handle(this.#scalar({ kind: 'number', leaf }, 'f32'), this);
    handle.weak = true;
    return handle;
  }

  /** The words for a random draw: counted from where the generator stands at each call. */
  draw(groups: bigint): RandomWords {
    this.#seed ??= [
      this.#scalar({ kind: 'seed', high: false }, 'u32'),
      this.#scalar({ kind: 'seed', high: true }, 'u32'),
    ];
    const offset = this.#counts;
    this.#counts += groups;
    return [
      ...this.#seed,
      this.#scalar({ kind: 'counter', offset, high: false }, 'u32'),
      this.#scalar({ kind: 'counter', offset, high: true }, 'u32'),
    ];
  }

  /** The gradient slot of a stand-in is about to be read. */
  readGrad(standIn: Handle): void {
    const slot = this.#ofStandIn.get(standIn);
    if (slot === undefined || slot.grad !== undefined || slot.gradWritten) return;
    const outside = slot.outsideGrad;
    const parameter = outside === undefined ? undefined : freshParameter(outside);
    slot.grad = { hadBefore: outside !== undefined, parameter };
    if (parameter !== undefined) standIn.grad = new Handle(parameter, this);
  }

  /** The gradient slot of a stand-in is about to be replaced. */
  writeGrad(standIn: Handle): void {
    const slot = this.#ofStandIn.get(standIn);
    if (slot !== undefined) slot.gradWritten = true;
  }

  #slot(origin: Origin, like: Handle): Slot {
    const parameter = freshParameter(like);
    const standIn = new Handle(parameter, this);
    standIn.requiresGrad = like.requiresGrad;
    standIn.leaf = like.leaf;
    standIn.weak = like.weak;
    if (like.leaf) bindLeaf(parameter, standIn);
    const slot: Slot = {
      origin,
      standIn,
      parameter,
      grad: undefined,
      gradWritten: false,
      outsideGrad: like.grad,
    };
    this.slots.push(slot);
    this.#ofStandIn.set(standIn, slot);
    return slot;
  }

  #scalar(origin: ScalarOrigin, dtype: DType): Node {
    const parameter = freshParameter({ dtype, shape: [] });
    this.scalars.push({ origin, parameter });
    return parameter;
  }
}
