// What changes nothing when a monoid combines it.

import { integerRange, isFloat, isWide, type DType } from '../dtype.ts';
import type { Monoid } from '../ops.ts';
import { fromInteger, type Scalar } from '../value.ts';

/** The monoid's identity, an element of the dtype. */
export function identityOf(monoid: Monoid, dtype: DType): Scalar {
  const element = (x: bigint): Scalar => (isWide(dtype) ? x : Number(x));
  switch (monoid) {
    case 'sum':
    case 'or':
      return element(0n);
    case 'prod':
      return element(1n);
    case 'and':
      return dtype === 'bool' ? 1 : fromInteger(dtype)(-1);
    case 'min':
      return isFloat(dtype) ? Infinity : element(integerRange(dtype)[1]);
    case 'max':
      return isFloat(dtype) ? -Infinity : element(integerRange(dtype)[0]);
  }
}
