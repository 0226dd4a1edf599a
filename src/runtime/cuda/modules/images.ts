// Images of machine code (or PTX) on one device, by the hash of their bytes: each is loaded once.
// It is unloaded when it has no users left and all work that was queued until then is done, else
// with the device.

import type { CudaContext } from '../api/context.ts';
import type { Fences } from '../fences.ts';

interface Image {
  /** The driver's module. */
  readonly module: number;
  users: number;
}

/** A module without users, and the epoch after which no kernel of it runs. */
interface Leaving {
  readonly module: number;
  readonly epoch: number;
}

export class Images {
  readonly #context: CudaContext;
  readonly #fences: Fences;
  readonly #images = new Map<string, Image>();
  /** Oldest first. */
  readonly #leaving: Leaving[] = [];

  constructor(context: CudaContext, fences: Fences) {
    this.#context = context;
    this.#fences = fences;
  }

  /**
   * The driver's module of an image, for one more user. Where it is not loaded yet `read` gives its
   * bytes; undefined where `read` has none. Throws E_VALIDATION where the driver refuses it.
   */
  take(hash: string, read: () => Uint8Array): number;
  take(hash: string, read: () => Uint8Array | undefined): number | undefined;
  take(hash: string, read: () => Uint8Array | undefined): number | undefined {
    const known = this.#images.get(hash);
    if (known !== undefined) {
      known.users += 1;
      return known.module;
    }
    const image = read();
    if (image === undefined) return undefined;
    this.#unload();
    const { cu, cell } = this.#context.driver;
    this.#context.use();
    const result = cu.cuModuleLoadData(cell.address, image);
    this.#context.check(result, 'cuModuleLoadData', `loading ${image.length} bytes of machine code`);
    const module = cell.number();
    this.#images.set(hash, { module, users: 1 });
    return module;
  }

  /** Ends one use. */
  release(hash: string): void {
    const image = this.#images.get(hash);
    if (image === undefined) return;
    image.users -= 1;
    if (image.users > 0) return;
    this.#images.delete(hash);
    this.#leaving.push({ module: image.module, epoch: this.#fences.latest });
    this.#unload();
  }

  /** The entry point of this name. */
  function(module: number, name: string): number {
    const { cu, cell } = this.#context.driver;
    this.#context.use();
    const result = cu.cuModuleGetFunction(cell.address, module, name);
    this.#context.check(result, 'cuModuleGetFunction', `looking for its entry point ${name}`, name);
    return cell.number();
  }

  destroy(): void {
    for (const { module } of [...this.#leaving, ...this.#images.values()])
      this.#context.driver.cu.cuModuleUnload(module);
    this.#leaving.length = 0;
    this.#images.clear();
  }

  /** Unloads modules without users whose epoch is done; does not wait, and never throws. */
  #unload(): void {
    const context = this.#context;
    if (this.#leaving.length === 0) return;
    context.attempt(context.failures.now, () => {
      for (let first = this.#leaving[0]; first !== undefined; first = this.#leaving[0]) {
        if (!this.#fences.isDone(first.epoch)) return;
        this.#leaving.shift();
        context.driver.cu.cuModuleUnload(first.module);
      }
    });
  }
}
