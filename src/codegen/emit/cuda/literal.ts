// Constants in CUDA C. NVRTC has no names for infinity and NaN without headers: they are made of
// their bits.

import type { RegisterType, Value } from '../../loop/loop.ts';
import { level, primary, type Term } from '../shared/term.ts';
import type { CudaPrelude } from './prelude.ts';
import { isLong } from './types.ts';

/** A constant in every lane. */
export function literal(
  { value, type, width, exact }: Extract<Value, { kind: 'constant' }>,
  prelude: CudaPrelude,
): Term {
  const text = isLong(type) ? longLiteral(value, type, exact) : scalarLiteral(value, type);
  if (width > 1) return primary(`${prelude.splat(type, width)}(${text})`);
  return text.startsWith('-') ? { text, level: level.unary } : primary(text);
}

function scalarLiteral(value: number, type: Exclude<RegisterType, 'f64' | 'i64' | 'u64'>): string {
  switch (type) {
    case 'bool':
      return value === 0 ? 'false' : 'true';
    case 'i32':
      // 2147483648 is no int, so its negation cannot be written.
      return (value | 0) === -2147483648 ? '(-2147483647 - 1)' : String(value | 0);
    case 'u32':
      return `${value >>> 0}u`;
    case 'f32':
      return floatLiteral(Math.fround(value));
    default:
      return type satisfies never;
  }
}

function longLiteral(value: number, type: 'f64' | 'i64' | 'u64', exact: bigint | undefined): string {
  if (type !== 'f64') {
    const whole = exact ?? BigInt(value);
    if (type === 'u64') return `${BigInt.asUintN(64, whole)}ULL`;
    // 2⁶³ is no long long, so its negation cannot be written.
    const signed = BigInt.asIntN(64, whole);
    return signed === -(2n ** 63n) ? '(-9223372036854775807LL - 1LL)' : `${signed}LL`;
  }
  if (Number.isNaN(value)) return '__longlong_as_double(0x7ff8000000000000LL)';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (!Number.isFinite(value)) return `${sign}__longlong_as_double(0x7ff0000000000000LL)`;
  const digits = String(Math.abs(value));
  return `${sign}${/[.e]/.test(digits) ? digits : `${digits}.0`}`;
}

/** The digits of the double that the f32 is: shorter ones may round past the largest f32. */
function floatLiteral(exact: number): string {
  if (Number.isNaN(exact)) return '__int_as_float(0x7fc00000)';
  if (!Number.isFinite(exact)) return `${exact < 0 ? '-' : ''}__int_as_float(0x7f800000)`;
  const digits = String(Math.abs(exact));
  const sign = exact < 0 || Object.is(exact, -0) ? '-' : '';
  return `${sign}${/[.e]/.test(digits) ? digits : `${digits}.0`}f`;
}
