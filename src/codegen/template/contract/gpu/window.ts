// The form of conv for neighbouring outputs that look at the same inputs: an invocation keeps a
// patch of output positions, for a few channels, and takes several taps of the kernel in one round.
// Inputs that more than one tap asks for are one load, because their indices are equal expressions;
// taps that fall between the elements of a dilated input are left out. With a single channel to a
// group this is the depthwise convolution.

import { sharesWork } from '../../../../schedule/machine.ts';
import { CompilerBug } from '../../../../errors.ts';
import { constant, less, mulInts } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { cpu, shared } from '../cpu/costs.ts';
import { windowOf, type Contract, type Window } from '../problem.ts';
import { hasRows, unrollLimit, windowInputs, windowStatements } from '../size.ts';
import type { Strategy } from '../strategy.ts';
import { finish, foldGrid, invocation, openBuilder, type Frame } from '../../shared/frame.ts';
import { multiplyAdd, span } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';
import { tileCosts } from './costs.ts';
import { PatchLowering, type WindowTiling } from './patch.ts';

export type { WindowTiling };

export const window: Strategy<WindowTiling> = {
  *candidates({ window: seen, k }) {
    if (seen !== undefined) yield* patches(seen, k);
  },
  isLegal(tiling, problem) {
    const { flip, rows, columns, lines, taps } = tiling;
    const { window: seen, k, epilogue } = problem;
    if (seen === undefined || flip || !hasRows(tiling, problem)) return false;
    return (
      columns >= 1 &&
      columns <= seen.width &&
      seen.lines % lines === 0 &&
      k % taps === 0 &&
      windowStatements(rows, columns * lines, taps, epilogue) <= unrollLimit
    );
  },
  time(tiling, problem, target) {
    const seen = problem.window;
    if (seen === undefined) return Infinity;
    const { batch, m, k, epilogue } = problem;
    const { rows, columns, lines, taps } = tiling;
    const results = rows * columns * lines;
    const inputs = windowInputs(tiling, seen);
    const count = (batch * Math.ceil(m / rows) * seen.lines * Math.ceil(seen.width / columns)) / lines;
    const unrolled = windowStatements(rows, columns * lines, taps, epilogue);
    if (target.machine === 'cpu') {
      const busy = (results * taps * cpu.multiplyAdd) / (2 * seen.spread);
      const round = 2 * cpu.single * inputs + cpu.single * rows * taps + busy;
      const tile = (k / taps) * (round + cpu.turn) + (results / 4) * 0.25 * epilogue + 20;
      return shared(count / 8, problem, target) * 8 * tile + cpu.statement * unrolled;
    }
    const { machine, turns } = tileCosts(tiling, problem, target);
    const { load, scattered, multiplyAdd: product, overhead, latency, statement, workgroup } = machine;
    const busy = (results * taps * product) / seen.spread;
    const round = 2 * load * inputs + scattered * rows * taps + busy + 2 * overhead;
    return (k / taps) * Math.max(latency, turns(count / workgroup, workgroup) * round) + statement * unrolled;
  },
  loop: windowLoop,
};

/** Patches whose columns divide the line, if any do: elsewhere the last one overlaps. */
function* patches(window: Window, k: number): Generator<WindowTiling> {
  const { width, taps: line, tapLines } = window;
  const divisors = (of: number, most: number): number[] =>
    Array.from({ length: Math.min(of, most) }, (_, i) => i + 1).filter((count) => of % count === 0);
  const even = divisors(width, 32).filter((columns) => columns >= 3 || columns === width);
  const widths = even.length > 0 ? even : [8, 16].filter((columns) => columns < width);
  const whole = line * tapLines;
  const rounds =
    line <= 7 ? [line, ...(whole <= 9 && whole > line ? [whole] : [])] : [divisors(line, 4).at(-1)!];
  for (const taps of rounds.filter((count) => k % count === 0))
    for (const rows of [8, 4, 2, 1])
      for (const lines of divisors(window.lines, 8))
        for (const columns of widths)
          if (rows * columns * lines <= 128)
            yield { kind: 'window', flip: false, rows, columns, lines, taps };
}

function windowLoop(frame: Frame, body: Contract, tiling: WindowTiling): Loop {
  const seen = windowOf(body);
  if (seen === undefined) throw new CompilerBug('window template', 'there are no windows');
  const { target } = frame;
  const { batch, m, n, k } = body;
  const { rows: height, columns, lines, taps } = tiling;
  const [tilesX, tilesY] = [Math.ceil(seen.width / columns), seen.lines / lines];
  const tilesM = Math.ceil(m.extent / height);
  const total = batch.extent * tilesM * tilesY * tilesX;
  const size = sharesWork(target) ? target.workgroupSize : total <= 32 ? 4 : 8;
  const grid = foldGrid(Math.ceil(total / size), target);
  const b = openBuilder(frame);
  const id = invocation(b, grid, size);
  const tile = (): void => {
    const [patches, tileX] = divideInts(b, id, tilesX, ['patch', 'tile_x']);
    const [blocks, tileY] = divideInts(b, patches, tilesY, ['block', 'tile_y']);
    const [group, tileM] = divideInts(b, blocks, tilesM, ['batch', 'tile_m']);
    const rows = span(b, mulInts(tileM, constant(height)), height, m.extent, m.extent % height === 0, 'm');
    const patch = new PatchLowering(b, frame, body, seen, tiling, { group, tileX, tileY });
    const sums = rows.map((_, i) => patch.accumulators(i));
    const round = (step: Value | undefined): void => {
      for (let tap = 0; tap < taps; tap++) {
        const left = rows.map((row) => patch.weight(row.index, step, tap));
        for (let j = 0; j < patch.registers; j++) {
          const input = patch.input(j, step, tap);
          if (input === undefined) continue;
          sums.forEach((line, i) => b.assign(line[j]!, multiplyAdd(left[i]!, input, line[j]!)));
        }
      }
    };
    if (k.extent === taps) round(undefined);
    else b.for('round', constant(0), constant(k.extent / taps), 1, round);
    rows.forEach((row, i) => b.if(row.inside, () => patch.write(row.index, sums[i]!)));
  };
  if (grid[0] * grid[1] * size === total) tile();
  else b.if(less(id, constant(total)), tile);
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, patches of ${lines}x${columns} for ${height} channels, ${taps} taps a round`;
  return finish(frame, b, grid, [size, 1, 1], note);
}
