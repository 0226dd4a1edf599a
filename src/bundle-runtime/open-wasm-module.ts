// Bundles on WebAssembly where other targets come first: their runtime is a file of its own, so
// that pages with WebGPU need not load it.

import { modelOn, type Opener } from './runtime.ts';

export const open: Opener = async (manifest, { threads }, modules) => {
  const { openWasm } = await modules['wasm.js']!();
  return modelOn('wasm', await openWasm(threads), manifest);
};
