// The sum over a one-hot row: one load at its position, without a sweep.

import { dynamicIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Axis } from '../../../schedule/kernel.ts';
import { both, constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import type { Lowering } from '../../expression/lowering.ts';
import type { Value } from '../../loop/loop.ts';
import type { Pick } from './plan.ts';

/** Its value; `bind` lowers at a place of the row, told in atoms. */
export function pickedOf(
  b: LoopBuilder,
  { stage, at, value }: Pick,
  column: Axis,
  perRow: Lowering,
  bind: (column: IndexExpr, atoms: readonly (readonly [IndexExpr, Value])[]) => Lowering,
): Value {
  const place = perRow.value(at);
  const last = constant(column.extent - 1);
  const inside = both(operation('le', [constant(0), place], 'bool'), operation('le', [place, last], 'bool'));
  const clamped = operation('min', [operation('max', [place, constant(0)], 'i32'), last], 'i32');
  const atom = dynamicIndex('picked', 0, column.extent - 1);
  const found = bind(atom, [[atom, b.let(clamped, 'at')]]).value(value);
  const zero = constant(0, found.type);
  return b.let(rounded(operation('where', [inside, found, zero], found.type), stage.dtype), 'picked');
}
