// How each operation is written in WebAssembly: instructions on scalars, and on the lanes of a
// v128. The op's row (ir/ops.ts) names the instruction where one does, or says that the op is made
// of others before it comes here (shared/math/math.ts); the others have a row here. The meaning is the
// interpreter's (ir/interpret/scalar.ts).

import { CompilerBug } from '../../../errors.ts';
import { elementwiseRows, mapRows, type ElementwiseOp, type WrittenAs } from '../../../ir/ops.ts';
import type { LoopOp, RegisterOp, RegisterType, Value } from '../../loop/loop.ts';
import { cast } from './casts.ts';
import type { Emitter } from './emitter.ts';
import type { InstructionName } from './module/instructions.ts';
import {
  floorDivision,
  mulhi,
  quotient,
  remainder,
  shift,
  type WasmOperation,
  type WasmSpelling,
} from './integers.ts';
import { longMask, narrowMask } from './masks.ts';
import { ofWords } from './words.ts';
import { isLong } from '../../loop/register.ts';
import { isUnsigned, laneShape, numberType, valueType } from './registers.ts';

const operands = (to: Emitter, { args }: WasmOperation): void => args.forEach((arg) => to.value(arg));

/** Operands as locals. */
const held = (to: Emitter, { args }: WasmOperation): number[] =>
  args.map((arg) => {
    const local = to.f.local('x', valueType(arg));
    to.value(arg);
    to.f.set(local);
    return local;
  });

/** One instruction on all operands, which all types of the operation have. */
const instruction =
  (name: 'add' | 'sub' | 'mul'): WasmSpelling =>
  (to, value) => {
    operands(to, value);
    const { type, width } = value;
    to.f.op(width === 1 ? `${numberType(type)}.${name}` : `${laneShape(type)}.${name}`);
  };

/** One instruction on floats. */
const float =
  (name: 'floor' | 'ceil' | 'nearest' | 'trunc' | 'sqrt' | 'div' | 'min' | 'max'): WasmSpelling =>
  (to, value) => {
    operands(to, value);
    const wide = value.width > 1;
    if (value.type === 'f64') to.f.op(wide ? `f64x2.${name}` : `f64.${name}`);
    else to.f.op(wide ? `f32x4.${name}` : `f32.${name}`);
  };

const bitcast: WasmSpelling = (to, value) => {
  const [arg] = value.args as [Value];
  to.value(arg);
  const [from, into] = [numberType(arg.type), numberType(value.type)];
  if (value.width > 1 || from === into) return;
  to.f.op(`${into}.reinterpret_${from}` as InstructionName);
};

/** select takes the first where the condition holds, and so does bitselect by its mask. */
const where: WasmSpelling = (to, value) => {
  const [condition, yes, no] = value.args as [Value, Value, Value];
  for (const arg of [yes, no]) to.value(arg);
  if (value.width > 1 && isLong(value.type)) longMask(to, condition);
  else to.value(condition);
  to.f.op(value.width === 1 ? 'select' : 'v128.bitselect');
};

const negate: WasmSpelling = (to, value) => {
  const { f } = to;
  const [x] = value.args as [Value];
  const number = numberType(value.type);
  if (value.width === 1 && (number === 'i32' || number === 'i64')) {
    f.whole(number, 0);
    to.value(x);
    f.op(`${number}.sub`);
    return;
  }
  to.value(x);
  if (value.width > 1) f.op(`${laneShape(value.type)}.neg`);
  else if (number === 'f32' || number === 'f64') f.op(`${number}.neg`);
};

const absolute: WasmSpelling = (to, value) => {
  const { f } = to;
  const [x] = value.args as [Value];
  const number = numberType(value.type);
  to.value(x);
  if (isUnsigned(value.type)) return;
  if (value.width > 1) f.op(`${laneShape(value.type)}.abs`);
  else if (number === 'f32' || number === 'f64') f.op(`${number}.abs`);
  else {
    const local = f.local('x', number);
    f.set(local);
    f.whole(number, 0);
    f.get(local);
    f.op(`${number}.sub`);
    f.get(local);
    f.get(local);
    f.whole(number, 0);
    f.op(`${number}.lt_s`);
    f.op('select');
  }
};

/** A number whose order among others is plain. */
const isBound = (value: Value): boolean =>
  value.kind === 'constant' && value.value !== 0 && !Number.isNaN(value.value);

/** Of integers, by selection where there is no instruction. */
const extreme =
  (kind: 'min' | 'max'): WasmSpelling =>
  (to, value) => {
    const { f } = to;
    const { type, width } = value;
    if (type === 'f32' || type === 'f64') {
      const [x, y] = value.args as [Value, Value];
      // One instruction instead of seven: NaN is passed on, and only zeros differ in order.
      if (isBound(y)) bounded(`p${kind}`)(to, value);
      else if (isBound(x)) bounded(`p${kind}`)(to, { ...value, args: [y, x] });
      else float(kind)(to, value);
      return;
    }
    if (type === 'bool') {
      operands(to, value);
      const name = kind === 'min' ? 'and' : 'or';
      f.op(width === 1 ? `i32.${name}` : `v128.${name}`);
      return;
    }
    if (width > 1 && !isLong(type)) {
      operands(to, value);
      f.op(`i32x4.${kind}_${type === 'u32' ? 'u' : 's'}`);
      return;
    }
    const locals = held(to, value);
    const parts = locals.map((local, i) => to.held(local, value.args[i]!));
    const [low, high] = kind === 'min' ? parts : [parts[1]!, parts[0]!];
    locals.forEach((local) => f.get(local));
    const less: WasmOperation = { kind: 'op', op: 'lt', args: [low!, high!], type: 'bool', width };
    if (width > 1) longMask(to, less);
    else to.value(less);
    f.op(width === 1 ? 'select' : 'v128.bitselect');
  };

const not: WasmSpelling = (to, value) => {
  const { f } = to;
  operands(to, value);
  const number = numberType(value.type);
  if (value.width > 1) f.op('v128.not');
  else if (value.type === 'bool') f.op('i32.eqz');
  else if (number === 'i32' || number === 'i64') {
    f.whole(number, -1);
    f.op(`${number}.xor`);
  }
};

/** Less, or not greater. */
const ordered =
  (kind: 'lt' | 'le'): WasmSpelling =>
  (to, value) => {
    const { f } = to;
    const { type } = value.args[0]!;
    const sign = isUnsigned(type) ? 'u' : 's';
    const number = numberType(type);
    if (value.width === 1) {
      operands(to, value);
      if (number === 'f32' || number === 'f64') f.op(`${number}.${kind}`);
      else f.op(`${number}.${kind}_${sign}`);
      return;
    }
    switch (type) {
      case 'f32':
        operands(to, value);
        f.op(`f32x4.${kind}`);
        return;
      case 'i32':
      case 'u32':
        operands(to, value);
        f.op(`i32x4.${kind}_${sign}`);
        return;
      case 'bool':
        // false < true, but as signed numbers the mask is less: the operands change places.
        for (const arg of value.args.toReversed()) to.value(arg);
        f.op(`i32x4.${kind}_s`);
        return;
      case 'f64':
      case 'i64':
      case 'u64':
        longMask(to, value);
        narrowMask(to);
        return;
      default:
        return type satisfies never;
    }
  };

const equality =
  (kind: 'eq' | 'ne'): WasmSpelling =>
  (to, value) => {
    const { type } = value.args[0]!;
    if (value.width > 1 && isLong(type)) {
      longMask(to, value);
      narrowMask(to);
      return;
    }
    operands(to, value);
    if (value.width === 1) to.f.op(`${numberType(type)}.${kind}`);
    else to.f.op(type === 'f32' ? `f32x4.${kind}` : `i32x4.${kind}`);
  };

const logic =
  (kind: 'and' | 'or' | 'xor'): WasmSpelling =>
  (to, value) => {
    operands(to, value);
    const name = isLong(value.type) ? 'i64' : 'i32';
    to.f.op(value.width === 1 ? `${name}.${kind}` : `v128.${kind}`);
  };

/** Of floats, by one comparison: the first where it finds nothing. */
const bounded =
  (kind: 'pmin' | 'pmax'): WasmSpelling =>
  (to, value) => {
    const { f } = to;
    const name = value.type === 'f64' ? 'f64' : 'f32';
    if (value.width > 1) {
      operands(to, value);
      f.op(name === 'f64' ? `f64x2.${kind}` : `f32x4.${kind}`);
      return;
    }
    const [x, bound] = held(to, value) as [number, number];
    f.get(bound);
    f.get(x);
    const [low, high] = kind === 'pmin' ? [bound, x] : [x, bound];
    f.get(low);
    f.get(high);
    f.op(`${name}.lt`);
    f.op('select');
  };

const popcount: WasmSpelling = (to, value) => {
  const { f } = to;
  operands(to, value);
  if (value.width === 1) {
    f.op('i32.popcnt');
    return;
  }
  f.op('i8x16.popcnt');
  f.op('i16x8.extadd_pairwise_i8x16_u');
  f.op('i32x4.extadd_pairwise_i16x8_u');
};

/** Four words of a block, or the one of an element. */
const philox: WasmSpelling = (to, value) => {
  const { f } = to;
  const index = value.args[4]!;
  const at = f.local('element', 'i32');
  value.args.slice(0, 4).forEach((arg) => to.value(arg));
  to.value(index);
  f.tee(at);
  f.int(2);
  f.op('i32.shr_u');
  to.call('philox');
  if (value.width > 1) return;
  const block = f.local('block', 'v128');
  f.set(block);
  const word = (lane: number): void => {
    f.get(block);
    f.op('i32x4.extract_lane', lane);
  };
  const bit = (mask: number): void => {
    f.get(at);
    f.int(mask);
    f.op('i32.and');
  };
  for (const low of [2, 0]) {
    word(low + 1);
    word(low);
    bit(1);
    f.op('select');
  }
  bit(2);
  f.op('select');
};

/** What only kernels over blocks need. */
const wordwise =
  (op: keyof typeof ofWords): WasmSpelling =>
  (to, value) =>
    ofWords[op](to, value);

/** What is made of other operations before it comes here. */
const expanded: WasmSpelling = (_, { op, type }) => refuse(op, type);

/** An instruction on floats, another spelling on integers. */
const ofFloats =
  (floats: WasmSpelling, integers: WasmSpelling): WasmSpelling =>
  (to, value) =>
    (value.type === 'f32' || value.type === 'f64' ? floats : integers)(to, value);

/**
 * What is more than an instruction on floats, and not made of other operations: a missing row is a
 * type error.
 */
const own: { readonly [K in WrittenAs<'wasm'> | RegisterOp]: WasmSpelling } = {
  neg: negate,
  abs: absolute,
  not,
  cast,
  bitcast,
  add: instruction('add'),
  sub: instruction('sub'),
  mul: instruction('mul'),
  div: ofFloats(float('div'), quotient),
  mod: ofFloats(expanded, remainder),
  min: extreme('min'),
  max: extreme('max'),
  and: logic('and'),
  or: logic('or'),
  xor: logic('xor'),
  shl: shift('shl'),
  shr: shift('shr'),
  mulhi,
  lt: ordered('lt'),
  le: ordered('le'),
  eq: equality('eq'),
  ne: equality('ne'),
  where,
  fma,
  roundF16: expanded,
  roundBf16: expanded,
  roundTf32: expanded,
  exp2Normal: expanded,
  recipNormal: expanded,
  packF16: expanded,
  packBf16: expanded,
  unpackF16: wordwise('unpackF16'),
  byteU: wordwise('byteU'),
  byteS: wordwise('byteS'),
  evenI8: wordwise('evenI8'),
  oddI8: wordwise('oddI8'),
  dotI16: wordwise('dotI16'),
  philox,
  pmin: bounded('pmin'),
  pmax: bounded('pmax'),
  popcount,
  floorDiv: floorDivision('div'),
  floorMod: floorDivision('mod'),
};

function spellingOf(op: ElementwiseOp): WasmSpelling {
  const { wasm } = elementwiseRows[op];
  if (wasm === 'own') return own[op as WrittenAs<'wasm'>];
  return wasm === 'math' || wasm === 'formula' ? expanded : float(wasm);
}

const table: Readonly<Record<LoopOp, WasmSpelling>> = { ...own, ...mapRows(spellingOf) };

/**
 * Leaves the result of an operation on the stack; `op` may stand for the value's own where its
 * operands are known better.
 */
export function spell(to: Emitter, op: LoopOp, value: WasmOperation): void {
  table[op](to, value);
}

/** Fused or not, as the machine has it: relaxed SIMD. */
function fma(to: Emitter, { args, type, width }: WasmOperation): void {
  if (type !== 'f32' || width === 1) refuse('fma', type);
  for (const arg of args) to.value(arg);
  to.f.op('f32x4.relaxed_madd');
}

function refuse(op: LoopOp, type: RegisterType): never {
  throw new CompilerBug('emit-wasm', `${op} of ${type} is to be made of other operations`);
}
