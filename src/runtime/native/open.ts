// The native backends: `native`, and `native:2` with two threads. In a page only this file is loaded,
// and it refuses to open a device.

import { DeviceError } from '../../errors.ts';
import type { Backend, Device } from '../device.ts';
import { threadsOfName } from '../wasm/names.ts';
import type { NativeOptions } from './node.ts';

/** With as many threads as `SINTER_THREADS` says or the machine has cores. */
export const nativeBackend: Backend = { name: 'native', open: () => openNative('native') };

/** The backend of `native:2`, with so many threads; undefined for other names. */
export function nativeBackendOf(name: string): Backend | undefined {
  const threads = threadsOfName(name, 'native');
  return threads === undefined ? undefined : { name, open: () => openNative(name, { threads }) };
}

/** Opens a native device; rejects with DeviceError E_DEVICE and the reason when there is none. */
export async function openNative(name: string, options: NativeOptions = {}): Promise<Device> {
  if (typeof process === 'undefined' || process.versions?.node === undefined) {
    throw new DeviceError('E_DEVICE', name, 'code is compiled for the machine in Node, not in a page');
  }
  const { openNativeDevice } = await import('./node.ts');
  return openNativeDevice(name, options);
}
