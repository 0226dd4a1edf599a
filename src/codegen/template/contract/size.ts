// How large a tiling of a dot or conv makes its kernel, in statements, and what a window's taps
// look at.

import type { ContractProblem, Window } from './problem.ts';
import type { Tile } from './strategy.ts';

/**
 * Statements a kernel may unroll to: pipelines compile in about 0.1 ms a statement on the software
 * adapter.
 */
export const unrollLimit = 360;
/** The same on matrix units, for compilers of GPUs. */
export const matrixLimit = 2000;

/** The least multiple of `to` that is not below the value. */
export const roundedUp = (value: number, to: number): number => Math.ceil(value / to) * to;

/** Whether a tile has no more rows than the result. */
export function hasRows({ rows }: Tile, { m }: ContractProblem): boolean {
  return rows >= 1 && rows <= Math.max(1, m);
}

/** Whether a tile of whole quads lies inside the result, and can be unrolled. */
export function fitsRegisters(tile: Tile, problem: ContractProblem): boolean {
  const { rows, columns } = tile;
  const { n, epilogue } = problem;
  if (!hasRows(tile, problem)) return false;
  if (columns < 4 || columns % 4 !== 0 || columns > 4 * Math.ceil(n / 4)) return false;
  const isSmallest = rows === 1 && columns === 4;
  return isSmallest || statements(rows, columns, epilogue) <= unrollLimit;
}

/** Statements of an unrolled tile: loads, sums, and the epilogue of each result. */
export function statements(rows: number, columns: number, epilogue: number): number {
  const quads = (rows * columns) / 4;
  return rows + columns / 4 + quads * (1 + epilogue);
}

/** The same for a patch of a convolution. */
export function windowStatements(rows: number, positions: number, taps: number, epilogue: number): number {
  return (rows + positions) * taps + (rows * positions * (taps + epilogue)) / 4;
}

/** Inputs that the taps of one round look at. */
export function windowInputs(
  { columns, lines, taps }: { readonly columns: number; readonly lines: number; readonly taps: number },
  window: Window,
): number {
  const along = Math.min(taps, window.taps);
  const across = taps / along;
  const reach = (window.stride * (columns - 1) + window.dilation * (along - 1) + 1) / window.spread;
  return Math.min(columns * along, Math.ceil(reach)) * (across === 1 ? lines : lines + across - 1);
}
