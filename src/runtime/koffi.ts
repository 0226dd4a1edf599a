// Node only: the package that calls libraries of C functions.

import { DeviceError } from '../errors.ts';
import { importFrom, resolveFromProject, type Resolve } from '../packages/node.ts';

export type Koffi = typeof import('koffi');
export type Library = ReturnType<Koffi['load']>;

/** The package that opens libraries of `purpose`; rejects with E_DEVICE where it is missing. */
export async function loadKoffi(
  device: string,
  purpose: string,
  resolve: Resolve = resolveFromProject,
): Promise<Koffi> {
  try {
    return await importFrom<Koffi>(resolve('koffi'));
  } catch (cause) {
    throw missingKoffi(device, purpose, cause);
  }
}

/** The error of a device whose libraries need the package, where it is missing. */
export function missingKoffi(device: string, purpose: string, cause: unknown): DeviceError {
  const problem = `the package koffi, which opens the libraries of ${purpose}, is missing`;
  return new DeviceError('E_DEVICE', device, problem, { hint: 'npm install koffi', cause });
}
