// Resident: one device buffer with the number of Storages that share it. Copies of bytes that the host also has are
// evictable: when they exceed a budget, or when the device runs out of memory, the least recently used are dropped.

import type { Device, DeviceBuffer } from '../runtime/device.ts';

const evictableBudget = 256 * 2 ** 20;

/** Evictable copies, least recently used first. */
const evictables = new Set<Resident>();
let evictableBytes = 0;

export class Resident {
  readonly device: Device;
  readonly buffer: DeviceBuffer;
  #owners = 1;

  constructor(device: Device, buffer: DeviceBuffer) {
    this.device = device;
    this.buffer = buffer;
  }

  get freed(): boolean {
    return this.#owners === 0;
  }

  /** Another Storage stands on the same buffer. */
  share(): this {
    this.#owners += 1;
    return this;
  }

  get shared(): boolean {
    return this.#owners > 1;
  }

  /** One owner fewer; the last one frees the buffer. */
  release(): void {
    if (this.#owners === 0) return;
    this.#owners -= 1;
    if (this.#owners > 0) return;
    this.pinDown();
    this.buffer.destroy();
  }

  /** Marks it most recently used. */
  touch(): void {
    if (evictables.delete(this)) evictables.add(this);
  }

  /** It may no longer be dropped: the host's bytes are about to differ from it. */
  pinDown(): void {
    if (evictables.delete(this)) evictableBytes -= this.buffer.bytes;
  }
}

/** Declares that the host has the same bytes, and drops old copies that exceed the budget. */
export function evictable(resident: Resident): void {
  evictables.add(resident);
  evictableBytes += resident.buffer.bytes;
  for (const oldest of evictables) {
    if (evictableBytes <= evictableBudget || oldest === resident) break;
    oldest.release();
  }
}

/** Drops every device copy that the host can replace; true when there was one. */
export function evictAll(device: Device): boolean {
  const dropped = [...evictables].filter((resident) => resident.device === device && !resident.shared);
  for (const resident of dropped) resident.release();
  return dropped.length > 0;
}
