// Ranks that are processes with a GPU each. NCCL moves what their programs bring, between the memories of GPUs, on the stream of each
// device. A board (board.ts) says what the ranks do: it has the ids of communicators, finds out who calls something else or does not
// come, and moves the few bytes that ranks tell each other from host to host. All calls come from the thread that joined.

import { DeviceError, SinterError } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type {
  CollectiveCall,
  Communicator,
  DeviceBlock,
  DeviceStream,
  StreamCollectives,
} from '../../runtime/communicator.ts';
import { combinesOnStream } from '../../runtime/program.ts';
import { collectiveError, describeCall, placeIn, type GroupPlace } from '../call.ts';
import { takeOwn } from './alone.ts';
import type { Board } from './board.ts';
import { nameOfGroup, type LedgerGroup } from './ledger.ts';
import {
  byteType,
  openNccl,
  operationOf,
  typeOf,
  type NcclFunction,
  type NcclLibrary,
  type NcclOptions,
} from './nccl-library.ts';
import { takeFrom } from './taken.ts';

/** Looks without a pause at a call in progress, and milliseconds between two questions to NCCL whether something has failed. */
const [eager, checkEvery] = [64, 10];

/** Ranks that have met, and NCCL's communicator of them. */
interface Meetings {
  readonly group: LedgerGroup;
  /** NCCL's communicator; 0 where it is not made yet. */
  handle: number;
  /** Collectives that it has begun. */
  turn: number;
}

export class NcclCommunicator implements Communicator, StreamCollectives {
  readonly rank: number;
  readonly size: number;
  readonly #board: Board;
  readonly #meetings = new Map<string, Meetings>();
  #library: NcclLibrary | undefined;
  /** The stream that was used last. */
  #stream: DeviceStream | undefined;
  #checked = 0;
  #hasAborted = false;
  #hasLeft = false;

  constructor(board: Board, rank: number, size: number) {
    this.#board = board;
    this.rank = rank;
    this.size = size;
  }

  get description(): string {
    return `nccl (${this.#library?.version ?? 'not open'}, ${this.size} ranks)`;
  }

  /** Opens NCCL, which a device needs. Rejects with E_DEVICE where it is missing. */
  async open(options: NcclOptions): Promise<void> {
    this.#library ??= await openNccl(options);
  }

  get onStream(): StreamCollectives | undefined {
    return this.#library && this;
  }

  /** From host to host: every rank gets the blocks of all. It is for few bytes. */
  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    this.look();
    this.#attempt(() => {
      const { count, place } = placeIn('nccl', call, this, from, to);
      if (count === 1) return takeOwn(call, from, to);
      const meetings = this.#of({ channel: 'host', ranks: call.group });
      this.#board.call(meetings.group, meetings.turn, describeCall(call, from.length), from);
      takeFrom(call, place, this.#board.blocksOf(meetings.group, meetings.turn++), to);
    });
  }

  queue(call: CollectiveCall, from: DeviceBlock, to: DeviceBlock, stream: DeviceStream): void {
    this.look();
    const { action, dtype } = call;
    if ('monoid' in action && !combinesOnStream(action.monoid, dtype))
      throw new DeviceError('E_UNSUPPORTED', 'nccl', `it does not combine ${dtype} by ${action.monoid}`);
    this.#attempt(() => {
      const where = placeIn('nccl', call, this, { length: from.bytes }, { length: to.bytes });
      const mayShare = action.kind === 'allReduce' || action.kind === 'broadcast';
      const isApart = from.address + from.bytes <= to.address || to.address + to.bytes <= from.address;
      if (!isApart && !(mayShare && from.address === to.address))
        throw new DeviceError(
          'E_VALIDATION',
          'nccl',
          `the blocks of ${describeCall(call, from.bytes)} overlap`,
        );
      const meetings = this.#of({ channel: 'stream', ranks: call.group });
      this.#board.call(meetings.group, meetings.turn++, describeCall(call, from.bytes));
      this.#stream = stream;
      if (meetings.handle === 0) this.#make(meetings, where);
      this.#issue(call, where, from, to, meetings.handle, stream.stream);
    });
  }

  look(): boolean {
    try {
      this.#board.look();
      const now = performance.now();
      if (this.#library !== undefined && now - this.#checked > checkEvery) {
        this.#checked = now;
        for (const { handle } of this.#meetings.values()) if (handle !== 0) this.#library.isReady(handle);
      }
      return this.#board.isEven;
    } catch (error) {
      return this.#give(error);
    }
  }

  /** Ends the waits of all ranks with this error. */
  fail(error: unknown): void {
    const { message } = error instanceof Error ? error : { message: String(error) };
    const own = error instanceof Error && 'code' in error && error.code === 'E_COLLECTIVE';
    if (!this.#hasLeft)
      this.#board.fail(own ? message.replace(/^nccl: /, '') : `rank ${this.rank} has failed: ${message}`);
    this.#abort();
  }

  /** Says that this rank comes to no further collective, when all that it has queued is done. */
  leave(code = 0): void {
    if (this.#hasLeft) return;
    if (code !== 0) this.fail(new Error(`it has ended with exit code ${code}`));
    try {
      this.#end();
    } catch {
      // What waits for other ranks was ended; who reads it has been told.
    }
    this.#hasLeft = true;
    this.#board.leave();
  }

  /** Ends communicators, when what they have queued is done. */
  #end(): void {
    const library = this.#library;
    if (library === undefined || this.#hasAborted) return;
    const since = performance.now();
    while (this.#stream?.isIdle() === false || !this.#board.isEven) {
      this.look();
      this.#board.nap(since);
    }
    for (const meetings of this.#meetings.values()) {
      const { handle } = meetings;
      if (handle === 0) continue;
      if (library.call('CommFinalize', handle)) this.#await(meetings);
      library.call('CommDestroy', handle);
      meetings.handle = 0;
    }
  }

  #of(group: LedgerGroup): Meetings {
    const name = nameOfGroup(group);
    const known = this.#meetings.get(name);
    if (known !== undefined) return known;
    const made = { group, handle: 0, turn: 0 };
    this.#meetings.set(name, made);
    return made;
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#give(error);
    }
  }

  /** All hear of an error, and it is thrown here. */
  #give(error: unknown): never {
    const isTold = error instanceof SinterError;
    const given = isTold
      ? error
      : collectiveError('nccl', `rank ${this.rank}: ${(error as Error).message}`, undefined, error);
    this.fail(given);
    throw given;
  }

  /** Ends what waits on streams for other ranks. */
  #abort(): void {
    const library = this.#library;
    if (this.#hasAborted || library === undefined) return;
    this.#hasAborted = true;
    for (const meetings of this.#meetings.values()) {
      const { handle } = meetings;
      meetings.handle = 0;
      try {
        if (handle !== 0) library.call('CommAbort', handle);
      } catch {
        // The first error is the one that counts.
      }
    }
  }

  /** Makes the communicator of a group; the first of it makes the id. Waits for all. */
  #make(meetings: Meetings, { count, place }: GroupPlace): void {
    const library = this.#library!;
    const name = `id ${meetings.group.ranks.join()}`;
    if (place === 0) this.#board.put(name, library.newId());
    const since = performance.now();
    let id = this.#board.value(name);
    while (id === undefined) {
      this.#pause(since);
      id = this.#board.value(name);
    }
    meetings.handle = library.begin(id, count, place);
    this.#await(meetings);
  }

  /** Waits until nothing is in progress. */
  #await({ handle }: Meetings): void {
    const library = this.#library!;
    const since = performance.now();
    for (let asked = 0; !library.isReady(handle); asked++) if (asked >= eager) this.#pause(since);
  }

  #pause(since: number): void {
    this.#board.look();
    // Work that was queued before goes on meanwhile.
    this.#stream?.isIdle();
    this.#board.nap(since);
  }

  #issue(
    { action, dtype, group }: CollectiveCall,
    { count, place }: GroupPlace,
    from: DeviceBlock,
    to: DeviceBlock,
    handle: number,
    stream: number,
  ): void {
    const isMoved = !('monoid' in action);
    const type = isMoved ? byteType : typeOf[dtype]!;
    const unit = isMoved ? 1 : dtypeBytes(dtype);
    const call = (name: NcclFunction, ...args: readonly number[]): void => {
      if (this.#library!.call(name, ...args, handle, stream))
        this.#await(this.#of({ channel: 'stream', ranks: group }));
    };
    const [source, target] = [from.address, to.address];
    switch (action.kind) {
      case 'allReduce':
        return call('AllReduce', source, target, from.bytes / unit, type, operationOf[action.monoid]);
      case 'reduceScatter':
        return call('ReduceScatter', source, target, to.bytes / unit, type, operationOf[action.monoid]);
      case 'allGather':
        return call('AllGather', source, target, from.bytes, type);
      case 'broadcast':
        return call('Broadcast', source, target, to.bytes, type, action.root);
      case 'allToAll': {
        const part = from.bytes / count;
        const all = Array.from({ length: count }, (_, other) => other);
        return this.#exchange(handle, stream, group, {
          sends: all.map((other) => [other, source + other * part, part]),
          takes: all.map((other) => [other, target + other * part, part]),
        });
      }
      case 'permute': {
        const sends = action.pairs.filter(([first]) => first === place);
        const takes = action.pairs.filter(([, second]) => second === place);
        return this.#exchange(handle, stream, group, {
          sends: sends.map(([, second]) => [second, source, from.bytes]),
          takes: takes.map(([first]) => [first, target, to.bytes]),
        });
      }
      default:
        return action satisfies never;
    }
  }

  /** Messages that go on together: to and from places of the group, each with address and bytes. */
  #exchange(
    handle: number,
    stream: number,
    ranks: readonly number[],
    {
      sends,
      takes,
    }: Readonly<Record<'sends' | 'takes', readonly (readonly [other: number, at: number, bytes: number])[]>>,
  ): void {
    if (sends.length + takes.length === 0) return;
    const library = this.#library!;
    library.call('GroupStart');
    for (const [other, at, bytes] of sends) library.call('Send', at, bytes, byteType, other, handle, stream);
    for (const [other, at, bytes] of takes) library.call('Recv', at, bytes, byteType, other, handle, stream);
    if (library.call('GroupEnd')) this.#await(this.#of({ channel: 'stream', ranks }));
  }
}
