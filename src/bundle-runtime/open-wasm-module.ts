// Bundles on WebAssembly where other targets come first: their runtime is a file of its own, so
// that pages with WebGPU need not load it.

import { modelOn, type Opener } from './runtime.ts';
import type * as Wasm from './wasm.ts';

export const open: Opener = async (manifest, { threads }, base) => {
  const { openWasm } = (await import(new URL('wasm.js', base).href)) as typeof Wasm;
  return modelOn('wasm', await openWasm(threads), manifest);
};
