// Programs of a bundle on CUDA: the runtime's own driver, memory, images and graphs under programs
// whose addresses never change, so that each is one graph. `cuda.js` of a bundle is made of this
// file.

import { DeviceError } from '../errors.ts';
import { checkProgram } from '../runtime/check.ts';
import { gpusOf, runnable, runsOn } from '../runtime/cuda/modules/arch.ts';
import { openCompiler } from '../runtime/cuda/modules/compiler.ts';
import { CudaContext } from '../runtime/cuda/api/context.ts';
import { Cubins, hashOf, usualFolder } from '../runtime/cuda/modules/cubins.ts';
import { openDriver } from '../runtime/cuda/api/driver.ts';
import { Fences } from '../runtime/cuda/fences.ts';
import { deviceName, findGpu, type Gpu } from '../runtime/cuda/api/gpu.ts';
import { RunGraphs } from '../runtime/cuda/stretches.ts';
import { Images } from '../runtime/cuda/modules/images.ts';
import { Marshal } from '../runtime/cuda/api/marshal.ts';
import { CudaModules } from '../runtime/cuda/modules/modules.ts';
import { operationsOf, queueOperations } from '../runtime/cuda/operations.ts';
import { overlaps, type ByteRange } from '../runtime/cuda/ranges.ts';
import { dependenciesOf, inOrder, isFlat, runStepsOf, slotsOf } from '../runtime/cuda/run-steps.ts';
import { ScalarBlocks } from '../runtime/cuda/scalars.ts';
import { DeviceMemory } from '../runtime/cuda/source.ts';
import { Staging } from '../runtime/cuda/staging.ts';
import { TileMaps } from '../runtime/cuda/tile-maps.ts';
import { Failures } from '../runtime/failures.ts';
import { checkLimits } from '../runtime/limits.ts';
import type { Binding, Copy, Machine, ByteLocation, RunProgram } from './machine.ts';
import type { BundledProgram } from './manifest.ts';

/** A machine on GPU `ordinal` of this one. Rejects with E_DEVICE where there is none. */
export async function openCuda(ordinal: number): Promise<Machine<number>> {
  const driver = await openDriver(deviceName(ordinal));
  return new Cuda(findGpu(driver, ordinal), process.env['SINTER_CUDA_SYNC'] === '1');
}

type Wanted = Parameters<RunProgram<number>>[1];

class Cuda implements Machine<number> {
  readonly description: string;
  readonly #gpu: Gpu;
  readonly #context: CudaContext;
  readonly #fences: Fences;
  readonly #staging: Staging;
  readonly #memory: DeviceMemory;
  readonly #images: Images;
  readonly #marshal: Marshal;
  readonly #tileMaps: TileMaps;
  readonly #isSynchronous: boolean;
  #modules: Promise<CudaModules> | undefined;
  /** Calls in flight: what they use is freed after them. */
  #pending = 0;
  #closed = false;

  constructor(gpu: Gpu, isSynchronous: boolean) {
    this.description = `${gpu.title}, ${gpu.size}${gpu.among}`;
    this.#gpu = gpu;
    this.#context = new CudaContext(gpu, new Failures(gpu.name));
    this.#fences = new Fences(this.#context);
    this.#staging = new Staging(this.#context, this.#fences);
    this.#memory = new DeviceMemory(this.#context, gpu.hasPools);
    this.#images = new Images(this.#context, this.#fences);
    this.#marshal = new Marshal(gpu.driver);
    this.#tileMaps = new TileMaps(this.#context);
    this.#isSynchronous = isSynchronous;
  }

  allocate(bytes: number): number {
    this.#context.failures.assertAlive();
    const address = this.#memory.create(bytes);
    const { driver, stream } = this.#context;
    const result = driver.cu.cuMemsetD32Async(address, 0, bytes / 4, stream);
    this.#context.check(result, 'cuMemsetD32Async', `clearing ${bytes} bytes`);
    return address;
  }

  write(place: ByteLocation<number>, bytes: Uint8Array): void {
    this.#context.failures.assertAlive();
    this.#context.use();
    this.#staging.upload(addressOf(place), bytes);
  }

  async read(place: ByteLocation<number>, bytes: number): Promise<Uint8Array> {
    const [found] = await this.#queued([{ place, bytes }], () => undefined);
    return found!;
  }

  async prepare({ program, read, placeOf, before, after }: Binding<number>): Promise<RunProgram<number>> {
    checkProgram(program, 'cuda', this.#gpu.name);
    checkLimits(program, { ...this.#gpu, combining: 'stream' });
    const functions = await this.#while(() => this.#functions(program, read));
    this.#context.failures.assertAlive();
    this.#context.use();
    const ranges = this.#ranges(program, placeOf);
    const runSteps = runStepsOf(
      program,
      program.outputs.map(() => false),
    );
    const operations = operationsOf(runSteps, {
      program,
      functions,
      ranges,
      context: this.#context,
      tileMaps: this.#tileMaps,
    });
    const isGraph = !this.#isSynchronous && operations.length > 1 && isFlat(runSteps);
    const dependencies =
      !isGraph || overlaps(program, ranges) ? inOrder(runSteps) : dependenciesOf(program, runSteps);
    const upload = operations.find(({ kind }) => kind === 'upload');
    const scalars =
      upload?.kind === 'upload' ? new ScalarBlocks(this.#staging, this.#fences, upload.bytes / 4) : undefined;
    const queue = {
      context: this.#context,
      marshal: this.#marshal,
      staging: this.#staging,
      isSynchronous: this.#isSynchronous,
    };
    const copy = (list: readonly Copy<number>[]): void =>
      queueOperations(
        queue,
        list.map(({ from, to, bytes }) => ({
          kind: 'copy',
          from: addressOf(from),
          to: addressOf(to),
          bytes,
        })),
        0,
      );
    let graph: RunGraphs | undefined;
    return (words, wanted) =>
      this.#queued(wanted, () => {
        this.#context.flying.add(program);
        const source = scalars?.place(words) ?? 0;
        try {
          copy(before);
          if (!isGraph) queueOperations(queue, operations, source);
          else {
            graph ??= new RunGraphs(queue, operations, [dependencies], source);
            graph.launch(source);
          }
          copy(after);
        } finally {
          const epoch = this.#fences.mark();
          scalars?.used(epoch);
        }
      });
  }

  dispose(): void {
    const { failures, name } = this.#context;
    failures.lose(new DeviceError('E_STATE', name, 'the model was disposed of'));
    if (this.#pending === 0) this.#close();
  }

  /** Queues work and then copies of the wanted bytes; resolves with these. */
  #queued(wanted: Wanted, work: () => void): Promise<Uint8Array[]> {
    return this.#while(async () => {
      this.#context.failures.assertAlive();
      this.#context.use();
      work();
      const copies = wanted.map(({ place, bytes }) =>
        bytes === 0 ? () => new Uint8Array() : this.#staging.download(addressOf(place), bytes),
      );
      await this.#fences.wait(this.#fences.mark());
      return copies.map((take) => take());
    });
  }

  async #while<T>(work: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    try {
      return await work();
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0 && this.#context.failures.lost) this.#close();
    }
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const { driver, handle } = this.#context;
    driver.cu.cuCtxSetCurrent(handle);
    try {
      this.#fences.block(this.#fences.latest);
    } catch {
      // A failed context is released without waiting.
    }
    this.#memory.close();
    this.#staging.destroy();
    this.#fences.destroy();
    this.#images.destroy();
    this.#context.close();
  }

  /**
   * The functions of a program's kernels: of the first image that this GPU takes, else compiled
   * here.
   */
  async #functions(program: BundledProgram, read: Binding<number>['read']): Promise<readonly number[]> {
    const { name, capability } = this.#gpu;
    const here = `compute capability ${(capability / 10).toFixed(1)}`;
    if (program.arch !== undefined && !runsOn(program.arch, capability))
      throw new DeviceError(
        'E_DEVICE',
        name,
        `the bundle's kernels are for ${gpusOf(program.arch)}, not for ${here}`,
      );
    const { images = [] } = program;
    let reason = `no machine code of the bundle is for ${here} (it has ${images.map(({ arch }) => arch).join(', ') || 'none'})`;
    for (const { arch, file } of runnable(images, capability)) {
      try {
        const image = await read(file);
        this.#context.failures.assertAlive();
        const module = this.#images.take(hashOf(image), () => image);
        return program.kernels.map((kernel) => this.#images.function(module, kernel.name));
      } catch (error) {
        if (!(error instanceof DeviceError && error.code === 'E_VALIDATION')) throw error;
        reason = `the driver refuses the bundle's machine code for ${arch}: ${error.message}`;
      }
    }
    const modules = await (this.#modules ??= this.#compiler(reason));
    const text = new TextDecoder();
    const kernels = await Promise.all(
      program.kernels.map(async (kernel) => ({ ...kernel, source: text.decode(await read(kernel.file)) })),
    );
    this.#context.failures.assertAlive();
    const compiled = modules.get(kernels);
    await Promise.all(compiled.map(({ opened }) => opened));
    return compiled.map(({ func, failure }, i) => {
      if (failure !== undefined) throw failure(kernels[i]!.name);
      return func;
    });
  }

  async #compiler(reason: string): Promise<CudaModules> {
    try {
      const { compiler } = await openCompiler(this.#gpu);
      return new CudaModules(this.#context, this.#images, compiler, new Cubins(usualFolder()));
    } catch (cause) {
      const { name } = this.#gpu;
      const problem = (cause as Error).message.replace(`${name}: `, '');
      throw new DeviceError('E_DEVICE', name, `${reason}, and its sources cannot be compiled: ${problem}`, {
        cause,
      });
    }
  }

  /** The bytes of each buffer, and of the scalars. */
  #ranges(program: BundledProgram, placeOf: Binding<number>['placeOf']): Map<number, ByteRange> {
    const { buffers, outputs, scalars } = program;
    const slots = slotsOf(program);
    const ranges = new Map<number, ByteRange>();
    buffers.forEach(({ bytes }, i) => ranges.set(i, { start: addressOf(placeOf(i)), bytes }));
    outputs.forEach((buffer, i) => ranges.set(slots.output(i), ranges.get(buffer)!));
    if (program.kernels.some(({ usesScalars }) => usesScalars)) {
      const bytes = 4 * Math.max(1, scalars.length);
      ranges.set(slots.scalars, { start: this.allocate(bytes), bytes });
    }
    return ranges;
  }
}

function addressOf({ memory, offset }: ByteLocation<number>): number {
  return memory + offset;
}
