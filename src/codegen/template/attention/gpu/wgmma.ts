// Attention on Hopper's matrix units, in the manner of FlashAttention-3 (Shah et al., 2024): one warp group of a workgroup
// has blocks of keys and values copied into rings of slots, two others have 64 rows each. Scores and
// weighted sums are products of tiles in workgroup memory; weights are a left operand in registers. While one warp
// group computes weights, products of the other keep the matrix units busy. mbarriers say who may go on, as in products
// by warp groups (contract/gpu/warpgroups.ts); what lies between the products is computed on fragments (fragment-rows.ts).

import type { Node } from '../../../../ir/graph.ts';
import type { IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import { rounded } from '../../../expression/convert.ts';
import { addInts, builtin, constant, mulInts, operation } from '../../../loop/builder.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { tileLine } from '../../../loop/verify-warpgroup.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import { exchanged, fragment, isOddLane } from '../../shared/fragment.ts';
import { isOnlyRead, type Frame } from '../../shared/frame.ts';
import { groupRegisters, turnOf, warp, warpgroup, wgmmaRows } from '../../shared/warpgroup.ts';
import type { AttentionUnits, Sums } from '../products.ts';
import type { Attention } from '../rows.ts';
import type { KeyBlock } from '../seats.ts';
import { FragmentRows, seatInFragment, type FragmentSeats } from './fragment-rows.ts';
import { matrixTypeOf, memoryNames, packedPairs, shrinkSums } from './mma.ts';
import { sweptLoop, type Staff } from './sweep.ts';
import {
  copyBlock,
  operandOf,
  sidesOf,
  stagedSides,
  tilesBytes,
  type Sides,
  type Staged,
  type StagedTile,
  type WgmmaAttentionTiling,
} from './tiles.ts';

/** Registers that hold scores, sums and weights, at most. */
const mostHeld = 184;
/** Slots of a ring: one is used, one is on its way. */
const slots = 2;

/** By warp groups, where all operands are of 16 bits and can be copied by tiles. */
export const wgmma: FittingStrategy<Attention> = {
  loop(frame, body) {
    const staff = staffOf(frame, body);
    return staff === undefined ? undefined : sweptLoop(frame, body, staff);
  },
};

function staffOf(frame: Frame, body: Attention): Staff | undefined {
  const operand = matrixTypeOf(body);
  const { matrixUnits = [], warpgroups, limits } = frame.target;
  if (warpgroups === undefined || (operand !== 'f16' && operand !== 'bf16')) return undefined;
  if (!matrixUnits.includes(operand)) return undefined;
  // Most of a tile would be idle.
  const axes = [...body.inners.map(({ depth }) => depth), ...body.outers.map(({ column }) => column)];
  if (axes.some(({ extent }) => 3 * extent < 2 * tileLine * Math.ceil(extent / tileLine))) return undefined;
  if (2 * body.row.extent < wgmmaRows || 2 * body.key.extent < tileLine) return undefined;
  const sides = sidesOf(body);
  if (sides === undefined) return undefined;
  // Tiles are copied from what no one writes meanwhile.
  const all = [...sides.rows, ...sides.keys, ...sides.values];
  if (!all.every(({ tiled: { node } }) => isOnlyRead(frame, node))) return undefined;
  const groups = body.row.extent > wgmmaRows ? 2 : 1;
  const tiling = [128, 64, 32]
    .map((keys): WgmmaAttentionTiling => ({ groups, keys }))
    .find((one) => {
      // Tiles begin at a multiple of 1024 bytes.
      const bytes = tilesBytes(sides, body, one, slots);
      return bytes !== undefined && bytes + 1024 <= limits.workgroupBytes && heldBy(body, one) <= mostHeld;
    });
  if (tiling === undefined || warpgroup * (groups + 1) > limits.workgroupInvocations) return undefined;
  const rows = new FragmentRows(frame, body, seatsOf(tiling), memoryNames(body));
  const units = new WarpgroupUnits(rows, operand, tiling, sides);
  const note = `by warp groups (${operand}), ${groups * wgmmaRows} rows by ${tiling.keys} keys a workgroup`;
  return { rows, units, note };
}

/** Registers of an invocation that hold scores, sums, and weights that are multiplied. */
function heldBy({ inners, outers }: Attention, { keys }: WgmmaAttentionTiling): number {
  const sums = outers.map(({ column }) => (tileLine * Math.ceil(column.extent / tileLine)) / 2);
  return sums.reduce((total, sum) => total + sum, (inners.length * keys) / 2 + (outers.length * keys) / 4);
}

/** Which of the warp groups that compute this is; the one that copies stands where the first does. */
function groupNow(): Value {
  return operation('max', [addInts(builtin('local', 1), constant(-1)), constant(0)], 'i32');
}

function seatsOf({ groups, keys }: WgmmaAttentionTiling): FragmentSeats {
  const { upper, place, part } = seatInFragment();
  const ownWarp = operation('div', [builtin('local', 0), constant(warp)], 'i32');
  const own = addInts(mulInts(groupNow(), constant(wgmmaRows)), mulInts(ownWarp, constant(fragment.m)));
  return {
    rows: groups * wgmmaRows,
    parts: 2,
    place: addInts(own, place),
    upper: addInts(own, upper),
    part,
    workgroup: [warpgroup, groups + 1, 1],
    quads: keys / 8,
  };
}

/** Tiles that come and go together, and the mbarriers that guard them. */
interface Ring {
  readonly full: string;
  readonly empty: string;
  readonly tiles: readonly StagedTile[];
}

/** Where a block lies in a ring, and the parity of how often the ring was gone round before. */
type Turn = readonly [slot: Value, parity: Value];

const rowsFull = 'rows_full';

class WarpgroupUnits implements AttentionUnits {
  readonly #rows: FragmentRows;
  readonly #operand: 'f16' | 'bf16';
  readonly #tiling: WgmmaAttentionTiling;
  readonly #sides: Readonly<Record<keyof Sides, readonly Staged[]>>;
  /** Of what scores are made of, and of what only weighted sums are. */
  readonly #keyRing: Ring;
  readonly #valueRing: Ring;
  /** Blocks so far, of each ring. */
  readonly #turns = new Map<Ring, Value>();
  /** The slot of the present keys. */
  #keySlot: Value = constant(0);

  constructor(rows: FragmentRows, operand: 'f16' | 'bf16', tiling: WgmmaAttentionTiling, sides: Sides) {
    this.#rows = rows;
    this.#operand = operand;
    this.#tiling = tiling;
    this.#sides = stagedSides(rows.frame, rows.body, tiling, sides);
    const keys = new Set(this.#sides.keys.map(({ tile }) => tile));
    const values = new Set(this.#sides.values.map(({ tile }) => tile));
    const ring = (name: string, tiles: readonly StagedTile[]): Ring => ({
      full: `${name}_full`,
      empty: `${name}_empty`,
      tiles,
    });
    this.#keyRing = ring('keys', [...keys]);
    this.#valueRing = ring(
      'values',
      [...values].filter((tile) => !keys.has(tile)),
    );
  }

  get #rings(): readonly Ring[] {
    return [this.#keyRing, this.#valueRing].filter(({ tiles }) => tiles.length > 0);
  }

  /** Whether weighted sums read what scores are made of. */
  get #sharesKeys(): boolean {
    return this.#sides.values.some(({ tile }) => this.#keyRing.tiles.includes(tile));
  }

  get rounds(): 'f16' | 'bf16' {
    return this.#operand;
  }

  get memory(): readonly LoopBuffer[] {
    const buffer = ({ buffer: name, size }: StagedTile, count: number): LoopBuffer => ({
      name,
      space: 'workgroup',
      dtype: this.#operand,
      size: size * count,
      access: 'read_write',
      tiled: true,
    });
    return [
      ...this.#sides.rows.map(({ tile }) => buffer(tile, 1)),
      ...this.#rings.flatMap(({ tiles }) => tiles.map((tile) => buffer(tile, slots))),
    ];
  }

  get maps(): Required<Pick<Loop, 'tileMaps' | 'mbarriers'>> {
    const tiles = [...this.#sides.rows.map(({ tile }) => tile), ...this.#rings.flatMap((ring) => ring.tiles)];
    return {
      tileMaps: tiles.map(({ map }) => map),
      mbarriers: [
        { name: rowsFull, size: 1 },
        ...this.#rings.flatMap(({ full, empty }) => [full, empty].map((name) => ({ name, size: slots }))),
      ],
    };
  }

  divide(walks: readonly boolean[], compute: () => void): void {
    const { b } = this.#rows;
    const { groups } = this.#tiling;
    const isFirst = b.let(operation('eq', [builtin('local', 0), constant(0)], 'bool'), 'first');
    const isCopying = b.let(operation('eq', [builtin('local', 1), constant(0)], 'bool'), 'copying');
    const begin = (barrier: string, size: number, count: number): void => {
      for (let slot = 0; slot < size; slot++)
        b.add({ kind: 'initBarrier', barrier, index: constant(slot), count });
    };
    b.if(operation('and', [isFirst, isCopying], 'bool'), () => {
      begin(rowsFull, 1, 1);
      for (const { full, empty } of this.#rings) {
        begin(full, slots, 1);
        begin(empty, slots, (groups * warpgroup) / warp);
      }
    });
    b.barrier();
    const start = (): void => {
      for (const ring of this.#rings) this.#turns.set(ring, b.var('turn', constant(0)));
    };
    b.if(
      isCopying,
      () => {
        if (groups > 1) b.add({ kind: 'setRegisters', count: groupRegisters.copies, grow: false });
        b.if(isFirst, () => {
          start();
          this.#copies(walks);
        });
      },
      () => {
        if (groups > 1) b.add({ kind: 'setRegisters', count: groupRegisters.multiplies, grow: true });
        start();
        b.add({ kind: 'awaitBarrier', barrier: rowsFull, index: constant(0), parity: constant(0) });
        compute();
      },
    );
  }

  /** Copies the rows once, then block after block of all walks. `walks`: whether each adds weighted sums. */
  #copies(walks: readonly boolean[]): void {
    const { b, firstRow, blockQuads } = this.#rows;
    const place = this.#rows.lowering([]);
    const partAt = (index: IndexExpr): Value => place.index(index);
    const rowTiles = this.#sides.rows.map(({ tile }) => tile);
    b.add({ kind: 'arrive', barrier: rowsFull, index: constant(0), bytes: bytesOf(rowTiles) });
    for (const tile of rowTiles) copyBlock(b, tile, firstRow, partAt, constant(0), rowsFull);
    for (const adds of walks) {
      const [start, end] = this.#rows.keySpan();
      b.for('block', start, end, blockQuads, (quad) => {
        const first = b.let(mulInts(quad, constant(4)), 'first_key');
        for (const ring of adds ? this.#rings : [this.#keyRing]) {
          const [slot, parity] = this.#turn(ring);
          // The phase before the first counts as over: at the beginning every slot is empty.
          const before = b.let(operation('sub', [constant(1), parity], 'i32'), 'before');
          b.add({ kind: 'awaitBarrier', barrier: ring.empty, index: slot, parity: before });
          b.add({ kind: 'arrive', barrier: ring.full, index: slot, bytes: bytesOf(ring.tiles) });
          for (const tile of ring.tiles) copyBlock(b, tile, first, partAt, slot, ring.full);
        }
      });
    }
  }

  scores(): readonly ReadonlyMap<Node, Value>[] {
    const { b, body } = this.#rows;
    const { keys } = this.#tiling;
    this.#keySlot = this.#await(this.#keyRing);
    const ownRow = b.let(mulInts(groupNow(), constant(wgmmaRows)), 'own_row');
    const all = body.inners.map(() =>
      Array.from({ length: keys / fragment.n }, () => b.var('dot', constant(0, 'f32', 4))),
    );
    const names = all.flatMap(namesOf);
    b.add({ kind: 'wgmmaFence', sums: names });
    body.inners.forEach(({ depth }, i) => {
      for (let k = 0; k < depth.extent; k += fragment.k)
        b.add({
          kind: 'wgmma',
          sums: namesOf(all[i]!),
          operand: this.#operand,
          lhs: operandOf(b, this.#sides.rows[i]!, constant(0), k, ownRow),
          rhs: operandOf(b, this.#sides.keys[i]!, this.#keySlot, k, constant(0)),
        });
    });
    this.#multiplied(names);
    if (!this.#sharesKeys) this.#release(this.#keyRing, this.#keySlot);
    return all[0]!.map(
      (_, at) =>
        new Map(
          body.inners.map(({ node }, i) => [node as Node, b.let(rounded(all[i]![at]!, node.dtype), 'score')]),
        ),
    );
  }

  open(outer: number): Sums {
    const { b } = this.#rows;
    const { tile, alongK } = this.#sides.values[outer]!;
    const columns = alongK ? tile.lines : tileLine * tile.panels;
    const sums = Array.from({ length: columns / fragment.n }, () => b.var('sum', constant(0, 'f32', 4)));
    return { outer, registers: sums };
  }

  shrink(all: readonly Sums[], factors: readonly Value[]): void {
    shrinkSums(this.#rows.b, all, factors);
  }

  add(_: KeyBlock, all: readonly Sums[], weights: readonly (readonly Value[])[]): void {
    if (all.length > 0) this.#add(all, weights);
    if (this.#sharesKeys) this.#release(this.#keyRing, this.#keySlot);
  }

  #add(all: readonly Sums[], weights: readonly (readonly Value[])[]): void {
    const { b } = this.#rows;
    const ring = this.#valueRing;
    const words = weights.map((line) => line.map((weight) => packedPairs(b, weight, this.#operand)));
    const valueSlot = ring.tiles.length > 0 ? this.#await(ring) : undefined;
    const names = all.flatMap((sums) => namesOf(sums.registers));
    b.add({ kind: 'wgmmaFence', sums: names });
    all.forEach((sums, i) => {
      const side = this.#sides.values[sums.outer]!;
      const slot = ring.tiles.includes(side.tile) ? valueSlot! : this.#keySlot;
      for (let step = 0; step < this.#tiling.keys / fragment.k; step++) {
        const args = words[i]!.slice(2 * step, 2 * step + 2).flat();
        b.add({
          kind: 'wgmma',
          sums: namesOf(sums.registers),
          operand: this.#operand,
          words: b.let({ kind: 'vector', args, type: 'u32', width: 4 }, 'weights'),
          rhs: operandOf(b, side, slot, fragment.k * step, constant(0)),
        });
      }
    });
    this.#multiplied(names);
    if (valueSlot !== undefined) this.#release(ring, valueSlot);
  }

  whole({ outer, registers: sums }: Sums): readonly Value[] {
    const { b, body } = this.#rows;
    const count = Math.ceil(body.outers[outer]!.column.extent / fragment.n);
    return sums.slice(0, count).map((sum) => exchanged(b, sum, isOddLane(b)));
  }

  #multiplied(sums: readonly string[]): void {
    const { b } = this.#rows;
    b.add({ kind: 'wgmmaCommit' });
    b.add({ kind: 'wgmmaWait', pending: 0, sums });
  }

  /** Where the next block of a ring lies. */
  #turn(ring: Ring): Turn {
    const { b } = this.#rows;
    const turn = this.#turns.get(ring)!;
    const found = turnOf(b, turn, slots);
    b.assign(turn, addInts(turn, constant(1)));
    return found;
  }

  /** Waits for the next block of a ring; returns its slot. */
  #await(ring: Ring): Value {
    const [slot, parity] = this.#turn(ring);
    this.#rows.b.add({ kind: 'awaitBarrier', barrier: ring.full, index: slot, parity });
    return slot;
  }

  /** Of each warp one invocation says that it needs a block no longer. */
  #release({ empty }: Ring, slot: Value): void {
    const { b } = this.#rows;
    const inWarp = operation('mod', [builtin('local', 0), constant(warp)], 'i32');
    const isLeader = b.let(operation('eq', [inWarp, constant(0)], 'bool'), 'leader');
    b.if(isLeader, () => b.add({ kind: 'arrive', barrier: empty, index: slot, bytes: 0 }));
  }
}

function bytesOf(tiles: readonly StagedTile[]): number {
  return tiles.reduce((sum, { size }) => sum + 2 * size, 0);
}

function namesOf(sums: readonly Value[]): readonly string[] {
  return sums.flatMap((sum) => (sum.kind === 'variable' ? [sum.name] : []));
}
