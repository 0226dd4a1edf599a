// Node only: what compiled programs need besides memory: a compiler, the package that opens objects, and the
// support object with its pool of threads. Finding them takes longer than opening a device.

import { DeviceError } from '../../errors.ts';
import type { Resolve } from '../../packages/node.ts';
import type { LoadedProgram } from '../device.ts';
import { loadKoffi } from '../koffi.ts';
import type { Program } from '../program.ts';
import { SharedEntries } from '../shared.ts';
import type { Heap } from '../wasm/heap.ts';
import { findCompiler, type CCompiler, type CompilerOptions } from './compiler.ts';
import { compiledPrograms } from './commands.ts';
import { openProgram, textOf, type CEngine } from './executor.ts';
import { askForLargePages, openSupport, type Kernels } from './library.ts';
import { Objects, usualFolder } from './objects.ts';
import { supportText } from './support.ts';

/** Nanoseconds that a thread stays awake for the next job: waking one takes 5 to 50 µs. */
const linger = 100_000;

export interface ToolOptions extends CompilerOptions {
  /** The name of the device. */
  readonly device: string;
  readonly threads: number;
  /** Cores that the process may use. */
  readonly cores: number;
  /** Where compiled programs are kept; false for nowhere. Default: `native` in the cache folder. */
  readonly folder?: string | false | undefined;
  /** Finds the package koffi; Node's resolution by default. */
  readonly resolve?: Resolve | undefined;
}

export interface NativeTools {
  readonly compiler: CCompiler;
  /** Compiles a program beside the process, and makes it ready. Rejects with E_DEVICE. */
  load(engine: CEngine, program: Program): Promise<LoadedProgram>;
  /** The same before it returns. */
  loadNow(engine: CEngine, program: Program): LoadedProgram;
  /** Asks for large pages under the memory of a device. */
  enlargePages(heap: Heap): void;
  /** Ends threads and compilers, and lets go of objects. */
  close(): void;
}

/** Finds and opens all of it, without keeping the process; rejects with E_DEVICE and the reason. */
export async function openTools(options: ToolOptions, signal: AbortSignal): Promise<NativeTools> {
  const { device, threads, cores } = options;
  const koffi = await loadKoffi(device, compiledPrograms, options.resolve);
  const compiler = await findCompiler(device, options, signal);
  const folder = options.folder === undefined ? usualFolder(options.env) : options.folder || undefined;
  const objects = new Objects(device, compiler, folder);
  const stop = (): void => objects.close();
  signal.addEventListener('abort', stop);
  try {
    const support = openSupport(koffi, objects, await objects.make(supportText));
    const pool = support.open(threads, threads <= cores ? linger : 0);
    if (pool === 0) {
      throw new DeviceError('E_DEVICE', device, `${threads} threads cannot be started`, {
        hint: 'SINTER_THREADS=1, or fewer other processes',
      });
    }
    const kernels = new SharedEntries<Kernels>((each) => each.unload());
    const close = (): void => {
      support.close(pool);
      for (const each of kernels.values()) each.unload();
      kernels.clear();
      objects.close();
    };
    const parts = { koffi, objects, support, pool, kernels };
    return {
      compiler,
      load: async (engine, program) =>
        openProgram(engine, parts, program, await objects.make(textOf(program))),
      loadNow: (engine, program) => openProgram(engine, parts, program, objects.makeNow(textOf(program))),
      enlargePages: (heap) => askForLargePages(koffi, heap.bytes, heap.room),
      close,
    };
  } catch (error) {
    objects.close();
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
