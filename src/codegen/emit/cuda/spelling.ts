// How each operation is written in CUDA C. Many are one function of C, which the op's row
// (ir/ops.ts) names; the others have a row here: an operator, or a function of the prelude where
// C's differs from the interpreter's meaning (ir/interpret/scalar.ts). Rows spell scalars; a
// vector's function applies its row to every lane.

import { byFormula } from '../../../ir/formula.ts';
import { elementwiseRows, givesBool, mapRows, type ElementwiseOp, type WrittenAs } from '../../../ir/ops.ts';
import type { LoopOp, RegisterOp, RegisterType, Value } from '../../loop/loop.ts';
import { isPowerOfTwo } from '../../loop/ranges.ts';
import { isLong } from '../../loop/register.ts';
import {
  arithmetic,
  byKind,
  helper,
  inWord,
  isFloat,
  isUnsigned,
  operator,
  positive,
  typed,
  whenConstant,
  type CFamilySite,
} from '../shared/c-spelling.ts';
import {
  call,
  choice,
  infix,
  prefix,
  primary,
  type BinaryOperator,
  type Term,
  level,
} from '../shared/term.ts';
import type { CudaPrelude } from './prelude.ts';

// Constants in CUDA C. NVRTC has no names for infinity and NaN without headers: they are made of
// their bits.

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

/** One use of an operation. */
export interface CudaSite extends CFamilySite {
  readonly prelude: CudaPrelude;
}

/** Writes a scalar operation. */
type Spelling = (site: CudaSite) => Term;

/** C's function on floats of either size. */
const math =
  (name: string): Spelling =>
  ({ types, args }) =>
    call(types[0] === 'f64' ? name : `${name}f`, args);
const same: Spelling = ({ args }) => args[0]!;
const shifted: Spelling = ({ args, last }) => infix('>>', args[0]!, primary(String(Math.log2(last!))));
const differ = operator('!=');

const zeros: Readonly<Record<RegisterType, string>> = {
  f32: '0.0f',
  f64: '0.0',
  i32: '0',
  u32: '0u',
  i64: '0LL',
  u64: '0ULL',
  bool: 'false',
};

const cast: Spelling = ({ type, types, args, prelude }) => {
  const from = types[0]!;
  if (type === from) return args[0]!;
  if (type === 'bool') return infix('!=', args[0]!, primary(zeros[from]));
  if (isFloat(from) && !isFloat(type)) return call(prelude.use(`${type}_of_${from}`), args);
  return call(prelude.type(type, 1), args);
};

/** What takes a float's bits, as the signed integer of its size, and what makes a float of them. */
const bits = {
  f32: { signed: 'i32', take: '__float_as_int', make: '__int_as_float' },
  f64: { signed: 'i64', take: '__double_as_longlong', make: '__longlong_as_double' },
} as const;

const bitcast: Spelling = ({ type, types, args, prelude }) => {
  const from = types[0]!;
  if (type === from) return args[0]!;
  if (from === 'f32' && type === 'u32') return call('__float_as_uint', args);
  if (from === 'u32' && type === 'f32') return call('__uint_as_float', args);
  if (type === 'f32' || type === 'f64') {
    const { signed, make } = bits[type];
    return call(make, from === signed ? args : [call(prelude.type(signed, 1), args)]);
  }
  if (from !== 'f32' && from !== 'f64') return call(prelude.type(type, 1), args);
  const { signed, take } = bits[from];
  return type === signed ? call(take, args) : call(prelude.type(type, 1), [call(take, args)]);
};

/** What is more than a name or the formula of the op's row: a missing row is a type error. */
const own: { readonly [K in WrittenAs<'cuda'> | RegisterOp]: Spelling } = {
  neg: byKind({
    float: ({ args }) => prefix('-', args[0]!),
    integer: (site) => {
      const { args, type, bounded } = site;
      if (isUnsigned(type)) return infix('-', primary(zeros[type]), args[0]!);
      return bounded ? prefix('-', args[0]!) : typed('neg')(site);
    },
  }),
  abs: byKind({
    float: math('fabs'),
    integer: (site) => (isUnsigned(site.type) ? same : typed('abs'))(site),
  }),
  sign: (site) => {
    const { type, args, prelude } = site;
    if (!isUnsigned(type)) return typed('sign')(site);
    return call(prelude.use(`min_${type}`), [args[0]!, primary('1u')]);
  },
  not: ({ args, types }) => prefix(types[0] === 'bool' ? '!' : '~', args[0]!),
  isNan: typed('is_nan'),
  cast,
  bitcast,
  add: arithmetic('+', 'add'),
  sub: arithmetic('-', 'sub'),
  mul: arithmetic('*', 'mul'),
  div: byKind({ float: operator('/'), integer: whenConstant(positive, operator('/'), typed('div')) }),
  mod: byKind({ float: math('fmod'), integer: whenConstant(positive, operator('%'), typed('mod')) }),
  pow: (site) => {
    const base = { ...site, args: site.args.slice(0, 1) };
    if (site.last === 2) return typed('square')(base);
    if (site.last === 3) return typed('cube')(base);
    return math('pow')(site);
  },
  min: byKind({ float: typed('min'), integer: typed('min'), bool: operator('&&') }),
  max: byKind({ float: typed('max'), integer: typed('max'), bool: operator('||') }),
  and: byKind({ integer: operator('&'), bool: operator('&&') }),
  or: byKind({ integer: operator('|'), bool: operator('||') }),
  xor: byKind({ integer: operator('^'), bool: differ }),
  // C leaves left shifts of negative integers undefined: unsigned ones are shifted.
  shl: whenConstant((last, type) => isUnsigned(type) && inWord(last, type), operator('<<'), typed('shl')),
  shr: whenConstant(inWord, operator('>>'), typed('shr')),
  mulhi: typed('mulhi'),
  // false < true.
  lt: byKind({
    float: operator('<'),
    integer: operator('<'),
    bool: ({ args }) => infix('&&', prefix('!', args[0]!), args[1]!),
  }),
  le: byKind({
    float: operator('<='),
    integer: operator('<='),
    bool: ({ args }) => infix('||', prefix('!', args[0]!), args[1]!),
  }),
  eq: operator('=='),
  ne: differ,
  where: ({ args }) => choice(args[0]!, args[1]!, args[2]!),
  roundF16: helper('round_f16'),
  roundBf16: helper('round_bf16'),
  roundTf32: helper('round_tf32'),
  exp2Normal: helper('exp2_normal'),
  recipNormal: helper('recip_normal'),
  packF16: helper('pack_f16'),
  packBf16: helper('pack_bf16'),
  unpackF16: helper('unpack_f16'),
  byteU: helper('byte_u32'),
  byteS: helper('byte_i32'),
  evenI8: helper('even_bytes'),
  oddI8: helper('odd_bytes'),
  dotI16: helper('dot_halves'),
  philox: helper('philox_word'),
  pmin: ({ args }) => choice(infix('<', args[1]!, args[0]!), args[1]!, args[0]!),
  pmax: ({ args }) => choice(infix('<', args[0]!, args[1]!), args[1]!, args[0]!),
  popcount: ({ args, type, prelude }) =>
    call(prelude.type(type, 1), [call(isLong(type) ? '__popcll' : '__popc', args)]),
  floorDiv: whenConstant(isPowerOfTwo, shifted, helper('floor_div_i32')),
  floorMod: whenConstant(
    isPowerOfTwo,
    ({ args, last }) => infix('&', args[0]!, primary(String(last! - 1))),
    helper('floor_mod_i32'),
  ),
};

/** By the op's formula, each of its operations where it stands. */
const expanded =
  (op: ElementwiseOp): Spelling =>
  ({ types, args, prelude }) => {
    interface Part {
      readonly term: Term;
      readonly type: RegisterType;
      readonly known?: number;
    }
    const parts = args.map((term, i): Part => ({ term, type: types[i]! }));
    const { term } = byFormula<Part>(op, parts, {
      constant: (value) => {
        const type = types.at(-1)!;
        return { term: literal({ kind: 'constant', value, type, width: 1 }, prelude), type, known: value };
      },
      op: (name, operands) => {
        const type = givesBool(name) ? 'bool' : operands.at(-1)!.type;
        const site = { type, width: 1, bounded: false, prelude, last: operands.at(-1)!.known } as const;
        const written = table[name]({
          ...site,
          args: operands.map((operand) => operand.term),
          types: operands.map((operand) => operand.type),
        });
        return { term: written, type };
      },
    });
    return term;
  };

/** A row of the op table in CUDA C. */
function spellingOf(op: ElementwiseOp): Spelling {
  const { cuda } = elementwiseRows[op];
  if (cuda === 'own') return own[op as WrittenAs<'cuda'>];
  return cuda === 'formula' ? expanded(op) : math(cuda);
}

const table: Readonly<Record<LoopOp, Spelling>> = { ...own, ...mapRows(spellingOf) };

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
export function spell(op: LoopOp, site: CudaSite): Term {
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
  exp2Normal: 'exp2_normal',
  recipNormal: 'recip_normal',
  packF16: 'pack_f16',
  packBf16: 'pack_bf16',
  unpackF16: 'unpack_f16',
  byteU: 'byte_u',
  byteS: 'byte_s',
  evenI8: 'even_bytes',
  oddI8: 'odd_bytes',
  dotI16: 'dot_halves',
  floorDiv: 'floor_div',
  floorMod: 'floor_mod',
};
