// Images of machine code (or PTX) on one device, by the hash of their bytes: each is loaded once, and unloaded with the device.

import type { Context } from '../api/context.ts';

export class Images {
  readonly #context: Context;
  readonly #modules = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** The driver's module of an image that is loaded. */
  get(hash: string): number | undefined {
    return this.#modules.get(hash);
  }

  /** Loads an image, unless it is; throws E_VALIDATION where the driver refuses it. */
  load(hash: string, image: Uint8Array): number {
    const known = this.#modules.get(hash);
    if (known !== undefined) return known;
    const { cu, cell } = this.#context.driver;
    this.#context.use();
    const result = cu.cuModuleLoadData(cell.address, image);
    this.#context.check(result, 'cuModuleLoadData', `loading ${image.length} bytes of machine code`);
    const module = cell.number();
    this.#modules.set(hash, module);
    return module;
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
    for (const module of this.#modules.values()) this.#context.driver.cu.cuModuleUnload(module);
    this.#modules.clear();
  }
}
