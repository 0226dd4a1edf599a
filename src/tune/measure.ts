// How long candidates of one kernel take on a device: each alone, on memory of its own, in turns,
// so that a machine that is busy for a while is so for all of them. By the device's clock where it
// has one, else by the time until the work is done.

import { SinterError } from '../errors.ts';
import type { Device, DeviceAllocation, LoadedProgram } from '../runtime/device.ts';
import type { Program } from '../runtime/program.ts';

/**
 * Milliseconds that the runs of one candidate may take together, and what one measurement should
 * take at least.
 */
const budget = 150;
const shortest = 1;
/** The most turns; a candidate that is slower than the best by this factor gets no further turn. */
const turns = 5;
const slowdownLimit = 1.5;
/** Dispatches of one measurement at most. */
const mostRepeats = 64;

interface Runner {
  readonly candidate: number;
  readonly program: Program;
  readonly loaded: LoadedProgram;
  /** Milliseconds of one dispatch: when it was opened, the best since, and all together. */
  readonly once: number;
  best: number;
  spent: number;
  readonly repeats: number;
}

/**
 * Milliseconds of each program of one dispatch; Infinity for one that the device refuses. The
 * programs bind buffers of the same sizes.
 */
export async function measurePrograms(device: Device, programs: readonly Program[]): Promise<number[]> {
  const times = programs.map(() => Infinity);
  const [first] = programs;
  if (first === undefined) return times;
  const buffers: DeviceAllocation[] = [];
  let runners: Runner[] = [];
  try {
    for (const { bytes } of first.buffers) buffers.push(device.allocate(bytes));
    let top = Infinity;
    for (const [candidate, program] of programs.entries()) {
      const runner = await open(device, buffers, candidate, program, slowdownLimit * top);
      if (runner === undefined) continue;
      runners.push(runner);
      top = Math.min(top, runner.once);
    }
    for (let turn = 0; turn < turns && runners.length > 0; turn++) {
      for (const runner of runners) await runTurn(device, buffers, runner);
      for (const { candidate, best } of runners) times[candidate] = best;
      const fastest = Math.min(...times);
      const rest = runners.filter(({ best, spent }) => best < slowdownLimit * fastest && spent < budget);
      for (const runner of runners) if (!rest.includes(runner)) runner.loaded.destroy();
      runners = rest;
    }
  } finally {
    for (const { loaded } of runners) loaded.destroy();
    for (const buffer of buffers) buffer.destroy();
  }
  return times;
}

/**
 * Compiles and runs a candidate once; undefined when the device refuses it or it takes too long.
 */
async function open(
  device: Device,
  buffers: readonly DeviceAllocation[],
  candidate: number,
  program: Program,
  tooLong: number,
): Promise<Runner | undefined> {
  let loaded: LoadedProgram | undefined;
  try {
    loaded = device.load(program);
    const attempt = { program, loaded };
    // The first run compiles; the second is how long one takes.
    await timed(device, buffers, attempt);
    const once = await timed(device, buffers, attempt);
    const repeats = Math.min(mostRepeats, Math.ceil(shortest / Math.max(once, shortest / mostRepeats)));
    if (repeats === 1 && once > tooLong) {
      loaded.destroy();
      return undefined;
    }
    if (repeats > 1) {
      loaded.destroy();
      const [step] = program.steps;
      loaded = device.load({ ...program, steps: Array.from({ length: repeats }, () => step!) });
    }
    const best = repeats === 1 ? once : Infinity;
    return { candidate, program, loaded, once, best, spent: once, repeats };
  } catch (error) {
    loaded?.destroy();
    if (device.lost || !(error instanceof SinterError)) throw error;
    return undefined;
  }
}

async function runTurn(device: Device, buffers: readonly DeviceAllocation[], runner: Runner): Promise<void> {
  const time = await timed(device, buffers, runner);
  runner.spent += time;
  runner.best = Math.min(runner.best, time / runner.repeats);
}

/** Milliseconds of one run; rejects with what went wrong in it. */
async function timed(
  device: Device,
  buffers: readonly DeviceAllocation[],
  { program, loaded }: Pick<Runner, 'program' | 'loaded'>,
): Promise<number> {
  const run = (): void =>
    loaded.run(
      program.inputs.map((i) => buffers[i]!),
      program.outputs.map((i) => buffers[i]!),
      program.scalars.map(() => 0),
    );
  const start = performance.now();
  let clock: Promise<number | undefined> | undefined;
  if (device.measure === undefined) run();
  else clock = device.measure(run);
  await device.finish();
  const wall = performance.now() - start;
  const nanoseconds = await clock;
  // A clock that is too coarse shows nothing.
  return nanoseconds === undefined || nanoseconds <= 0 ? wall : nanoseconds / 1e6;
}
