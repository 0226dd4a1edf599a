// How operations on integers of 64 bits are written in WGSL: by the functions of prelude-wide.ts,
// on pairs of words.

import { CompilerBug } from '../../../errors.ts';
import { isWide } from '../../../ir/dtype.ts';
import type { FloatOp, WrittenAs } from '../../../ir/ops.ts';
import type { LoopOp, RegisterType } from '../../loop/loop.ts';
import { call, component, infix, prefix, primary, type Term } from '../shared/term.ts';
import type { Site, Spelling } from './site.ts';

/** Ops that integers have. */
type WideOp = Exclude<WrittenAs<'wgsl'>, FloatOp>;

/** A function that serves both types. */
const both =
  (name: string): Spelling =>
  ({ prelude, args }) =>
    call(prelude.use(`${name}_64`, 1), args);
/** A function of each type. */
const each =
  (name: string): Spelling =>
  ({ prelude, from, args }) =>
    call(prelude.use(`${name}_${from}`, 1), args);
const words =
  (operator: '&' | '|' | '^'): Spelling =>
  ({ args }) =>
    infix(operator, args[0]!, args[1]!);
const negated = (term: Term): Term => prefix('!', term);

const zero = primary('vec2u(0u)');

/** A value of another type as a pair of words. */
const widen: { readonly [K in Exclude<RegisterType, 'f64' | 'i64' | 'u64'>]: Spelling } = {
  i32: ({ prelude, args }) => call(prelude.use('words_i32', 1), args),
  u32: ({ args }) => call('vec2u', [args[0]!, primary('0u')]),
  bool: ({ args }) => call('vec2u', [call('u32', args), primary('0u')]),
  f32: ({ type, prelude, args }) => call(prelude.use(type === 'i64' ? 'int_64' : 'uint_64', 1), args),
};

const cast: Spelling = (site) => {
  const { type, from, args } = site;
  if (isWide(type)) return isWide(from) ? args[0]! : widen[from as keyof typeof widen](site);
  switch (type) {
    case 'bool':
      return negated(both('eq')({ ...site, args: [args[0]!, zero] }));
    case 'u32':
      return component(args[0]!, 0);
    case 'i32':
      return call('bitcast<i32>', [component(args[0]!, 0)]);
    case 'f32':
      return each('float')(site);
    case 'f64':
      throw new CompilerBug('WGSL emitter', 'WGSL has no registers of f64');
    default:
      return type satisfies never;
  }
};

/** An op that integers lack is a type error here, and so is a missing row. */
const table: { readonly [K in WideOp]: Spelling } = {
  neg: both('neg'),
  abs: (site) => (site.from === 'u64' ? site.args[0]! : each('abs')(site)),
  sign: each('sign'),
  not: ({ args }) => prefix('~', args[0]!),
  cast,
  bitcast: ({ args }) => args[0]!,
  add: both('add'),
  sub: both('sub'),
  mul: both('mul'),
  div: each('div'),
  mod: each('mod'),
  min: each('min'),
  max: each('max'),
  and: words('&'),
  or: words('|'),
  xor: words('^'),
  shl: both('shl'),
  shr: each('shr'),
  mulhi: each('mulhi'),
  lt: each('lt'),
  // a ≤ b where b is not less.
  le: (site) => negated(each('lt')({ ...site, args: [site.args[1]!, site.args[0]!] })),
  eq: both('eq'),
  ne: (site) => negated(both('eq')(site)),
  where: ({ args }) => call('select', [args[2]!, args[1]!, args[0]!]),
};

/** Whether an operation takes or gives integers of 64 bits. */
export const isOnWide = ({ type, from }: Pick<Site, 'type' | 'from'>): boolean =>
  isWide(type) || isWide(from);

/** The expression for an operation on integers of 64 bits. */
export function spellWide(op: LoopOp, site: Site): Term {
  const spelling: Spelling | undefined = Object.hasOwn(table, op) ? table[op as WideOp] : undefined;
  if (spelling === undefined || site.width !== 1)
    throw new CompilerBug('WGSL emitter', `${op} has no meaning on ${site.from}x${site.width}`);
  return spelling(site);
}
