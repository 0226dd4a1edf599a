// What moves bytes between the processes that run one program together. A device that has joined one runs
// the collectives of its programs on it. MPI, NCCL or threads stand behind it (distributed/); this file
// says what they all do.

import type { ElementType } from './program.ts';

/** What collectives combine elements by; `and` and `or` are for bool. */
export type CollectiveMonoid = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or';

/**
 * What becomes of the blocks of a group of n ranks, each of which brings one block of elements and takes one.
 * Blocks are whole: where a block has n parts, these lie one behind the other.
 */
export type CollectiveAction =
  /** Every rank takes the blocks of all, combined element by element. */
  | { readonly kind: 'allReduce'; readonly monoid: CollectiveMonoid }
  /** Every rank takes the blocks of all, one behind the other in the order of the group. */
  | { readonly kind: 'allGather' }
  /** Blocks have n parts: rank i takes part i of all, combined element by element. */
  | { readonly kind: 'reduceScatter'; readonly monoid: CollectiveMonoid }
  /** Blocks have n parts: part j of rank i becomes part i of rank j. */
  | { readonly kind: 'allToAll' }
  /**
   * Rank `to` takes the block of rank `from` for each pair of places in the group; no place is twice the first, or
   * twice the second, of a pair. A rank to which nothing comes takes zeros.
   */
  | { readonly kind: 'permute'; readonly pairs: readonly (readonly [from: number, to: number])[] }
  /** Every rank takes the block of the rank at this place of the group. */
  | { readonly kind: 'broadcast'; readonly root: number };

/** One collective, as all ranks of its group call it. */
export interface CollectiveCall {
  readonly action: CollectiveAction;
  readonly dtype: ElementType;
  /** The ranks that take part, in order, this one among them. */
  readonly group: readonly number[];
}

/** The ranks of a world, seen from one of them. */
export interface Communicator {
  /** `mpi`, `nccl` or `threads`, with what stands behind it, for reports. */
  readonly description: string;
  /** Which of the ranks this one is, from 0. */
  readonly rank: number;
  readonly size: number;
  /**
   * Runs one collective, and returns when `to` has what this rank takes. All ranks of the group call it with
   * the same action, dtype and group, and in the same order where they call several. `from` and `to` hold
   * packed elements; they are the same memory, or they do not overlap. Throws DeviceError E_COLLECTIVE, which names the
   * rank and the collective, where another rank has failed, has ended, calls another collective, or does not come within the
   * time-out.
   */
  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void;
}
