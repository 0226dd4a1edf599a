// Whether modules may be made here: a page's Content-Security-Policy may forbid it, and engines say
// so in words of their own, with no advice.

import { DeviceError } from '../../errors.ts';

/** Throws E_DEVICE where the policy of the page forbids WebAssembly. */
export function checkAllowed(device: string): void {
  try {
    // The smallest module: its magic number and its version.
    void new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  } catch (cause) {
    throw new DeviceError('E_DEVICE', device, "the page's Content-Security-Policy forbids WebAssembly", {
      cause,
      hint: "'wasm-unsafe-eval' in its script-src",
    });
  }
}
