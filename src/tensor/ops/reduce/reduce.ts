// Reductions over axes: a number, a list, or all axes when absent; reduced axes vanish unless `keepdim`. Sums of 16-bit
// floats are kept in f32 and rounded once. Integer sums and products keep their width and wrap (PyTorch widens to i64: ask
// for it with `dtype`); narrower integers and bool count in i32.

import { TensorError } from '../../../errors.ts';
import { cast, reduce, reduceKeep, reshape, unary, fullLike, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { integerRange, isFloat, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxes, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor, expectDType, expectTensor } from '../../expect.ts';
import { recordMany } from '../../recording/record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../elementwise/formula.ts';
import { apply, checkFloat, checkNotEmpty, commonShape, show, takesOne } from '../operand.ts';

/** Which axes a reduction folds: one, several, or all when absent. Negative ones count from the last. */
export type Axes = number | readonly number[];

export interface ReduceOptions {
  /** Keeps reduced axes with size 1; false by default. */
  readonly keepdim?: boolean;
}

export interface SumOptions extends ReduceOptions {
  /** The dtype to accumulate in and give. */
  readonly dtype?: DType;
}

export const reduceOptions: arg.Table<ReduceOptions> = { keepdim: arg.flag };
const takesReduce = arg.takes<typeof any>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);
const takesSum = arg.takes<typeof sum>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<SumOptions>({ ...reduceOptions, dtype: arg.dtype })],
);

/** The axes to fold, ascending; a rank-0 tensor is folded as one element, under axis 0 or −1. */
function axesOf(op: string, axes: Axes | undefined, x: Tensor): number[] {
  expectTensor(op, 'the operand', x);
  if (x.rank > 0) return normalizeAxes(op, axes, x.rank);
  normalizeAxes(op, axes, 1);
  return [];
}

/** Removes the kept axes of size 1 unless they are wanted. */
function settle(b: GraphBuilder, kept: Node, axes: readonly number[], keepdim: boolean): Node {
  if (keepdim) return kept;
  return reshape(
    b,
    kept,
    dims(kept).filter((_, axis) => !axes.includes(axis)),
  );
}

/** Records a reduction given by a formula that keeps the reduced axes. */
function reduction(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
  make: (b: GraphBuilder, x: Node, axes: readonly number[]) => Node,
): Tensor {
  const list = axesOf(op, axes, x);
  return apply([x], (b, node) => settle(b, make(b, node, list), list, options.keepdim === true));
}

function fold(
  op: string,
  monoid: 'sum' | 'prod',
  x: Tensor,
  axes: Axes | undefined,
  options: SumOptions,
): Tensor {
  expectTensor(op, 'the operand', x);
  const target = options.dtype ?? formula.sumType(x.dtype);
  expectDType(op, target);
  if (target === 'bool')
    throw new TensorError('E_DTYPE', op, 'cannot accumulate in bool', "dtype: 'i32', or any()");
  return reduction(op, x, axes, options, (b, node, list) => {
    const wide = cast(b, node, formula.wideType(target));
    return cast(b, reduceKeep(b, monoid, wide, list), target);
  });
}

/** Σ; 0 over nothing. */
export function sum(x: Tensor, axes?: Axes, options: SumOptions = {}): Tensor {
  takesSum('sum', x, axes, options);
  return fold('sum', 'sum', x, axes, options);
}

/** Π; 1 over nothing. */
export function prod(x: Tensor, axes?: Axes, options: SumOptions = {}): Tensor {
  takesSum('prod', x, axes, options);
  return fold('prod', 'prod', x, axes, options);
}

/** Σ / n of floats; NaN over nothing. */
export function mean(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('mean', x, axes, options);
  checkFloat('mean', x);
  return reduction('mean', x, axes, options, (b, node, list) =>
    formula.widened(b, node, (wide) => formula.mean(b, wide, list)),
  );
}

function extremum(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
): Tensor {
  const list = axesOf(op, axes, x);
  checkNotEmpty(op, x, list);
  return reduction(op, x, axes, options, (b, node) =>
    reduceKeep(b, node.dtype === 'bool' ? (monoid === 'max' ? 'or' : 'and') : monoid, node, list),
  );
}

/** The largest elements; NaN wins. Ties share the gradient. */
export function amax(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('amax', x, axes, options);
  return extremum('amax', 'max', x, axes, options);
}

/** The smallest elements; NaN wins. Ties share the gradient. */
export function amin(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('amin', x, axes, options);
  return extremum('amin', 'min', x, axes, options);
}

function maskedExtremum(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  mask: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
): Tensor {
  if (mask.dtype !== 'bool')
    throw new TensorError('E_DTYPE', op, `the mask must be bool: ${show(mask)}`, '.ne(0)');
  if (x.dtype === 'bool')
    throw new TensorError('E_DTYPE', op, `expects numbers, not bool: ${show(x)}`, ".cast('i32')");
  if (commonShape(op, [x, mask]).some((dim, axis) => dim !== x.shape[axis])) {
    throw new TensorError('E_SHAPE', op, `the mask must broadcast to x: ${show(x, mask)}`);
  }
  const list = axesOf(op, axes, x);
  return apply([x, mask], (b, node, kept) => {
    const nothing = fullLike(b, node, identityOf(monoid, x.dtype));
    const masked = where(b, formula.spreadTo(b, kept, node), node, nothing);
    return settle(b, reduceKeep(b, monoid, masked, list), list, options.keepdim === true);
  });
}

/** What an extremum over nothing is: ±∞, or the end of an integer's range. */
function identityOf(monoid: 'min' | 'max', dtype: DType): number | bigint {
  if (isFloat(dtype)) return monoid === 'min' ? Infinity : -Infinity;
  return integerRange(dtype)[monoid === 'min' ? 1 : 0];
}

const takesMaskedMax = arg.takes<typeof maskedMax>(
  ['the operand', aTensor],
  ['the mask', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/** The largest elements where the mask holds, −∞ (or the least integer) where it never does. */
export function maskedMax(x: Tensor, mask: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesMaskedMax('maskedMax', x, mask, axes, options);
  return maskedExtremum('maskedMax', 'max', x, mask, axes, options);
}

/** The smallest elements where the mask holds, ∞ (or the largest integer) where it never does. */
export function maskedMin(x: Tensor, mask: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesMaskedMax('maskedMin', x, mask, axes, options);
  return maskedExtremum('maskedMin', 'min', x, mask, axes, options);
}

/** The largest elements, as `amax`; for their places too see `maxWithIndices`. */
export function max(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('max', x, axes, options);
  return extremum('max', 'max', x, axes, options);
}

/** The smallest elements, as `amin`; for their places too see `minWithIndices`. */
export function min(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('min', x, axes, options);
  return extremum('min', 'min', x, axes, options);
}

/** i32 positions of the first extremum along `axis`; bool is compared as numbers. */
function placeOf(b: GraphBuilder, monoid: 'min' | 'max', x: Node, axis: number): Node {
  const numbers = x.dtype === 'bool' ? cast(b, x, 'i32') : x;
  return b.add('argReduce', [numbers], { monoid, axis }) as Node;
}

function place(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axis: number | undefined,
  keepdim: boolean,
): Tensor {
  const at = axis === undefined ? undefined : normalizeAxis(op, axis, Math.max(1, x.rank));
  checkNotEmpty(op, x, at === undefined || x.rank === 0 ? normalizeAxes(op, undefined, x.rank) : [at]);
  return apply([x], (b, node) => {
    if (at === undefined || x.rank === 0) {
      const found = placeOf(b, monoid, reshape(b, node, [x.size]), 0);
      return keepdim
        ? reshape(
            b,
            found,
            x.shape.map(() => 1),
          )
        : found;
    }
    const found = placeOf(b, monoid, node, at);
    return keepdim
      ? reshape(
          b,
          found,
          x.shape.map((dim, i) => (i === at ? 1 : dim)),
        )
      : found;
  });
}

const takesArgmax = arg.takes<typeof argmax>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/** i32 position of the largest element along `axis`, or in C-order without one; the first of equals, NaN first of all. */
export function argmax(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  takesArgmax('argmax', x, axis, options);
  return place('argmax', 'max', x, axis, options.keepdim === true);
}

/** i32 position of the smallest element along `axis`, or in C-order without one; the first of equals, NaN first of all. */
export function argmin(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  takesArgmax('argmin', x, axis, options);
  return place('argmin', 'min', x, axis, options.keepdim === true);
}

function withIndices(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axis: number,
  options: ReduceOptions,
): [Tensor, Tensor] {
  const at = normalizeAxis(op, axis, x.rank);
  checkNotEmpty(op, x, [at]);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const kept = reshape(
      b,
      placeOf(b, monoid, node!, at),
      x.shape.map((dim, i) => (i === at ? 1 : dim)),
    );
    const chosen = b.add('gather', [node!, kept], { axis: at }) as Node;
    return [chosen, kept].map((result) => settle(b, result, [at], options.keepdim === true));
  });
  return [values!, indices!];
}

const takesMaxWithIndices = arg.takes<typeof maxWithIndices>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/** The largest elements along `axis` and their i32 places (the first of equals); the gradient goes to those places. */
export function maxWithIndices(x: Tensor, axis: number, options: ReduceOptions = {}): [Tensor, Tensor] {
  takesMaxWithIndices('maxWithIndices', x, axis, options);
  return withIndices('maxWithIndices', 'max', x, axis, options);
}

/** The smallest elements along `axis` and their i32 places (the first of equals); the gradient goes to those places. */
export function minWithIndices(x: Tensor, axis: number, options: ReduceOptions = {}): [Tensor, Tensor] {
  takesMaxWithIndices('minWithIndices', x, axis, options);
  return withIndices('minWithIndices', 'min', x, axis, options);
}

/** true where some element is not 0 (NaN is not); false over nothing. */
export function any(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('any', x, axes, options);
  return reduction('any', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'or', formula.truth(b, node), list),
  );
}

/** true where no element is 0; true over nothing. */
export function all(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('all', x, axes, options);
  return reduction('all', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'and', formula.truth(b, node), list),
  );
}

/** How many elements are not 0, in i32. */
export function countNonzero(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('countNonzero', x, axes, options);
  return reduction('countNonzero', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'sum', cast(b, formula.truth(b, node), 'i32'), list),
  );
}

export interface VarOptions extends ReduceOptions {
  /** The sum of squares is divided by n − correction: 1 (unbiased) by default, 0 for the population. */
  readonly correction?: number;
}

/** Mean squared deviation from the mean, in two passes. */
function spreadOver(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  options: VarOptions,
  root: boolean,
): Tensor {
  checkFloat(op, x);
  return reduction(op, x, axes, options, (b, node, list) =>
    formula.widened(b, node, (wide) => {
      const [spread] = formula.spreadAround(b, wide, list, options.correction ?? 1);
      // The derivative of √ at 0 is taken as 0: equal elements have no direction to spread in.
      return root ? formula.safeSqrt(b, spread) : spread;
    }),
  );
}

const takesVariance = arg.takes<typeof variance>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<VarOptions>({ ...reduceOptions, correction: arg.finite })],
);

/** Variance; unbiased unless `correction: 0`. */
function variance(x: Tensor, axes?: Axes, options: VarOptions = {}): Tensor {
  takesVariance('var', x, axes, options);
  return spreadOver('var', x, axes, options, false);
}
export { variance as var };

/** Standard deviation; of the unbiased variance unless `correction: 0`. */
export function std(x: Tensor, axes?: Axes, options: VarOptions = {}): Tensor {
  takesVariance('std', x, axes, options);
  return spreadOver('std', x, axes, options, true);
}

/** Variance and mean over the same axes. */
export function varMean(x: Tensor, axes?: Axes, options: VarOptions = {}): [Tensor, Tensor] {
  takesVariance('varMean', x, axes, options);
  checkFloat('varMean', x);
  const list = axesOf('varMean', axes, x);
  const [spread, centre] = recordMany([x], (b, [node]) => {
    const wide = cast(b, node!, formula.wideType(x.dtype));
    return formula
      .spreadAround(b, wide, list, options.correction ?? 1)
      .map((kept) => settle(b, cast(b, kept, x.dtype), list, options.keepdim === true));
  });
  return [spread!, centre!];
}

const takesNorm = arg.takes<typeof norm>(
  ['the operand', aTensor],
  ['p', arg.optional(arg.number)],
  ['axes', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/** (Σ |x|^p)^(1/p): 2 by default, ∞ and −∞ give the extrema of |x|, 0 counts what is not 0. */
export function norm(x: Tensor, p = 2, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesNorm('norm', x, p, axes, options);
  checkFloat('norm', x);
  if (Math.abs(p) === Infinity) checkNotEmpty('norm', x, axesOf('norm', axes, x));
  return reduction('norm', x, axes, options, (b, node, list) =>
    formula.widened(b, node, (wide) => formula.normOf(b, wide, p, list)),
  );
}

/** log Σ eˣ, without overflow. */
export function logsumexp(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor {
  takesReduce('logsumexp', x, axes, options);
  checkFloat('logsumexp', x);
  return reduction('logsumexp', x, axes, options, (b, node, list) =>
    formula.widened(b, node, (wide) => formula.logSumExp(b, wide, list)),
  );
}

/** Whether some element is NaN or ±∞: one flag is reduced on the device and read back. */
export async function hasInfNan(x: Tensor): Promise<boolean> {
  takesOne('hasInfNan', x);
  const flag = apply([x], (b, node) => {
    const wrong = unary(b, 'not', formula.isFinite(b, node));
    return reduce(b, 'or', wrong, normalizeAxes('hasInfNan', undefined, x.rank));
  });
  return (await flag.data())[0] !== 0;
}
