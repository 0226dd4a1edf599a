// Distances between vectors: all pairs of two sets, all pairs within one, and pair by pair.

import { TensorError } from '../../../errors.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { partType, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkFloat, checkRank, fit, operandType, show } from '../operand.ts';
import { leadingAxes } from '../product/contract.ts';
import { checkNumbers } from './stack.ts';

/**
 * The p-norm of differences along their last axis, which vanishes. Its derivative is 0 where
 * vectors are equal; the greatest difference has all of it, and several such as much each.
 */
function lengthOf(b: GraphBuilder, difference: Node, p: number): Node {
  const axis = dims(difference).length - 1;
  const size =
    dims(difference)[axis] === 0
      ? reduceKeep(b, 'sum', difference, [axis])
      : formula.normOf(b, difference, p, [axis]);
  const rule =
    p === 0
      ? countRule
      : p === 1
        ? sumRule
        : p === 2
          ? squareRule
          : p === Infinity
            ? greatestRule
            : undefined;
  const value =
    rule === undefined ? powerLength(b, difference, size, p) : formula.withRule(b, size, [difference], rule);
  return reshape(b, value, dims(difference).slice(0, -1));
}

function spread(b: GraphBuilder, x: Node, like: Node): Node {
  return broadcast(b, x, dims(like));
}

const countRule: CustomRule = () => [undefined];

const sumRule: CustomRule = (b, [x], _, g) => [mul(b, spread(b, g, x!), unary(b, 'sign', x!))];

/** g·x/‖x‖. */
const squareRule: CustomRule = (b, [x], value, g) => {
  const none = binary(b, 'eq', value, 0);
  const share = div(b, g, where(b, none, fullLike(b, value, 1), value));
  return [mul(b, x!, spread(b, where(b, none, fullLike(b, share, 0), share), x!))];
};

const greatestRule: CustomRule = (b, [x], value, g) => {
  const holds = binary(b, 'eq', unary(b, 'abs', x!), spread(b, value, x!));
  const turned = mul(b, spread(b, g, x!), unary(b, 'sign', x!));
  return [where(b, holds, turned, fullLike(b, turned, 0))];
};

/** The derivative of other powers takes p as a constant operand. */
function powerLength(b: GraphBuilder, x: Node, size: Node, p: number): Node {
  return formula.withRule(b, size, [x, full(b, [], p, x.dtype)], formula.powerNormRule);
}

function checkPower(op: string, p: number): void {
  if (!(p >= 0)) throw new TensorError('E_VALUE', op, `p must be at least 0: ${p}`);
}

const takesCdist = arg.takes<typeof cdist>(['x', aTensor], ['y', aTensor], ['p', arg.optional(arg.number)]);

/**
 * The distances of the vectors [.., P, m] and [.., R, m], all pairs: [.., P, R]. (Σ|x − y|^p)^(1/p),
 * by differences: p is 2 by default, ∞ gives the greatest difference, 0 counts those that are not
 * 0.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.cdist(x, w);
 * @example <caption>p</caption>
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.cdist(x, w, 1);
 */
export function cdist(x: Tensor, y: Tensor, p = 2): Tensor {
  takesCdist('cdist', x, y, p);
  checkFloat('cdist', x, y);
  checkPower('cdist', p);
  const lead = leadingAxes(x.shape.slice(0, -2), y.shape.slice(0, -2));
  if (x.rank < 2 || y.rank < 2 || x.shape.at(-1) !== y.shape.at(-1) || lead === undefined)
    throw new TensorError(
      'E_SHAPE',
      'cdist',
      `expects vectors of one length, [.., P, m] and [.., R, m]: ${show(x, y)}`,
    );
  const dtype = operandType('cdist', [x, y], 'float');
  const [rows, columns, m] = [x.shape.at(-2)!, y.shape.at(-2)!, x.shape.at(-1)!];
  const shape = [...lead, rows, columns, m];
  return apply([x, y], (b, first, second) => {
    const wide = (node: Node, at: readonly number[]): Node =>
      broadcast(
        b,
        reshape(b, cast(b, node, formula.wideType(dtype)), [...dims(node).slice(0, -2), ...at]),
        shape,
      );
    const difference = sub(b, wide(first, [rows, 1, m]), wide(second, [1, columns, m]));
    return cast(b, lengthOf(b, difference, p), dtype);
  });
}

const takesPdist = arg.takes<typeof pdist>(['x', aTensor], ['p', arg.optional(arg.number)]);

/**
 * The distances between all pairs of n vectors [n, m]: [n·(n − 1)/2], first those of the first vector with
 * the following ones.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.pdist(x);
 */
export function pdist(x: Tensor, p = 2): Tensor {
  takesPdist('pdist', x, p);
  checkFloat('pdist', x);
  checkRank('pdist', 'x', x, 2);
  checkPower('pdist', p);
  const [n, m] = x.shape as [number, number];
  const pairs = (n * (n - 1)) / 2;
  if (pairs >= 2 ** 31) throw new TensorError('E_SHAPE', 'pdist', `too many pairs, ${pairs}: ${show(x)}`);
  return apply([casted('pdist', x)], (b, node) => {
    if (pairs === 0) return full(b, [0], 0, node.dtype);
    const { first, second } = pairsOf(b, n, pairs);
    const wide = cast(b, node, formula.wideType(node.dtype));
    const rows = (at: Node): Node => {
      const index = broadcast(b, reshape(b, at, [pairs, 1]), [pairs, m]);
      return b.add('gather', [wide, index], { axis: 0 }) as Node;
    };
    return cast(b, lengthOf(b, sub(b, rows(first), rows(second)), p), node.dtype);
  });
}

/** Which vectors make each pair: pairs of vector i begin at i·(2n − i − 1)/2. */
function pairsOf(b: GraphBuilder, n: number, pairs: number): { readonly first: Node; readonly second: Node } {
  const i = formula.iota(b, [n - 1], 0);
  const startOf = (at: Node): Node => {
    // One of the factors is even: it is halved first, so that nothing leaves 32 bits.
    const other = sub(b, fullLike(b, at, 2 * n - 1), at);
    const odd = binary(b, 'ne', binary(b, 'and', at, 1), 0);
    const half = (x: Node): Node => binary(b, 'shr', x, 1);
    return where(b, odd, mul(b, at, half(other)), mul(b, half(at), other));
  };
  const pair = formula.iota(b, [pairs], 0);
  const reached = b.add('searchSorted', [startOf(i), pair], { right: true }) as Node;
  const first = sub(b, reached, 1);
  const second = add(b, add(b, sub(b, pair, startOf(first)), first), 1);
  return { first, second };
}

export interface PairwiseDistanceOptions {
  /** Which norm, 2 by default. */
  readonly p?: number;
  /** Added to every difference; 1e-6 by default. */
  readonly eps?: number;
  /** Keeps the last axis with size 1; false by default. */
  readonly keepdim?: boolean;
}

/** @internal */
export const pairwiseDistanceOptions: arg.Table<PairwiseDistanceOptions> = {
  p: arg.number,
  eps: arg.number,
  keepdim: arg.flag,
};
const takesPairwiseDistance = arg.takes<typeof pairwiseDistance>(
  ['x', aTensor],
  ['y', aTensor],
  ['options', arg.options<PairwiseDistanceOptions>(pairwiseDistanceOptions)],
);

/**
 * ‖x − y + eps‖ along the last axis of vectors that broadcast; integers are subtracted as such,
 * before eps makes floats of them.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.pairwiseDistance(x, w);
 */
export function pairwiseDistance(x: Tensor, y: Tensor, options: PairwiseDistanceOptions = {}): Tensor {
  const op = 'pairwiseDistance';
  takesPairwiseDistance(op, x, y, options);
  const { p = 2, eps = 1e-6, keepdim = false } = options;
  checkNumbers(op, x, y);
  const common: DType = operandType(op, [x, y], 'number');
  const dtype: DType = operandType(op, [x, y], 'float');
  if (x.rank === 0 || y.rank === 0) throw new TensorError('E_SHAPE', op, `expects vectors: ${show(x, y)}`);
  return fit(
    op,
    [x, y],
    () => common,
    (b, u, v) => {
      const axis = dims(u).length - 1;
      const difference = add(b, cast(b, sub(b, u, v), formula.wideType(dtype)), eps);
      const size = formula.normOf(b, difference, p, [axis]);
      return cast(b, keepdim ? size : reshape(b, size, dims(size).slice(0, -1)), partType(dtype));
    },
  );
}

const takesDist = arg.takes<typeof dist>(['x', aTensor], ['y', aTensor], ['p', arg.optional(arg.number)]);

/**
 * The p-norm of all elements of x − y; the operands broadcast.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.dist(x, w);
 */
export function dist(x: Tensor, y: Tensor, p = 2): Tensor {
  takesDist('dist', x, y, p);
  checkNumbers('dist', x, y);
  const dtype: DType = operandType('dist', [x, y], 'float');
  return fit(
    'dist',
    [x, y],
    () => formula.wideType(dtype),
    (b, u, v) => {
      const axes = dims(u).map((_, axis) => axis);
      const size = formula.normOf(b, sub(b, u, v), p, axes);
      return cast(b, reshape(b, size, []), partType(dtype));
    },
  );
}
