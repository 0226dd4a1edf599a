// How long a schedule of a dot or conv is taken to run: rounds of k, times what a core spends on
// one round of the tiles it has. How many cores there are, the target says. What a core takes is
// given here: of a GPU by the figures its makers give (in clocks), of the software adapter by
// measurement (in nanoseconds); a CPU, which packs, has a model of its own. Only ratios matter.

import type { Target } from '../../../schedule/target.ts';
import { packingTime } from './cpu/model.ts';
import { flippedProblem, type ContractProblem } from './problem.ts';
import type { ContractSchedule } from './schedule.ts';
import { statements, windowInputs, windowStatements } from './size.ts';

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

/**
 * The software adapter: a load costs as much as three multiply-adds, however its neighbours lie.
 */
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
function toCompile(epilogue: number): number {
  return epilogue + 4 * Math.max(0, epilogue - plainStore);
}

/** Elements of an operand that stay near a core. */
const nearElements = 2 ** 18;

/** Modelled time of one run, without what every schedule of the problem has in common. */
export function scheduleTime(schedule: ContractSchedule, problem: ContractProblem, target: Target): number {
  if (target.machine === 'cpu') return packingTime(schedule, problem, target);
  const machine = { gpu, software }[target.machine];
  const cores = target.cores.count;
  const { batch, m, n, k, rhs, epilogue } = schedule.flip ? flippedProblem(problem) : problem;
  const { rows, columns } = schedule;
  const { lanes, multiplyAdd, shared, overhead, latency, barrier } = machine;
  const tiles = (height: number, width: number): number =>
    batch * Math.ceil(m / height) * Math.ceil(n / width);
  // Turns that a core takes to run its share of so many workgroups once.
  const turns = (workgroups: number, invocations: number): number =>
    Math.ceil((Math.ceil(workgroups / cores) * Math.ceil(invocations / lanes)) / machine.groups);
  // A convolution's input is looked for and compared with its borders.
  const right = (rhs === 'n' ? machine.load : machine.scattered) * (problem.window === undefined ? 1 : 2);
  const sums = rows * columns * multiplyAdd;
  const isFar = rhs === 'n' && k * n > nearElements;
  const direct = rows * machine.scattered + columns * right + sums + overhead + (isFar ? machine.far : 0);
  switch (schedule.kind) {
    case 'registers':
      return (
        k * Math.max(latency, turns(tiles(rows, columns) / machine.workgroup, machine.workgroup) * direct) +
        machine.statement * statements(rows, columns, toCompile(epilogue))
      );
    case 'staged': {
      const { tileM, tileN, tileK } = schedule;
      const invocations = (tileM / rows) * (tileN / columns);
      const filled = (machine.load * (tileM + tileN) * rows * columns) / (tileM * tileN);
      const round = (rows + columns) * shared + sums + filled;
      return (
        Math.ceil(k / tileK) *
        (tileK * Math.max(latency / 4, turns(tiles(tileM, tileN), invocations) * round) + 2 * barrier)
      );
    }
    case 'tensor': {
      const { tileM, tileN, tileK, stages } = schedule;
      // A core's matrix units do 512 multiply-adds of 16 bits a clock; what they read comes 16
      // bytes at a time.
      const wide = problem.matrix === 'tf32' ? 2 : 1;
      const fragments = (wide * tileM * tileN) / 512;
      const staged = ((tileM + tileN) * machine.load) / (lanes * machine.groups);
      const read = (wide * ((tileM * tileN) / rows + (tileM * tileN) / columns)) / 64;
      const groups = Math.ceil(tiles(tileM, tileN) / cores);
      const round = tileK * (fragments + staged + read) + barrier / stages;
      return Math.ceil(k / tileK) * Math.max(latency, groups * round) + 2 * stages * latency;
    }
    case 'warpgroup': {
      const { tileM, tileN, tileK, stages } = schedule;
      // 2048 multiply-adds a clock where a side is long enough that reading it is hidden; copies
      // pass by no invocation.
      const multiplied = (tileM * tileN) / (tileN < 128 ? 1024 : 2048);
      const staged = (tileM + tileN) / (2 * lanes);
      const round = tileK * Math.max(multiplied, staged) + 4 * latency;
      const groups = Math.ceil(tiles(tileM, tileN) / cores);
      const written = (tileM * tileN) / (2 * lanes);
      return groups * (Math.ceil(k / tileK) * round + written) + 2 * stages * latency;
    }
    case 'direct':
    case 'packed':
    case 'image':
    case 'stream':
      return Infinity;
    case 'slices': {
      const { threads, slices, along } = schedule;
      const groups = tiles(rows, columns * threads);
      const steps = Math.ceil(k / (along === 'k' ? 4 * slices : slices));
      // Along k a round is four steps of k, read as vectors.
      const round = along === 'k' ? 4 * ((rows + columns) * machine.load + sums) + overhead : direct;
      return (
        steps * Math.max(latency, turns(groups, threads * slices) * round) +
        barrier +
        rows * columns * slices * 2
      );
    }
    case 'window': {
      const { lines, taps } = schedule;
      const results = rows * columns * lines;
      const inputs = windowInputs(schedule, problem.window!);
      const busy = (results * taps * multiplyAdd) / problem.window!.spread;
      const round = 2 * machine.load * inputs + machine.scattered * rows * taps + busy + 2 * overhead;
      const groups =
        (batch * Math.ceil(m / rows) * problem.window!.lines * Math.ceil(problem.window!.width / columns)) /
        lines;
      return (
        (k / taps) * Math.max(latency, turns(groups / machine.workgroup, machine.workgroup) * round) +
        machine.statement * windowStatements(rows, columns * lines, taps, epilogue)
      );
    }
    default:
      return schedule satisfies never;
  }
}
