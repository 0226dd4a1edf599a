// Reductions over axes: a number, a list, or all axes when absent; reduced axes vanish unless
// `keepdim`. Sums of 16-bit floats are kept in f32 and rounded once. Integers of
// 32 bits and more keep their width and wrap (PyTorch widens to i64: ask for it with `dtype`); narrower
// integers and bool count in i32 (`formula.sumType`, which all sums go by).

import type { Floated, SizeOf, Summed } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import { cast, reduce, reduceKeep, unary } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { isComplex, isInexact, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { normalizeAxes } from '../../../ir/shape.ts';
import { aTensor, expectDType, expectTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkImaginaryKept, checkInexact, takesOne } from '../operand.ts';
import {
  type Axes,
  axesOf,
  type ReduceOptions,
  reduceOptions,
  reduction,
  dropKeptAxes,
  takesReduce,
} from './axes.ts';

export interface SumOptions<T extends DType = DType> extends ReduceOptions {
  /** The dtype to accumulate in and give; x's by default, i32 for bool and integers of 8 and 16 bits. */
  readonly dtype?: T;
}

const takesSum = arg.takes<typeof sum>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<SumOptions>({ ...reduceOptions, dtype: arg.dtype })],
);

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
  checkImaginaryKept(op, x, target);
  return reduction(op, x, axes, options, (b, node, list) => {
    const wide = cast(b, node, formula.wideType(target));
    return cast(b, reduceKeep(b, monoid, wide, list), target);
  });
}

/**
 * Σ; 0 over nothing.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sum(x, 1);
 * @example <caption>i64</caption>
 * const whole = sn.tensor([[1, 2], [3, 4]], { dtype: 'i32' });
 * sn.sum(whole, 1, { dtype: 'i64' });
 */
export function sum<D extends DType, T extends DType = Summed<D>>(
  x: Tensor<D>,
  axes?: Axes,
  options: SumOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesSum('sum', x, axes, options);
  return fold('sum', 'sum', casted('sum', x), axes, options);
}

/**
 * Π; 1 over nothing.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.prod(x, 1);
 */
export function prod<D extends DType, T extends DType = Summed<D>>(
  x: Tensor<D>,
  axes?: Axes,
  options: SumOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesSum('prod', x, axes, options);
  return fold('prod', 'prod', casted('prod', x), axes, options);
}

export interface MeanOptions<T extends DType = DType> extends ReduceOptions {
  /** The dtype to compute in and give; by default x's, which must be floats. */
  readonly dtype?: T;
}

const takesMean = arg.takes<typeof mean>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<MeanOptions>({ ...reduceOptions, dtype: arg.dtype })],
);

/**
 * Σ / n of floats, or of what becomes floats by `dtype`; NaN over nothing.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.mean(x, 1);
 * @example <caption>f32</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.mean(x, 1, { dtype: 'f32' });
 */
export function mean<D extends DType, T extends DType = Floated<D>>(
  x: Tensor<D>,
  axes?: Axes,
  options: MeanOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesMean('mean', x, axes, options);
  const { dtype } = options;
  if (dtype === undefined) checkInexact('mean', x);
  else if (!isInexact(dtype)) arg.floatDType.refuse('mean', 'dtype', dtype);
  else checkImaginaryKept('mean', x, dtype);
  return reduction('mean', x, axes, options, (b, node, list) => {
    const target = dtype ?? node.dtype;
    const wide = cast(b, node, formula.wideType(target));
    return cast(b, formula.mean(b, wide, list), target);
  });
}

/**
 * true where some element is not 0 (NaN is not); false over nothing.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.any(x, 1);
 */
export function any(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor<'bool'> {
  takesReduce('any', x, axes, options);
  return reduction('any', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'or', formula.truth(b, node), list),
  );
}

/**
 * true where no element is 0; true over nothing.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.all(x, 1);
 */
export function all(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor<'bool'> {
  takesReduce('all', x, axes, options);
  return reduction('all', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'and', formula.truth(b, node), list),
  );
}

/**
 * How many elements are not 0, in i32.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.countNonzero(x, 1);
 */
export function countNonzero(x: Tensor, axes?: Axes, options: ReduceOptions = {}): Tensor<'i32'> {
  takesReduce('countNonzero', x, axes, options);
  return reduction('countNonzero', x, axes, options, (b, node, list) =>
    reduceKeep(b, 'sum', cast(b, formula.truth(b, node), 'i32'), list),
  );
}

export interface VarOptions extends ReduceOptions {
  /**
   * The sum of squares is divided by n − correction: 1 (unbiased) by default, 0 for the population.
   */
  readonly correction?: number;
}

/** As `formula.widened`, of formulas that give real sizes of complex numbers. */
function widenedSize(b: GraphBuilder, x: Node, of: (wide: Node) => Node): Node {
  return isComplex(x.dtype) ? of(x) : formula.widened(b, x, of);
}

/** Mean squared deviation from the mean, in two passes. */
function spreadOver(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  options: VarOptions,
  root: boolean,
): Tensor {
  checkInexact(op, x);
  return reduction(op, x, axes, options, (b, node, list) =>
    widenedSize(b, node, (wide) => {
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

/**
 * Variance; unbiased unless `correction: 0`.
 *
 * @names var
 * @method var
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.var(x, 1);
 */
export function variance(x: Tensor, axes?: Axes, options: VarOptions = {}): Tensor {
  takesVariance('var', x, axes, options);
  return spreadOver('var', x, axes, options, false);
}

/**
 * Standard deviation; of the unbiased variance unless `correction: 0`.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.std(x, 1);
 */
export function std<D extends DType>(
  x: Tensor<D>,
  axes?: Axes,
  options: VarOptions = {},
): Tensor<SizeOf<Floated<D>>> {
  takesVariance('std', x, axes, options);
  return spreadOver('std', x, axes, options, true);
}

/**
 * Variance and mean over the same axes.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.varMean(x, 1);
 */
export function varMean<D extends DType>(
  x: Tensor<D>,
  axes?: Axes,
  options: VarOptions = {},
): [Tensor<SizeOf<Floated<D>>>, Tensor<Floated<D>>] {
  takesVariance('varMean', x, axes, options);
  checkInexact('varMean', x);
  const list = axesOf('varMean', axes, x);
  const [spread, centre] = recordMany([x], (b, [node]) => {
    const wide = cast(b, node!, formula.wideType(x.dtype));
    return formula
      .spreadAround(b, wide, list, options.correction ?? 1)
      .map((kept) =>
        dropKeptAxes(b, isComplex(x.dtype) ? kept : cast(b, kept, x.dtype), list, options.keepdim === true),
      );
  });
  return [spread!, centre!];
}

/**
 * log Σ eˣ, without overflow, of real or complex numbers; integers and bool count as f32.
 *
 * @names logsumexp, special.logsumexp
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.logsumexp(x, 1);
 */
export function logsumexp<D extends DType>(
  x: Tensor<D>,
  axes?: Axes,
  options: ReduceOptions = {},
): Tensor<Floated<D>> {
  takesReduce('logsumexp', x, axes, options);
  return reduction('logsumexp', x, axes, options, (b, node, list) => {
    const numbers = isInexact(node.dtype) ? node : cast(b, node, 'f32');
    return formula.widened(b, numbers, (wide) => formula.logSumExp(b, wide, list));
  });
}

/**
 * Whether some element is NaN or ±∞: one flag is reduced on the device and read back.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.hasInfNan(x);
 */
export async function hasInfNan(x: Tensor): Promise<boolean> {
  takesOne('hasInfNan', x);
  const flag = apply([x], (b, node) => {
    const wrong = unary(b, 'not', formula.isFinite(b, node));
    return reduce(b, 'or', wrong, normalizeAxes('hasInfNan', undefined, x.rank));
  });
  return (await flag.data())[0] !== 0;
}
