// A Program made ready on a WebGPU device. `run` only queues: when its turn comes, all steps go into one command buffer, with
// dispatches in as few passes as the copies allow, and one submit. Bind groups are kept by the buffers they bind, so a loop
// over the same buffers replays without building anything.

import { DeviceError } from '../../errors.ts';
import { checkProgram } from '../check.ts';
import type { DeviceBuffer, DeviceFacts, LoadedProgram } from '../device.ts';
import type { Program } from '../program.ts';
import type { Describe, Failures } from './failures.ts';
import { GpuBuffer, sizeClass, type Memory, type Slab } from './memory.ts';
import type { Compiled, Pipelines } from './pipelines.ts';
import type { Scratch } from './scratch.ts';
import type { Stopwatch } from './stopwatch.ts';
import type { Gate, Timeline } from './timeline.ts';

/** The parts of a device that its programs work with. */
export interface Engine {
  readonly gpu: GPUDevice;
  readonly facts: DeviceFacts;
  readonly timeline: Timeline;
  readonly failures: Failures;
  readonly memory: Memory;
  readonly scratch: Scratch;
  readonly pipelines: Pipelines;
  readonly stopwatch: Stopwatch;
}

type Operation =
  | {
      readonly kind: 'dispatch';
      readonly compiled: Compiled;
      readonly group: GPUBindGroup;
      readonly grid: readonly [number, number, number];
    }
  | { readonly kind: 'copy'; readonly from: Region; readonly to: Region };

interface Region {
  readonly slab: Slab;
  readonly offset: number;
  readonly bytes: number;
}

/** The steps bound to one set of buffers: inputs, outputs and arenas, in this order. */
interface Plan {
  readonly slabs: readonly Slab[];
  readonly operations: readonly Operation[];
  /** The GPU has taken it once: it takes it again, so no error scope need listen. */
  isProven: boolean;
}

/** Sets of buffers remembered whole: enough for a loop that swaps two or three generations of its state. */
const PLANS = 4;

/** Loads a program; throws what can be told at once (E_VALIDATION, E_LIMIT, E_OOM), the rest comes with the first read. */
export function loadProgram(engine: Engine, program: Program): LoadedProgram {
  checkProgram(program, 'wgsl', engine.facts.name);
  checkLimits(program, engine.facts);
  return new WebGpuProgram(engine, program);
}

class WebGpuProgram implements LoadedProgram {
  readonly program: Program;
  readonly #engine: Engine;
  readonly #compiled: readonly Compiled[];
  readonly #gate: Gate;
  /** The program's arenas, and one more to copy through when both ends of a copy lie in the same arena. */
  readonly #arenas: readonly number[];
  readonly #uniform: Slab | undefined;
  /** The scalar block as the GPU has it. */
  #written: Int32Array<ArrayBuffer> | undefined;
  readonly #plans: Plan[] = [];
  readonly #groups = new Map<string, GPUBindGroup>();
  readonly #describe: Describe;
  #destroyed = false;

  constructor(engine: Engine, program: Program) {
    this.program = program;
    this.#engine = engine;
    const bounce = bounceBytes(program);
    this.#arenas = (bounce > 0 ? [...program.arenas, bounce] : program.arenas).map((b) => Math.max(b, 4));
    engine.scratch.claim(this.#arenas);
    const usesScalars = program.kernels.some((kernel) => kernel.usesScalars);
    this.#uniform = usesScalars
      ? engine.memory.uniform.acquire(sizeClass(4 * program.scalars.length))
      : undefined;
    this.#compiled = program.kernels.map((kernel) => engine.pipelines.get(kernel));
    this.#gate = all(this.#compiled);
    this.#describe = describeBy(program, engine.failures.describe, engine.facts.name);
  }

  run(inputs: readonly DeviceBuffer[], outputs: readonly DeviceBuffer[], scalars: readonly number[]): void {
    const { failures, timeline } = this.#engine;
    failures.assertAlive();
    if (this.#destroyed) throw this.#misuse('E_STATE', 'a destroyed program was run');
    const bound = [
      ...this.#bind('input', this.program.inputs, inputs),
      ...this.#bind('output', this.program.outputs, outputs),
    ];
    const words = encodeScalars(this.program, scalars, this.#engine.facts.name);
    const at = failures.tick();
    timeline.push(() => {
      if (!failures.lost) this.#replay(bound, words, at);
    }, this.#gate);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const { scratch, memory, timeline } = this.#engine;
    this.#plans.length = 0;
    this.#groups.clear();
    // Behind the runs still waiting, which take their arenas only when their turn comes.
    timeline.push(() => {
      scratch.release(this.#arenas);
      if (this.#uniform !== undefined) memory.uniform.release(this.#uniform);
    });
  }

  #bind(kind: string, indices: readonly number[], given: readonly DeviceBuffer[]): Slab[] {
    const { program } = this;
    if (given.length !== indices.length) {
      throw this.#misuse('E_VALIDATION', `${given.length} ${kind} buffers given: expected ${indices.length}`);
    }
    return indices.map((index, position) => {
      const buffer = given[position]!;
      const { bytes, name } = program.buffers[index]!;
      if (!(buffer instanceof GpuBuffer)) {
        throw this.#misuse('E_VALIDATION', `${kind} ${position} (${name}) is not a buffer of this device`);
      }
      if (buffer.bytes < bytes) {
        const problem = `${kind} ${position} (${name}) needs ${bytes} bytes and was given ${buffer.bytes}`;
        throw this.#misuse('E_VALIDATION', problem);
      }
      return buffer.slab(this.#engine.memory);
    });
  }

  #replay(bound: readonly Slab[], words: Int32Array<ArrayBuffer>, at: number): void {
    const { failures } = this.#engine;
    const known = this.#known(bound);
    if (known?.isProven === true) {
      failures.attempt(at, this.#describe, () => this.#submit(known, words));
      return;
    }
    let plan = known;
    const work = (): void => {
      this.#checkCompiled();
      plan ??= this.#plan(bound);
      this.#submit(plan, words);
    };
    void failures.guard(at, this.#describe, work).then((isSound) => {
      if (plan !== undefined) plan.isProven = isSound;
    });
  }

  #checkCompiled(): void {
    for (const [i, { failure }] of this.#compiled.entries()) {
      if (failure === undefined) continue;
      const kernel = this.program.kernels[i]!.name;
      throw new DeviceError('E_VALIDATION', this.#engine.facts.name, failure, { kernel });
    }
  }

  #submit(plan: Plan, words: Int32Array<ArrayBuffer>): void {
    const { gpu } = this.#engine;
    this.#writeScalars(words);

    const encoder = gpu.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    let current: Compiled | undefined;
    for (const operation of plan.operations) {
      if (operation.kind === 'copy') {
        pass?.end();
        pass = current = undefined;
        const { from, to } = operation;
        encoder.copyBufferToBuffer(from.slab.gpu, from.offset, to.slab.gpu, to.offset, from.bytes);
        continue;
      }
      pass ??= encoder.beginComputePass(this.#engine.stopwatch.pass);
      if (operation.compiled !== current) {
        current = operation.compiled;
        pass.setPipeline(current.pipeline!);
      }
      pass.setBindGroup(0, operation.group);
      pass.dispatchWorkgroups(operation.grid[0], operation.grid[1], operation.grid[2]);
    }
    pass?.end();
    gpu.queue.submit([encoder.finish()]);
  }

  #writeScalars(words: Int32Array<ArrayBuffer>): void {
    if (this.#uniform === undefined) return;
    const written = this.#written;
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

  /** The plan for these buffers, when it is remembered. */
  #known(bound: readonly Slab[]): Plan | undefined {
    const plans = this.#plans;
    const { scratch } = this.#engine;
    const arenas = this.#arenas;
    const same = (plan: Plan): boolean => {
      const { slabs } = plan;
      for (let i = 0; i < bound.length; i++) if (slabs[i] !== bound[i]) return false;
      for (let i = 0; i < arenas.length; i++) {
        if (slabs[bound.length + i] !== scratch.slab(i)) return false;
      }
      return true;
    };
    const at = plans.findIndex(same);
    if (at > 0) plans.unshift(...plans.splice(at, 1));
    return at < 0 ? undefined : plans[0];
  }

  #plan(bound: readonly Slab[]): Plan {
    const { scratch } = this.#engine;
    const slabs = [...bound, ...this.#arenas.map((_, i) => scratch.slab(i))];
    const plan = { slabs, operations: this.#operations(slabs), isProven: false };
    this.#plans.unshift(plan);
    if (this.#plans.length > PLANS) this.#plans.pop();
    return plan;
  }

  #operations(slabs: readonly Slab[]): Operation[] {
    const { inputs, outputs, buffers, kernels, steps } = this.program;
    const arenaSlabs = slabs.slice(inputs.length + outputs.length);
    const external = new Map<number, Slab>();
    outputs.forEach((index, i) => external.set(index, slabs[inputs.length + i]!));
    inputs.forEach((index, i) => external.set(index, slabs[i]!));
    const region = (index: number): Region => {
      const buffer = buffers[index]!;
      const slab = buffer.role === 'scratch' ? arenaSlabs[buffer.arena!]! : external.get(index)!;
      return { slab, offset: buffer.role === 'scratch' ? buffer.offset! : 0, bytes: buffer.bytes };
    };

    const operations: Operation[] = [];
    const copy = (from: Region, to: Region): void => {
      if (from.slab !== to.slab) operations.push({ kind: 'copy', from, to });
      else if (from.offset !== to.offset) {
        // WebGPU forbids copies within one buffer.
        const between = { slab: arenaSlabs.at(-1)!, offset: 0, bytes: from.bytes };
        operations.push({ kind: 'copy', from, to: between }, { kind: 'copy', from: between, to });
      }
    };
    if (this.#groups.size > 16 * steps.length) this.#groups.clear();
    steps.forEach((step, position) => {
      if (step.kind === 'copy') copy(region(step.from), region(step.to));
      if (step.kind !== 'dispatch' || step.grid.includes(0)) return;
      const compiled = this.#compiled[step.kernel]!;
      const regions = step.buffers.map(region);
      const key = `${position}:${regions.map(({ slab }) => slab.id).join()}`;
      let group = this.#groups.get(key);
      if (group === undefined) {
        this.#checkAliasing(step.kernel, step.buffers, regions);
        group = this.#group(kernels[step.kernel]!, compiled, regions);
        this.#groups.set(key, group);
      }
      operations.push({ kind: 'dispatch', compiled, group, grid: step.grid });
    });
    // An output that is an input passed through, or another output once more, is copied unless it is the same buffer.
    outputs.forEach((index, i) => {
      const given = slabs[inputs.length + i]!;
      copy(region(index), { slab: given, offset: 0, bytes: buffers[index]!.bytes });
    });
    return operations;
  }

  #group(
    kernel: { name: string; usesScalars: boolean },
    compiled: Compiled,
    regions: Region[],
  ): GPUBindGroup {
    const entries: GPUBindGroupEntry[] = regions.map(({ slab, offset, bytes }, binding) => ({
      binding,
      // Whole vec4s: a tail of fewer than four words may be read and written as one (slabs and offsets are multiples of 256).
      resource: { buffer: slab.gpu, offset, size: Math.ceil(bytes / 16) * 16 },
    }));
    if (kernel.usesScalars) {
      entries.push({ binding: entries.length, resource: { buffer: this.#uniform!.gpu } });
    }
    return this.#engine.gpu.createBindGroup({ label: kernel.name, layout: compiled.groupLayout, entries });
  }

  /** One buffer may not be bound both ways in one dispatch, nor be written through two overlapping bindings. */
  #checkAliasing(kernelIndex: number, indices: readonly number[], regions: readonly Region[]): void {
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

  #misuse(code: 'E_STATE' | 'E_VALIDATION', problem: string): DeviceError {
    return new DeviceError(code, this.#engine.facts.name, problem);
  }
}

/** Open when every kernel has compiled or failed. */
function all(compiled: readonly Compiled[]): Gate {
  const gate = { open: compiled.every(({ open }) => open), opened: Promise.resolve() };
  if (!gate.open) {
    gate.opened = Promise.all(compiled.map(({ opened }) => opened)).then(() => {
      gate.open = true;
    });
  }
  return gate;
}

/** The largest copy between two scratch buffers of one arena. */
function bounceBytes({ steps, buffers }: Program): number {
  let most = 0;
  for (const step of steps) {
    if (step.kind !== 'copy') continue;
    const from = buffers[step.from]!;
    const to = buffers[step.to]!;
    const within = from.role === 'scratch' && to.role === 'scratch' && from.arena === to.arena;
    if (within && from.offset !== to.offset) most = Math.max(most, from.bytes);
  }
  return most;
}

function checkLimits(program: Program, facts: DeviceFacts): void {
  const { limits, name } = facts;
  const exceed = (what: string, value: number, limit: number, kernel?: string): void => {
    if (value <= limit) return;
    const options = kernel === undefined ? {} : { kernel };
    throw new DeviceError('E_LIMIT', name, `${what} ${value} exceeds the limit ${limit}`, options);
  };
  for (const kernel of program.kernels) {
    exceed('the number of storage buffers', kernel.bindings.length, limits.storageBuffers, kernel.name);
    const invocations = kernel.workgroup[0] * kernel.workgroup[1] * kernel.workgroup[2];
    exceed('the workgroup size', invocations, limits.workgroupInvocations, kernel.name);
  }
  for (const step of program.steps) {
    if (step.kind === 'host') {
      throw new DeviceError('E_UNSUPPORTED', name, `host step ${step.run}: only the interpreter runs these`);
    }
    if (step.kind !== 'dispatch') continue;
    const kernel = program.kernels[step.kernel]!;
    for (const count of step.grid) {
      exceed('the workgroup count', count, limits.workgroupsPerDimension, kernel.name);
    }
    for (const index of step.buffers) {
      const { bytes, name } = program.buffers[index]!;
      exceed(`the size of ${name}`, bytes, limits.bindingBytes, kernel.name);
    }
  }
}

function encodeScalars(
  program: Program,
  scalars: readonly number[],
  device: string,
): Int32Array<ArrayBuffer> {
  const expected = program.scalars.length;
  if (scalars.length !== expected) {
    throw new DeviceError('E_VALIDATION', device, `${scalars.length} scalars given: expected ${expected}`);
  }
  const words = new Int32Array(expected);
  const floats = new Float32Array(words.buffer);
  program.scalars.forEach(({ dtype }, i) => {
    const value = scalars[i]!;
    if (dtype === 'f32') floats[i] = value;
    else words[i] = dtype === 'bool' ? Number(value !== 0) : value;
  });
  return words;
}

/** Names the kernel whose label the GPU's message quotes, as its pipeline or its bind group carries it. */
function describeBy(program: Program, plain: Describe, device: string): Describe {
  const names = new Set(program.kernels.map((kernel) => kernel.name));
  return (code, message) => {
    const error = plain(code, message);
    for (const [, label] of message.matchAll(/"([^"]+)"/g)) {
      if (names.has(label!))
        return new DeviceError(code, device, stripPrefix(error, device), { kernel: label! });
    }
    return error;
  };
}

function stripPrefix(error: DeviceError, device: string): string {
  return error.message.slice(`${device}: `.length);
}
