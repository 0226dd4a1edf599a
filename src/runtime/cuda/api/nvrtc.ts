// Node only: NVRTC, the compiler of CUDA C. It is looked for in this order: NVRTC_PATH (a file),
// plain names from the newest version that will do downwards to 12, CUDA_HOME and CUDA_PATH,
// /usr/local/cuda and /opt/cuda, pip's nvidia folders, the system's folders; search.ts makes the
// list. A version that no longer supports the GPU's generation (13 compiles from 7.5 on) is skipped
// for an older one.

import { loadKoffi, type Library } from '../../koffi.ts';
import { absent, bind, makeCell, openFirst, type Calls, type Cell, type LibraryOptions } from './library.ts';
import { firstVersion, nvrtcPlaces, type SearchPlace } from './search.ts';

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
  /** Compute capabilities that it makes machine code for (90 for 9.0). */
  readonly archs: readonly number[];
}

export interface NvrtcOptions extends LibraryOptions {
  /**
   * Compute capabilities that it has to compile for, by machine code or by PTX of an earlier one;
   * none by default.
   */
  readonly capabilities?: readonly number[];
  /** Where it is looked for. Default: as described above. */
  readonly places?: Iterable<SearchPlace>;
}

/**
 * Opens NVRTC of this major version at most; rejects with E_DEVICE, and what was searched, where
 * there is none.
 */
export async function openNvrtc(
  device: string,
  newestVersion: number,
  options: NvrtcOptions = {},
): Promise<Nvrtc> {
  const { env = process.env, resolve, capabilities = [] } = options;
  const { places = nvrtcPlaces(env, process.platform, newestVersion) } = options;
  const koffi = await loadKoffi(device, 'CUDA', resolve);
  const cell = makeCell(koffi);
  const opened = (library: Library): Nvrtc => {
    const calls = bind<typeof NVRTC>(koffi, library, NVRTC, device);
    calls.nvrtcVersion(cell.address, cell.address + 4);
    const version = [cell.int(), Math.floor(cell.number() / 2 ** 32)] as const;
    calls.nvrtcGetNumSupportedArchs(cell.address);
    const archs = new Int32Array(cell.int());
    calls.nvrtcGetSupportedArchs(new Uint8Array(archs.buffer));
    return { calls, cell, version, archs: [...archs] };
  };
  const library = openFirst(koffi, places, (found) => {
    const { version, archs } = opened(found);
    const name = version.join('.');
    if (version[0] < firstVersion || version[0] > newestVersion) return `is version ${name}`;
    const lost = capabilities.find((capability) => !archs.some((arch) => arch <= capability));
    if (lost === undefined) return undefined;
    const oldest = Math.min(...archs) / 10;
    return `is version ${name}, which compiles for compute capability ${oldest.toFixed(1)} and later, not ${(lost / 10).toFixed(1)}`;
  });
  if (Array.isArray(library)) {
    throw absent(device, `no NVRTC ${firstVersion} to ${newestVersion}`, library, 'NVRTC_PATH');
  }
  return opened(library);
}
