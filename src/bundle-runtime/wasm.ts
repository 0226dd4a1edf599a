// Programs of a bundle on WebAssembly: one memory that grows as a model is loaded, modules that are
// made once, and the threads of the runtime where memory can be shared.

import { DeviceError } from '../errors.ts';
import { checkAllowed } from '../runtime/wasm/allowed.ts';
import { cutsOf, type JobCut } from '../runtime/wasm/cut.ts';
import type { ProgramStep } from '../runtime/program.ts';
import { withSharedMemory } from '../runtime/wasm/imports.ts';
import type { Code, LoadedKernel } from '../runtime/wasm/modules.ts';
import { Pool, type PoolJob } from '../runtime/wasm/pool.ts';
import { spawn, threadCount } from '../runtime/wasm/threads.ts';
import type { RunWorkgroups as RunKernel } from '../runtime/wasm/worker.ts';
import type { Binding, Copy, Machine, ByteLocation, RunProgram } from './machine.ts';

const page = 65_536;

/** A machine with so many threads, else as many as the runtime takes. Rejects with E_DEVICE where a page forbids WebAssembly. */
export async function openWasm(threads: number | undefined): Promise<Machine<number>> {
  checkAllowed('wasm');
  const { count } = threadCount(threads);
  const memory = (shared: boolean): WebAssembly.Memory =>
    new WebAssembly.Memory({ initial: 1, maximum: page, shared });
  if (count > 1) {
    const common = memory(true);
    // A page may allow no workers: then there is one thread.
    const pool = await Pool.open('wasm', count, common, spawn).catch(() => undefined);
    if (pool !== undefined) return new Wasm(common, pool);
  }
  return new Wasm(memory(false), undefined);
}

class Wasm implements Machine<number> {
  readonly description: string;
  #memory: WebAssembly.Memory;
  readonly #pool: Pool | undefined;
  /** Address 0 means no address. */
  #end = 256;
  #kernels = 0;
  #scratch = { address: 0, bytes: 0 };

  constructor(memory: WebAssembly.Memory, pool: Pool | undefined) {
    this.#memory = memory;
    this.#pool = pool;
    const threads = pool ? `${pool.threads} threads` : 'one thread';
    this.description = `WebAssembly SIMD, ${threads}`;
  }

  allocate(bytes: number): number {
    const start = this.#end;
    const end = start + 256 * Math.ceil(bytes / 256);
    const missing = Math.ceil((end - this.#memory.buffer.byteLength) / page);
    try {
      if (missing > 0) this.#memory.grow(missing);
    } catch (cause) {
      throw new DeviceError('E_OOM', 'wasm', `${bytes} bytes were asked for beyond ${start}`, { cause });
    }
    this.#end = end;
    return start;
  }

  write(place: ByteLocation<number>, bytes: Uint8Array): void {
    this.#bytes().set(bytes, addressOf(place));
  }

  async read(place: ByteLocation<number>, bytes: number): Promise<Uint8Array> {
    const start = addressOf(place);
    return this.#bytes().slice(start, start + bytes);
  }

  async prepare({ program, read, placeOf, before, after }: Binding<number>): Promise<RunProgram<number>> {
    const address = (buffer: number): number => addressOf(placeOf(buffer));
    const kernels = await Promise.all(
      program.kernels.map(async ({ file }) => this.#kernel(await read(file))),
    );
    const block = this.allocate(4 * Math.max(1, program.scalars.length));
    const cuts = cutsOf(program, this.#pool?.threads ?? 1);
    // Kernels run one after another, so they share the scratch memory of each thread.
    const own = (this.#pool?.threads ?? 1) * Math.max(0, ...program.kernels.map(scratchOf));
    if (own > this.#scratch.bytes) this.#scratch = { address: this.allocate(own), bytes: own };
    const scratch = this.#scratch.address;
    const single = program.scalars.flatMap(({ input }, slot) =>
      input === undefined ? [] : [this.#copy(address(program.inputs[input]!), block + 4 * slot, 4)],
    );
    const copies = (list: readonly Copy<number>[]): (() => void)[] =>
      list.map(({ from, to, bytes }) => this.#copy(addressOf(from), addressOf(to), bytes));
    const stepOf = (step: ProgramStep): (() => void) => {
      if (step.kind === 'repeat' || step.kind === 'while') {
        const turn = step.steps.map(stepOf);
        const guard = step.kind === 'while' ? address(step.guard) : 0;
        const goesOn = (): boolean =>
          !guard ||
          this.#bytes()
            .subarray(guard, guard + 4)
            .some(Boolean);
        return () => {
          for (let time = 0; time < step.times && goesOn(); time++) for (const each of turn) each();
        };
      }
      if (step.kind === 'copy')
        return this.#copy(address(step.from), address(step.to), program.buffers[step.from]!.bytes);
      if (step.kind === 'clear') {
        const [at, { bytes }] = [address(step.buffer), program.buffers[step.buffer]!];
        return () => void this.#bytes().fill(0, at, at + bytes);
      }
      if (step.kind === 'host' || step.kind === 'collective') return () => undefined;
      const args = step.buffers.map(address);
      const described = program.kernels[step.kernel]!;
      if (described.usesScalars) args.push(block);
      const bytes = scratchOf(described);
      const work = {
        name: described.name,
        groups: step.grid[0] * step.grid[1] * step.grid[2],
        args,
        ...(bytes > 0 && { scratch: { address: scratch, bytes } }),
      };
      return this.#dispatch(work, kernels[step.kernel]!, cuts.get(step));
    };
    const steps = program.steps.map(stepOf);
    const all = [...copies(before), ...single, ...steps, ...copies(after)];
    return (words, wanted) => {
      this.#bytes().set(new Uint8Array(words.buffer), block);
      for (const step of all) step();
      return Promise.all(wanted.map(({ place, bytes }) => this.read(place, bytes)));
    };
  }

  dispose(): void {
    // A disposed model that is still referenced keeps no memory alive.
    this.#memory = new WebAssembly.Memory({ initial: 0 });
    void this.#pool?.close();
  }

  /** All bytes; a memory that has grown has new ones. */
  #bytes(): Uint8Array {
    return new Uint8Array(this.#memory.buffer);
  }

  #copy(from: number, to: number, bytes: number): () => void {
    return () => void this.#bytes().copyWithin(to, from, from + bytes);
  }

  /** Other threads make instances of their own, from the module in the memory. */
  async #kernel(source: Uint8Array<ArrayBuffer>): Promise<Loaded> {
    const module = this.#pool ? withSharedMemory(source) : source;
    const compiled = await WebAssembly.compile(module);
    const instance = await WebAssembly.instantiate(compiled, { env: { memory: this.#memory } });
    const kernel = { id: this.#kernels++, run: instance.exports['run'] as RunKernel, module };
    const code = { address: 0, bytes: module.length };
    if (!this.#pool) return { kernel, code };
    code.address = this.allocate(module.length);
    this.#bytes().set(module, code.address);
    return { kernel, code };
  }

  #dispatch(
    work: Omit<PoolJob, 'kernel' | 'code' | 'cut'>,
    { kernel, code }: Loaded,
    cut: JobCut | undefined,
  ): () => void {
    const pool = this.#pool;
    const { groups, args, scratch } = work;
    if (groups === 0) return () => undefined;
    if (pool !== undefined && cut !== undefined) {
      const job = { ...work, kernel, code, cut };
      return () => pool.run(job);
    }
    const all = [0, groups, ...args, ...(scratch === undefined ? [] : [scratch.address])];
    return () => kernel.run(...all);
  }
}

interface Loaded {
  readonly kernel: LoadedKernel;
  readonly code: Code;
}

/** Bytes of one thread's scratch memory, in whole cache lines. */
function scratchOf({ sharedBytes = 0 }: { readonly sharedBytes?: number }): number {
  return 128 * Math.ceil(sharedBytes / 128);
}

function addressOf({ memory, offset }: ByteLocation<number>): number {
  return memory + offset;
}
