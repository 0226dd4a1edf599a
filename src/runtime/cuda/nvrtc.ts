// Node only: NVRTC, the compiler of CUDA C. It is looked for in this order: NVRTC_PATH (a file), plain names from the newest version
// that will do downwards to 12, CUDA_HOME and CUDA_PATH, /usr/local/cuda and /opt/cuda, pip's nvidia folders, the system's folders;
// search.ts makes the list.

import {
  absent,
  bind,
  loadKoffi,
  makeCell,
  openFirst,
  type Calls,
  type Cell,
  type Library,
  type LibraryOptions,
} from './library.ts';
import { firstVersion, nvrtcPlaces } from './search.ts';

const NVRTC = {
  nvrtcVersion: ['address', 'address'],
  nvrtcGetNumSupportedArchs: ['address'],
  nvrtcGetSupportedArchs: ['bytes'],
  nvrtcCreateProgram: ['address', 'text', 'text', 'i32', 'address', 'address'],
  nvrtcDestroyProgram: ['address'],
  nvrtcCompileProgram: ['address', 'i32', 'texts'],
  nvrtcGetCUBINSize: ['address', 'address'],
  nvrtcGetCUBIN: ['address', 'bytes'],
  nvrtcGetPTXSize: ['address', 'address'],
  nvrtcGetPTX: ['address', 'bytes'],
  nvrtcGetProgramLogSize: ['address', 'address'],
  nvrtcGetProgramLog: ['address', 'bytes'],
} as const;

export type NvrtcCalls = Calls<typeof NVRTC>;

/** NVRTC, open. */
export interface Nvrtc {
  readonly calls: NvrtcCalls;
  readonly cell: Cell;
  /** Major and minor. */
  readonly version: readonly [number, number];
}

/** Opens NVRTC of this major version at most; rejects with E_DEVICE, and what was searched, where there is none. */
export async function openNvrtc(device: string, most: number, options: LibraryOptions = {}): Promise<Nvrtc> {
  const { env = process.env, resolve } = options;
  const koffi = await loadKoffi(device, resolve);
  const cell = makeCell(koffi);
  const versionOf = (library: Library): readonly [number, number] => {
    const calls = bind<typeof NVRTC>(koffi, library, NVRTC, device);
    calls.nvrtcVersion(cell.address, cell.address + 4);
    return [cell.int(), Math.floor(cell.number() / 2 ** 32)];
  };
  const library = openFirst(koffi, nvrtcPlaces(env, process.platform, most), (found) => {
    const version = versionOf(found);
    return version[0] < firstVersion || version[0] > most ? `is version ${version.join('.')}` : undefined;
  });
  if (Array.isArray(library)) {
    throw absent(device, `no NVRTC ${firstVersion} to ${most}`, library, 'NVRTC_PATH');
  }
  return { calls: bind<typeof NVRTC>(koffi, library, NVRTC, device), cell, version: versionOf(library) };
}
