// Products of several matrices, and systems whose unknowns have several axes.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, permute, reshape } from '../../../ir/build.ts';
import { partType } from '../../../ir/dtype.ts';
import { identity, product, sizes } from '../../../ir/matrix.ts';
import type { Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor, tensors } from '../../expect.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, calledAs, show } from '../operand.ts';
import { matmul } from '../product/matmul.ts';
import { inverseOf, singularPivot, solvedSystem } from './formula.ts';
import { watchInfo } from './info.ts';
import { isSingular } from './lu.ts';
import { batchOf, checkOneDType, checkSquare, stacked, unstacked } from '../matrices.ts';

const takesPower = arg.takes<typeof matrixPower>(['x', aTensor], ['the exponent', arg.integer]);

/**
 * A to a whole power, by squaring; of A⁻¹ where it is negative, and the next read fails with
 * E_VALUE where A is singular then.
 *
 * @names matrixPower, linalg.matrixPower
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.matrixPower(a, 3);
 * @example <caption>inverse</caption>
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.matrixPower(a, -1);
 */
export function matrixPower(x: Tensor, n: number): Tensor {
  takesPower('matrixPower', x, n);
  checkSquare('matrixPower', x);
  if (n < 0) watchSingular('matrixPower', x);
  return apply([x], (b, node) => {
    const a = stacked(b, node);
    const [lines, rows] = sizes(a);
    let square: Node = n < 0 ? inverseOf(b, a) : a;
    let power: Node | undefined;
    for (let left = Math.abs(n); left > 0; left = Math.floor(left / 2)) {
      if (left % 2 === 1) power = power === undefined ? square : product(b, power, square);
      if (left > 1) square = product(b, square, square);
    }
    const one = power ?? cast(b, identity(b, lines, [rows, rows], partType(x.dtype)), x.dtype);
    return unstacked(b, one, batchOf(x));
  });
}

/** The next read fails where a matrix of the stack is singular. */
function watchSingular(op: string, x: Tensor): void {
  const info = record([x], (b, [node]) => {
    const singular = singularPivot(b, stacked(b, node!));
    return reshape(b, singular, batchOf(x));
  });
  watchInfo(op, info, isSingular);
}

const takesMultiDot = arg.takes<typeof multiDot>(['the matrices', tensors]);

/**
 * The product of two matrices or more, in the order that takes the fewest multiplications. The
 * first and the last may be vectors.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * const b = sn.tensor([[2], [1]]);
 * sn.linalg.multiDot([x, a, b]);
 */
export function multiDot(matrices: readonly Tensor[]): Tensor {
  const op = 'multiDot';
  takesMultiDot(op, matrices);
  if (matrices.length < 2)
    throw new TensorError('E_VALUE', op, `expects two matrices at least, got ${matrices.length}`);
  const ends = [0, matrices.length - 1];
  for (const [i, x] of matrices.entries()) {
    const isFit = x.rank === 2 || (x.rank === 1 && ends.includes(i));
    if (!isFit)
      throw new TensorError('E_SHAPE', op, `expects matrices, and vectors at the ends: ${show(...matrices)}`);
  }
  // A vector is a row in front and a column at the end.
  const first = matrices[0]!.rank === 1 ? [1, ...matrices[0]!.shape] : matrices[0]!.shape;
  const bounds = [
    first[0]!,
    ...matrices.slice(0, -1).map((x) => x.shape.at(-1)!),
    matrices.at(-1)!.rank === 1 ? 1 : matrices.at(-1)!.shape[1]!,
  ];
  const splits = cheapestOrder(bounds);
  const multiply = (from: number, to: number): Tensor => {
    if (from === to) return matrices[from]!;
    const at = splits[from]![to]!;
    return matmul(multiply(from, at), multiply(at + 1, to));
  };
  return calledAs(op, () => multiply(0, matrices.length - 1));
}

/** Where each run of a product is split (Cormen et al., "Introduction to Algorithms", 14.2). */
function cheapestOrder(bounds: readonly number[]): number[][] {
  const count = bounds.length - 1;
  const table = (): number[][] => Array.from({ length: count }, () => new Array<number>(count).fill(0));
  const [costs, splits] = [table(), table()];
  for (let length = 1; length < count; length++) {
    for (let from = 0; from + length < count; from++) {
      const to = from + length;
      costs[from]![to] = Infinity;
      for (let at = from; at < to; at++) {
        const own = bounds[from]! * bounds[at + 1]! * bounds[to + 1]!;
        const cost = costs[from]![at]! + costs[at + 1]![to]! + own;
        if (cost < costs[from]![to]!) [costs[from]![to], splits[from]![to]] = [cost, at];
      }
    }
  }
  return splits;
}

/** @names TensorinvOptions, linalg.TensorinvOptions */
export interface TensorinvOptions {
  /** How many of the axes are rows; 2 by default. */
  readonly ind?: number;
}

const takesInverse = arg.takes<typeof tensorinv>(
  ['x', aTensor],
  ['options', arg.options<TensorinvOptions>({ ind: arg.count(1) })],
);

/**
 * The inverse of x as a matrix of its first axes by the others: `tensordot(inverse, x)` is the identity.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.tensorinv(a.reshape([2, 2]), { ind: 1 });
 */
export function tensorinv(x: Tensor, options: TensorinvOptions = {}): Tensor {
  const op = 'tensorinv';
  takesInverse(op, x, options);
  const { ind = 2 } = options;
  const [rows, columns] = [x.shape.slice(0, ind), x.shape.slice(ind)];
  if (sizeOf(rows) !== sizeOf(columns))
    throw new TensorError('E_SHAPE', op, `the first ${ind} axes hold not as many as the others: ${show(x)}`);
  const matrix = record([x], (b, [node]) => reshape(b, node!, [sizeOf(rows), sizeOf(columns)]));
  checkSquare(op, matrix);
  watchSingular(op, matrix);
  return apply([matrix], (b, node) => reshape(b, inverseOf(b, stacked(b, node)), [...columns, ...rows]));
}

/** @names TensorsolveOptions, linalg.TensorsolveOptions */
export interface TensorsolveOptions {
  /** Axes of A that are moved to its end first; none by default. */
  readonly axes?: readonly number[];
}

const takesTensorsolve = arg.takes<typeof tensorsolve>(
  ['x', aTensor],
  ['the right-hand side', aTensor],
  ['options', arg.options<TensorsolveOptions>({ axes: arg.listOf(arg.integer) })],
);

/**
 * X with `tensordot(A, X)` over all axes of X equal to B.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * const b = sn.tensor([[2], [1]]);
 * sn.linalg.tensorsolve(a, b.flatten());
 */
export function tensorsolve(a: Tensor, b: Tensor, options: TensorsolveOptions = {}): Tensor {
  const op = 'tensorsolve';
  takesTensorsolve(op, a, b, options);
  checkOneDType(op, a, b);
  const moved = [...(options.axes ?? [])].map((axis) => {
    if (!Number.isInteger(axis) || axis < -a.rank || axis >= a.rank)
      throw new TensorError('E_AXIS', op, `axis ${axis} is out of range: ${show(a)}`);
    return axis < 0 ? axis + a.rank : axis;
  });
  const kept = a.shape.flatMap((_, axis) => (moved.includes(axis) ? [] : [axis]));
  const order = [...kept, ...moved];
  const unknowns = order.map((axis) => a.shape[axis]!).slice(b.rank);
  if (a.size !== b.size * b.size || sizeOf(unknowns) !== b.size)
    throw new TensorError('E_SHAPE', op, `expects ${b.size} unknowns for as many numbers: ${show(a, b)}`);
  const matrix = record([a], (builder, [node]) =>
    reshape(builder, permute(builder, node!, order), [b.size, b.size]),
  );
  checkSquare(op, matrix);
  watchSingular(op, matrix);
  return apply([matrix, b], (builder, node, rhs) =>
    reshape(
      builder,
      solvedSystem(builder, stacked(builder, node), reshape(builder, rhs, [1, b.size, 1])),
      unknowns,
    ),
  );
}
