// Four vectors of four lanes turned around: a square whose rows become columns.

import type { LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';

/** Rows of four vectors as columns: two rounds of lanes of two vectors each. */
export function transposed(b: LoopBuilder, rows: readonly Value[]): Value[] {
  const pick = (x: Value, y: Value, lanes: readonly (readonly [of: 0 | 1, lane: number])[]): Value => {
    const args = lanes.map(([of, lane]): Value => ({
      kind: 'lane',
      arg: of === 0 ? x : y,
      lane,
      type: x.type,
      width: 1,
    }));
    return b.let({ kind: 'vector', args, type: x.type, width: 4 }, 'turned');
  };
  const low = [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const;
  const high = [
    [0, 2],
    [1, 2],
    [0, 3],
    [1, 3],
  ] as const;
  const first = [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const;
  const second = [
    [0, 2],
    [0, 3],
    [1, 2],
    [1, 3],
  ] as const;
  const [a, c] = [pick(rows[0]!, rows[1]!, low), pick(rows[2]!, rows[3]!, low)];
  const [d, e] = [pick(rows[0]!, rows[1]!, high), pick(rows[2]!, rows[3]!, high)];
  return [pick(a, c, first), pick(a, c, second), pick(d, e, first), pick(d, e, second)];
}
