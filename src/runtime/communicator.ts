// What moves bytes between the processes that run one program together. A device that has joined one runs
// the collectives of its programs on it. MPI, NCCL or threads stand behind it (distributed/); this file
// says what they all do.

import { DeviceError } from '../errors.ts';
import type { CollectiveAction, ElementType, Meeting, RankAxis, RankGroups } from './program.ts';

export type { CollectiveAction, CollectiveMonoid, Meeting, RankAxis, RankGroups } from './program.ts';

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
  /** The same between memories of a CUDA device; undefined where the ranks have nothing that does it. */
  readonly onStream?: StreamCollectives | undefined;
}

/** Memory of a CUDA device: bytes from an address on. */
export interface DeviceBlock {
  readonly address: number;
  readonly bytes: number;
}

/** A stream of a CUDA device, whose context is current when it is used. */
export interface DeviceStream {
  readonly stream: number;
  /** Whether all that it was given is done. It does not wait. */
  isIdle(): boolean;
}

/** Collectives that take their turns on a stream of a CUDA device, as its kernels do. */
export interface StreamCollectives {
  /**
   * Queues one collective on a stream; `from` and `to` are one block, or do not overlap. All ranks of the group queue the same ones in
   * the same order. A rank to which nothing comes finds its block as it was. Waits for other ranks only where they have not met before. Throws DeviceError E_COLLECTIVE as `run` does, and
   * E_UNSUPPORTED where it does not combine elements of this dtype.
   */
  queue(call: CollectiveCall, from: DeviceBlock, to: DeviceBlock, stream: DeviceStream): void;
  /**
   * Whether all ranks are known to have queued what this one has. Who waits for the stream calls it again and again: it throws DeviceError
   * E_COLLECTIVE when another rank has failed or does not come, and what was queued has ended then.
   */
  look(): boolean;
}

/**
 * For how many ms who waits for other ranks sleeps between two looks: `shortest` at first, then a 64th of the time since the wait
 * began (`performance.now()` then), and no more than 16. Ranks may be minutes late, and their processors belong to others.
 */
export function napMs(since: number, shortest: number): number {
  return Math.max(shortest, Math.min((performance.now() - since) / 64, 16));
}

/** Why there are no such groups, in words; undefined where there are. */
export function groupProblem({ ranks, axes }: RankGroups): string | undefined {
  const odd = axes.find(({ size, stride }) => !(size >= 1 && stride >= 1 && ranks % (size * stride) === 0));
  return odd && `an axis of ${odd.size} ranks, ${odd.stride} apart, is none of ${ranks} ranks`;
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
  /** The same on a stream. */
  queue(meeting: Meeting, from: DeviceBlock, to: DeviceBlock, stream: DeviceStream): void;
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
  const callOf = (meeting: Meeting, { rank }: Communicator): CollectiveCall => {
    const { action, dtype } = meeting;
    return { action, dtype, group: groupOfRank(meeting, rank) };
  };
  return {
    run: (meeting, from, to) => {
      const found = joined(meeting.ranks);
      found.run(callOf(meeting, found), from, to);
    },
    queue: (meeting, from, to, stream) => {
      const found = joined(meeting.ranks);
      if (found.onStream === undefined) throw noStream(device, found);
      found.onStream.queue(callOf(meeting, found), from, to, stream);
    },
    place: (groups) => placeOfRank(groups, joined(groups.ranks).rank),
  };
}

/** The error of a CUDA device that joins ranks which cannot reach its memory. */
export function noStream(device: string, { description }: Communicator): DeviceError {
  const hint = "join({ engine: 'nccl' }), or the device native";
  return new DeviceError('E_UNSUPPORTED', device, `${description} does not reach the memory of a GPU`, {
    hint,
  });
}
