// Bundles on WebGPU.

import { modelOn, type Opener } from './runtime.ts';
import { openWebGpu } from './webgpu.ts';

export const open: Opener = async (manifest, { device, target }) => {
  const given = typeof device === 'object' ? device : undefined;
  const isOnly = Object.values(manifest.entries).some(({ programs }) => programs.wasm === undefined);
  return modelOn('webgpu', await openWebGpu(given, target !== undefined || isOnly), manifest);
};
