// The interpreter shared with other code: its memory is typed arrays, so arrays of the caller's are
// buffers as they are, and views of buffers are theirs.

import { DeviceError } from '../../errors.ts';
import type { DeviceAllocation } from '../device.ts';
import type { NativeMemory, Sharing } from '../sharing.ts';

/** What the device itself does for this. */
export interface HostMemory {
  readonly name: string;
  memoryOf(buffer: DeviceAllocation): Uint8Array;
  /** A handle to bytes that exist; `ended` is called when it is destroyed. */
  lend(bytes: Uint8Array, ended: () => void): DeviceAllocation;
  assertAlive(): void;
}

export function hostSharing(host: HostMemory): Sharing {
  const holders = new WeakMap<DeviceAllocation, { count: number; readonly ended: () => void }>();
  /** A handle that counts for the memory which `holder` stands for. */
  const handle = (
    bytes: Uint8Array,
    holder: { count: number; readonly ended: () => void },
  ): DeviceAllocation => {
    holder.count += 1;
    const made = host.lend(bytes, () => {
      holder.count -= 1;
      if (holder.count === 0) holder.ended();
    });
    holders.set(made, holder);
    return made;
  };
  return {
    native: { api: 'host' },
    alignment: 4,
    queues: 1,
    async wrap(given, ended) {
      host.assertAlive();
      const refuse = (problem: string): DeviceError => new DeviceError('E_VALIDATION', host.name, problem);
      if (given.api !== 'host') throw refuse(`memory of ${given.api} is none of this device`);
      const { bytes } = given;
      if (bytes.length === 0) throw refuse('the memory has no bytes');
      return handle(bytes, { count: 0, ended });
    },
    part(buffer, offset, bytes) {
      const memory = host.memoryOf(buffer).subarray(offset, offset + bytes);
      return handle(memory, holders.get(buffer) ?? { count: 0, ended: () => undefined });
    },
    place: (buffer): NativeMemory => ({ api: 'host', bytes: host.memoryOf(buffer) }),
    room: (buffer) => host.memoryOf(buffer).length,
    view: (buffer) => host.memoryOf(buffer),
    writeProblem: () => undefined,
    copy(from, to, bytes) {
      // Memory of others may end within a word.
      const target = host.memoryOf(to);
      target.set(host.memoryOf(from).subarray(0, Math.min(bytes, target.length)));
    },
    submitted: async () => host.assertAlive(),
    trim: () => undefined,
    keepAtMost: () => undefined,
  };
}
