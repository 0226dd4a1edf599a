// Node only: opens native devices. Loaded by a dynamic import, so that browsers load neither this file
// nor what it imports.

import * as os from 'node:os';
import { DeviceError } from '../../errors.ts';
import { resolveFromProject, type Resolve } from '../../packages/node.ts';
import { missingKoffi } from '../koffi.ts';
import { WasmDevice } from '../wasm/device.ts';
import type { Grain } from '../wasm/cut.ts';
import { threadLimit } from '../wasm/names.ts';
import { threadsFromEnvironment } from '../wasm/threading.ts';
import { checkCommands, compiledPrograms } from './commands.ts';
import type { CompilerOptions } from './compiler.ts';
import { CDevice } from './device.ts';

export interface NativeOptions extends CompilerOptions {
  /** As many as `SINTER_THREADS` says or as there are cores, by default. */
  readonly threads?: number;
  /** How finely work is cut for them; by default as the device's threads ask for. */
  readonly grain?: Grain;
  /** Programs are compiled for the machine before they run first, and nothing runs on WebAssembly; false by default. */
  readonly wait?: boolean;
  /** Where compiled programs are kept; false for nowhere. Default: `native` in the cache folder. */
  readonly folder?: string | false;
  /** Finds the package koffi; Node's resolution by default. */
  readonly resolve?: Resolve;
}

/** A native device of this name, whole; rejects with the reason when there is none. */
export async function openNativeDevice(name: string, options: NativeOptions = {}): Promise<CDevice> {
  const device = await beginNativeDevice(name, options);
  try {
    await device.whole();
    return device;
  } catch (error) {
    await device.destroy();
    throw error;
  }
}

/**
 * The same before the compiler has been found, which `whole` waits for: programs run on WebAssembly. Rejects with the
 * reason where what is missing shows at once.
 */
export async function beginNativeDevice(name: string, options: NativeOptions = {}): Promise<CDevice> {
  if (process.platform === 'win32') {
    const problem = 'programs are compiled for Linux and macOS, not for Windows yet';
    throw new DeviceError('E_DEVICE', name, problem, { hint: "setDevice('wasm')" });
  }
  const { wait = false, grain, env = process.env, resolve = resolveFromProject } = options;
  try {
    resolve('koffi');
  } catch (cause) {
    throw missingKoffi(name, compiledPrograms, cause);
  }
  checkCommands(name, env);
  const cores = os.availableParallelism();
  const threads = options.threads ?? threadsFromEnvironment(name) ?? Math.min(cores, threadLimit);
  const wasm = await WasmDevice.open(name, {
    threads: options.threads,
    ...(grain !== undefined && { grain }),
  });
  return new CDevice({
    wasm,
    threads,
    wait,
    open: async (signal) => {
      const { openTools } = await import('./tools.ts');
      const { patience, folder } = options;
      return openTools({ device: name, threads, cores, env, patience, folder, resolve }, signal);
    },
  });
}
