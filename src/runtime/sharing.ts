// What a device shares with other code that uses the same API: the objects of the API, memory of the caller
// as buffers of the device, and buffers of the device as memory of the API. Each device has this in a file
// that is loaded when it is first used.

import type { WasmMemory } from '../platform.ts';

/**
 * Memory on a device. Opaque outside its backend; `destroy` gives it back to the backend's pool.
 */
export interface DeviceAllocation {
  readonly bytes: number;
  destroy(): void;
}

/** The API below a device, and its objects: to work on the same device and in the same queue. */
export type NativeDevice =
  | { readonly api: 'webgpu'; readonly device: GPUDevice; readonly queue: GPUQueue }
  | {
      readonly api: 'cuda';
      /** The driver's number of the device. */
      readonly ordinal: number;
      /** The CUcontext, the device's primary one. */
      readonly context: number;
      /** The CUstream in which everything happens in order. */
      readonly stream: number;
    }
  | { readonly api: 'wasm'; readonly memory: WasmMemory }
  | { readonly api: 'host' };

/** Memory as its API knows it. What WebGPU has can stand as a bind group's resource. */
export type NativeMemory =
  | {
      readonly api: 'webgpu';
      readonly buffer: GPUBuffer;
      readonly offset: number;
      readonly size: number;
    }
  /** A CUdeviceptr, as a number: addresses lie below 2^53. */
  | { readonly api: 'cuda'; readonly pointer: number; readonly size: number }
  /** Bytes of a WebAssembly.Memory, from an address on. */
  | {
      readonly api: 'wasm';
      readonly memory: WasmMemory;
      readonly pointer: number;
      readonly size: number;
    }
  | { readonly api: 'host'; readonly bytes: Uint8Array };

/** The names of APIs whose memory can be shared. */
export type NativeApi = NativeMemory['api'];

/** What a device can share, by the device's own hands. */
export interface Sharing {
  readonly native: NativeDevice;
  /** What the first byte of memory is a multiple of where kernels read it in place. */
  readonly alignment: number;
  /** Queues that work is spread over. */
  readonly queues: number;
  /**
   * A buffer over memory of the caller's, who keeps it until `ended` is called. Rejects with
   * E_VALIDATION or E_STATE where the device cannot use it, and says why.
   */
  wrap(memory: NativeMemory, ended: () => void): Promise<DeviceAllocation>;
  /** One more handle to some bytes of a buffer; the memory stays until the last one is destroyed. */
  part(buffer: DeviceAllocation, offset: number, bytes: number): DeviceAllocation;
  /** Where a buffer lies. It stays there while a part of it is held. */
  place(buffer: DeviceAllocation): NativeMemory;
  /** Bytes from the start of a buffer to the end of the memory around it. */
  room(buffer: DeviceAllocation): number;
  /** The bytes themselves, where the host has them in its own memory. */
  view?(buffer: DeviceAllocation): Uint8Array;
  /** Why the host and copies cannot write to the buffer; undefined where they can. */
  writeProblem(buffer: DeviceAllocation): string | undefined;
  /** Queues a copy of the first `bytes` (a multiple of 4); the two may overlap. */
  copy(from: DeviceAllocation, to: DeviceAllocation, bytes: number): void;
  /** Resolves when what was asked for so far stands in the API's own queue. */
  submitted(): Promise<void>;
  /** Gives free memory back until at most `keep` bytes of it are left. */
  trim(keep: number): void;
  /** Bytes of free memory kept at most from now on. */
  keepAtMost(bytes: number): void;
}
