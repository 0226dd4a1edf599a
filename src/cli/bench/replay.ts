// Host time of a replayed run: how long a call of a compiled function takes to return. The call
// finds the program, brings inputs and outputs together, encodes every dispatch and submits, all
// before it returns. The device's work is not in it: the clock stops when the call returns. As in a
// training loop, several calls are queued before the device is waited for: the first one after a
// wait finds the host's caches cold, and takes twice as long where it is one kernel.

import { SinterError } from '../../errors.ts';
import { explainFor } from '../../explain/explain.ts';
import { synchronize, type Tensor } from '../../index.ts';
import { wholeDevice } from '../../tensor/device.ts';
import { targetOf } from '../../schedule/target.ts';
import { showBytes, table } from '../../table.ts';
import { stats } from '../../tensor/report/stats.ts';
import { smallKernels } from '../../workloads/timed/small-kernels.ts';
import { spread, type Spread } from './measure.ts';

export interface Replay {
  readonly kernels: number;
  /** From calling the compiled function to its return. */
  readonly us: Spread;
  /** What a call may take on a machine that does nothing else: 20 µs and 2 µs a kernel. */
  readonly targetUs: number;
  /** Bytes that a call leaves to the collector. */
  readonly garbage: number;
}

export const replaySizes = [1, 10, 100, 300] as const;

/** Calls that are queued before the device is waited for. */
const queued = 16;

/**
 * Measures a program of so many kernels over `calls` calls, after as many that warm up. Throws
 * where it is of another number of kernels, or the last result is not what it must be: a call that
 * fails is fast.
 */
export async function measureReplay(kernels: number, calls: number): Promise<Replay> {
  const { facts } = await wholeDevice();
  const { fn, weights, step, input, values } = smallKernels(kernels);
  const found = explainFor(targetOf(facts), fn, input, ...weights).totals.kernels;
  if (found !== kernels) {
    throw new SinterError('E_STATE', `bench: a program meant to be ${kernels} kernels is ${found}`);
  }
  let x: Tensor = step(input);
  await synchronize();
  const programs = stats().programs;
  const repeat = async (each: (call: () => void) => void): Promise<void> => {
    for (let i = 0; i < calls; i++) {
      const before = x;
      each(() => (x = step(before)));
      before.dispose();
      if (i % queued === queued - 1) await synchronize();
    }
    await synchronize();
  };
  await repeat((call) => call());
  const times: number[] = [];
  await repeat((call) => {
    const before = performance.now();
    call();
    times.push(1000 * (performance.now() - before));
  });
  const grown: number[] = [];
  await repeat((call) => {
    const before = process.memoryUsage().heapUsed;
    call();
    grown.push(process.memoryUsage().heapUsed - before);
  });
  const last = (await x.data()) as Float32Array;
  if (!last.every((value, i) => value === values[i])) {
    throw new SinterError('E_STATE', `bench: a replayed run of ${kernels} kernels gives wrong results`);
  }
  if (stats().programs !== programs) {
    throw new SinterError('E_STATE', `bench: a replayed run of ${kernels} kernels was compiled again`);
  }
  return {
    kernels,
    us: spread(times),
    targetUs: 20 + 2 * kernels,
    // A collection within a call makes the heap shrink, which the median passes over.
    garbage: spread(grown).median,
  };
}

export function replayTable(lines: readonly Replay[]): string {
  const head = ['kernels', 'host µs', 'min', 'quartiles', 'target', 'µs a kernel', 'garbage'];
  const rows = lines.map(({ kernels, us, targetUs, garbage }) => [
    String(kernels),
    us.median.toFixed(1),
    us.min.toFixed(1),
    `${us.lowerQuartile.toFixed(0)}–${us.upperQuartile.toFixed(0)}`,
    String(targetUs),
    (us.median / kernels).toFixed(2),
    showBytes(Math.round(garbage)),
  ]);
  return table(head, rows, [0, 1, 2, 3, 4, 5, 6]);
}
