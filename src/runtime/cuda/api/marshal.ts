// Structs of the driver API, written into memory that never moves and is used again for the next
// call: the driver copies what it is given before it returns. Offsets are those of cuda.h on 64-bit
// machines.

import type { DeviceBlock, Meeting } from '../../communicator.ts';
import type { Driver } from './driver.ts';
import type { HostBlock } from './library.ts';

/** One operation of the stream, with its addresses. */
export type StreamOperation =
  | Single
  | Encounter
  /** Waits for the collectives that were begun, but for so many of the last ones; never in a graph. */
  | { readonly kind: 'await'; readonly but: number }
  /** Operations that run so many times; never in a graph. */
  | {
      readonly kind: 'repeat';
      readonly times: number;
      /** The address of the i32 that must not be 0 before a turn, if one must not. */
      readonly guard: number | undefined;
      readonly operations: readonly StreamOperation[];
    };

/** A collective; never in a graph. */
export interface Encounter {
  readonly kind: 'collective';
  readonly meeting: Meeting;
  readonly from: DeviceBlock;
  readonly to: DeviceBlock;
}

/** An operation that is one call of the driver. */
export type Single =
  | {
      readonly kind: 'launch';
      readonly kernel: string;
      readonly func: number;
      readonly grid: readonly [number, number, number];
      readonly block: readonly [number, number, number];
      readonly sharedBytes: number;
      /** Parameters that are pointers. */
      readonly args: readonly number[];
      /** Tensor maps behind them; the same wherever the pointers are. */
      readonly maps: readonly Uint8Array[];
    }
  | { readonly kind: 'copy'; readonly from: number; readonly to: number; readonly bytes: number }
  | { readonly kind: 'clear'; readonly at: number; readonly bytes: number }
  /** From pinned memory that differs from run to run. */
  | { readonly kind: 'upload'; readonly to: number; readonly bytes: number };

export type Launch = Extract<StreamOperation, { readonly kind: 'launch' }>;

/** Parameters that a kernel can have: 4 KiB of pointers. */
export const mostArguments = 512;

/** Tensor maps that a kernel can have, and bytes of one (CUtensorMap). */
export const mostMaps = 8;
export const tileMapBytes = 128;

/** CUmemorytype. */
const HOST = 1;
const DEVICE = 2;

export class Marshal {
  readonly #args: HostBlock;
  readonly #slots: Uint32Array;
  /** The same for launches with tensor maps, and the maps. */
  readonly #mapped: HostBlock;
  readonly #kernel: Struct;
  readonly #copy: Struct;
  readonly #clear: Struct;

  constructor(driver: Driver) {
    // Pointers to slots, then the slots.
    this.#args = driver.block(16 * mostArguments);
    const pointers = new Uint32Array(this.#args.memory, 0, 2 * mostArguments);
    this.#slots = new Uint32Array(this.#args.memory, 8 * mostArguments, 2 * mostArguments);
    for (let i = 0; i < mostArguments; i++) {
      put(pointers, 2 * i, this.#args.address + 8 * (mostArguments + i));
    }
    this.#mapped = driver.block(16 * mostArguments + mostMaps * tileMapBytes);
    this.#kernel = new Struct(driver, 72);
    this.#copy = new Struct(driver, 200);
    this.#clear = new Struct(driver, 40);
  }

  /** The address of what a launch takes as `kernelParams`. */
  arguments({ args, maps }: Launch): number {
    if (maps.length > 0) return this.#withMaps(args, maps);
    for (let i = 0; i < args.length; i++) put(this.#slots, 2 * i, args[i]!);
    return this.#args.address;
  }

  #withMaps(args: readonly number[], maps: readonly Uint8Array[]): number {
    const { address, memory } = this.#mapped;
    const words = new Uint32Array(memory);
    const slots = 8 * mostArguments;
    args.forEach((arg, i) => {
      put(words, 2 * i, address + slots + 8 * i);
      put(words, (slots + 8 * i) / 4, arg);
    });
    maps.forEach((map, i) => {
      const at = 2 * slots + tileMapBytes * i;
      put(words, 2 * (args.length + i), address + at);
      new Uint8Array(memory).set(map, at);
    });
    return address;
  }

  /** A CUDA_KERNEL_NODE_PARAMS. */
  kernel(launch: Launch): number {
    const { grid, block } = launch;
    const struct = this.#kernel;
    struct.address64(0, launch.func);
    for (let axis = 0; axis < 3; axis++) {
      struct.word(8 + 4 * axis, grid[axis]!);
      struct.word(20 + 4 * axis, block[axis]!);
    }
    struct.word(32, launch.sharedBytes);
    struct.address64(40, this.arguments(launch));
    return struct.address;
  }

  /** A CUDA_MEMCPY3D of rows that follow each other, from device memory or from the host's. */
  copy(from: number, to: number, bytes: number, isFromHost: boolean): number {
    const struct = this.#copy;
    struct.word(32, isFromHost ? HOST : DEVICE);
    struct.address64(40, isFromHost ? from : 0);
    struct.address64(48, isFromHost ? 0 : from);
    struct.word(120, DEVICE);
    struct.address64(136, to);
    const { width, height } = rowsOf(bytes);
    // Pitch and height of either side, against which drivers check the rows.
    for (const side of [72, 160]) {
      struct.address64(side, width);
      struct.address64(side + 8, height);
    }
    struct.address64(176, width);
    struct.address64(184, height);
    struct.address64(192, 1);
    return struct.address;
  }

  /** A CUDA_MEMSET_NODE_PARAMS of one row of zero words. */
  clear(at: number, bytes: number): number {
    const struct = this.#clear;
    struct.address64(0, at);
    struct.word(20, 4);
    struct.address64(24, bytes / 4);
    struct.address64(32, 1);
    return struct.address;
  }
}

/**
 * So many bytes as rows: a driver takes no pitch beyond 31 bits (CU_DEVICE_ATTRIBUTE_MAX_PITCH).
 */
export function rowsOf(bytes: number): { readonly width: number; readonly height: number } {
  let height = 1;
  // Sizes of buffers are multiples of whole groups of elements, and of ever larger ones where a
  // group has more bytes.
  while (bytes / height >= 2 ** 31 && bytes % (2 * height) === 0) height *= 2;
  return { width: bytes / height, height };
}

class Struct {
  readonly address: number;
  readonly #words: Uint32Array;

  constructor(driver: Driver, bytes: number) {
    const { address, memory } = driver.block(bytes);
    this.address = address;
    this.#words = new Uint32Array(memory);
  }

  word(offset: number, value: number): void {
    this.#words[offset / 4] = value;
  }

  address64(offset: number, value: number): void {
    put(this.#words, offset / 4, value);
  }
}

function put(words: Uint32Array, at: number, value: number): void {
  words[at] = value >>> 0;
  words[at + 1] = Math.floor(value / 2 ** 32);
}
