// Loads every chunk of the compiler. Node and the command line import this file. A bundled page leaves it
// out (`browser` in package.json) and loads only the chunks that its programs need.

import { supplyAll, type Chunk } from './chunks.ts';
import type { Slot } from '../slot.ts';
import * as compiler from './chunks/compiler.ts';
import { slots as attention } from './chunks/attention.ts';
import { slots as c } from './chunks/c.ts';
import { slots as columnFolds } from './chunks/column-folds.ts';
import { slots as convolutions } from './chunks/convolutions.ts';
import { slots as cuda } from './chunks/cuda.ts';
import { slots as interpreter } from './chunks/interpreter.ts';
import { slots as matrixUnits } from './chunks/matrix-units.ts';
import { slots as products } from './chunks/products.ts';
import { slots as productsCpu } from './chunks/products-cpu.ts';
import { slots as productsGpu } from './chunks/products-gpu.ts';
import { slots as rare } from './chunks/rare.ts';
import { slots as selections } from './chunks/selections.ts';
import { slots as verifiers } from './chunks/verifiers.ts';
import { slots as wasm } from './chunks/wasm.ts';
import { slots as wasmFunctions } from './chunks/wasm-functions.ts';
import { slots as wgsl } from './chunks/wgsl.ts';

/** The slots that each chunk fills. */
export const slotsBy: Readonly<Record<Exclude<Chunk, 'compiler'>, readonly Slot<unknown>[]>> = {
  attention,
  c,
  'column-folds': columnFolds,
  convolutions,
  cuda,
  interpreter,
  'matrix-units': matrixUnits,
  products,
  'products-cpu': productsCpu,
  'products-gpu': productsGpu,
  rare,
  selections,
  verifiers,
  wasm,
  'wasm-functions': wasmFunctions,
  wgsl,
};

supplyAll(compiler);
