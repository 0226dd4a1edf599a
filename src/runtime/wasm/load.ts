// A Program made ready as WebAssembly: each kernel a module over the device's memory, run here or
// by all threads. A run is complete when `run` returns; operations that other devices queue are
// done in order at once.

import { DeviceError } from '../../errors.ts';
import { checkProgram } from '../check.ts';
import type { LoadedProgram } from '../device.ts';
import { checkLimits } from '../limits.ts';
import type { Program } from '../program.ts';
import type { LoadedKernel, WasmModules } from './modules.ts';
import {
  exchange,
  HeapProgram,
  isSet,
  type Dispatch,
  type Executor,
  type HeapEngine,
  type Operation,
} from './placed.ts';
import type { PoolJob, Pool } from './pool.ts';

/** The parts of a device that its programs work with. */
export interface WasmEngine extends HeapEngine {
  readonly modules: WasmModules;
  /** More threads, where there are any. */
  readonly pool: Pool | undefined;
}

/** Workgroups here, and workgroups by all threads. */
type Call =
  | {
      readonly kind: 'run';
      readonly name: string;
      readonly kernel: LoadedKernel;
      readonly args: readonly number[];
    }
  | { readonly kind: 'share'; readonly pool: Pool; readonly job: PoolJob };

type WasmOperation = Operation<Call>;

/** Loads a program; throws what is wrong with it (E_VALIDATION, E_LIMIT, E_OOM). */
export function loadProgram(engine: WasmEngine, program: Program): LoadedProgram {
  checkProgram(program, 'wasm', engine.facts.name);
  checkLimits(program, engine.facts);
  return new HeapProgram(engine, program, new WasmExecutor(engine, program));
}

class WasmExecutor implements Executor<readonly WasmOperation[]> {
  readonly threads: number;
  readonly #engine: WasmEngine;
  readonly #program: Program;
  readonly #kernels: readonly LoadedKernel[];

  constructor(engine: WasmEngine, program: Program) {
    this.threads = engine.pool?.threads ?? 1;
    this.#engine = engine;
    this.#program = program;
    this.#kernels = kernelsOf(engine.modules, program);
  }

  prepare(operations: readonly Operation<Dispatch>[]): readonly WasmOperation[] {
    return operations.map((operation) => {
      if (operation.kind === 'dispatch') return this.#callOf(operation);
      if (operation.kind !== 'repeat') return operation;
      return { ...operation, operations: this.prepare(operation.operations) };
    });
  }

  run(operations: readonly WasmOperation[]): DeviceError | undefined {
    for (const operation of operations) {
      if (operation.kind === 'repeat') {
        for (let time = 0; time < operation.times && this.#goesOn(operation.guard); time++) {
          const failure = this.run(operation.operations);
          if (failure !== undefined) return failure;
        }
        continue;
      }
      try {
        this.#do(operation);
      } catch (error) {
        return asDeviceError(error, operation, this.#engine.facts.name);
      }
    }
    return undefined;
  }

  release(): void {
    for (const kernel of this.#kernels) this.#engine.modules.release(kernel);
  }

  #goesOn(guard: number | undefined): boolean {
    return guard === undefined || isSet(this.#engine.heap, guard);
  }

  #do(operation: Exclude<WasmOperation, { readonly kind: 'repeat' }>): void {
    const { heap } = this.#engine;
    switch (operation.kind) {
      case 'run':
        operation.kernel.run(...operation.args);
        return;
      case 'share':
        operation.pool.run(operation.job);
        return;
      case 'copy': {
        const { from, to, bytes } = operation;
        heap.bytes.copyWithin(to, from, from + bytes);
        return;
      }
      case 'clear':
        heap.bytes.fill(0, operation.at, operation.at + operation.bytes);
        return;
      case 'collective':
        exchange(this.#engine, operation);
        return;
      default:
        operation satisfies never;
    }
  }

  #callOf({ kernel: index, groups, buffers, scalars, cut, scratch }: Dispatch): Call {
    const { pool, modules } = this.#engine;
    const { name } = this.#program.kernels[index]!;
    const kernel = this.#kernels[index]!;
    const args = scalars === undefined ? buffers : [...buffers, scalars];
    if (pool === undefined || cut === undefined) {
      const all = [0, groups, ...args, ...(scratch === undefined ? [] : [scratch.address])];
      return { kind: 'run', name, kernel, args: all };
    }
    const code = modules.codeOf(kernel);
    const own = scratch === undefined ? {} : { scratch };
    return { kind: 'share', pool, job: { kernel, name, code, groups, args, cut, ...own } };
  }
}

/** The kernels of a program; if one is refused, those taken before it are released. */
function kernelsOf(modules: WasmModules, { kernels }: Program): LoadedKernel[] {
  const made: LoadedKernel[] = [];
  try {
    for (const kernel of kernels) made.push(modules.get(kernel));
  } catch (error) {
    for (const kernel of made) modules.release(kernel);
    throw error;
  }
  return made;
}

function asDeviceError(error: unknown, operation: WasmOperation, device: string): DeviceError {
  if (error instanceof DeviceError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new DeviceError(
    'E_VALIDATION',
    device,
    problem,
    operation.kind === 'run' ? { kernel: operation.name } : {},
  );
}
