// Where the tests of bundles load them: WebAssembly, the software WebGPU device and the CUDA stand-in.

import { afterAll, beforeAll } from 'vitest';
import type { Inputs, LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { setDevice } from '../../src/index.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { useStandIn } from '../cuda/standin/standin.ts';
import { removeFolders } from './bundles.ts';

/** A bundle that is loaded. */
export interface Loaded {
  run(inputs: Inputs): Promise<Outputs>;
  weight(name: string): Promise<Float32Array>;
  dispose(): void;
}
export type Load = (options: LoadOptions) => Promise<Loaded>;

export interface Places {
  /** By name, how a bundle is loaded there. */
  readonly places: Readonly<Record<string, () => LoadOptions>>;
  /** The device of `webgpu`, once the tests run. */
  readonly gpu: () => GPUDevice;
}

/** Opens the places before the tests of a file, with `wasm` as its device, and closes them behind these. */
export function usePlaces(): Places {
  let gpu: GPUDevice;
  beforeAll(async () => {
    setDevice('wasm');
    useStandIn();
    gpu = await (await softwareAdapter()).requestDevice();
  });
  afterAll(() => {
    gpu.destroy();
    removeFolders();
    setDevice(undefined);
  });
  return {
    places: {
      wasm: () => ({ target: 'wasm', threads: 1 }),
      webgpu: () => ({ target: 'webgpu', device: gpu }),
      cuda: () => ({ target: 'cuda' }),
    },
    gpu: () => gpu,
  };
}
