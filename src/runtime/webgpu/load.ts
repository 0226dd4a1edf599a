// A Program made ready on a WebGPU device. `run` only queues. When the run is next in the queue, all its
// steps go into one command buffer and one submit. If the host steers loops, they go into several, and work
// that was queued after the run waits for it. Bind groups are kept by the buffer ranges that they bind, so a
// loop over the same buffers builds nothing.

import { DeviceError } from '../../errors.ts';
import { givenBuffers, outputBuffers, Plans, type FittedPlan } from '../plans.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, LoadedProgram } from '../device.ts';
import { ProgramLayout, type Arrangement, type Mover } from '../layout.ts';
import { checkLimits, encodeScalars } from '../limits.ts';
import { everyStep, type Program, type ProgramStep } from '../program.ts';
import { sizeClass } from '../slabs.ts';
import type { WebGpuEngine } from './engine.ts';
import type { Describe } from './failures.ts';
import type { GpuPlace, GpuSlab } from './memory.ts';
import type { CompiledPipeline } from './pipelines.ts';
import type { GpuOperation, GpuRegion } from './operations.ts';
import { isSteered, steerOperations } from './steer.ts';
import { gateOf, type Gate } from '../timeline.ts';

/** The steps bound to one set of places, and one of arenas. */
interface Plan extends FittedPlan<GPUBuffer> {
  readonly operations: readonly GpuOperation[];
  /** The GPU has accepted it once and will again, so no error scope is needed. */
  isProven: boolean;
}

/**
 * Loads a program; throws what can be told at once (E_VALIDATION, E_LIMIT, E_OOM), the rest comes
 * with the first read.
 */
export function loadProgram(engine: WebGpuEngine, program: Program): LoadedProgram {
  checkProgram(program, 'wgsl', engine.facts.name);
  checkLimits(program, engine.facts);
  return new WebGpuProgram(engine, program);
}

class WebGpuProgram implements LoadedProgram {
  readonly program: Program;
  readonly #engine: WebGpuEngine;
  readonly #compiled: readonly CompiledPipeline[];
  readonly #gate: Gate;
  /**
   * The program's arenas, and one more to copy through when both ends of a copy lie in the same
   * arena.
   */
  readonly #arenas: readonly number[];
  readonly #uniform: GpuSlab | undefined;
  /** The contents of the scalar block on the GPU. */
  #written: Int32Array<ArrayBuffer> | undefined;
  readonly #plans: Plans<GPUBuffer, Plan>;
  readonly #groups = new Map<string, GPUBindGroup>();
  readonly #layout: ProgramLayout<GPUBuffer>;
  readonly #describe: Describe;
  readonly #isSteered: boolean;
  #destroyed = false;

  constructor(engine: WebGpuEngine, program: Program) {
    this.program = program;
    this.#engine = engine;
    this.#isSteered = isSteered(program);
    const bounce = bounceBytes(program);
    this.#arenas = (bounce > 0 ? [...program.arenas, bounce] : program.arenas).map((b) => Math.max(b, 4));
    engine.scratch.claim(this.#arenas);
    const usesScalars = program.kernels.some((kernel) => kernel.usesScalars);
    this.#uniform = usesScalars
      ? engine.memory.uniform.acquire(sizeClass(4 * program.scalars.length))
      : undefined;
    this.#compiled = program.kernels.map((kernel) => engine.pipelines.get(kernel));
    this.#gate = gateOf(this.#compiled);
    this.#layout = new ProgramLayout(moverOf(engine), program);
    this.#plans = new Plans(engine.memory, engine.scratch, program);
    this.#describe = describeBy(program, engine.failures.describe, engine.facts.name);
  }

  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void {
    const { failures, timeline } = this.#engine;
    failures.assertAlive();
    if (this.#destroyed) {
      throw new DeviceError('E_STATE', this.#engine.facts.name, 'a destroyed program was run');
    }
    const given = givenBuffers<GPUBuffer>(this.program, this.#engine.facts.name, inputs, outputs);
    // Moves buffers that lie in the wrong place.
    const arrangement = this.#plans.arrangementOf(given) ?? this.#layout.arrange(given);
    const words = encodeScalars(this.program, scalars, this.#engine.facts.name);
    const at = failures.tick();
    timeline.push(() => (failures.lost ? undefined : this.#replay(arrangement, words, at)), this.#gate);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const { scratch, memory, timeline, pipelines } = this.#engine;
    this.#plans.clear();
    this.#groups.clear();
    // Queued after waiting runs, which read their arenas only when they are encoded.
    timeline.push(() => {
      scratch.release(this.#arenas);
      for (const compiled of this.#compiled) pipelines.release(compiled);
      if (this.#uniform !== undefined) memory.uniform.release(this.#uniform);
    });
  }

  allocateOutputs(): DeviceAllocation[] {
    const { memory, failures } = this.#engine;
    failures.assertAlive();
    return outputBuffers(this.program, memory);
  }

  /** Gives a promise where the host has to steer: what comes after waits for it. */
  #replay(
    arrangement: Arrangement<GPUBuffer>,
    words: Int32Array<ArrayBuffer>,
    at: number,
  ): Promise<void> | undefined {
    const { failures } = this.#engine;
    const known = this.#plans.known(arrangement);
    if (this.#isSteered) return this.#steer(known, arrangement, words, at);
    if (known?.isProven === true) {
      failures.attempt(at, this.#describe, () => this.#submit(known, words));
      return undefined;
    }
    let plan = known;
    const work = (): void => {
      this.#checkCompiled();
      plan ??= this.#plan(arrangement);
      this.#submit(plan, words);
    };
    void failures.guard(at, this.#describe, work).then((isSound) => {
      if (plan !== undefined) plan.isProven = isSound && !failures.isShared;
    });
    return undefined;
  }

  /** Operations in parts, with what is read between them; ends at the first failure. */
  async #steer(
    known: Plan | undefined,
    arrangement: Arrangement<GPUBuffer>,
    words: Int32Array<ArrayBuffer>,
    at: number,
  ): Promise<void> {
    const { failures } = this.#engine;
    let plan = known;
    const part = (work: () => void): Promise<boolean> => failures.guard(at, this.#describe, work);
    const isReady = await part(() => {
      this.#checkCompiled();
      plan ??= this.#plan(arrangement);
      this.#writeScalars(words);
    });
    if (isReady && plan !== undefined) await steerOperations(this.#engine, plan.operations, part);
  }

  #checkCompiled(): void {
    for (const [i, { failure }] of this.#compiled.entries()) {
      if (failure === undefined) continue;
      const kernel = this.program.kernels[i]!.name;
      throw new DeviceError('E_VALIDATION', this.#engine.facts.name, failure, { kernel });
    }
  }

  #submit(plan: Plan, words: Int32Array<ArrayBuffer>): void {
    this.#writeScalars(words);
    this.#engine.commands.submit(plan.operations);
  }

  #writeScalars(words: Int32Array<ArrayBuffer>): void {
    if (this.#uniform === undefined) return;
    const written = this.#written;
    if (words.length === 0) return;
    if (written !== undefined && words.every((word, i) => word === written[i])) return;
    this.#written = words;
    this.#engine.gpu.queue.writeBuffer(
      this.#uniform.gpu,
      0,
      words.buffer,
      words.byteOffset,
      words.byteLength,
    );
  }

  #plan(arrangement: Arrangement<GPUBuffer>): Plan {
    const { scratch } = this.#engine;
    const arenas = this.#arenas.map((_, arena) => scratch.slab(arena));
    const operations = this.#operations(arrangement.places, arenas);
    const plan = { arrangement, arenas, operations, isProven: false };
    this.#plans.add(plan);
    return plan;
  }

  #operations(places: readonly GpuPlace[], arenas: readonly GpuSlab[]): GpuOperation[] {
    const { inputs, outputs, packs, buffers, kernels, steps, scalars } = this.program;
    const external = new Map<number, GpuPlace>();
    packs.forEach(({ buffer }, i) => external.set(buffer, places[inputs.length + outputs.length + i]!));
    outputs.forEach((index, i) => external.set(index, places[inputs.length + i]!));
    inputs.forEach((index, i) => external.set(index, places[i]!));
    const region = (index: number): GpuRegion => {
      const { role, arena, offset, bytes } = buffers[index]!;
      return role === 'scratch'
        ? { slab: arenas[arena!]!, offset: offset!, bytes }
        : { ...external.get(index)!, bytes };
    };

    const copy = (from: GpuRegion, to: GpuRegion): GpuOperation[] => {
      if (from.slab !== to.slab) return [{ kind: 'copy', from, to }];
      if (from.offset === to.offset) return [];
      // WebGPU forbids copies within one buffer.
      const between = { slab: arenas.at(-1)!, offset: 0, bytes: from.bytes };
      return [
        { kind: 'copy', from, to: between },
        { kind: 'copy', from: between, to },
      ];
    };
    const uniform = this.#uniform;
    const single = scalars.flatMap(({ input }, slot): GpuOperation[] => {
      if (input === undefined || uniform === undefined) return [];
      const to = { slab: uniform, offset: 4 * slot, bytes: 4 };
      return [{ kind: 'copy', from: { ...region(inputs[input]!), bytes: 4 }, to }];
    });
    const count = [...everyStep(steps)].length;
    if (this.#groups.size > 16 * count) this.#groups.clear();
    const operationsOf = (step: ProgramStep): GpuOperation[] => {
      if (step.kind === 'copy') return copy(region(step.from), region(step.to));
      if (step.kind === 'clear') return [{ kind: 'clear', region: region(step.buffer) }];
      if (step.kind === 'repeat')
        return [{ kind: 'repeat', times: step.times, operations: step.steps.flatMap(operationsOf) }];
      if (step.kind === 'while')
        return [{ ...step, guard: region(step.guard), operations: step.steps.flatMap(operationsOf) }];
      if (step.kind !== 'dispatch' || step.grid.includes(0)) return [];
      const compiled = this.#compiled[step.kernel]!;
      const regions = step.buffers.map(region);
      // Layers that share scratch memory share bind groups too. A group has the name of its kernel.
      const ranges = regions.map(({ slab, offset, bytes }) => `${slab.id}+${offset}+${bytes}`);
      const key = `${step.kernel}:${ranges.join()}`;
      let group = this.#groups.get(key);
      if (group === undefined) {
        this.#checkAliasing(step.kernel, step.buffers, regions);
        group = this.#group(kernels[step.kernel]!, compiled, regions);
        this.#groups.set(key, group);
      }
      return [{ kind: 'dispatch', pipeline: compiled.pipeline!, group, grid: step.grid }];
    };
    const made = steps.flatMap(operationsOf);
    // An output that is an input passed through, or another output once more, is copied unless it
    // is the same buffer.
    const repeats = outputs.flatMap((index, i) =>
      copy(region(index), { ...places[inputs.length + i]!, bytes: buffers[index]!.bytes }),
    );
    return [...single, ...made, ...repeats];
  }

  #group(
    kernel: { name: string; usesScalars: boolean },
    compiled: CompiledPipeline,
    regions: GpuRegion[],
  ): GPUBindGroup {
    const entries: GPUBindGroupEntry[] = regions.map(({ slab, offset, bytes }, binding) => ({
      binding,
      // Whole vec4s: a tail of fewer than four words may be read and written as one (slabs and
      // offsets are multiples of 256).
      resource: { buffer: slab.gpu, offset, size: Math.ceil(bytes / 16) * 16 },
    }));
    if (kernel.usesScalars) {
      entries.push({ binding: entries.length, resource: { buffer: this.#uniform!.gpu } });
    }
    return this.#engine.gpu.createBindGroup({ label: kernel.name, layout: compiled.groupLayout, entries });
  }

  /**
   * A dispatch may not bind one buffer for reading and for writing, nor write through overlapping
   * bindings.
   */
  #checkAliasing(kernelIndex: number, indices: readonly number[], regions: readonly GpuRegion[]): void {
    const kernel = this.program.kernels[kernelIndex]!;
    regions.forEach((one, i) => {
      for (let j = 0; j < i; j++) {
        const other = regions[j]!;
        if (one.slab !== other.slab) continue;
        const differ = kernel.bindings[i] !== kernel.bindings[j];
        const overlap = one.offset < other.offset + other.bytes && other.offset < one.offset + one.bytes;
        if (!differ && !(overlap && kernel.bindings[i] === 'read_write')) continue;
        const names = [indices[j]!, indices[i]!]
          .map((index) => this.program.buffers[index]!.name)
          .join(' and ');
        throw new DeviceError(
          'E_VALIDATION',
          this.#engine.facts.name,
          differ
            ? `${names} lie in one buffer, bound both read and read_write`
            : `${names} overlap and are both written`,
          { kernel: kernel.name },
        );
      }
    });
  }
}

/** How handles are moved: copies in one command buffer, inside error scopes. */
function moverOf({ gpu, timeline, failures, memory }: WebGpuEngine): Mover<GPUBuffer> {
  return {
    timeline,
    failures,
    memory,
    mayShareSlabs: false,
    copy: (at, copies) =>
      void failures.guard(at, failures.describe, () => {
        const encoder = gpu.createCommandEncoder();
        for (const { from, to, bytes } of copies) {
          encoder.copyBufferToBuffer(from.slab.gpu, from.offset, to.slab.gpu, to.offset, bytes);
        }
        gpu.queue.submit([encoder.finish()]);
      }),
  };
}

/**
 * Names the kernel whose label the GPU's message quotes, as its pipeline or its bind group carries
 * it.
 */
function describeBy(program: Program, plain: Describe, device: string): Describe {
  const names = new Set(program.kernels.map((kernel) => kernel.name));
  return (code, message) => {
    const error = plain(code, message);
    for (const [, label] of message.matchAll(/["'`]([^"'`]+)["'`]/g)) {
      if (names.has(label!))
        return new DeviceError(code, device, stripPrefix(error, device), { kernel: label! });
    }
    return error;
  };
}

function stripPrefix(error: DeviceError, device: string): string {
  return error.message.slice(`${device}: `.length);
}

// WebGPU forbids copies within one buffer: they go by another, which has room for the largest.

/** The largest copy between two scratch buffers of one arena. */
function bounceBytes({ steps, buffers }: Program): number {
  let largest = 0;
  for (const step of everyStep(steps)) {
    if (step.kind !== 'copy') continue;
    const from = buffers[step.from]!;
    const to = buffers[step.to]!;
    const within = from.role === 'scratch' && to.role === 'scratch' && from.arena === to.arena;
    if (within && from.offset !== to.offset) largest = Math.max(largest, from.bytes);
  }
  return largest;
}
