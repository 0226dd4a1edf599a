// What a DeviceBuffer tells the tensor layer of itself: enough to make a tensor of its memory,
// without the class, which only those load that use it.

import type { Device, DeviceAllocation as RuntimeBuffer } from '../../runtime/device.ts';
import type { Fence } from './fence.ts';
import type { Format } from './format.ts';

/** A value in memory that is about to be written over. */
export interface View {
  /** Takes a copy, if somebody may still ask for the value. */
  preserve(): void;
  /** The memory has changed already: the value is gone. */
  lose(): void;
}

export interface Lending {
  readonly device: Device;
  readonly format: Format;
  readonly length: number;
  readonly byteLength: number;
  /** `DeviceBuffer f32[64] on webgpu`, for messages. */
  readonly title: string;
  /** What has to happen before the memory holds what it is to hold. */
  readonly fence: Fence | undefined;
  /** Throws E_STATE once it was released. */
  check(op: string): void;
  /** A handle for kernels to `bytes` from a byte on, or why they cannot read them where they lie. */
  inPlace(offset: number, bytes: number): RuntimeBuffer | string;
  /** A copy of `bytes` from a byte on, in memory of Sinter's with room for `room`. */
  copied(offset: number, bytes: number, room: number): RuntimeBuffer;
  /** Keeps the buffer until what it gives is called. */
  hold(): () => void;
  /** Tells `view` before the memory is written to. */
  watch(view: View): void;
}

const lendings = new WeakMap<object, Lending>();

export function lend(buffer: object, lending: Lending): void {
  lendings.set(buffer, lending);
}

/** What a DeviceBuffer says of itself; undefined for all else. */
export function lendingOf(value: unknown): Lending | undefined {
  return typeof value === 'object' && value !== null ? lendings.get(value) : undefined;
}
