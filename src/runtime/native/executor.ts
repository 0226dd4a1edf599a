// Node only: programs of C made ready to run. All kernels of one are one shared object; its operations are a plan, which the
// threads of the support object run over the memory of a WebAssembly device.

import type { Koffi } from '../koffi.ts';
import type { Program } from '../program.ts';
import type { SharedEntries } from '../shared.ts';
import type { Heap } from '../wasm/heap.ts';
import {
  HeapProgram,
  type Dispatch,
  type Executor,
  type HeapEngine,
  type Operation,
} from '../wasm/placed.ts';
import { openKernels, tableName, type Kernels, type Support } from './library.ts';
import type { Objects } from './objects.ts';
import { planOf } from './plan.ts';

/** The parts of a device that programs of C work with. */
export interface CEngine extends HeapEngine {
  readonly threads: number;
}

/** What makes and runs them. */
export interface CParts {
  readonly koffi: Koffi;
  readonly objects: Objects;
  readonly support: Support;
  /** The address of the pool of threads. */
  readonly pool: number;
  /** Objects that are open, by their files. */
  readonly kernels: SharedEntries<Kernels>;
}

/** The program whose object is this file. */
export function openProgram(
  engine: CEngine,
  parts: CParts,
  program: Program,
  file: string,
): HeapProgram<BigInt64Array> {
  return new HeapProgram(engine, program, new CExecutor(engine, parts, program, file));
}

class CExecutor implements Executor<BigInt64Array> {
  readonly threads: number;
  readonly #heap: Heap;
  readonly #parts: CParts;
  readonly #kernels: Kernels;

  constructor({ heap, threads }: CEngine, parts: CParts, program: Program, file: string) {
    const { koffi, objects, kernels } = parts;
    this.threads = threads;
    this.#heap = heap;
    this.#parts = parts;
    this.#kernels = kernels.take(file, () => openKernels(koffi, objects, file, program.kernels.length));
  }

  prepare(operations: readonly Operation<Dispatch>[]): BigInt64Array {
    return planOf(operations, this.#kernels.addresses);
  }

  run(plan: BigInt64Array): undefined {
    const { support, pool } = this.#parts;
    // Where the memory lies is asked each time: an engine may move it when it grows.
    if (plan.length > 0) support.run(pool, plan, plan.length, support.address(this.#heap.bytes));
    return undefined;
  }

  release(): void {
    this.#parts.kernels.release(this.#kernels);
  }
}

/** All kernels in one text, and the function that gives their addresses. */
export function textOf({ kernels }: Program): string {
  const sources = kernels.map(({ source }) => source);
  const table = kernels.map(({ name }) => `(uintptr_t)${name}`);
  return `#include <stdint.h>
${sources.join('\n')}
__attribute__((visibility("default"))) uintptr_t ${tableName}(int32_t i) {
  static const uintptr_t kernels[] = { ${[...table, '0'].join(', ')} };
  return kernels[i];
}
`;
}
