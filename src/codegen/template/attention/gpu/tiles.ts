// The tiles of an attention kernel by warp groups: which operands can be copied by tiles, how they lie
// in workgroup memory, and which of them share one (keys that are values too, as in gradients).

import { printIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts } from '../../../loop/builder.ts';
import type { LoopBuilder } from '../../../loop/builder.ts';
import type { TileMap, TileOperand, Value } from '../../../loop/loop.ts';
import { tileLine } from '../../../loop/verify-warpgroup.ts';
import { narrowed } from '../../contract/problem.ts';
import {
  boxAt,
  tiledOperand,
  tileMapOf,
  type OperandMap,
  type TiledOperand,
} from '../../contract/tile-map.ts';
import { fragment } from '../../shared/fragment.ts';
import { wgmmaRows } from '../../shared/warpgroup.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import type { Attention } from '../rows.ts';

export interface WgmmaAttentionTiling {
  /** Warp groups that compute. */
  readonly groups: number;
  /** Keys of a block. */
  readonly keys: number;
}

/** An operand of a product, and how it lies. */
export interface Side {
  readonly tiled: TiledOperand;
  readonly free: Axis;
  readonly k: Axis;
}

export interface Sides {
  readonly rows: readonly Side[];
  readonly keys: readonly Side[];
  readonly values: readonly Side[];
}

/**
 * A tile of an operand in workgroup memory: panels of 64 elements of one axis, each of `lines` lines
 * along the other. Axes that are not taken in blocks are taken whole.
 */
export interface StagedTile {
  readonly buffer: string;
  readonly map: TileMap;
  readonly roles: OperandMap['roles'];
  /** Parts of the batch. */
  readonly batches: readonly IndexExpr[];
  readonly panels: number;
  readonly lines: number;
  /** Elements. */
  readonly size: number;
  /** What rows or keys run along. */
  readonly blocks: 'line' | 'lines';
}

/** A side and its tile. */
export interface Staged {
  readonly tile: StagedTile;
  readonly alongK: boolean;
}

/** The sides of all products; undefined where one cannot be copied by tiles. */
export function sidesOf({ batch, row, key, inners, outers }: Attention): Sides | undefined {
  const sideOf = (operand: Parameters<typeof narrowed>[0], free: Axis, k: Axis): Side | undefined => {
    const tiled = tiledOperand(narrowed(operand), free, { batch, k });
    return tiled === undefined ? undefined : { tiled, free, k };
  };
  const rows = inners.map(({ ofRow, depth }) => sideOf(ofRow, row, depth));
  const keys = inners.map(({ ofKey, depth }) => sideOf(ofKey, key, depth));
  const values = outers.map(({ value, column }) => sideOf(value, column, key));
  const isThere = (side: Side | undefined): side is Side => side !== undefined;
  return rows.every(isThere) && keys.every(isThere) && values.every(isThere)
    ? { rows, keys, values }
    : undefined;
}

/** Elements of a block along the axes that are taken in blocks. */
function blocksOf(
  { row, key }: Attention,
  { groups, keys }: WgmmaAttentionTiling,
): ReadonlyMap<Axis, number> {
  return new Map([
    [row, groups * wgmmaRows],
    [key, keys],
  ]);
}

/** Elements of a tile along its lines, and how many lines. */
function sizesOf({ tiled, free, k }: Side, blocks: ReadonlyMap<Axis, number>): readonly [number, number] {
  const up = (axis: Axis, to: number): number => blocks.get(axis) ?? to * Math.ceil(axis.extent / to);
  return tiled.alongK ? [up(k, tileLine), up(free, fragment.k)] : [up(free, tileLine), up(k, fragment.k)];
}

/** What sides have in common that can share a tile. */
function placeOf({ tiled, free, k }: Side): string {
  const { node, offset, batches, alongK, count } = tiled;
  const [line, lines] = alongK ? [k, free] : [free, k];
  const zeros = count === free.extent ? '' : `from ${count} along ${alongK ? 'lines' : 'a line'}`;
  const parts = batches.map(({ index, stride }) => `${printIndex(index)} · ${stride}`);
  return [node.id, offset, ...parts, line.extent, lines.extent, alongK ? tiled.free : tiled.k, zeros].join(
    ' ',
  );
}

/** Bytes of workgroup memory; undefined where tiles are none that a device can copy and multiply. */
export function tilesBytes(
  { rows, keys, values }: Sides,
  body: Attention,
  tiling: WgmmaAttentionTiling,
  slots: number,
): number | undefined {
  const blocks = blocksOf(body, tiling);
  const all = [...rows, ...keys, ...values];
  const isLegal = all.every((side) => {
    const [line, lines] = sizesOf(side, blocks);
    return line % tileLine === 0 && lines <= 256;
  });
  if (!isLegal) return undefined;
  const bytesOf = (side: Side): number => sizesOf(side, blocks).reduce((product, size) => product * size, 2);
  const sum = (sizes: Iterable<number>): number => [...sizes].reduce((total, size) => total + size, 0);
  const shared = new Map([...keys, ...values].map((side) => [placeOf(side), bytesOf(side)]));
  return sum(rows.map(bytesOf)) + slots * sum(shared.values());
}

/** The sides of a kernel with their tiles. */
export function stagedSides(
  frame: Frame,
  body: Attention,
  tiling: WgmmaAttentionTiling,
  { rows, keys, values }: Sides,
): {
  readonly rows: readonly Staged[];
  readonly keys: readonly Staged[];
  readonly values: readonly Staged[];
} {
  const blocks = blocksOf(body, tiling);
  const tileOf = (side: Side, name: string): StagedTile => {
    const { tiled, free, k } = side;
    const batches = tiled.batches.map(({ index }) => index);
    const [line, lines] = sizesOf(side, blocks);
    const buffer = bufferName(frame)(tiled.node);
    const { map, roles } = tileMapOf(`map_${name}`, buffer, tiled, free, k, lines);
    const along = blocks.has(tiled.alongK ? k : free) ? 'line' : 'lines';
    return {
      buffer: name,
      map,
      roles,
      batches,
      panels: line / tileLine,
      lines,
      size: line * lines,
      blocks: along,
    };
  };
  const known = new Map<string, StagedTile>();
  const shared = (side: Side, name: string): StagedTile => {
    const tile = known.get(placeOf(side)) ?? tileOf(side, name);
    known.set(placeOf(side), tile);
    return tile;
  };
  const staged = (sides: readonly Side[], name: string, find: typeof tileOf): Staged[] =>
    sides.map((side, i) => ({ tile: find(side, `${name}_${i}`), alongK: side.tiled.alongK }));
  return {
    rows: staged(rows, 'rows', tileOf),
    keys: staged(keys, 'keys', shared),
    values: staged(values, 'values', shared),
  };
}

/** Copies the block that begins at row or key `first`; all panels belong to one mbarrier. */
export function copyBlock(
  b: LoopBuilder,
  { buffer, map, roles, batches, panels, lines, size, blocks }: StagedTile,
  first: Value,
  partAt: (index: IndexExpr) => Value,
  slot: Value,
  barrier: string,
): void {
  for (let panel = 0; panel < panels; panel++) {
    const start = constant(panel * tileLine);
    const line = blocks === 'line' ? b.let(addInts(first, start), 'at') : start;
    const across = blocks === 'lines' ? first : constant(0);
    const index = addInts(mulInts(slot, constant(size)), constant(panel * lines * tileLine));
    b.add({
      kind: 'copyTile',
      buffer,
      index: b.let(index, 'to'),
      map: map.name,
      at: boxAt(roles, line, across, batches.map(partAt)),
      barrier,
      slot,
    });
  }
}

/** Sixteen steps of k of a side, from step `k` on, for what begins at `free` on the other axis: a multiple of 64. */
export function operandOf(
  b: LoopBuilder,
  { tile: { buffer, size, lines }, alongK }: Staged,
  slot: Value,
  k: number,
  free: Value,
): TileOperand {
  const panel = lines * tileLine;
  const inTile = mulInts(free, constant(alongK ? tileLine : lines));
  const step = alongK ? Math.floor(k / tileLine) * panel + (k % tileLine) : k * tileLine;
  // What all steps have in common is computed once.
  const tile = b.let(addInts(mulInts(slot, constant(size)), inTile), 'operand');
  return { buffer, index: addInts(tile, constant(step)), alongK, panel };
}
