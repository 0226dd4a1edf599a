// Bundles on WebGPU.

import { modelOn, type Opener } from './player.ts';
import { openWebGpu } from './webgpu.ts';

export const open: Opener = async (manifest, { device }) => {
  return modelOn('webgpu', await openWebGpu(typeof device === 'object' ? device : undefined), manifest);
};
