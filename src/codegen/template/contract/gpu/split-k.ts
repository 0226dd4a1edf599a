// The form of dot and conv for few results and long sums (matrix times vector, skinny products),
// for adapters where barriers are cheap: the invocations of a workgroup share k. Each sums every
// slices-th step for its tile, then the slices are added in workgroup memory by a tree of fixed
// shape. Where the right side lies along k, an invocation reads vectors of four steps.

import { dtypeBytes } from '../../../../ir/dtype.ts';
import { sharesWork } from '../../../../schedule/machine.ts';
import { addInts, arithmetic, builtin, constant, less, mulInts, operation } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { flippedProblem, flipsOf, type Contract, type ContractProblem } from '../problem.ts';
import { fitsRegisters } from '../size.ts';
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
import { accumulators, multiplyAdd, sharedQuad, span, TileLowering, tileNeeded } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { divideInts, place } from '../../../loop/integers.ts';
import { blockProducts } from '../blocks.ts';
import { tileCosts } from './costs.ts';
import { hasRoom, stageBuffers, stageResults, type RowResults } from './stages.ts';

export interface SplitKTiling extends Tile {
  /**
   * The invocations of a workgroup share k: `threads` tiles along n, times `slices` of k whose sums
   * are added in workgroup memory. Reads run along n, or along k where the right side lies that
   * way.
   */
  readonly kind: 'split-k';
  readonly threads: number;
  readonly slices: number;
  readonly along: 'n' | 'k';
}

const tiles = [
  [4, 4, 16, 16],
  [4, 4, 8, 8],
  [4, 4, 4, 64],
  [2, 4, 16, 16],
  [1, 4, 16, 16],
  [1, 4, 4, 64],
  [1, 4, 1, 256],
] as const;
/** Two rows decode the codes of a matrix once. */
const blockTile = [2, 4, 4, 64] as const;
/** Of rows of blocks: columns that an invocation takes at a time, about, and operations that decode a code. */
const [blockPart, decoding] = [32, 3];

export const splitK: Strategy<SplitKTiling> = {
  *candidates(problem) {
    for (const flip of flipsOf(problem)) {
      const { rhs, blocks } = flip ? flippedProblem(problem) : problem;
      const isBlocks = blocks?.side === 'rhs';
      const along = rhs === 'k' || isBlocks ? 'k' : 'n';
      for (const [rows, columns, threads, slices] of isBlocks ? [...tiles, blockTile] : tiles)
        yield { kind: 'split-k', flip, rows, columns, threads, slices, along };
    }
  },
  together: { products: true, stages: true },
  isLegal(tiling, problem, target) {
    const { limits } = target;
    const { rows, columns, threads, slices } = tiling;
    const { products = 1, stages } = problem;
    return (
      fitsRegisters(tiling, problem) &&
      sharesWork(target) &&
      slices > 1 &&
      threads * slices <= limits.workgroupInvocations &&
      hasRoom(4 * products * rows * columns * threads * slices, threads * slices, stages, target)
    );
  },
  time(tiling, problem, target) {
    const { rows, columns, threads, slices, along } = tiling;
    const { machine, tiles: count, turns, sums, direct } = tileCosts(tiling, problem, target);
    const { load, latency, overhead, barrier } = machine;
    const groups = count(rows, columns * threads);
    const isBlocks = along === 'k' && problem.blocks?.side === 'rhs';
    const width = isBlocks ? blockPart : along === 'k' ? 4 : 1;
    const steps = Math.ceil(problem.k / (width * slices));
    // Along k a round is four steps of k, read as vectors, or a part of a row of blocks.
    const vectors = 4 * ((rows + columns) * load + sums) + overhead;
    const blocks = blockPart * (sums + decoding * columns) + (blockPart / 4) * rows * load + overhead;
    const round = isBlocks ? blocks : along === 'k' ? vectors : direct;
    return (
      steps * Math.max(latency, turns(groups, threads * slices) * round) +
      barrier +
      rows * columns * slices * 2
    );
  },
  loop: splitKLoop,
};

function splitKLoop(frame: Frame, body: Contract, tiling: SplitKTiling, problem: ContractProblem): Loop {
  const { target } = frame;
  const { batch, m, n, k, siblings = [] } = body;
  const rights = [body.rhs, ...siblings.map(({ rhs }) => rhs)];
  const { rows: height, columns, threads, slices, along } = tiling;
  const quadsEach = columns / 4;
  const width = threads * quadsEach;
  const quadsN = Math.ceil(n.extent / 4);
  const [tilesM, tilesN] = [Math.ceil(m.extent / height), Math.ceil(quadsN / width)];
  const total = batch.extent * tilesM * tilesN;
  const grid = foldGrid(total, target);
  const type = registerOf(body.node.dtype);
  const partial: LoopBuffer = {
    name: 'sums_of_slices',
    space: 'workgroup',
    dtype: type === 'bool' ? 'u32' : type,
    size: rights.length * slices * height * width * 4,
    access: 'read_write',
  };
  const b = openBuilder(frame, [partial.name, ...stageBuffers]);
  const arrays: LoopBuffer[] = [partial];
  // Invocations that read neighbours in memory are neighbours in the workgroup.
  const [x, slice] =
    along === 'k' ? [builtin('local', 1), builtin('local', 0)] : [builtin('local', 0), builtin('local', 1)];
  const number = b.let(groupNumber(grid), 'group');

  const tile = (): void => {
    const [rest, tileN] = divideInts(b, number, tilesN, ['tile', 'tile_n']);
    const [group, tileM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, tilesM, ['batch', 'tile_m']);
    const rows = span(b, mulInts(tileM, constant(height)), height, m.extent, m.extent % height === 0, 'm');
    const firstQuad = b.let(place(tileN, width, x), 'first_quad');
    const quads = Array.from({ length: quadsEach }, (_, j) => {
      const [one] = span(
        b,
        addInts(firstQuad, constant(j * threads)),
        1,
        quadsN,
        quadsN % width === 0,
        'quad',
      );
      return one!;
    });
    const points = new TileLowering(b, frame, body, group);
    const end = endOf(b, frame, k.extent, body.bound);
    const quadsK = Math.ceil(k.extent / 4);
    const endQuad = end.kind === 'constant' ? constant(quadsK) : inGroups(b, end, 4, quadsK, 'end_quad');
    const ofRows = computeStages();
    const sums = along === 'k' ? sumAlongK() : sumAlongN();

    /** What the left operand needs of each row, of which the whole workgroup computes a part. */
    function computeStages(): readonly RowResults[] {
      if (body.stages === undefined) return [];
      const left = target.limits.workgroupBytes - dtypeBytes(partial.dtype) * partial.size;
      const indices = rows.map(({ index }) => index);
      const part = along === 'k' ? place(x, slices, slice) : place(slice, threads, x);
      const found = stageResults(b, frame, body, {
        group,
        rows: indices,
        part: b.let(part, 'part'),
        parts: threads * slices,
        left,
      });
      arrays.push(...found.arrays);
      return found.ofRows;
    }

    /** Of each product: a register for every row and quad of columns. */
    function sumAlongN(): Value[][][] {
      const registers = rights.map(() => accumulators(b, body, height, quadsEach));
      b.for('k', slice, end, slices, (step) => {
        const left = rows.map((row, i) =>
          points.at({ row: row.index, step, results: ofRows[i] }).value(body.lhs),
        );
        const at = quads.map((quad) => points.at({ quad: quad.index, step }));
        rights.forEach((rhs, p) =>
          addProducts(
            registers[p]!,
            left,
            at.map((point) => point.value(rhs)),
          ),
        );
      });
      return registers;
    }

    function addProducts(into: readonly Value[][], left: readonly Value[], right: readonly Value[]): void {
      into.forEach((line, i) =>
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(left[i]!, right[j]!, sum))),
      );
    }

    /** A register for each result, whose lanes are steps of k: added up at the end. */
    function sumAlongK(): Value[][][] {
      const lanes = rights.map(() => accumulators(b, body, height, columns));
      const isBlocks = problem.blocks?.side === 'rhs';
      const runs = isBlocks ? blockProducts.value.runs(b, frame, body, group, rights) : undefined;
      const columnsAt = quads.flatMap((quad) => {
        const first = mulInts(quad.index, constant(4));
        return span(b, first, 4, n.extent, n.extent % 4 === 0, 'n').map(({ index }) => index);
      });
      const end = runs === undefined ? endQuad : constant(runs.parts);
      b.for(runs === undefined ? 'kquad' : 'part', slice, end, slices, (step) => {
        const part = runs?.part(step, columnsAt);
        (part?.quads ?? [step]).forEach((stepQuad, q) => {
          const left = rows.map((row, i) =>
            whole(points.at({ row: row.index, stepQuad, results: ofRows[i] }).value(body.lhs), stepQuad),
          );
          const at = columnsAt.map((column) => points.at({ column, stepQuad }));
          rights.forEach((rhs, p) =>
            addProducts(
              lanes[p]!,
              left,
              at.map((point, j) => part?.value(p, j, q) ?? whole(point.value(rhs), stepQuad)),
            ),
          );
        });
      });
      return lanes.map((lines) =>
        lines.map((line) =>
          quads.map((_, j) => {
            const args = [0, 1, 2, 3].map((lane) => acrossLanes(line[4 * j + lane]!));
            return b.var('sum', { kind: 'vector', args, type, width: 4 });
          }),
        ),
      );
    }

    /** Zero in the steps past the end of k: what lies there in memory may be anything. */
    function whole(value: Value, stepQuad: Value): Value {
      if (k.extent % 4 === 0) return value;
      const steps: Value = {
        kind: 'vector',
        args: [0, 1, 2, 3].map((lane) => place(stepQuad, 4, constant(lane))),
        type: 'i32',
        width: 4,
      };
      const inside = b.let(operation('lt', [steps, constant(k.extent, 'i32', 4)], 'bool'), 'inside');
      return b.let(operation('where', [inside, value, constant(0, type)], type), 'value');
    }

    function acrossLanes(sum: Value): Value {
      const [p, q, r, s] = [0, 1, 2, 3].map((lane) => laneOf(sum, lane)) as [Value, Value, Value, Value];
      return arithmetic('add', [arithmetic('add', [p, q], type), arithmetic('add', [r, s], type)], type);
    }

    // Neighbouring invocations have neighbouring groups of four: along n, the slices of a product lie behind those of the one
    // before, and along k, the slices of each group of four lie together.
    const slot = (which: Value, p: number, i: number, j: number): Value => {
      const quad =
        along === 'k'
          ? place(addInts(constant(((p * height + i) * quadsEach + j) * threads), x), slices, which)
          : addInts(
              place(addInts(mulInts(which, constant(height)), constant(p * slices * height + i)), width, x),
              constant(j * threads),
            );
      return b.let(mulInts(quad, constant(4)), 'slot');
    };
    const each = (visit: (sum: Value, p: number, i: number, j: number) => void): void =>
      sums.forEach((lines, p) => lines.forEach((line, i) => line.forEach((sum, j) => visit(sum, p, i, j))));
    const keep = (): void => each((sum, p, i, j) => b.store(partial.name, slot(slice, p, i, j), sum, true));
    keep();
    for (let stride = slices / 2; stride >= 1; stride /= 2) {
      b.barrier();
      b.if(less(slice, constant(stride)), () => {
        const other = b.let(addInts(slice, constant(stride)), 'other');
        each((sum, p, i, j) =>
          b.assign(sum, arithmetic('add', [sum, sharedQuad(partial.name, slot(other, p, i, j), sum)], type)),
        );
        if (stride > 1) keep();
      });
    }
    b.if(less(slice, constant(1)), () =>
      rows.forEach((row, i) =>
        b.if(row.inside, () =>
          quads.forEach((quad, j) =>
            b.if(quad.inside, () => {
              const [sum, ...others] = sums.map((lines) => lines[i]![j]!);
              points.write(row.index, quad.index, sum!, others);
            }),
          ),
        ),
      ),
    );
  };
  const whole = (): void => {
    const [rest, tileN] = divideInts(b, number, tilesN, ['tile', 'tile_n']);
    const [group, tileM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, tilesM, ['batch', 'tile_m']);
    const [row, quad] = [mulInts(tileM, constant(height)), mulInts(tileN, constant(width))];
    b.if(tileNeeded(b, frame, body, group, row, quad), tile);
  };
  if (grid[0] * grid[1] === total) whole();
  else b.if(less(number, constant(total)), whole);
  const first = body.stages === undefined ? '' : ', what it needs of whole rows first';
  const several = rights.length === 1 ? '' : `${rights.length} products of `;
  const note = `${several}[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${height}x${columns} a register tile, k in ${slices} slices${first}`;
  const workgroup = along === 'k' ? ([slices, threads, 1] as const) : ([threads, slices, 1] as const);
  return finish(frame, b, grid, workgroup, note, arrays);
}
