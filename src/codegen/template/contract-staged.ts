// The staged form of dot and conv, for adapters where barriers are cheap: a workgroup of 16x16 invocations computes a 64x64
// tile, 16 steps of k at a time. Both operand tiles are evaluated once per element into workgroup memory (this is where a
// prologue runs), then every invocation accumulates a 4x4 block from there. Edges read as zero along k; rows and columns past
// the end repeat the last and are not stored.

import { addIndex, coefficientOf, scaleIndex, substitute, type IndexExpr } from '../../ir/index-expr.ts';
import { argsOf, type Expr } from '../../schedule/expr.ts';
import type { Axis } from '../../schedule/kernel.ts';
import { addInts, builtin, constant, less, mulInts, operation, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../lower.ts';
import type { Loop, LoopBuffer, RegisterType, Value } from '../loop.ts';
import { bufferName, finish, openBuilder, type Frame, type Grid } from './frame.ts';
import { accumulators, multiplyAdd, TileLowering, type Contract } from './tile.ts';

const tile = 64;
const depth = 16;
const threads = 16;

export function stagedLoop(frame: Frame, body: Contract): Loop {
  const { batch, m, n, k } = body;
  const type = registerOf(body.node.dtype);
  const memory = type === 'bool' ? 'u32' : type;
  const shared: LoopBuffer[] = ['tile_lhs', 'tile_rhs'].map((name) => ({
    name,
    space: 'workgroup',
    dtype: memory,
    size: tile * depth,
    access: 'read_write',
  }));
  const b = openBuilder(frame, ['tile_lhs', 'tile_rhs']);
  const grid: Grid = [Math.ceil(n.extent / tile), Math.ceil(m.extent / tile), batch.extent];
  const [x, y] = [builtin('local', 0), builtin('local', 1)];
  const local = b.let(addInts(mulInts(y, constant(threads)), x), 'local');
  const firstM = b.let(mulInts(builtin('workgroup', 1), constant(tile)), 'first_m');
  const firstN = b.let(mulInts(builtin('workgroup', 0), constant(tile)), 'first_n');
  const group: Value = batch.extent === 1 ? constant(0) : builtin('workgroup', 2);
  const sums = accumulators(b, body, 4, 1);
  const stage = new Stager(b, frame, body, group, local);

  b.for('k0', constant(0), constant(k.extent), depth, (k0) => {
    stage.fill('tile_lhs', body.lhs, m, firstM, k0);
    stage.fill('tile_rhs', body.rhs, n, firstN, k0);
    b.barrier();
    b.for('kk', constant(0), constant(depth), 1, (kk) => {
      const line = b.let(mulInts(kk, constant(tile)), 'line');
      const left = b.let(quadFrom('tile_lhs', addInts(line, mulInts(y, constant(4))), type), 'lhs');
      const right = b.let(quadFrom('tile_rhs', addInts(line, mulInts(x, constant(4))), type), 'rhs');
      sums.forEach(([sum], i) => {
        const lane: Value = { kind: 'lane', arg: left, lane: i, type, width: 1 };
        b.assign(sum!, multiplyAdd(lane, right, sum!));
      });
    });
    b.barrier();
  });

  const epilogue = new TileLowering(b, frame, body, group);
  const quad = b.let(addInts(mulInts(builtin('workgroup', 0), constant(tile / 4)), x), 'quad');
  const quads = Math.ceil(n.extent / 4);
  b.if(less(quad, constant(quads)), () =>
    sums.forEach(([sum], i) => {
      const row = b.let(addInts(addInts(firstM, mulInts(y, constant(4))), constant(i)), 'm');
      b.if(m.extent % tile === 0 ? constant(1, 'bool') : less(row, constant(m.extent)), () =>
        epilogue.write(row, quad, sum!),
      );
    }),
  );
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${tile}x${tile}x${depth} tiles in workgroup memory`;
  return finish(frame, b, grid, [threads, threads, 1], note, shared);
}

function quadFrom(buffer: string, index: Value, type: RegisterType): Value {
  return { kind: 'load', buffer, index, aligned: true, type, width: 4 };
}

/** Copies operand tiles into workgroup memory, laid out [k][m or n]; each invocation brings four neighbouring elements. */
class Stager {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly #local: Value;

  constructor(b: LoopBuilder, frame: Frame, body: Contract, group: Value, local: Value) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = group;
    this.#local = local;
  }

  fill(buffer: string, operand: Expr, free: Axis, first: Value, k0: Value): void {
    const { k } = this.#body;
    if (this.#contiguous(operand, k) > this.#contiguous(operand, free))
      this.#alongK(buffer, operand, free, first, k0);
    else this.#alongFree(buffer, operand, free, first, k0);
  }

  #contiguous(operand: Expr, axis: Axis): number {
    const quad = quadIndex('probe', axis.extent);
    const lane = new Map([[axis.atom, addIndex(scaleIndex(quad, 4), laneAtom)]]);
    const visit = (expr: Expr): number => {
      const own = expr.kind === 'read' && coefficientOf(substitute(expr.index, lane), laneAtom) === 1 ? 1 : 0;
      return argsOf(expr).reduce((sum, arg) => sum + visit(arg), own);
    };
    return visit(operand);
  }

  /** Four neighbours along m or n: 16 quads a line, 16 lines. */
  #alongFree(buffer: string, operand: Expr, free: Axis, first: Value, k0: Value): void {
    const b = this.#b;
    const line = b.let(operation('div', [this.#local, constant(threads)], 'i32'), 'line');
    const place = b.let(operation('mod', [this.#local, constant(threads)], 'i32'), 'place');
    const quads = Math.ceil(free.extent / 4);
    const quadAtom = quadIndex('quad', free.extent);
    const asked = addInts(operation('div', [first, constant(4)], 'i32'), place);
    const quad = b.let(
      free.extent % tile === 0 ? asked : operation('min', [asked, constant(quads - 1)], 'i32'),
      'quad',
    );
    const step = b.let(addInts(k0, line), 'k');
    const value = this.#masked(operand, step, (atoms, substitution) => {
      atoms.set(quadAtom, quad);
      substitution.set(free.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
    });
    b.store(buffer, addInts(mulInts(line, constant(tile)), mulInts(place, constant(4))), value, true);
  }

  /** Four neighbours along k: 4 quads a row, 64 rows; stored transposed. */
  #alongK(buffer: string, operand: Expr, free: Axis, first: Value, k0: Value): void {
    const b = this.#b;
    const { k } = this.#body;
    const row = b.let(operation('div', [this.#local, constant(4)], 'i32'), 'row');
    const place = b.let(operation('mod', [this.#local, constant(4)], 'i32'), 'place');
    const asked = addInts(first, row);
    const at = b.let(
      free.extent % tile === 0 ? asked : operation('min', [asked, constant(free.extent - 1)], 'i32'),
      'at',
    );
    const quads = Math.ceil(k.extent / 4);
    const quadAtom = quadIndex('quad', k.extent);
    const askedQuad = b.let(addInts(operation('div', [k0, constant(4)], 'i32'), place), 'quad');
    const quad =
      k.extent % depth === 0
        ? askedQuad
        : b.let(operation('min', [askedQuad, constant(quads - 1)], 'i32'), 'quad');
    const lowering = this.#lowering((atoms, substitution) => {
      atoms.set(free.atom, at);
      atoms.set(quadAtom, quad);
      substitution.set(k.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
    });
    const value = lowering.value(operand);
    const lines = b.let(mulInts(place, constant(4)), 'line');
    for (const lane of [0, 1, 2, 3]) {
      const one: Value =
        value.width === 1 ? value : { kind: 'lane', arg: value, lane, type: value.type, width: 1 };
      const step = addInts(addInts(k0, lines), constant(lane));
      const kept = k.extent % depth === 0 ? one : this.#orZero(one, less(step, constant(k.extent)));
      b.store(buffer, addInts(mulInts(addInts(lines, constant(lane)), constant(tile)), row), kept, true);
    }
  }

  #masked(
    operand: Expr,
    step: Value,
    bind: (atoms: Map<IndexExpr, Value>, substitution: Map<IndexExpr, IndexExpr>) => void,
  ): Value {
    const b = this.#b;
    const { k } = this.#body;
    const exact = k.extent % depth === 0;
    const inside = exact ? step : b.let(operation('min', [step, constant(k.extent - 1)], 'i32'), 'k');
    const lowering = this.#lowering((atoms, substitution) => {
      atoms.set(k.atom, inside);
      bind(atoms, substitution);
    });
    const value = lowering.value(operand);
    const quad: Value = value.width === 4 ? value : { kind: 'splat', arg: value, type: value.type, width: 4 };
    return exact ? quad : this.#orZero(quad, less(step, constant(k.extent)));
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
