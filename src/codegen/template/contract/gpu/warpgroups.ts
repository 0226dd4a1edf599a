// The form of dot for Hopper's matrix units: one warp group of a workgroup has tiles of both
// operands copied into a ring of slots, the others multiply them as they come and write the
// results. Workgroups stay and take tile after tile, so that copies for the next one begin while
// the last one is written. Two mbarriers a slot say who may go on: `full` when its copies have
// come, `empty` when every warp that multiplies is done with it. The design is that of CUTLASS's
// persistent warp-specialised kernels.

import { CompilerBug } from '../../../../errors.ts';
import {
  addInts,
  both,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { BarrierArray, Loop, LoopBuffer, TileMap, TileOperand, Value } from '../../../loop/loop.ts';
import { tileLine } from '../../../loop/verify-warpgroup.ts';
import { matrixOperands, narrowed, type Contract } from '../problem.ts';
import type { Tile } from '../strategy.ts';
import { fragment } from '../../shared/fragment.ts';
import { groupRegisters, turnOf, warp, warpgroup, wgmmaRows } from '../../shared/warpgroup.ts';
import { bufferName, finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { convMaps, lineShiftOf, shiftOf, tiledConv, type TiledConv } from '../tile-conv.ts';
import { boxAt, tiledOperand, tileMapOf, type TiledOperand } from '../tile-map.ts';
import { Lowering } from '../../../expression/lowering.ts';
import { FragmentWriter, tileAt } from './tile-write.ts';
import { TileLowering } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';

export interface WgmmaTiling extends Tile {
  /**
   * Warp groups multiply tiles of 16-bit operands, which one of them has copied: `rows` of tileM
   * and all of tileN each.
   */
  readonly kind: 'wgmma';
  readonly tileM: number;
  readonly tileN: number;
  readonly tileK: number;
  readonly stages: number;
}

/** Invocations that clear places of a convolution's tiles: one for every channel of a slot. */
const clearing = 64;

/** Which steps of k a round has: channels of a tap, where it is one of a convolution. */
interface Steps {
  readonly first: Value;
  readonly tap: Value;
}

/** One operand: its map, and the ring its tiles are copied to. */
interface Side {
  readonly buffer: string;
  readonly map: TileMap;
  /** Where a box begins in the map. */
  readonly at: (steps: Steps, free: Value, group: Value) => readonly Value[];
  readonly alongK: boolean;
  /** Elements of a slot. */
  readonly size: number;
  readonly tile: number;
}

/** Tile rows of a band: what runs at a time is as high as it is wide. */
function bandOf(workgroups: number, { tileM, tileN }: WgmmaTiling): number {
  return Math.max(1, Math.round(Math.sqrt((workgroups * tileN) / tileM)));
}

function namesOf(sums: readonly Value[]): readonly string[] {
  return sums.flatMap((sum) => (sum.kind === 'variable' ? [sum.name] : []));
}

export class WarpgroupTemplate {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #tiling: WgmmaTiling;
  readonly #operand: 'f16' | 'bf16';
  readonly #consumers: number;
  readonly #conv: TiledConv | undefined;
  readonly #sides: readonly [Side, Side];
  readonly #tilesM: number;
  readonly #tilesN: number;
  readonly #tiles: number;
  readonly #taps: number;
  readonly #rounds: number;
  readonly #workgroups: number;

  constructor(frame: Frame, body: Contract, tiling: WgmmaTiling) {
    const { batch, m, n, k } = body;
    const { tileM, tileN, tileK, rows } = tiling;
    const operand = matrixOperands(body);
    if (operand !== 'f16' && operand !== 'bf16')
      throw new CompilerBug('warp group template', 'operands are not of 16 bits');
    this.#operand = operand;
    this.#b = openBuilder(frame, ['tile_lhs', 'tile_rhs']);
    this.#frame = frame;
    this.#body = body;
    this.#tiling = tiling;
    this.#consumers = tileM / rows;
    this.#conv = tiledConv(body);
    this.#sides =
      this.#conv === undefined ? [this.#side('lhs'), this.#side('rhs')] : this.#convSides(this.#conv);
    this.#tilesM = Math.ceil(m.extent / tileM);
    this.#tilesN = Math.ceil(n.extent / tileN);
    this.#tiles = batch.extent * this.#tilesM * this.#tilesN;
    this.#taps = this.#conv?.taps ?? 1;
    this.#rounds = this.#taps * Math.ceil(k.extent / this.#taps / tileK);
    this.#workgroups = Math.min(this.#tiles, frame.target.cores.count);
  }

  loop(): Loop {
    const b = this.#b;
    const { batch, m, n, k } = this.#body;
    const { tileM, tileN, tileK, stages, rows } = this.#tiling;
    const [lane, role] = [builtin('local', 0), builtin('local', 1)];
    const isFirst = operation('eq', [lane, constant(0)], 'bool');
    const isCopying = operation('eq', [role, constant(0)], 'bool');
    b.if(operation('and', [isFirst, isCopying], 'bool'), () =>
      b.for('slot', constant(0), constant(stages), 1, (slot) => {
        b.add({ kind: 'initBarrier', barrier: 'full', index: slot, count: 1 });
        b.add({
          kind: 'initBarrier',
          barrier: 'empty',
          index: slot,
          count: (this.#consumers * warpgroup) / warp,
        });
        if (this.#ready !== 'full')
          b.add({ kind: 'initBarrier', barrier: this.#ready, index: slot, count: clearing });
      }),
    );
    b.barrier();
    b.if(
      isCopying,
      () => {
        this.#setRegisters(groupRegisters.copies, false);
        b.if(isFirst, () => this.#copies());
        if (this.#conv?.lineFirst !== undefined) this.#clears(this.#conv, this.#conv.lineFirst, lane);
      },
      () => {
        this.#setRegisters(groupRegisters.multiplies, true);
        this.#multiplies(addInts(role, constant(-1)), lane);
      },
    );
    const operand = this.#operand;
    const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent} on matrix units of warp groups (${operand}), ${tileM}x${tileN}x${tileK} tiles in ${stages} stages, ${this.#consumers} warp groups of ${rows} rows`;
    const memory = this.#sides.map(({ buffer, size }): LoopBuffer => ({
      name: buffer,
      space: 'workgroup',
      dtype: operand,
      size: size * stages,
      access: 'read_write',
      tiled: true,
    }));
    const names = new Set(['full', 'empty', this.#ready]);
    const mbarriers: readonly BarrierArray[] = [...names].map((name) => ({ name, size: stages }));
    const workgroup = [warpgroup, this.#consumers + 1, 1] as const;
    return {
      ...finish(this.#frame, b, [this.#workgroups, 1, 1], workgroup, note, memory),
      tileMaps: this.#sides.map(({ map }) => map),
      mbarriers,
    };
  }

  #side(which: 'lhs' | 'rhs'): Side {
    const { tileM, tileN, tileK } = this.#tiling;
    const [free, tile] = which === 'lhs' ? [this.#body.m, tileM] : [this.#body.n, tileN];
    const operand = tiledOperand(narrowed(this.#body[which]), free, this.#body);
    if (operand === undefined)
      throw new CompilerBug('warp group template', `${which} is not copied by tiles`);
    const buffer = bufferName(this.#frame)(operand.node);
    const { alongK } = operand;
    const lines = alongK ? tile : tileK;
    const { map, roles } = tileMapOf(`map_${which}`, buffer, operand, free, this.#body.k, lines);
    return {
      buffer: `tile_${which}`,
      map,
      at: ({ first }, from, group) => {
        const [line, across] = alongK ? [first, from] : [from, first];
        return boxAt(roles, line, across, this.#partsAt(operand, group));
      },
      alongK,
      size: tile * tileK,
      tile,
    };
  }

  /** Where a group stands in each part of the batch. */
  #partsAt({ batches }: TiledOperand, group: Value): readonly Value[] {
    const { kernel } = this.#frame;
    const binding = { substitution: new Map(), atoms: new Map([[this.#body.batch.atom, group]]) };
    const lowering = new Lowering(this.#b, kernel.pool, binding, bufferName(this.#frame));
    return batches.map(({ index }) => lowering.index(index));
  }

  #convSides(conv: TiledConv): readonly [Side, Side] {
    const { tileM, tileN, tileK } = this.#tiling;
    const [weight, input] = convMaps(conv, bufferName(this.#frame), tileM);
    return [
      {
        buffer: 'tile_lhs',
        map: weight,
        at: ({ first, tap }, row) => [first, row, tap],
        alongK: true,
        size: tileM * tileK,
        tile: tileM,
      },
      {
        buffer: 'tile_rhs',
        map: input,
        at: ({ first, tap }, place, image) => [addInts(place, shiftOf(conv, tap)), first, image],
        alongK: false,
        size: tileN * tileK,
        tile: tileN,
      },
    ];
  }

  /** The mbarriers that say that the tiles of a slot can be multiplied. */
  get #ready(): 'full' | 'ready' {
    return this.#conv?.lineFirst === undefined ? 'full' : 'ready';
  }

  /** What a round has: all channels of a tap come first, then those of the next. */
  #stepsOf(round: Value): Steps {
    const b = this.#b;
    const { tileK } = this.#tiling;
    if (this.#taps === 1) return { first: b.let(mulInts(round, constant(tileK)), 'k0'), tap: constant(0) };
    const [tap, chunk] = divideInts(b, round, this.#rounds / this.#taps, ['tap', 'chunk']);
    return { first: b.let(mulInts(chunk, constant(tileK)), 'channel'), tap };
  }

  /** Where there are more registers to be had than a kernel of so many invocations begins with. */
  #setRegisters(count: number, grow: boolean): void {
    if (this.#consumers > 1) this.#b.add({ kind: 'setRegisters', count, grow });
  }

  /** Visits this workgroup's tiles; `turn` counts rounds of k over all of them. */
  #forTiles(visit: (turn: Value, group: Value, firstM: Value, firstN: Value) => void): void {
    const b = this.#b;
    const { tileM, tileN } = this.#tiling;
    const perGroup = this.#tilesM * this.#tilesN;
    const turn = b.var('turn', constant(0));
    b.for('tile', builtin('workgroup', 0), constant(this.#tiles), this.#workgroups, (tile) => {
      const [group, inGroup] =
        this.#body.batch.extent === 1
          ? [constant(0), tile]
          : divideInts(b, tile, perGroup, ['group', 'in_group']);
      const band = bandOf(this.#workgroups, this.#tiling);
      const [row, column] = tileAt(b, inGroup, this.#tilesM, this.#tilesN, band);
      const firstM = b.let(mulInts(row, constant(tileM)), 'first_m');
      const firstN = b.let(mulInts(column, constant(tileN)), 'first_n');
      visit(turn, group, firstM, firstN);
    });
  }

  /** The slot of a turn, and the parity of how often the ring was gone round before. */
  #slotOf(turn: Value): readonly [slot: Value, parity: Value] {
    return turnOf(this.#b, turn, this.#tiling.stages);
  }

  #copies(): void {
    const b = this.#b;
    const bytes = this.#sides.reduce((sum, { size }) => sum + 2 * size, 0);
    this.#forTiles((turn, group, firstM, firstN) =>
      b.for('round', constant(0), constant(this.#rounds), 1, (round) => {
        const [slot, parity] = this.#slotOf(turn);
        // The phase before the first counts as over: at the beginning every slot is empty.
        const before = b.let(operation('sub', [constant(1), parity], 'i32'), 'before');
        b.add({ kind: 'awaitBarrier', barrier: 'empty', index: slot, parity: before });
        b.add({ kind: 'arrive', barrier: 'full', index: slot, bytes });
        const steps = this.#stepsOf(round);
        this.#copy(this.#sides[0], slot, steps, firstM, group);
        this.#copy(this.#sides[1], slot, steps, firstN, group);
        b.assign(turn, addInts(turn, constant(1)));
      }),
    );
  }

  #copy(
    { buffer, map, at, alongK, size, tile }: Side,
    slot: Value,
    steps: Steps,
    first: Value,
    group: Value,
  ): void {
    const b = this.#b;
    const panels = alongK ? 1 : tile / tileLine;
    for (let panel = 0; panel < panels; panel++) {
      const to = addInts(mulInts(slot, constant(size)), constant((panel * size) / panels));
      const free = addInts(first, constant(panel * tileLine));
      b.add({
        kind: 'copyTile',
        buffer,
        index: b.let(to, 'to'),
        map: map.name,
        at: at(steps, alongK ? first : b.let(free, 'at'), group),
        barrier: 'full',
        slot,
      });
    }
  }

  /**
   * Clears what taps bring from the next line or the one before: places beyond the ends of lines, for every
   * channel of a slot, which each of two warps of the group that copies has half of.
   */
  #clears(conv: TiledConv, lineFirst: number, lane: Value): void {
    const b = this.#b;
    const { tileN } = this.#tiling;
    const { buffer, size } = this.#sides[1];
    const { width } = conv;
    const channel = addInts(lane, constant(clearing - warpgroup));
    b.if(less(constant(warpgroup - clearing - 1), lane), () =>
      this.#forTiles((turn, _group, _firstM, firstN) => {
        const line = b.let(
          operation('neg', [operation('mod', [firstN, constant(width)], 'i32')], 'i32'),
          'line',
        );
        b.for('round', constant(0), constant(this.#rounds), 1, (round) => {
          const [slot, parity] = this.#slotOf(turn);
          b.add({ kind: 'awaitBarrier', barrier: 'full', index: slot, parity });
          const to = b.let(lineShiftOf(conv, lineFirst, this.#stepsOf(round).tap), 'to');
          const row = b.let(
            addInts(mulInts(slot, constant(size)), mulInts(channel, constant(tileLine))),
            'row',
          );
          // Taps that look to the left miss the first places of a line, others the last.
          const none = constant(0);
          const [before, after] = [
            operation('max', [operation('neg', [to], 'i32'), none], 'i32'),
            operation('max', [to, none], 'i32'),
          ];
          const begin = b.let(
            addInts(
              line,
              operation(
                'where',
                [less(none, to), operation('sub', [constant(width), to], 'i32'), none],
                'i32',
              ),
            ),
            'begin',
          );
          const count = b.let(operation('max', [before, after], 'i32'), 'missing');
          b.for('first', begin, constant(tileN), width, (first) =>
            b.for('place', first, addInts(first, count), 1, (place) =>
              b.if(both(less(constant(-1), place), less(place, constant(tileN))), () => {
                const [panel, inPanel] = divideInts(b, place, tileLine, ['panel', 'in_panel']);
                const index = addInts(
                  addInts(row, mulInts(panel, constant(tileLine * this.#tiling.tileK))),
                  inPanel,
                );
                b.add({ kind: 'clearTile', buffer, index });
              }),
            ),
          );
          b.add({ kind: 'publishTiles' });
          b.add({ kind: 'arrive', barrier: 'ready', index: slot, bytes: 0 });
          b.assign(turn, addInts(turn, constant(1)));
        });
      }),
    );
  }

  #multiplies(consumer: Value, lane: Value): void {
    const b = this.#b;
    const { rows, columns, tileM, tileN } = this.#tiling;
    const inWarp = b.let(operation('mod', [lane, constant(warp)], 'i32'), 'in_warp');
    const ownWarp = b.let(operation('div', [lane, constant(warp)], 'i32'), 'warp');
    const isLeader = b.let(operation('eq', [inWarp, constant(0)], 'bool'), 'leader');
    const ownRow = b.let(mulInts(consumer, constant(rows)), 'own_row');
    const release = (slot: Value): void =>
      b.if(isLeader, () => b.add({ kind: 'arrive', barrier: 'empty', index: slot, bytes: 0 }));
    this.#forTiles((turn, group, firstM, firstN) => {
      const sums = Array.from({ length: rows / wgmmaRows }, (_, i) =>
        Array.from({ length: columns / fragment.n }, (_, j) => b.var(`sum_${i}_${j}`, constant(0, 'f32', 4))),
      );
      const names = sums.flatMap(namesOf);
      // One round stays under way while the next one is waited for; then its slot is free.
      const last = b.var('last', constant(0));
      b.for('round', constant(0), constant(this.#rounds), 1, (round) => {
        const [slot, parity] = this.#slotOf(turn);
        for (const barrier of new Set(['full', this.#ready]))
          b.add({ kind: 'awaitBarrier', barrier, index: slot, parity });
        b.add({ kind: 'wgmmaFence', sums: names });
        this.#multiply(sums, slot, ownRow);
        b.add({ kind: 'wgmmaCommit' });
        b.add({ kind: 'wgmmaWait', pending: 1, sums: [] });
        b.if(operation('lt', [constant(0), round], 'bool'), () => release(last));
        b.assign(last, slot);
        b.assign(turn, addInts(turn, constant(1)));
      });
      b.add({ kind: 'wgmmaWait', pending: 0, sums: names });
      release(last);
      const points = new TileLowering(b, this.#frame, this.#body, group);
      const writer = new FragmentWriter(b, this.#frame, this.#body, points, inWarp, { m: tileM, n: tileN });
      const quad = operation('div', [firstN, constant(4)], 'i32');
      sums.forEach((line, i) => {
        const inTile = addInts(
          addInts(ownRow, constant(wgmmaRows * i)),
          mulInts(ownWarp, constant(fragment.m)),
        );
        writer.write(line, addInts(firstM, inTile), quad);
      });
    });
  }

  /** One round: every step of 16 in the slot, for every 64 rows of the warp group. */
  #multiply(sums: readonly (readonly Value[])[], slot: Value, ownRow: Value): void {
    const b = this.#b;
    const { tileK } = this.#tiling;
    const [left, right] = this.#sides;
    const side = ({ buffer, size, alongK }: Side, step: number, free: Value): TileOperand => {
      const tile = b.let(addInts(mulInts(slot, constant(size)), mulInts(free, constant(tileK))), 'operand');
      const index = addInts(tile, constant(alongK ? step : step * tileLine));
      return { buffer, index, alongK, panel: tileK * tileLine };
    };
    for (let step = 0; step < tileK; step += fragment.k)
      sums.forEach((line, i) =>
        b.add({
          kind: 'wgmma',
          sums: namesOf(line),
          operand: this.#operand,
          lhs: side(left, step, addInts(ownRow, constant(wgmmaRows * i))),
          rhs: side(right, step, constant(0)),
        }),
      );
  }
}
