// Sizes that differ between recordings of one function. A number of a recording (a size, an
// attribute, a constant) that is the same in all of them is that number; one that differs is known
// by its values, one for each recording. Two that have the same values in every recording are taken
// for one, which each later recording confirms before its numbers are used.

/** How a varying number follows from others, where no recording says it. */
interface Derivation {
  readonly by: 'product' | 'quotient';
  readonly left: Num;
  readonly right: Num;
}

/** A number that differs between recordings. */
export interface VaryingNumber {
  readonly values: readonly number[];
  /** Other ways in which it can be computed: all of them have to agree. */
  readonly derivations: Derivation[];
}

/** A number of a recording: the same in all of them, or not. */
export type Num = number | VaryingNumber;

/** The value of each varying number in one recording. */
export type SizeValues = Map<VaryingNumber, number>;

export function isVarying(num: unknown): num is VaryingNumber {
  return typeof num === 'object' && num !== null && 'derivations' in num;
}

/** The varying numbers of one function, each once. */
export class VaryingSizes {
  readonly #known = new Map<string, VaryingNumber>();
  /** Bodies of loops that are one but for numbers, by the texts of all. */
  readonly bodies: Map<string, unknown> = new Map();

  /** The number that has these values. */
  of(values: readonly number[]): Num {
    const first = values[0]!;
    if (values.every((value) => Object.is(value, first))) return first;
    const key = values.map((value) => (Object.is(value, -0) ? '-0' : String(value))).join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made: VaryingNumber = { values, derivations: [] };
    this.#known.set(key, made);
    return made;
  }

  product(left: Num, right: Num): Num {
    if (typeof left === 'number' && typeof right === 'number') return left * right;
    if (left === 1) return right;
    if (right === 1) return left;
    return this.#derived('product', left, right, (a, b) => a * b);
  }

  /** Undefined where it is no integer in some recording. */
  quotient(left: Num, right: Num): Num | undefined {
    if (right === 1) return left;
    if (left === right) return 1;
    const [a, b] = [valuesOf(left, right), valuesOf(right, left)];
    if (!a.every((value, i) => b[i] !== 0 && Number.isInteger(value / b[i]!))) return undefined;
    return this.#derived('quotient', left, right, (x, y) => x / y);
  }

  total(sizes: readonly Num[]): Num {
    return sizes.reduce((product: Num, size) => this.product(product, size), 1);
  }

  #derived(
    by: Derivation['by'],
    left: Num,
    right: Num,
    combine: (left: number, right: number) => number,
  ): Num {
    const [a, b] = [valuesOf(left, right), valuesOf(right, left)];
    const made = this.of(a.map((value, i) => combine(value, b[i]!)));
    if (isVarying(made)) {
      const isKnown = made.derivations.some(
        (other) => other.by === by && other.left === left && other.right === right,
      );
      if (!isKnown) made.derivations.push({ by, left, right });
    }
    return made;
  }

  /**
   * Adds to the values that a recording says those that follow from them. Undefined where two ways
   * to one number do not agree, or none leads to it.
   */
  complete(said: SizeValues, wanted: Iterable<VaryingNumber> = this.#known.values()): SizeValues | undefined {
    const values: SizeValues = new Map(said);
    const valueOf = (num: Num): number | undefined => (typeof num === 'number' ? num : find(num));
    const active = new Set<VaryingNumber>();
    const find = (num: VaryingNumber): number | undefined => {
      const known = values.get(num);
      if (known !== undefined || active.has(num)) return known;
      active.add(num);
      for (const { by, left, right } of num.derivations) {
        const [a, b] = [valueOf(left), valueOf(right)];
        if (a !== undefined && b !== undefined) values.set(num, by === 'product' ? a * b : a / b);
      }
      active.delete(num);
      return values.get(num);
    };
    for (const num of wanted) if (find(num) === undefined) return undefined;
    for (const [num, value] of values) {
      for (const { by, left, right } of num.derivations) {
        const [a, b] = [valueOf(left), valueOf(right)];
        if (a === undefined || b === undefined) continue;
        // What is no whole number here was divided only because it was one in all recordings.
        if (value !== (by === 'product' ? a * b : a / b) || !Number.isInteger(value)) return undefined;
      }
    }
    return values;
  }
}

function valuesOf(num: Num, other: Num): readonly number[] {
  if (typeof num !== 'number') return num.values;
  return typeof other === 'number' ? [num] : other.values.map(() => num);
}
