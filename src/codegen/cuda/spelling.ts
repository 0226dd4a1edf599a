// How each operation is written in CUDA C: an operator, a function of CUDA's own, or one of the prelude where those differ from the
// interpreter's meaning (ir/scalar.ts). Rows spell scalars; a vector's function applies its row to every lane. A missing row is a
// type error.

import type { LoopOp, RegisterType, Width } from '../loop.ts';
import { isPowerOfTwo } from '../ranges.ts';
import { call, choice, infix, prefix, primary, type BinaryOperator, type Term } from '../term.ts';
import type { Prelude } from './prelude.ts';
import { typeName } from './types.ts';

/** One use of an operation. */
export interface Site {
  readonly type: RegisterType;
  readonly width: Width;
  readonly args: readonly Term[];
  /** Register types of the arguments. */
  readonly types: readonly RegisterType[];
  /** The last argument where it is a constant. */
  readonly last: number | undefined;
  /** Signed integers are known not to wrap around. */
  readonly bounded: boolean;
  readonly prelude: Prelude;
}

/** Writes a scalar operation. */
type Spelling = (site: Site) => Term;

const operator =
  (op: BinaryOperator): Spelling =>
  ({ args }) =>
    infix(op, args[0]!, args[1]!);
const builtin =
  (name: string): Spelling =>
  ({ args }) =>
    call(name, args);
/** A function of the prelude. */
const helper =
  (name: string): Spelling =>
  ({ prelude, args }) =>
    call(prelude.use(name), args);

/** One spelling per type of the first argument. */
const byType =
  (rows: Partial<Record<RegisterType | 'other', Spelling>>): Spelling =>
  (site) =>
    (rows[site.types[0]!] ?? rows.other)!(site);

/** Constant divisors above 0 and constant counts below 32 cannot go wrong. */
const whenConstant =
  (safe: (last: number) => boolean, plain: Spelling, guarded: Spelling): Spelling =>
  (site) =>
    (site.last !== undefined && safe(site.last) ? plain : guarded)(site);
const positive = (last: number): boolean => last > 0;
const inWord = (last: number): boolean => last >= 0 && last < 32;

/** The operator where the result is known to fit, else a function that wraps around. */
const wrapping =
  (plain: Spelling, name: string): Spelling =>
  (site) =>
    (site.bounded ? plain : helper(name))(site);

const arithmetic = (op: '+' | '-' | '*', name: 'add' | 'sub' | 'mul'): Spelling =>
  byType({ i32: wrapping(operator(op), `${name}_i32`), other: operator(op) });

const same: Spelling = ({ args }) => args[0]!;
const by =
  (text: (last: number) => string): Spelling =>
  (site) =>
    infix('>>', site.args[0]!, primary(text(site.last!)));
const differ = operator('!=');

const cast: Spelling = ({ type, types, args, prelude }) => {
  const [from] = types;
  if (type === from) return args[0]!;
  if (type === 'bool')
    return infix('!=', args[0]!, primary(from === 'f32' ? '0.0f' : from === 'u32' ? '0u' : '0'));
  if (from === 'f32') return call(prelude.use(type === 'i32' ? 'float_to_int' : 'float_to_uint'), args);
  return call(typeName(type, 1), args);
};

const bitcast: Spelling = ({ type, types, args }) => {
  const [from] = types;
  if (type === from) return args[0]!;
  if (type === 'f32') return call(from === 'i32' ? '__int_as_float' : '__uint_as_float', args);
  if (from === 'f32') return call(type === 'i32' ? '__float_as_int' : '__float_as_uint', args);
  return call(typeName(type, 1), args);
};

const table = {
  neg: byType({
    f32: ({ args }) => prefix('-', args[0]!),
    i32: wrapping(({ args }) => prefix('-', args[0]!), 'neg_i32'),
    u32: ({ args }) => infix('-', primary('0u'), args[0]!),
  }),
  abs: byType({ f32: builtin('fabsf'), i32: helper('abs_i32'), u32: same }),
  sign: byType({
    f32: helper('sign_f32'),
    i32: helper('sign_i32'),
    u32: ({ args, prelude }) => call(prelude.use('min_u32'), [args[0]!, primary('1u')]),
  }),
  floor: builtin('floorf'),
  ceil: builtin('ceilf'),
  round: builtin('rintf'),
  trunc: builtin('truncf'),
  exp: builtin('expf'),
  exp2: builtin('exp2f'),
  expm1: builtin('expm1f'),
  log: builtin('logf'),
  log2: builtin('log2f'),
  log1p: builtin('log1pf'),
  sin: builtin('sinf'),
  cos: builtin('cosf'),
  tan: builtin('tanf'),
  asin: builtin('asinf'),
  acos: builtin('acosf'),
  atan: builtin('atanf'),
  sinh: builtin('sinhf'),
  cosh: builtin('coshf'),
  tanh: builtin('tanhf'),
  erf: builtin('erff'),
  sqrt: builtin('sqrtf'),
  rsqrt: builtin('rsqrtf'),
  recip: ({ args }) => infix('/', primary('1.0f'), args[0]!),
  not: ({ args, types }) => prefix(types[0] === 'bool' ? '!' : '~', args[0]!),
  isNan: ({ args }) => call('isnan', args),
  cast,
  bitcast,
  add: arithmetic('+', 'add'),
  sub: arithmetic('-', 'sub'),
  mul: arithmetic('*', 'mul'),
  div: byType({
    f32: operator('/'),
    i32: whenConstant(positive, operator('/'), helper('div_i32')),
    u32: whenConstant(positive, operator('/'), helper('div_u32')),
  }),
  mod: byType({
    f32: builtin('fmodf'),
    i32: whenConstant(positive, operator('%'), helper('mod_i32')),
    u32: whenConstant(positive, operator('%'), helper('mod_u32')),
  }),
  pow: (site) => {
    const base = { ...site, args: site.args.slice(0, 1) };
    if (site.last === 2) return helper('square_f32')(base);
    if (site.last === 3) return helper('cube_f32')(base);
    return builtin('powf')(site);
  },
  min: byType({
    f32: helper('min_f32'),
    i32: helper('min_i32'),
    u32: helper('min_u32'),
    bool: operator('&&'),
  }),
  max: byType({
    f32: helper('max_f32'),
    i32: helper('max_i32'),
    u32: helper('max_u32'),
    bool: operator('||'),
  }),
  atan2: builtin('atan2f'),
  and: byType({ bool: operator('&&'), other: operator('&') }),
  or: byType({ bool: operator('||'), other: operator('|') }),
  xor: byType({ bool: differ, other: operator('^') }),
  shl: byType({
    i32: helper('shl_i32'),
    u32: whenConstant(inWord, operator('<<'), helper('shl_u32')),
  }),
  shr: byType({
    i32: whenConstant(inWord, operator('>>'), helper('shr_i32')),
    u32: whenConstant(inWord, operator('>>'), helper('shr_u32')),
  }),
  mulhi: byType({ i32: helper('mulhi_i32'), u32: helper('mulhi_u32') }),
  // false < true.
  lt: byType({ bool: ({ args }) => infix('&&', prefix('!', args[0]!), args[1]!), other: operator('<') }),
  le: byType({ bool: ({ args }) => infix('||', prefix('!', args[0]!), args[1]!), other: operator('<=') }),
  eq: operator('=='),
  ne: differ,
  where: ({ args }) => choice(args[0]!, args[1]!, args[2]!),
  fma: builtin('fmaf'),
  roundF16: helper('round_f16'),
  roundBf16: helper('round_bf16'),
  roundTf32: helper('round_tf32'),
  packF16: helper('pack_f16'),
  packBf16: helper('pack_bf16'),
  philox: helper('philox_word'),
  popcount: ({ args, type }) => call(typeName(type, 1), [call('__popc', args)]),
  floorDiv: whenConstant(
    isPowerOfTwo,
    by((last) => String(Math.log2(last))),
    helper('floor_div_i32'),
  ),
  floorMod: whenConstant(
    isPowerOfTwo,
    ({ args, last }) => infix('&', args[0]!, primary(String(last! - 1))),
    helper('floor_mod_i32'),
  ),
} as const satisfies Record<LoopOp, Spelling>;

/** Operators that vectors of numbers have in the prelude. */
const operators: Partial<Record<LoopOp, BinaryOperator>> = {
  add: '+',
  sub: '-',
  mul: '*',
  div: '/',
  and: '&',
  or: '|',
  xor: '^',
  lt: '<',
  le: '<=',
  eq: '==',
  ne: '!=',
};

/** The expression for an operation. */
export function spell(op: LoopOp, site: Site): Term {
  const { width, types, prelude, args } = site;
  if (width === 1) return table[op](site);
  if (op === 'philox') return call(prelude.use('philox_block'), args);
  // The compiler sees constants in lanes by itself, and powers of them become other functions.
  const power = op === 'pow' && (site.last === 2 || site.last === 3);
  const taken = power ? 1 : args.length;
  const inner = (parameters: readonly string[]): string =>
    table[op]({
      ...site,
      width: 1,
      bounded: false,
      last: power ? site.last : undefined,
      args: parameters.map(primary),
    }).text;
  const define = (name: string): string =>
    prelude.lanewise(name, site.type, width, types.slice(0, taken), inner);
  const symbol = types[0] === 'bool' ? undefined : operators[op];
  if (symbol !== undefined) {
    define(`operator${symbol}`);
    return infix(symbol, args[0]!, args[1]!);
  }
  if (op === 'neg') {
    define('operator-');
    return prefix('-', args[0]!);
  }
  const kind = op === 'where' ? site.type : types[0]!;
  const verb = power ? (site.last === 2 ? 'square' : 'cube') : (words[op] ?? op.toLowerCase());
  const suffix = op === 'cast' || op === 'bitcast' ? `${kind}_as_${site.type}` : kind;
  return call(define(`${verb}_${suffix}x${width}`), args.slice(0, taken));
}

/** Names of functions on vectors that are not their operation's. */
const words: Partial<Record<LoopOp, string>> = {
  where: 'select',
  isNan: 'is_nan',
  roundF16: 'round_f16',
  roundBf16: 'round_bf16',
  roundTf32: 'round_tf32',
  packF16: 'pack_f16',
  packBf16: 'pack_bf16',
  floorDiv: 'floor_div',
  floorMod: 'floor_mod',
};
