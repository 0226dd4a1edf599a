// Shapes and axes. A dimension is a number or a named symbolic integer with a range; passes that
// need numbers ask for them through `fixedShape`, which answers a symbolic dimension with a clear
// error instead of a wrong program.

import { showValue, SinterError, TensorError } from '../errors.ts';
import type { DType } from './dtype.ts';

/** A named size known only at run time, with inclusive bounds, e.g. `seq: 1..2048`. */
export interface SymbolicDim {
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

/** One size: a number, or a symbol with a range. */
export type Dim = number | SymbolicDim;
/** Sizes by axis; rank 0 is `[]`. */
export type Shape = readonly Dim[];
/** A shape without symbols. */
export type FixedShape = readonly number[];

/**
 * The shape as plain numbers. Throws E_UNSUPPORTED naming `where` and the symbolic dimension
 * otherwise.
 */
export function fixedShape(shape: Shape, where: string): FixedShape {
  for (const dim of shape) {
    if (typeof dim !== 'number') {
      throw new SinterError(
        'E_UNSUPPORTED',
        `${where}: symbolic size ${dim.name}: this pass needs fixed sizes`,
      );
    }
  }
  return shape as FixedShape;
}

/** Number of elements; 1 for rank 0. */
export function sizeOf(shape: FixedShape): number {
  let size = 1;
  for (const dim of shape) size *= dim;
  return size;
}

/** Row-major strides in elements. */
export function stridesOf(shape: FixedShape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

export function sameDim(a: Dim, b: Dim): boolean {
  if (typeof a === 'number' || typeof b === 'number') return a === b;
  return a.name === b.name && a.min === b.min && a.max === b.max;
}

export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (!sameDim(a[axis]!, b[axis]!)) return false;
  return true;
}

export function showDim(dim: Dim): string {
  return typeof dim === 'number' ? String(dim) : `${dim.name}:${dim.min}..${dim.max}`;
}

/** `[8,3]`, or `f32[8,3]` with a dtype, as error messages print it. */
export function showShape(shape: Shape, dtype?: DType): string {
  return `${dtype ?? ''}[${shape.map(showDim).join(',')}]`;
}

/** Checks that a shape is a list of non-negative safe integers whose product is one too. */
export function checkShape(op: string, shape: readonly number[]): void {
  checkList(op, 'a shape', shape);
  // By index: an array with holes has sizes that `every` would pass by.
  for (let axis = 0; axis < shape.length; axis++) {
    const dim = shape[axis]!;
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw new TensorError('E_SHAPE', op, `sizes must be non-negative integers: ${showValue([...shape])}`);
    }
  }
  if (!Number.isSafeInteger(sizeOf(shape))) {
    throw new TensorError('E_SHAPE', op, `too many elements: [${shape.join(',')}]`);
  }
}

/** A checked copy of the caller's own array, which may be a typed one and may change. */
export function toShape(op: string, shape: readonly number[]): number[] {
  checkShape(op, shape);
  return [...shape];
}

/**
 * Requires an array (or typed array) where TypeScript asks for a list of numbers; `what` says of
 * what.
 */
export function checkList(op: string, what: string, list: unknown): void {
  if (Array.isArray(list) || (ArrayBuffer.isView(list) && 'length' in list)) return;
  const problem = `expects ${what} as an array of integers, got ${showValue(list)}`;
  if (typeof list !== 'number') throw new TensorError('E_VALUE', op, problem);
  const error = new TensorError('E_VALUE', op, problem, `one array of all of them, [${list}, …]`);
  loose.set(error, { problem, first: list });
  throw error;
}

/** Errors about a number where a list belongs. */
const loose = new WeakMap<Error, { readonly problem: string; readonly first: number }>();

/**
 * What a call threw that was given these values. Where numbers stand one by one for a list, as in
 * `x.reshape(2, 2)`, the hint is the call as it was meant: `reshape([2,2])`.
 */
export function gathered(error: unknown, given: readonly unknown[]): unknown {
  const about = error instanceof TensorError ? loose.get(error) : undefined;
  if (about === undefined) return error;
  const { op } = error as TensorError;
  const start = given.indexOf(about.first);
  if (start < 0 || !given.every((value) => typeof value === 'number')) return error;
  const meant = [...given.slice(0, start), `[${given.slice(start).join(',')}]`].join(', ');
  return new TensorError('E_VALUE', op, about.problem, `${op}(${meant})`);
}

/** A possibly negative axis as 0 ≤ axis < rank. */
export function normalizeAxis(op: string, axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= rank) {
    throw new TensorError(
      'E_AXIS',
      op,
      `axis ${showValue(axis)} is out of range for rank ${rank}`,
      `an axis in [${-rank}, ${rank - 1}]`,
    );
  }
  return axis < 0 ? axis + rank : axis;
}

/** Distinct axes, normalised and ascending; undefined means all of them. */
export function normalizeAxes(
  op: string,
  axes: number | readonly number[] | undefined,
  rank: number,
): number[] {
  if (axes === undefined) return Array.from({ length: rank }, (_, axis) => axis);
  if (typeof axes !== 'number') checkList(op, 'axes', axes);
  const list = (typeof axes === 'number' ? [axes] : [...axes]).map((axis) => normalizeAxis(op, axis, rank));
  if (new Set(list).size !== list.length)
    throw new TensorError('E_AXIS', op, `an axis is named twice: [${list.join(',')}]`);
  return list.sort((a, b) => a - b);
}

/** NumPy broadcasting of two shapes: sizes are aligned from the right; 1 or missing stretches. */
export function broadcastShapes(op: string, a: FixedShape, b: FixedShape): number[] {
  const rank = Math.max(a.length, b.length);
  const out = new Array<number>(rank);
  for (let i = 1; i <= rank; i++) {
    const x = a[a.length - i] ?? 1;
    const y = b[b.length - i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) {
      throw new TensorError('E_SHAPE', op, `shapes do not broadcast: ${showShape(a)} with ${showShape(b)}`);
    }
    out[rank - i] = x === 1 ? y : x;
  }
  return out;
}
