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
    const problem = `the package koffi, which opens the libraries of ${purpose}, is missing`;
    throw new DeviceError('E_DEVICE', device, problem, { hint: 'npm install koffi', cause });
  }
}
