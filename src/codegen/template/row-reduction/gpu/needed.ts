// Whether rows are needed at all.

import { both, constant, less, mulInts, type LoopBuilder } from '../../../loop/builder.ts';
import type { Lowering } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Frame } from '../../shared/frame.ts';
import { neededOf, pointNeeded } from '../../shared/needed.ts';
import type { RowTiling } from '../tiling.ts';

/**
 * Whether a row is needed, which has the number `unit`, or any of those that meet at barriers, of
 * which it is the first. `perRow` lowers values of the row.
 */
export function rowNeeded(
  b: LoopBuilder,
  frame: Frame,
  { rows, parts, lanes }: RowTiling,
  unit: Value,
  perRow: () => Lowering,
): Value {
  const { body } = frame.kernel;
  if (body.kind !== 'row-reduction') return constant(1, 'bool');
  const needed = neededOf(b, frame, body.row);
  const first = mulInts(unit, constant(lanes === 'row' ? 4 : 1));
  const within = needed === undefined ? constant(1, 'bool') : less(first, needed);
  const isAlone = lanes !== 'row' && (parts === 1 || rows === 1);
  return isAlone ? both(within, pointNeeded(b, frame, body.row, perRow)) : within;
}
