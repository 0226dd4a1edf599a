// A board by which ranks tell each other what they do, beside what moves their tensors: ids of communicators, which collectives they have
// come to, that one has failed or ended. Rank 0 keeps it (ledger.ts), on a thread, over TCP (board-thread.ts). A rank reads what has
// come without waiting for its event loop.

import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  MessageChannel,
  receiveMessageOnPort,
  Worker,
  type MessagePort,
  type WorkerOptions,
} from 'node:worker_threads';
import { napMs } from '../../runtime/communicator.ts';
import { collectiveError } from '../call.ts';
import type { BoardData, BoardSeat, BoardEvent, BoardRequest } from './board-thread.ts';
import { nameOfGroup, type LedgerGroup, type LedgerNote } from './ledger.ts';

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Milliseconds that a rank sleeps between two looks at least, and that it waits for the last words of rank 0. */
const [shortestNap, grace] = [0.1, 3000];

/** Notes that are sent at once. */
const mostNotes = 64;

/** A turn that was begun, and that others are not known to have come to. */
interface Open {
  readonly group: LedgerGroup;
  readonly turn: number;
  readonly since: number;
  readonly words: string;
  isLate: boolean;
}

function startThread(options: WorkerOptions): Worker {
  // The module that the thread runs: a source where this one is.
  const module = new URL(`./board-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  // Options and environment of the process are not inherited: they may load modules into every thread.
  if (!module.pathname.endsWith('.ts')) return new Worker(module, { ...options, execArgv: [], env: {} });
  // Threads of Node 20 read no TypeScript.
  const loader = createRequire(import.meta.url).resolve('tsx/cjs/api');
  const [api, file] = [JSON.stringify(loader), JSON.stringify(fileURLToPath(module))];
  return new Worker(`require(${api}).require(${file}, ${file});`, { ...options, eval: true });
}

export class Board {
  readonly #channel: MessagePort;
  readonly #timeout: number;
  /** Whether this rank keeps it, which is rank 0. */
  readonly #isKept: boolean;
  readonly #values = new Map<string, string>();
  /** Oldest first. */
  readonly #open = new Map<string, Open>();
  /** Blocks of turns between hosts. */
  readonly #blocks = new Map<string, readonly string[]>();
  #notes: LedgerNote[] = [];
  #failure: { readonly problem: string; readonly hint?: string } | undefined;
  #port: number | undefined;
  #isClosed = false;

  private constructor(channel: MessagePort, { rank, timeout }: BoardSeat) {
    this.#channel = channel;
    this.#timeout = timeout;
    this.#isKept = rank === 0;
  }

  /** Joins the board of rank 0, or makes it. Rejects with E_COLLECTIVE where it is not there in time. */
  static async open(seat: BoardSeat): Promise<Board> {
    const { port1, port2 } = new MessageChannel();
    const workerData: BoardData = { seat, channel: port2 };
    const worker = startThread({ workerData, transferList: [port2] });
    const board = new Board(port1, seat);
    worker.on(
      'error',
      ({ message }) => (board.#failure ??= { problem: `the thread of its board: ${message}` }),
    );
    while (board.#port === undefined) {
      board.read();
      if (board.#failure !== undefined) throw board.error();
      await sleep(1);
    }
    worker.unref();
    port1.unref();
    return board;
  }

  /** The port at which rank 0 listens. */
  get port(): number {
    return this.#port!;
  }

  get failure(): string | undefined {
    return this.#failure?.problem;
  }

  /** Whether all ranks have come to all turns of this one. */
  get isEven(): boolean {
    return this.#open.size === 0;
  }

  error(): Error {
    return collectiveError('nccl', this.#failure!.problem, this.#failure!.hint);
  }

  /** A value that a rank has put there. */
  value(name: string): string | undefined {
    return this.#values.get(name);
  }

  put(name: string, value: string): void {
    this.#tell({ kind: 'value', name, value });
    this.flush();
  }

  /** This rank calls a collective. */
  call(group: LedgerGroup, turn: number, words: string, block?: Uint8Array): void {
    const note = { kind: 'call', group, turn, words } as const;
    this.#tell(block === undefined ? note : { ...note, block: Buffer.from(block).toString('base64') });
    const open = { group, turn, words, since: performance.now(), isLate: false };
    this.#open.set(`${nameOfGroup(group)} ${turn}`, open);
  }

  /** The blocks of a turn between hosts; waits for them. Throws E_COLLECTIVE. */
  blocksOf(group: LedgerGroup, turn: number): readonly Uint8Array[] {
    const key = `${nameOfGroup(group)} ${turn}`;
    const since = performance.now();
    for (;;) {
      this.look();
      const found = this.#blocks.get(key);
      if (found === undefined) {
        this.nap(since);
        continue;
      }
      this.#blocks.delete(key);
      return found.map((text) => new Uint8Array(Buffer.from(text, 'base64')));
    }
  }

  /** All hear that this rank has failed. */
  fail(problem: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = { problem };
    this.#tell({ kind: 'failed', problem });
    this.flush();
  }

  /** Reads what has come, and tells rank 0 of turns that take too long. Throws E_COLLECTIVE where a rank has failed or is late. */
  look(): void {
    this.flush();
    this.read();
    const [oldest] = this.#open.values();
    if (this.#failure === undefined && oldest !== undefined) this.#watch(oldest);
    if (this.#failure !== undefined) throw this.error();
  }

  /** Sleeps between two looks of a wait that began then. */
  nap(since: number): void {
    Atomics.wait(nap, 0, 0, napMs(since, shortestNap));
  }

  /** Sends what was noted. */
  flush(): void {
    if (this.#notes.length === 0 || this.#isClosed) return;
    const notes = this.#notes;
    this.#notes = [];
    this.#post(notes);
  }

  /** Reads what has come. */
  read(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#channel) as { readonly message: BoardEvent } | undefined;
      if (received === undefined) return;
      this.#take(received.message);
    }
  }

  /** Says that this rank comes to no further collective, and waits until that is sent; rank 0 until all others have said so. */
  leave(): void {
    if (this.#isClosed) return;
    this.#tell({ kind: 'left' });
    this.flush();
    this.#post('close');
    const since = performance.now();
    const limit = this.#isKept && this.#failure === undefined ? this.#timeout : grace;
    while (!this.#isClosed && performance.now() - since < limit) {
      this.read();
      this.nap(since);
    }
    this.#isClosed = true;
    this.#channel.close();
  }

  #post(request: BoardRequest): void {
    this.#channel.postMessage(request, []);
  }

  #tell(note: LedgerNote): void {
    if (this.#notes.length === 0) queueMicrotask(() => this.flush());
    this.#notes.push(note);
    if (this.#notes.length >= mostNotes) this.flush();
  }

  #take(event: BoardEvent): void {
    switch (event.kind) {
      case 'value':
        this.#values.set(event.name, event.value);
        return;
      case 'met': {
        const key = `${nameOfGroup(event.group)} ${event.turn}`;
        this.#open.delete(key);
        if (event.blocks !== undefined) this.#blocks.set(key, event.blocks);
        return;
      }
      case 'failed':
        this.#failure ??= event;
        return;
      case 'joined':
        this.#port = event.port;
        return;
      case 'closed':
        this.#isClosed = true;
        return;
      default:
        event satisfies never;
    }
  }

  #watch(oldest: Open): void {
    const { group, turn, since, words } = oldest;
    const waited = performance.now() - since;
    if (waited < this.#timeout) return;
    if (!oldest.isLate) {
      oldest.isLate = true;
      this.#tell({ kind: 'late', group, turn, timeout: this.#timeout });
      this.flush();
    } else if (waited > this.#timeout + grace)
      this.fail(`rank 0 does not say who has not come to ${words}, within ${this.#timeout / 1000} s`);
  }
}
