// Ranks that are processes of MPI. Collectives are MPI's own where it has them, without blocking and polled, so that a rank that is
// lost ends the wait. What MPI does not combine, or wrongly, is exchanged, and combined here in the order of the group
// (`nativeType`). Before each call the ranks compare what they call. All calls come from the thread that joined.

import { availableParallelism } from 'node:os';
import { SinterError } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { CollectiveCall, CollectiveMonoid, Communicator } from '../../runtime/communicator.ts';
import {
  collectiveError,
  describeCall,
  hashOf,
  lateness,
  latenessHint,
  placeIn,
  signatureOf,
  timeoutFrom,
} from '../call.ts';
import { combine } from '../combine.ts';
import type { EngineMember } from '../member.ts';
import { starterOf } from '../place.ts';
import { takeOwn } from './alone.ts';
import {
  openMpi,
  type MpiArgument,
  type MpiHandle,
  type MpiLibrary,
  type MpiOptions,
} from './mpi-library.ts';
import { Notes, type Note } from './mpi-notes.ts';
import { partBytes, parts, ranges } from './ranges.ts';

/** Bytes of a block that one call of MPI moves at most: counts are 32 bits with a sign, also of all blocks together. */
const mostBytes = 2 ** 30;

/** Bytes of a piece that is combined here. */
const combinedBytes = 2 ** 20;

/** Blocks of which every rank combines all. */
const smallBytes = 2 ** 12;

/** Bytes of a call in words, for those who call something else. */
const wordsBytes = 256;

/** Milliseconds of a wait: until a core is let go, until notes are read, until others are told. */
const [busy, quiet, worried] = [20, 100, 1000];

/** Milliseconds that a wait goes on after its time, for notes of ranks that came in the last moment, or on a busy machine. */
const grace = 3000;

/** Memory that MPI reads and writes until a wait is over: an array that nobody knows any more would be freed. */
const held: MpiArgument[] = [];

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Memory for a handle, that stays where it is: small arrays without a buffer of their own are moved about. */
function cell(): BigInt64Array {
  return new BigInt64Array(new ArrayBuffer(8));
}

interface Group {
  readonly name: string;
  readonly ranks: readonly number[];
  readonly place: number;
  readonly communicator: MpiHandle;
  /** Collectives that it has begun. */
  turn: number;
}

/** What is waited for, in words. */
interface Waiting {
  readonly group: Group;
  readonly what: string;
}

export interface MpiSettings extends MpiOptions {
  /** Bytes that one call moves at most; 2^30 by default. */
  readonly most?: number;
}

export class MpiCommunicator implements Communicator {
  readonly description: string;
  readonly rank: number;
  readonly size: number;
  readonly #library: MpiLibrary;
  readonly #world: MpiHandle;
  readonly #notes: Notes;
  readonly #groups = new Map<string, Group>();
  readonly #timeout: number;
  readonly #most: number;
  readonly #compares: boolean;
  /** Milliseconds that a wait keeps its core. */
  readonly #busy: number;
  #failure: string | undefined;
  #hasLeft = false;

  /** Begins MPI, if nobody has. */
  constructor(library: MpiLibrary, { env = process.env, most = mostBytes }: MpiSettings = {}) {
    const { call } = library;
    this.#library = library;
    const flag = new Int32Array(1);
    call('Initialized', flag);
    if (flag[0] === 0) call('Init', null, null);
    call('Comm_set_errhandler', library.world, library.errorsReturn);
    this.#world = this.#made('Comm_dup', library.world);
    this.#notes = new Notes(library, this.#made('Comm_dup', library.world));
    const [rank, size] = [new Int32Array(1), new Int32Array(1)];
    call('Comm_rank', library.world, rank);
    call('Comm_size', library.world, size);
    [this.rank, this.size] = [rank[0]!, size[0]!];
    this.description = `mpi (${library.version}, ${this.size} ranks)`;
    this.#timeout = timeoutFrom(env);
    this.#most = most;
    this.#compares = env['SINTER_COLLECTIVE_CHECK'] !== '0';
    this.#busy = this.size <= availableParallelism() ? busy : 0;
  }

  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    if (this.#failure !== undefined) throw collectiveError('mpi', this.#failure);
    try {
      const { count } = placeIn('mpi', call, this, from, to);
      if (count === 1) return takeOwn(call, from, to);
      const group = this.#groupOf(call.group, describeCall(call, from.length));
      group.turn += 1;
      if (this.#compares) this.#compare(group, call, from.length);
      this.#run(group, call, from, to);
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  /** Ends the waits of all ranks with this error. */
  fail(error: unknown): void {
    if (this.#failure !== undefined || this.#hasLeft) return;
    const { message } = error instanceof Error ? error : { message: String(error) };
    const own = error instanceof Error && 'code' in error && error.code === 'E_COLLECTIVE';
    this.#failure = own ? message.replace(/^mpi: /, '') : `rank ${this.rank} has failed: ${message}`;
    this.#notes.send(this.#others(), { kind: 'failed', problem: this.#failure });
  }

  /** Ends MPI on this rank, when all others end it too; after a failure here, on all of them at once. */
  leave(code = 0): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const { call, world } = this.#library;
    const flag = new Int32Array(1);
    call('Finalized', flag);
    if (flag[0] !== 0) return;
    if (code !== 0 || this.#failure !== undefined) return call('Abort', world, code || 1);
    // Messages that nobody takes are an error at the end of MPI: every rank takes the notes of all, of which these are the last.
    this.#notes.send(this.#others(), { kind: 'left' });
    for (const rank of this.#others())
      while (this.#notes.of(rank)?.kind !== 'left') Atomics.wait(nap, 0, 0, 1);
    call('Finalize');
  }

  #others(): readonly number[] {
    return Array.from({ length: this.size }, (_, rank) => rank).filter((rank) => rank !== this.rank);
  }

  /** The handle that a function makes of another one. */
  #made(name: 'Comm_dup' | 'Comm_group', of: MpiHandle): MpiHandle {
    const made = cell();
    this.#library.call(name, of, made);
    return this.#library.handleIn(made);
  }

  #groupOf(ranks: readonly number[], what: string): Group {
    const name = ranks.join();
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const isWorld = ranks.length === this.size && ranks.every((rank, place) => rank === place);
    const all = { name, ranks, place: ranks.indexOf(this.rank), communicator: this.#world, turn: 0 };
    const group = isWorld ? all : { ...all, communicator: this.#communicatorOf(all, what) };
    this.#groups.set(name, group);
    return group;
  }

  /** A communicator of a group. All of it have come before it is made, since that blocks. */
  #communicatorOf(group: Group, what: string): MpiHandle {
    const { call, types, handleIn } = this.#library;
    const { ranks } = group;
    const tag = hashOf(ranks) & 0x7fff;
    const requests: BigInt64Array[] = [];
    const [own, theirs] = [cell(), cell()];
    for (const rank of ranks) {
      if (rank === this.rank) continue;
      requests.push(cell(), cell());
      call('Isend', own, 8, types.byte, rank, tag, this.#world, requests.at(-2)!);
      call('Irecv', theirs, 8, types.byte, rank, tag, this.#world, requests.at(-1)!);
    }
    this.#finish({ group, what }, requests, [own, theirs]);
    const [members, made] = [cell(), cell()];
    const everyone = this.#made('Comm_group', this.#world);
    call('Group_incl', everyone, ranks.length, Int32Array.from(ranks), members);
    call('Comm_create_group', this.#world, handleIn(members), tag, made);
    call('Group_free', members);
    return handleIn(made);
  }

  /** Throws on all ranks of the group where not all make the same call. */
  #compare(group: Group, given: CollectiveCall, bytes: number): void {
    const { types, operations, inPlace } = this.#library;
    const waiting = { group, what: describeCall(given, bytes) };
    const signature = signatureOf(given, bytes);
    const hash = (BigInt(hashOf(signature)) << 32n) | BigInt(hashOf(signature, 1) >>> 0);
    // The largest of all, and the negation of the least.
    const extremes = new BigInt64Array(new ArrayBuffer(16));
    extremes.set([hash, ~hash]);
    this.#begin(waiting, 'Iallreduce', inPlace, extremes, 2, types.i64, operations.max, group.communicator);
    if (extremes[0] === ~extremes[1]!) return;
    const own = new Uint8Array(wordsBytes).fill(0x20);
    own.set(new TextEncoder().encode(waiting.what).subarray(0, wordsBytes));
    const all = new Uint8Array(wordsBytes * group.ranks.length);
    const { byte } = types;
    this.#begin(waiting, 'Iallgather', own, wordsBytes, byte, all, wordsBytes, byte, group.communicator);
    const words = group.ranks.map((_, i) =>
      new TextDecoder().decode(all.subarray(i * wordsBytes, (i + 1) * wordsBytes)).trim(),
    );
    const said = [...new Set(words)].map((one) => {
      const ranks = group.ranks.filter((_, i) => words[i] === one);
      return `rank ${ranks.join()} calls ${one}`;
    });
    throw collectiveError('mpi', said.join(' where '), 'the same collectives in the same order on all ranks');
  }

  #run(group: Group, given: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    const { types, operations, inPlace } = this.#library;
    const { action, dtype } = given;
    const { communicator, place } = group;
    const count = group.ranks.length;
    const waiting: Waiting = { group, what: describeCall(given, from.length) };
    const isSame = from.buffer === to.buffer && from.byteOffset === to.byteOffset;
    switch (action.kind) {
      case 'allReduce': {
        const { monoid } = action;
        const native = nativeType(monoid, dtype);
        if (native === undefined) return this.#combineAll(waiting, monoid, given, from, to);
        const bytes = dtypeBytes(dtype);
        return ranges(from.length, this.#most, (start, end) =>
          this.#begin(
            waiting,
            'Iallreduce',
            isSame ? inPlace : from.subarray(start, end),
            to.subarray(start, end),
            (end - start) / bytes,
            types[native],
            operations[monoid],
            communicator,
          ),
        );
      }
      case 'allGather':
        return ranges(from.length, this.#most, (start, end) =>
          this.#gather(waiting, from.subarray(start, end), parts(to, count, start, end)),
        );
      case 'reduceScatter': {
        const { monoid } = action;
        const native = nativeType(monoid, dtype);
        const most = partBytes(native === undefined ? combinedBytes : this.#most, count);
        return ranges(to.length, most, (start, end) => {
          const pieces = parts(from, count, start, end);
          const own = to.subarray(start, end);
          if (native === undefined) {
            const theirs = parts(new Uint8Array(count * own.length), count, 0, own.length);
            this.#swap(waiting, pieces, theirs);
            return combine(monoid, dtype, theirs, own);
          }
          const elements = own.length / dtypeBytes(dtype);
          const type = types[native];
          const operation = operations[monoid];
          const all = joined(pieces);
          this.#begin(waiting, 'Ireduce_scatter_block', all, own, elements, type, operation, communicator);
        });
      }
      case 'allToAll':
        return ranges(from.length / count, partBytes(this.#most, count), (start, end) => {
          const pieces = parts(isSame ? from.slice() : from, count, start, end);
          this.#swap(waiting, pieces, parts(to, count, start, end));
        });
      case 'permute':
        return this.#permute(waiting, action.pairs, from, to);
      case 'broadcast':
        if (place === action.root && !isSame) to.set(from);
        return ranges(to.length, this.#most, (start, end) =>
          this.#begin(
            waiting,
            'Ibcast',
            to.subarray(start, end),
            end - start,
            types.byte,
            action.root,
            communicator,
          ),
        );
    }
  }

  /** Every rank takes `own` of all, each into one of `to`. */
  #gather({ group, what }: Waiting, own: Uint8Array, to: readonly Uint8Array[]): void {
    const { byte } = this.#library.types;
    const bytes = own.length;
    this.#into(to, (all) =>
      this.#begin({ group, what }, 'Iallgather', own, bytes, byte, all, bytes, byte, group.communicator),
    );
  }

  /** Every rank takes the part of all that is for its place, each into one of `to`. */
  #swap({ group, what }: Waiting, from: readonly Uint8Array[], to: readonly Uint8Array[]): void {
    const { byte } = this.#library.types;
    const bytes = from[0]!.length;
    const own = joined(from);
    this.#into(to, (all) =>
      this.#begin({ group, what }, 'Ialltoall', own, bytes, byte, all, bytes, byte, group.communicator),
    );
  }

  /** Has memory written that lies behind one another, and then copied where it belongs, if that lies apart. */
  #into(to: readonly Uint8Array[], write: (all: Uint8Array) => void): void {
    const whole = together(to);
    const all = whole ?? new Uint8Array(to.length * to[0]!.length);
    write(all);
    if (whole === undefined)
      to.forEach((part, i) => part.set(all.subarray(i * part.length, (i + 1) * part.length)));
  }

  /** Combines blocks that MPI cannot: each rank its part of them, where they are not small. */
  #combineAll(
    waiting: Waiting,
    monoid: CollectiveMonoid,
    { dtype }: CollectiveCall,
    from: Uint8Array,
    to: Uint8Array,
  ): void {
    const count = waiting.group.ranks.length;
    if (from.length <= smallBytes) {
      const all = parts(new Uint8Array(count * from.length), count, 0, from.length);
      this.#gather(waiting, from, all);
      return combine(monoid, dtype, all, to);
    }
    ranges(from.length, combinedBytes, (start, end) => {
      // Parts are equally long: the last ones are filled up with zeros.
      const part = 8 * Math.ceil((end - start) / 8 / count);
      const filled = new Uint8Array(count * part);
      filled.set(from.subarray(start, end));
      const theirs = parts(new Uint8Array(count * part), count, 0, part);
      this.#swap(waiting, parts(filled, count, 0, part), theirs);
      const own = new Uint8Array(part);
      combine(monoid, dtype, theirs, own);
      this.#gather(waiting, own, parts(filled, count, 0, part));
      to.set(filled.subarray(0, end - start), start);
    });
  }

  #permute(
    waiting: Waiting,
    pairs: readonly (readonly [from: number, to: number])[],
    from: Uint8Array,
    to: Uint8Array,
  ): void {
    const { call, types } = this.#library;
    const { place, communicator } = waiting.group;
    const target = pairs.find(([source]) => source === place)?.[1];
    const source = pairs.find(([, other]) => other === place)?.[0];
    const own = from.buffer === to.buffer && target !== undefined ? from.slice() : from;
    if (source === undefined) to.fill(0);
    else if (source === place) to.set(own);
    ranges(from.length, this.#most, (start, end) => {
      const requests: BigInt64Array[] = [];
      const move = (name: 'Isend' | 'Irecv', block: Uint8Array, other: number): void => {
        const request = cell();
        const piece = block.subarray(start, end);
        call(name, piece, end - start, types.byte, other, 0, communicator, request);
        requests.push(request);
      };
      if (source !== undefined && source !== place) move('Irecv', to, source);
      if (target !== undefined && target !== place) move('Isend', own, target);
      this.#finish(waiting, requests, [own, to]);
    });
  }

  /** Calls a function whose last argument is a request, and waits for it. */
  #begin(
    waiting: Waiting,
    name: 'Iallreduce' | 'Iallgather' | 'Ireduce_scatter_block' | 'Ialltoall' | 'Ibcast',
    ...args: readonly MpiArgument[]
  ): void {
    const request = cell();
    this.#library.call(name, ...args, request);
    this.#finish(waiting, [request], args);
  }

  /** Waits until all requests are done, which use `memory`. Throws where they will not be, or not in time. */
  #finish(waiting: Waiting, requests: readonly BigInt64Array[], memory: readonly MpiArgument[]): void {
    const before = held.length;
    held.push(...requests, ...memory);
    this.#poll(waiting, requests);
    // Where a wait has failed, MPI may still write: the memory stays as long as the process.
    held.length = before;
  }

  #poll(waiting: Waiting, requests: readonly BigInt64Array[]): void {
    const { call, ignoredStatus } = this.#library;
    const flag = new Int32Array(1);
    let open = requests;
    const isDone = (): boolean => {
      open = open.filter((request) => {
        call('Test', request, flag, ignoredStatus);
        return flag[0] === 0;
      });
      return open.length === 0;
    };
    for (let look = 0; look < 64; look++) if (isDone()) return;
    const start = performance.now();
    let hasTold = false;
    while (!isDone()) {
      const waited = performance.now() - start;
      if (waited < this.#busy) continue;
      Atomics.wait(nap, 0, 0, waited < quiet ? 0.02 : 1);
      if (waited < quiet) continue;
      this.#listen(waiting);
      if (waited > Math.min(worried, this.#timeout / 4) && !hasTold) {
        hasTold = true;
        const { group, what } = waiting;
        const note = { kind: 'waits', group: group.name, turn: group.turn, call: what } as const;
        this.#notes.send(
          group.ranks.filter((rank) => rank !== this.rank),
          note,
        );
      }
      if (waited > this.#timeout + grace) throw this.#late(waiting);
    }
  }

  /** Throws where another rank has failed, or comes no more. */
  #listen({ group, what }: Waiting): void {
    for (const rank of group.ranks) {
      const end = rank === this.rank ? undefined : this.#endOf(rank, this.#notes.of(rank), what);
      if (end !== undefined) throw end;
    }
  }

  /** What a note says of a rank that comes no more. */
  #endOf(rank: number, note: Note | undefined, what: string): SinterError | undefined {
    if (note?.kind === 'failed') return collectiveError('mpi', note.problem);
    if (note?.kind !== 'left') return undefined;
    return collectiveError('mpi', `rank ${rank} has ended, and rank ${this.rank} waits for it in ${what}`);
  }

  #late({ group, what }: Waiting): SinterError {
    const others = group.ranks.filter((rank) => rank !== this.rank);
    const notes = new Map(others.map((rank) => [rank, this.#notes.of(rank)]));
    // Ranks that wait together give up together: one that has come may have given up just now, and says for whom it waited.
    for (const [rank, note] of notes) {
      const end = this.#endOf(rank, note, what);
      if (end !== undefined) return end;
    }
    const missing = others.filter((rank) => {
      const note = notes.get(rank);
      return note?.kind !== 'waits' || note.group !== group.name || note.turn !== group.turn;
    });
    const elsewhere = missing.flatMap((rank) => {
      const note = notes.get(rank);
      return note?.kind === 'waits' ? [`; rank ${rank} has waited in ${note.call}`] : [];
    });
    const who = missing.length === 0 ? others : missing;
    return collectiveError('mpi', lateness(who, what, this.#timeout) + elsewhere.join(''), latenessHint);
  }
}

/**
 * The type by which MPI combines elements as they have to be; undefined where it does not. Open MPI 4.1 saturates sums of 8 and 16 bits,
 * MPICH 4.0 takes unsigned bytes for signed ones in min and max, and MPI says nothing of NaN there.
 */
function nativeType(
  monoid: CollectiveMonoid,
  dtype: CollectiveCall['dtype'],
): 'u8' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64' | undefined {
  const isOrdered = monoid === 'min' || monoid === 'max';
  switch (dtype) {
    case 'bool':
      return 'u8';
    case 'i32':
    case 'i64':
      return dtype;
    case 'u32':
    case 'u64':
    case 'f32':
    case 'f64':
      return isOrdered ? undefined : dtype;
    case 'i8':
    case 'u8':
    case 'i16':
    case 'u16':
    case 'f16':
    case 'bf16':
      return undefined;
  }
}

/** The memory of pieces that lie one behind the other; undefined where they do not. */
function together(pieces: readonly Uint8Array[]): Uint8Array | undefined {
  const [first] = pieces as readonly [Uint8Array];
  const { buffer, byteOffset, length } = first;
  const isRow = pieces.every(
    (piece, i) => piece.buffer === buffer && piece.byteOffset === byteOffset + i * length,
  );
  return isRow ? new Uint8Array(buffer, byteOffset, length * pieces.length) : undefined;
}

/** The same bytes one behind the other. */
function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = together(pieces);
  if (whole !== undefined) return whole;
  const all = new Uint8Array(pieces.length * pieces[0]!.length);
  pieces.forEach((piece, i) => all.set(piece, i * piece.length));
  return all;
}

/** Begins MPI in this process, which ends it when it exits. Rejects with E_DEVICE where there is no library of MPI. */
export async function mpiMember(
  settings: MpiSettings = {},
): Promise<EngineMember & { readonly communicator: MpiCommunicator }> {
  const { env = process.env } = settings;
  const library = await openMpi(settings);
  const communicator = new MpiCommunicator(library, settings);
  const starter = starterOf(env);
  if (starter?.size !== undefined && starter.size !== communicator.size) {
    communicator.leave();
    throw new SinterError(
      'E_UNSUPPORTED',
      `join: ${starter.name} has started ${starter.size} ranks, and ${library.file} (${library.version}) sees ${communicator.size}\n` +
        '  try: SINTER_MPI=/path/to/libmpi.so, the library of the mpirun that starts the processes',
    );
  }
  // Node prints an error that nobody catches when it has called what listens to `exit`, and that ends all ranks at once.
  process.once('uncaughtExceptionMonitor', (error) => {
    process.stderr.write(`${error.stack ?? error.message}\n`);
    communicator.fail(error);
  });
  process.once('exit', (code) => communicator.leave(code));
  return { engine: 'mpi', communicator, leave: () => communicator.leave() };
}
