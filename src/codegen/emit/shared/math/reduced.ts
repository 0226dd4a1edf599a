// An angle after range reduction: what the polynomials of sine, cosine and tangent are evaluated
// at.

import type { Value } from '../../../loop/loop.ts';

/**
 * x = quarter · π/2 + rest; only the low two bits of `quarter` (an integer) count. Of doubles, the
 * rest has a tail.
 */
export interface Angle {
  readonly rest: Value;
  readonly tail?: Value;
  readonly quarter: Value;
}
