// Bringing values from the host to the device before anything is computed of them, so that the copy
// lies beside what the device is busy with.

import { handleOf, type Tensor } from './tensor.ts';
import { device } from './storage/device.ts';

/**
 * Copies what the host has of some tensors to the current device. Where that fails nothing is lost:
 * whatever is computed of them copies it then, and tells why it cannot.
 */
export async function upload(tensors: readonly Tensor[]): Promise<void> {
  try {
    const target = await device();
    for (const tensor of tensors) {
      const { storage } = handleOf(tensor);
      if (storage?.hostBytes !== undefined && storage.lost === undefined) storage.on(target);
    }
  } catch {
    // It is tried again when it has to be.
  }
}
