// Shadow memory of the Loop interpreter, which finds data races: for each element, the invocation
// that last wrote and read it, and the epoch (span between two barriers) in which it did. Two
// accesses of one element, one of them a write, must come from one invocation or be ordered by a
// barrier; nothing orders accesses of different workgroups.

import type { DType } from '../../../src/ir/dtype.ts';

/** Elements that share a word; one where nothing is said. */
export const elementsPerWord: Partial<Record<DType, number>> = {
  f16: 2,
  bf16: 2,
  i16: 2,
  u16: 2,
  i8: 4,
  u8: 4,
  bool: 4,
};

/** Reports a race, e.g. `written by invocation 3 of workgroup 0 and read by invocation 1`. */
export type Report = (problem: string) => never;

/** The invocation that runs now. `epoch` grows at every barrier and workgroup and never repeats. */
export interface Now {
  group: number;
  item: number;
  epoch: number;
}

const noInvocation = -1;
const severalInvocations = -2;

export class Shadow {
  readonly #now: Now;
  readonly #report: Report;
  /** Elements that share a 32-bit word. */
  readonly #perWord: number;
  readonly #writer: Int32Array;
  readonly #writeGroup: Int32Array;
  readonly #writeEpoch: Int32Array;
  /** 1 where the last write was atomic. */
  readonly #writeAtomic: Uint8Array;
  readonly #reader: Int32Array;
  readonly #readGroup: Int32Array;
  readonly #readEpoch: Int32Array;
  /** The last writer of each word, and whether its store claimed the whole word. */
  readonly #words: Map<number, readonly [group: number, item: number, epoch: number, claimed: boolean]>;

  constructor(size: number, perWord: number, now: Now, report: Report) {
    const filled = (): Int32Array => new Int32Array(size).fill(noInvocation);
    this.#now = now;
    this.#report = report;
    this.#perWord = perWord;
    this.#writer = filled();
    this.#writeGroup = filled();
    this.#writeEpoch = filled();
    this.#writeAtomic = new Uint8Array(size);
    this.#reader = filled();
    this.#readGroup = filled();
    this.#readEpoch = filled();
    this.#words = new Map();
  }

  /** Forgets everything: workgroup memory at the start of a workgroup. */
  clear(): void {
    for (const array of [this.#writer, this.#writeGroup, this.#reader, this.#readGroup])
      array.fill(noInvocation);
    this.#words.clear();
  }

  isWritten(index: number): boolean {
    return this.#writer[index] !== noInvocation;
  }

  read(index: number): void {
    const { group, item, epoch } = this.#now;
    if (this.#clashes(this.#writeGroup[index]!, this.#writer[index]!, this.#writeEpoch[index]!))
      this.#report(
        `${this.#who(this.#writeGroup[index]!, this.#writer[index]!)} wrote it, and no barrier orders the two`,
      );
    if (this.#readEpoch[index] !== epoch) {
      this.#readEpoch[index] = epoch;
      this.#reader[index] = item;
    } else if (this.#reader[index] !== item) this.#reader[index] = severalInvocations;
    // Workgroups run one after another, so the first to read stands for all before the current one.
    if (this.#readGroup[index] === noInvocation) this.#readGroup[index] = group;
  }

  write(index: number, owned: boolean): void {
    const { group, item, epoch } = this.#now;
    if (this.#clashes(this.#writeGroup[index]!, this.#writer[index]!, this.#writeEpoch[index]!))
      this.#report(`${this.#who(this.#writeGroup[index]!, this.#writer[index]!)} wrote it too`);
    this.#afterReads(index);
    this.#writer[index] = item;
    this.#writeGroup[index] = group;
    this.#writeEpoch[index] = epoch;
    this.#writeAtomic[index] = 0;
    if (this.#perWord > 1) this.#claim(Math.floor(index / this.#perWord), owned);
  }

  /**
   * Atomic updates do not race with each other; a plain access of their result needs a barrier, or
   * the next kernel, between.
   */
  atomic(index: number): void {
    const { group, item, epoch } = this.#now;
    const shared = this.#clashes(this.#writeGroup[index]!, this.#writer[index]!, this.#writeEpoch[index]!);
    const plain = this.#writer[index] !== noInvocation && this.#writeAtomic[index] === 0;
    if (shared && plain)
      this.#report(`${this.#who(this.#writeGroup[index]!, this.#writer[index]!)} wrote it plainly`);
    this.#afterReads(index);
    // An atomic write after an invocation's own plain write does not hide the plain one: it still
    // races with the accesses of others.
    const own = plain && this.#writeGroup[index] === group && this.#writeEpoch[index] === epoch;
    this.#writeAtomic[index] = own ? 0 : 1;
    this.#writer[index] = shared ? severalInvocations : item;
    this.#writeGroup[index] = shared && this.#writeGroup[index] !== group ? severalInvocations : group;
    this.#writeEpoch[index] = epoch;
  }

  /** Reports a race if another invocation has read the element since the last barrier. */
  #afterReads(index: number): void {
    const { group, item, epoch } = this.#now;
    const readGroup = this.#readGroup[index]!;
    if (readGroup !== noInvocation && readGroup !== group) this.#report(`workgroup ${readGroup} read it`);
    const reader = this.#reader[index]!;
    if (reader !== noInvocation && this.#readEpoch[index] === epoch && reader !== item)
      this.#report(`${this.#who(group, reader)} read it, and no barrier orders the two`);
  }

  #claim(word: number, owned: boolean): void {
    const { group, item, epoch } = this.#now;
    const known = this.#words.get(word);
    if (known !== undefined && (owned || known[3]) && this.#clashes(known[0], known[1], known[2]))
      this.#report(
        `the store says it owns the word, but ${this.#who(known[0], known[1])} writes into the same word`,
      );
    if (known === undefined || !this.#clashes(known[0], known[1], known[2])) {
      const again = known?.[0] === group && known[1] === item && known[2] === epoch && known[3];
      this.#words.set(word, [group, item, epoch, owned || again === true]);
    } else this.#words.set(word, [severalInvocations, severalInvocations, epoch, false]);
  }

  #clashes(group: number, item: number, epoch: number): boolean {
    if (item === noInvocation) return false;
    const now = this.#now;
    return group !== now.group || (item !== now.item && epoch === now.epoch);
  }

  #who(group: number, item: number): string {
    if (item === severalInvocations) return 'several invocations';
    return group === this.#now.group ? `invocation ${item}` : `invocation ${item} of workgroup ${group}`;
  }
}
