// Constants in WGSL. Its constant expressions must be finite, so infinities and NaN come from
// functions of the prelude, and so does −0.

import { isWide } from '../../../ir/dtype.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';
import type { WgslPrelude } from './prelude.ts';
import { level, primary, type Term } from '../shared/term.ts';
import { narrow, typeName, type NarrowType } from './types.ts';

/** A constant in every lane. `exact`: an integer of 64 bits that the number is only near to. */
export function literal(
  value: number,
  type: RegisterType,
  width: Width,
  prelude: WgslPrelude,
  exact: bigint | undefined = undefined,
): Term {
  if (isWide(type)) {
    const bits = BigInt.asUintN(64, exact ?? BigInt(value));
    return primary(`${typeName(type, width)}(${bits & 0xffff_ffffn}u, ${bits >> 32n}u)`);
  }
  if (type === 'f32' && !Number.isFinite(Math.fround(value))) {
    const name = `${prelude.use(Number.isNaN(value) ? 'nan_F' : 'inf_F', width)}()`;
    return value < 0 ? { text: `-${name}`, level: level.unary } : primary(name);
  }
  if (type === 'f32' && Object.is(Math.fround(value), -0))
    return primary(`${prelude.use('minus_zero_F', width)}()`);
  const text = scalarLiteral(value, narrow(type));
  if (width > 1) return primary(`${typeName(type, width)}(${text})`);
  return text.startsWith('-') ? { text, level: level.unary } : primary(text);
}

function scalarLiteral(value: number, type: NarrowType): string {
  switch (type) {
    case 'bool':
      return value === 0 ? 'false' : 'true';
    case 'i32':
      // 2147483648 is no i32, so its negation cannot be written.
      return (value | 0) === -2147483648 ? 'i32(-2147483647 - 1)' : String(value | 0);
    case 'u32':
      return `${value >>> 0}u`;
    case 'f32': {
      // The digits of the double that the f32 is: shorter ones may round past the largest f32.
      const exact = Math.fround(value);
      const digits = String(Math.abs(exact));
      const sign = exact < 0 ? '-' : '';
      return `${sign}${/[.e]/.test(digits) ? digits : `${digits}.0`}${/e/.test(digits) ? 'f' : ''}`;
    }
    default:
      return type satisfies never;
  }
}
