// Node only: the kernels of one device, shared by all its programs. In: a program's kernels; out:
// functions, at once where they are known or on disk, else some time later. What has to be compiled
// is compiled in few NVRTC programs, since each one costs as much as a small kernel; equal sources
// are compiled once, whatever their kernels are called.

import { DeviceError } from '../../../errors.ts';
import type { ProgramKernel } from '../../program.ts';
import { SharedEntries } from '../../shared.ts';
import type { Gate } from '../../timeline.ts';
import type { CudaCompiler } from './compiler.ts';
import type { CudaContext } from '../api/context.ts';
import type { Images } from './images.ts';
import { hashOf, type Cubins } from './cubins.ts';

/** A kernel that compiles, has compiled, or has failed to. */
export interface CompiledFunction extends Gate {
  /** The driver's function; 0 while there is none. */
  readonly func: number;
  /** Why there is no function; the message names the kernel. */
  readonly failure: KernelFailure | undefined;
  /** The image that the function lies in, which the kernel holds. */
  readonly image: string | undefined;
}

export type KernelFailure = (kernel: string) => DeviceError;

/**
 * Kernels that an NVRTC program holds at least, when there are enough, and programs that compile at
 * once at most.
 */
const TOGETHER = 4;
const AT_ONCE = 3;

interface State {
  open: boolean;
  opened: Promise<void>;
  func: number;
  failure: KernelFailure | undefined;
  image: string | undefined;
}

/** A kernel to compile, and what its users wait for. */
interface Order {
  readonly key: string;
  readonly kernel: ProgramKernel;
  readonly state: State;
}

export class CudaModules {
  readonly #context: CudaContext;
  readonly #compiler: CudaCompiler;
  readonly #cubins: Cubins;
  readonly #images: Images;
  readonly #known: SharedEntries<CompiledFunction>;

  constructor(context: CudaContext, images: Images, compiler: CudaCompiler, cubins: Cubins) {
    this.#context = context;
    this.#images = images;
    this.#compiler = compiler;
    this.#cubins = cubins;
    this.#known = new SharedEntries(({ image }) => {
      if (image !== undefined) images.release(image);
    });
  }

  /** The functions of a program's kernels, in order, for one more program. */
  get(kernels: readonly ProgramKernel[]): readonly CompiledFunction[] {
    const orders: Order[] = [];
    const states = kernels.map((kernel) => {
      const key = this.#keyOf(kernel);
      return this.#known.take(key, () => {
        const state: State = {
          open: false,
          opened: Promise.resolve(),
          func: 0,
          failure: undefined,
          image: undefined,
        };
        if (this.#fromDisk(key, state)) state.open = true;
        else orders.push({ key, kernel, state });
        return state;
      });
    });
    for (const batch of batches(orders)) {
      const done = this.#compile(batch);
      for (const { state } of batch) {
        state.opened = done.then(() => {
          state.open = true;
        });
      }
    }
    return states;
  }

  /** Ends one program's use, once the work that it has queued is done. */
  release(kernels: readonly CompiledFunction[]): void {
    for (const kernel of kernels) this.#known.release(kernel);
  }

  /** How many kernels there are, those that no program runs included. */
  get count(): number {
    return this.#known.count;
  }

  /** Kernels that differ only in their name are the same kernel. */
  #keyOf({ name, source }: ProgramKernel): string {
    const nameless = source.replaceAll(new RegExp(`\\b${name}(?=\\b|_module\\b)`, 'g'), '\0');
    return hashOf(`${this.#compiler.version}\n${nameless}`);
  }

  #fromDisk(key: string, state: State): boolean {
    const found = this.#cubins.find(key);
    if (found === undefined) return false;
    try {
      const module = this.#images.take(found.image, () => this.#cubins.read(found.image));
      if (module === undefined) return false;
      state.image = found.image;
      state.func = this.#images.function(module, found.entry);
      return true;
    } catch (error) {
      if (state.image !== undefined) this.#images.release(state.image);
      state.image = undefined;
      // The image may be for another driver: it is compiled again. If the device is lost, later
      // calls fail.
      if (error instanceof DeviceError) return false;
      throw error;
    }
  }

  /** Fills the states of a batch; never rejects. */
  async #compile(batch: readonly Order[]): Promise<void> {
    try {
      const compilation = await this.#compiler.compile(batch.map(({ kernel }) => kernel));
      this.#context.failures.assertAlive();
      if ('image' in compilation) {
        this.#adopt(compilation.image, batch);
        return;
      }
      const { complaints, log } = compilation;
      const sound = batch.filter(({ kernel, state }) => {
        const complaint = complaints.get(kernel.name) ?? (batch.length === 1 ? log : undefined);
        if (complaint !== undefined) state.failure = this.#refusal(complaint);
        return complaint === undefined;
      });
      // Those that the log does not name compile without the others, or each alone when it names
      // none.
      const again = sound.length < batch.length ? [sound] : sound.map((order) => [order]);
      for (const orders of again) if (orders.length > 0) await this.#compile(orders);
    } catch (error) {
      for (const { state } of batch) {
        if (state.func !== 0 || state.failure !== undefined) continue;
        state.failure = this.#failed(error);
      }
    }
  }

  #adopt(image: Uint8Array, batch: readonly Order[]): void {
    const hash = hashOf(image);
    const module = this.#images.take(hash, () => image);
    for (const { kernel, state } of batch) {
      try {
        state.func = this.#images.function(module, kernel.name);
        // It may have been evicted while it compiled.
        if (!this.#known.has(state)) continue;
        this.#images.take(hash, () => image);
        state.image = hash;
      } catch (error) {
        state.failure = this.#failed(error);
      }
    }
    this.#images.release(hash);
    const sound = batch.filter(({ state }) => state.func !== 0);
    this.#cubins.write(image, new Map(sound.map(({ key, kernel }) => [key, kernel.name])));
  }

  #refusal(complaint: string): KernelFailure {
    const { name } = this.#context;
    return (kernel) =>
      new DeviceError('E_VALIDATION', name, `CUDA C does not compile: ${complaint}`, { kernel });
  }

  #failed(error: unknown): KernelFailure {
    const failure =
      error instanceof DeviceError
        ? error
        : new DeviceError('E_DEVICE', this.#context.name, String(error), { cause: error });
    return () => failure;
  }
}

/** Orders that compile together: as many programs as may compile at once, of equal length. */
function batches(orders: readonly Order[]): Order[][] {
  const count = Math.min(AT_ONCE, Math.ceil(orders.length / TOGETHER));
  const parts = Array.from({ length: count }, () => ({ length: 0, orders: [] as Order[] }));
  const byLength = [...orders].sort((a, b) => b.kernel.source.length - a.kernel.source.length);
  for (const order of byLength) {
    const shortest = parts.reduce((a, b) => (b.length < a.length ? b : a));
    shortest.orders.push(order);
    shortest.length += order.kernel.source.length;
  }
  return parts.map((part) => part.orders);
}
