// Ranks that are worker threads of one process, over memory that they share. A rank writes a piece of its block into a half
// of its memory, tells every rank of the group, waits for their pieces, and reads them. It counts pieces for each other rank
// apart, and all come in order, so the next piece of another rank belongs to the next call that both make: where
// the two calls differ, both are wrong. Groups may overlap. A half is written again once all have read what was in it.

import { availableParallelism } from 'node:os';
import { workerData } from 'node:worker_threads';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { CollectiveCall, CollectiveMonoid, Communicator } from '../../runtime/communicator.ts';
import {
  collectiveError,
  describeCall,
  describeSignature,
  lateness,
  latenessHint,
  placeIn,
  signatureLength,
  signatureOf,
  timeoutFrom,
  type GroupPlace,
} from '../call.ts';
import { combine } from '../combine.ts';
import type { EngineMember } from '../member.ts';
import { partBytes, parts, ranges } from './ranges.ts';
import { ownSeat, pieceBytes, ThreadMemory, type ThreadSeat } from './threads-memory.ts';

/** Blocks of which every rank combines all: below, another exchange costs more than the work that it shares out. */
const smallBytes = 2 ** 14;

/** Looks at what is waited for before a thread sleeps, where there is a core for each rank: some 50 µs. */
const looks = 2000;

/** Where a label names the group. */
const groupAt = signatureLength + 2;

/** A call while it runs. */
interface Running extends GroupPlace {
  readonly call: CollectiveCall;
  readonly signature: readonly number[];
  readonly bytes: number;
  /** The ranks of the group but for this one. */
  readonly others: readonly number[];
}

export class ThreadsCommunicator implements Communicator {
  readonly description: string;
  readonly rank: number;
  readonly size: number;
  readonly #memory: ThreadMemory;
  readonly #timeout: number;
  readonly #looks: number;
  #half = 0;
  /** Pieces that this rank has told each rank of, and that it has read of each. */
  readonly #sent: Int32Array;
  readonly #read: Int32Array;
  /** For each half, the count at which each rank was told of what is in it; 0 where it was not. */
  readonly #told: readonly Int32Array[];

  constructor(seat: ThreadSeat, env: Readonly<Record<string, string | undefined>> = process.env) {
    this.rank = seat.rank;
    this.size = seat.size;
    this.description = `threads (${seat.size} ranks)`;
    this.#memory = new ThreadMemory(seat);
    this.#timeout = timeoutFrom(env);
    this.#looks = seat.size <= availableParallelism() ? looks : 0;
    this.#sent = new Int32Array(seat.size);
    this.#read = new Int32Array(seat.size);
    this.#told = [new Int32Array(seat.size), new Int32Array(seat.size)];
  }

  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    const failed = this.#memory.failure();
    if (failed !== undefined)
      throw collectiveError(
        'threads',
        `${failed}; rank ${this.rank} has come to ${describeCall(call, from.length)}`,
      );
    try {
      const placed = placeIn('threads', call, this, from, to);
      const running: Running = {
        ...placed,
        call,
        signature: signatureOf(call, from.length),
        bytes: from.length,
        others: call.group.filter((rank) => rank !== this.rank),
      };
      this.#run(running, from, to);
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  /** Ends the waits of all ranks with this error, for one that happened between collectives too. */
  fail(error: unknown): void {
    const { message } = error instanceof Error ? error : { message: String(error) };
    const own = error instanceof Error && 'code' in error && error.code === 'E_COLLECTIVE';
    this.#memory.fail(own ? message.replace(/^threads: /, '') : `rank ${this.rank} has failed: ${message}`);
  }

  /** Says that this rank comes to no further collective. */
  leave(): void {
    this.#memory.leave(this.rank);
  }

  #run(running: Running, from: Uint8Array, to: Uint8Array): void {
    const { call, count, place } = running;
    const { action, dtype } = call;
    switch (action.kind) {
      case 'allReduce':
        return this.#allReduce(running, action.monoid, from, to);
      case 'allGather':
        return ranges(from.length, pieceBytes, (start, end) =>
          this.#exchange(running, [from.subarray(start, end)], (blocks) =>
            blocks.forEach((block, i) => to.set(block, i * from.length + start)),
          ),
        );
      case 'reduceScatter':
        return ranges(to.length, partBytes(pieceBytes, count), (start, end) =>
          this.#exchange(running, parts(from, count, start, end), (blocks) =>
            combine(action.monoid, dtype, partsAt(blocks, place, end - start), to.subarray(start, end)),
          ),
        );
      case 'allToAll':
        return ranges(from.length / count, partBytes(pieceBytes, count), (start, end) =>
          this.#exchange(running, parts(from, count, start, end), (blocks) =>
            partsAt(blocks, place, end - start).forEach((part, i) =>
              to.set(part, (i * from.length) / count + start),
            ),
          ),
        );
      case 'permute': {
        const sends = action.pairs.some(([source]) => source === place);
        const source = action.pairs.find(([, target]) => target === place)?.[0];
        return ranges(from.length, pieceBytes, (start, end) =>
          this.#exchange(running, sends ? [from.subarray(start, end)] : [], (blocks) => {
            if (source === undefined) to.fill(0, start, end);
            else to.set(blocks[source]!.subarray(0, end - start), start);
          }),
        );
      }
      case 'broadcast':
        return ranges(from.length, pieceBytes, (start, end) =>
          this.#exchange(running, place === action.root ? [from.subarray(start, end)] : [], (blocks) =>
            to.set(blocks[action.root]!.subarray(0, end - start), start),
          ),
        );
    }
  }

  #allReduce(running: Running, monoid: CollectiveMonoid, from: Uint8Array, to: Uint8Array): void {
    const { call, count, place } = running;
    const { dtype } = call;
    if (from.length <= smallBytes)
      return this.#exchange(running, [from], (blocks) => combine(monoid, dtype, blocks, to));
    // Every rank combines its part of a piece, and takes those of the others.
    const unit = dtypeBytes(dtype);
    ranges(from.length, pieceBytes, (start, end) => {
      const part = unit * Math.ceil((end - start) / unit / count);
      const partOf = (which: number): readonly [start: number, end: number] => [
        Math.min(which * part, end - start),
        Math.min((which + 1) * part, end - start),
      ];
      const [first, last] = partOf(place);
      const own = to.subarray(start + first, start + last);
      this.#exchange(running, [from.subarray(start, end)], (blocks) =>
        combine(
          monoid,
          dtype,
          blocks.map((block) => block.subarray(first, last)),
          own,
        ),
      );
      this.#exchange(running, [own], (blocks) =>
        blocks.forEach((block, which) => {
          const [begin, stop] = partOf(which);
          if (which !== place) to.set(block.subarray(0, stop - begin), start + begin);
        }),
      );
    });
  }

  /**
   * Brings a piece, `own` one behind the other, and reads those of all, in the order of the group: as long as this rank's,
   * or longer.
   */
  #exchange(
    running: Running,
    own: readonly Uint8Array[],
    read: (blocks: readonly Uint8Array[]) => void,
  ): void {
    const { call, signature, others } = running;
    const memory = this.#memory;
    const half = this.#half;
    this.#half = 1 - half;
    const told = this.#told[half]!;
    for (let rank = 0; rank < this.size; rank++)
      if (told[rank] !== 0) {
        const count = told[rank]!;
        this.#until(running, [rank], () => memory.isReleased(this.rank, rank, count));
        told[rank] = 0;
      }
    const piece = memory.piece(this.rank, half);
    let length = 0;
    for (const block of own) {
      piece.set(block, length);
      length += block.length;
    }
    const label = memory.label(this.rank, half);
    label.set(signature);
    label[signatureLength] = length;
    label[signatureLength + 1] = call.group.length;
    label.set(call.group.slice(0, label.length - groupAt), groupAt);
    for (const rank of others) {
      const count = (this.#sent[rank] = (this.#sent[rank]! + 1) | 0);
      told[rank] = count;
      memory.publish(this.rank, rank, count, half);
    }
    const halves = new Map([[this.rank, half]]);
    const isThere = (rank: number): boolean => {
      if (halves.has(rank)) return true;
      const found = memory.published(rank, this.rank, (this.#read[rank]! + 1) | 0);
      if (found === undefined) return false;
      this.#compare(running, rank, found);
      halves.set(rank, found);
      return true;
    };
    for (const rank of others) this.#until(running, others, () => isThere(rank), isThere);
    read(
      call.group.map((rank) => {
        const at = halves.get(rank)!;
        return memory.piece(rank, at).subarray(0, memory.label(rank, at)[signatureLength]!);
      }),
    );
    for (const rank of others) {
      const count = (this.#read[rank] = (this.#read[rank]! + 1) | 0);
      memory.release(rank, this.rank, count);
    }
  }

  /** Throws where another rank makes another call. */
  #compare({ call, signature, bytes }: Running, rank: number, half: number): void {
    const label = this.#memory.label(rank, half);
    if (signature.every((word, i) => word === label[i])) return;
    const group = [...label.subarray(groupAt, groupAt + label[groupAt - 1]!)];
    const problem = `rank ${rank} calls ${describeSignature(label, group)} where rank ${this.rank} calls ${describeCall(call, bytes)}`;
    throw collectiveError('threads', problem, 'the same collectives in the same order on all ranks');
  }

  /** Waits for what others do. Throws where that comes no more, or not in time. */
  #until(
    { call, bytes }: Running,
    awaited: readonly number[],
    isDone: () => boolean,
    hasCome: (rank: number) => boolean = isDone,
  ): void {
    for (let look = 0; look <= this.#looks; look++) if (isDone()) return;
    const memory = this.#memory;
    const end = performance.now() + this.#timeout;
    for (;;) {
      const bell = memory.bell(this.rank);
      if (isDone()) return;
      const failed = memory.failure();
      const what = describeCall(call, bytes);
      if (failed !== undefined)
        throw collectiveError('threads', `${failed}; rank ${this.rank} waits in ${what}`);
      const missing = awaited.filter((rank) => !hasCome(rank));
      const gone = missing.find((rank) => memory.hasLeft(rank) && !hasCome(rank));
      if (gone !== undefined)
        throw collectiveError(
          'threads',
          `rank ${gone} has ended, and rank ${this.rank} waits for it in ${what}`,
        );
      const left = end - performance.now();
      if (left <= 0) throw collectiveError('threads', lateness(missing, what, this.#timeout), latenessHint);
      memory.sleep(this.rank, bell, left);
    }
  }
}

/** The rank that this thread is; undefined where it is none. */
export function threadMember(): EngineMember | undefined {
  const seat = ownSeat(workerData);
  if (seat === undefined) return undefined;
  const communicator = new ThreadsCommunicator(seat);
  return { engine: 'threads', communicator, leave: () => communicator.leave() };
}

/** The part at `place` of each of the pieces, whose parts have `bytes`. */
function partsAt(pieces: readonly Uint8Array[], place: number, bytes: number): readonly Uint8Array[] {
  return pieces.map((piece) => piece.subarray(place * bytes, (place + 1) * bytes));
}
