// Every chunk of the compiler, loaded. Node and the command line import it; a bundled page leaves it out (`browser` in
// package.json) and loads the chunks that its programs need.

import { supplyAll, type Chunk } from '../chunks.ts';
import type { Slot } from '../../slot.ts';
import * as compiler from './compiler.ts';
import { slots as attention } from './attention.ts';
import { slots as convolutions } from './convolutions.ts';
import { slots as cuda } from './cuda.ts';
import { slots as interpreter } from './interpreter.ts';
import { slots as matrixUnits } from './matrix-units.ts';
import { slots as productsCpu } from './products-cpu.ts';
import { slots as productsGpu } from './products-gpu.ts';
import { slots as rare } from './rare.ts';
import { slots as verifiers } from './verifiers.ts';
import { slots as wasm } from './wasm.ts';
import { slots as wgsl } from './wgsl.ts';

/** The slots that each chunk fills. */
export const slotsBy: Readonly<Record<Exclude<Chunk, 'compiler'>, readonly Slot<unknown>[]>> = {
  attention,
  convolutions,
  cuda,
  interpreter,
  'matrix-units': matrixUnits,
  'products-cpu': productsCpu,
  'products-gpu': productsGpu,
  rare,
  verifiers,
  wasm,
  wgsl,
};

supplyAll(compiler);
