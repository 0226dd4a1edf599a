// Reductions over a subgroup in WGSL. The specification leaves open what subgroupMax and
// subgroupMin do with NaN, so floats are compared as integers in the same order, in which NaN is
// the greatest or the least.

import type { Monoid } from '../../../ir/ops.ts';
import type { Value } from '../../loop/loop.ts';
import type { WgslPrelude } from './prelude.ts';
import { call, infix, primary, type Term } from '../shared/term.ts';
import { typeName } from './types.ts';

const builtins: Readonly<Record<Monoid, string>> = {
  sum: 'subgroupAdd',
  prod: 'subgroupMul',
  min: 'subgroupMin',
  max: 'subgroupMax',
  and: 'subgroupAnd',
  or: 'subgroupOr',
};

/** The combination of a value over the subgroup. */
export function spellSubgroup(
  monoid: Monoid,
  { type, width }: Value,
  term: Term,
  prelude: WgslPrelude,
): Term {
  const extreme = monoid === 'min' || monoid === 'max';
  if (type === 'bool') {
    // false < true, as bits.
    const bits = typeName('u32', width);
    const joined = call(builtins[monoid], [call(bits, [term])]);
    return width === 1 ? infix('!=', joined, primary('0u')) : infix('!=', joined, primary(`${bits}(0u)`));
  }
  if (type !== 'f32' || !extreme) return call(builtins[monoid], [term]);
  const ordered = call(prelude.use(`order_${monoid}_F`, width), [term]);
  return call(prelude.use('unorder_F', width), [call(builtins[monoid], [ordered])]);
}
