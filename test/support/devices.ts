// The devices that tests of behaviour run on: the interpreter, software WebGPU, WebAssembly, and CUDA over its stand-in where the machine has a
// host compiler.

import { useStandIn } from '../cuda/standin/standin.ts';

export const everyDevice: readonly string[] = [
  'interpreter',
  'webgpu:software',
  'wasm',
  ...(useStandIn() ? ['cuda'] : []),
];
