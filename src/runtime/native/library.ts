// Node only: shared objects in this process, opened through koffi, and their functions as addresses.

import { DeviceError } from '../../errors.ts';
import type { Koffi, Library } from '../koffi.ts';
import type { Objects } from './objects.ts';

/** The functions of the support object. */
export interface Support {
  open(threads: number, linger: number): number;
  close(pool: number): number;
  /** The address of an array's memory. */
  address(bytes: Uint8Array): number;
  /** Runs a plan over memory; both at addresses. */
  run(pool: number, plan: BigInt64Array, words: number, base: number): number;
}

export function openSupport(koffi: Koffi, objects: Objects, file: string): Support {
  const library = openLibrary(koffi, objects, file);
  return {
    open: library.func('sinter_open', 'uintptr_t', ['int32_t', 'int64_t']),
    close: library.func('sinter_close', 'int32_t', ['uintptr_t']),
    address: library.func('sinter_address', 'uintptr_t', ['void *']),
    run: library.func('sinter_run', 'int32_t', ['uintptr_t', 'void *', 'int64_t', 'uintptr_t']),
  };
}

/** What Linux is told of memory for which it is to take large pages, MADV_HUGEPAGE. */
const largePages = 14;

/**
 * Asks Linux for large pages (2 MiB) in memory that may grow to so many bytes: processors then look up fewer addresses. It has
 * them at once for what is written from now on, and moves the rest when it has time. Other systems, and those where it is
 * forbidden, go on with small ones.
 */
export function askForLargePages(koffi: Koffi, memory: Uint8Array, room: number): void {
  if (process.platform !== 'linux') return;
  const advise = koffi.load(null).func('madvise', 'int32_t', ['void *', 'size_t', 'int32_t']);
  advise(memory, room, largePages);
}

/** The kernels of one program, at their addresses. */
export interface Kernels {
  readonly addresses: readonly number[];
  /** Lets go of the object; no kernel may run afterwards. */
  unload(): void;
}

/** The function by which an object gives the addresses of its kernels. */
export const tableName = 'sinter_kernel_at';

export function openKernels(koffi: Koffi, objects: Objects, file: string, count: number): Kernels {
  const library = openLibrary(koffi, objects, file);
  const at = library.func(tableName, 'uintptr_t', ['int32_t']);
  const addresses = Array.from({ length: count }, (_, i) => at(i) as number);
  return { addresses, unload: () => library.unload() };
}

/** Opens an object where it lies, or a copy of it: no code may be run from some folders. */
function openLibrary(koffi: Koffi, objects: Objects, file: string): Library {
  try {
    return koffi.load(file);
  } catch (cause) {
    const copy = objects.copyOf(file);
    if (copy !== undefined) return openLibrary(koffi, objects, copy);
    const problem = `${file} cannot be opened: ${cause instanceof Error ? cause.message : String(cause)}`;
    const hint = 'set SINTER_CACHE to a folder from which code may be run (noexec forbids it)';
    throw new DeviceError('E_DEVICE', objects.device, problem, { cause, hint });
  }
}
