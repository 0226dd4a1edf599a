// Whether any lane of a vector is true, found again in what `Terms.any` makes of it.

import type { Value } from '../../../loop/loop.ts';

/**
 * The vector of which a value says whether any lane is true, as `Terms.any` writes it: one
 * instruction on some targets.
 */
export function anyLaneOf(value: Value): Value | undefined {
  const lanes: Value[] = [];
  let rest = value;
  while (rest.kind === 'op' && rest.op === 'or' && rest.width === 1) {
    const [some, one] = rest.args;
    lanes.unshift(one!);
    rest = some!;
  }
  lanes.unshift(rest);
  const vector = rest.kind === 'lane' ? rest.arg : undefined;
  if (vector?.kind !== 'variable' || vector.width !== lanes.length || vector.type !== 'bool')
    return undefined;
  const isLane = (one: Value, lane: number): boolean =>
    one.kind === 'lane' && one.lane === lane && one.arg.kind === 'variable' && one.arg.name === vector.name;
  return lanes.every(isLane) ? vector : undefined;
}
