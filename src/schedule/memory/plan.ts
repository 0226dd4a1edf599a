// What a memory plan is, what it depends on, and the plan that shares nothing.

import type { Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';
import type { LoopNeeds, LoopPlaces } from './loops.ts';

export interface MemoryPlan {
  /** Where each intermediate lies, packs and their members included. */
  readonly placeOf: ReadonlyMap<Node, { readonly arena: number; readonly offset: number }>;
  /** Bytes of each arena. */
  readonly arenas: readonly number[];
  /**
   * Most bytes of intermediates that are needed at once: no plan for this order of kernels takes
   * less.
   */
  readonly live: number;
  /**
   * Values that live in the memory of another: a parameter donated for them, or an intermediate
   * that no later kernel reads.
   */
  readonly overwrites: ReadonlyMap<Node, Node>;
  /** Of each loop: the keys of what its iterations hand on, in order, and which arenas its own are. */
  readonly loops: ReadonlyMap<Kernel, LoopPlaces>;
  /** Stands for the device buffer that holds a value: an arena, a pack, or the value alone. */
  readonly homeOf: (node: Node) => Node | number;
}

/** Every value in a buffer of its own. */
export const unsharedMemory: MemoryPlan = {
  placeOf: new Map(),
  arenas: [],
  live: 0,
  overwrites: new Map(),
  loops: new Map(),
  homeOf: (node) => node,
};

/** The inputs, outputs and limits that a memory plan depends on. */
export interface MemoryNeeds {
  readonly outputs: ReadonlySet<Node>;
  /** Pairs an output with the parameter offered for it. */
  readonly donations: ReadonlyMap<Node, Node>;
  /** Device bytes of a value. */
  readonly bytesOf: (node: Node) => number;
  /** Bytes of the largest arena. */
  readonly largestArena: number;
  readonly loops: ReadonlyMap<Kernel, LoopNeeds>;
}
