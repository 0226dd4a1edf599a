// Determinants, by elimination.

import * as arg from '../../../ir/arguments.ts';
import { binary, cast, full, mul, reduce, reshape, unary, where } from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { diagonalOf, sizes } from '../../../ir/matrix.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply } from '../operand.ts';
import { determinant, luParts, signOf } from './formula.ts';
import { batchOf, checkSquare, stacked } from '../matrices.ts';

const takesOne = arg.takes<(x: Tensor) => Tensor>(['x', aTensor]);

/**
 * The determinant of each matrix; 0 where it is singular, with the adjugate as derivative.
 *
 * @names det, linalg.det
 * @jax jnp.linalg.det
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.det(a);
 */
export function det(x: Tensor): Tensor {
  takesOne('det', x);
  checkSquare('det', x);
  return apply([x], (b, node) => reshape(b, determinant(b, stacked(b, node)), batchOf(x)));
}

/**
 * The sign of the determinant (a complex number of modulus 1 for complex matrices), and the logarithm
 * of its modulus, which is −∞ for 0.
 *
 * @names slogdet, linalg.slogdet
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.slogdet(a);
 */
export function slogdet(x: Tensor): [sign: Tensor, logabsdet: Tensor] {
  takesOne('slogdet', x);
  checkSquare('slogdet', x);
  const [sign, logarithm] = recordMany([x], (b, [node]) => {
    const parts = signAndLogarithm(b, stacked(b, node!));
    return parts.map((part) => reshape(b, part, batchOf(x)));
  });
  return [sign!, logarithm!];
}

/**
 * log det A; NaN where a real determinant is negative, the main branch of complex ones.
 *
 * @names logdet, linalg.logdet
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.logdet(a);
 */
export function logdet(x: Tensor): Tensor {
  takesOne('logdet', x);
  checkSquare('logdet', x);
  return apply([x], (b, node) => {
    const [sign, logarithm] = signAndLogarithm(b, stacked(b, node));
    if (isComplex(x.dtype)) {
      const whole = binary(b, 'add', unary(b, 'log', sign), cast(b, logarithm, x.dtype));
      return reshape(b, whole, batchOf(x));
    }
    const negative = binary(b, 'lt', sign, 0);
    const nan = full(b, dims(logarithm), NaN, x.dtype);
    return reshape(b, where(b, negative, nan, logarithm), batchOf(x));
  });
}

function signAndLogarithm(b: GraphBuilder, a: Node): readonly [sign: Node, logarithm: Node] {
  const [lines, n] = sizes(a);
  if (n === 0) return [full(b, [lines], 1, a.dtype), full(b, [lines], 0, partType(a.dtype))];
  const { factors, exchanges } = luParts(b, a);
  const pivots = diagonalOf(b, factors);
  const signs = reduce(b, 'prod', unary(b, 'sign', pivots), [1]);
  const exchanged = signOf(b, exchanges, a.dtype);
  return [
    mul(b, cast(b, signs, a.dtype), exchanged),
    reduce(b, 'sum', unary(b, 'log', unary(b, 'abs', pivots)), [1]),
  ];
}
