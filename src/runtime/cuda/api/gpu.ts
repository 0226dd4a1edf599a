// One of the machine's GPUs, as the driver describes it.

import { DeviceError } from '../../../errors.ts';
import type { DeviceFacts } from '../../device.ts';
import type { Driver } from './driver.ts';
import { mostArguments } from './marshal.ts';

export interface Gpu {
  readonly driver: Driver;
  /** `cuda`, `cuda:1`. */
  readonly name: string;
  /** The driver's handle. */
  readonly device: number;
  /** Its own name, and in words how large it is. */
  readonly title: string;
  readonly size: string;
  /** `, device 0 of 2` where there are several. */
  readonly among: string;
  /** 90 for compute capability 9.0. */
  readonly capability: number;
  readonly multiprocessors: { readonly count: number; readonly invocations: number };
  readonly limits: DeviceFacts['limits'];
  /** Whether memory comes from the driver's stream-ordered pool. */
  readonly hasPools: boolean;
}

/** CUdevice_attribute. */
const ATTRIBUTE = {
  threadsPerBlock: 1,
  multiprocessors: 16,
  threadsPerMultiprocessor: 39,
  capabilityMajor: 75,
  capabilityMinor: 76,
  sharedBytes: 97,
  memoryPools: 115,
} as const;

/** What a device is called in errors. */
export function deviceName(ordinal: number): string {
  return ordinal === 0 ? 'cuda' : `cuda:${ordinal}`;
}

/** GPU `ordinal` of the machine; throws E_DEVICE where there are fewer. */
export function findGpu(driver: Driver, ordinal: number): Gpu {
  const { cu, cell, version } = driver;
  const name = deviceName(ordinal);
  cu.cuDeviceGetCount(cell.address);
  const count = cell.int();
  if (ordinal >= count) {
    const problem = `there are ${count} CUDA devices, counted from 0: no device ${ordinal}`;
    throw new DeviceError('E_DEVICE', name, problem);
  }
  const result = cu.cuDeviceGet(cell.address, ordinal);
  if (result !== 0) throw new DeviceError('E_DEVICE', name, `${driver.explain(result)}, in cuDeviceGet`);
  const device = cell.int();
  const ask = (attribute: keyof typeof ATTRIBUTE): number => {
    cu.cuDeviceGetAttribute(cell.address, ATTRIBUTE[attribute], device);
    return cell.int();
  };
  const title = new Uint8Array(256);
  cu.cuDeviceGetName(title, title.length, device);
  cu.cuDeviceTotalMem_v2(cell.address, device);
  const total = cell.number();
  const multiprocessors = { count: ask('multiprocessors'), invocations: ask('threadsPerMultiprocessor') };
  const cuda = `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
  return {
    driver,
    name,
    device,
    title: new TextDecoder().decode(title.subarray(0, title.indexOf(0))),
    size: `${multiprocessors.count} multiprocessors, ${(total / 2 ** 30).toFixed(1)} GiB, ${cuda}`,
    among: count > 1 ? `, device ${ordinal} of ${count}` : '',
    capability: 10 * ask('capabilityMajor') + ask('capabilityMinor'),
    multiprocessors,
    limits: {
      // One parameter is the scalar block's.
      storageBuffers: mostArguments - 1,
      bufferBytes: total,
      bindingBytes: total,
      workgroupBytes: ask('sharedBytes'),
      workgroupInvocations: ask('threadsPerBlock'),
      workgroupsPerDimension: 65_535,
    },
    hasPools: ask('memoryPools') === 1,
  };
}
