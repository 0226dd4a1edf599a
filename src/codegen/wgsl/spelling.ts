// How each operation is written in WGSL: an operator, a builtin, or a function of the prelude where the builtin is missing or
// wrong on special values. A missing row is a type error.

import type { LoopOp, RegisterType, Width } from '../loop.ts';
import type { Prelude } from './prelude.ts';
import { call, infix, prefix, primary, type BinaryOperator, type Term } from './term.ts';

/** One use of an operation. */
export interface Site {
  readonly type: RegisterType;
  readonly width: Width;
  readonly args: readonly Term[];
  /** Register type of the first argument. */
  readonly from: RegisterType;
  /** The last argument where it is a constant. */
  readonly last: number | undefined;
  readonly prelude: Prelude;
}

export type Spelling = (site: Site) => Term;

export function typeName(type: RegisterType, width: Width): string {
  if (width === 1) return type;
  return type === 'bool' ? `vec${width}<bool>` : `vec${width}${type[0]}`;
}

const letters = { f32: 'F', i32: 'I', u32: 'U', bool: 'B' } as const;

/** A function of the prelude at the site's width; `F` at the end of the name is replaced by the argument's type. */
const helper =
  (name: string): Spelling =>
  ({ prelude, from, width, args }) =>
    call(prelude.use(`${name}_${letters[from]}`, width), args);
const builtin =
  (name: string): Spelling =>
  ({ args }) =>
    call(name, args);
const operator =
  (op: BinaryOperator): Spelling =>
  ({ args }) =>
    infix(op, args[0]!, args[1]!);
/** On f32 one way, on integers another. */
const byType =
  (rows: Partial<Record<RegisterType, Spelling>>, other: Spelling): Spelling =>
  (site) =>
    (rows[site.from] ?? other)(site);

const literalOne = (site: Site): Term => primary(`${typeName(site.type, site.width)}(1.0)`);
const not: Spelling = ({ args, from }) => prefix(from === 'bool' ? '!' : '~', args[0]!);

/** Whether dividing by the last argument needs no care. */
const safeDivisor = ({ last }: Site): boolean => last !== undefined && last > 0;

const cast: Spelling = (site) => {
  const { type, from, width, args, prelude } = site;
  if (type === from) return args[0]!;
  if (from === 'f32' && (type === 'i32' || type === 'u32'))
    return call(prelude.use(type === 'i32' ? 'int_F' : 'uint_F', width), args);
  if (type === 'bool') {
    const zero = primary(from === 'f32' ? `${typeName(from, width)}(0.0)` : `${typeName(from, width)}(0)`);
    return prefix('!', infix('==', args[0]!, zero));
  }
  return call(typeName(type, width), args);
};

const table = {
  neg: byType({ u32: ({ args }) => infix('+', prefix('~', args[0]!), primary('1u')) }, ({ args }) =>
    prefix('-', args[0]!),
  ),
  abs: builtin('abs'),
  sign: builtin('sign'),
  floor: builtin('floor'),
  ceil: builtin('ceil'),
  round: builtin('round'),
  trunc: builtin('trunc'),
  exp: builtin('exp'),
  exp2: builtin('exp2'),
  expm1: helper('expm1'),
  log: builtin('log'),
  log2: builtin('log2'),
  log1p: helper('log1p'),
  sin: builtin('sin'),
  cos: builtin('cos'),
  tan: builtin('tan'),
  asin: builtin('asin'),
  acos: builtin('acos'),
  atan: builtin('atan'),
  sinh: builtin('sinh'),
  cosh: builtin('cosh'),
  tanh: helper('tanh'),
  erf: helper('erf'),
  sqrt: builtin('sqrt'),
  rsqrt: builtin('inverseSqrt'),
  recip: (site) => infix('/', literalOne(site), site.args[0]!),
  not,
  isNan: helper('is_nan'),
  cast,
  bitcast: ({ args, type, from, width }) =>
    type === from ? args[0]! : call(`bitcast<${typeName(type, width)}>`, args),
  add: operator('+'),
  sub: operator('-'),
  mul: operator('*'),
  div: byType({ f32: operator('/') }, (site) => (safeDivisor(site) ? operator('/') : helper('div'))(site)),
  mod: byType({ f32: operator('%') }, (site) => (safeDivisor(site) ? operator('%') : helper('mod'))(site)),
  pow: builtin('pow'),
  min: byType({ f32: helper('min'), bool: operator('&') }, builtin('min')),
  max: byType({ f32: helper('max'), bool: operator('|') }, builtin('max')),
  atan2: builtin('atan2'),
  and: byType(
    { bool: ({ args, width }) => infix(width === 1 ? '&&' : '&', args[0]!, args[1]!) },
    operator('&'),
  ),
  or: byType(
    { bool: ({ args, width }) => infix(width === 1 ? '||' : '|', args[0]!, args[1]!) },
    operator('|'),
  ),
  xor: byType({ bool: ({ args }) => prefix('!', infix('==', args[0]!, args[1]!)) }, operator('^')),
  shl: helper('shl'),
  shr: helper('shr'),
  mulhi: helper('mulhi'),
  lt: operator('<'),
  le: operator('<='),
  eq: operator('=='),
  ne: ({ args }) => prefix('!', infix('==', args[0]!, args[1]!)),
  where: ({ args }) => call('select', [args[2]!, args[1]!, args[0]!]),
  fma: builtin('fma'),
  roundF16: helper('round_f16'),
  roundBf16: helper('round_bf16'),
  philox: ({ args, width, prelude }) => call(prelude.use('philox_U', width), args),
  floorDiv: helper('floor_div'),
  floorMod: helper('floor_mod'),
} as const satisfies Record<LoopOp, Spelling>;

/** The expression for an operation. */
export function spell(op: LoopOp, site: Site): Term {
  return table[op](site);
}
