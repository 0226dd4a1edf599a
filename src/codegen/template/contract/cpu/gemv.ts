// The form of dot and conv for few rows, on targets that pack: the right side is read once, as it
// lies, and packing it would take longer than the product. Where its lines run along n, a block of
// sums waits in memory while a few lines at a time are added to it; where they run along k, each
// result is a sum over its line, four columns side by side.

import { groupsInRegister, packsOperands } from '../../../../schedule/machine.ts';
import { dtypeBytes, isFloat, isWide } from '../../../../ir/dtype.ts';
import { dims } from '../../../../ir/graph.ts';
import { coefficientOf } from '../../../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../../../ir/shape.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
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
  bufferName,
  endOf,
  finish,
  foldGrid,
  groupNumber,
  inGroups,
  openBuilder,
  type Frame,
} from '../../shared/frame.ts';
import { neededOf } from '../../shared/needed.ts';
import { eachOf, lanesAdded, multiplyAdd, span, TileLowering, tileNeeded } from '../tile.ts';
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
      (tiling.along === 'k' || problem.m % rows === 0) &&
      columns % 4 === 0
    );
  },
  time({ rows, columns, along }, problem, target) {
    const { batch, m, n, k, epilogue } = problem;
    const width = roundedUp(Math.min(columns, n), 4);
    const decoded = problem.blocks === undefined ? 0 : k * width * cpu.decoded;
    // Along n sums go in and out of the cache, but for every fourth line only. Along k all rows are multiplied by what is read once.
    const tiles = along === 'n' ? 1 : Math.floor(m / rows);
    const rest = along === 'n' ? 0 : m % rows;
    const alongK = tiles * (0.5 + 0.2 * rows) + (rest === 0 ? 0 : 0.5 + 0.2 * rest);
    const line = along === 'n' ? rows * (cpu.multiplyAdd + 0.1) + 0.15 : alongK;
    const lines = along === 'n' ? k * cpu.line : 0;
    const results = tiles * rows + rest;
    const block =
      (k * width * line) / 4 + decoded + lines + width * results * (0.1 * epilogue + 0.5) + cpu.workgroup;
    const blocksM = along === 'n' ? Math.ceil(m / rows) : 1;
    return shared(batch * blocksM * Math.ceil(n / columns), problem, target) * block;
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
      if ((along === 'k' || m % rows === 0) && (parts === 1 || columns >= 64))
        yield { kind: 'gemv', flip, rows, columns, along };
    }
}

/** Lines of the right side that are added at a time: more of them do not prefetch. */
const linesAtOnce = 4;

/** The part of the result that a workgroup computes. */
interface Part {
  readonly frame: Frame;
  readonly b: LoopBuilder;
  readonly body: Contract;
  readonly points: TileLowering;
  readonly group: Value;
  readonly tiling: GemvTiling;
  /** The first of `tiling.rows` rows; along k a part has all rows. */
  readonly firstRow: Value;
  /** Of four columns each. */
  readonly firstQuad: Value;
  readonly endQuad: Value;
  /** Steps of k that count. */
  readonly end: Value;
  /** Groups of four that one register holds. */
  readonly inRegister: number;
}

function gemvLoop(frame: Frame, body: Contract, tiling: GemvTiling): Loop {
  const { batch, m, n, k } = body;
  const { rows: height, columns, along } = tiling;
  const quadsN = Math.ceil(n.extent / 4);
  const quadsEach = columns / 4;
  // Along k, a workgroup takes all rows of its columns.
  const tilesM = along === 'k' ? 1 : Math.ceil(m.extent / height);
  const blocksN = Math.ceil(quadsN / quadsEach);
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
  const firstRow = b.let(mulInts(tileM, constant(height)), 'm');
  const points = new TileLowering(b, frame, body, group);
  const inRegister = groupsInRegister(frame.target);
  const part: Part = {
    frame,
    b,
    body,
    points,
    group,
    tiling,
    firstRow,
    firstQuad: first,
    endQuad,
    end,
    inRegister,
  };
  b.if(tileNeeded(b, frame, body, group, firstRow, first), () => {
    if (along === 'n') addLines(part, sums);
    else sumLines(part);
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, lines along ${along} read once for ${height} rows and ${columns} columns`;
  return finish(frame, b, grid, [1, 1, 1], note, along === 'n' ? [sums] : []);
}

/** sums(row, n) += lhs(row, k)·rhs(k, n), a few k at a time. */
function addLines(
  { b, body, points, tiling, firstRow, firstQuad, endQuad, end, inRegister }: Part,
  sums: LoopBuffer,
): void {
  const { columns } = tiling;
  const rows = Array.from({ length: tiling.rows }, (_, i) => b.let(addInts(firstRow, constant(i)), 'm'));
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

/** Sums that go on side by side: more of them push what conversions need out of registers. */
const mostSums = 4;

/** Bytes of a line of the right side between what is multiplied and what memory is asked for, and of a line of a cache. */
const bytesAhead = 8192;
const lineBytes = 64;

/**
 * Four columns of results at a time, each a sum over lines of both sides. All rows are multiplied before the next columns: memory
 * gives the right side once, and caches give it again.
 */
function sumLines(part: Part): void {
  const { frame, b, body, points, group, tiling, firstQuad, endQuad, end } = part;
  const { m, n, k } = body;
  const height = tiling.rows;
  const [tiles, rest] = [Math.floor(m.extent / height), m.extent % height];
  const whole = 4 * Math.floor(k.extent / 4);
  b.for('quad', firstQuad, endQuad, 1, (quad) => {
    const columns = span(b, mulInts(quad, constant(4)), 4, n.extent, n.extent % 4 === 0, 'n');
    const places = columns.map(({ index }) => index);
    const results = (first: Value, count: number): void => {
      const rows = Array.from({ length: count }, (_, i) => b.let(addInts(first, constant(i)), 'm'));
      const beside = Math.max(1, Math.floor(mostSums / height));
      const sums: Value[][] = rows.map(() => []);
      for (let from = 0; from < 4; from += beside)
        linesBeside(part, rows, places.slice(from, from + beside)).forEach((line, i) =>
          sums[i]!.push(...line),
        );
      const four = sums.map((line) => b.var('sums', lanesAdded(b, line)));
      if (whole < k.extent)
        b.for('k', constant(whole), end, 1, (step) => {
          const args = places.map((column) => points.at({ column, step }).value(body.rhs));
          const right = b.let({ kind: 'vector', args, type: four[0]!.type, width: 4 }, 'b');
          four.forEach((sum, i) =>
            b.assign(sum, multiplyAdd(points.at({ row: rows[i]!, step }).value(body.lhs), right, sum)),
          );
        });
      four.forEach((sum, i) => points.write(rows[i]!, quad, b.let(sum, 'sum')));
    };
    const tile = (first: Value, count: number): void => {
      if (tiles === 1 && rest === 0) results(first, count);
      else b.if(tileNeeded(b, frame, body, group, first, quad), () => results(first, count));
    };
    if (tiles === 1) tile(constant(0), height);
    else
      b.for('tile', constant(0), constant(tiles), 1, (number) =>
        tile(b.let(mulInts(number, constant(height)), 'first'), height),
      );
    if (rest > 0) tile(constant(tiles * height), rest);
  });
}

/** Sums over lines for some rows and columns, row by row: vectors of which the lanes are still to be added. */
function linesBeside(part: Part, rows: readonly Value[], columns: readonly Value[]): readonly Value[][] {
  const { b, body, points, end, inRegister } = part;
  const type = registerOf(body.node.dtype);
  const zero = constant(0, type, 4);
  const whole = Math.floor(body.k.extent / 4);
  const read = lineRead(part);
  // An iteration takes a line of a cache where that is asked for, else a register.
  const line = read && lineBytes / (4 * Math.max(2, dtypeBytes(read.node.dtype)));
  const atOnce = line ?? inRegister;
  const isWhole = end.kind === 'constant';
  const count = isWhole ? constant(whole) : inGroups(b, end, 4, whole, 'quads');
  const main = isWhole
    ? constant(whole - (whole % atOnce))
    : b.let(operation('sub', [count, operation('mod', [count, constant(atOnce)], 'i32')], 'i32'), 'main_end');
  const lanes = rows.map(() =>
    columns.map(() => Array.from({ length: inRegister }, () => b.var('lanes', zero))),
  );
  const factors = (
    stepQuad: Value,
  ): { readonly left: readonly Value[]; readonly right: readonly Value[] } => {
    return {
      left: rows.map((row) => points.at({ row, stepQuad }).value(body.lhs)),
      right: columns.map((column) => points.at({ column, stepQuad }).value(body.rhs)),
    };
  };
  const round = (first: Value): void => {
    if (read !== undefined) columns.forEach((column) => ahead(part, read, column, first));
    const steps = Array.from({ length: atOnce }, (_, i) =>
      factors(b.let(addInts(first, constant(i)), 'kquad')),
    );
    // Neighbours along k follow each other, so that registers of more than four lanes take them together.
    lanes.forEach((line, i) =>
      line.forEach((own, j) =>
        steps.forEach(({ left, right }, step) => {
          const sum = own[step % inRegister]!;
          b.assign(sum, multiplyAdd(left[i]!, right[j]!, sum));
        }),
      ),
    );
  };
  if (whole >= atOnce) b.for('kquad', constant(0), main, atOnce, round);
  const sums = lanes.map((line) =>
    line.map((own) =>
      own.map((sum) => b.let(sum, 'held')).reduce((x, y) => b.let(arithmetic('add', [x, y], type), 'all')),
    ),
  );
  if (isWhole && whole % atOnce === 0) return sums;
  const all = sums.map((line) => line.map((sum) => b.var('line', sum)));
  b.for('kquad', main, count, 1, (stepQuad) => {
    const { left, right } = factors(stepQuad);
    all.forEach((line, i) => line.forEach((sum, j) => b.assign(sum, multiplyAdd(left[i]!, right[j]!, sum))));
  });
  return all;
}

type Read = Extract<Expr, { kind: 'read' }>;

/** What lines of the right side are read from, where the processor can be told what comes next: they lie as they are. */
function lineRead({ frame, body }: Part): Read | undefined {
  const operand = widenedFrom(body.rhs);
  const isLine = operand.kind === 'read' && coefficientOf(operand.index, body.k.atom) === 1;
  return frame.target.vectors !== undefined && isLine ? operand : undefined;
}

/** An expression without casts from narrower floats. */
function widenedFrom(expr: Expr): Expr {
  return expr.kind === 'op' && expr.op === 'cast' && isFloat(expr.dtype) ? widenedFrom(expr.args[0]!) : expr;
}

/** Asks for what lies as far behind these as memory needs time. Lines are short: on their own, processors are late. */
function ahead({ b, frame, points }: Part, { node, index }: Read, column: Value, stepQuad: Value): void {
  const further = bytesAhead / dtypeBytes(node.dtype);
  if (sizeOf(dims(node)) + further >= 2 ** 31) return;
  const step = b.let(mulInts(stepQuad, constant(4)), 'k');
  const lowering = points.at({ column, step });
  b.prefetch(bufferName(frame)(node), addInts(lowering.index(lowering.place(index)), constant(further)));
}
