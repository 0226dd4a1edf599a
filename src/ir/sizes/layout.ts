// The layout of a value whose sizes are known only at run time, in memory for its largest sizes. Each axis
// has a capacity, and its elements with an index below the true size are valid. An axis that was merged from
// several keeps the list of these axes, because its valid elements are then not contiguous.

import { isVarying, type Num, type VaryingSizes } from './size.ts';

/** A part of an axis: of `capacity` elements the first `size` count. Fixed sizes are their capacities. */
export interface Factor {
  readonly size: Num;
  readonly capacity: number;
}

export interface SizeAxis {
  /** From the outermost to the innermost; none for an axis of one element. */
  readonly factors: readonly Factor[];
  /** All elements along the axis are the same, those that do not count as well. */
  readonly uniform: boolean;
}

/** An axis of a fixed size. */
export function fixedAxis(size: number): SizeAxis {
  return { factors: size === 1 ? [] : [{ size, capacity: size }], uniform: false };
}

/** An axis of which the first elements count. */
export function prefixAxis(size: Num, capacity: number, uniform = false): SizeAxis {
  return isVarying(size) ? { factors: [{ size, capacity }], uniform } : { ...fixedAxis(size), uniform };
}

export function capacityOf({ factors }: SizeAxis): number {
  return factors.reduce((product, { capacity }) => product * capacity, 1);
}

/** Whether every element counts. */
export function isExact({ factors }: SizeAxis): boolean {
  return factors.every(({ size }) => !isVarying(size));
}

export function sizeOfAxis({ factors }: SizeAxis, sizes: VaryingSizes): Num {
  return sizes.total(factors.map(({ size }) => size));
}

/** The factors with fixed ones merged into what is around them: one where the elements that count lie together. */
export function merged({ factors }: SizeAxis, sizes: VaryingSizes): readonly Factor[] {
  const out: Factor[] = [];
  for (const factor of factors) {
    const before = out.at(-1);
    if (before === undefined || isVarying(factor.size)) out.push(factor);
    else {
      out[out.length - 1] = {
        size: sizes.product(before.size, factor.size),
        capacity: before.capacity * factor.capacity,
      };
    }
  }
  return out;
}

export function sameFactors(a: readonly Factor[], b: readonly Factor[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ size, capacity }, i) => size === b[i]!.size && capacity === b[i]!.capacity)
  );
}
