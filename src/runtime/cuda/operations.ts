// The steps of a run with their addresses, and a function that queues them on the stream one by
// one. (graph.ts queues them as one graph.)

import { DeviceError } from '../../errors.ts';
import type { KernelOutline, ProgramOutline } from '../program.ts';
import type { CudaContext } from './api/context.ts';
import type { Marshal, StreamOperation } from './api/marshal.ts';
import { checkAliasing, type ByteRange } from './ranges.ts';
import { slotsOf, type RunStep } from './run-steps.ts';
import type { RankStream } from './rank-stream.ts';
import type { Staging } from './staging.ts';
import type { TileMaps } from './tile-maps.ts';

/** Where functions and slots lie: the addresses for the steps. */
export interface Addressing {
  readonly program: ProgramOutline;
  /** The driver's functions, by kernel. */
  readonly functions: readonly number[];
  /** The bytes of each slot. */
  readonly ranges: ReadonlyMap<number, ByteRange>;
  readonly context: CudaContext;
  readonly tileMaps: TileMaps;
}

/** Throws E_VALIDATION where a kernel cannot be launched like that. */
export function operationsOf(runSteps: readonly RunStep[], addressing: Addressing): StreamOperation[] {
  return runSteps.map((step) => operationOf(step, addressing));
}

function operationOf(step: RunStep, addressing: Addressing): StreamOperation {
  const { program, ranges } = addressing;
  const at = (slot: number): number => ranges.get(slot)!.start;
  const scalars = slotsOf(program).scalars;
  switch (step.kind) {
    case 'launch':
      return launchOf(step, addressing);
    case 'copy':
      return { kind: 'copy', from: at(step.from), to: at(step.to), bytes: step.bytes };
    case 'clear':
      return { kind: 'clear', at: at(step.slot), bytes: step.bytes };
    case 'repeat':
    case 'while': {
      const { times, runSteps } = step;
      const guard = step.kind === 'while' ? at(step.guard) : undefined;
      return { kind: 'repeat', times, guard, operations: operationsOf(runSteps, addressing) };
    }
    case 'collective': {
      const from = { address: at(step.from), bytes: step.sends };
      return {
        kind: 'collective',
        meeting: step.meeting,
        from,
        to: { address: at(step.to), bytes: step.takes },
      };
    }
    case 'await':
      return step;
    case 'upload':
      return { kind: 'upload', to: at(scalars), bytes: step.bytes };
    case 'scalar':
      return { kind: 'copy', from: at(step.from), to: at(scalars) + 4 * step.word, bytes: 4 };
    default:
      return step satisfies never;
  }
}

function launchOf(
  step: Extract<RunStep, { readonly kind: 'launch' }>,
  { program, functions, ranges, context, tileMaps }: Addressing,
): StreamOperation {
  const kernel = program.kernels[step.kernel]!;
  checkAliasing(program, kernel, step.slots, ranges, context.name);
  const func = functions[step.kernel]!;
  if ((kernel.sharedBytes ?? 0) > 0) allowShared(context, func, kernel);
  const args = step.slots.map((slot) => ranges.get(slot)!.start);
  const { name, workgroup: block, sharedBytes = 0 } = kernel;
  const maps = (kernel.tileMaps ?? []).map((map) => tileMaps.encode(map, args[map.binding]!, name));
  return { kind: 'launch', kernel: name, func, grid: step.grid, block, sharedBytes, args, maps };
}

function allowShared(context: CudaContext, func: number, { name, sharedBytes = 0 }: KernelOutline): void {
  const MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
  const result = context.driver.cu.cuFuncSetAttribute(func, MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes);
  context.check(result, 'cuFuncSetAttribute', `giving it ${sharedBytes} bytes of shared memory`, name);
}

/** What queues operations. */
export interface Queue {
  readonly context: CudaContext;
  readonly marshal: Marshal;
  readonly staging: Staging;
  /** Waits for each kernel, so that an error names the one that failed. */
  readonly isSynchronous: boolean;
  /** Where collectives meet other ranks; undefined where programs have none. */
  readonly rankStream?: RankStream;
}

/** Queues operations one by one; uploads come from `source`. */
export function queueOperations(queue: Queue, operations: readonly StreamOperation[], source: number): void {
  const { context, marshal, isSynchronous } = queue;
  const { driver, stream } = context;
  const { cu } = driver;
  const doing = `running a program of ${operations.length} steps`;
  for (const operation of operations) {
    switch (operation.kind) {
      case 'launch': {
        const { func, grid, block, sharedBytes, kernel } = operation;
        const args = marshal.arguments(operation);
        const result = cu.cuLaunchKernel(func, ...grid, ...block, sharedBytes, stream, args, 0);
        context.check(result, 'cuLaunchKernel', 'launching it', kernel);
        break;
      }
      case 'copy': {
        const { from, to, bytes } = operation;
        context.check(cu.cuMemcpyDtoDAsync_v2(to, from, bytes, stream), 'cuMemcpyDtoDAsync_v2', doing);
        break;
      }
      case 'upload': {
        const { to, bytes } = operation;
        context.check(cu.cuMemcpyHtoDAsync_v2(to, source, bytes, stream), 'cuMemcpyHtoDAsync_v2', doing);
        break;
      }
      case 'clear': {
        const { at, bytes } = operation;
        context.check(cu.cuMemsetD32Async(at, 0, bytes / 4, stream), 'cuMemsetD32Async', doing);
        break;
      }
      case 'collective':
        if (queue.rankStream === undefined)
          throw new DeviceError(
            'E_UNSUPPORTED',
            context.name,
            'a program of several processes meets no others',
          );
        queue.rankStream.meet(operation);
        break;
      case 'await':
        queue.rankStream?.await(operation.but);
        break;
      case 'repeat':
        for (let time = 0; time < operation.times && goesOn(queue, operation.guard); time++)
          queueOperations(queue, operation.operations, source);
        continue;
      default:
        operation satisfies never;
    }
    if (!isSynchronous) continue;
    const kernel = operation.kind === 'launch' ? operation.kernel : undefined;
    context.finish('running it', kernel);
  }
}

/** Whether another turn is made: waits for the stream where a guard says so. */
function goesOn({ context, staging }: Queue, guard: number | undefined): boolean {
  if (guard === undefined) return true;
  const word = staging.download(guard, 4);
  context.finish('reading a guard');
  return word().some((byte) => byte !== 0);
}
