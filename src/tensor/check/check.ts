// check: whether a device computes what the interpreter does, kernel by kernel, in everything that a piece of work
// asks of it. Where a kernel is wrong, the result says which, on which adapter and driver, and how programs can go
// without it.

import type { CheckedProgram, DeviceCheck } from '../../check/report.ts';
import type { CheckedSubject } from '../../check/search.ts';
import { load } from '../../compile/chunks.ts';
import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { Device } from '../../runtime/device.ts';
import { device as deviceOfSession, synchronize } from '../device.ts';
import { copied } from '../evaluate/copy.ts';
import type { Executable } from '../evaluate/executable.ts';
import { runChecks, type Run } from '../evaluate/execute.ts';
import { expectFunction } from '../expect.ts';
import { matmulPrecision } from '../precision.ts';
import { currentSession, withSession, type Session } from '../session.ts';
import type { Resident } from '../storage/resident.ts';
import { adjusted } from '../workarounds/adjusting.ts';

export type { CheckedKernel, DeviceCheck } from '../../check/report.ts';

export interface CheckKernelsOptions {
  /** Called with the number of kernels of a program that ran, and of all; nobody by default. */
  readonly onProgress?: (done: number, total: number) => void;
}

const takesOptions = arg.takes<(options?: CheckKernelsOptions) => void>([
  'the options',
  arg.options<CheckKernelsOptions>({ onProgress: arg.callable() }),
]);

/**
 * Calls `fn`, and compares every kernel that it has the device run with the interpreter, on the values that the kernel
 * gets. Each program is checked at its first run, and of kernels of equal source and size the first one. It takes as long
 * as the interpreter does. Rejects with what `fn` throws, with E_STATE where another check is under way, and with
 * E_VALUE where the device is the interpreter.
 */
export async function check<T>(
  fn: () => T | Promise<T>,
  options: CheckKernelsOptions = {},
): Promise<DeviceCheck<T>> {
  expectFunction('check', fn);
  takesOptions('check', options);
  const session = currentSession();
  const within = <R>(call: () => R): R => withSession(session, call);
  const checks = runChecks.of(session);
  if (checks.current !== undefined) throw new TensorError('E_STATE', 'check', 'another check is under way');
  // What was asked for before is not of this check.
  await synchronize();
  const [{ checkRun }, made] = await Promise.all([
    import('../../check/search.ts'),
    import('../../check/report.ts'),
  ]);
  const known = new Map<Executable, Set<Device>>();
  const programs: CheckedProgram[] = [];
  const { facts } = await within(deviceOfSession);
  if (facts.target === 'interpreter') {
    const problem = 'the device is the interpreter, which others are compared with';
    throw new TensorError('E_VALUE', 'check', problem, "setDevice('wasm')");
  }
  checks.current = async (device, run) => {
    const devices = known.get(run.executable) ?? new Set<Device>();
    if (devices.has(device)) return;
    known.set(run.executable, devices.add(device));
    await Promise.all([load(['interpreter']), device.whole?.()]);
    const found = await checkRun(subjectOf(device, run, session, options));
    programs.push({ title: run.executable.title, ...found });
  };
  try {
    const value = await within(fn);
    await within(synchronize);
    return new made.DeviceCheck(value, facts, programs);
  } finally {
    checks.current = undefined;
  }
}

/** A run of a session as what is checked of it. */
function subjectOf(
  device: Device,
  run: Run,
  session: Session,
  { onProgress }: CheckKernelsOptions,
): CheckedSubject {
  return withSession(session, () => {
    const { graph, options, casts } = run.executable.questionOn(device);
    const withInputs: CheckedSubject['withInputs'] = async (program, work) => {
      const held: Resident[] = [];
      try {
        for (const [i, input] of run.inputs.entries()) {
          const dtype = casts[i];
          const memory = (dtype === undefined ? input : input.cast(dtype)).on(device)!;
          const isOverwritten = program.donated.some(({ input: donated }) => donated === i);
          // Values of fewer elements than the program has room for lie at the beginning of its buffers.
          const { bytes } = program.buffers[program.inputs[i]!]!;
          const isShort = memory.buffer.bytes < bytes;
          held.push(
            isShort
              ? copied(memory, memory.buffer.bytes, bytes, true)
              : isOverwritten
                ? copied(memory)
                : memory.share(),
          );
        }
        return await work(held.map(({ buffer }) => buffer));
      } finally {
        for (const memory of held) memory.release();
      }
    };
    return {
      device,
      graph,
      options,
      facts: adjusted(device.facts).facts,
      precision: matmulPrecision(),
      scalars: run.scalars,
      withInputs,
      ...(onProgress !== undefined && { onProgress }),
    };
  });
}
