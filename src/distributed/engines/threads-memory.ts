// The memory that the ranks of one process share, and what each of them may say in it: pieces of blocks, that it
// has read those of others, that it has ended, that something failed. Only numbers and bytes are shared; each number is
// written by one rank alone, but for the failure, which the first takes.

/** Bytes of a half: a rank writes one while others still read the other. */
export const pieceBytes: number = 2 ** 18;

const failureBytes = 4096;

/** What starts a rank: it can be sent to a worker thread. */
export interface ThreadSeat {
  readonly rank: number;
  readonly size: number;
  readonly control: SharedArrayBuffer;
  /** Two halves for each rank. */
  readonly pieces: readonly SharedArrayBuffer[];
}

/** The name by which a worker finds its seat in `workerData`. */
export const seatKey = 'sinterSeat';

/** The seat of a thread with this data, where a rank runs on it. */
export function ownSeat(data: unknown): ThreadSeat | undefined {
  return (Object(data) as { readonly [seatKey]?: ThreadSeat })[seatKey];
}

/** A world of `size` ranks: the seat of each. */
export function threadSeats(size: number): readonly ThreadSeat[] {
  const control = new SharedArrayBuffer(4 * (headerWords + 2 * size + 3 * size * size) + failureBytes);
  const pieces = Array.from({ length: size }, () => new SharedArrayBuffer(2 * (labelBytes + pieceBytes)));
  return Array.from({ length: size }, (_, rank) => ({ rank, size, control, pieces }));
}

const labelBytes = 512;
const headerWords = 4;
const [atFailure, atFailureLength] = [0, 1];

/** How far a failure is written. */
const [noFailure, isWriting, isWritten] = [0, 1, 2];

export class ThreadMemory {
  readonly size: number;
  readonly #words: Int32Array;
  readonly #failure: Uint8Array;
  /** By rank, then half. */
  readonly #labels: readonly (readonly Int32Array[])[];
  readonly #pieces: readonly (readonly Uint8Array[])[];

  constructor({ size, control, pieces }: Omit<ThreadSeat, 'rank'>) {
    this.size = size;
    const words = headerWords + 2 * size + 3 * size * size;
    this.#words = new Int32Array(control, 0, words);
    this.#failure = new Uint8Array(control, 4 * words);
    const halves = [0, labelBytes + pieceBytes];
    this.#labels = pieces.map((buffer) =>
      halves.map((start) => new Int32Array(buffer, start, labelBytes / 4)),
    );
    this.#pieces = pieces.map((buffer) =>
      halves.map((start) => new Uint8Array(buffer, start + labelBytes, pieceBytes)),
    );
  }

  piece(rank: number, half: number): Uint8Array {
    return this.#pieces[rank]![half]!;
  }

  /** What a rank says of a piece: the signature of the call, then the bytes of the piece, then the group. */
  label(rank: number, half: number): Int32Array {
    return this.#labels[rank]![half]!;
  }

  /**
   * Tells `to` of a piece of `from`; `count` is how many there were for it, with this one. It may tell of the next before
   * `to` has looked for this one, so even and odd counts have words of their own.
   */
  publish(from: number, to: number, count: number, half: number): void {
    Atomics.store(this.#words, this.#pair(count & 1, from, to), (count << 1) | half);
    this.#ring(to);
  }

  /** The half that holds the piece of `from` for `to` with this count, or undefined where it is not there yet. */
  published(from: number, to: number, count: number): number | undefined {
    const word = Atomics.load(this.#words, this.#pair(count & 1, from, to));
    return word >> 1 === (count << 1) >> 1 ? word & 1 : undefined;
  }

  /** Tells `from` that `to` needs the piece no more. */
  release(from: number, to: number, count: number): void {
    Atomics.store(this.#words, this.#pair(2, from, to), count);
    this.#ring(from);
  }

  isReleased(from: number, to: number, count: number): boolean {
    return ((Atomics.load(this.#words, this.#pair(2, from, to)) - count) | 0) >= 0;
  }

  /** A rank comes to no further collective. */
  leave(rank: number): void {
    Atomics.store(this.#words, headerWords + this.size + rank, 1);
    this.#ringAll();
  }

  hasLeft(rank: number): boolean {
    return Atomics.load(this.#words, headerWords + this.size + rank) === 1;
  }

  /** Ends every wait, with this message, unless something has failed before. */
  fail(message: string): void {
    if (Atomics.compareExchange(this.#words, atFailure, noFailure, isWriting) !== noFailure) return;
    const bytes = new TextEncoder().encode(message).subarray(0, failureBytes);
    this.#failure.set(bytes);
    Atomics.store(this.#words, atFailureLength, bytes.length);
    Atomics.store(this.#words, atFailure, isWritten);
    this.#ringAll();
  }

  /** The message of what has failed. */
  failure(): string | undefined {
    if (Atomics.load(this.#words, atFailure) !== isWritten) return undefined;
    const length = Atomics.load(this.#words, atFailureLength);
    return new TextDecoder().decode(this.#failure.slice(0, length));
  }

  /** How often a rank was rung for. Read it before a look at what is waited for. */
  bell(rank: number): number {
    return Atomics.load(this.#words, headerWords + rank);
  }

  /** Sleeps until the rank is rung for since `bell`, or so many milliseconds. */
  sleep(rank: number, bell: number, milliseconds: number): void {
    Atomics.wait(this.#words, headerWords + rank, bell, milliseconds);
  }

  #ring(rank: number): void {
    Atomics.add(this.#words, headerWords + rank, 1);
    Atomics.notify(this.#words, headerWords + rank);
  }

  #ringAll(): void {
    for (let rank = 0; rank < this.size; rank++) this.#ring(rank);
  }

  #pair(table: number, from: number, to: number): number {
    return headerWords + 2 * this.size + (table * this.size + from) * this.size + to;
  }
}
