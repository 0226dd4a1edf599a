// Timing a workload in this process: inputs on the device first, then the first call, a check of
// its result, calls to warm up, and calls that are timed one by one until a budget is spent.

import { synchronize } from '../../index.ts';
import { device } from '../../tensor/device.ts';
import { computeAll, finished, upload } from '../../tensor/values.ts';
import { treeLeaves } from '../../tensor/tree.ts';
import type { TimedWorkload } from '../../workloads/timed/workload.ts';
import { errorOf } from '../../workloads/timed/references.ts';

/** A workload with its inputs on the device. */
export interface Prepared {
  /**
   * Computes it once; resolves when the device is done, and rejects when the run failed: a failing
   * run is fast.
   */
  readonly run: () => Promise<void>;
  /** The last result, flat. */
  readonly output: () => Promise<ArrayLike<number>>;
}

/** Opens the device and brings the inputs there, so that neither is timed. */
export async function prepare(workload: TimedWorkload): Promise<Prepared> {
  await device();
  const args = workload.args();
  const inputs = treeLeaves(args);
  computeAll(inputs);
  await upload(inputs);
  await synchronize();
  const step = workload.start(args);
  let last = undefined as ReturnType<typeof step> | undefined;
  return {
    run: async () => {
      const result = step();
      // Queues what is only recorded, which is nothing where the step is compiled.
      await finished(result);
      last?.dispose();
      last = result;
    },
    output: async () => (await last!.data()) as Float32Array,
  };
}

/** How long to warm up and to measure, at least. */
export interface MeasureEffort {
  readonly warmMs: number;
  readonly budgetMs: number;
  readonly leastRuns: number;
}

export const defaultEffort: MeasureEffort = { warmMs: 300, budgetMs: 700, leastRuns: 5 };

/** Of a list of times. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
}

/** Of one workload; times in ms. */
export interface Measured {
  /** From the first call to the device being done, compiling included. */
  readonly first: number;
  readonly ms: Spread;
  readonly runs: number;
  /** Of the result against the float64 reference, relative to its largest value. */
  readonly error: number;
  readonly ok: boolean;
}

/**
 * Measures a workload on the chosen device. Its `error` is NaN where the result is not to be
 * checked.
 */
export async function measure(
  workload: TimedWorkload,
  effort: MeasureEffort,
  isChecked = true,
): Promise<Measured> {
  const prepared = await prepare(workload);
  const first = await timed(prepared.run);
  const error = isChecked ? await check(workload, prepared) : Number.NaN;
  const began = performance.now();
  while (performance.now() - began < effort.warmMs) await prepared.run();
  // Programs that have begun on WebAssembly are timed as what they become.
  await (await device()).settled?.();
  const times: number[] = [];
  let spent = 0;
  while (times.length < effort.leastRuns || spent < effort.budgetMs) {
    const ms = await timed(prepared.run);
    times.push(ms);
    spent += ms;
  }
  const ok = !isChecked || error <= workload.tolerance;
  return { first, ms: spread(times), runs: times.length, error, ok };
}

async function timed(run: () => Promise<void>): Promise<number> {
  const before = performance.now();
  await run();
  return performance.now() - before;
}

/**
 * The error of the first result; of a train step, of the losses of as many steps as the reference
 * has.
 */
async function check(workload: TimedWorkload, { run, output }: Prepared): Promise<number> {
  const reference = workload.reference();
  const first = await output();
  if (first.length > 1) return errorOf(first, reference);
  const losses = [first[0]!];
  while (losses.length < reference.length) {
    await run();
    losses.push((await output())[0]!);
  }
  return errorOf(losses, reference);
}

/** The median and what lies around it. */
export function spread(times: readonly number[]): Spread {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number): number => {
    const place = part * (sorted.length - 1);
    const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
    return low + (high - low) * (place - Math.floor(place));
  };
  return { median: at(0.5), min: sorted[0]!, lowerQuartile: at(0.25), upperQuartile: at(0.75) };
}
