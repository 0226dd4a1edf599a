// The exponential of matrices.

import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  constant,
  full,
  fullLike,
  mul,
  reduceKeep,
  unary,
  where,
} from '../../../ir/build.ts';
import { partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply } from '../operand.ts';
import { identity } from '../../../ir/matrix.ts';
import { batchOf, stacked, unstacked } from '../matrices.ts';
import { checkMatrices, eachPart, product } from './stack.ts';

/** Halvings before the series, and squarings after it, at most. */
const most = 16;

/** The 1-norm up to which sixteen terms of the series are exact to the last digit. */
const reach = { f32: 2, f64: 0.75 } as const;

const takesMatrixExp = arg.takes<typeof matrixExp>(['x', aTensor]);

/**
 * e^A of square matrices [.., n, n], by sixteen terms of the series of A/2ˢ, squared s times (C.
 * Moler and C. Van Loan, 1978). s is each matrix's own, up to 16: what has a 1-norm beyond some
 * 100,000 (f32) or 49,000 (f64) gives NaN.
 *
 * @names matrixExp, linalg.matrixExp
 * @jax jax.scipy.linalg.expm
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.matrixExp(a);
 */
export function matrixExp(x: Tensor): Tensor {
  takesMatrixExp('matrixExp', x);
  checkMatrices('matrixExp', x, 'square');
  return apply([x], (b, node) => unstacked(b, exponential(b, stacked(b, node)), batchOf(x)));
}

function exponential(b: GraphBuilder, a: Node): Node {
  const [count, n] = dims(a) as [number, number, number];
  if (count === 0 || n === 0) return a;
  const sums = reduceKeep(b, 'sum', unary(b, 'abs', a), [1]);
  const size = formula.stopGradient(b, reduceKeep(b, 'max', sums, [2]));
  const limit = partType(a.dtype) === 'f64' ? reach.f64 : reach.f32;
  const beyond = (steps: number): Node => binary(b, 'lt', fullLike(b, size, limit * 2 ** steps), size);
  const spread = (node: Node): Node => broadcast(b, node, dims(a));
  let scale = where(b, beyond(most), fullLike(b, size, NaN), fullLike(b, size, 1));
  for (let step = 0; step < most; step++)
    scale = mul(b, scale, where(b, beyond(step), fullLike(b, size, 0.5), fullLike(b, size, 1)));
  let power = series(
    b,
    eachPart(b, a, (part) => mul(b, part, spread(scale))),
  );
  for (let step = most - 1; step >= 0; step--)
    power = where(b, spread(beyond(step)), product(b, power, power), power);
  return power;
}

/** Σ Aⁱ/i! up to i = 16, by powers up to the fourth (M. Paterson and L. Stockmeyer, 1973). */
function series(b: GraphBuilder, a: Node): Node {
  const [count, n] = dims(a) as [number, number, number];
  const second = product(b, a, a);
  const powers = [
    identity(b, count, [n, n], a.dtype),
    a,
    second,
    product(b, second, a),
    product(b, second, second),
  ];
  const factorials = [1];
  for (let i = 1; i <= 16; i++) factorials.push(factorials[i - 1]! * i);
  const block = (start: number): Node =>
    powers
      .slice(0, 4)
      .map((power, i) =>
        mul(b, power, broadcast(b, constant(b, 1 / factorials[start + i]!, a.dtype), dims(a))),
      )
      .reduce((sum, term) => add(b, sum, term));
  const last = full(b, dims(a), 1 / factorials[16]!, a.dtype);
  let sum = add(b, block(12), mul(b, powers[4]!, last));
  for (const start of [8, 4, 0]) sum = add(b, block(start), product(b, sum, powers[4]!));
  return sum;
}
