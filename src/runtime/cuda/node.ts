// Node only: opens CUDA devices. Comes in: which one, and the environment; goes out: the device with its facts. Loaded by a dynamic
// import, so that a browser never sees it, nor koffi, which is loaded only here.

import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';
import { cacheFolder } from '../cache.ts';
import type { Device, DeviceFacts } from '../device.ts';
import { archFor, Compiler, type Arch } from './compiler.ts';
import { Cubins } from './cubins.ts';
import { CudaDevice } from './device.ts';
import { openDriver, type Driver, type DriverOptions } from './driver.ts';
import { mostArguments } from './marshal.ts';

export interface CudaOptions extends DriverOptions {
  /** Bytes all buffers together may take. Default: what the driver gives. */
  readonly budget?: number;
  /** Where compiled kernels are kept; false for nowhere. Default: `cuda` in the cache folder. */
  readonly cubins?: string | false;
}

/** CUdevice_attribute. */
const ATTRIBUTE = {
  threadsPerBlock: 1,
  multiprocessors: 16,
  capabilityMajor: 75,
  capabilityMinor: 76,
  sharedBytes: 97,
  memoryPools: 115,
} as const;

/** Compute capabilities whose instructions later ones have too. */
const LADDER: readonly number[] = [50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121];

/** Device `ordinal` of this machine; rejects with the reason when there is none. */
export async function openCudaDevice(ordinal: number, options: CudaOptions = {}): Promise<Device> {
  const name = ordinal === 0 ? 'cuda' : `cuda:${ordinal}`;
  const { env = process.env, budget = Infinity } = options;
  const driver = await openDriver(name, options);
  const { device, count } = choose(driver, ordinal, name);
  const ask = (attribute: keyof typeof ATTRIBUTE): number => {
    driver.cu.cuDeviceGetAttribute(driver.cell.address, ATTRIBUTE[attribute], device);
    return driver.cell.int();
  };
  const capability = 10 * ask('capabilityMajor') + ask('capabilityMinor');
  const arch = archFor(driver, capability, name);
  const extra = (env['SINTER_CUDA_OPTIONS'] ?? '').split(/\s+/).filter((option) => option !== '');
  return new CudaDevice({
    driver,
    device,
    facts: factsOf(driver, device, ask, {
      name,
      capability,
      arch,
      place: count > 1 ? `, device ${ordinal} of ${count}` : '',
    }),
    compiler: new Compiler(driver, arch, name, extra),
    cubins: new Cubins(options.cubins === undefined ? usualFolder() : options.cubins || undefined),
    budget,
    hasPools: ask('memoryPools') === 1,
    isSynchronous: env['SINTER_CUDA_SYNC'] === '1',
  });
}

function choose(driver: Driver, ordinal: number, name: string): { device: number; count: number } {
  const { cu, cell } = driver;
  cu.cuDeviceGetCount(cell.address);
  const count = cell.int();
  if (ordinal >= count) {
    const problem = `there are ${count} CUDA devices, counted from 0: no device ${ordinal}`;
    throw new DeviceError('E_DEVICE', name, problem);
  }
  const result = cu.cuDeviceGet(cell.address, ordinal);
  if (result !== 0) throw new DeviceError('E_DEVICE', name, `${driver.explain(result)}, in cuDeviceGet`);
  return { device: cell.int(), count };
}

function factsOf(
  driver: Driver,
  device: number,
  ask: (attribute: keyof typeof ATTRIBUTE) => number,
  { name, capability, arch, place }: { name: string; capability: number; arch: Arch; place: string },
): DeviceFacts {
  const { cu, cell, version, nvrtcVersion } = driver;
  const title = new Uint8Array(256);
  cu.cuDeviceGetName(title, title.length, device);
  cu.cuDeviceTotalMem_v2(cell.address, device);
  const total = cell.number();
  const words = [
    new TextDecoder().decode(title.subarray(0, title.indexOf(0))),
    arch.name,
    `${ask('multiprocessors')} multiprocessors`,
    `${(total / 2 ** 30).toFixed(1)} GiB`,
    `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
    `NVRTC ${nvrtcVersion.join('.')}${place}`,
  ];
  return {
    name,
    description: words.join(', '),
    software: false,
    features: [
      ...LADDER.filter((step) => step <= capability).map((step) => `sm_${step}`),
      ...(arch.name.endsWith('a') ? [arch.name] : []),
    ],
    subgroups: { min: 32, max: 32 },
    multiprocessors: ask('multiprocessors'),
    limits: {
      // One parameter is the scalar block's.
      storageBuffers: mostArguments - 1,
      bufferBytes: total,
      bindingBytes: total,
      workgroupBytes: ask('sharedBytes'),
      workgroupInvocations: ask('threadsPerBlock'),
      workgroupsPerDimension: 65_535,
    },
  };
}

/** Without a writable cache folder kernels are compiled anew in every process. */
function usualFolder(): string | undefined {
  try {
    return path.join(cacheFolder(), 'cuda');
  } catch {
    return undefined;
  }
}
