// The interpreter's device: plain memory, and Programs whose steps are host functions and copies.
// It is the oracle for the other backends and the fallback that runs anywhere; runs happen at once,
// in order.

import { DeviceError, SinterError } from '../../errors.ts';
import { ranksOf, type Communicator, type Ranks } from '../communicator.ts';
import { checkProgram } from '../check.ts';
import type {
  Backend,
  Device,
  DeviceAllocation,
  DeviceFacts,
  HostFunctions,
  LoadedProgram,
} from '../device.ts';
import { everyStep, type Program, type ProgramStep } from '../program.ts';
import type { Sharing, NativeMemory } from '../sharing.ts';
import { Turns } from '../turns.ts';

const NAME = 'interpreter';

/** The reference device; it opens everywhere. */
export const interpreterBackend: Backend = {
  name: NAME,
  open: () => Promise.resolve(new InterpreterDevice()),
};

const FACTS: DeviceFacts = {
  name: NAME,
  target: 'interpreter',
  description: 'reference interpreter in JavaScript',
  software: true,
  features: [],
  limits: {
    storageBuffers: Infinity,
    bufferBytes: 2 ** 32,
    bindingBytes: 2 ** 32,
    workgroupBytes: 0,
    workgroupInvocations: 1,
    workgroupsPerDimension: Infinity,
  },
};

class HostBuffer implements DeviceAllocation {
  readonly bytes: number;
  readonly owner: InterpreterDevice;
  memory: Uint8Array | undefined;
  readonly #ended: (() => void) | undefined;

  /** `ended`: the memory is not the device's own; called when the handle is destroyed. */
  constructor(memory: Uint8Array, owner: InterpreterDevice, ended?: () => void) {
    this.bytes = memory.length;
    this.owner = owner;
    this.memory = memory;
    this.#ended = ended;
  }

  destroy(): void {
    if (this.memory === undefined) return;
    this.memory = undefined;
    if (this.#ended === undefined) this.owner.forget(this);
    else this.#ended();
  }
}

class InterpreterDevice implements Device {
  readonly facts: DeviceFacts = FACTS;
  // Weak, so that a dropped handle frees its memory like any other JavaScript value.
  #live = 0;
  #buffers = 0;
  readonly #dropped = new FinalizationRegistry<number>((bytes) => this.#discount(bytes));
  #failure: DeviceError | SinterError | undefined;
  readonly #turns = new Turns();
  #destroyed = false;
  #sharing: Sharing | undefined;
  #communicator: Communicator | undefined;
  readonly ranks: Ranks = ranksOf(NAME, () => this.#communicator);

  get lost(): boolean {
    return this.#destroyed;
  }

  allocate(bytes: number): DeviceAllocation {
    this.assertAlive();
    if (!(Number.isInteger(bytes / 4) && bytes >= 4)) {
      throw failure(
        'E_VALIDATION',
        `a buffer of ${bytes} bytes was asked for: not a multiple of 4, at least 4`,
      );
    }
    if (bytes > FACTS.limits.bufferBytes) {
      throw failure(
        'E_LIMIT',
        `a buffer of ${bytes} bytes was asked for: the largest is ${FACTS.limits.bufferBytes}`,
      );
    }
    let memory: Uint8Array;
    try {
      // All ones is NaN in every float format: reading what was never written shows.
      memory = new Uint8Array(bytes).fill(0xff);
    } catch (cause) {
      throw failure('E_OOM', `a buffer of ${bytes} bytes: ${String(cause)}`);
    }
    const buffer = new HostBuffer(memory, this);
    this.#live += bytes;
    this.#buffers += 1;
    this.#dropped.register(buffer, bytes, buffer);
    return buffer;
  }

  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    const memory = this.memoryOf(buffer);
    if (bytes.length > memory.length) {
      throw failure('E_VALIDATION', `${bytes.length} bytes were written to a buffer of ${memory.length}`);
    }
    memory.set(bytes);
  }

  async read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    const memory = this.memoryOf(buffer);
    if (!(Number.isInteger(bytes) && bytes >= 0 && bytes <= memory.length)) {
      throw failure('E_VALIDATION', `${bytes} bytes were read from a buffer of ${memory.length}`);
    }
    this.#deliver();
    const taken = memory.slice(0, bytes);
    await this.#turns.give();
    return taken;
  }

  peek(buffer: DeviceAllocation, bytes: number): Uint8Array | undefined {
    return this.#failure === undefined ? this.memoryOf(buffer).subarray(0, bytes) : undefined;
  }

  load(program: Program, host: HostFunctions = {}): LoadedProgram {
    this.assertAlive();
    checkProgram(program, NAME, NAME);
    for (const step of everyStep(program.steps)) {
      if (step.kind === 'dispatch') {
        const kernel = program.kernels[step.kernel]!.name;
        throw new DeviceError('E_UNSUPPORTED', NAME, 'the interpreter runs host steps, not dispatches', {
          kernel,
        });
      }
      if (step.kind === 'host' && host[step.run] === undefined) {
        throw failure('E_VALIDATION', `the host function ${step.run} was not given`);
      }
    }
    return new InterpretedProgram(this, program, host);
  }

  get communicator(): Communicator | undefined {
    return this.#communicator;
  }

  join(communicator: Communicator): void {
    this.#communicator = communicator;
  }

  async finish(): Promise<void> {
    this.assertAlive();
    this.#deliver();
    await this.#turns.give();
  }

  sharing(): Promise<Sharing> {
    this.#sharing ??= hostSharing({
      name: NAME,
      memoryOf: (buffer) => this.memoryOf(buffer),
      lend: (bytes, ended) => new HostBuffer(bytes, this, ended),
      assertAlive: () => this.assertAlive(),
    });
    return Promise.resolve(this.#sharing);
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return { live: this.#live, pooled: 0, buffers: this.#buffers };
  }

  destroy(): void {
    this.#destroyed = true;
  }

  assertAlive(): void {
    if (this.#destroyed) throw failure('E_DEVICE_LOST', 'the device was destroyed');
  }

  memoryOf(buffer: DeviceAllocation): Uint8Array {
    this.assertAlive();
    if (!(buffer instanceof HostBuffer && buffer.owner === this)) {
      throw failure('E_VALIDATION', 'a buffer of another device was used');
    }
    if (buffer.memory === undefined) {
      throw failure('E_STATE', `a destroyed buffer of ${buffer.bytes} bytes was used`);
    }
    return buffer.memory;
  }

  forget(buffer: HostBuffer): void {
    this.#dropped.unregister(buffer);
    this.#discount(buffer.bytes);
  }

  fail(error: SinterError): void {
    this.#failure ??= error;
  }

  #discount(bytes: number): void {
    this.#live -= bytes;
    this.#buffers -= 1;
  }

  #deliver(): void {
    const first = this.#failure;
    this.#failure = undefined;
    if (first !== undefined) throw first;
  }
}

class InterpretedProgram implements LoadedProgram {
  readonly program: Program;
  readonly #device: InterpreterDevice;
  readonly #host: HostFunctions;
  #arenas: readonly Uint8Array[] | undefined;

  constructor(device: InterpreterDevice, program: Program, host: HostFunctions) {
    this.program = program;
    this.#device = device;
    this.#host = host;
    this.#arenas = program.arenas.map((bytes) => new Uint8Array(bytes));
  }

  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void {
    this.#device.assertAlive();
    const arenas = this.#arenas;
    if (arenas === undefined) throw failure('E_STATE', 'a destroyed program was run');
    const { program } = this;
    if (scalars.length !== program.scalars.length) {
      throw failure('E_VALIDATION', `${scalars.length} scalars given: expected ${program.scalars.length}`);
    }
    const external = new Map<number, Uint8Array>();
    const given = this.#bind('output', program.outputs, outputs);
    program.outputs.forEach((index, i) => external.set(index, given[i]!));
    this.#bind('input', program.inputs, inputs).forEach((memory, i) =>
      external.set(program.inputs[i]!, memory),
    );
    this.#layOut(external);
    const memoryOf = (index: number): Uint8Array => {
      const { role, bytes, arena, offset } = program.buffers[index]!;
      if (role !== 'scratch') return external.get(index)!;
      return arenas[arena!]!.subarray(offset!, offset! + bytes);
    };
    try {
      const take = (step: ProgramStep): void => {
        if (step.kind === 'copy') memoryOf(step.to).set(memoryOf(step.from));
        if (step.kind === 'clear') memoryOf(step.buffer).fill(0);
        if (step.kind === 'host')
          this.#call(step.run, step.reads.map(memoryOf), step.writes.map(memoryOf), scalars);
        if (step.kind === 'repeat') for (let time = 0; time < step.times; time++) step.steps.forEach(take);
        if (step.kind === 'while')
          for (let time = 0; time < step.times && isSet(memoryOf(step.guard)); time++)
            step.steps.forEach(take);
      };
      program.steps.forEach(take);
      program.outputs.forEach((index, i) => {
        if (given[i] !== memoryOf(index)) given[i]!.set(memoryOf(index));
      });
    } catch (error) {
      this.#device.fail(
        error instanceof SinterError
          ? error
          : failure('E_VALIDATION', `a host function threw: ${String(error)}`, error),
      );
    }
  }

  destroy(): void {
    this.#arenas = undefined;
  }

  allocateOutputs(): DeviceAllocation[] {
    const { buffers, outputs } = this.program;
    const fresh = [...new Set(outputs)].filter((index) => buffers[index]!.role === 'output');
    return fresh.map((index) => this.#device.allocate(buffers[index]!.bytes));
  }

  /** Copies the members of packs into one buffer for a run; results are copied back from there. */
  #layOut(external: Map<number, Uint8Array>): void {
    const { packs, buffers } = this.program;
    for (const { buffer, members } of packs) {
      const whole = new Uint8Array(buffers[buffer]!.bytes);
      external.set(buffer, whole);
      for (const member of members) {
        const given = external.get(member.buffer)!;
        whole.set(given, member.offset);
        external.set(member.buffer, whole.subarray(member.offset, member.offset + given.length));
      }
    }
  }

  #bind(kind: string, indices: readonly number[], given: readonly DeviceAllocation[]): Uint8Array[] {
    if (given.length !== indices.length) {
      throw failure('E_VALIDATION', `${given.length} ${kind} buffers given: expected ${indices.length}`);
    }
    return indices.map((index, position) => {
      const { bytes, name } = this.program.buffers[index]!;
      const memory = this.#device.memoryOf(given[position]!);
      if (memory.length >= bytes) return memory.subarray(0, bytes);
      throw failure(
        'E_VALIDATION',
        `${kind} ${position} (${name}) needs ${bytes} bytes and was given ${memory.length}`,
      );
    });
  }

  #call(
    name: string,
    reads: readonly Uint8Array[],
    writes: readonly Uint8Array[],
    scalars: readonly number[],
  ): void {
    const results = this.#host[name]!(reads, scalars, this.#device.ranks);
    if (results.length !== writes.length) {
      throw failure(
        'E_VALIDATION',
        `host function ${name} gave ${results.length} results: expected ${writes.length}`,
      );
    }
    results.forEach((result, i) => {
      const target = writes[i]!;
      // Elements are packed from the start; padding at the end of a buffer is never read.
      if (result.length > target.length) {
        const sizes = `${result.length} bytes for a buffer of ${target.length}`;
        throw failure('E_VALIDATION', `host function ${name}, result ${i}: ${sizes}`);
      }
      target.set(result);
    });
  }
}

function failure(
  code: 'E_VALIDATION' | 'E_LIMIT' | 'E_OOM' | 'E_STATE' | 'E_DEVICE_LOST',
  problem: string,
  cause?: unknown,
): DeviceError {
  return new DeviceError(code, NAME, problem, { cause });
}

/** Whether the i32 at the start of this memory is not 0. */
function isSet(memory: Uint8Array): boolean {
  return memory.subarray(0, 4).some((byte) => byte !== 0);
}

// The interpreter shared with other code: its memory is typed arrays, so arrays of the caller's are
// buffers as they are, and views of buffers are theirs.

/** What the device itself does for this. */
interface HostMemory {
  readonly name: string;
  memoryOf(buffer: DeviceAllocation): Uint8Array;
  /** A handle to bytes that exist; `ended` is called when it is destroyed. */
  lend(bytes: Uint8Array, ended: () => void): DeviceAllocation;
  assertAlive(): void;
}

function hostSharing(host: HostMemory): Sharing {
  const holders = new WeakMap<DeviceAllocation, { count: number; readonly ended: () => void }>();
  /** A handle that counts for the memory which `holder` stands for. */
  const handle = (
    bytes: Uint8Array,
    holder: { count: number; readonly ended: () => void },
  ): DeviceAllocation => {
    holder.count += 1;
    const made = host.lend(bytes, () => {
      holder.count -= 1;
      if (holder.count === 0) holder.ended();
    });
    holders.set(made, holder);
    return made;
  };
  return {
    native: { api: 'host' },
    alignment: 4,
    queues: 1,
    async wrap(given, ended) {
      host.assertAlive();
      const refuse = (problem: string): DeviceError => new DeviceError('E_VALIDATION', host.name, problem);
      if (given.api !== 'host') throw refuse(`memory of ${given.api} is none of this device`);
      const { bytes } = given;
      if (bytes.length === 0) throw refuse('the memory has no bytes');
      return handle(bytes, { count: 0, ended });
    },
    part(buffer, offset, bytes) {
      const memory = host.memoryOf(buffer).subarray(offset, offset + bytes);
      return handle(memory, holders.get(buffer) ?? { count: 0, ended: () => undefined });
    },
    place: (buffer): NativeMemory => ({ api: 'host', bytes: host.memoryOf(buffer) }),
    room: (buffer) => host.memoryOf(buffer).length,
    view: (buffer) => host.memoryOf(buffer),
    writeProblem: () => undefined,
    copy(from, to, bytes) {
      // Memory of others may end within a word.
      const target = host.memoryOf(to);
      target.set(host.memoryOf(from).subarray(0, Math.min(bytes, target.length)));
    },
    submitted: async () => host.assertAlive(),
    trim: () => undefined,
    keepAtMost: () => undefined,
  };
}
