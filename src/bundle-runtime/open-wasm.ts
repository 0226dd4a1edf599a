// Bundles on WebAssembly.

import { modelOn, type Opener } from './runtime.ts';
import { openWasm } from './wasm.ts';

export const open: Opener = async (manifest, { threads }) => {
  return modelOn('wasm', await openWasm(threads), manifest);
};
