// The player of bundles for WebGPU.

import { loadBundle as load, startOn, type LoadOptions, type Model } from './player.ts';
import { openWebGpu } from './webgpu.ts';

export function loadBundle(base: string, options?: LoadOptions): Promise<Model> {
  return load({ webgpu: async ({ device }) => startOn('webgpu', await openWebGpu(device)) }, base, options);
}
