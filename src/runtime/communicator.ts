// What moves bytes between the processes that run one program together. A device that has joined one runs
// the collectives of its programs on it. MPI, NCCL or threads stand behind it (distributed/); this file
// says what they all do.

import { DeviceError } from '../errors.ts';
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

/** An axis of a mesh of ranks: how many stand along it, and by how many ranks neighbours differ. */
export interface RankAxis {
  readonly size: number;
  readonly stride: number;
}

/** Groups of the ranks of a mesh: the ranks of one differ along these axes only, of which the first varies slowest. */
export interface RankGroups {
  /** How many ranks the mesh has. */
  readonly ranks: number;
  readonly axes: readonly RankAxis[];
}

/** A collective as programs name it: every rank finds its group. */
export interface Meeting extends RankGroups {
  readonly action: CollectiveAction;
  readonly dtype: ElementType;
}

/** The ranks of the group of a rank, in order. */
export function groupOfRank({ axes }: RankGroups, rank: number): readonly number[] {
  const first = axes.reduce((at, axis) => at - placeOn(axis, rank) * axis.stride, rank);
  return axes.reduce<readonly number[]>(
    (ranks, { size, stride }) =>
      ranks.flatMap((at) => Array.from({ length: size }, (_, i) => at + i * stride)),
    [first],
  );
}

/** Which place of its group a rank has. */
export function placeOfRank({ axes }: RankGroups, rank: number): number {
  return axes.reduce((place, axis) => place * axis.size + placeOn(axis, rank), 0);
}

function placeOn({ size, stride }: RankAxis, rank: number): number {
  return Math.floor(rank / stride) % size;
}

/** What programs of a device do with other ranks. Throws E_STATE where the device has joined none, or not as many. */
export interface Ranks {
  run(meeting: Meeting, from: Uint8Array, to: Uint8Array): void;
  /** Which place of its group this rank has. */
  place(groups: RankGroups): number;
}

/** The ranks that a device has joined, as its programs use them. */
export function ranksOf(device: string, communicator: () => Communicator | undefined): Ranks {
  const joined = (ranks: number): Communicator => {
    const found = communicator();
    if (found?.size === ranks) return found;
    const has = found === undefined ? 'the device has joined none' : `the device has joined ${found.size}`;
    const hint = 'join of sinter/distributed in every process, before a program of processes runs';
    throw new DeviceError('E_STATE', device, `the program needs ${ranks} processes: ${has}`, { hint });
  };
  return {
    run: (meeting, from, to) => {
      const found = joined(meeting.ranks);
      const { action, dtype } = meeting;
      found.run({ action, dtype, group: groupOfRank(meeting, found.rank) }, from, to);
    },
    place: (groups) => placeOfRank(groups, joined(groups.ranks).rank),
  };
}
