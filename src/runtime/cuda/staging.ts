// Page-locked host memory, which the GPU copies from and to while the host continues. Written data waits here
// until its copy is done, and read data arrives here. Locking pages takes long, so small pieces are cut from
// large ones and used again.

import { SlabPool, sizeClass, type Slab } from '../slabs.ts';
import type { CudaContext } from './api/context.ts';
import type { Fences } from './fences.ts';

const KiB = 2 ** 10;
const MiB = 2 ** 20;
/** Pieces up to this size are carved, and never given back. */
const SMALL = 64 * KiB;
const CARVED = MiB;
/** Large pieces kept for the next copies. */
const KEPT = 128 * MiB;
/** A write goes through pieces of this size, at most so many bytes of which wait for the GPU. */
const CHUNK = 16 * MiB;
const WAITING = 128 * MiB;

/** A piece of page-locked memory. */
export interface Pinned {
  readonly address: number;
  readonly bytes: Uint8Array;
}

interface Lent {
  readonly piece: Slab<Pinned>;
  readonly epoch: number;
}

export class Staging {
  readonly #context: CudaContext;
  readonly #fences: Fences;
  readonly #small: SlabPool<Pinned>;
  readonly #large: SlabPool<Pinned>;
  /** In use by the GPU until their epochs end, in that order. */
  #lent: Lent[] = [];
  #lentBytes = 0;
  #nextId = 0;
  #carved: Pinned | undefined;
  #carvedBytes = 0;
  readonly #locked = new Set<number>();

  constructor(context: CudaContext, fences: Fences) {
    this.#context = context;
    this.#fences = fences;
    this.#small = new SlabPool(
      (bytes) => this.#slab(this.#carve(bytes)),
      () => undefined,
    );
    this.#large = new SlabPool(
      (bytes) => this.#slab(this.#lock(bytes)),
      ({ gpu }) => this.#unlock(gpu.address),
    );
  }

  /** A piece of at least so many bytes; give it back with `release`. */
  acquire(bytes: number): Slab<Pinned> {
    this.#reclaim();
    const size = sizeClass(bytes);
    return (size <= SMALL ? this.#small : this.#large).acquire(size);
  }

  /** Takes a piece back, for use after the epoch; without one it is free at once. */
  release(piece: Slab<Pinned>, epoch?: number): void {
    if (epoch !== undefined) {
      this.#lent.push({ piece, epoch });
      this.#lentBytes += piece.bytes;
      return;
    }
    if (piece.bytes <= SMALL) this.#small.release(piece);
    else {
      this.#large.release(piece);
      this.#large.trim(KEPT);
    }
  }

  /** Queues a copy to the device; the caller may change the bytes when it returns. */
  upload(to: number, data: Uint8Array): void {
    const { driver, stream } = this.#context;
    for (let start = 0; start < data.length; start += CHUNK) {
      const chunk = data.subarray(start, start + CHUNK);
      while (this.#lentBytes > WAITING) {
        this.#fences.block(this.#lent[0]!.epoch);
        this.#reclaim();
      }
      const piece = this.acquire(chunk.length);
      piece.gpu.bytes.set(chunk);
      const { address } = piece.gpu;
      const result = driver.cu.cuMemcpyHtoDAsync_v2(to + start, address, chunk.length, stream);
      this.release(piece, this.#fences.mark());
      this.#context.check(result, 'cuMemcpyHtoDAsync_v2', `writing ${data.length} bytes`);
    }
  }

  /**
   * Queues a copy from the device; gives a function that returns the bytes once the copy is done.
   */
  download(from: number, bytes: number): () => Uint8Array<ArrayBuffer> {
    const { driver, stream } = this.#context;
    const piece = this.acquire(bytes);
    const result = driver.cu.cuMemcpyDtoHAsync_v2(piece.gpu.address, from, bytes, stream);
    this.#context.check(result, 'cuMemcpyDtoHAsync_v2', `reading ${bytes} bytes`);
    return () => {
      const taken = new Uint8Array(piece.gpu.bytes.subarray(0, bytes));
      this.release(piece);
      return taken;
    };
  }

  destroy(): void {
    for (const address of this.#locked) this.#context.driver.cu.cuMemFreeHost(address);
    this.#locked.clear();
  }

  #reclaim(): void {
    let count = 0;
    for (const { piece, epoch } of this.#lent) {
      if (!this.#fences.isDone(epoch)) break;
      this.#lentBytes -= piece.bytes;
      this.release(piece);
      count += 1;
    }
    if (count > 0) this.#lent = this.#lent.slice(count);
  }

  #slab(gpu: Pinned): Slab<Pinned> {
    return { id: this.#nextId++, gpu, bytes: gpu.bytes.length };
  }

  #carve(bytes: number): Pinned {
    if (this.#carved === undefined || this.#carvedBytes + bytes > CARVED) {
      this.#carved = this.#lock(CARVED);
      this.#carvedBytes = 0;
    }
    const start = this.#carvedBytes;
    this.#carvedBytes += bytes;
    const { address, bytes: all } = this.#carved;
    return { address: address + start, bytes: all.subarray(start, start + bytes) };
  }

  #lock(bytes: number): Pinned {
    const { driver } = this.#context;
    const { cu, cell } = driver;
    this.#context.use();
    const PORTABLE = 1;
    const result = cu.cuMemHostAlloc(cell.address, bytes, PORTABLE);
    this.#context.check(result, 'cuMemHostAlloc', `locking ${bytes} bytes of host memory`);
    const address = cell.number();
    this.#locked.add(address);
    return { address, bytes: new Uint8Array(driver.view(address, bytes)) };
  }

  #unlock(address: number): void {
    this.#locked.delete(address);
    this.#context.use();
    this.#context.driver.cu.cuMemFreeHost(address);
  }
}
