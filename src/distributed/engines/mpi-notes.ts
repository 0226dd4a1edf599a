// What ranks of MPI tell each other beside their collectives: that one waits, and in what; that one has failed, or comes to no further
// collective. Notes are short messages of their own communicator, that only those read who have waited for a while.

import type { MpiHandle, MpiLibrary } from './mpi-library.ts';

export type Note =
  /** It waits in this call, the `turn`-th of the group with this name. */
  | { readonly kind: 'waits'; readonly group: string; readonly turn: number; readonly call: string }
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'left' };

const noteBytes = 1024;
const tag = 1;

export class Notes {
  readonly #library: MpiLibrary;
  readonly #channel: MpiHandle;
  readonly #last = new Map<number, Note>();
  /** What is on its way: the memory stays. */
  readonly #sent: { readonly bytes: Uint8Array; readonly request: BigInt64Array }[] = [];

  constructor(library: MpiLibrary, channel: MpiHandle) {
    this.#library = library;
    this.#channel = channel;
  }

  send(ranks: readonly number[], note: Note): void {
    const { call, types } = this.#library;
    const text = new TextEncoder().encode(JSON.stringify(note));
    // A text that is too long would be no JSON any more.
    const short: Note = note.kind === 'failed' ? { ...note, problem: note.problem.slice(0, 200) } : note;
    const fits = text.length <= noteBytes ? text : new TextEncoder().encode(JSON.stringify(short));
    const bytes = new Uint8Array(noteBytes).fill(0x20);
    bytes.set(fits.subarray(0, noteBytes));
    for (const rank of ranks) {
      const request = new BigInt64Array(new ArrayBuffer(8));
      call('Isend', bytes, noteBytes, types.byte, rank, tag, this.#channel, request);
      this.#sent.push({ bytes, request });
    }
  }

  /** The last note of a rank, of those that have come by now. */
  of(rank: number): Note | undefined {
    const { call, types, ignoredStatus } = this.#library;
    const flag = new Int32Array(1);
    for (;;) {
      call('Iprobe', rank, tag, this.#channel, flag, ignoredStatus);
      if (flag[0] === 0) return this.#last.get(rank);
      const bytes = new Uint8Array(noteBytes);
      call('Recv', bytes, noteBytes, types.byte, rank, tag, this.#channel, ignoredStatus);
      const note = read(bytes);
      if (note !== undefined) this.#last.set(rank, note);
    }
  }
}

function read(bytes: Uint8Array): Note | undefined {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Note;
  } catch {
    // The name of a group may be long: such a note says that a rank is there, and no more.
    return undefined;
  }
}
