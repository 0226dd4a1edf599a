// What each kernel takes on the device: while a profile is taken, programs run step by step, on the memory they would run on anyway,
// and the device's clock times every step. Results are those of ordinary runs.

import type { Device, DeviceBuffer, LoadedProgram } from '../runtime/device.ts';
import type { Program, ProgramStep } from '../runtime/program.ts';

/** A step that ran. */
export interface Span {
  /** The kernel's name, or `copy` or `clear`. */
  readonly name: string;
  readonly kind: string;
  /** Which of the programs that ran, in order. */
  readonly run: number;
  /** By the device's clock; undefined where it has none. */
  readonly nanoseconds: number | undefined;
  readonly flops: number;
  /** Bytes that the kernel must move at least. */
  readonly bytes: number;
}

interface Profiler {
  readonly spans: Promise<Span>[];
  readonly steps: Map<Program, readonly LoadedProgram[]>;
  runs: number;
}

let current: Profiler | undefined;

/** Runs a loaded program: at once, or step by step while a profile is taken. */
export function runOrProfile(
  device: Device,
  loaded: LoadedProgram,
  inputs: readonly DeviceBuffer[],
  outputs: readonly DeviceBuffer[],
  scalars: readonly number[],
): void {
  const { program } = loaded;
  if (current === undefined || program.steps.some(({ kind }) => kind === 'host')) {
    loaded.run(inputs, outputs, scalars);
    return;
  }
  const { spans, steps } = current;
  // What lies between kernels stays where it is: programs of equal arenas share them.
  const parts = steps.get(program) ?? program.steps.map((step) => device.load(onlyStep(program, step)));
  steps.set(program, parts);
  const run = current.runs++;
  for (const [i, part] of parts.entries()) {
    const step = program.steps[i]!;
    const work = (): void => part.run(inputs, outputs, scalars);
    let time: Promise<number | undefined> = Promise.resolve(undefined);
    if (device.measure === undefined) work();
    else time = device.measure(work);
    const kernel = step.kind === 'dispatch' ? program.kernels[step.kernel] : undefined;
    const { name = step.kind, kind = 'memory', flops = 0, bytes = 0 } = kernel ?? {};
    spans.push(time.then((nanoseconds) => ({ name, kind, run, nanoseconds, flops, bytes })));
  }
}

function onlyStep(program: Program, step: ProgramStep): Program {
  if (step.kind !== 'dispatch') return { ...program, kernels: [], steps: [step] };
  return { ...program, kernels: [program.kernels[step.kernel]!], steps: [{ ...step, kernel: 0 }] };
}

/** The steps that each of some calls takes; the first call makes them ready and is not counted. Calls may not overlap with others. */
export async function profileCalls(call: () => Promise<unknown>, count: number): Promise<readonly Span[][]> {
  const steps: Profiler['steps'] = new Map();
  const calls: Span[][] = [];
  try {
    for (let i = 0; i <= count; i++) {
      const profiler: Profiler = { spans: [], steps, runs: 0 };
      current = profiler;
      await call();
      current = undefined;
      const spans = await Promise.all(profiler.spans);
      if (i > 0) calls.push(spans);
    }
  } finally {
    current = undefined;
    for (const parts of steps.values()) for (const part of parts) part.destroy();
  }
  return calls;
}
