// The lanes of an axis that is spread over a vector: the atom that represents them in indices, and what
// replaces it for a single lane.

import { axisIndex, constantIndex, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import type { Value } from '../loop/loop.ts';

/** The lane of a vectorised axis. */
export const laneAtom: IndexExpr = axisIndex('lane', 4);
/** The first lane alone. */
export const firstLane: ReadonlyMap<IndexExpr, IndexExpr> = new Map([[laneAtom, constantIndex(0)]]);
/** Each lane alone. */
export const eachLane: readonly ReadonlyMap<IndexExpr, IndexExpr>[] = [0, 1, 2, 3].map(
  (lane): ReadonlyMap<IndexExpr, IndexExpr> => new Map([[laneAtom, constantIndex(lane)]]),
);

/** One lane of a vector. */
export function laneOf(value: Value, lane: number): Value {
  return { kind: 'lane', arg: value, lane, type: value.type, width: 1 };
}
