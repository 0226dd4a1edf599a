// Node only: opens native devices. Loaded by a dynamic import, so that browsers load neither this file
// nor what it imports.

import * as os from 'node:os';
import { DeviceError } from '../../errors.ts';
import type { Resolve } from '../../packages/node.ts';
import { loadKoffi } from '../koffi.ts';
import { WasmDevice } from '../wasm/device.ts';
import type { Grain } from '../wasm/cut.ts';
import { threadLimit } from '../wasm/names.ts';
import { threadsFromEnvironment } from '../wasm/threading.ts';
import { findCompiler, type CompilerOptions } from './compiler.ts';
import { CDevice } from './device.ts';
import { Objects, usualFolder } from './objects.ts';
import { supportText } from './support.ts';

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

/** A native device of this name; rejects with the reason when there is none. */
export async function openNativeDevice(name: string, options: NativeOptions = {}): Promise<CDevice> {
  if (process.platform === 'win32') {
    throw new DeviceError(
      'E_DEVICE',
      name,
      'programs are compiled for Linux and macOS, not for Windows yet',
      {
        hint: "setDevice('wasm')",
      },
    );
  }
  const { wait = false, grain, env } = options;
  const koffi = await loadKoffi(name, 'compiled programs', options.resolve);
  const compiler = await findCompiler(name, options);
  const folder = options.folder === undefined ? usualFolder(env) : options.folder || undefined;
  const objects = new Objects(name, compiler, folder);
  try {
    const cores = os.availableParallelism();
    const threads = options.threads ?? threadsFromEnvironment() ?? Math.min(cores, threadLimit);
    const support = await held(objects.make(supportText));
    const wasm = await WasmDevice.open(name, {
      threads: options.threads,
      ...(grain !== undefined && { grain }),
    });
    try {
      return new CDevice({ wasm, koffi, compiler, objects, support, threads, cores, wait });
    } catch (error) {
      await wasm.destroy();
      throw error;
    }
  } catch (error) {
    objects.close();
    throw error;
  }
}

/** Keeps the process until the promise is settled: compilers that run beside it do not. */
async function held<Value>(promise: Promise<Value>): Promise<Value> {
  const timer = setInterval(() => undefined, 2 ** 30);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}
