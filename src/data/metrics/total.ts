// Sums over many batches in f32: with each sum goes what was lost by rounding it (Knuth's two-sum,
// The Art of Computer Programming 2, 4.2.2), so that a million batches are summed as well as one.

import { zeros } from '../../tensor/ops/creation/creation.ts';
import { add, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import type { Tensor, TensorLike } from '../../tensor/tensor.ts';

/** A sum, and what has to be added to it. */
export interface Total {
  readonly sum: Tensor;
  readonly rest: Tensor;
}

export function zeroTotal(shape: readonly number[] = []): Total {
  return { sum: zeros(shape), rest: zeros(shape) };
}

/** The total with another number added. */
export function plus({ sum, rest }: Total, value: TensorLike): Total {
  const grown = add(sum, value);
  const taken = sub(grown, sum);
  const lost = add(sub(sum, sub(grown, taken)), sub(value, taken));
  return { sum: grown, rest: add(rest, lost) };
}

/** The sum of two totals. */
export function together(a: Total, b: Total): Total {
  const { sum, rest } = plus(a, b.sum);
  return { sum, rest: add(rest, b.rest) };
}

export function valueOf({ sum, rest }: Total): Tensor {
  return add(sum, rest);
}
