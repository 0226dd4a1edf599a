// How large a schedule of a dot or conv makes its kernel, in statements, and what a window's taps look at.

import type { Window } from './problem.ts';

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
