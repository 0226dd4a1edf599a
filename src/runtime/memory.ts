// Memory of any GPU API (`Gpu`: a GPUBuffer, an address). Handles take almost no space in the JS
// heap, so the garbage collector does not react to the GPU memory they hold: slabs are pooled by
// size class, given back explicitly, trimmed above a bound, and above a high-water mark the
// collector is asked to find handles that were dropped without `destroy`. A handle stands for a
// whole slab or for a part of one that it shares with others, and may be moved from one to another.

import { DeviceError } from '../errors.ts';
import type { DeviceAllocation } from './device.ts';
import { sizeClass, SlabPool, type Slab, type SlabSource } from './slabs.ts';
import type { Timeline } from './timeline.ts';

/** Where a handle's bytes start. */
export interface MemoryLocation<Gpu> {
  readonly slab: Slab<Gpu>;
  /** Bytes, a multiple of 256. */
  readonly offset: number;
}

/** A handle and the offset in a slab at which it is to lie. */
export interface Tenant<Gpu> {
  readonly buffer: GpuBuffer<Gpu>;
  readonly offset: number;
}

const MiB = 2 ** 20;
/** Free slabs kept however little is in use. */
const POOL_FLOOR = 64 * MiB;
/** Below this, dropped handles are found by the garbage collector when it runs by itself. */
const HIGH_WATER_FLOOR = 256 * MiB;
/**
 * This many handles also reach the high-water mark: a small GPUBuffer costs kilobytes in the
 * driver.
 */
const CROWD_FLOOR = 4096;

/**
 * A handle's claim on memory: an object of its own, so that it survives the handle's collection.
 */
interface Lease<Gpu> {
  place: MemoryLocation<Gpu> | undefined;
  readonly handle: WeakRef<GpuBuffer<Gpu>>;
}

/** What the tensor layer holds: memory of one tensor. */
export class GpuBuffer<Gpu> implements DeviceAllocation {
  readonly bytes: number;
  readonly #memory: BufferPools<Gpu>;
  readonly #lease: Lease<Gpu>;

  constructor(bytes: number, place: MemoryLocation<Gpu>, memory: BufferPools<Gpu>) {
    this.bytes = bytes;
    this.#memory = memory;
    this.#lease = { place, handle: new WeakRef(this) };
    memory.adopt(this, this.#lease);
  }

  /** Where it lies in `memory`; throws when destroyed or when it belongs to another device. */
  place(memory: BufferPools<Gpu>): MemoryLocation<Gpu> {
    if (memory !== this.#memory) throw memory.misuse('a buffer of another device was used');
    return this.#lease.place ?? memory.refuseDestroyed(this.bytes);
  }

  /** One more handle, to some of its bytes: the memory is kept until the last handle ends. */
  part(memory: BufferPools<Gpu>, offset: number, bytes: number): GpuBuffer<Gpu> {
    const place = this.place(memory);
    memory.divide(this.#lease);
    return new GpuBuffer(bytes, { slab: place.slab, offset: place.offset + offset }, memory);
  }

  /** Records its new place; the caller copies its bytes. */
  move(to: MemoryLocation<Gpu>): void {
    this.#memory.move(this.#lease, to);
  }

  destroy(): void {
    this.#memory.end(this.#lease);
  }
}

export interface MemoryLimits {
  /** Largest single buffer. */
  readonly bufferBytes: number;
  /** All buffers together, free ones included. */
  readonly budget: number;
}

/**
 * All buffers of one device: tensors', programs' scratch and scalars, and what a backend pools
 * besides.
 */
export class BufferPools<Gpu> {
  readonly #device: string;
  readonly #limits: MemoryLimits;
  readonly #timeline: Timeline;
  readonly #pools: SlabPool<Gpu>[] = [];
  readonly #leases = new Set<Lease<Gpu>>();
  /** The leases of slabs that several handles share. */
  readonly #shared = new Map<Slab<Gpu>, Set<Lease<Gpu>>>();
  /** Memory that is not ours, and what is told to its owner once no handle is left. */
  readonly #lent = new Map<Slab<Gpu>, () => void>();
  readonly #dropped = new FinalizationRegistry<Lease<Gpu>>((lease) => this.end(lease));
  readonly #collect: (() => void) | undefined = collector();
  #nextId = 0;
  #held = 0;
  #highWater = HIGH_WATER_FLOOR;
  #crowd = CROWD_FLOOR;
  #kept = Infinity;

  readonly storage: SlabPool<Gpu>;

  constructor(device: string, limits: MemoryLimits, timeline: Timeline, source: SlabSource<Gpu>) {
    this.#device = device;
    this.#limits = limits;
    this.#timeline = timeline;
    this.storage = this.pool(source);
  }

  /** One more pool, counted and trimmed with the others. */
  protected pool(source: SlabSource<Gpu>): SlabPool<Gpu> {
    const pool = new SlabPool<Gpu>(
      (size) => this.#create(size, source),
      (slab) => {
        this.#held -= slab.bytes;
        // Queued on the timeline: earlier work may still be waiting to use it.
        this.#timeline.push(() => source.destroy(slab.gpu));
      },
    );
    this.#pools.push(pool);
    return pool;
  }

  /** A handle to at least `bytes` of storage; throws E_LIMIT, or E_OOM when the budget is spent. */
  allocate(bytes: number): GpuBuffer<Gpu> {
    if (!(Number.isInteger(bytes / 4) && bytes >= 4)) {
      throw this.misuse(`a buffer of ${bytes} bytes was asked for: not a multiple of 4, at least 4`);
    }
    return new GpuBuffer(bytes, { slab: this.scratch(bytes), offset: 0 }, this);
  }

  /**
   * Handles to parts of one new slab of `bytes`, in order; it goes back when the last of them ends.
   */
  allocateTogether(
    bytes: number,
    parts: readonly { readonly offset: number; readonly bytes: number }[],
  ): GpuBuffer<Gpu>[] {
    const slab = this.#share(bytes);
    return parts.map((part) => new GpuBuffer(part.bytes, { slab, offset: part.offset }, this));
  }

  /**
   * Moves handles into one new slab of `bytes`; gives it, and where each was. A handle that is
   * given twice is moved to the first of its places; the other places get copies of its bytes. The
   * caller makes all copies at once.
   */
  gather(
    bytes: number,
    tenants: readonly Tenant<Gpu>[],
  ): { readonly slab: Slab<Gpu>; readonly from: readonly MemoryLocation<Gpu>[] } {
    const from = tenants.map(({ buffer }) => buffer.place(this));
    const slab = this.#share(bytes);
    const moved = new Set<GpuBuffer<Gpu>>();
    for (const { buffer, offset } of tenants) {
      if (!moved.has(buffer)) buffer.move({ slab, offset });
      moved.add(buffer);
    }
    return { slab, from };
  }

  /**
   * A handle to memory of someone else's, at `offset` of what `gpu` stands for; `ended` is called
   * when neither this handle nor a part of it is left.
   */
  wrap(
    gpu: Gpu,
    whole: number,
    { offset, bytes }: { readonly offset: number; readonly bytes: number },
    ended: () => void,
  ): GpuBuffer<Gpu> {
    const slab = { id: this.#nextId++, gpu, bytes: whole };
    this.#shared.set(slab, new Set());
    this.#lent.set(slab, ended);
    return new GpuBuffer(bytes, { slab, offset }, this);
  }

  /** From now on other handles may lie in the slab of this one. */
  divide(lease: Lease<Gpu>): void {
    const { slab } = lease.place!;
    if (!this.#shared.has(slab)) this.#shared.set(slab, new Set([lease]));
  }

  /** Whether more than this many handles lie in a part of the slab. */
  isCrowded(slab: Slab<Gpu>, offset: number, bytes: number, tenants: number): boolean {
    const inside = [...(this.#shared.get(slab) ?? [])].filter(({ place }) => {
      return place !== undefined && place.offset >= offset && place.offset < offset + bytes;
    });
    return inside.length > tenants;
  }

  #share(bytes: number): Slab<Gpu> {
    const slab = this.scratch(bytes);
    this.#shared.set(slab, new Set());
    return slab;
  }

  /** A slab of storage without a handle, for a program's scratch; give it back with `recycle`. */
  scratch(bytes: number): Slab<Gpu> {
    return this.storage.acquire(this.sizeOf(bytes));
  }

  /**
   * Takes a slab of storage back into the pool, and trims the pool when it outgrows what is in use.
   */
  recycle(slab: Slab<Gpu>): void {
    const ended = this.#lent.get(slab);
    if (ended !== undefined) {
      this.#lent.delete(slab);
      this.#timeline.push(ended);
      return;
    }
    this.storage.release(slab);
    this.storage.trim(Math.min(this.#kept, Math.max(POOL_FLOOR, this.#live())));
  }

  /** Gives free slabs back until at most `keep` bytes of them are left, and finds dropped handles. */
  shrink(keep: number): void {
    this.#findDropped();
    this.#trim(keep);
  }

  /** Bytes of free slabs that are kept at most, from now on. */
  keepAtMost(bytes: number): void {
    this.#kept = bytes;
    this.#trim(bytes);
  }

  report(): { live: number; pooled: number; buffers: number } {
    return { live: this.#live(), pooled: this.#pooled(), buffers: this.#leases.size };
  }

  adopt(handle: GpuBuffer<Gpu>, lease: Lease<Gpu>): void {
    this.#leases.add(lease);
    this.#shared.get(lease.place!.slab)?.add(lease);
    this.#dropped.register(handle, lease, lease);
  }

  end(lease: Lease<Gpu>): void {
    if (lease.place === undefined) return;
    this.#leases.delete(lease);
    this.#dropped.unregister(lease);
    this.move(lease, undefined);
  }

  move(lease: Lease<Gpu>, to: MemoryLocation<Gpu> | undefined): void {
    const from = lease.place?.slab;
    lease.place = to;
    if (to !== undefined) this.#shared.get(to.slab)?.add(lease);
    if (from === undefined || from === to?.slab) return;
    const others = this.#shared.get(from);
    others?.delete(lease);
    if (others !== undefined && others.size > 0) return;
    this.#shared.delete(from);
    this.recycle(from);
  }

  misuse(problem: string): DeviceError {
    return new DeviceError('E_VALIDATION', this.#device, problem);
  }

  refuseDestroyed(bytes: number): never {
    throw new DeviceError('E_STATE', this.#device, `a destroyed buffer of ${bytes} bytes was used`);
  }

  #live(): number {
    return this.#held - this.#pooled();
  }

  #pooled(): number {
    return this.#pools.reduce((free, pool) => free + pool.free, 0);
  }

  /** The size class, within what one buffer may have; throws E_LIMIT. */
  protected sizeOf(bytes: number): number {
    const { bufferBytes } = this.#limits;
    if (bytes > bufferBytes) {
      throw new DeviceError(
        'E_LIMIT',
        this.#device,
        `a buffer of ${bytes} bytes was asked for: the largest is ${bufferBytes}`,
      );
    }
    return Math.min(sizeClass(bytes), bufferBytes);
  }

  #create(size: number, source: SlabSource<Gpu>): Slab<Gpu> {
    this.#makeRoom(size);
    const slab = (): Slab<Gpu> => ({ id: this.#nextId++, gpu: source.create(size), bytes: size });
    let made: Slab<Gpu>;
    try {
      made = slab();
    } catch (error) {
      if (!(error instanceof DeviceError && error.code === 'E_OOM')) throw error;
      this.#findDropped();
      this.#trim(0);
      made = slab();
    }
    this.#held += size;
    return made;
  }

  /**
   * Makes the budget hold `size` more bytes: by trimming the pools, then by finding dropped
   * handles.
   */
  #makeRoom(size: number): void {
    const { budget } = this.#limits;
    if (this.#live() + size > this.#highWater || this.#leases.size > this.#crowd) {
      this.#findDropped();
      this.#highWater = Math.max(HIGH_WATER_FLOOR, 2 * this.#live());
      this.#crowd = Math.max(CROWD_FLOOR, 2 * this.#leases.size);
    }
    if (this.#held + size <= budget) return;
    this.#trim(budget - size - this.#live());
    if (this.#held + size <= budget) return;
    this.#findDropped();
    this.#trim(budget - size - this.#live());
    if (this.#held + size <= budget) return;
    throw new DeviceError(
      'E_OOM',
      this.#device,
      `${size} bytes were asked for with ${this.#live()} in ${this.#leases.size} live buffers: the budget is ${budget}`,
      { hint: 'dispose of tensors you no longer need, or take smaller batches' },
    );
  }

  #trim(keep: number): void {
    for (const pool of this.#pools) if (pool !== this.storage) pool.trim(0);
    this.storage.trim(Math.max(0, keep));
  }

  /**
   * Finalizers only run between tasks, but a WeakRef shows at once that its target was collected.
   */
  #findDropped(): void {
    this.#collect?.();
    for (const lease of this.#leases) if (lease.handle.deref() === undefined) this.end(lease);
  }
}

// Asks the garbage collector to run, where the engine lets us: handles that a program has dropped
// hold memory that the collector does not count.

/** A function that runs the garbage collector, where the engine lets us have one. */
function collector(): (() => void) | undefined {
  const exposed = (globalThis as { gc?: () => void }).gc;
  if (exposed !== undefined) return () => exposed();
  const builtin = globalThis.process?.getBuiltinModule;
  const v8 = builtin?.('node:v8');
  const vm = builtin?.('node:vm');
  if (v8 === undefined || vm === undefined) return undefined;
  let collect: (() => void) | undefined;
  return () => {
    if (collect === undefined) {
      v8.setFlagsFromString('--expose-gc');
      collect = vm.runInNewContext('gc') as () => void;
    }
    collect();
  };
}
