// What each kernel takes on the device: while a profile is taken, programs run step by step, on the
// memory they would run on anyway, and the device's clock times every step. Results are those of
// ordinary runs.

import { SinterError } from '../../errors.ts';
import type { Device, DeviceAllocation, LoadedProgram } from '../../runtime/device.ts';
import type { Program, ProgramStep } from '../../runtime/program.ts';
import { currentSession, SessionPart, withSession } from '../session.ts';

/** A step that ran. */
export interface Span {
  /** The kernel's name, or `copy` or `clear`. */
  readonly name: string;
  readonly kind: string;
  /** Which of the programs that ran, in order. */
  readonly run: number;
  /** Whose code it was, where the device has a choice. */
  readonly engine?: LoadedProgram['engine'] | undefined;
  /** By the device's clock; undefined where it has none. */
  readonly nanoseconds: number | undefined;
  readonly flops: number;
  /** Bytes that the kernel must move at least. */
  readonly bytes: number;
}

/** A step, and when the host asked for it, by `performance.now()`. */
export interface TimedSpan extends Span {
  readonly start: number;
}

interface Profiler {
  /** Whether programs of host functions are steps, too: by the host's clock. */
  readonly hosts: boolean;
  readonly spans: Promise<TimedSpan>[];
  device: string | undefined;
  /** Programs of one step each, by their steps. */
  readonly steps: Map<Program, Map<ProgramStep, LoadedProgram>>;
  runs: number;
}

/** The profile that is being taken in a session, if one is. */
const profiling = new SessionPart((): { profiler: Profiler | undefined } => ({ profiler: undefined }));

/** Runs a loaded program: at once, or step by step while a profile is taken. */
export function runOrProfile(
  device: Device,
  loaded: LoadedProgram,
  inputs: readonly DeviceAllocation[],
  outputs: readonly DeviceAllocation[],
  scalars: readonly number[],
): void {
  const { program } = loaded;
  const { profiler } = profiling.current;
  if (profiler === undefined) return loaded.run(inputs, outputs, scalars);
  profiler.device = device.facts.name;
  const { spans, steps, hosts } = profiler;
  if (program.steps.some(({ kind }) => kind === 'host')) {
    const start = performance.now();
    loaded.run(inputs, outputs, scalars);
    const nanoseconds = 1e6 * (performance.now() - start);
    const whole = {
      name: 'interpret',
      kind: 'host',
      run: profiler.runs++,
      nanoseconds,
      flops: 0,
      bytes: 0,
      start,
    };
    if (hosts) spans.push(Promise.resolve(whole));
    return undefined;
  }
  // What lies between kernels stays where it is: programs of equal arenas share them.
  const parts = steps.get(program) ?? new Map<ProgramStep, LoadedProgram>();
  steps.set(program, parts);
  const run = profiler.runs++;
  for (const step of unrolled(program.steps)) {
    const part = parts.get(step) ?? device.load(onlyStep(program, step));
    parts.set(step, part);
    const start = performance.now();
    const work = (): void => part.run(inputs, outputs, scalars);
    let time: Promise<number | undefined> = Promise.resolve(undefined);
    if (device.measure === undefined) work();
    else time = device.measure(work);
    const kernel = step.kind === 'dispatch' ? program.kernels[step.kernel] : undefined;
    const { name = step.kind, kind = 'memory', flops = 0, bytes = 0 } = kernel ?? {};
    const { engine } = part;
    const span = { name, kind, run, flops, bytes, start, ...(engine !== undefined && { engine }) };
    spans.push(time.then((nanoseconds) => ({ ...span, nanoseconds })));
  }
  return undefined;
}

/**
 * What a call gives, and the steps that it takes, with the device that took them. Calls may not
 * overlap with others.
 */
export async function spansOf<T>(
  call: () => Promise<T>,
): Promise<{ readonly value: T; readonly spans: readonly TimedSpan[]; readonly device: string | undefined }> {
  const { current } = profiling;
  if (current.profiler !== undefined) throw new SinterError('E_STATE', 'profile: one is being taken already');
  const profiler: Profiler = { hosts: true, spans: [], steps: new Map(), runs: 0, device: undefined };
  current.profiler = profiler;
  try {
    const value = await call();
    return { value, spans: await Promise.all(profiler.spans), device: profiler.device };
  } finally {
    current.profiler = undefined;
    destroyParts(profiler.steps);
  }
}

function destroyParts(steps: Profiler['steps']): void {
  for (const parts of steps.values()) for (const part of parts.values()) part.destroy();
}

/** Steps one after the other, each as often as it runs. Only the device knows how often those of a `while` do. */
function* unrolled(steps: readonly ProgramStep[]): Iterable<ProgramStep> {
  for (const step of steps) {
    if (step.kind === 'repeat') for (let time = 0; time < step.times; time++) yield* unrolled(step.steps);
    else yield step;
  }
}

function onlyStep(program: Program, step: ProgramStep): Program {
  if (step.kind === 'while') return { ...program, steps: [step] };
  if (step.kind !== 'dispatch') return { ...program, kernels: [], steps: [step] };
  return { ...program, kernels: [program.kernels[step.kernel]!], steps: [{ ...step, kernel: 0 }] };
}

/**
 * The steps that each of some calls takes; the first call makes them ready and is not counted.
 * Calls may not overlap with others.
 */
export async function profileCalls(call: () => Promise<unknown>, count: number): Promise<readonly Span[][]> {
  const session = currentSession();
  const current = profiling.of(session);
  const steps: Profiler['steps'] = new Map();
  const calls: Span[][] = [];
  try {
    for (let i = 0; i <= count; i++) {
      const profiler: Profiler = { hosts: false, spans: [], steps, runs: 0, device: undefined };
      current.profiler = profiler;
      await withSession(session, call);
      current.profiler = undefined;
      const spans = await Promise.all(profiler.spans);
      if (i > 0) calls.push(spans);
    }
  } finally {
    current.profiler = undefined;
    destroyParts(steps);
  }
  return calls;
}
