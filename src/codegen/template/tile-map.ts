// Operands that a device can copy by tiles: reads that lie in memory as they are multiplied, by constant strides along the axes of
// the product, one of which is 1. Anything else (a prologue, a convolution's window) is staged by invocations.

import { coefficientOf, type IndexExpr } from '../../ir/index-expr.ts';
import type { Node } from '../../ir/graph.ts';
import type { Expr } from '../../schedule/expr.ts';
import type { Axis } from '../../schedule/kernel.ts';
import type { TileMap, Value } from '../loop.ts';
import { tileAlignment, tileLine } from '../verify-warpgroup.ts';
import type { Contract } from './contract-problem.ts';

/** How an operand lies: `k`, `free` and `batch` are strides in elements, 0 along an axis of one index. */
export interface TiledOperand {
  readonly node: Node;
  readonly alongK: boolean;
  readonly offset: number;
  readonly k: number;
  readonly free: number;
  readonly batch: number;
}

/** Undefined where the operand is none that can be copied by tiles. */
export function tiledOperand(operand: Expr, free: Axis, { batch, k }: Contract): TiledOperand | undefined {
  if (operand.kind !== 'read') return undefined;
  const { index, node } = operand;
  const [alongK, along, across] = [k, free, batch].map(({ atom }) => coefficientOf(index, atom));
  if (alongK === undefined || along === undefined || across === undefined) return undefined;
  const offset = offsetOf(index, [k, free, batch]);
  if (offset === undefined || offset % tileAlignment !== 0) return undefined;
  // Along an axis of one index, neighbours are as good as any.
  const lies = { node, offset, k: alongK, free: along, batch: across };
  if (lies.k === 1 && isStride(lies.free))
    return isStride(lies.batch) ? { ...lies, alongK: true } : undefined;
  if (lies.free === 1 && isStride(lies.k))
    return isStride(lies.batch) ? { ...lies, alongK: false } : undefined;
  return undefined;
}

function isStride(stride: number): boolean {
  return stride >= 0 && stride % tileAlignment === 0;
}

/** The constant of a sum of axes; undefined where there is anything else in it. */
function offsetOf(index: IndexExpr, axes: readonly Axis[]): number | undefined {
  const atoms = axes.map(({ atom }) => atom);
  if (index.kind === 'const') return index.value;
  if (index.kind !== 'sum') return atoms.includes(index) ? 0 : undefined;
  return index.terms.every(({ atom }) => atoms.includes(atom)) ? index.offset : undefined;
}

/** The map of an operand's buffer, for boxes of `depth` steps of k and `tile` positions (64 of them, where lines run along the free axis). */
export function tileMapOf(
  name: string,
  buffer: string,
  operand: TiledOperand,
  free: Axis,
  { batch, k }: Contract,
  tile: number,
): TileMap {
  const { alongK, offset } = operand;
  const [line, lines] = alongK ? [k, free] : [free, k];
  const own = alongK ? operand.free : operand.k;
  // An axis with one index has no stride, but a device wants one: as if lines followed each other.
  const across = own === 0 ? tileAlignment * Math.ceil(line.extent / tileAlignment) : own;
  const isBatched = batch.extent > 1 && operand.batch !== 0;
  return {
    name,
    buffer,
    offset,
    sizes: [line.extent, lines.extent, ...(isBatched ? [batch.extent] : [])],
    strides: [1, across, ...(isBatched ? [operand.batch] : [])],
    box: [tileLine, alongK ? tile : tileLine, ...(isBatched ? [1] : [])],
  };
}

/** Coordinates of a box in a map. */
export function boxAt(map: TileMap, alongK: boolean, k: Value, free: Value, group: Value): readonly Value[] {
  const place = alongK ? [k, free] : [free, k];
  return map.sizes.length === 3 ? [...place, group] : place;
}
