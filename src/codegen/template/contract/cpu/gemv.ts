// The form of dot and conv for few rows, on targets that pack: the right side is read once, as it
// lies, and packing it would take longer than the product. Where its lines run along n, a block of
// sums waits in memory while a few lines at a time are added to it; where they run along k, each
// result is a sum over its line, four columns side by side.

import { packsOperands } from '../../../../schedule/machine.ts';
import { isWide } from '../../../../ir/dtype.ts';
import {
  addInts,
  arithmetic,
  constant,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { flippedProblem, type Contract, type ContractProblem } from '../problem.ts';
import { hasRows, roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import {
  endOf,
  finish,
  foldGrid,
  groupNumber,
  inGroups,
  openBuilder,
  type Frame,
} from '../../shared/frame.ts';
import { neededOf } from '../../shared/needed.ts';
import { multiplyAdd, span, TileLowering, tileNeeded } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { divideInts } from '../../../loop/integers.ts';
import { cpu, shared } from './costs.ts';

export interface GemvTiling extends Tile {
  /** The right side is read once, along its lines, for a few rows and a block of columns. */
  readonly kind: 'gemv';
  readonly along: 'n' | 'k';
}

/** Rows of the result, at most: products of more are packed. */
const mostRows = 8;

export const gemv: Strategy<GemvTiling> = {
  *candidates(problem) {
    for (const flip of [false, true]) yield* blocks(flip ? flippedProblem(problem) : problem, flip);
  },
  isLegal(tiling, problem, target) {
    const { rows, columns } = tiling;
    return (
      hasRows(tiling, problem) &&
      packsOperands(target) &&
      !isWide(problem.dtype) &&
      problem.m % rows === 0 &&
      columns % 4 === 0
    );
  },
  time({ rows, columns, along }, problem, target) {
    const { batch, m, n, k, epilogue } = problem;
    const width = roundedUp(Math.min(columns, n), 4);
    // Sums go in and out of the cache, but for every fourth line only.
    const alongN = rows * (cpu.multiplyAdd + 0.1) + 0.15;
    const line = along === 'n' ? alongN : rows === 1 ? 0.3 : 0.45 * rows;
    const lines = along === 'n' ? k * cpu.line : 0;
    const decoded = problem.blocks === undefined ? 0 : k * width * cpu.decoded;
    const block =
      (k * width * line) / 4 + decoded + lines + width * rows * (0.1 * epilogue + 0.5) + cpu.workgroup;
    return shared(batch * Math.ceil(m / rows) * Math.ceil(n / columns), problem, target) * block;
  },
  loop: gemvLoop,
};

/** Blocks of columns that divide a line evenly. */
function* blocks({ m, n, rhs }: ContractProblem, flip: boolean): Generator<GemvTiling> {
  if (m > mostRows) return;
  const along = rhs === 'k' ? 'k' : 'n';
  for (const rows of [2, 1])
    for (const parts of [1, 2, 8]) {
      const columns = 4 * Math.ceil(n / 4 / parts);
      if (m % rows === 0 && (parts === 1 || columns >= 64))
        yield { kind: 'gemv', flip, rows, columns, along };
    }
}

/** Lines of the right side that are added at a time: more of them do not prefetch. */
const linesAtOnce = 4;

/** The part of the result that a workgroup computes. */
interface Part {
  readonly b: LoopBuilder;
  readonly body: Contract;
  readonly points: TileLowering;
  readonly rows: readonly Value[];
  /** Of four columns each. */
  readonly firstQuad: Value;
  readonly endQuad: Value;
  /** Steps of k that count. */
  readonly end: Value;
  /** Groups of four columns that one register holds. */
  readonly inRegister: number;
}

function gemvLoop(frame: Frame, body: Contract, tiling: GemvTiling): Loop {
  const { batch, m, n, k } = body;
  const { rows: height, columns, along } = tiling;
  const quadsN = Math.ceil(n.extent / 4);
  const quadsEach = columns / 4;
  const [tilesM, blocksN] = [Math.ceil(m.extent / height), Math.ceil(quadsN / quadsEach)];
  const grid = foldGrid(batch.extent * tilesM * blocksN, frame.target);
  const sums: LoopBuffer = {
    name: 'sums',
    space: 'workgroup',
    dtype: registerOf(body.node.dtype) as LoopBuffer['dtype'],
    size: height * columns,
    access: 'read_write',
  };
  const b = openBuilder(frame, [sums.name]);
  const number = b.let(groupNumber(grid), 'group');
  const [rest, blockN] = divideInts(b, number, blocksN, ['block', 'block_n']);
  const [group, tileM] =
    batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, tilesM, ['batch', 'tile_m']);
  const first = b.let(mulInts(blockN, constant(quadsEach)), 'first_quad');
  const needed = neededOf(b, frame, n);
  const lastQuad = needed === undefined ? constant(quadsN) : inGroups(b, needed, 4, quadsN, 'needed_quads');
  const endQuad = b.let(operation('min', [addInts(first, constant(quadsEach)), lastQuad], 'i32'), 'end_quad');
  const end = endOf(b, frame, k.extent, body.bound);
  const exact = m.extent % height === 0;
  const rows = span(b, mulInts(tileM, constant(height)), height, m.extent, exact, 'm').map(
    ({ index }) => index,
  );
  const points = new TileLowering(b, frame, body, group);
  const inRegister = frame.target.serial?.inRegister ?? 1;
  const part: Part = { b, body, points, rows, firstQuad: first, endQuad, end, inRegister };
  b.if(tileNeeded(b, frame, body, group, mulInts(tileM, constant(height)), first), () => {
    if (along === 'n') addLines(part, sums, columns);
    else sumLines(part);
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, lines along ${along} read once for ${height} rows and ${columns} columns`;
  return finish(frame, b, grid, [1, 1, 1], note, along === 'n' ? [sums] : []);
}

/** sums(row, n) += lhs(row, k)·rhs(k, n), a few k at a time. */
function addLines(
  { b, body, points, rows, firstQuad, endQuad, end, inRegister }: Part,
  sums: LoopBuffer,
  columns: number,
): void {
  const type = registerOf(body.node.dtype);
  const slot = (row: number, quad: Value): Value =>
    addInts(mulInts(operation('sub', [quad, firstQuad], 'i32'), constant(4)), constant(row * columns));
  const kept = (row: number, quad: Value): Value => {
    return { kind: 'load', buffer: sums.name, index: slot(row, quad), aligned: true, type, width: 4 };
  };
  const eachQuads = eachOf(b, firstQuad, endQuad, inRegister);
  const { extent } = body.k;
  const whole = extent - (extent % linesAtOnce);
  eachQuads((quads) => {
    for (const i of rows.keys())
      for (const quad of quads) b.store(sums.name, slot(i, quad), constant(0, type, 4), true);
  });
  const add = (step: Value, lines: number): void => {
    const steps = Array.from({ length: lines }, (_, i) => b.let(addInts(step, constant(i)), 'k'));
    const factors = rows.map((row) =>
      steps.map((one) => b.let(splat(points.at({ row, step: one }).value(body.lhs), 4), 'a')),
    );
    eachQuads((quads) => {
      const right = quads.map((quad) =>
        steps.map((one) => b.let(points.at({ quad, step: one }).value(body.rhs), 'b')),
      );
      factors.forEach((line, i) => {
        const found = quads.map((quad, q) =>
          line.reduce((all, a, j) => multiplyAdd(a, right[q]![j]!, all), kept(i, quad)),
        );
        found.forEach((sum, q) => b.store(sums.name, slot(i, quads[q]!), sum, true));
      });
    });
  };
  const last = (count: number): Value =>
    end.kind === 'constant'
      ? constant(count)
      : b.let(operation('min', [end, constant(count)], 'i32'), 'end_k');
  if (whole > 0) b.for('k', constant(0), last(whole), linesAtOnce, (step) => add(step, linesAtOnce));
  if (whole < extent) b.for('k', constant(whole), last(extent), 1, (step) => add(step, 1));
  b.for('quad', firstQuad, endQuad, 1, (quad) =>
    rows.forEach((row, i) => points.write(row, quad, b.let(kept(i, quad), 'sum'))),
  );
}

/** Visits the groups from `first` to `end`, `count` at a time, and those that are left one at a time. */
function eachOf(
  b: LoopBuilder,
  first: Value,
  end: Value,
  count: number,
): (visit: (groups: readonly Value[]) => void) => void {
  if (count === 1) return (visit) => b.for('quad', first, end, 1, (quad) => visit([quad]));
  const groups = b.let(operation('sub', [end, first], 'i32'), 'groups');
  const left = b.let(operation('mod', [groups, constant(count)], 'i32'), 'left');
  const whole = b.let(operation('sub', [end, left], 'i32'), 'whole_end');
  return (visit) => {
    b.for('quad', first, whole, count, (quad) =>
      visit(Array.from({ length: count }, (_, i) => b.let(addInts(quad, constant(i)), 'quad'))),
    );
    b.for('quad', whole, end, 1, (quad) => visit([quad]));
  };
}

/** Four results of a row at a time, each a sum over lines of both sides. */
function sumLines({ b, body, points, rows, firstQuad, endQuad, end }: Part): void {
  const type = registerOf(body.node.dtype);
  const { n, k } = body;
  const whole = Math.floor(k.extent / 4);
  const wholeEnd = end.kind === 'constant' ? constant(whole) : inGroups(b, end, 4, whole, 'end_quad');
  b.for('quad', firstQuad, endQuad, 1, (quad) => {
    const exact = n.extent % 4 === 0;
    const columns = span(b, mulInts(quad, constant(4)), 4, n.extent, exact, 'n').map(({ index }) => index);
    const lanes = rows.map(() => columns.map(() => b.var('lanes', constant(0, type, 4))));
    const round = (
      at: { readonly step: Value } | { readonly stepQuad: Value },
      sums: readonly Value[][],
    ): void => {
      const left = rows.map((row) => points.at({ row, ...at }).value(body.lhs));
      const right = columns.map((column) => points.at({ column, ...at }).value(body.rhs));
      sums.forEach((line, i) =>
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(left[i]!, right[j]!, sum))),
      );
    };
    b.for('kquad', constant(0), wholeEnd, 1, (stepQuad) => round({ stepQuad }, lanes));
    const results = lanes.map((line) => line.map((sum) => b.var('sum', acrossLanes(sum))));
    if (k.extent % 4 > 0) b.for('k', constant(4 * whole), end, 1, (step) => round({ step }, results));
    rows.forEach((row, i) =>
      points.write(row, quad, b.let({ kind: 'vector', args: results[i]!, type, width: 4 }, 'sums')),
    );
  });
}

function acrossLanes(sum: Value): Value {
  const [p, q, r, s] = [0, 1, 2, 3].map((lane) => laneOf(sum, lane)) as [Value, Value, Value, Value];
  const { type } = sum;
  return arithmetic('add', [arithmetic('add', [p, q], type), arithmetic('add', [r, s], type)], type);
}
