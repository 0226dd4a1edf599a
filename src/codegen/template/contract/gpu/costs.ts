// The cost of a round of k on a GPU, and on the software adapter that replaces one: the figures from which
// the times of strategies are computed. A GPU is described by figures of its makers (in clocks), the software
// adapter by measurements (in nanoseconds). CPUs have a model of their own (cpu/costs.ts). Only ratios
// matter.

import type { Target } from '../../../../schedule/target.ts';
import type { ContractProblem } from '../problem.ts';
import type { Tile } from '../strategy.ts';

interface Figures {
  /** Invocations that run as one, and how many such groups a core runs at a time. */
  readonly lanes: number;
  readonly groups: number;
  /** Invocations of a workgroup that only divides the work. */
  readonly workgroup: number;
  /**
   * A multiply-add of every lane; a load of one element from memory, where neighbours lie together
   * and where they do not, and from workgroup memory.
   */
  readonly multiplyAdd: number;
  readonly load: number;
  readonly scattered: number;
  readonly shared: number;
  /** Of one round of a tile, whatever its size. */
  readonly overhead: number;
  /** The same, where lines of the right side come from beyond the caches. */
  readonly far: number;
  /** What a round takes at least: a core with few tiles waits for memory. */
  readonly latency: number;
  readonly barrier: number;
  /** Compiling one more statement, spread over the runs that a kernel is taken to have at least. */
  readonly statement: number;
}

/** Multiprocessors of 128 multiply-adds a clock. */
const gpu: Figures = {
  lanes: 32,
  groups: 4,
  workgroup: 64,
  multiplyAdd: 1,
  load: 2,
  scattered: 8,
  shared: 0.5,
  overhead: 4,
  far: 0,
  latency: 24,
  barrier: 30,
  statement: 0,
};

/** The software adapter: a load costs as much as three multiply-adds, however its neighbours lie. */
const software: Figures = {
  lanes: 4,
  groups: 1,
  workgroup: 8,
  multiplyAdd: 2.2,
  load: 5.5,
  scattered: 7,
  shared: 7,
  overhead: 10,
  far: 90,
  latency: 0,
  barrier: 2000,
  statement: 15_000,
};

/** An epilogue that only stores, in statements. */
const plainStore = 4;

/**
 * What an epilogue takes to compile, next to a multiply-add: loads, bounds and functions come with
 * its expressions.
 */
export function toCompile(epilogue: number): number {
  return epilogue + 4 * Math.max(0, epilogue - plainStore);
}

/** Elements of an operand that stay near a core. */
const nearElements = 2 ** 18;

/** What tiles of one size cost. */
export interface TileCosts {
  readonly machine: Figures;
  /** Of the target: multiprocessors, or threads of the software adapter. */
  readonly cores: number;
  /** Tiles of such a size in the result. */
  readonly tiles: (height: number, width: number) => number;
  /** Turns that a core takes to run its share of so many workgroups once. */
  readonly turns: (workgroups: number, invocations: number) => number;
  /**
   * The multiply-adds of one step of k, and the whole step where operands are read straight from
   * memory.
   */
  readonly sums: number;
  readonly direct: number;
}

export function tileCosts(
  { rows, columns }: Tile,
  { batch, m, n, k, rhs, window }: ContractProblem,
  target: Target,
): TileCosts {
  const machine = target.machine === 'gpu' ? gpu : software;
  const cores = target.cores.count;
  const { lanes, multiplyAdd, overhead } = machine;
  // A convolution's input is looked for and compared with its borders.
  const right = (rhs === 'n' ? machine.load : machine.scattered) * (window === undefined ? 1 : 2);
  const sums = rows * columns * multiplyAdd;
  const isFar = rhs === 'n' && k * n > nearElements;
  return {
    machine,
    cores,
    tiles: (height, width) => batch * Math.ceil(m / height) * Math.ceil(n / width),
    turns: (workgroups, invocations) =>
      Math.ceil((Math.ceil(workgroups / cores) * Math.ceil(invocations / lanes)) / machine.groups),
    sums,
    direct: rows * machine.scattered + columns * right + sums + overhead + (isFar ? machine.far : 0),
  };
}
