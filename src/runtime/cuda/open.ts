// The CUDA backends: `cuda` is the machine's first device, `cuda:1` its second. In a page only this
// file is loaded, and it refuses to open a device.

import { DeviceError } from '../../errors.ts';
import type { Backend, Device } from '../device.ts';
import type { CudaOptions } from './node.ts';

/** The machine's first CUDA device. */
export const cudaBackend: Backend = { name: 'cuda', open: () => openCuda(0) };

/** The backend of `cuda:0`, `cuda:1`, …; undefined for other names. */
export function cudaBackendOf(name: string): Backend | undefined {
  const ordinal = /^cuda:(\d{1,3})$/.exec(name)?.[1];
  return ordinal === undefined ? undefined : { name, open: () => openCuda(Number(ordinal)) };
}

/** Opens a CUDA device; rejects with DeviceError E_DEVICE and the reason when there is none. */
export async function openCuda(ordinal: number, options: CudaOptions = {}): Promise<Device> {
  if (typeof process === 'undefined' || process.versions?.node === undefined) {
    throw new DeviceError('E_DEVICE', 'cuda', 'CUDA is reached from Node, not from a page');
  }
  const { openCudaDevice } = await import('./node.ts');
  return openCudaDevice(ordinal, options);
}
