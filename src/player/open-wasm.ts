// The player of bundles for WebAssembly.

import { loadBundle as load, startOn, type LoadOptions, type Model } from './player.ts';
import { openWasm } from './wasm.ts';

export function loadBundle(base: string, options?: LoadOptions): Promise<Model> {
  return load({ wasm: async ({ threads }) => startOn('wasm', await openWasm(threads)) }, base, options);
}
