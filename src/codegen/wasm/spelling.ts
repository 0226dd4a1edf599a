// How each operation is written in WebAssembly: instructions on scalars and on vectors of four. What WebAssembly has nothing for is
// made of these before (math.ts). A missing row is a type error. The meaning is the interpreter's (ir/scalar.ts).

import { CompilerBug } from '../../errors.ts';
import type { LoopOp, RegisterType, Value } from '../loop.ts';
import type { Emitter } from './emit.ts';
import type { InstructionName } from './instructions.ts';
import {
  floorDivision,
  mulhi,
  quotient,
  remainder,
  shift,
  type Operation,
  type Spelling,
} from './integers.ts';

/** Instructions for a type: on scalars and on vectors. */
type Pair = readonly [scalar: InstructionName, vector: InstructionName];

const operands = (to: Emitter, { args }: Operation): void => args.forEach((arg) => to.value(arg));

/** One instruction on all operands, by the type of the first. */
const instruction =
  (by: Partial<Record<RegisterType, Pair>>): Spelling =>
  (to, value) => {
    const { type } = value.args[0]!;
    const pair = by[type] ?? refuse(value.op, type);
    operands(to, value);
    to.f.op(pair[value.width === 1 ? 0 : 1]);
  };

const floats = (name: string): Pair => [`f32.${name}` as InstructionName, `f32x4.${name}` as InstructionName];
const ints = (name: string): Pair => [`i32.${name}` as InstructionName, `i32x4.${name}` as InstructionName];
const bits = (name: string): Pair => [`i32.${name}` as InstructionName, `v128.${name}` as InstructionName];
const float = (name: string): Spelling => instruction({ f32: floats(name) });

const cast: Spelling = (to, value) => {
  const { f } = to;
  const [arg] = value.args as [Value];
  const [from, into] = [arg.type, value.type];
  const wide = value.width > 1;
  const one = (): void => (wide ? f.splat(1) : f.int(1));
  to.value(arg);
  if (from === into) return;
  if (into === 'bool') {
    if (wide) {
      f.splat(0);
      f.op(from === 'f32' ? 'f32x4.ne' : 'i32x4.ne');
    } else if (from === 'f32') {
      f.op('f32.const', 0);
      f.op('f32.ne');
    } else {
      f.int(0);
      f.op('i32.ne');
    }
    return;
  }
  if (from === 'bool') {
    if (wide) {
      one();
      f.op('v128.and');
    }
    if (into === 'f32') f.op(wide ? 'f32x4.convert_i32x4_s' : 'f32.convert_i32_s');
    return;
  }
  if (from === 'f32') {
    const sign = into === 'u32' ? 'u' : 's';
    f.op(wide ? `i32x4.trunc_sat_f32x4_${sign}` : `i32.trunc_sat_f32_${sign}`);
    return;
  }
  if (into === 'f32') {
    const sign = from === 'u32' ? 'u' : 's';
    f.op(wide ? `f32x4.convert_i32x4_${sign}` : `f32.convert_i32_${sign}`);
  }
};

const bitcast: Spelling = (to, value) => {
  const [arg] = value.args as [Value];
  to.value(arg);
  if (value.width > 1 || (arg.type === 'f32') === (value.type === 'f32')) return;
  to.f.op(value.type === 'f32' ? 'f32.reinterpret_i32' : 'i32.reinterpret_f32');
};

/** select takes the first where the condition holds, and so does bitselect by its mask. */
const where: Spelling = (to, value) => {
  const [condition, yes, no] = value.args as [Value, Value, Value];
  for (const arg of [yes, no, condition]) to.value(arg);
  to.f.op(value.width === 1 ? 'select' : 'v128.bitselect');
};

const negate: Spelling = (to, value) => {
  const { f } = to;
  const [x] = value.args as [Value];
  if (value.type === 'f32') {
    to.value(x);
    f.op(value.width === 1 ? 'f32.neg' : 'f32x4.neg');
    return;
  }
  if (value.width > 1) {
    to.value(x);
    f.op('i32x4.neg');
    return;
  }
  f.int(0);
  to.value(x);
  f.op('i32.sub');
};

const absolute: Spelling = (to, value) => {
  const { f } = to;
  const [x] = value.args as [Value];
  to.value(x);
  if (value.type === 'u32') return;
  if (value.type === 'f32' || value.width > 1) {
    f.op(value.type === 'f32' ? (value.width === 1 ? 'f32.abs' : 'f32x4.abs') : 'i32x4.abs');
    return;
  }
  const local = f.local('x', 'i32');
  f.set(local);
  f.int(0);
  f.get(local);
  f.op('i32.sub');
  f.get(local);
  f.get(local);
  f.int(0);
  f.op('i32.lt_s');
  f.op('select');
};

/** Of integers, by selection where there is no instruction. */
const extreme =
  (kind: 'min' | 'max'): Spelling =>
  (to, value) => {
    const { f } = to;
    const { type, width } = value;
    if (type === 'bool') {
      operands(to, value);
      const name = kind === 'min' ? 'and' : 'or';
      f.op(width === 1 ? `i32.${name}` : `v128.${name}`);
      return;
    }
    if (type === 'f32' || width > 1) {
      operands(to, value);
      if (type === 'f32') f.op(width === 1 ? `f32.${kind}` : `f32x4.${kind}`);
      else f.op(`i32x4.${kind}_${type === 'u32' ? 'u' : 's'}`);
      return;
    }
    const locals = value.args.map((arg) => {
      const local = f.local('x', 'i32');
      to.value(arg);
      f.set(local);
      return local;
    }) as [number, number];
    const [a, b] = kind === 'min' ? locals : [locals[1], locals[0]];
    locals.forEach((local) => f.get(local));
    f.get(a);
    f.get(b);
    f.op(type === 'u32' ? 'i32.lt_u' : 'i32.lt_s');
    f.op('select');
  };

const not: Spelling = (to, value) => {
  const { f } = to;
  operands(to, value);
  if (value.width > 1) f.op('v128.not');
  else if (value.type === 'bool') f.op('i32.eqz');
  else {
    f.int(-1);
    f.op('i32.xor');
  }
};

/** Comparisons of bools: false < true. Masks and 0 or 1 differ in which is less. */
const compare =
  (kind: 'lt' | 'le'): Spelling =>
  (to, value) => {
    const { type } = value.args[0]!;
    const wide = value.width > 1;
    if (type === 'bool' && wide) {
      // As signed numbers the mask is less: the operands change places.
      const [a, b] = value.args as [Value, Value];
      to.value(b);
      to.value(a);
      to.f.op(`i32x4.${kind}_s`);
      return;
    }
    operands(to, value);
    if (type === 'f32') to.f.op(wide ? `f32x4.${kind}` : `f32.${kind}`);
    else {
      const sign = type === 'i32' ? 's' : 'u';
      to.f.op(wide ? `i32x4.${kind}_${sign}` : `i32.${kind}_${sign}`);
    }
  };

const equality = (kind: 'eq' | 'ne'): Spelling =>
  instruction({ f32: floats(kind), i32: ints(kind), u32: ints(kind), bool: ints(kind) });

const arithmetic = (kind: 'add' | 'sub' | 'mul'): Spelling =>
  instruction({ f32: floats(kind), i32: ints(kind), u32: ints(kind) });

const logic = (kind: 'and' | 'or' | 'xor'): Spelling =>
  instruction({ i32: bits(kind), u32: bits(kind), bool: bits(kind) });

/** Of floats, by one comparison: the first where it finds nothing. */
const bounded =
  (kind: 'pmin' | 'pmax'): Spelling =>
  (to, value) => {
    const { f } = to;
    if (value.width > 1) {
      operands(to, value);
      f.op(`f32x4.${kind}`);
      return;
    }
    const [x, bound] = value.args.map((arg) => {
      const local = f.local('x', 'f32');
      to.value(arg);
      f.set(local);
      return local;
    }) as [number, number];
    f.get(bound);
    f.get(x);
    const [low, high] = kind === 'pmin' ? [bound, x] : [x, bound];
    f.get(low);
    f.get(high);
    f.op('f32.lt');
    f.op('select');
  };

const popcount: Spelling = (to, value) => {
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
const philox: Spelling = (to, value) => {
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

const fma: Spelling = (to, value) => {
  operands(to, { ...value, args: value.args.slice(0, 2) });
  to.f.op(value.width === 1 ? 'f32.mul' : 'f32x4.mul');
  to.value(value.args[2]!);
  to.f.op(value.width === 1 ? 'f32.add' : 'f32x4.add');
};

/** What is made of other operations before it comes here. */
const expanded: Spelling = (_, { op, type }) => refuse(op, type);

const table = {
  neg: negate,
  abs: absolute,
  sign: expanded,
  floor: float('floor'),
  ceil: float('ceil'),
  round: float('nearest'),
  trunc: float('trunc'),
  exp: expanded,
  exp2: expanded,
  expm1: expanded,
  log: expanded,
  log2: expanded,
  log1p: expanded,
  sin: expanded,
  cos: expanded,
  tan: expanded,
  asin: expanded,
  acos: expanded,
  atan: expanded,
  sinh: expanded,
  cosh: expanded,
  tanh: expanded,
  erf: expanded,
  sqrt: float('sqrt'),
  rsqrt: expanded,
  recip: expanded,
  not,
  isNan: expanded,
  cast,
  bitcast,
  add: arithmetic('add'),
  sub: arithmetic('sub'),
  mul: arithmetic('mul'),
  div: (to, value) => (value.type === 'f32' ? float('div') : quotient)(to, value),
  mod: (to, value) => (value.type === 'f32' ? expanded : remainder)(to, value),
  pow: expanded,
  min: extreme('min'),
  max: extreme('max'),
  atan2: expanded,
  and: logic('and'),
  or: logic('or'),
  xor: logic('xor'),
  shl: shift('shl'),
  shr: shift('shr'),
  mulhi,
  lt: compare('lt'),
  le: compare('le'),
  eq: equality('eq'),
  ne: equality('ne'),
  where,
  fma,
  roundF16: expanded,
  roundBf16: expanded,
  roundTf32: expanded,
  packF16: expanded,
  packBf16: expanded,
  philox,
  pmin: bounded('pmin'),
  pmax: bounded('pmax'),
  popcount,
  floorDiv: floorDivision('div'),
  floorMod: floorDivision('mod'),
} as const satisfies Readonly<Record<LoopOp, Spelling>>;

/** Leaves the result of an operation on the stack; `op` may stand for the value's own where its operands are known better. */
export function spell(to: Emitter, op: LoopOp, value: Operation): void {
  table[op](to, value);
}

function refuse(op: LoopOp, type: RegisterType): never {
  throw new CompilerBug('emit-wasm', `${op} of ${type} is to be made of other operations`);
}
