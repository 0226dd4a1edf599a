// Attention problems for comparing the fused kernels with the unfused form: inputs of a kind, a mask, a way of writing it, and
// how far apart two correct results may lie.

import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import type { DType } from '../../src/ir/dtype.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { recorded } from '../support/recorded.ts';
import { wordsFrom } from '../support/random/values.ts';

/** Numbers for one input from a seed, by flat place and by the place along the last axis. */
export type Fill = (next: () => number, column: number) => number;

/** [-2, 2) in steps that f32 holds. */
export const tame: Fill = (next) => next() * 4 - 2;

/**
 * Small whole numbers behind a first coordinate of ±100: scores of q and k so made are whole numbers around ±1e4, exact in
 * f32 in whatever order they are summed, so that softmax of them is as well conditioned as of small ones.
 */
export const steep: Fill = (next, column) =>
  column === 0 ? (next() < 0.5 ? -100 : 100) : Math.floor(next() * 5) - 2;

/** An input of the given shape. */
export function filled(
  shape: readonly number[],
  fill: Fill,
  seed: number,
  dtype: 'f32' | 'f16' | 'bf16' = 'f32',
): HostArray {
  const words = wordsFrom(seed);
  const next = (): number => (words() >>> 8) * 2 ** -24;
  const width = shape.at(-1)!;
  return hostArray(
    dtype,
    shape,
    Array.from({ length: sizeOf(shape) }, (_, i) => fill(next, i % width)),
  );
}

/** A copy with some elements replaced. */
export function poisoned({ dtype, shape, data }: HostArray, at: Readonly<Record<number, number>>): HostArray {
  const values = Array.from(data as Float32Array);
  for (const [place, value] of Object.entries(at)) values[Number(place)] = value;
  return hostArray(dtype, shape, values);
}

/** [-½, ½). */
export const gentle: Fill = (next) => next() - 0.5;

export const least = -3.4028234663852886e38;

/** Row 3 of every eight sees nothing, the others two keys in three. */
function sees(query: number, key: number): boolean {
  return query % 8 !== 3 && (query + key) % 3 !== 0;
}

/** A mask of [queries, keys]: what a query sees is true or 0; what it does not is false, −∞ or the least finite number. */
export function maskOf(kind: 'bool' | 'infinite' | 'least', queries: number, keys: number): HostArray {
  const visible = Array.from({ length: queries * keys }, (_, i) => sees(Math.floor(i / keys), i % keys));
  if (kind === 'bool') return hostArray('bool', [queries, keys], visible.map(Number));
  const hidden = kind === 'least' ? least : -Infinity;
  return hostArray(
    'f32',
    [queries, keys],
    visible.map((seen) => (seen ? 0 : hidden)),
  );
}

/** Attention as a function of q, k, v and whatever else it takes. */
export type Attend = (q: Tensor, k: Tensor, v: Tensor, ...rest: Tensor[]) => Tensor;

export interface Problem {
  /** q, k, v, and whatever else `attend` takes. */
  readonly inputs: readonly HostArray[];
  readonly attend: Attend;
  /** Scores are multiplied by this; 1/√d by default. */
  readonly scale?: number;
  readonly gradient?: boolean;
}

export interface AttentionRun {
  /** Gives the result and, with a gradient, those of q, k and v. */
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
  /** For each output the magnitude of its columns, see `magnitudes`. */
  readonly magnitudes: readonly (readonly number[])[];
}

/** The problem as a graph with inputs. Gradients are those of Σ u · attention, for a u of small numbers. */
export function attentionRun({ inputs, attend, scale, gradient = true }: Problem): AttentionRun {
  const tensors = inputs.map(({ shape, dtype }) => sn.zeros(shape as number[], { dtype }));
  const [q, k, v, ...rest] = tensors as [Tensor, Tensor, Tensor, ...Tensor[]];
  const like = attend(q, k, v, ...rest);
  const upstream = filled(like.shape, tame, 99, like.dtype as 'f32');
  const run = (given: readonly Tensor[], u: Tensor): unknown => {
    const [x, y, z, ...others] = given as [Tensor, Tensor, Tensor, ...Tensor[]];
    if (!gradient) return attend(x, y, z, ...others);
    const { value, vjp } = sn.vjp((a: Tensor, b: Tensor, c: Tensor) => attend(a, b, c, ...others), x, y, z);
    return [value, ...vjp(u)];
  };
  const given = [...inputs, upstream];
  const { graph, leaves } = recorded(run, [tensors, sn.zeros(like.shape, { dtype: like.dtype })]);
  return {
    graph,
    inputs: leaves.map((leaf) => given[leaf]!),
    magnitudes: magnitudes(inputs, upstream, scale ?? 1 / Math.sqrt(q.shape.at(-1)!)),
  };
}

/**
 * How large the terms are that each column of a result is a sum of, so that what cancels does not count as exact. The result
 * mixes columns of v, and dv those of u; with weights of at most 1, dq and dk mix columns of k and q, times a score's gradient,
 * which is a product of u and v. Sums over many queries have errors that grow as the root of their number.
 */
export function magnitudes(inputs: readonly HostArray[], upstream: HostArray, scale: number): number[][] {
  const [q, k, v] = inputs as [HostArray, HostArray, HostArray];
  const rows = Math.sqrt(q.shape.at(-2)!);
  const slope = scale * largest(upstream) * largest(v) * Math.sqrt(v.shape.at(-1)!);
  const over = (x: HostArray, factor: number): number[] => columnsOf(x).map((most) => most * factor);
  return [over(v, 1), over(k, slope), over(q, slope * rows), over(upstream, rows)];
}

function largest({ data }: HostArray): number {
  return Math.max(...columnsOf({ dtype: 'f32', shape: [data.length, 1], data }));
}

/** The largest finite magnitude in each column of the last axis. */
function columnsOf({ shape, data }: HostArray): number[] {
  const columns = Array.from({ length: shape.at(-1)! }, () => 1e-30);
  (data as Float32Array).forEach((x, i) => {
    const column = i % columns.length;
    if (Number.isFinite(x)) columns[column] = Math.max(columns[column]!, Math.abs(x));
  });
  return columns;
}

/** Throws unless each element is within `tolerance` of the magnitude of its column; NaN and infinities must be the same. */
export function expectSame(
  actual: readonly HostArray[],
  expected: readonly HostArray[],
  { magnitudes: columns }: AttentionRun,
  tolerance: number,
): void {
  const names = ['the result', 'the gradient of q', 'the gradient of k', 'the gradient of v'];
  actual.forEach((array, output) => {
    const wanted = expected[output]!;
    if (String(array.shape) !== String(wanted.shape) || array.dtype !== wanted.dtype)
      throw new Error(`${names[output]}: ${array.dtype}[${array.shape}]`);
    const width = columns[output]!.length;
    for (let i = 0; i < array.data.length; i++) {
      const [x, y] = [Number(wanted.data[i]), Number(array.data[i])];
      const most = columns[output]![i % width]! * tolerance;
      if (Object.is(x, y) || x === y || Math.abs(x - y) <= most) continue;
      const place = `element ${i} of ${names[output]}, ${array.dtype as DType}[${array.shape}]`;
      throw new Error(`${place}: ${y} instead of ${x}, at most ${most} apart`);
    }
  });
}

/** Matrix product of q with the transposed keys. */
export function scoresOf(q: Tensor, k: Tensor): Tensor {
  return q.matmul(k.transpose(-1, -2));
}

/** Whether key j comes at or before query i. */
export function past(queries: number, keys: number): Tensor {
  return sn.le(sn.arange(keys).reshape([1, keys]), sn.arange(queries).reshape([queries, 1]));
}
