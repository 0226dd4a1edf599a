// Blocks of packed schedules: how many there are, and what a workgroup keeps of one in its memory.

import type { ContractProblem, Window } from './problem.ts';
import type { ContractSchedule } from './schedule.ts';
import { depthRoom, roundedUp } from './cpu/panels.ts';

export type Packed = Extract<ContractSchedule, { kind: 'packed' | 'image' }>;

/** Groups of four that a line of a convolution's positions has. */
export const quadsOf = ({ width }: Pick<Window, 'width'>): number => Math.ceil(width / 4);

/**
 * Whether groups of four positions go on from one line to the next, because too many would lie past the ends of lines: where blocks
 * are whole, and begin with whole groups.
 */
export function goesAcross(lines: number, { width, lines: all, plane }: Window): boolean {
  const isWhole = lines >= all || (all % lines === 0 && (lines * width) % 4 === 0);
  const isMuch = 4 * quadsOf({ width }) > 1.05 * width;
  return isWhole && isMuch && width >= 4 && plane !== undefined && all > 1;
}

/** Blocks along n. */
export function blocksOf(schedule: Packed, { n, window }: ContractProblem): number {
  if (schedule.kind === 'packed') return Math.ceil(n / schedule.blockN);
  return Math.ceil(window!.lines / schedule.lines);
}

/** Panels of a block. */
export function panelsOf(schedule: Packed, { n, window }: ContractProblem): number {
  const { columns } = schedule;
  if (schedule.kind === 'packed') return Math.ceil(Math.min(schedule.blockN, n) / columns);
  const { lines } = schedule;
  const quads = goesAcross(lines, window!)
    ? Math.ceil((lines * window!.width) / 4)
    : lines * quadsOf(window!);
  return Math.ceil((4 * quads) / columns);
}

/** Lines of padded input that lines of output look at. */
export function imageLines(lines: number, { stride, reach }: NonNullable<Window['plane']>): number {
  return (lines - 1) * stride + reach + 1;
}

/** Elements that a workgroup keeps: rows and a panel of columns for a block of k, the sums of the panels that wait, and the part of a
 *  padded input. */
export function packedRoom(
  schedule: Packed,
  problem: ContractProblem,
): { readonly left: number; readonly right: number; readonly sums: number; readonly image: number } {
  const { rows, columns, blockM, blockK } = schedule;
  const { k, window } = problem;
  const depth = depthRoom(blockK, k);
  const height = roundedUp(blockM, 2 * rows);
  const panels = k > blockK ? panelsOf(schedule, problem) : 1;
  const kept = { left: height * depth, right: columns * depth, sums: panels * height * columns };
  if (schedule.kind === 'packed' || window?.plane === undefined) return { ...kept, image: 0 };
  const channels = Math.min(blockK, k) / (window.taps * window.tapLines);
  // A group of four that begins with the last position of a line looks beyond it.
  const beyond = goesAcross(schedule.lines, window) ? 4 : 0;
  return { ...kept, image: channels * imageLines(schedule.lines, window.plane) * window.plane.line + beyond };
}
