// Constants in CUDA C. NVRTC has no names for infinity and NaN without headers: they are made of their bits.

import type { RegisterType, Width } from '../loop.ts';
import { level, primary, type Term } from '../term.ts';
import type { Prelude } from './prelude.ts';

/** A constant in every lane. */
export function literal(value: number, type: RegisterType, width: Width, prelude: Prelude): Term {
  const text = scalarLiteral(value, type);
  if (width > 1) return primary(`${prelude.splat(type, width)}(${text})`);
  return text.startsWith('-') ? { text, level: level.unary } : primary(text);
}

function scalarLiteral(value: number, type: RegisterType): string {
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

/** The digits of the double that the f32 is: shorter ones may round past the largest f32. */
function floatLiteral(exact: number): string {
  if (Number.isNaN(exact)) return '__int_as_float(0x7fc00000)';
  if (!Number.isFinite(exact)) return `${exact < 0 ? '-' : ''}__int_as_float(0x7f800000)`;
  const digits = String(Math.abs(exact));
  const sign = exact < 0 || Object.is(exact, -0) ? '-' : '';
  return `${sign}${/[.e]/.test(digits) ? digits : `${digits}.0`}f`;
}
