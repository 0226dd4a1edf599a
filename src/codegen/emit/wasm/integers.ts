// Operations on integers that take more than an instruction: quotients with every divisor, rounding
// toward −∞, shifts by any count, upper halves of products. Vectors are computed lane by lane where
// WebAssembly has no SIMD instruction.

import type { Value } from '../../loop/loop.ts';
import type { Emitter } from './emitter.ts';
import { isLong } from '../../loop/register.ts';
import { isUnsigned, laneShape } from './registers.ts';

export type WasmOperation = Extract<Value, { kind: 'op' }>;
/** Leaves the result of an operation on the stack. */
export type WasmSpelling = (to: Emitter, value: WasmOperation) => void;

/** Each lane on its own, through scalars: what vectors have no instruction for. */
export function lanewise(to: Emitter, value: WasmOperation, each: (args: readonly Value[]) => void): void {
  const { f } = to;
  const shape = laneShape(value.type);
  const locals = value.args.map((arg) => {
    if (arg.kind === 'constant') return arg;
    const local = f.local('lanes', 'v128');
    to.value(arg);
    f.set(local);
    return local;
  });
  for (let lane = 0; lane < value.width; lane++) {
    const args = value.args.map((arg, i): Value => {
      const local = locals[i]!;
      if (typeof local !== 'number') return { ...arg, width: 1 } as Value;
      return { kind: 'lane', arg: to.held(local, arg), lane, type: arg.type, width: 1 };
    });
    each(args);
    if (lane === 0) f.op(`${shape}.splat`);
    else f.op(`${shape}.replace_lane`, lane);
  }
}

/** A quotient or remainder of integers: a divisor of 0 gives x, or 0; INT_MIN by −1 wraps. */
const division =
  (kind: 'div' | 'rem'): WasmSpelling =>
  (to, value) => {
    if (value.width > 1) {
      lanewise(to, value, (args) => division(kind)(to, { ...value, args, width: 1 }));
      return;
    }
    const { f } = to;
    const [x, y] = value.args as [Value, Value];
    const sign = isUnsigned(value.type) ? 'u' : 's';
    const number = isLong(value.type) ? 'i64' : 'i32';
    if (y.kind === 'constant' && y.value !== 0 && y.value !== -1) {
      value.args.forEach((arg) => to.value(arg));
      f.op(`${number}.${kind}_${sign}`);
      return;
    }
    const [a, b] = [f.local('dividend', number), f.local('divisor', number)];
    to.value(x);
    f.set(a);
    to.value(y);
    f.set(b);
    f.get(b);
    // By 0 or −1 nothing needs to be divided.
    f.whole(number, 1);
    f.op(`${number}.add`);
    f.whole(number, 2);
    f.op(`${number}.lt_u`);
    f.either(
      () => {
        if (kind === 'rem' && sign === 's') f.whole(number, 0);
        else if (sign === 's') {
          f.whole(number, 0);
          f.get(a);
          f.op(`${number}.sub`);
          f.get(a);
          f.get(b);
          f.whole(number, 0);
          f.op(`${number}.ne`);
          f.op('select');
        } else {
          // Unsigned −1 is the largest number: it divides only itself.
          f.get(b);
          f.op(`${number}.eqz`);
          f.either(
            () => (kind === 'div' ? f.get(a) : f.whole(number, 0)),
            () => {
              f.get(a);
              f.get(b);
              f.op(`${number}.${kind}_u`);
            },
            number,
          );
        }
      },
      () => {
        f.get(a);
        f.get(b);
        f.op(`${number}.${kind}_${sign}`);
      },
      number,
    );
  };

export const quotient: WasmSpelling = division('div');
export const remainder: WasmSpelling = division('rem');

/** Toward −∞, by a positive constant: powers of two shift. */
export const floorDivision =
  (kind: 'div' | 'mod'): WasmSpelling =>
  (to, value) => {
    const { f } = to;
    const [x, y] = value.args as [Value, Value];
    const by = y.kind === 'constant' ? y.value : 0;
    const isPower = (by & (by - 1)) === 0;
    const wide = value.width > 1;
    if (isPower) {
      to.value(x);
      if (kind === 'div') {
        f.int(Math.log2(by));
        f.op(
          wide
            ? value.type === 'u32'
              ? 'i32x4.shr_u'
              : 'i32x4.shr_s'
            : value.type === 'u32'
              ? 'i32.shr_u'
              : 'i32.shr_s',
        );
      } else {
        if (wide) f.splat(by - 1);
        else f.int(by - 1);
        f.op(wide ? 'v128.and' : 'i32.and');
      }
      return;
    }
    if (wide) {
      lanewise(to, value, (args) => floorDivision(kind)(to, { ...value, args, width: 1 }));
      return;
    }
    if (value.type === 'u32') {
      (kind === 'div' ? quotient : remainder)(to, value);
      return;
    }
    const [a, r] = [f.local('dividend', 'i32'), f.local('rest', 'i32')];
    to.value(x);
    f.tee(a);
    f.int(by);
    f.op('i32.rem_s');
    f.set(r);
    if (kind === 'mod') {
      // A negative rest is a divisor too small.
      f.get(r);
      f.get(r);
      f.int(31);
      f.op('i32.shr_s');
      f.int(by);
      f.op('i32.and');
      f.op('i32.add');
      return;
    }
    f.get(a);
    f.int(by);
    f.op('i32.div_s');
    f.get(r);
    f.int(31);
    f.op('i32.shr_s');
    f.op('i32.add');
  };

/** Counts below 0 or past the width shift everything out. */
export const shift =
  (to: 'shl' | 'shr'): WasmSpelling =>
  (emitter, value) => {
    const { f } = emitter;
    const [x, y] = value.args as [Value, Value];
    const number = isLong(value.type) ? 'i64' : 'i32';
    const bits = number === 'i64' ? 64 : 32;
    const name = to === 'shl' ? 'shl' : isUnsigned(value.type) ? 'shr_u' : 'shr_s';
    if (y.kind === 'constant' && y.value >= 0 && y.value < bits) {
      emitter.value(x);
      // Counts of lanes have 32 bits.
      f.whole(value.width === 1 ? number : 'i32', y.value);
      if (value.width === 1) f.op(`${number}.${name}`);
      else f.op(number === 'i64' ? `i64x2.${name}` : `i32x4.${name}`);
      return;
    }
    if (value.width > 1) {
      lanewise(emitter, value, (args) => shift(to)(emitter, { ...value, args, width: 1 }));
      return;
    }
    const [a, n] = [f.local('shifted', number), f.local('count', number)];
    emitter.value(x);
    f.set(a);
    emitter.value(y);
    f.set(n);
    f.get(a);
    f.get(n);
    f.op(`${number}.${name}`);
    if (name === 'shr_s') {
      f.get(a);
      f.whole(number, bits - 1);
      f.op(`${number}.shr_s`);
    } else f.whole(number, 0);
    f.get(n);
    f.whole(number, bits);
    f.op(`${number}.lt_u`);
    f.op('select');
  };

/** The upper half of a product. */
export const mulhi: WasmSpelling = (to, value) => {
  const { f } = to;
  const sign = value.type === 'u32' ? 'u' : 's';
  if (value.width === 1) {
    for (const arg of value.args) {
      to.value(arg);
      f.op(`i64.extend_i32_${sign}`);
    }
    f.op('i64.mul');
    f.int(32);
    f.op('i64.extend_i32_u');
    f.op('i64.shr_u');
    f.op('i32.wrap_i64');
    return;
  }
  const locals = value.args.map((arg) => {
    const local = f.local('factor', 'v128');
    to.value(arg);
    f.set(local);
    return local;
  });
  for (const half of ['low', 'high'] as const) {
    locals.forEach((local) => f.get(local));
    f.op(`i64x2.extmul_${half}_i32x4_${sign}`);
  }
  // The odd words of both.
  f.op('i8x16.shuffle', 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
};
