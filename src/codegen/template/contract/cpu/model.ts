// The same for cores of a CPU with vectors of four and sixteen registers. Figures are nanoseconds,
// measured on one core of about 4 GHz by WebAssembly; a few cores share the workgroups of what
// takes long.

import type { Target } from '../../../../schedule/target.ts';
import { flippedProblem, type ContractProblem } from '../problem.ts';
import { directRoom } from './direct.ts';
import type { ContractSchedule } from '../schedule.ts';
import { goesAcross, packedRoom, panelsOf } from '../room.ts';
import { statements, windowInputs, windowStatements } from '../size.ts';

/**
 * A multiply-add of four lanes where registers suffice; one more value than there are registers, in
 * and out of memory.
 */
const multiplyAdd = 0.13;
const spill = 0.08;
/** Vectors that are held at a time: sums, and what a step loads. */
const registers = 14;
/** A turn of a loop, and an element that is read or written alone. */
const turn = 0.45;
const single = 0.2;
/** An element that is packed, and one of a convolution's window. */
const packed = 0.25;
const sought = 0.9;
/** An element of a padded input that is brought in. */
const filled = 0.1;
/** A line that comes from beyond the caches. */
const far = 25;
/** Another line that is read on its own. */
const another = 20;
/** Elements of an operand that stay near a core. */
const nearElements = 2 ** 18;
/** Starting a workgroup, and compiling a statement. */
const workgroup = 1000;
const statement = 50;

/**
 * Cores that share a product's workgroups: by how long it takes at least, so that it is the same
 * for all schedules.
 */
function coresFor({ batch, m, n, k }: ContractProblem, { cores, threads = Infinity }: Target): number {
  const least = (batch * m * n * k * multiplyAdd) / 4;
  if (least < 40_000) return 1;
  // Few rows or columns: two cores take what memory gives, and one reads whole lines faster than
  // halves of them.
  if (Math.min(m, n) <= 8) return Math.min(2, threads);
  return Math.min(cores.count, least < 400_000 ? 2 : least < 4_000_000 ? 4 : Infinity);
}

/** Modelled time of one run. */
export function packingTime(schedule: ContractSchedule, problem: ContractProblem, target: Target): number {
  const { batch, m, n, k, rhs, epilogue, window } = schedule.flip ? flippedProblem(problem) : problem;
  const { rows, columns } = schedule;
  const up = (value: number, to: number): number => Math.ceil(value / to) * to;
  const cores = coresFor(problem, target);
  const shared = (workgroups: number): number => Math.ceil(workgroups / cores);
  switch (schedule.kind) {
    case 'packed': {
      const { blockM, blockN } = schedule;
      const [height, width] = [up(Math.min(blockM, m), rows), up(Math.min(blockN, n), columns)];
      const sums = (height * width * k * multiplyAdd) / 4;
      // Results lie along n: the other way round each is stored alone.
      const left = height * width * ((schedule.flip ? 0.4 : 0.1) + 0.05 * epilogue);
      // A window's elements are looked for, and compared with the borders.
      const seen = window !== undefined && window.taps * window.tapLines > 1 ? sought : packed;
      const [tall, wide] = schedule.flip ? [seen, packed] : [packed, seen];
      const block = sums + k * (height * tall + width * wide) + left + workgroup;
      const blocks = batch * Math.ceil(m / blockM) * Math.ceil(n / blockN);
      return shared(blocks) * block;
    }
    case 'direct': {
      const lines = Math.min(schedule.lines, window!.lines);
      const quads = lines * Math.ceil(window!.width / 4);
      const spilled = k > registers - 4 ? k * spill : 0;
      const sums = m * quads * (turn + k * 0.15 + spilled + 0.2 * epilogue);
      const block = sums + filled * directRoom(schedule, problem) + m * lines * 3 + workgroup / 8;
      return shared(batch * Math.ceil(window!.lines / schedule.lines)) * block;
    }
    case 'image': {
      const height = up(Math.min(schedule.blockM, m), rows);
      const panels = panelsOf(schedule, problem);
      const { image } = packedRoom({ ...schedule, blockK: k }, problem);
      const sums = (height * panels * columns * k * multiplyAdd) / 4;
      const left = height * panels * columns * (0.1 + 0.05 * epilogue);
      const tiles = (Math.ceil(k / schedule.blockK) * panels * height) / rows;
      const seen =
        (goesAcross(schedule.lines, window!) ? 0.16 : 0.08) * k * panels * columns + filled * image;
      const block = sums + packed * k * height + seen + 8 * tiles + left + workgroup;
      return (
        shared(batch * Math.ceil(m / schedule.blockM) * Math.ceil(window!.lines / schedule.lines)) * block
      );
    }
    case 'stream': {
      const width = up(Math.min(columns, n), 4);
      // Sums go in and out of the cache, but for every fourth line only.
      const alongN = rows * (multiplyAdd + 0.1) + 0.15;
      const line = schedule.along === 'n' ? alongN : rows === 1 ? 0.3 : 0.45 * rows;
      const lines = schedule.along === 'n' ? k * another : 0;
      const block = (k * width * line) / 4 + lines + width * rows * (0.1 * epilogue + 0.5) + workgroup;
      return shared(batch * Math.ceil(m / rows) * Math.ceil(n / columns)) * block;
    }
    case 'registers': {
      const quads = (rows * columns) / 4;
      const live = quads + rows + columns / 4;
      const spilled = live > registers ? live * spill : 0;
      const isSought = window !== undefined && window.taps * window.tapLines > 1;
      const lines = rhs === 'n' ? (k * n > nearElements ? far : 0) : columns * single;
      const gathered = isSought ? columns * sought : lines;
      const step = turn + quads * multiplyAdd + spilled + gathered;
      const tiles = batch * Math.ceil(m / rows) * Math.ceil(n / columns);
      const tile = k * step + quads * 0.25 * epilogue + 20;
      return shared(tiles / 8) * 8 * tile + statement * statements(rows, columns, epilogue);
    }
    case 'window': {
      const { lines, taps } = schedule;
      const { width, lines: height, spread } = problem.window!;
      const results = rows * columns * lines;
      const inputs = windowInputs(schedule, problem.window!);
      const round =
        2 * single * inputs + single * rows * taps + (results * taps * multiplyAdd) / (2 * spread);
      const tiles = (batch * Math.ceil(m / rows) * height * Math.ceil(width / columns)) / lines;
      const tile = (k / taps) * (round + turn) + (results / 4) * 0.25 * epilogue + 20;
      return (
        shared(tiles / 8) * 8 * tile + statement * windowStatements(rows, columns * lines, taps, epilogue)
      );
    }
    case 'slices':
    case 'staged':
    case 'tensor':
    case 'warpgroup':
      return Infinity;
    default:
      return schedule satisfies never;
  }
}
