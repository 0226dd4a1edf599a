// Allocations of a device, by size class, and the pools of those that are free. Handles to parts of
// them are memory.ts's.

/** One allocation of the device. `id` is never used again, so caches may key on it. */
export interface Slab<Gpu> {
  readonly id: number;
  readonly gpu: Gpu;
  /** The size of its class, at least what was asked for. */
  readonly bytes: number;
}

/** How the device makes a slab, and takes it back; `create` throws E_OOM when there is no more. */
export interface SlabSource<Gpu> {
  create(bytes: number): Gpu;
  destroy(gpu: Gpu): void;
}

/**
 * Rounds up to a size class: four to an octave, so at most a quarter is wasted, and multiples of
 * 256.
 */
export function sizeClass(bytes: number): number {
  if (bytes <= 1024) return Math.max(256, Math.ceil(bytes / 256) * 256);
  const step = 2 ** (Math.floor(Math.log2(bytes - 1)) - 2);
  return Math.ceil(bytes / step) * step;
}

/** Free slabs of one usage, by size class; the one freed longest ago is destroyed first. */
export class SlabPool<Gpu> {
  readonly #create: (bytes: number) => Slab<Gpu>;
  readonly #retire: (slab: Slab<Gpu>) => void;
  readonly #byClass = new Map<number, Slab<Gpu>[]>();
  readonly #byAge = new Set<Slab<Gpu>>();
  free = 0;

  constructor(create: (bytes: number) => Slab<Gpu>, retire: (slab: Slab<Gpu>) => void) {
    this.#create = create;
    this.#retire = retire;
  }

  get count(): number {
    return this.#byAge.size;
  }

  /** A free slab of exactly this class, when there is one. */
  reuse(size: number): Slab<Gpu> | undefined {
    const slab = this.#byClass.get(size)?.pop();
    if (slab === undefined) return undefined;
    this.#byAge.delete(slab);
    this.free -= slab.bytes;
    return slab;
  }

  acquire(size: number): Slab<Gpu> {
    return this.reuse(size) ?? this.#create(size);
  }

  release(slab: Slab<Gpu>): void {
    const peers = this.#byClass.get(slab.bytes);
    if (peers === undefined) this.#byClass.set(slab.bytes, [slab]);
    else peers.push(slab);
    this.#byAge.add(slab);
    this.free += slab.bytes;
  }

  /** Destroys free slabs, oldest first, until at most `keep` bytes of them are left. */
  trim(keep: number): void {
    for (const slab of this.#byAge) {
      if (this.free <= keep) return;
      const peers = this.#byClass.get(slab.bytes)!;
      peers.splice(peers.indexOf(slab), 1);
      this.#byAge.delete(slab);
      this.free -= slab.bytes;
      this.#retire(slab);
    }
  }
}
