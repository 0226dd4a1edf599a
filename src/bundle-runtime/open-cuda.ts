// Bundles on CUDA, in Node: their runtime is a file of its own, which is loaded only for them.

import { DeviceError } from '../errors.ts';
import { modelOn, type Opener } from './runtime.ts';

export const open: Opener = async (manifest, { device = 0 }, modules) => {
  if (typeof device !== 'number' || globalThis.process?.versions?.node === undefined)
    throw new DeviceError('E_DEVICE', 'cuda', 'CUDA is reached from Node, by the number of a device');
  const { openCuda } = await modules['cuda.js']!();
  return modelOn('cuda', await openCuda(device), manifest);
};
