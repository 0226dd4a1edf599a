// What a handle holds of a memory: the memory itself, with all that its handles have in common, and
// what of it the handle means.

import type { Device, DeviceAllocation as RuntimeBuffer } from '../../runtime/device.ts';
import type { Sharing } from '../../runtime/sharing.ts';
import type { Fence } from './fence.ts';
import { elemSize, isQ8, packedBytes, type Format } from './format.ts';
import type { View } from './lent.ts';

/** What all handles to one memory have in common. */
export interface Core {
  readonly device: Device;
  readonly sharing: Sharing;
  /** The memory is the caller's. */
  readonly isWrapped: boolean;
  /** A tensor's value lies there. */
  readonly isReadonly: boolean;
  version: number;
  fence: Fence | undefined;
  readonly views: Set<WeakRef<View>>;
}

/** One handle's claim. */
export interface Claim {
  readonly core: Core;
  readonly buffer: RuntimeBuffer;
  readonly format: Format;
  readonly length: number;
  /** Called when the handle is released. */
  readonly ended?: () => void;
}

/** Bytes with which kernels can read so many elements where they lie. */
export function roomOf(format: Format, length: number): number {
  const packed = packedBytes('DeviceBuffer', format, length);
  const size = isQ8(format) ? 1 : elemSize(format);
  // As `Storage.deviceBytes`, in whole vectors of 16 bytes.
  const room = Math.max((Math.ceil(packed / size / 4) * 4 + 4) * size, (Math.ceil(packed / 16) + 1) * 16);
  return Math.ceil(room / 16) * 16;
}

/** What handles to memory that is not shared yet have in common. */
export function freshCore(device: Device, sharing: Sharing, kind: 'own' | 'wrapped' | 'lent' = 'own'): Core {
  const [isWrapped, isReadonly] = [kind === 'wrapped', kind === 'lent'];
  return { device, sharing, isWrapped, isReadonly, version: 0, fence: undefined, views: new Set() };
}
