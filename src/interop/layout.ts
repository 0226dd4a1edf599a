// Layout: where the elements of a tensor lie in memory, in PyTorch's terms: sizes, strides, and the offset of
// the first element. Everything here is index arithmetic; no memory is touched. In: layouts. Out: layouts, or
// `undefined` if no strides can express the result.

import * as arg from '../ir/arguments.ts';
import { showValue, TensorError } from '../errors.ts';
import { checkList, normalizeAxis, sameShape, sizeOf, stridesOf, toShape } from '../ir/shape.ts';

/** Orders of axes in memory, the last one fastest; of images channels may come last. */
export type MemoryFormat = 'contiguous' | 'channelsLast' | 'channelsLast3d';

/** From where to where along an axis, as of arrays; a negative step goes backwards. */
export interface LayoutRange {
  readonly start?: number;
  readonly end?: number;
  readonly step?: number;
}

/** The axes of a format from the fastest on, for the rank that it is of. */
const orders: Readonly<Record<Exclude<MemoryFormat, 'contiguous'>, readonly number[]>> = {
  channelsLast: [1, 3, 2, 0],
  channelsLast3d: [1, 4, 3, 2, 0],
};

const aFormat: arg.Kind<MemoryFormat> = arg.oneOf('contiguous', 'channelsLast', 'channelsLast3d');

/** Sizes, strides and the place of the first element; all counted in elements. */
export class Layout {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;

  /** By default strides of C-order, from the first place on. */
  constructor(shape: readonly number[], strides?: readonly number[], offset: number = 0) {
    const sizes = toShape('Layout', shape);
    if (strides !== undefined) checkList('Layout', 'strides', strides);
    const steps = strides === undefined ? stridesOf(sizes) : Array.from(strides);
    if (steps.length !== sizes.length || !steps.every(Number.isSafeInteger)) {
      const problem = `expects an integer stride for each of the ${sizes.length} axes, got ${showValue(steps)}`;
      throw new TensorError('E_SHAPE', 'Layout', problem);
    }
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new TensorError(
        'E_VALUE',
        'Layout',
        `the offset must be an index from 0 on, got ${showValue(offset)}`,
      );
    this.shape = Object.freeze(sizes);
    this.strides = Object.freeze(steps);
    this.offset = offset;
    if (this.size > 0 && this.least < 0) {
      const problem = `${this.toString()} begins at place ${this.least}, before the memory`;
      throw new TensorError('E_INDEX', 'Layout', problem);
    }
  }

  /** Elements side by side in the order of a format. */
  static contiguous(shape: readonly number[], format: MemoryFormat = 'contiguous'): Layout {
    if (!aFormat.accepts(format)) aFormat.refuse('Layout.contiguous', 'format', format);
    if (format === 'contiguous') return new Layout(shape);
    const order = orders[format];
    const sizes = toShape('Layout.contiguous', shape);
    if (sizes.length !== order.length) {
      const problem = `${format} is of ${order.length} axes, got [${sizes.join(',')}]`;
      throw new TensorError('E_SHAPE', 'Layout.contiguous', problem);
    }
    const strides = sizes.map(() => 0);
    let stride = 1;
    for (const axis of order) {
      strides[axis] = stride;
      stride *= Math.max(1, sizes[axis]!);
    }
    return new Layout(sizes, strides);
  }

  get rank(): number {
    return this.shape.length;
  }

  /** Number of elements. */
  get size(): number {
    return sizeOf(this.shape);
  }

  /** The lowest place that an element has. */
  get least(): number {
    return this.#reach(-1);
  }

  /** The highest place that an element has; below `least` where there are no elements. */
  get greatest(): number {
    return this.size === 0 ? this.least - 1 : this.#reach(1);
  }

  /** Places that memory needs to have, from 0 on. */
  get extent(): number {
    return this.size === 0 ? 0 : this.greatest + 1;
  }

  #reach(sign: 1 | -1): number {
    return this.shape.reduce((place, size, axis) => {
      const far = Math.max(0, size - 1) * this.strides[axis]!;
      return far * sign > 0 ? place + far : place;
    }, this.offset);
  }

  /** Whether elements lie side by side in the order of a format; axes of one index do not count. */
  isContiguous(format: MemoryFormat = 'contiguous'): boolean {
    if (!aFormat.accepts(format)) aFormat.refuse('isContiguous', 'format', format);
    if (this.size === 0) return true;
    const order =
      format === 'contiguous' ? this.shape.map((_, axis) => this.rank - 1 - axis) : orders[format];
    if (order.length !== this.rank) return false;
    let expected = 1;
    return order.every((axis) => {
      const size = this.shape[axis]!;
      if (size === 1) return true;
      const isNext = this.strides[axis] === expected;
      expected *= size;
      return isNext;
    });
  }

  /** The first format that the elements lie in, if any. */
  get memoryFormat(): MemoryFormat | undefined {
    return (['contiguous', 'channelsLast', 'channelsLast3d'] as const).find((format) =>
      this.isContiguous(format),
    );
  }

  /** Whether the elements fill a range of memory, each place once, in whatever order of axes. */
  get isDense(): boolean {
    if (this.size === 0) return true;
    return !this.hasOverlap && this.greatest - this.least + 1 === this.size;
  }

  /** Whether two elements lie at one place. */
  get hasOverlap(): boolean {
    return this.size > 1 && repeats(this.shape, this.strides);
  }

  /** Whether an element of another layout of the same memory lies at the place of one of these. */
  overlaps(other: Layout): boolean {
    if (!(other instanceof Layout))
      throw new TensorError('E_VALUE', 'overlaps', `expects a Layout, got ${showValue(other)}`);
    return this.size > 0 && other.size > 0 && meets(this, other);
  }

  /** The place of the element at an index. */
  placeOf(index: readonly number[]): number {
    checkList('placeOf', 'an index', index);
    const at = Array.from(index);
    const isInside = at.every((i, axis) => Number.isInteger(i) && i >= 0 && i < (this.shape[axis] ?? 0));
    if (at.length !== this.rank || !isInside)
      throw new TensorError(
        'E_INDEX',
        'placeOf',
        `no element of [${this.shape.join(',')}] is at ${showValue(at)}`,
      );
    return at.reduce((place, i, axis) => place + i * this.strides[axis]!, this.offset);
  }

  /** The axes in another order. */
  permute(order: readonly number[]): Layout {
    checkList('permute', 'axes', order);
    const axes = Array.from(order, (axis) => normalizeAxis('permute', axis, this.rank));
    if (axes.length !== this.rank || new Set(axes).size !== this.rank) {
      const problem = `expects each of the ${this.rank} axes once, got ${showValue(axes)}`;
      throw new TensorError('E_AXIS', 'permute', problem);
    }
    return this.#of(axes.map((axis) => [this.shape[axis]!, this.strides[axis]!]));
  }

  /** Two axes exchanged. */
  transpose(one: number, other: number): Layout {
    const [a, b] = [one, other].map((axis) => normalizeAxis('transpose', axis, this.rank)) as [
      number,
      number,
    ];
    const order = this.shape.map((_, axis) => (axis === a ? b : axis === b ? a : axis));
    return this.permute(order);
  }

  /** Axes of one index spread over more, and new ones in front: by strides of 0. */
  expand(shape: readonly number[]): Layout {
    const sizes = toShape('expand', shape);
    const missing = sizes.length - this.rank;
    const fits = sizes.every((size, i) => {
      const own = this.shape[i - missing];
      return own === undefined || own === 1 || own === size;
    });
    if (missing < 0 || !fits) {
      const problem = `[${this.shape.join(',')}] does not spread over [${sizes.join(',')}]`;
      throw new TensorError('E_SHAPE', 'expand', problem);
    }
    return this.#of(
      sizes.map((size, i) => {
        const own = this.shape[i - missing];
        return [size, own === size ? this.strides[i - missing]! : 0];
      }),
    );
  }

  /** Some indices of an axis, as `Array.slice` counts, with a step. */
  slice(axis: number, range: LayoutRange): Layout {
    const at = normalizeAxis('slice', axis, this.rank);
    const { step = 1 } = range;
    if (!Number.isSafeInteger(step) || step === 0)
      throw new TensorError(
        'E_VALUE',
        'slice',
        `the step must be an integer other than 0, got ${showValue(step)}`,
      );
    const size = this.shape[at]!;
    const [low, high] = step > 0 ? [0, size] : [-1, size - 1];
    const bound = (given: number | undefined, otherwise: number): number => {
      if (given === undefined) return otherwise;
      if (!Number.isSafeInteger(given))
        throw new TensorError('E_VALUE', 'slice', `bounds must be integers, got ${showValue(given)}`);
      return Math.min(high, Math.max(low, given < 0 ? given + size : given));
    };
    const start = bound(range.start, step > 0 ? low : high);
    const end = bound(range.end, step > 0 ? high : low);
    const length = Math.max(0, Math.ceil((end - start) / step));
    const pairs = this.#pairs().with(at, [length, this.strides[at]! * step]);
    return this.#of(pairs, length === 0 ? 0 : start * this.strides[at]!);
  }

  /** One index of an axis, which goes. */
  select(axis: number, index: number): Layout {
    const at = normalizeAxis('select', axis, this.rank);
    const size = this.shape[at]!;
    const from = index < 0 ? index + size : index;
    if (!Number.isInteger(from) || from < 0 || from >= size) {
      const problem = `index ${showValue(index)} leaves axis ${at} of [${this.shape.join(',')}]`;
      throw new TensorError('E_INDEX', 'select', problem);
    }
    return this.#of(this.#pairs().toSpliced(at, 1), from * this.strides[at]!);
  }

  /** An axis backwards: by a negative stride. */
  flip(axis: number): Layout {
    return this.slice(axis, { step: -1 });
  }

  /**
   * The same elements in the same order under another shape; undefined where no strides say that,
   * and a copy has to be made.
   */
  reshape(shape: readonly number[]): Layout | undefined {
    const sizes = toShape('reshape', shape);
    if (sizeOf(sizes) !== this.size) {
      const problem = `[${this.shape.join(',')}] has ${this.size} elements, [${sizes.join(',')}] ${sizeOf(sizes)}`;
      throw new TensorError('E_SHAPE', 'reshape', problem);
    }
    if (this.size === 0) return new Layout(sizes, undefined, this.offset);
    // From the last axis on: runs of axes that are one axis in memory, cut up anew (as PyTorch's
    // computeStride). Axes of one index have no say.
    const own = this.#pairs().filter(([size]) => size > 1);
    const strides = new Array<number>(sizes.length).fill(1);
    let next = sizes.length - 1;
    let [run, base] = [1, own.at(-1)?.[1] ?? 1];
    for (let axis = own.length - 1; axis >= 0; axis--) {
      run *= own[axis]![0];
      const before = own[axis - 1];
      if (before !== undefined && before[1] === run * base) continue;
      let covered = 1;
      while (next >= 0 && (covered < run || sizes[next] === 1)) {
        strides[next] = covered * base;
        covered *= sizes[next]!;
        next -= 1;
      }
      if (covered !== run) return undefined;
      [run, base] = [1, before?.[1] ?? 1];
    }
    return new Layout(sizes, strides, this.offset);
  }

  /** Any strides over the same memory. */
  asStrided(shape: readonly number[], strides: readonly number[], offset: number = this.offset): Layout {
    return new Layout(shape, strides, offset);
  }

  /** Throws E_INDEX unless all elements lie within the first `length` places. */
  checkWithin(length: number): void {
    if (this.extent <= length) return;
    const problem = `${this.toString()} reaches place ${this.greatest}: the memory has ${length}`;
    throw new TensorError('E_INDEX', 'Layout', problem);
  }

  equals(other: Layout): boolean {
    const isLayout = other instanceof Layout;
    return (
      isLayout &&
      sameShape(this.shape, other.shape) &&
      this.offset === other.offset &&
      this.strides.every((stride, axis) => stride === other.strides[axis])
    );
  }

  /** `[2,3] by [3,1] from 0`. */
  toString(): string {
    return `[${this.shape.join(',')}] by [${this.strides.join(',')}] from ${this.offset}`;
  }

  #pairs(): (readonly [size: number, stride: number])[] {
    return this.shape.map((size, axis) => [size, this.strides[axis]!] as const);
  }

  #of(pairs: readonly (readonly [size: number, stride: number])[], further = 0): Layout {
    return new Layout(
      pairs.map(([size]) => size),
      pairs.map(([, stride]) => stride),
      this.offset + further,
    );
  }
}

// Whether sums of multiples meet: two elements of a layout at one place, or elements of two layouts.
// Both ask whether Σ xᵢ·sᵢ = t has a solution with each xᵢ from 0 to nᵢ − 1, a bounded knapsack. It
// is searched from the largest stride on, where what the smaller ones reach leaves few multiples
// open, and the greatest common divisor of the rest none at all in most cases.

interface Term {
  readonly stride: number;
  readonly count: number;
}

function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

/** Whether Σ xᵢ·sᵢ = target, with 0 ≤ xᵢ < countᵢ. */
function reaches(given: readonly Term[], target: number): boolean {
  let wanted = target;
  const terms: Term[] = [];
  for (const { stride, count } of given) {
    if (count <= 1 || stride === 0) continue;
    // A negative stride is counted from its other end.
    if (stride < 0) wanted -= stride * (count - 1);
    terms.push({ stride: Math.abs(stride), count });
  }
  terms.sort((a, b) => b.stride - a.stride);
  // What the terms from i on reach at most, and what all of it is a multiple of.
  const rest = new Array<number>(terms.length + 1).fill(0);
  const unit = new Array<number>(terms.length + 1).fill(0);
  for (let i = terms.length - 1; i >= 0; i--) {
    const { stride, count } = terms[i]!;
    rest[i] = rest[i + 1]! + stride * (count - 1);
    unit[i] = gcd(stride, unit[i + 1]!);
  }
  const failed = terms.map(() => new Set<number>());
  const search = (i: number, left: number): boolean => {
    if (left < 0 || left > rest[i]!) return false;
    if (i === terms.length) return left === 0;
    if (left % unit[i]! !== 0 || failed[i]!.has(left)) return false;
    const { stride, count } = terms[i]!;
    const most = Math.min(count - 1, Math.floor(left / stride));
    const least = Math.max(0, Math.ceil((left - rest[i + 1]!) / stride));
    for (let x = most; x >= least; x--) if (search(i + 1, left - x * stride)) return true;
    failed[i]!.add(left);
    return false;
  };
  return search(0, wanted);
}

/** Whether two indices have one place: whether some difference of indices but none adds up to 0. */
function repeats(shape: readonly number[], strides: readonly number[]): boolean {
  return shape.some((size, first) => {
    if (size <= 1) return false;
    // The first axis that differs does so by 1 to size − 1, those after it either way.
    const terms: Term[] = [{ stride: strides[first]!, count: size - 1 }];
    let target = -strides[first]!;
    if (strides[first] === 0) return true;
    shape.forEach((other, axis) => {
      if (axis <= first) return;
      terms.push({ stride: strides[axis]!, count: 2 * other - 1 });
      target += strides[axis]! * (other - 1);
    });
    return reaches(terms, target);
  });
}

interface Places {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Whether an element of one layout and an element of another have one place. */
function meets(one: Places, other: Places): boolean {
  const terms = (of: Places, sign: 1 | -1): Term[] =>
    of.shape.map((count, axis) => ({ stride: sign * of.strides[axis]!, count }));
  return reaches([...terms(one, 1), ...terms(other, -1)], other.offset - one.offset);
}
