// What products cost on cores of a CPU with vectors of four and sixteen registers: the figures that
// the times of strategies are made of, in nanoseconds, measured on one core of about 4 GHz by
// WebAssembly. A few cores share the workgroups of what takes long.

import type { Target } from '../../../../schedule/target.ts';
import type { ContractProblem } from '../problem.ts';

export const cpu = {
  /**
   * A multiply-add of four lanes where registers suffice; one more value than there are registers,
   * in and out of memory.
   */
  multiplyAdd: 0.13,
  spill: 0.08,
  /** Beginning and leaving a tile of sums in registers; sums that keep two units busy. */
  tile: 12,
  sumsToFill: 10,
  /** Vectors that are held at a time: sums, and what a step loads. */
  registers: 14,
  /** A turn of a loop, and an element that is read or written alone. */
  turn: 0.45,
  single: 0.2,
  /**
   * An element that is packed, and one of a convolution's window, which is searched for and
   * compared with the borders.
   */
  packed: 0.25,
  searched: 0.9,
  /** One of several in a wide register. */
  copied: 0.15,
  /** A value of a block of few bits that is decoded on its own. */
  decoded: 1.3,
  /** An element of a padded input that is brought in. */
  filled: 0.1,
  /** A number that a transform of Winograd's gives. */
  transformed: 0.25,
  /** A line that comes from beyond the caches. */
  far: 25,
  /** One more line that is read on its own. */
  line: 20,
  /** Elements of an operand that stay near a core. */
  nearElements: 262_144,
  /** Starting a workgroup, and compiling a statement. */
  workgroup: 1000,
  statement: 50,
} as const;

/**
 * Cores that share a product's workgroups: as many as there are threads, or as many as there may be where that is not known.
 * What takes little is shared by few; how long it takes at least is the same for all tilings.
 */
export function coresFor({ batch, m, n, k }: ContractProblem, { cores, threads = Infinity }: Target): number {
  const least = (batch * m * n * k * cpu.multiplyAdd) / 4;
  if (least < 40_000) return 1;
  // Few rows or columns: two cores take what memory gives, and one reads whole lines faster than
  // halves of them.
  if (Math.min(m, n) <= 8) return Math.min(2, threads);
  return Math.min(cores.count, threads, least < 400_000 ? 2 : least < 4_000_000 ? 4 : Infinity);
}

/** Workgroups that one core has of so many. */
export function shared(workgroups: number, problem: ContractProblem, target: Target): number {
  return Math.ceil(workgroups / coresFor(problem, target));
}
