// How each operation is written in WGSL. Many are one function, which the op's row (ir/ops.ts)
// names; the others have a row here. The meaning is the interpreter's (ir/interpret/scalar.ts).

import { CompilerBug } from '../../../errors.ts';
import { byFormula } from '../../../ir/formula.ts';
import { elementwiseRows, givesBool, mapRows, type ElementwiseOp, type WrittenAs } from '../../../ir/ops.ts';
import type { LoopOp, RegisterOp, RegisterType, Width } from '../../loop/loop.ts';
import { isPowerOfTwo } from '../../loop/ranges.ts';
import { call, infix, prefix, primary, type BinaryOperator, type Term, level } from '../shared/term.ts';
import type { Site, Spelling } from './site.ts';
import { narrow, typeName, type NarrowType } from './types.ts';
import { isOnWide, spellWide } from './wide.ts';
import { isWide } from '../../../ir/dtype.ts';
import type { WgslPrelude } from './prelude.ts';

// Constants in WGSL. Its constant expressions must be finite, so infinities and NaN come from
// functions of the prelude, and so does −0.

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

const operator =
  (op: BinaryOperator): Spelling =>
  ({ args }) =>
    infix(op, args[0]!, args[1]!);
const builtin =
  (name: string): Spelling =>
  ({ args }) =>
    call(name, args);
/** Only kernels for matrix units ask for it, which WGSL has none of. */
const onMatrixUnits: Spelling = () => {
  throw new CompilerBug('emit-wgsl', 'WGSL has no operands of matrix units');
};
/** A function of the prelude at the site's width. */
const helper =
  (name: string): Spelling =>
  ({ prelude, width, args }) =>
    call(prelude.use(name, width), args);

/** A builtin for scalars, a function of the prelude for vectors. */
const ofLanes =
  (scalar: string, vector: string): Spelling =>
  (site) =>
    (site.width === 1 ? builtin(scalar) : helper(vector))(site);

/** One spelling per type of the first argument. */
const byType =
  (rows: Partial<Record<RegisterType | 'other', Spelling>>): Spelling =>
  (site) =>
    (rows[site.from] ?? rows.other)!(site);

const splat = ({ from, width }: Site, text: string): Term =>
  primary(width === 1 ? text : `${typeName(from, width)}(${text})`);
const zero = (site: Site): Term =>
  splat(site, { f32: '0.0', i32: '0', u32: '0u', bool: 'false' }[narrow(site.from)]);
const not: Spelling = ({ args, from }) => prefix(from === 'bool' ? '!' : '~', args[0]!);
/** Not `!=`: on NaN that is false on SwiftShader, where it must be true. */
const differ: Spelling = (site) =>
  site.from === 'f32' ? prefix('!', infix('==', site.args[0]!, site.args[1]!)) : operator('!=')(site);
/**
 * On vectors the bitwise operators; on single bools those that take relations without parentheses.
 */
const logic = (single: '&&' | '||', lanes: '&' | '|'): Spelling =>
  byType({
    bool: (site) => operator(site.width === 1 ? single : lanes)(site),
    other: operator(lanes),
  });

/** Constant divisors above 0 and constant counts below 32 cannot go wrong. */
const whenConstant =
  (safe: (last: number) => boolean, plain: Spelling, guarded: Spelling): Spelling =>
  (site) =>
    (site.last !== undefined && safe(site.last) ? plain : guarded)(site);
const positive = (last: number): boolean => last > 0;
const inWord = (last: number): boolean => last >= 0 && last < 32;

/**
 * A float constant of ±0 makes shader compilers drop the other factor (spirv-opt folds `x * 0.0`
 * and `0.0 / x` to 0), where infinities and NaN have to give NaN.
 */
const product: Spelling = (site) => {
  if (site.from !== 'f32' || (site.first !== 0 && site.last !== 0)) return operator('*')(site);
  const [x, zero] = site.last === 0 ? [site.args[0]!, site.last] : [site.args[1]!, site.first];
  return signedBy(zero, helper('zero_times_F')({ ...site, args: [x] }));
};
const quotient: Spelling = (site) => {
  // A quotient by infinity becomes a product with its reciprocal, 0.
  if (site.last === Infinity || site.last === -Infinity)
    return signedBy(1 / site.last, helper('zero_times_F')({ ...site, args: [site.args[0]!] }));
  if (site.first !== 0) return operator('/')(site);
  return signedBy(site.first, helper('zero_over_F')({ ...site, args: [site.args[1]!] }));
};
const signedBy = (zero: number | undefined, term: Term): Term =>
  Object.is(zero, -0) ? prefix('-', term) : term;
const fusedProduct: Spelling = (site) => {
  const [a, b, c] = site.args;
  const of = (): Term => product({ ...site, args: [a!, b!], last: site.second });
  if (Object.is(site.last, 0)) return helper('plus_zero_F')({ ...site, args: [of()] });
  if (site.first !== 0 && site.second !== 0) return builtin('fma')(site);
  return infix('+', of(), c!);
};

/**
 * Beside a constant 0, shader compilers take x + 0.0 for x and 0.0 - x for -x, which gives -0 where
 * 0 is due, and a quotient by it the wrong infinity.
 */
const sum: Spelling = (site) => {
  const [first, last] = [Object.is(site.first, 0), Object.is(site.last, 0)];
  if (site.from !== 'f32' || first === last) return operator('+')(site);
  return helper('plus_zero_F')({ ...site, args: [site.args[first ? 1 : 0]!] });
};
const difference: Spelling = (site) => {
  if (site.from !== 'f32' || !Object.is(site.first, 0)) return operator('-')(site);
  return helper('zero_minus_F')({ ...site, args: [site.args[1]!] });
};

const count = (site: Site): Term => splat({ ...site, from: 'u32' }, `${site.last}u`);

const cast: Spelling = (site) => {
  const { type, from, width, args, prelude } = site;
  if (type === from) return args[0]!;
  if (type === 'bool') return differ({ ...site, args: [args[0]!, zero(site)] });
  if (from === 'f32') return call(prelude.use(type === 'i32' ? 'int_F' : 'uint_F', width), args);
  if (from === 'u32' && type === 'f32') return call(prelude.use('float_U', width), args);
  return call(typeName(type, width), args);
};

/** What is more than a name or the formula of the op's row: a missing row is a type error. */
const own: { readonly [K in WrittenAs<'wgsl'> | RegisterOp]: Spelling } = {
  neg: byType({
    u32: (site) => infix('-', zero(site), site.args[0]!),
    other: ({ args }) => prefix('-', args[0]!),
  }),
  abs: byType({ u32: ({ args }) => args[0]!, other: builtin('abs') }),
  sign: byType({
    f32: helper('sign_F'),
    i32: builtin('sign'),
    u32: (site) => ofLanes('min', 'min_U')({ ...site, args: [site.args[0]!, splat(site, '1u')] }),
  }),
  not,
  cast,
  bitcast: ({ args, type, from, width }) =>
    type === from ? args[0]! : call(`bitcast<${typeName(type, width)}>`, args),
  add: sum,
  sub: difference,
  mul: product,
  div: byType({
    f32: quotient,
    i32: whenConstant(positive, operator('/'), helper('div_I')),
    u32: whenConstant(positive, operator('/'), helper('div_U')),
  }),
  mod: byType({
    f32: helper('mod_F'),
    i32: whenConstant(positive, operator('%'), helper('mod_I')),
    u32: whenConstant(positive, operator('%'), helper('mod_U')),
  }),
  pow: (site) => {
    if (site.last === 2) return helper('square_F')(unaryOf(site));
    if (site.last === 3) return helper('cube_F')(unaryOf(site));
    return helper('pow_F')(site);
  },
  min: byType({
    f32: helper('min_F'),
    bool: logic('&&', '&'),
    i32: ofLanes('min', 'min_I'),
    u32: ofLanes('min', 'min_U'),
  }),
  max: byType({
    f32: helper('max_F'),
    bool: logic('||', '|'),
    i32: ofLanes('max', 'max_I'),
    u32: ofLanes('max', 'max_U'),
  }),
  and: logic('&&', '&'),
  or: logic('||', '|'),
  xor: byType({ bool: differ, other: operator('^') }),
  shl: byType({
    i32: whenConstant(inWord, (site) => infix('<<', site.args[0]!, count(site)), helper('shl_I')),
    u32: whenConstant(inWord, (site) => infix('<<', site.args[0]!, count(site)), helper('shl_U')),
  }),
  shr: byType({
    i32: whenConstant(inWord, (site) => infix('>>', site.args[0]!, count(site)), helper('shr_I')),
    u32: whenConstant(inWord, (site) => infix('>>', site.args[0]!, count(site)), helper('shr_U')),
  }),
  mulhi: byType({ i32: helper('mulhi_I'), u32: helper('mulhi_U') }),
  // false < true.
  lt: byType({
    bool: ({ args, width }) => infix(width === 1 ? '&&' : '&', prefix('!', args[0]!), args[1]!),
    other: operator('<'),
  }),
  le: byType({
    bool: ({ args, width }) => infix(width === 1 ? '||' : '|', prefix('!', args[0]!), args[1]!),
    other: operator('<='),
  }),
  eq: operator('=='),
  ne: differ,
  where: ({ args }) => call('select', [args[2]!, args[1]!, args[0]!]),
  fma: fusedProduct,
  roundF16: helper('round_f16_F'),
  roundBf16: helper('round_bf16_F'),
  philox: helper('philox_U'),
  pmin: ({ args }) => call('select', [args[0]!, args[1]!, infix('<', args[1]!, args[0]!)]),
  pmax: ({ args }) => call('select', [args[0]!, args[1]!, infix('<', args[0]!, args[1]!)]),
  popcount: builtin('countOneBits'),
  roundTf32: onMatrixUnits,
  exp2Normal: onMatrixUnits,
  recipNormal: onMatrixUnits,
  packF16: onMatrixUnits,
  packBf16: onMatrixUnits,
  unpackF16: helper('half_float_F'),
  byteU: helper('byte_U'),
  byteS: helper('byte_I'),
  evenI8: helper('even_bytes_U'),
  oddI8: helper('odd_bytes_U'),
  dotI16: helper('dot_halves_I'),
  floorDiv: whenConstant(
    isPowerOfTwo,
    (site) => infix('>>', site.args[0]!, count({ ...site, last: Math.log2(site.last!) })),
    helper('floor_div_I'),
  ),
  floorMod: whenConstant(
    isPowerOfTwo,
    (site) => infix('&', site.args[0]!, splat(site, String(site.last! - 1))),
    helper('floor_mod_I'),
  ),
};

const unaryOf = (site: Site): Site => ({ ...site, args: site.args.slice(0, 1) });

/** By the op's formula, each of its operations where it stands. */
const expanded =
  (op: ElementwiseOp): Spelling =>
  (site) => {
    const { from, width, prelude } = site;
    interface Part extends Pick<Site, 'type'> {
      readonly term: Term;
      readonly known?: number | undefined;
    }
    const known = [site.first, site.second, ...site.args.slice(2).map(() => undefined)];
    const args = site.args.map((term, i): Part => ({ term, type: from, known: known[i] }));
    const { term } = byFormula<Part>(op, args, {
      constant: (value) => ({ term: literal(value, from, width, prelude), type: from, known: value }),
      op: (name, parts) => {
        const gives = givesBool(name) ? 'bool' : parts.at(-1)!.type;
        const written = spell(name, {
          type: gives,
          from: parts[0]!.type,
          width,
          args: parts.map((part) => part.term),
          first: parts[0]!.known,
          second: parts[1]?.known,
          last: parts.at(-1)!.known,
          prelude,
        });
        return { term: written, type: gives };
      },
    });
    return term;
  };

/**
 * A row of the op table in WGSL: functions of the prelude end in the placeholder for their type.
 */
function spellingOf(op: ElementwiseOp): Spelling {
  const { wgsl } = elementwiseRows[op];
  if (wgsl === 'own') return own[op as WrittenAs<'wgsl'>];
  if (wgsl === 'formula') return expanded(op);
  return wgsl.endsWith('_F') ? helper(wgsl) : builtin(wgsl);
}

const table: Readonly<Record<LoopOp, Spelling>> = {
  ...own,
  ...mapRows(spellingOf),
};

/** The expression for an operation. */
export function spell(op: LoopOp, site: Site): Term {
  return isOnWide(site) ? spellWide(op, site) : table[op](site);
}
