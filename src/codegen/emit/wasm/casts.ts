// Conversions between register types. Floats become integers by truncation that saturates, NaN 0;
// integers wrap, and become the nearest float. Between lanes of different widths, the low half of a
// v128 counts.

import type { RegisterType, Value } from '../../loop/loop.ts';
import type { Emitter } from './emitter.ts';
import { lanewise, type WasmSpelling } from './integers.ts';
import { lowWords, narrowMask } from './masks.ts';
import { isLong } from '../../loop/register.ts';
import { isUnsigned, laneShape, numberType } from './registers.ts';

const isFloat = (type: RegisterType): type is 'f32' | 'f64' => type === 'f32' || type === 'f64';

/** Leaves the argument in the type of the result. */
export const cast: WasmSpelling = (to, value) => {
  const [arg] = value.args as [Value];
  const [from, into] = [arg.type, value.type];
  if (value.width === 1) {
    to.value(arg);
    castScalar(to, from, into);
    return;
  }
  // Of floats and integers of 64 bits, scalars alone are converted.
  const isApart = isFloat(from) !== isFloat(into) && into !== 'bool' && from !== 'bool';
  if (isApart && [from, into].some((type) => numberType(type) === 'i64')) {
    lanewise(to, value, (args) => cast(to, { ...value, args, width: 1 }));
    return;
  }
  to.value(arg);
  castLanes(to, from, into);
};

function castScalar({ f }: Emitter, from: RegisterType, into: RegisterType): void {
  const [a, b] = [numberType(from), numberType(into)];
  if (from === into) return;
  if (into === 'bool') {
    if (isFloat(from)) f.op(`${from}.const`, 0);
    else f.whole(isLong(from) ? 'i64' : 'i32', 0);
    f.op(`${a}.ne`);
    return;
  }
  if (a === b) return;
  const sign = (type: RegisterType): 's' | 'u' => (isUnsigned(type) ? 'u' : 's');
  if (isFloat(from) && isFloat(into)) f.op(into === 'f32' ? 'f32.demote_f64' : 'f64.promote_f32');
  else if (isFloat(from)) f.op(`${isLong(into) ? 'i64' : 'i32'}.trunc_sat_${from}_${sign(into)}`);
  else if (isFloat(into)) f.op(`${into}.convert_${isLong(from) ? 'i64' : 'i32'}_${sign(from)}`);
  else if (isLong(into)) f.op(`i64.extend_i32_${sign(from)}`);
  else f.op('i32.wrap_i64');
}

function castLanes(to: Emitter, from: RegisterType, into: RegisterType): void {
  const { f } = to;
  if (from === into) return;
  if (into === 'bool') {
    f.splat(0);
    f.op(`${laneShape(from)}.ne`);
    if (isLong(from)) narrowMask(to);
    return;
  }
  if (from === 'bool') {
    f.splat(1);
    f.op('v128.and');
    castLanes(to, 'u32', into);
    return;
  }
  const [before, after] = [isUnsigned(from) ? 'u' : 's', isUnsigned(into) ? 'u' : 's'] as const;
  switch (from) {
    case 'f32':
      if (into === 'f64') f.op('f64x2.promote_low_f32x4');
      else f.op(`i32x4.trunc_sat_f32x4_${after}`);
      return;
    case 'f64':
      if (into === 'f32') f.op('f32x4.demote_f64x2_zero');
      else f.op(`i32x4.trunc_sat_f64x2_${after}_zero`);
      return;
    case 'i32':
    case 'u32':
      if (into === 'f32') f.op(`f32x4.convert_i32x4_${before}`);
      else if (into === 'f64') f.op(`f64x2.convert_low_i32x4_${before}`);
      else if (isLong(into)) f.op(`i64x2.extend_low_i32x4_${before}`);
      return;
    case 'i64':
    case 'u64':
      if (!isLong(into)) lowWords(to);
      return;
    default:
      from satisfies never;
  }
}
