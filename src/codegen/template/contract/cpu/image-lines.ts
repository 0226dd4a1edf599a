// Lines of a convolution's positions in groups of four, and of the padded input that they look at.

import type { Plane, Window } from '../problem.ts';

/** Groups of four that a line of a convolution's positions has. */
export const quadsOf = ({ width }: Pick<Window, 'width'>): number => Math.ceil(width / 4);

/**
 * Whether groups of four positions go on from one line to the next, because too many would lie past
 * the ends of lines: where blocks are whole, and begin with whole groups.
 */
export function goesAcross(lines: number, { width, lines: all, plane }: Window): boolean {
  const isWhole = lines >= all || (all % lines === 0 && (lines * width) % 4 === 0);
  const isMuch = 4 * quadsOf({ width }) > 1.05 * width;
  return isWhole && isMuch && width >= 4 && plane !== undefined && all > 1;
}

/** Lines of padded input that lines of output look at. */
export function imageLines(lines: number, { stride, reach }: Plane): number {
  return (lines - 1) * stride + reach + 1;
}
