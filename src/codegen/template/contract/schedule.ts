// How a dot or conv kernel is spread over the machine, as plain data: which schedules are legal for a problem, which one the
// model takes, and the few that are worth measuring. The templates beside this file turn each into a Loop.

import { packsOperands, sharesWork } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { isWide } from '../../../ir/dtype.ts';
import { directRoom } from './cpu/direct.ts';
import { scheduleTime } from './model.ts';
import { flippedProblem, type ContractProblem, type Window } from './problem.ts';
import { packedRoom, type Packed } from './room.ts';
import { statements, windowStatements } from './size.ts';

interface Tile {
  /** The sides change places first: the vector axis is always n. */
  readonly flip: boolean;
  /** Sums an invocation keeps: rows of m, columns of n (in fours, but for `window`). */
  readonly rows: number;
  readonly columns: number;
}

export type ContractSchedule = Tile &
  (
    | {
        /** Operands are read straight from memory; no barriers. */
        readonly kind: 'registers';
      }
    | {
        /** A workgroup stages tiles of both operands in its memory, tileK steps of k at a time. */
        readonly kind: 'staged';
        readonly tileM: number;
        readonly tileN: number;
        readonly tileK: number;
      }
    | {
        /** Subgroups multiply tiles of 16-bit operands on matrix units, `stages` of them in workgroup memory. */
        readonly kind: 'tensor';
        readonly tileM: number;
        readonly tileN: number;
        readonly tileK: number;
        readonly stages: number;
      }
    | {
        /** Warp groups multiply tiles of 16-bit operands, which one of them has copied: `rows` of tileM and all of tileN each. */
        readonly kind: 'warpgroup';
        readonly tileM: number;
        readonly tileN: number;
        readonly tileK: number;
        readonly stages: number;
      }
    | {
        /**
         * The invocations of a workgroup share k: `threads` tiles along n, times `slices` of k whose sums are added in
         * workgroup memory. Reads run along n, or along k where the right side lies that way.
         */
        readonly kind: 'slices';
        readonly threads: number;
        readonly slices: number;
        readonly along: 'n' | 'k';
      }
    | {
        /** A workgroup packs panels of both operands, blockK steps of k at a time, and multiplies blockM rows and blockN columns. */
        readonly kind: 'packed';
        readonly blockM: number;
        readonly blockN: number;
        readonly blockK: number;
      }
    | {
        /** conv: the same with a block of output lines for columns, from a part of the padded input. */
        readonly kind: 'image';
        readonly blockM: number;
        readonly lines: number;
        readonly blockK: number;
      }
    | {
        /** conv of few elements: four positions at a time from a part of the padded input, weights in registers. */
        readonly kind: 'direct';
        readonly lines: number;
      }
    | {
        /** The right side is read once, along its lines, for a few rows and a block of columns. */
        readonly kind: 'stream';
        readonly along: 'n' | 'k';
      }
    | {
        /** conv: patches of `lines` × columns output positions, `taps` steps of k a round, inputs shared among taps. */
        readonly kind: 'window';
        readonly lines: number;
        readonly taps: number;
      }
  );

/** Schedules chosen by measurement or by hand, where there are any. */
export type PinnedSchedules = (problem: ContractProblem) => ContractSchedule | undefined;

/** Statements a kernel may unroll to: pipelines compile in about 0.1 ms a statement on the software adapter. */
const unrollLimit = 360;
/** The same on matrix units, for compilers of GPUs. */
const matrixLimit = 2000;
/** Candidates a kernel is measured with at most. */
const mostCandidates = 8;

/** Whether the templates can build this schedule for the problem within the target's limits. */
export function isLegal(schedule: ContractSchedule, problem: ContractProblem, target: Target): boolean {
  const { limits } = target;
  const { m, n, batch, epilogue } = schedule.flip ? flippedProblem(problem) : problem;
  const { rows, columns } = schedule;
  if (schedule.kind === 'tensor') return isLegalTensor(schedule, problem, target);
  if (schedule.kind === 'warpgroup') return isLegalWarpgroup(schedule, problem, target);
  if (schedule.kind === 'packed' || schedule.kind === 'image')
    return isLegalPacked(schedule, problem, target);
  if (rows < 1 || rows > Math.max(1, m)) return false;
  if (schedule.kind === 'direct') return isLegalDirect(schedule, problem, target);
  if (schedule.kind === 'stream')
    return packsOperands(target) && !isWide(problem.dtype) && m % rows === 0 && columns % 4 === 0;
  if (schedule.kind === 'window') return isLegalWindow(schedule, problem);
  if (columns < 4 || columns % 4 !== 0 || columns > 4 * Math.ceil(n / 4)) return false;
  const smallest = rows === 1 && columns === 4;
  if (!smallest && statements(rows, columns, epilogue) > unrollLimit) return false;
  switch (schedule.kind) {
    case 'registers':
      return true;
    case 'staged': {
      const { tileM, tileN, tileK } = schedule;
      return (
        sharesWork(target) &&
        rows % 4 === 0 &&
        tileK % 4 === 0 &&
        tileM % rows === 0 &&
        tileN % columns === 0 &&
        (tileM / rows) * (tileN / columns) <= limits.workgroupInvocations &&
        4 * tileK * (tileM + tileN) <= limits.workgroupBytes &&
        Math.max(batch, Math.ceil(m / tileM), Math.ceil(n / tileN)) <= limits.workgroupsPerDimension
      );
    }
    case 'slices': {
      const { threads, slices } = schedule;
      return (
        sharesWork(target) &&
        slices > 1 &&
        threads * slices <= limits.workgroupInvocations &&
        4 * rows * columns * threads * slices <= limits.workgroupBytes
      );
    }
    default:
      return schedule satisfies never;
  }
}

function isLegalTensor(
  { flip, rows, columns, tileM, tileN, tileK, stages }: Extract<ContractSchedule, { kind: 'tensor' }>,
  { m, n, batch, matrix, epilogue }: ContractProblem,
  { limits, matrixUnits = [] }: Target,
): boolean {
  const subgroups = (tileM / rows) * (tileN / columns);
  return (
    !flip &&
    matrix !== undefined &&
    matrixUnits.includes(matrix) &&
    rows % 16 === 0 &&
    columns % 16 === 0 &&
    tileK % 16 === 0 &&
    tileM % rows === 0 &&
    tileN % columns === 0 &&
    stages >= 2 &&
    32 * subgroups <= limits.workgroupInvocations &&
    // Lines may lie either way, and are eight elements longer than they need be.
    (matrix === 'tf32' ? 4 : 2) *
      stages *
      (Math.max(tileM * (tileK + 8), (tileM + 8) * tileK) +
        Math.max(tileN * (tileK + 8), (tileN + 8) * tileK)) <=
      limits.workgroupBytes &&
    ((rows * columns) / 128) * (1 + epilogue) <= matrixLimit &&
    Math.max(Math.ceil(m / tileM) * Math.ceil(n / tileN), batch) <= limits.workgroupsPerDimension
  );
}

function isLegalWarpgroup(
  { flip, rows, columns, tileM, tileN, tileK, stages }: Extract<ContractSchedule, { kind: 'warpgroup' }>,
  { n, tiled, matrix, epilogue }: ContractProblem,
  { limits, matrixUnits = [], warpgroups }: Target,
): boolean {
  return (
    !flip &&
    warpgroups !== undefined &&
    tiled === true &&
    // Where there is one column, the lanes of a quad all write it: what is copied would have to repeat it.
    n > 1 &&
    matrix !== undefined &&
    matrix !== 'tf32' &&
    matrixUnits.includes(matrix) &&
    columns === tileN &&
    [rows, tileM, tileN].every((size) => size % 64 === 0 && size <= 256) &&
    tileK === 64 &&
    tileM % rows === 0 &&
    stages >= 2 &&
    // Half of an invocation's registers hold sums, at most.
    rows * columns <= 128 * 128 &&
    128 * (tileM / rows + 1) <= limits.workgroupInvocations &&
    // What is copied begins at a multiple of 1024 bytes.
    2 * stages * tileK * (tileM + tileN) + 16 * stages + 1024 <= limits.workgroupBytes &&
    ((rows * columns) / 512) * (1 + epilogue) <= matrixLimit
  );
}

function isLegalPacked(schedule: Packed, problem: ContractProblem, target: Target): boolean {
  const { kind, flip, rows, columns, blockM, blockK } = schedule;
  const { left, right, sums, image } = packedRoom(schedule, flip ? flippedProblem(problem) : problem);
  return (
    packsOperands(target) &&
    !isWide(problem.dtype) &&
    rows === 2 &&
    columns % 4 === 0 &&
    blockM % 4 === 0 &&
    (kind === 'image' ? isWindowed(schedule, problem) : schedule.blockN % columns === 0) &&
    (blockK % 4 === 0 || blockK >= problem.k) &&
    (problem.dtype === 'f64' ? 8 : 4) * (left + right + sums + image) <= target.limits.workgroupBytes
  );
}

function isLegalDirect(
  schedule: Extract<ContractSchedule, { kind: 'direct' }>,
  problem: ContractProblem,
  target: Target,
): boolean {
  const { k, window, dtype } = problem;
  if (window?.plane === undefined || schedule.flip || schedule.lines > window.lines) return false;
  const bytes = (dtype === 'f64' ? 8 : 4) * directRoom(schedule, problem);
  return packsOperands(target) && !isWide(dtype) && k <= mostWeights && bytes <= target.limits.workgroupBytes;
}

/** Whether there is a padded input to look at, and blocks of k are whole channels. */
function isWindowed(
  { flip, lines, blockK }: Extract<Packed, { kind: 'image' }>,
  { window }: ContractProblem,
): boolean {
  if (window?.plane === undefined || flip) return false;
  return lines <= window.lines && blockK % (window.taps * window.tapLines) === 0;
}

function isLegalWindow(
  { flip, rows, columns, lines, taps }: Extract<ContractSchedule, { kind: 'window' }>,
  { window, k, epilogue }: ContractProblem,
): boolean {
  if (window === undefined || flip) return false;
  return (
    columns >= 1 &&
    columns <= window.width &&
    window.lines % lines === 0 &&
    k % taps === 0 &&
    windowStatements(rows, columns * lines, taps, epilogue) <= unrollLimit
  );
}

/** The schedule that the model takes to be the fastest. */
export function contractSchedule(problem: ContractProblem, target: Target): ContractSchedule {
  return ranked(problem, target)[0]!;
}

/** What is worth measuring: the model's choice first, then the next best. */
export function contractCandidates(problem: ContractProblem, target: Target): readonly ContractSchedule[] {
  return ranked(problem, target).slice(0, mostCandidates);
}

/** Every schedule of the space that is legal here. */
export function legalSchedules(problem: ContractProblem, target: Target): readonly ContractSchedule[] {
  return [...everySchedule(problem)].filter((schedule) => isLegal(schedule, problem, target));
}

function ranked(problem: ContractProblem, target: Target): ContractSchedule[] {
  const timed = legalSchedules(problem, target).map((schedule) => ({
    schedule,
    time: scheduleTime(schedule, problem, target),
  }));
  // Of equals the first: larger tiles come first, and read less.
  return timed.toSorted((a, b) => a.time - b.time).map(({ schedule }) => schedule);
}

function* everySchedule(problem: ContractProblem): Generator<ContractSchedule> {
  if (problem.tiled)
    for (const [tileM, tileN, rows, stages] of warpgroupTiles)
      yield { kind: 'warpgroup', flip: false, rows, columns: tileN, tileM, tileN, tileK: 64, stages };
  if (problem.matrix !== undefined)
    for (const [tileM, tileN, tileK, rows, columns, stages] of tensorTiles)
      yield { kind: 'tensor', flip: false, rows, columns, tileM, tileN, tileK, stages };
  for (const [tileM, tileN, tileK, rows, columns] of stagedTiles)
    yield { kind: 'staged', flip: false, rows, columns, tileM, tileN, tileK };
  if (problem.window !== undefined) yield* patches(problem.window, problem.k);
  yield* directBlocks(problem);
  yield* imageBlocks(problem);
  for (const flip of [false, true]) yield* packedBlocks(flip ? flippedProblem(problem) : problem, flip);
  for (const flip of [false, true]) yield* streams(flip ? flippedProblem(problem) : problem, flip);
  for (const flip of flips(problem)) {
    for (const [rows, columns] of registerTiles) yield { kind: 'registers', flip, rows, columns };
    const { rhs } = flip ? flippedProblem(problem) : problem;
    const along = rhs === 'k' ? 'k' : 'n';
    for (const [rows, columns, threads, slices] of slicedTiles)
      yield { kind: 'slices', flip, rows, columns, threads, slices, along };
  }
}

/** The vector axis follows memory: the sides change places where the right one is a column, or only the left contiguous. */
function flips({ m, n, lhs, rhs }: ContractProblem): readonly boolean[] {
  if (n < 4 && m > n) return [true];
  return lhs === 'm' && rhs !== 'n' && m >= 4 ? [true, false] : [false];
}

/** Patches whose columns divide the line, if any do: elsewhere the last one overlaps. */
function* patches(window: Window, k: number): Generator<ContractSchedule> {
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

/** Blocks of columns that divide a line evenly. Few rows only: others are packed. */
function* streams({ m, n, rhs }: ContractProblem, flip: boolean): Generator<ContractSchedule> {
  if (m > 8) return;
  const along = rhs === 'k' ? 'k' : 'n';
  for (const rows of [2, 1])
    for (const parts of [1, 2, 8]) {
      const columns = 4 * Math.ceil(n / 4 / parts);
      if (m % rows === 0 && (parts === 1 || columns >= 64))
        yield { kind: 'stream', flip, rows, columns, along };
    }
}

/** Blocks that divide the result evenly, and steps of k that divide k so. */
function* packedBlocks({ m, n, k, dtype }: ContractProblem, flip: boolean): Generator<ContractSchedule> {
  const [rows, columns] = [2, panelColumns(dtype)];
  const up = (value: number, to: number): number => Math.ceil(value / to) * to;
  const evenly = (extent: number, parts: number, to: number): number => up(Math.ceil(extent / parts), to);
  const blockK = evenly(k, Math.ceil(k / mostSteps), 4);
  const shares = (extent: number, least: number): readonly number[] =>
    [1, 2, 4, 8, 16, 32, 64].filter((parts) => parts === 1 || extent / parts >= least);
  for (const partsM of shares(m, 32))
    for (const partsN of shares(n, 64)) {
      const blockM = evenly(m, partsM, 4);
      const blockN = evenly(n, partsN, columns);
      yield { kind: 'packed', flip, rows, columns, blockM, blockN, blockK };
    }
}

/** Weights that one position is summed up with. */
const mostWeights = 32;

/** Blocks of lines. */
function* directBlocks({ k, window }: ContractProblem): Generator<ContractSchedule> {
  if (window?.plane === undefined || k > mostWeights) return;
  for (const parts of [1, 2, 4].filter((count) => count <= window.lines))
    yield { kind: 'direct', flip: false, rows: 1, columns: 4, lines: Math.ceil(window.lines / parts) };
}

/** Blocks of lines and of whole channels. */
function* imageBlocks({ m, k, window, dtype }: ContractProblem): Generator<ContractSchedule> {
  if (window?.plane === undefined) return;
  const taps = window.taps * window.tapLines;
  const channels = k / taps;
  const pieces = Math.ceil(k / mostSteps);
  // Where there are several, each begins at a multiple of four.
  const inBlock = pieces === 1 ? channels : 4 * Math.max(1, Math.floor(channels / pieces / 4));
  const up = (value: number, to: number): number => Math.ceil(value / to) * to;
  for (const partsM of [1, 2, 4].filter((parts) => parts === 1 || m / parts >= 32))
    for (const partsN of [1, 2, 4, 8, 16].filter((parts) => parts <= window.lines))
      yield {
        kind: 'image',
        flip: false,
        rows: 2,
        columns: panelColumns(dtype),
        blockM: up(Math.ceil(m / partsM), 4),
        lines: Math.ceil(window.lines / partsN),
        blockK: taps * Math.min(channels, inBlock),
      };
}

/** Sums of a tile of two rows are eight vectors of 128 bits: with what else is at hand they fill the registers. */
function panelColumns(dtype: ContractProblem['dtype']): number {
  return dtype === 'f64' ? 8 : 16;
}

/** Steps of k of which two panels stay in the first cache. */
const mostSteps = 320;

const tensorTiles = [
  [128, 256, 64, 64, 64, 3],
  [256, 128, 64, 64, 64, 3],
  [128, 128, 64, 64, 64, 3],
  [128, 128, 32, 64, 32, 4],
  [128, 128, 32, 64, 32, 2],
  [128, 64, 32, 64, 32, 3],
  [64, 128, 32, 32, 64, 3],
  [64, 64, 64, 32, 32, 3],
  [64, 64, 32, 32, 32, 3],
  [32, 64, 32, 16, 32, 3],
  [16, 64, 32, 16, 16, 3],
] as const;

const warpgroupTiles = [
  [128, 256, 64, 4],
  [256, 128, 128, 4],
  [128, 192, 64, 5],
  [128, 128, 64, 6],
  [128, 64, 64, 8],
  [64, 256, 64, 5],
  [64, 128, 64, 8],
  [64, 64, 64, 8],
] as const;

const stagedTiles = [
  [128, 128, 8, 8, 8],
  [128, 64, 16, 8, 8],
  [128, 64, 16, 8, 4],
  [64, 64, 16, 8, 8],
  [64, 64, 16, 4, 8],
  [64, 64, 16, 4, 4],
  [32, 64, 16, 4, 4],
  [32, 32, 32, 4, 4],
] as const;

const registerTiles = [8, 4, 2, 1].flatMap((rows) =>
  [64, 32, 16, 12, 8, 4]
    .filter((columns) => rows * columns <= 128)
    .map((columns) => [rows, columns] as const),
);

const slicedTiles = [
  [4, 4, 16, 16],
  [4, 4, 8, 8],
  [4, 4, 4, 64],
  [2, 4, 16, 16],
  [1, 4, 16, 16],
  [1, 4, 4, 64],
  [1, 4, 1, 256],
] as const;
