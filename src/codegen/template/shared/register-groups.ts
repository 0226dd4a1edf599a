// Groups of four that one register of a core holds side by side, where it has more than four lanes.

import { addInts, constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import type { Target } from '../../../schedule/target.ts';

/** Groups of four that a register holds: 1 where nothing is known of registers. */
export const groupsInRegister = ({ serial }: Target): number => serial?.inRegister ?? 1;

/** Visits the groups from `first` to `end`, `count` at a time, and those that are left one at a time. */
export function eachOf(
  b: LoopBuilder,
  first: Value,
  end: Value,
  count: number,
): (visit: (groups: readonly Value[]) => void) => void {
  if (count === 1) return (visit) => b.for('quad', first, end, 1, (quad) => visit([quad]));
  const groups = b.let(operation('sub', [end, first], 'i32'), 'groups');
  const left = b.let(operation('mod', [groups, constant(count)], 'i32'), 'left');
  const whole = b.let(operation('sub', [end, left], 'i32'), 'whole_end');
  return (visit) => {
    b.for('quad', first, whole, count, (quad) =>
      visit(Array.from({ length: count }, (_, i) => b.let(addInts(quad, constant(i)), 'quad'))),
    );
    b.for('quad', whole, end, 1, (quad) => visit([quad]));
  };
}
