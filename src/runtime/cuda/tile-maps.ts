// Tensor maps: descriptions of a tensor for a kernel's copies of tiles, encoded by the driver for
// the tensor's address. Takes a map of the program, gives the 128 bytes that a launch passes by
// value.

import type { ProgramTileMap } from '../program.ts';
import type { CudaContext } from './api/context.ts';
import type { HostBlock } from './api/library.ts';
import { tileMapBytes } from './api/marshal.ts';

/** What the address of a CUtensorMap is a multiple of when the driver writes it. */
const alignment = 64;

/** CUtensorMapDataType. */
const TYPES = { f16: 6, bf16: 9 } as const;
const elementBytes = 2;
/** CUtensorMapSwizzle, and lines of 128 bytes brought to the L2 cache at a time. */
const SWIZZLE_128B = 3;
const PROMOTE_128B = 2;
const mostAxes = 5;

export class TileMaps {
  readonly #context: CudaContext;
  readonly #block: HostBlock;
  /** Offsets in the block: the map, sizes and strides of 64 bits, box and steps of 32. */
  readonly #at: { map: number; sizes: number; strides: number; box: number; steps: number };

  constructor(context: CudaContext) {
    this.#context = context;
    const counts = 8 * mostAxes;
    this.#block = context.driver.block(alignment + tileMapBytes + 4 * counts);
    const { address } = this.#block;
    const map = Math.ceil(address / alignment) * alignment - address;
    const sizes = map + tileMapBytes;
    this.#at = {
      map,
      sizes,
      strides: sizes + counts,
      box: sizes + 2 * counts,
      steps: sizes + 3 * counts,
    };
  }

  /** The map of the tensor whose buffer begins at `address`. */
  encode(
    { dtype, offset, sizes, strides, box }: ProgramTileMap,
    address: number,
    kernel: string,
  ): Uint8Array {
    const { driver } = this.#context;
    const { memory, address: start } = this.#block;
    const at = this.#at;
    const axes = sizes.length;
    const wide = (where: number, values: readonly number[]): void =>
      new BigUint64Array(memory, where, axes).set(values.map(BigInt));
    const narrow = (where: number, values: readonly number[]): void =>
      new Uint32Array(memory, where, axes).set(values);
    wide(at.sizes, sizes);
    // Neighbours need no stride.
    wide(at.strides, [...strides.slice(1).map((stride) => elementBytes * stride), 0]);
    narrow(at.box, box);
    narrow(
      at.steps,
      box.map(() => 1),
    );
    const result = driver.cu.cuTensorMapEncodeTiled(
      start + at.map,
      TYPES[dtype],
      axes,
      address + elementBytes * offset,
      start + at.sizes,
      start + at.strides,
      start + at.box,
      start + at.steps,
      0,
      SWIZZLE_128B,
      PROMOTE_128B,
      0,
    );
    const shape = `${dtype}[${sizes.join(',')}] by [${strides.join(',')}] in boxes of [${box.join(',')}]`;
    this.#context.check(result, 'cuTensorMapEncodeTiled', `mapping ${shape}`, kernel);
    return new Uint8Array(memory, at.map, tileMapBytes).slice();
  }
}
