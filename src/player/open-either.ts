// The player of bundles for WebGPU, and for WebAssembly where that is missing.

import { loadBundle as load, startOn, type LoadOptions, type Model, type Start } from './player.ts';
import { openWasm } from './wasm.ts';
import { openWebGpu } from './webgpu.ts';

export function loadBundle(base: string, options?: LoadOptions): Promise<Model> {
  const openers = {
    webgpu: async ({ device }: LoadOptions): Promise<Start> => startOn('webgpu', await openWebGpu(device)),
    wasm: async ({ threads }: LoadOptions): Promise<Start> => startOn('wasm', await openWasm(threads)),
  };
  return load(openers, base, options);
}
