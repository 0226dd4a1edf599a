// Sorting and searching in the reference interpreter: exact comparisons, and one step of a radix
// sort as its definition says.

import { linesAlong } from './fold.ts';
import type { Attrs } from '../ops.ts';
import { emptyData, type HostArray, type Scalar } from '../value.ts';

/** Negative where `a` comes before `b`; NaN after everything, −0 level with 0. */
function compare(a: Scalar, b: Scalar): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return a === b ? 0 : Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/** The i32 positions of each line in order; equal elements keep theirs in both directions. */
export function argSort(x: HostArray, { axis, descending }: Attrs<'argSort'>): HostArray {
  const { starts, steps } = linesAlong(x.shape, [axis]);
  const data = emptyData('i32', x.data.length);
  const sign = descending ? -1 : 1;
  for (const start of starts) {
    const line = Array.from(steps, (step) => x.data[start + step]!);
    const order = Int32Array.from(line, (_, i) => i).sort(
      (i, j) => sign * compare(line[i]!, line[j]!) || i - j,
    );
    for (let i = 0; i < steps.length; i++) data[start + steps[i]!] = order[i]!;
  }
  return { dtype: 'i32', shape: x.shape, data };
}

/**
 * Of each block of a line: how often each digit occurs, then each key's rank among the block's keys
 * of its digit.
 */
export function radixRank(keys: HostArray, { shift, digits, block }: Attrs<'radixRank'>): HostArray {
  const [lines, length] = keys.shape as [number, number];
  const blocks = Math.ceil(length / block);
  const width = digits + block;
  const data = emptyData('i32', lines * blocks * width);
  for (let line = 0; line < lines; line++) {
    for (let i = 0; i < length; i++) {
      const row = (line * blocks + Math.floor(i / block)) * width;
      const digit = ((keys.data[line * length + i] as number) >>> shift) & (digits - 1);
      data[row + digits + (i % block)] = data[row + digit]!;
      data[row + digit] = (data[row + digit] as number) + 1;
    }
  }
  return { dtype: 'i32', shape: [lines, blocks, width], data };
}

/** Whether an element comes before another in the order in which NaN is last. */
function isBefore(a: number | bigint, b: number | bigint): boolean {
  return a < b || (a === a && b !== b);
}

/**
 * How many boundaries lie below each value, or, from the right, not above it; NaN is above all. The probes are those of the kernels, so that boundaries
 * in no order give the same answers: halving reaches, each taken when the boundary before it is
 * still below.
 */
export function searchSorted(boundaries: HostArray, values: HostArray, right: boolean): HostArray {
  const [size, count] = [boundaries.shape.at(-1)!, values.shape.at(-1)!];
  const data = emptyData('i32', values.data.length);
  for (let i = 0; i < data.length; i++) {
    const line = Math.floor(i / count) * size;
    const value = values.data[i]!;
    let place = 0;
    for (let reach = 2 ** Math.floor(Math.log2(Math.max(1, size))); reach >= 1; reach /= 2) {
      if (place + reach > size) continue;
      const boundary = boundaries.data[line + place + reach - 1]!;
      const isPassed = right ? !isBefore(value, boundary) : isBefore(boundary, value);
      if (isPassed) place += reach;
    }
    data[i] = place;
  }
  return { dtype: 'i32', shape: values.shape, data };
}
