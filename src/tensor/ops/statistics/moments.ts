// Sums and means without NaN, extrema together, covariances and correlations.

import type { Floated, Summed } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  binary,
  broadcast,
  cast,
  complex,
  conj,
  div,
  full,
  fullLike,
  imag,
  mul,
  permute,
  real,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { isComplex, isFloat, isInexact, partType, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor, expectDType } from '../../expect.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { applyFloat, checkFloat, checkInteger, checkNotComplex, show } from '../operand.ts';
import { contract } from '../product/contract.ts';
import { reduction, type Axes, type ReduceOptions, reduceOptions } from '../reduce/axes.ts';
import { amax, amin } from '../reduce/extremum.ts';
import type { SumOptions } from '../reduce/reduce.ts';
import { reshape as reshaped } from '../shape/view.ts';

const sumOptions = arg.options<SumOptions>({ ...reduceOptions, dtype: arg.dtype });
const takesNansum = arg.takes<typeof nansum>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', sumOptions],
);

/**
 * Σ of the elements that are no NaN; 0 over nothing.
 *
 * @example
 * const gap = sn.tensor([[1, NaN, 3], [0.5, 4, NaN]]);
 * sn.nansum(gap, 1);
 */
export function nansum<D extends DType, T extends DType = Summed<D>>(
  x: Tensor<D>,
  axes?: Axes,
  options: SumOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNansum('nansum', x, axes, options);
  const target = options.dtype ?? formula.sumType(x.dtype);
  expectDType('nansum', target);
  if (target === 'bool')
    throw new TensorError('E_DTYPE', 'nansum', 'cannot accumulate in bool', "dtype: 'i32'");
  return reduction('nansum', x, axes, options, (b, node, list) => {
    const numbers = isFloat(x.dtype) ? where(b, formula.isNan(b, node), fullLike(b, node, 0), node) : node;
    return cast(b, reduceKeep(b, 'sum', cast(b, numbers, formula.wideType(target)), list), target);
  });
}

/**
 * Mean of the elements that are no NaN; NaN over nothing.
 *
 * @example
 * const gap = sn.tensor([[1, NaN, 3], [0.5, 4, NaN]]);
 * sn.nanmean(gap, 1);
 */
export function nanmean<D extends DType, T extends DType = Floated<D>>(
  x: Tensor<D>,
  axes?: Axes,
  options: SumOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNansum('nanmean', x, axes, options);
  checkFloat('nanmean', x);
  const target = options.dtype ?? x.dtype;
  return reduction('nanmean', x, axes, options, (b, node, list) => {
    const wide = cast(b, node, formula.wideType(target));
    const isLost = formula.isNan(b, wide);
    const total = reduceKeep(b, 'sum', where(b, isLost, fullLike(b, wide, 0), wide), list);
    const count = reduceKeep(b, 'sum', cast(b, unary(b, 'not', isLost), wide.dtype), list);
    return cast(b, div(b, total, count), target);
  });
}

const takesAminmax = arg.takes<typeof aminmax>(
  ['the operand', aTensor],
  ['axis', arg.optional(arg.integer)],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The smallest and the largest elements, of all or along an axis.
 *
 * @family Reductions and scans
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.aminmax(x, 1);
 */
export function aminmax(x: Tensor, axis?: number, options: ReduceOptions = {}): [min: Tensor, max: Tensor] {
  takesAminmax('aminmax', x, axis, options);
  checkNotComplex('aminmax', x);
  if (x.size === 0 && (axis === undefined || x.shape[normalizeAxis('aminmax', axis, x.rank)] === 0))
    throw new TensorError('E_SHAPE', 'aminmax', `nothing to choose from: ${show(x)}`);
  // A line of one element keeps its axis, as PyTorch has it.
  const line = x.rank === 0 && axis !== undefined && options.keepdim === true ? reshaped(x, [1]) : x;
  return [amin(line, axis, options), amax(line, axis, options)];
}

export interface CovOptions {
  /** The sum of products is divided by the number of observations less this: 1 by default. */
  readonly correction?: number;
  /** How often each observation was made: integers; 1 by default. */
  readonly fweights?: Tensor;
  /** How much each observation counts: floats; 1 by default. */
  readonly aweights?: Tensor;
}

const takesCov = arg.takes<typeof cov>(
  ['the operand', aTensor],
  ['options', arg.options<CovOptions>({ correction: arg.finite, fweights: aTensor, aweights: aTensor })],
);

function checkWeights(x: Tensor, what: string, weights: Tensor | undefined): void {
  if (weights === undefined) return;
  const observations = x.rank === 0 ? 1 : x.shape.at(-1)!;
  if (weights.rank <= 1 && weights.size === observations) return;
  const problem = `${what} must have one element an observation (${observations}): ${show(weights)}`;
  throw new TensorError('E_SHAPE', 'cov', problem);
}

function checkVariables(op: string, x: Tensor): void {
  if (x.rank <= 2) return;
  throw new TensorError('E_SHAPE', op, `expects rows of observations, rank 2 at most: ${show(x)}`);
}

/**
 * Covariances of variables, which are the rows of x: [rows, rows], or rank 0 for one row. Integers
 * are taken as f32.
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.cov(x);
 */
export function cov(x: Tensor, options: CovOptions = {}): Tensor {
  takesCov('cov', x, options);
  checkVariables('cov', x);
  const { correction = 1, fweights, aweights } = options;
  checkWeights(x, 'fweights', fweights);
  checkWeights(x, 'aweights', aweights);
  if (fweights !== undefined) checkInteger('cov', 'fweights', fweights);
  if (aweights !== undefined) checkFloat('cov', aweights);
  const given = [fweights, aweights].filter((weights) => weights !== undefined);
  return record([x, ...given], (b, [node, ...weights]) => {
    const dtype = isInexact(x.dtype) ? x.dtype : 'f32';
    const wide = cast(b, node!, formula.wideType(dtype));
    const rows = reshape(b, wide, x.rank === 2 ? x.shape : [1, x.size]);
    const as = weights.map((weight) =>
      reshape(b, cast(b, weight, partType(wide.dtype)), [1, dims(rows)[1]!]),
    );
    const [first, second] = as;
    const weight = first === undefined || second === undefined ? first : mul(b, first, second);
    const own = aweights === undefined ? undefined : as.at(-1)!;
    const result = covariance(b, rows, weight, own, correction);
    return cast(b, x.rank === 2 && x.shape[0] !== 1 ? result : reshape(b, result, []), dtype);
  });
}

/** Weights are [1, observations]; `own` are the weights that are no counts. */
function covariance(
  b: GraphBuilder,
  rows: Node,
  weight: Node | undefined,
  own: Node | undefined,
  correction: number,
): Node {
  const [, observations] = dims(rows) as [number, number];
  const spread = (x: Node): Node => formula.spreadTo(b, cast(b, x, rows.dtype), rows);
  const weighted = weight === undefined ? rows : mul(b, rows, spread(weight));
  const total = weight === undefined ? undefined : reduceKeep(b, 'sum', weight, [0, 1]);
  const sums = reduceKeep(b, 'sum', weighted, [1]);
  const mean =
    total === undefined
      ? div(b, sums, observations)
      : div(b, sums, formula.spreadTo(b, cast(b, total, sums.dtype), sums));
  const centred = sub(b, rows, spread(mean));
  const other = weight === undefined ? centred : mul(b, centred, spread(weight));
  const products = contract(b, centred, isComplex(rows.dtype) ? conj(b, other) : other, [], [[1, 1]]);
  const count = cast(b, freedom(b, rows, weight, own, total, correction), rows.dtype);
  return div(b, products, formula.spreadTo(b, count, products));
}

/** What the sum of products is divided by; 0 where nothing is left, so that nothing is known. */
function freedom(
  b: GraphBuilder,
  rows: Node,
  weight: Node | undefined,
  own: Node | undefined,
  total: Node | undefined,
  correction: number,
): Node {
  const like = total ?? full(b, [1, 1], 1, partType(rows.dtype));
  const left = ((): Node => {
    if (weight === undefined || total === undefined) return fullLike(b, like, dims(rows)[1]! - correction);
    if (own === undefined || correction === 0) return sub(b, total, correction);
    const squares = reduceKeep(b, 'sum', mul(b, weight, own), [0, 1]);
    return sub(b, total, mul(b, div(b, squares, total), correction));
  })();
  return where(b, binary(b, 'lt', left, 0), fullLike(b, left, 0), left);
}

const takesCorrcoef = arg.takes<typeof corrcoef>(['the operand', aTensor]);

/**
 * Correlations of variables, which are the rows of x: covariances by both deviations, in [−1, 1].
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.corrcoef(x);
 */
export function corrcoef(x: Tensor): Tensor {
  takesCorrcoef('corrcoef', x);
  checkVariables('corrcoef', x);
  return applyFloat(x, (b, node) =>
    formula.widened(b, node, (wide) => {
      const rows = reshape(b, wide, x.rank === 2 ? x.shape : [1, x.size]);
      const [count] = dims(rows) as [number, number];
      const covariances = covariance(b, rows, undefined, undefined, 1);
      if (x.rank < 2 || count === 1) return reshape(b, div(b, covariances, covariances), []);
      const place = (axis: number): Node => formula.iota(b, [count, count], axis);
      const sizes = isComplex(wide.dtype) ? real(b, covariances) : covariances;
      const own = where(b, binary(b, 'eq', place(0), place(1)), sizes, fullLike(b, sizes, 0));
      const deviations = unary(b, 'sqrt', reduceKeep(b, 'sum', own, [1]));
      const divisor = (by: Node): Node => broadcast(b, cast(b, by, wide.dtype), [count, count]);
      const byRows = div(b, covariances, divisor(deviations));
      const scaled = div(b, byRows, divisor(permute(b, deviations, [1, 0])));
      if (!isComplex(wide.dtype)) return clipped(b, scaled);
      return complex(b, clipped(b, real(b, scaled)), clipped(b, imag(b, scaled)));
    }),
  );
}

/** Rounding may leave [−1, 1]. Its ends pass the derivative on. */
function clipped(b: GraphBuilder, x: Node): Node {
  const low = where(b, binary(b, 'lt', x, -1), fullLike(b, x, -1), x);
  return where(b, binary(b, 'lt', fullLike(b, x, 1), x), fullLike(b, x, 1), low);
}
