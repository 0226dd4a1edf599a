// Node only: programs of C made ready to run. All kernels of one are one shared object; its operations are a plan, which the
// threads of the support object run over the memory of a WebAssembly device.

import { DeviceError } from '../../errors.ts';
import type { Koffi } from '../koffi.ts';
import type { Program } from '../program.ts';
import type { SharedEntries } from '../shared.ts';
import {
  exchange,
  HeapProgram,
  isSet,
  type Dispatch,
  type Executor,
  type HeapEngine,
  type Operation,
} from '../wasm/placed.ts';
import { openKernels, tableName, type Kernels, type Support } from './library.ts';
import type { Objects } from './objects.ts';
import { partsOfRun, type RunPart } from './plan.ts';

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
): HeapProgram<readonly RunPart[]> {
  return new HeapProgram(engine, program, new CExecutor(engine, parts, program, file));
}

class CExecutor implements Executor<readonly RunPart[]> {
  readonly threads: number;
  readonly #engine: CEngine;
  readonly #parts: CParts;
  readonly #kernels: Kernels;

  constructor(engine: CEngine, parts: CParts, program: Program, file: string) {
    const { koffi, objects, kernels } = parts;
    this.threads = engine.threads;
    this.#engine = engine;
    this.#parts = parts;
    this.#kernels = kernels.take(file, () => openKernels(koffi, objects, file, program.kernels.length));
  }

  prepare(operations: readonly Operation<Dispatch>[]): readonly RunPart[] {
    return partsOfRun(operations, this.#kernels.addresses);
  }

  run(parts: readonly RunPart[]): DeviceError | undefined {
    for (const part of parts) {
      const failure = this.#do(part);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  #do(part: RunPart): DeviceError | undefined {
    const { heap } = this.#engine;
    switch (part.kind) {
      case 'words': {
        const { support, pool } = this.#parts;
        // Where the memory lies is asked each time: an engine may move it when it grows.
        support.run(pool, part.words, part.words.length, support.address(heap.bytes));
        return undefined;
      }
      case 'repeat': {
        const { times, guard } = part;
        const goesOn = (): boolean => guard === undefined || isSet(heap, guard);
        for (let time = 0; time < times && goesOn(); time++) {
          const failure = this.run(part.parts);
          if (failure !== undefined) return failure;
        }
        return undefined;
      }
      case 'collective':
        try {
          exchange(this.#engine, part);
          return undefined;
        } catch (error) {
          if (error instanceof DeviceError) return error;
          const options = { cause: error };
          return new DeviceError('E_COLLECTIVE', this.#engine.facts.name, String(error), options);
        }
      default:
        return part satisfies never;
    }
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
