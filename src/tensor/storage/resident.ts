// Resident: one device buffer with the number of Storages that share it. Copies of bytes that the
// host also has are evictable: when they exceed a budget, or when the device runs out of memory,
// the least recently used are dropped. The list holds weak references: an unreachable copy is
// garbage-collected, and its device buffer is destroyed by a finalizer.

import type { Device, DeviceAllocation } from '../../runtime/device.ts';
import { counts } from '../report/stats.ts';

const evictableBudget = 256 * 2 ** 20;
const evictableCount = 1024;

/** Evictable copies and their sizes, least recently used first. */
const evictables = new Map<WeakRef<Resident>, number>();
let evictableBytes = 0;

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

  /** Another Storage shares the buffer. */
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
    if (entry === undefined || !evictables.delete(entry)) return;
    evictables.set(entry, this.buffer.bytes);
  }

  /**
   * The host has the same bytes: it may be dropped, as old copies that exceed the budget are now.
   */
  evictable(): void {
    this.#entry = new WeakRef(this);
    evictables.set(this.#entry, this.buffer.bytes);
    evictableBytes += this.buffer.bytes;
    for (const [oldest] of evictables) {
      const fits = evictableBytes <= evictableBudget && evictables.size <= evictableCount;
      if (fits || oldest === this.#entry) break;
      drop(oldest);
    }
  }

  /** It may no longer be dropped: the host's bytes are about to differ from it. */
  pinDown(): void {
    if (this.#entry !== undefined) forget(this.#entry);
  }
}

function forget(entry: WeakRef<Resident>): void {
  evictableBytes -= evictables.get(entry) ?? 0;
  evictables.delete(entry);
}

function drop(entry: WeakRef<Resident>): void {
  forget(entry);
  entry.deref()?.release();
}

/** Drops every device copy that the host can replace; true when there was one. */
export function evictAll(device: Device): boolean {
  const dropped = [...evictables.keys()].filter((entry) => {
    const resident = entry.deref();
    return resident?.device === device && !resident.shared;
  });
  for (const entry of dropped) drop(entry);
  return dropped.length > 0;
}
