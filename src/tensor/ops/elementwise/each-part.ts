// Operations on complex tensors that treat real and imaginary parts as two real tensors.

import { complex as join, imag as imagPart, real as realPart } from '../../../ir/build.ts';
import { apply } from '../operand.ts';
import type { Tensor } from '../../tensor.ts';

/** An operation on the real part and one on the imaginary part. @internal */
export function eachPart(x: Tensor, part: (x: Tensor) => Tensor): Tensor {
  const re = part(apply([x], (b, z) => realPart(b, z)));
  const im = part(apply([x], (b, z) => imagPart(b, z)));
  return apply([re, im], (b, p, q) => join(b, p, q));
}
