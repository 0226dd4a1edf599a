// Resident: one device buffer with the number of Storages that share it. Copies of bytes that the
// host also has are evictable: when those on one device exceed a budget, or the device runs out of memory,
// the least recently used are dropped. The list holds weak references: an unreachable copy is
// garbage-collected, and its device buffer is destroyed by a finalizer.

import type { Device, DeviceAllocation } from '../../runtime/device.ts';
import { counts } from '../report/stats.ts';

const evictableBudget = 256 * 2 ** 20;
const evictableCount = 1024;

/** The evictable copies on one device. */
class Evictables {
  /** Copies and their sizes, least recently used first. */
  readonly #sizes = new Map<WeakRef<Resident>, number>();
  #bytes = 0;

  /** Adds one, the most recently used; drops old ones that exceed the budget. */
  add(entry: WeakRef<Resident>, bytes: number): void {
    this.#sizes.set(entry, bytes);
    this.#bytes += bytes;
    for (const [oldest] of this.#sizes) {
      const fits = this.#bytes <= evictableBudget && this.#sizes.size <= evictableCount;
      if (fits || oldest === entry) break;
      this.drop(oldest);
    }
  }

  touch(entry: WeakRef<Resident>): void {
    const bytes = this.#sizes.get(entry);
    if (bytes === undefined) return;
    this.#sizes.delete(entry);
    this.#sizes.set(entry, bytes);
  }

  forget(entry: WeakRef<Resident>): void {
    this.#bytes -= this.#sizes.get(entry) ?? 0;
    this.#sizes.delete(entry);
  }

  drop(entry: WeakRef<Resident>): void {
    this.forget(entry);
    entry.deref()?.release();
  }

  /** Drops those that nothing else shares; true when there was one. */
  dropAll(): boolean {
    const dropped = [...this.#sizes.keys()].filter((entry) => entry.deref()?.shared === false);
    for (const entry of dropped) this.drop(entry);
    return dropped.length > 0;
  }
}

const evictables = new WeakMap<Device, Evictables>();

function evictablesOn(device: Device): Evictables {
  const known = evictables.get(device) ?? new Evictables();
  evictables.set(device, known);
  return known;
}

function discount(bytes: number): void {
  counts.liveBytes -= bytes;
  counts.liveBuffers -= 1;
}

/** Those that nobody released: their buffers go with them. */
const collected = new FinalizationRegistry<number>(discount);

export class Resident {
  readonly device: Device;
  readonly buffer: DeviceAllocation;
  /** The memory is somebody else's too: never to be written over. */
  readonly isLent: boolean;
  /** Its weak reference in the list of evictable copies. */
  #entry: WeakRef<Resident> | undefined = undefined;
  #owners = 1;

  constructor(device: Device, buffer: DeviceAllocation, isLent = false) {
    this.device = device;
    this.buffer = buffer;
    this.isLent = isLent;
    counts.liveBytes += buffer.bytes;
    counts.liveBuffers += 1;
    collected.register(this, buffer.bytes, this);
  }

  get freed(): boolean {
    return this.#owners === 0;
  }

  /** Another StoredValue shares the buffer. */
  share(): this {
    this.#owners += 1;
    return this;
  }

  get shared(): boolean {
    return this.#owners > 1 || this.isLent;
  }

  /** One owner fewer; the last one frees the buffer. */
  release(): void {
    if (this.#owners === 0) return;
    this.#owners -= 1;
    if (this.#owners > 0) return;
    this.pinDown();
    collected.unregister(this);
    discount(this.buffer.bytes);
    this.buffer.destroy();
  }

  /** Marks it most recently used. */
  touch(): void {
    const entry = this.#entry;
    if (entry !== undefined) evictablesOn(this.device).touch(entry);
  }

  /**
   * The host has the same bytes: it may be dropped, as old copies that exceed the budget are now.
   */
  evictable(): void {
    this.#entry = new WeakRef(this);
    evictablesOn(this.device).add(this.#entry, this.buffer.bytes);
  }

  /** It may no longer be dropped: the host's bytes are about to differ from it. */
  pinDown(): void {
    if (this.#entry !== undefined) evictablesOn(this.device).forget(this.#entry);
  }
}

/** Drops every device copy that the host can replace; true when there was one. */
export function evictAll(device: Device): boolean {
  return evictablesOn(device).dropAll();
}
