// The staged form of dot and conv, for adapters where barriers are cheap: a workgroup computes a tileM × tileN tile, tileK
// steps of k at a time. Both operand tiles are evaluated once per element into workgroup memory (this is where a prologue
// runs), laid out [k][m or n] in vectors of four, whichever way the operand lies; then every invocation adds to its block of
// rows × columns sums from there. Edges read as zero along k; rows and columns past the end repeat the last and are not
// stored. An invocation's quads of rows and columns stand a workgroup apart, so that neighbours read neighbouring banks.

import { addIndex, scaleIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/body/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import {
  addInts,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../../lower/expressions.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { contiguousReads, type Contract } from '../problem.ts';
import type { ContractSchedule } from '../schedule.ts';
import { bufferName, finish, openBuilder, type Frame, type Grid } from '../../shared/frame.ts';
import { accumulators, divideInts, laneOf, multiplyAdd, place, sharedQuad, TileLowering } from '../tile.ts';

type Staged = Extract<ContractSchedule, { kind: 'staged' }>;

/** Steps of k between two turns of the inner loop. */
const innerSteps = 4;

export function stagedLoop(frame: Frame, body: Contract, schedule: Staged): Loop {
  const { batch, m, n, k } = body;
  const { rows, columns, tileM, tileN, tileK } = schedule;
  const [threadsX, threadsY] = [tileN / columns, tileM / rows];
  const type = registerOf(body.node.dtype);
  const memory = (name: string, tile: number): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: type === 'bool' ? 'u32' : type,
    size: tile * tileK,
    access: 'read_write',
  });
  const shared = [memory('tile_lhs', tileM), memory('tile_rhs', tileN)];
  const b = openBuilder(frame, ['tile_lhs', 'tile_rhs']);
  const grid: Grid = [Math.ceil(n.extent / tileN), Math.ceil(m.extent / tileM), batch.extent];
  const [x, y] = [builtin('local', 0), builtin('local', 1)];
  const local = b.let(place(y, threadsX, x), 'local');
  const firstM = b.let(mulInts(builtin('workgroup', 1), constant(tileM)), 'first_m');
  const firstN = b.let(mulInts(builtin('workgroup', 0), constant(tileN)), 'first_n');
  const group: Value = batch.extent === 1 ? constant(0) : builtin('workgroup', 2);
  const stage = new Stager(b, frame, body, group, local, threadsX * threadsY, tileK);
  const left = stage.side('tile_lhs', body.lhs, m, tileM, firstM, 0);
  const right = stage.side('tile_rhs', body.rhs, n, tileN, firstN, left.units);
  const sums = accumulators(b, body, rows, columns / 4);

  b.for('k0', constant(0), constant(k.extent), tileK, (k0) => {
    stage.fill(left, k0);
    stage.fill(right, k0);
    b.barrier();
    b.for('kk', constant(0), constant(tileK), innerSteps, (kk) => {
      for (let step = 0; step < innerSteps; step++) {
        const quad = (buffer: string, tile: number, at: Value): Value => {
          const line = mulInts(addInts(kk, constant(step)), constant(tile));
          return b.let(
            sharedQuad(buffer, addInts(line, mulInts(at, constant(4))), sums[0]![0]!),
            buffer.slice(5),
          );
        };
        const lhs = Array.from({ length: rows / 4 }, (_, i) =>
          quad('tile_lhs', tileM, addInts(y, constant(i * threadsY))),
        );
        const rhs = Array.from({ length: columns / 4 }, (_, j) =>
          quad('tile_rhs', tileN, addInts(x, constant(j * threadsX))),
        );
        sums.forEach((line, i) =>
          line.forEach((sum, j) => b.assign(sum, multiplyAdd(laneOf(lhs[i >> 2]!, i & 3), rhs[j]!, sum))),
        );
      }
    });
    b.barrier();
  });

  const points = new TileLowering(b, frame, body, group);
  const quads = Math.ceil(n.extent / 4);
  for (let j = 0; j < columns / 4; j++) {
    const quad = b.let(
      addInts(mulInts(builtin('workgroup', 0), constant(tileN / 4)), addInts(x, constant(j * threadsX))),
      'quad',
    );
    b.if(n.extent % tileN === 0 ? constant(1, 'bool') : less(quad, constant(quads)), () =>
      sums.forEach((line, i) => {
        const at = addInts(y, constant((i >> 2) * threadsY));
        const row = b.let(addInts(firstM, place(at, 4, constant(i & 3))), 'm');
        b.if(m.extent % tileM === 0 ? constant(1, 'bool') : less(row, constant(m.extent)), () =>
          points.write(row, quad, line[j]!),
        );
      }),
    );
  }
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${tileM}x${tileN}x${tileK} tiles in workgroup memory, ${rows}x${columns} an invocation`;
  return finish(frame, b, grid, [threadsX, threadsY, 1], note, shared);
}

/** One operand and the tile it is copied to. */
interface Side {
  readonly buffer: string;
  readonly operand: Expr;
  readonly free: Axis;
  readonly tile: number;
  /** First position of the workgroup on the free axis. */
  readonly first: Value;
  /** Read along k, in 4×4 blocks that are turned in registers; else along the free axis, in quads. */
  readonly turned: boolean;
  /** Quads or blocks in the tile, and the invocation that takes the first of them. */
  readonly units: number;
  readonly start: number;
}

/** Copies operand tiles into workgroup memory. */
class Stager {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly #local: Value;
  readonly #threads: number;
  readonly #depth: number;

  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: Contract,
    group: Value,
    local: Value,
    threads: number,
    depth: number,
  ) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = group;
    this.#local = local;
    this.#threads = threads;
    this.#depth = depth;
  }

  /** `taken` invocations are busy with the other side: where there are enough, the rest takes this one. */
  side(buffer: string, operand: Expr, free: Axis, tile: number, first: Value, taken: number): Side {
    const turned = contiguousReads(operand, this.#body.k) > contiguousReads(operand, free);
    const units = (tile / 4) * (turned ? this.#depth / 4 : this.#depth);
    const start = taken + units <= this.#threads ? taken : 0;
    return { buffer, operand, free, tile, first, turned, units, start };
  }

  fill(side: Side, k0: Value): void {
    const b = this.#b;
    const { units, start } = side;
    const mine = b.let(addInts(this.#local, constant(-start)), 'unit');
    for (let taken = 0; taken < units; taken += this.#threads) {
      const unit = b.let(addInts(mine, constant(taken)), 'unit');
      const copy = (): void => (side.turned ? this.#block(side, unit, k0) : this.#quad(side, unit, k0));
      const after = units - taken < this.#threads;
      const bounded =
        start > 0 ? [constant(0), constant(units)] : [undefined, after ? constant(units) : undefined];
      const low =
        bounded[0] === undefined ? constant(1, 'bool') : operation('le', [bounded[0], unit], 'bool');
      b.if(low, () => b.if(bounded[1] === undefined ? constant(1, 'bool') : less(unit, bounded[1]), copy));
    }
  }

  /** Four neighbours along the free axis, at one step of k. */
  #quad({ buffer, operand, free, tile, first }: Side, unit: Value, k0: Value): void {
    const b = this.#b;
    const { k } = this.#body;
    const [line, at] = divideInts(b, unit, tile / 4, ['line', 'place']);
    const quadAtom = quadIndex('quad', free.extent);
    const asked = addInts(operation('div', [first, constant(4)], 'i32'), at);
    const quad = this.#inside(asked, Math.ceil(free.extent / 4), free.extent % tile === 0, 'quad');
    const step = b.let(addInts(k0, line), 'k');
    const exact = k.extent % this.#depth === 0;
    const value = this.#lowering((atoms, substitution) => {
      atoms.set(k.atom, this.#inside(step, k.extent, exact, 'k'));
      atoms.set(quadAtom, quad);
      substitution.set(free.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
    }).value(operand);
    const kept = exact ? value : this.#orZero(value, less(step, constant(k.extent)));
    b.store(buffer, mulInts(place(line, tile / 4, at), constant(4)), splat(kept, 4), true);
  }

  /** Four steps of k at four neighbours of the free axis: read along k, stored along the free axis. */
  #block({ buffer, operand, free, tile, first }: Side, unit: Value, k0: Value): void {
    const b = this.#b;
    const { k } = this.#body;
    const [row, column] = divideInts(b, unit, this.#depth / 4, ['row', 'column']);
    const quadAtom = quadIndex('kquad', k.extent);
    const exact = k.extent % this.#depth === 0;
    const asked = b.let(addInts(operation('div', [k0, constant(4)], 'i32'), column), 'kquad');
    const quad = this.#inside(asked, Math.ceil(k.extent / 4), exact, 'kquad');
    const lines = [0, 1, 2, 3].map((i) => {
      const at = addInts(first, place(row, 4, constant(i)));
      return this.#lowering((atoms, substitution) => {
        atoms.set(free.atom, this.#inside(at, free.extent, free.extent % tile === 0, 'at'));
        atoms.set(quadAtom, quad);
        substitution.set(k.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
      }).value(operand);
    });
    for (const lane of [0, 1, 2, 3]) {
      const args = lines.map((line) => laneOf(line, lane));
      const turned: Value = { kind: 'vector', args, type: args[0]!.type, width: 4 };
      const step = place(asked, 4, constant(lane));
      const kept = exact ? turned : this.#orZero(turned, less(step, constant(k.extent)));
      const line = place(column, 4, constant(lane));
      b.store(buffer, mulInts(place(line, tile / 4, row), constant(4)), kept, true);
    }
  }

  #inside(asked: Value, extent: number, exact: boolean, hint: string): Value {
    const b = this.#b;
    return b.let(exact ? asked : operation('min', [asked, constant(extent - 1)], 'i32'), hint);
  }

  #orZero(value: Value, inside: Value): Value {
    return operation('where', [inside, value, constant(0, value.type)], value.type);
  }

  #lowering(bind: (atoms: Map<IndexExpr, Value>, substitution: Map<IndexExpr, IndexExpr>) => void): Lowering {
    const atoms = new Map<IndexExpr, Value>([[this.#body.batch.atom, this.#group]]);
    const substitution = new Map<IndexExpr, IndexExpr>();
    bind(atoms, substitution);
    return new Lowering(this.#b, this.#frame.kernel.pool, { substitution, atoms }, bufferName(this.#frame));
  }
}
