// check: whether a device computes what the interpreter does, kernel by kernel, in everything that a piece of work
// asks of it. Where a kernel is wrong, the result says which, on which adapter and driver, and how programs can go
// without it.

import { TensorError } from '../../errors.ts';
import type { Device } from '../../runtime/device.ts';
import { device as deviceOfSession, synchronize } from '../device.ts';
import { expectFunction } from '../expect.ts';
import type { Executable } from '../evaluate/executable.ts';
import { currentSession, withSession } from '../session.ts';
import { runCheck, setRunCheck } from './checking.ts';
import type { Check, CheckedProgram } from './checked.ts';

export type { Check, CheckedKernel } from './checked.ts';

export interface CheckKernelsOptions {
  /** Called with the number of kernels of a program that were compared, and of all; nobody by default. */
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * Calls `fn`, and compares every kernel that it has the device run with the interpreter, on the values that the kernel
 * gets. Each program is checked at its first run, and of kernels of equal source and size the first one. It takes as long
 * as the interpreter does. Rejects with what `fn` throws, and with E_STATE where another check is under way.
 */
export async function check<T>(
  fn: () => T | Promise<T>,
  options: CheckKernelsOptions = {},
): Promise<Check<T>> {
  expectFunction('check', fn);
  const session = currentSession();
  const within = <R>(call: () => R): R => withSession(session, call);
  if (runCheck() !== undefined) throw new TensorError('E_STATE', 'check', 'another check is under way');
  // What was asked for before is not of this check.
  await synchronize();
  const [{ checkRun }, made] = await Promise.all([import('./search.ts'), import('./checked.ts')]);
  const known = new Map<Executable, Set<Device>>();
  const programs: CheckedProgram[] = [];
  const { facts } = await within(deviceOfSession);
  if (facts.target === 'interpreter') {
    const problem = 'the device is the interpreter, which others are compared with';
    throw new TensorError('E_VALUE', 'check', problem, "setDevice('wasm')");
  }
  within(() =>
    setRunCheck(async (device, run) => {
      const devices = known.get(run.executable) ?? new Set<Device>();
      if (devices.has(device)) return;
      known.set(run.executable, devices.add(device));
      const found = await checkRun(device, run, session, options.onProgress);
      programs.push({ title: run.executable.title, ...found });
    }),
  );
  try {
    const value = await within(fn);
    await within(synchronize);
    return new made.Check(value, facts, programs);
  } finally {
    within(() => setRunCheck(undefined));
  }
}
