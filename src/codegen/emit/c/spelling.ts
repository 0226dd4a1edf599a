// How each operation is written in C. The op's row (ir/ops.ts) names the instruction that
// WebAssembly has for it, which a builtin of the compiler stands for here, or says that the op is
// made of others before it comes here (shared/math/math.ts); the others have a row here. Rows spell
// scalars. Vectors have operators where those of C's vectors mean the same; else a function applies
// the row to each lane. The meaning is the interpreter's (ir/interpret/scalar.ts).

import { CompilerBug } from '../../../errors.ts';
import { elementwiseRows, mapRows, type ElementwiseOp, type WrittenAs } from '../../../ir/ops.ts';
import type { LoopOp, RegisterOp, RegisterType, Value, Width } from '../../loop/loop.ts';
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
import { atLeast, call, choice, infix, level, prefix, primary, type Term } from '../shared/term.ts';
import { builtinOf, vectorBody } from './lanes.ts';
import { floatsToBrains, floatsToHalves, halvesToFloats } from './memory.ts';
import type { CPrelude } from './prelude.ts';
import { scalarType } from './types.ts';

/** A constant in every lane. */
export function literal(
  { value, type, width, exact }: Extract<Value, { kind: 'constant' }>,
  prelude: CPrelude,
): Term {
  if (width > 1) {
    // A mask has all bits or none.
    const lane = type === 'bool' ? String(-Number(value !== 0)) : scalarLiteral(value, type, exact);
    return call(prelude.splat(type, width), [primary(lane)]);
  }
  const text = scalarLiteral(value, type, exact);
  return text.startsWith('-') ? { text, level: level.unary } : primary(text);
}

function scalarLiteral(value: number, type: RegisterType, exact: bigint | undefined): string {
  switch (type) {
    case 'bool':
      return value === 0 ? '0' : '1';
    case 'i32':
      return (value | 0) === -2147483648 ? 'INT32_MIN' : String(value | 0);
    case 'u32':
      return `${value >>> 0}u`;
    case 'f32':
      return floatLiteral(Math.fround(value), 'f');
    case 'f64':
      return floatLiteral(value, '');
    case 'i64': {
      const signed = BigInt.asIntN(64, exact ?? BigInt(value));
      return signed === -(2n ** 63n) ? 'INT64_MIN' : `${signed}LL`;
    }
    case 'u64':
      return `${BigInt.asUintN(64, exact ?? BigInt(value))}ULL`;
    default:
      return type satisfies never;
  }
}

/** The digits of the double that the number is: shorter ones may round past the largest f32. */
function floatLiteral(value: number, suffix: 'f' | ''): string {
  if (Number.isNaN(value)) return `__builtin_nan${suffix}("")`;
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (!Number.isFinite(value)) return `${sign}__builtin_inf${suffix}()`;
  const digits = String(Math.abs(value));
  return `${sign}${/[.e]/.test(digits) ? digits : `${digits}.0`}${suffix}`;
}

/** One use of an operation. */
export interface CSite extends CFamilySite {
  readonly prelude: CPrelude;
}

type Spelling = (site: CSite) => Term;

/** A C cast. */
function converted(type: string, value: Term): Term {
  return { text: `(${type})${atLeast(value, level.primary)}`, level: level.unary };
}

/** By a power of two, a shift or a mask. */
const byPower =
  (op: '>>' | '&', of: (by: number) => number): Spelling =>
  ({ args, last }) =>
    infix(op, args[0]!, primary(String(of(last!))));
const shifted = byPower('>>', Math.log2);
const masked: Spelling = (site) =>
  isUnsigned(site.types[0]!)
    ? infix('&', site.args[0]!, primary(`${site.last! - 1}u`))
    : byPower('&', (by) => by - 1)(site);

const negated = ({ args }: CFamilySite): Term => prefix('!', args[0]!);
const second = ({ args }: CFamilySite): Term => args[1]!;

/** Compilers warn where an unsigned number is compared with 0: there a function compares. */
const ordered = (op: '<' | '<=', name: 'lt' | 'le'): Spelling =>
  byKind({
    float: operator(op),
    integer: (site) =>
      isUnsigned(site.types[0]!) && site.args.some(({ text }) => /^0u/i.test(text))
        ? typed(name)(site)
        : operator(op)(site),
    // false < true.
    bool: (site) => infix(op === '<' ? '&&' : '||', negated(site), second(site)),
  });

/** Whether a bound is the zero beside which, in order, the other one is another number. */
const isOuterZero = (kind: LoopOp, last: number): boolean =>
  last === 0 && Object.is(last, -0) === (kind === 'min');

/** Of floats and a constant: by one comparison, which passes NaN on. */
const extreme = (kind: 'min' | 'max'): Spelling => {
  const plain = typed(kind);
  const [less, more] = kind === 'min' ? ([1, 0] as const) : ([0, 1] as const);
  return byKind({
    float: (site) => {
      const { args, last } = site;
      if (last === undefined || Number.isNaN(last)) return plain(site);
      return choice(
        infix(isOuterZero(kind, last) ? '<=' : '<', args[less]!, args[more]!),
        args[1]!,
        args[0]!,
      );
    },
    integer: plain,
    bool: operator(kind === 'min' ? '&&' : '||'),
  });
};

const cast: Spelling = ({ type, types, args, prelude }) => {
  const from = types[0]!;
  if (type === from) return args[0]!;
  if (type === 'bool')
    return infix('!=', args[0]!, primary(isFloat(from) ? scalarLiteral(0, from, undefined) : '0'));
  if (isFloat(from) && !isFloat(type)) return call(prelude.use(`${type}_of_${from}`), args);
  return converted(scalarType(type), args[0]!);
};

const bitcast: Spelling = ({ type, types, args, prelude }) => {
  const from = types[0]!;
  if (type === from) return args[0]!;
  if (isFloat(from) === isFloat(type)) return converted(scalarType(type), args[0]!);
  return call(prelude.use(`${type}_bits_${from}`), args);
};

const byteOf =
  (type: 'uint8_t' | 'int8_t'): Spelling =>
  ({ args, last, type: result }) => {
    const [word, at] = args;
    const count = last === undefined ? infix('*', primary('8'), at!) : primary(String(8 * last));
    const moved = last === 0 ? word! : infix('>>', word!, count);
    return converted(scalarType(result), converted(type, moved));
  };

/** What is made of other operations before it comes here. */
const expanded: Spelling = ({ type }) => {
  throw new CompilerBug('emit-c', `an operation on ${type} is to be made of others`);
};

/** What is neither one builtin nor made of other operations: a missing row is a type error. */
const own: { readonly [K in WrittenAs<'wasm'> | RegisterOp]: Spelling } = {
  neg: byKind({
    float: ({ args }) => prefix('-', args[0]!),
    integer: (site) => {
      if (isUnsigned(site.type)) return infix('-', primary(scalarLiteral(0, site.type, 0n)), site.args[0]!);
      return site.bounded ? prefix('-', site.args[0]!) : typed('neg')(site);
    },
  }),
  abs: byKind({
    float: ({ types, args }) => call(types[0] === 'f64' ? '__builtin_fabs' : '__builtin_fabsf', args),
    integer: (site) => (isUnsigned(site.type) ? site.args[0]! : typed('abs')(site)),
  }),
  not: byKind({ bool: negated, integer: ({ args }) => prefix('~', args[0]!) }),
  cast,
  bitcast,
  add: arithmetic('+', 'add'),
  sub: arithmetic('-', 'sub'),
  mul: arithmetic('*', 'mul'),
  div: byKind({ float: operator('/'), integer: whenConstant(positive, operator('/'), typed('div')) }),
  mod: byKind({ float: expanded, integer: whenConstant(positive, operator('%'), typed('mod')) }),
  min: extreme('min'),
  max: extreme('max'),
  and: byKind({ integer: operator('&'), bool: operator('&&') }),
  or: byKind({ integer: operator('|'), bool: operator('||') }),
  xor: byKind({ integer: operator('^'), bool: operator('!=') }),
  shl: whenConstant((last, type) => isUnsigned(type) && inWord(last, type), operator('<<'), typed('shl')),
  shr: whenConstant(inWord, operator('>>'), typed('shr')),
  mulhi: typed('mulhi'),
  lt: ordered('<', 'lt'),
  le: ordered('<=', 'le'),
  eq: operator('=='),
  ne: operator('!='),
  where: ({ args }) => choice(args[0]!, args[1]!, args[2]!),
  fma: typed('fma'),
  roundF16: expanded,
  roundBf16: expanded,
  roundTf32: helper('round_tf32'),
  exp2Normal: expanded,
  recipNormal: expanded,
  packF16: helper('pack_f16'),
  packBf16: helper('pack_bf16'),
  unpackF16: helper('f32_of_f16'),
  byteU: byteOf('uint8_t'),
  byteS: byteOf('int8_t'),
  evenI8: helper('even_bytes'),
  oddI8: helper('odd_bytes'),
  dotI16: helper('dot_halves'),
  philox: helper('philox_word'),
  pmin: ({ args }) => choice(infix('<', args[1]!, args[0]!), args[1]!, args[0]!),
  pmax: ({ args }) => choice(infix('<', args[0]!, args[1]!), args[1]!, args[0]!),
  popcount: ({ args, type }) => {
    const word = isUnsigned(type) ? args[0]! : converted(isLong(type) ? 'uint64_t' : 'uint32_t', args[0]!);
    return converted(
      scalarType(type),
      call(isLong(type) ? '__builtin_popcountll' : '__builtin_popcount', [word]),
    );
  },
  floorDiv: whenConstant(isPowerOfTwo, shifted, (site) =>
    (isUnsigned(site.type) ? operator('/') : helper('floor_div_i32'))(site),
  ),
  floorMod: whenConstant(isPowerOfTwo, masked, (site) =>
    (isUnsigned(site.type) ? operator('%') : helper('floor_mod_i32'))(site),
  ),
};

function spellingOf(op: ElementwiseOp): Spelling {
  const { wasm } = elementwiseRows[op];
  if (wasm === 'own') return own[op as WrittenAs<'wasm'>];
  return wasm === 'math' || wasm === 'formula' ? expanded : typed(wasm);
}

const table: Readonly<Record<LoopOp, Spelling>> = { ...own, ...mapRows(spellingOf) };

/** Names of functions on vectors that are not their operation's. */
const words: Partial<Record<LoopOp, string>> = {
  where: 'select',
  roundTf32: 'round_tf32',
  packF16: 'pack_f16',
  packBf16: 'pack_bf16',
  unpackF16: 'unpack_f16',
  byteU: 'byte',
  byteS: 'signed_byte',
  evenI8: 'even_bytes',
  oddI8: 'odd_bytes',
  dotI16: 'dot_halves',
  floorDiv: 'floor_div',
  floorMod: 'floor_mod',
};

const isComparison = (op: LoopOp): boolean => op === 'lt' || op === 'le' || op === 'eq' || op === 'ne';

/** The expression for an operation. */
export function spell(op: LoopOp, site: CSite): Term {
  // Compilers warn where a name is compared with itself: there a function compares.
  const isSelf = isComparison(op) && !isFloat(site.types[0]!) && site.args[0]!.text === site.args[1]!.text;
  if (isSelf) return site.width === 1 ? typed(op)(site) : ofLanes(op, site);
  if (site.width === 1) return table[op](site);
  if (op === 'philox') return philox(site);
  return operated(op, site) ?? ofLanes(op, site);
}

/** The function that adds what dotI16 gives of two vectors to a third one. */
export function addedProducts(prelude: CPrelude, width: Width, types: readonly RegisterType[]): string {
  const own = prelude.type('i32', width);
  const [x, y] = types.map((type, i) => ({ text: 'xyz'[i]!, type }));
  const site = { type: 'i32', width, last: undefined, bounded: false, prelude } as const;
  const operands = [x!, y!];
  const dot = spell('dotI16', {
    ...site,
    args: operands.map(({ text }) => primary(text)),
    types: operands.map(({ type }) => type),
  });
  const sum = spell('add', { ...site, args: [primary('z'), dot], types: ['i32', 'i32'] });
  const builtin = builtinOf({ op: 'dot_add', type: 'i32', width, types, prelude })!;
  const lane = (): string => sum.text;
  return prelude.lanewise(`dot_add_${own}`, 'i32', width, types, {
    builtin,
    body: { result: sum.text },
    lane,
  });
}

/** The row of an operation for each lane. */
function ofLanes(op: LoopOp, site: CSite): Term {
  const { type, width, types, args, prelude, last } = site;
  const kind = `${op === 'where' ? type : types[0]!}x${width}`;
  // One comparison with a constant takes the place of several.
  const isExtreme =
    (op === 'min' || op === 'max') && isFloat(type) && last !== undefined && !Number.isNaN(last);
  const own = isExtreme ? (isOuterZero(op, last) ? (`${op}_zero` as const) : (`p${op}` as const)) : op;
  const name =
    op === 'cast' || op === 'bitcast'
      ? `${type}x${width}_of_${kind}`
      : `${own === op ? (words[op] ?? op.toLowerCase()) : own}_${kind}`;
  const lane = (lanes: readonly string[]): string =>
    table[op]({
      ...site,
      width: 1,
      bounded: false,
      last: isExtreme ? last : undefined,
      args: lanes.map(primary),
    }).text;
  const given = { op: own, type, width, types, prelude };
  const texts = { builtin: builtinOf(given), body: vectorBody(given), lane };
  return call(prelude.lanewise(name, type, width, types, texts), args);
}

/** An operation on vectors by operators, where C's mean what it means. */
function operated(op: LoopOp, site: CSite): Term | undefined {
  const { type, width, types, args, prelude, last, bounded } = site;
  const [from] = types;
  const isMask = from === 'bool';
  const own = prelude.type(type, width);
  switch (op) {
    case 'add':
    case 'sub':
    case 'mul': {
      const symbol = ({ add: '+', sub: '-', mul: '*' } as const)[op];
      if (isFloat(type) || isUnsigned(type) || bounded) return infix(symbol, args[0]!, args[1]!);
      return call(wrappedLanes(op, symbol, site), args);
    }
    case 'neg':
      return isFloat(type) || isUnsigned(type) || bounded ? prefix('-', args[0]!) : undefined;
    case 'div':
      return isFloat(type) ? infix('/', args[0]!, args[1]!) : undefined;
    case 'not':
      return prefix('~', args[0]!);
    case 'and':
      return infix('&', args[0]!, args[1]!);
    case 'or':
      return infix('|', args[0]!, args[1]!);
    case 'xor':
      return infix('^', args[0]!, args[1]!);
    case 'min':
      return isMask ? infix('&', args[0]!, args[1]!) : undefined;
    case 'max':
      return isMask ? infix('|', args[0]!, args[1]!) : undefined;
    case 'lt':
    case 'le':
    case 'eq':
    case 'ne': {
      if (isMask && op === 'lt') return infix('&', prefix('~', args[0]!), args[1]!);
      if (isMask && op === 'le') return infix('|', prefix('~', args[0]!), args[1]!);
      const test = infix(({ lt: '<', le: '<=', eq: '==', ne: '!=' } as const)[op], args[0]!, args[1]!);
      return isLong(from!) ? primary(prelude.mask(from!, width, test.text)) : test;
    }
    case 'shl':
      if (last === undefined || !inWord(last, type)) return undefined;
      if (isUnsigned(type)) return infix('<<', args[0]!, primary(String(last)));
      return converted(
        own,
        infix(
          '<<',
          converted(prelude.type(isLong(type) ? 'u64' : 'u32', width), args[0]!),
          primary(String(last)),
        ),
      );
    case 'shr':
      if (last === undefined || !inWord(last, type)) return undefined;
      return infix('>>', args[0]!, primary(String(last)));
    case 'floorDiv':
      return last !== undefined && isPowerOfTwo(last) ? shifted(site) : undefined;
    case 'floorMod':
      return last !== undefined && isPowerOfTwo(last) ? masked(site) : undefined;
    case 'bitcast':
      return type === from ? args[0]! : converted(own, args[0]!);
    case 'cast':
      return castLanes(site);
    case 'unpackF16':
      return call(halvesToFloats(prelude, width), args);
    case 'packF16':
    case 'packBf16': {
      const toWords = (op === 'packF16' ? floatsToHalves : floatsToBrains)(prelude, width);
      const [low, high] = args.map((arg) => call(toWords, [arg]));
      return infix('|', low!, infix('<<', high!, primary('16')));
    }
    default:
      return undefined;
  }
}

/** Conversions of all lanes; floats become integers lane by lane. */
function castLanes({ type, width, types, args, prelude }: CSite): Term | undefined {
  const from = types[0]!;
  const own = prelude.type(type, width);
  if (type === from) return args[0]!;
  if (type === 'bool') {
    const zero = literal({ kind: 'constant', value: 0, type: from, width }, prelude);
    const test = infix('!=', args[0]!, zero);
    return isLong(from) ? primary(prelude.mask(from, width, test.text)) : test;
  }
  if (from === 'bool') {
    const ones = prefix('-', args[0]!);
    return type === 'i32' ? ones : call('__builtin_convertvector', [ones, primary(own)]);
  }
  if (isFloat(from) && !isFloat(type)) return undefined;
  if (!isFloat(type) && !isFloat(from) && isLong(type) === isLong(from)) return converted(own, args[0]!);
  return call('__builtin_convertvector', [args[0]!, primary(own)]);
}

/** The function that adds, subtracts or multiplies lanes which wrap around. */
function wrappedLanes(op: 'add' | 'sub' | 'mul', symbol: string, { type, width, prelude }: CSite): string {
  const own = prelude.type(type, width);
  const name = `${op}_${own}`;
  return prelude.define(name, () => {
    const word = prelude.type(type === 'i64' ? 'u64' : 'u32', width);
    return `static inline ${own} ${name}(${own} x, ${own} y) {\n  return (${own})((${word})x ${symbol} (${word})y);\n}`;
  });
}

/** The words of consecutive elements, a block of four at a time. */
function philox({ width, args, prelude }: CSite): Term {
  const own = prelude.type('u32', width);
  const name = `philox_${own}`;
  prelude.define(name, () => {
    const block = prelude.use('philox_block');
    const packed = prelude.packed('u32', width);
    return [
      `static inline ${own} ${name}(`,
      '    uint32_t key_lo, uint32_t key_hi, uint32_t counter_lo, uint32_t counter_hi, int32_t element) {',
      `  uint32_t words[${Math.max(width, 4)}];`,
      `  for (uint32_t i = 0; i < ${Math.max(width, 4) / 4}; i++)`,
      `    ${block}(key_lo, key_hi, counter_lo, counter_hi, ((uint32_t)element >> 2) + i, words + 4 * i);`,
      width < 4
        ? `  return *(const ${packed} *)(words + (element & 3));`
        : `  return *(const ${packed} *)words;`,
      '}',
    ].join('\n');
  });
  return call(name, args);
}
