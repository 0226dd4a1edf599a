// Between the splits of an op's operands and result, and the factors of its rule: which mesh axes split each factor.

import type { Mesh } from '../ir/mesh/mesh.ts';
import type { ShardAssignment, AxisFactors, ShardingRule } from './rule.ts';
import { axisSize, partsOf, type Split } from '../ir/mesh/split.ts';

/** Mesh axes by factor, while they are being chosen. */
type Draft = (readonly string[])[];

/** No factor is split. */
export function unassigned(rule: ShardingRule): ShardAssignment {
  return rule.factors.map(() => []);
}

/**
 * Adds to an assignment what the splits of values ask for, in the order of the values, as far as it fits: a mesh axis splits one
 * factor, a factor's parts are equal, and every operand and the result can be laid out so.
 */
export function extended(
  mesh: Mesh,
  rule: ShardingRule,
  from: ShardAssignment,
  wishes: readonly (readonly [axes: readonly AxisFactors[], split: Split])[],
): ShardAssignment {
  const draft: Draft = [...from];
  for (const [axes, split] of wishes)
    for (const [axis, factors] of axes.entries()) wish(mesh, rule, draft, factors, split[axis]!);
  return representable(mesh, rule, draft);
}

/** Splits the factors of one axis as its split asks, up to the first mesh axis that does not fit. */
function wish(
  mesh: Mesh,
  rule: ShardingRule,
  draft: Draft,
  factors: AxisFactors,
  names: readonly string[],
): void {
  let [at, left] = [0, names];
  while (left.length > 0 && at < factors.length) {
    const factor = factors[at]!;
    const { size } = rule.factors[factor]!;
    const has = draft[factor]!;
    // What splits it already has to begin the split.
    const common = has.findIndex((name, i) => name !== left[i]);
    if (common >= 0) return;
    left = left.slice(has.length);
    let parts = partsOf(mesh, has);
    while (left.length > 0) {
      const [name] = left as readonly [string];
      const next = parts * axisSize(mesh, name);
      if (size % next !== 0 || draft.some((axes) => axes.includes(name))) break;
      draft[factor] = [...draft[factor]!, name];
      [parts, left] = [next, left.slice(1)];
    }
    if (parts < size) return;
    at += 1;
  }
}

/** Without what cannot be laid out: of an axis of several factors a later one can be split only if those before it are in single steps. */
function representable(mesh: Mesh, rule: ShardingRule, draft: Draft): ShardAssignment {
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    for (const axes of [...rule.operands, rule.result]) {
      for (const factors of axes) {
        let isOpen = true;
        for (const factor of factors) {
          if (!isOpen && draft[factor]!.length > 0) {
            draft[factor] = [];
            isChanged = true;
          }
          isOpen &&= partsOf(mesh, draft[factor]!) === rule.factors[factor]!.size;
        }
      }
    }
  }
  return draft;
}

/** How a value whose axes have these factors is split. */
export function splitBy(assignment: ShardAssignment, axes: readonly AxisFactors[]): Split {
  return axes.map((factors) => factors.flatMap((factor) => assignment[factor]!));
}

/** The mesh axes along which results have to be combined, by the monoid that does it. */
export function foldedBy(rule: ShardingRule, assignment: ShardAssignment): readonly ShardFold[] {
  const held = new Set(rule.result.flat());
  return rule.factors.flatMap(({ fold }, factor) => {
    const over = assignment[factor]!;
    return fold === undefined || held.has(factor) || over.length === 0 ? [] : [{ over, monoid: fold }];
  });
}

export interface ShardFold {
  readonly over: readonly string[];
  readonly monoid: NonNullable<ShardingRule['factors'][number]['fold']>;
}
