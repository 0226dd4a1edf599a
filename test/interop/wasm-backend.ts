// A backend as a user of `sinter/runtime` writes one: Sinter's WebAssembly programs on a memory of its
// own, without pools, threads or plans. It imports nothing but the public entry.

import type { Backend, BackendBuffer, Device, LoadedProgram, Program } from 'sinter/runtime';

type Run = (group: number, end: number, ...addresses: number[]) => void;

/** Memory that only grows; a buffer is a range of it. */
export class PlainWasm implements Device {
  readonly facts: Device['facts'];
  readonly heap: WebAssembly.Memory = new WebAssembly.Memory({ initial: 16, maximum: 65_535 });
  lost = false;
  /** Kernels that were called, by name. */
  readonly calls: string[] = [];
  #end = 256;
  readonly #places = new Map<BackendBuffer, number>();

  constructor(name: string) {
    this.facts = {
      name,
      target: 'wasm',
      description: 'WebAssembly without anything around it',
      software: true,
      features: ['simd128'],
      threads: 1,
      limits: {
        storageBuffers: 64,
        bufferBytes: 2 ** 28,
        bindingBytes: 2 ** 28,
        workgroupBytes: 2 ** 21,
        workgroupInvocations: 1024,
        workgroupsPerDimension: 2 ** 30,
      },
    };
  }

  allocate(bytes: number): BackendBuffer {
    const buffer: BackendBuffer = { bytes, destroy: () => void this.#places.delete(buffer) };
    this.#places.set(buffer, this.take(bytes));
    return buffer;
  }

  take(bytes: number): number {
    const start = this.#end;
    this.#end += Math.ceil(bytes / 256) * 256;
    const missing = this.#end - this.heap.buffer.byteLength;
    if (missing > 0) this.heap.grow(Math.ceil(missing / 65_536));
    return start;
  }

  addressOf(buffer: BackendBuffer): number {
    const found = this.#places.get(buffer);
    if (found === undefined) throw new Error('a buffer of another device');
    return found;
  }

  write(buffer: BackendBuffer, bytes: Uint8Array): void {
    new Uint8Array(this.heap.buffer).set(bytes, this.addressOf(buffer));
  }

  async read(buffer: BackendBuffer, bytes: number): Promise<Uint8Array> {
    const start = this.addressOf(buffer);
    return new Uint8Array(this.heap.buffer).slice(start, start + bytes);
  }

  load(program: Program): LoadedProgram {
    return new PlainProgram(this, program);
  }

  async finish(): Promise<void> {}

  memory(): { live: number; pooled: number; buffers: number } {
    return { live: this.#end, pooled: 0, buffers: this.#places.size };
  }

  destroy(): void {
    this.lost = true;
  }
}

class PlainProgram implements LoadedProgram {
  readonly program: Program;
  readonly #device: PlainWasm;
  readonly #kernels: readonly Run[];
  readonly #arenas: readonly number[];
  readonly #scratch: number;
  readonly #scalars: number;

  constructor(device: PlainWasm, program: Program) {
    this.program = program;
    this.#device = device;
    this.#kernels = program.kernels.map(({ source }) => {
      const bytes = Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0));
      const module = new WebAssembly.Module(bytes);
      return new WebAssembly.Instance(module, { env: { memory: device.heap } }).exports['run'] as Run;
    });
    this.#arenas = program.arenas.map((bytes) => device.take(Math.max(4, bytes)));
    this.#scratch = device.take(Math.max(4, ...program.kernels.map(({ sharedBytes = 0 }) => sharedBytes)));
    this.#scalars = device.take(4 * Math.max(1, program.scalars.length));
  }

  allocateOutputs(): BackendBuffer[] {
    const { buffers, outputs } = this.program;
    const fresh = [...new Set(outputs)].filter((index) => buffers[index]!.role === 'output');
    return fresh.map((index) => this.#device.allocate(buffers[index]!.bytes));
  }

  run(inputs: readonly BackendBuffer[], outputs: readonly BackendBuffer[], scalars: readonly number[]): void {
    const { program } = this;
    const { buffers, packs, steps, kernels } = program;
    const places = new Map<number, number>();
    program.outputs.forEach((index, i) => places.set(index, this.#device.addressOf(outputs[i]!)));
    program.inputs.forEach((index, i) => places.set(index, this.#device.addressOf(inputs[i]!)));
    const addressOf = (index: number): number => {
      const { role, arena = 0, offset = 0 } = buffers[index]!;
      return role === 'scratch' ? this.#arenas[arena]! + offset : places.get(index)!;
    };
    // Growing ends views.
    const heap = (): Uint8Array => new Uint8Array(this.#device.heap.buffer);
    const copy = (from: number, to: number, bytes: number): void =>
      void heap().copyWithin(to, from, from + bytes);
    // Packs are copied together, and back.
    const back: (() => void)[] = [];
    for (const { buffer, members } of packs) {
      const start = this.#device.take(buffers[buffer]!.bytes);
      places.set(buffer, start);
      for (const member of members) {
        const [own, { bytes }] = [places.get(member.buffer)!, buffers[member.buffer]!];
        copy(own, start + member.offset, bytes);
        back.push(() => copy(start + member.offset, own, bytes));
        places.set(member.buffer, start + member.offset);
      }
    }
    const words = new DataView(this.#device.heap.buffer, this.#scalars);
    program.scalars.forEach(({ dtype, input }, i) => {
      if (input !== undefined) copy(addressOf(program.inputs[input]!), this.#scalars + 4 * i, 4);
      else if (dtype === 'f32') words.setFloat32(4 * i, scalars[i]!, true);
      else words.setInt32(4 * i, scalars[i]!, true);
    });
    for (const step of steps) {
      if (step.kind === 'copy') copy(addressOf(step.from), addressOf(step.to), buffers[step.from]!.bytes);
      if (step.kind === 'clear')
        heap().fill(0, addressOf(step.buffer), addressOf(step.buffer) + buffers[step.buffer]!.bytes);
      if (step.kind !== 'dispatch') continue;
      const { name, usesScalars, sharedBytes = 0 } = kernels[step.kernel]!;
      const args = step.buffers.map(addressOf);
      if (usesScalars) args.push(this.#scalars);
      if (sharedBytes > 0) args.push(this.#scratch);
      this.#kernels[step.kernel]!(0, step.grid[0] * step.grid[1] * step.grid[2], ...args);
      this.#device.calls.push(name);
    }
    for (const put of back) put();
    program.outputs.forEach((index, i) => {
      copy(addressOf(index), this.#device.addressOf(outputs[i]!), buffers[index]!.bytes);
    });
  }

  destroy(): void {}
}

/** The backend, and the devices that it opened. */
export function plainBackend(name: string): Backend & { readonly opened: PlainWasm[] } {
  const opened: PlainWasm[] = [];
  return {
    name,
    opened,
    async open() {
      const device = new PlainWasm(name);
      opened.push(device);
      return device;
    },
  };
}
