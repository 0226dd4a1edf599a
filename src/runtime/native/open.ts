// The native backends: `native`, and `native:2` with two threads. Pages get open-page.ts in place of this file.

import type { Backend } from '../device.ts';
import { threadsOfName } from '../wasm/names.ts';

function backendOf(name: string, threads?: number): Backend {
  return {
    name,
    open: async () => {
      const { beginNativeDevice } = await import('./node.ts');
      return beginNativeDevice(name, threads === undefined ? {} : { threads });
    },
  };
}

/** With as many threads as `SINTER_THREADS` says or the machine has cores. */
export const nativeBackends: readonly Backend[] = [backendOf('native')];

/** The backend of `native:2`, with so many threads; undefined for other names. */
export function nativeBackendOf(name: string): Backend | undefined {
  const threads = threadsOfName(name, 'native');
  return threads === undefined ? undefined : backendOf(name, threads);
}

/**
 * Whether `native` is a default where no GPU is there: in Node on Linux. On macOS a look for the compiler asks people to install
 * one; Bun and Deno, which name themselves, have not been tested.
 */
export const isNativeUsual: boolean =
  globalThis.process?.platform === 'linux' && !('Bun' in globalThis || 'Deno' in globalThis);
