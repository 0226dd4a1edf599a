// Numbers as short as they can be told apart: the fewest digits that read back as the same element.
// A double prints the f32 nearest to 0.1 as 0.10000000149011612, while no other f32 reads 0.1. The
// idea is Steele and White's (1990); here it is done by trying.

import { partType, type DType } from '../../ir/dtype.ts';
import { fromReal, type ComplexNumber, type Scalar } from '../../ir/value.ts';

/**
 * Significant digits that tell any two elements of a dtype apart; JavaScript prints doubles like
 * that by itself.
 */
const sufficientDigits: Readonly<Partial<Record<DType, number>>> = { f32: 9, f16: 5, bf16: 4 };

/** An element as text: `0.1`, `-0`, `NaN`, `9007199254740993`, `true`, `1-2i`. */
export function showElement(value: Scalar | ComplexNumber, dtype: DType): string {
  if (typeof value !== 'object') return showReal(value, dtype);
  const [re, im] = [value.re, value.im].map((part) => showReal(part, partType(dtype)));
  return `${re}${im!.startsWith('-') ? '' : '+'}${im}i`;
}

function showReal(value: Scalar, dtype: DType): string {
  if (dtype === 'bool') return String(Number(value) !== 0);
  if (Object.is(value, -0)) return '-0';
  const maxDigits = sufficientDigits[dtype];
  if (typeof value === 'bigint' || maxDigits === undefined) return String(value);
  // Whole numbers that people can read stay whole: 16777216, not 1.67772e7.
  if (!Number.isFinite(value) || (Number.isInteger(value) && Math.abs(value) < 1e9)) return String(value);
  const read = fromReal(dtype);
  for (let digits = 1; digits < maxDigits; digits++) {
    const short = Number(value.toPrecision(digits));
    if (read(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(maxDigits)));
}
