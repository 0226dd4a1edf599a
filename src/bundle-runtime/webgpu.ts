// Programs of a bundle on WebGPU: buffers that are made once, a bind group for each dispatch, one
// command buffer a call.

import { DeviceError } from '../errors.ts';
import type { ProgramStep } from '../runtime/program.ts';
import type { Binding, Copy, Machine, ByteLocation, RunProgram } from './machine.ts';

type GpuPlace = ByteLocation<GPUBuffer>;
type GpuCopy = Copy<GPUBuffer>;
type Wanted = readonly { readonly place: GpuPlace; readonly bytes: number }[];

type Step = { readonly guard?: Wanted | false } & (
  | {
      /** Of the program, and which of them; there once all are compiled. */
      readonly pipelines: readonly GPUComputePipeline[];
      readonly kernel: number;
      readonly group: GPUBindGroup;
      readonly grid: readonly [number, number, number];
    }
  | { readonly copy: GpuCopy }
  | { readonly clear: GpuPlace; readonly bytes: number }
  | Loop
);

interface Loop {
  readonly times: number;
  readonly steps: readonly Step[];
  /**
   * What the host reads before each turn, which is made if it is not 0. Nothing for a loop around
   * such loops; false where the device goes on by itself.
   */
  readonly guard: Wanted | false;
}

/** GPUBufferUsage: MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE. Node has no such global. */
const [mapRead, copySource, copyTarget, uniform, storage] = [1, 4, 8, 64, 128] as const;
const compute = 4;
/** Steps in one command buffer; loops of many turns take several. */
const commandLimit = 4096;
const text = new TextDecoder();

/**
 * A machine on this device, else on the adapter that the browser prefers. Rejects with E_DEVICE
 * where there is none; and where it is software, which is slower than WebAssembly, unless that is
 * accepted.
 */
export async function openWebGpu(
  given: GPUDevice | undefined,
  takesSoftware: boolean,
): Promise<Machine<GPUBuffer>> {
  if (given !== undefined) return new WebGpu(given, false);
  const adapter = await globalThis.navigator?.gpu?.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter || (adapter.info?.isFallbackAdapter && !takesSoftware))
    throw new DeviceError('E_DEVICE', 'webgpu', 'there is no adapter of a GPU here', {
      hint: "target: 'wasm'",
    });
  const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage },
    requiredFeatures: [...adapter.features].filter((name) => name === 'subgroups') as GPUFeatureName[],
  });
  return new WebGpu(device, true);
}

class WebGpu implements Machine<GPUBuffer> {
  readonly description: string;
  readonly #gpu: GPUDevice;
  readonly #isOurs: boolean;
  readonly #buffers: GPUBuffer[] = [];
  #lost: string | undefined;
  /** Settles when the last run that the host steers has; undefined before the first. */
  #steering: Promise<unknown> | undefined;

  constructor(gpu: GPUDevice, isOurs: boolean) {
    this.#gpu = gpu;
    this.#isOurs = isOurs;
    const { vendor, architecture, description } = gpu.adapterInfo ?? {};
    this.description = description || [vendor, architecture].filter(Boolean).join(' ') || 'WebGPU';
    void gpu.lost.then(({ message }) => (this.#lost = message || 'the device is gone'));
  }

  allocate(bytes: number): GPUBuffer {
    return this.#buffer(bytes, storage | copySource | copyTarget);
  }

  write({ memory, offset }: GpuPlace, bytes: Uint8Array): void {
    // Deno ends its process at writes of nothing.
    if (bytes.length === 0) return;
    const data = (this.#steering ? bytes.slice() : bytes) as Uint8Array<ArrayBuffer>;
    void this.#inTurn(async () => this.#gpu.queue.writeBuffer(memory, offset, data), false);
  }

  async read(place: GpuPlace, bytes: number): Promise<Uint8Array> {
    const [found] = await this.#inTurn(() => this.#submit([], [{ place, bytes }]), false);
    return found!;
  }

  async prepare(binding: Binding<GPUBuffer>): Promise<RunProgram<GPUBuffer>> {
    const gpu = this.#gpu;
    const { kernels } = binding.program;
    const sources = await Promise.all(kernels.map(async ({ file }) => text.decode(await binding.read(file))));
    for (const filter of ['validation', 'out-of-memory'] as const) gpu.pushErrorScope(filter);
    // Error scopes are popped before the first await: another model may be prepared meanwhile.
    const ready = this.#stepsOf(binding, sources);
    const complaints = [gpu.popErrorScope(), gpu.popErrorScope()];
    const steps = await ready;
    for (const [i, complaint] of (await Promise.all(complaints)).entries())
      if (complaint) throw new DeviceError(i === 0 ? 'E_OOM' : 'E_VALIDATION', 'webgpu', complaint.message);
    const { block } = steps;
    return (words, wanted) => {
      const work = (): Promise<Uint8Array[]> => {
        if (words.length > 0) gpu.queue.writeBuffer(block, 0, words);
        return this.#steered(steps.all, wanted);
      };
      return this.#inTurn(
        work,
        steps.all.some(({ guard }) => guard),
      );
    };
  }

  dispose(): void {
    this.#lost = 'the model was disposed of';
    for (const buffer of this.#buffers) buffer.destroy();
    if (this.#isOurs) this.#gpu.destroy();
  }

  #assertAlive(): void {
    if (this.#lost !== undefined) throw new DeviceError('E_DEVICE_LOST', 'webgpu', this.#lost);
  }

  /** Refused after disposal: loading may still be in progress when it has failed elsewhere. */
  #buffer(size: number, usage: number): GPUBuffer {
    this.#assertAlive();
    const buffer = this.#gpu.createBuffer({ size: Math.ceil(size / 16) * 16, usage });
    this.#buffers.push(buffer);
    return buffer;
  }

  /** Everything is asked of the device before the first wait. */
  async #stepsOf(
    { program, placeOf, before, after }: Binding<GPUBuffer>,
    sources: readonly string[],
  ): Promise<{
    readonly all: readonly Step[];
    readonly block: GPUBuffer;
  }> {
    const gpu = this.#gpu;
    const block = this.#buffer(4 * Math.max(4, program.scalars.length), uniform | copyTarget);
    const kernels = program.kernels.map(({ name, bindings, usesScalars }, i) => {
      const types: GPUBufferBindingType[] = bindings.map((access) =>
        access === 'read' ? 'read-only-storage' : 'storage',
      );
      if (usesScalars) types.push('uniform');
      const entries = types.map((type, at) => ({ binding: at, visibility: compute, buffer: { type } }));
      const layout = gpu.createBindGroupLayout({ entries });
      const pipeline = gpu.createComputePipelineAsync({
        label: name,
        layout: gpu.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: {
          module: gpu.createShaderModule({ code: sources[i]!, label: name }),
          entryPoint: name,
        },
      });
      pipeline.catch(() => undefined);
      return { name, usesScalars, layout, pipeline };
    });
    const pipelines: GPUComputePipeline[] = [];
    const single = program.scalars.flatMap(({ input }, slot): GpuCopy[] => {
      if (input === undefined) return [];
      return [{ from: placeOf(program.inputs[input]!), to: { memory: block, offset: 4 * slot }, bytes: 4 }];
    });
    const copies = (list: readonly GpuCopy[]): Step[] => list.flatMap((copy) => this.#copy(copy));
    const stepsOf = (step: ProgramStep): Step[] => {
      if ('steps' in step) {
        const steps = step.steps.flatMap(stepsOf);
        const guard =
          step.kind === 'while'
            ? [{ place: placeOf(step.guard), bytes: 4 }]
            : steps.some(({ guard }) => guard) && [];
        return [{ times: step.times, steps, guard }];
      }
      if (step.kind === 'clear')
        return [{ clear: placeOf(step.buffer), bytes: program.buffers[step.buffer]!.bytes }];
      if (step.kind === 'copy')
        return this.#copy({
          from: placeOf(step.from),
          to: placeOf(step.to),
          bytes: program.buffers[step.from]!.bytes,
        });
      if (step.kind !== 'dispatch' || step.grid.includes(0)) return [];
      const { kernel, grid } = step;
      const { name, usesScalars, layout } = kernels[kernel]!;
      const entries: GPUBindGroupEntry[] = step.buffers.map((index, at) => {
        const { memory, offset } = placeOf(index);
        // Whole vec4s: kernels may read and write a tail of fewer words as one.
        const size = Math.ceil(program.buffers[index]!.bytes / 16) * 16;
        return { binding: at, resource: { buffer: memory, offset, size } };
      });
      if (usesScalars) entries.push({ binding: entries.length, resource: { buffer: block } });
      return [{ pipelines, kernel, group: gpu.createBindGroup({ label: name, layout, entries }), grid }];
    };
    const steps = program.steps.flatMap(stepsOf);
    const all = [...copies([...before, ...single]), ...steps, ...copies(after)];
    for (const { name, pipeline } of kernels) {
      try {
        pipelines.push(await pipeline);
      } catch (error) {
        throw new DeviceError('E_VALIDATION', 'webgpu', (error as Error).message, {
          kernel: name,
          cause: error,
        });
      }
    }
    return { all, block };
  }

  /** WebGPU forbids copies within one buffer: they go by another. */
  #copy({ from, to, bytes }: GpuCopy): Step[] {
    if (from.memory !== to.memory) return [{ copy: { from, to, bytes } }];
    if (from.offset === to.offset) return [];
    const between = { memory: this.#buffer(bytes, copySource | copyTarget), offset: 0 };
    return [{ copy: { from, to: between, bytes } }, { copy: { from: between, to, bytes } }];
  }

  /**
   * Calls `work` at once, or behind a run that the host steers: while that waits for what it reads,
   * nothing else may be submitted.
   */
  #inTurn<T>(work: () => Promise<T>, steers: boolean): Promise<T> {
    const result = this.#steering ? this.#steering.then(work) : work();
    if (steers) this.#steering = result.catch(() => undefined);
    return result;
  }

  /** Submits steps in parts, between which it reads the guards of loops. */
  async #steered(steps: readonly Step[], wanted: Wanted): Promise<Uint8Array[]> {
    const waiting: Step[] = [];
    for (const step of steps) {
      if (!step.guard || !('times' in step)) waiting.push(step);
      else
        for (let { times } = step; times > 0; times--) {
          const [word] = await this.#submit(waiting.splice(0), step.guard);
          if (word?.every((byte) => !byte)) break;
          await this.#steered(step.steps, []);
        }
    }
    return this.#submit(waiting, wanted);
  }

  async #submit(steps: readonly Step[], wanted: Wanted): Promise<Uint8Array[]> {
    this.#assertAlive();
    const gpu = this.#gpu;
    let encoder = gpu.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    let encoded = 0;
    const encode = (step: Step): void => {
      if ('times' in step) {
        for (let time = 0; time < step.times; time++) step.steps.forEach(encode);
        return;
      }
      encoded += 1;
      if (encoded > commandLimit) {
        pass?.end();
        pass = undefined;
        gpu.queue.submit([encoder.finish()]);
        encoder = gpu.createCommandEncoder();
        encoded = 1;
      }
      if ('group' in step) {
        pass ??= encoder.beginComputePass();
        pass.setPipeline(step.pipelines[step.kernel]!);
        pass.setBindGroup(0, step.group);
        pass.dispatchWorkgroups(...step.grid);
        return;
      }
      pass?.end();
      pass = undefined;
      if ('clear' in step) encoder.clearBuffer(step.clear.memory, step.clear.offset, step.bytes);
      else copyBuffer(encoder, step.copy);
    };
    steps.forEach(encode);
    pass?.end();
    let size = 0;
    const parts = wanted.map(({ place, bytes }) => {
      const part = { from: place, start: size, bytes };
      size += 4 * Math.ceil(bytes / 4);
      return part;
    });
    if (size === 0) {
      gpu.queue.submit([encoder.finish()]);
      return parts.map(() => new Uint8Array());
    }
    const staging = gpu.createBuffer({ size, usage: mapRead | copyTarget });
    for (const { from, start, bytes } of parts)
      if (bytes > 0)
        copyBuffer(encoder, {
          from,
          to: { memory: staging, offset: start },
          bytes: 4 * Math.ceil(bytes / 4),
        });
    gpu.queue.submit([encoder.finish()]);
    try {
      await staging.mapAsync(1);
      const bytes = new Uint8Array(staging.getMappedRange());
      return parts.map((part) => bytes.slice(part.start, part.start + part.bytes));
    } catch (error) {
      throw new DeviceError('E_DEVICE_LOST', 'webgpu', this.#lost ?? (error as Error).message, {
        cause: error,
      });
    } finally {
      staging.destroy();
    }
  }
}

function copyBuffer(encoder: GPUCommandEncoder, { from, to, bytes }: GpuCopy): void {
  encoder.copyBufferToBuffer(from.memory, from.offset, to.memory, to.offset, bytes);
}
