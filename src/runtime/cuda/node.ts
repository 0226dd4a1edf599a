// Node only: opens CUDA devices. Takes a device's number and the environment, gives the device with
// its facts. Loaded by a dynamic import, so that browsers load neither this file nor koffi, which
// is imported only here.

import type { Device, DeviceFacts } from '../device.ts';
import { openCompiler, type Arch } from './modules/compiler.ts';
import { Cubins, usualFolder } from './modules/cubins.ts';
import { CudaDevice } from './device.ts';
import { openDriver } from './api/driver.ts';
import { deviceName, findGpu, type Gpu } from './api/gpu.ts';
import type { NvrtcOptions } from './api/nvrtc.ts';

export interface CudaOptions extends NvrtcOptions {
  /** Bytes all buffers together may take. Default: what the driver gives. */
  readonly budget?: number;
  /** Where compiled kernels are kept; false for nowhere. Default: `cuda` in the cache folder. */
  readonly cubins?: string | false;
}

/** Compute capabilities whose instructions later ones have too. */
const LADDER: readonly number[] = [50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121];

/** Device `ordinal` of this machine; rejects with the reason when there is none. */
export async function openCudaDevice(ordinal: number, options: CudaOptions = {}): Promise<Device> {
  const { env = process.env, budget = Infinity } = options;
  const driver = await openDriver(deviceName(ordinal), options);
  const gpu = findGpu(driver, ordinal);
  const { arch, compiler, version } = await openCompiler(gpu, options);
  const folder = options.cubins === undefined ? usualFolder() : options.cubins || undefined;
  return new CudaDevice({
    gpu,
    facts: factsOf(gpu, arch, version),
    compiler,
    cubins: new Cubins(folder),
    budget,
    isSynchronous: env['SINTER_CUDA_SYNC'] === '1',
  });
}

function factsOf(gpu: Gpu, arch: Arch, compiler: string): DeviceFacts {
  const { name, title, size, among, capability, multiprocessors, limits } = gpu;
  return {
    name,
    target: 'cuda',
    combining: 'stream',
    description: `${title}, ${arch.name}, ${size}, ${compiler}${among}`,
    software: false,
    features: [
      ...LADDER.filter((step) => step <= capability).map((step) => `sm_${step}`),
      ...(arch.name.endsWith('a') ? [arch.name] : []),
    ],
    subgroups: { min: 32, max: 32 },
    multiprocessors,
    limits,
  };
}
