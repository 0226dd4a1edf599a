// Running reductions along an axis. 16-bit floats are accumulated in f32; integers as sums of them are.

import type { Summed } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import { binary, cast, full, reshape, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { isFloat, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import type { Monoid } from '../../../ir/ops.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { runningLogSum } from '../../formula/running-log-sum.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkFloat, checkImaginaryKept, checkNotComplex, show } from '../operand.ts';

export interface ScanOptions<T extends DType = DType> {
  /** From the last element to the first; false by default. */
  readonly reverse?: boolean;
  /** Without the element itself: the first result is the identity; false by default. */
  readonly exclusive?: boolean;
  /** The dtype to accumulate in and give; x's by default, i32 for bool and integers of 8 and 16 bits. */
  readonly dtype?: T;
}

function running(b: GraphBuilder, monoid: Monoid, x: Node, axis: number, options: ScanOptions = {}): Node {
  return b.add('scan', [x], {
    monoid,
    axis,
    reverse: options.reverse === true,
    exclusive: options.exclusive === true,
  });
}

function cumulate(op: string, monoid: 'sum' | 'prod', x: Tensor, axis: number, options: ScanOptions): Tensor {
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const target = options.dtype ?? formula.sumType(x.dtype);
  if (target === 'bool')
    throw new TensorError('E_DTYPE', op, `cannot accumulate in bool: ${show(x)}`, "dtype: 'i32'");
  checkImaginaryKept(op, x, target);
  return apply([x], (b, node) => {
    const wide = cast(b, node, formula.wideType(target));
    // Rank 0 is scanned as one element.
    const row = x.rank === 0 ? reshape(b, wide, [1]) : wide;
    return cast(b, reshape(b, running(b, monoid, row, at, options), x.shape), target);
  });
}

const takesCumsum = arg.takes<typeof cumsum>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ScanOptions>({ reverse: arg.flag, exclusive: arg.flag, dtype: arg.dtype })],
);

/**
 * Running sum.
 *
 * @method
 * @jax jnp.cumsum, jnp.cumulative_sum
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cumsum(x, 1);
 */
export function cumsum<D extends DType, T extends DType = Summed<D>>(
  x: Tensor<D>,
  axis: number,
  options: ScanOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesCumsum('cumsum', x, axis, options);
  return cumulate('cumsum', 'sum', casted('cumsum', x), axis, options);
}

/**
 * Running product.
 *
 * @method
 * @jax jnp.cumprod, jnp.cumulative_prod
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cumprod(x, 1);
 */
export function cumprod<D extends DType, T extends DType = Summed<D>>(
  x: Tensor<D>,
  axis: number,
  options: ScanOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesCumsum('cumprod', x, axis, options);
  return cumulate('cumprod', 'prod', casted('cumprod', x), axis, options);
}

/**
 * A running extremum and the i32 place of the element that holds it: the latest of equals; NaN,
 * once met, stays. The place is the last one so far whose element equals the running extremum.
 */
function runningExtremum(op: string, monoid: 'min' | 'max', x: Tensor, axis: number): [Tensor, Tensor] {
  checkNotComplex(op, x);
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const line = x.rank === 0 ? [1] : x.shape;
  const [values, places] = recordMany([x], (b, [given]) => {
    const node = reshape(b, given!, line);
    const fixed = formula.stopGradient(b, x.dtype === 'bool' ? cast(b, node, 'i32') : node);
    const extreme = running(b, monoid, fixed, at);
    let holds = binary(b, 'eq', fixed, extreme);
    if (isFloat(x.dtype)) holds = binary(b, 'or', holds, formula.isNan(b, fixed));
    const candidate = where(b, holds, formula.iota(b, line, at), full(b, line, 0, 'i32'));
    const place = running(b, 'max', candidate, at);
    const value = b.add('gather', [node, place], { axis: at }) as Node;
    return [reshape(b, value, x.shape), reshape(b, place, x.shape)];
  });
  return [values!, places!];
}

const takesCummax = arg.takes<typeof cummax>(['the operand', aTensor], ['axis', arg.inside()]);

/**
 * Running maximum and its i32 places (the latest of equals).
 *
 * @jax lax.cummax
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cummax(x, 1);
 */
export function cummax<D extends DType>(
  x: Tensor<D>,
  axis: number,
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesCummax('cummax', x, axis);
  return runningExtremum('cummax', 'max', x, axis);
}

/**
 * Running minimum and its i32 places (the latest of equals).
 *
 * @jax lax.cummin
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cummin(x, 1);
 */
export function cummin<D extends DType>(
  x: Tensor<D>,
  axis: number,
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesCummax('cummin', x, axis);
  return runningExtremum('cummin', 'min', x, axis);
}

/**
 * log of the running sum of eˣ, without overflow.
 *
 * @jax lax.cumlogsumexp
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.logcumsumexp(x, 1);
 */
export function logcumsumexp<D extends DType>(x: Tensor<D>, axis: number): Tensor<D> {
  takesCummax('logcumsumexp', x, axis);
  checkFloat('logcumsumexp', x);
  const at = normalizeAxis('logcumsumexp', axis, Math.max(1, x.rank));
  const row = x.rank === 0 ? [1] : x.shape;
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) => reshape(b, runningLogSum(b, reshape(b, wide, row), at), x.shape)),
  );
}
