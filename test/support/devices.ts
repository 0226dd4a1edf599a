// The devices that tests of behaviour run on: the interpreter, software WebGPU, WebAssembly, and CUDA over its stand-in where the machine has a
// host compiler; in the full tier also compiled C, where the machine has a C compiler.

import { useStandIn } from '../cuda/standin/standin.ts';
import { isQuick } from './sample.ts';

/** Compiling takes most of what a test costs on this device, which the quick tier has no time for. */
const compiled = !isQuick && (await import('../runtime/native/waiting.ts')).useNative();

export const everyDevice: readonly string[] = [
  'interpreter',
  'webgpu:software',
  'wasm',
  ...(useStandIn() ? ['cuda'] : []),
  ...(compiled ? ['native'] : []),
];
