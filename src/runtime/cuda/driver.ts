// Node only: every foreign function of the CUDA backend, called through koffi. Handles, device pointers and addresses of host memory
// are JS numbers (they lie below 2^53); what a call gives back is read from one cell of memory that never moves.
//
// The driver is looked for in this order: SINTER_CUDA_DRIVER (a file), its plain name, the folders where systems and
// containers keep it. NVRTC: NVRTC_PATH (a file), plain names from the driver's major version downwards to 12, CUDA_HOME and
// CUDA_PATH, /usr/local/cuda and /opt/cuda, pip's nvidia folders, the system's folders. search.ts makes the list.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';
import { importFrom, resolveFromProject, type Resolve } from '../packages.ts';
import { driverPlaces, firstVersion, nvrtcPlaces, triedInWords, type SearchPlace } from './search.ts';

type Koffi = typeof import('koffi');
type Library = ReturnType<Koffi['load']>;

/** How an argument is handed over: `address` for handles, device pointers, and memory that must not move. */
interface Values {
  i32: number;
  u32: number;
  u64: number;
  size: number;
  address: number;
  text: string;
  texts: readonly string[];
  bytes: Uint8Array;
}
type Kind = keyof Values;

const DRIVER = {
  cuInit: ['u32'],
  cuDriverGetVersion: ['address'],
  cuGetErrorName: ['i32', 'address'],
  cuGetErrorString: ['i32', 'address'],
  cuDeviceGetCount: ['address'],
  cuDeviceGet: ['address', 'i32'],
  cuDeviceGetName: ['bytes', 'i32', 'i32'],
  cuDeviceGetAttribute: ['address', 'i32', 'i32'],
  cuDeviceTotalMem_v2: ['address', 'i32'],
  cuDevicePrimaryCtxRetain: ['address', 'i32'],
  cuDevicePrimaryCtxRelease_v2: ['i32'],
  cuCtxSetCurrent: ['address'],
  cuDeviceGetDefaultMemPool: ['address', 'i32'],
  cuMemPoolSetAttribute: ['address', 'i32', 'address'],
  cuMemPoolTrimTo: ['address', 'size'],
  cuMemAlloc_v2: ['address', 'size'],
  cuMemFree_v2: ['address'],
  cuMemAllocAsync: ['address', 'size', 'address'],
  cuMemFreeAsync: ['address', 'address'],
  cuMemHostAlloc: ['address', 'size', 'u32'],
  cuMemFreeHost: ['address'],
  cuMemcpyHtoDAsync_v2: ['address', 'address', 'size', 'address'],
  cuMemcpyDtoHAsync_v2: ['address', 'address', 'size', 'address'],
  cuMemcpyDtoDAsync_v2: ['address', 'address', 'size', 'address'],
  cuMemsetD32Async: ['address', 'u32', 'size', 'address'],
  cuStreamCreate: ['address', 'u32'],
  cuStreamDestroy_v2: ['address'],
  cuStreamSynchronize: ['address'],
  cuEventCreate: ['address', 'u32'],
  cuEventRecord: ['address', 'address'],
  cuEventQuery: ['address'],
  cuEventSynchronize: ['address'],
  cuEventElapsedTime_v2: ['address', 'address', 'address'],
  cuEventDestroy_v2: ['address'],
  cuModuleLoadData: ['address', 'bytes'],
  cuModuleUnload: ['address'],
  cuModuleGetFunction: ['address', 'address', 'text'],
  cuFuncSetAttribute: ['address', 'i32', 'i32'],
  /** Function, grid, block, bytes of dynamic shared memory, stream, addresses of the arguments, nothing. */
  cuLaunchKernel: [
    'address',
    'u32',
    'u32',
    'u32',
    'u32',
    'u32',
    'u32',
    'u32',
    'address',
    'address',
    'address',
  ],
  /** Where to, type, axes, tensor, sizes, strides, box, steps, interleaving, swizzle, promotion, filling. */
  cuTensorMapEncodeTiled: [
    'address',
    'i32',
    'u32',
    'address',
    'address',
    'address',
    'address',
    'address',
    'i32',
    'i32',
    'i32',
    'i32',
  ],
  cuGraphCreate: ['address', 'u32'],
  cuGraphAddKernelNode_v2: ['address', 'address', 'bytes', 'size', 'address'],
  cuGraphAddMemcpyNode: ['address', 'address', 'bytes', 'size', 'address', 'address'],
  cuGraphAddMemsetNode: ['address', 'address', 'bytes', 'size', 'address', 'address'],
  cuGraphInstantiateWithFlags: ['address', 'address', 'u64'],
  cuGraphExecKernelNodeSetParams_v2: ['address', 'address', 'address'],
  cuGraphExecMemcpyNodeSetParams: ['address', 'address', 'address', 'address'],
  cuGraphExecMemsetNodeSetParams: ['address', 'address', 'address', 'address'],
  cuGraphLaunch: ['address', 'address'],
  cuGraphExecDestroy: ['address'],
  cuGraphDestroy: ['address'],
} as const;

/** Names of before, where the present ones are younger than the oldest CUDA that will do; the same in all but name. */
const FORMER: Readonly<Record<string, string>> = { cuEventElapsedTime_v2: 'cuEventElapsedTime' };

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

type Signatures = Readonly<Record<string, readonly Kind[]>>;
type Arguments<Kinds extends readonly Kind[]> = { -readonly [I in keyof Kinds]: Values[Kinds[I]] };
/** A foreign function: gives a CUresult or nvrtcResult, 0 for success. `async` runs it on a thread of libuv's. */
interface Foreign<Kinds extends readonly Kind[]> {
  (...args: Arguments<Kinds>): number;
  async(...args: [...Arguments<Kinds>, (error: Error | null, result: number) => void]): void;
}
type Calls<Table extends Signatures> = { readonly [Name in keyof Table]: Foreign<Table[Name]> };

/** Functions by their exported names, `_v2` and all: the plain names are older and other. */
export type DriverCalls = Calls<typeof DRIVER>;
export type NvrtcCalls = Calls<typeof NVRTC>;
export type DriverCall = keyof DriverCalls;

/** Memory outside the JS heap, at an address that stays. */
export interface Block {
  readonly address: number;
  readonly memory: ArrayBuffer;
}

/** Eight bytes that a call writes its result to. */
export interface Cell {
  readonly address: number;
  /** As a handle, a pointer or a size. */
  number(): number;
  int(): number;
  float(): number;
  set(value: number): void;
}

/** Both libraries of CUDA, open. */
export interface Driver {
  readonly cu: DriverCalls;
  readonly nvrtc: NvrtcCalls;
  readonly cell: Cell;
  /** Zeroed memory, for as long as the driver is open. */
  block(bytes: number): Block;
  /** The bytes at an address that something else owns. */
  view(address: number, bytes: number): ArrayBuffer;
  /** `CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered`. */
  explain(result: number): string;
  /** CUDA's version that the driver is for: 13.0 is 13000. */
  readonly version: number;
  /** NVRTC's, as major and minor. */
  readonly nvrtcVersion: readonly [number, number];
}

export interface DriverOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly resolve?: Resolve;
}

// A library is unloaded once its handle is collected, so handles are held, by file; on globalThis because a module may be dropped
// (test runners reset them) while its devices live on.
const heldKey = Symbol.for('sinter.cuda.held');
const held = ((globalThis as { [heldKey]?: Map<string, Library> })[heldKey] ??= new Map<string, Library>());

/** Opens driver and NVRTC; rejects with E_DEVICE, and what was searched, where there is none. */
export async function openDriver(device: string, options: DriverOptions = {}): Promise<Driver> {
  const { env = process.env, resolve = resolveFromProject } = options;
  const koffi = await loadKoffi(device, resolve);
  const found = openFirst(koffi, driverPlaces(env, process.platform), () => undefined);
  if (Array.isArray(found)) throw absent(device, 'no CUDA driver', found, 'SINTER_CUDA_DRIVER');
  const cu = bind<typeof DRIVER>(koffi, found, DRIVER, device);
  const cell = makeCell(koffi);
  const begun = cu.cuInit(0);
  if (begun !== 0) {
    const problem = `the CUDA driver has no device: cuInit gave ${explainBy(koffi, cu, cell, begun)}`;
    throw new DeviceError('E_DEVICE', device, problem);
  }
  cu.cuDriverGetVersion(cell.address);
  const version = cell.int();
  const major = Math.floor(version / 1000);
  if (major < firstVersion) {
    const minor = Math.floor((version % 1000) / 10);
    const problem = `the CUDA driver is for CUDA ${major}.${minor}: ${firstVersion} is the oldest`;
    throw new DeviceError('E_DEVICE', device, problem);
  }
  let nvrtcVersion: readonly [number, number] = [0, 0];
  const refuse = (library: Library): string | undefined => {
    const calls = bind<typeof NVRTC>(koffi, library, NVRTC, device);
    calls.nvrtcVersion(cell.address, cell.address + 4);
    nvrtcVersion = [cell.int(), Math.floor(cell.number() / 2 ** 32)];
    const [found] = nvrtcVersion;
    return found < firstVersion || found > major ? `is version ${nvrtcVersion.join('.')}` : undefined;
  };
  const library = openFirst(koffi, nvrtcPlaces(env, process.platform, major), refuse);
  if (Array.isArray(library)) {
    const missing = `no NVRTC ${firstVersion} to ${major} (the CUDA driver is there)`;
    throw absent(device, missing, library, 'NVRTC_PATH');
  }
  return {
    cu,
    nvrtc: bind<typeof NVRTC>(koffi, library, NVRTC, device),
    cell,
    block: (bytes) => makeBlock(koffi, bytes),
    view: (address, bytes) => koffi.view(BigInt(address), bytes),
    explain: (result) => explainBy(koffi, cu, cell, result),
    version,
    nvrtcVersion,
  };
}

async function loadKoffi(device: string, resolve: Resolve): Promise<Koffi> {
  try {
    return await importFrom<Koffi>(resolve('koffi'));
  } catch (cause) {
    const problem = 'the package koffi, which opens the CUDA driver, is missing';
    throw new DeviceError('E_DEVICE', device, problem, { hint: 'npm install koffi', cause });
  }
}

function absent(device: string, what: string, tried: readonly Tried[], variable: string): DeviceError {
  const problem = `${what} on this machine: ${triedInWords(tried)}`;
  return new DeviceError('E_DEVICE', device, problem, { hint: `${variable}=/path/to/the/library` });
}

interface Tried {
  readonly file: string;
  readonly problem?: string;
}

/** The first library that opens and is not refused, else what was tried. */
function openFirst(
  koffi: Koffi,
  places: Iterable<SearchPlace>,
  refuse: (library: Library) => string | undefined,
): Library | Tried[] {
  const tried: Tried[] = [];
  for (const { file, from } of places) {
    const isFile = path.isAbsolute(file);
    const because = from === undefined ? '' : ` (${from})`;
    if (isFile && !fs.existsSync(file)) {
      tried.push(from === undefined ? { file } : { file, problem: `is not there${because}` });
      continue;
    }
    try {
      if (isFile) preloadBuiltins(koffi, file);
      const library = held.get(file) ?? koffi.load(file);
      const problem = refuse(library);
      if (problem === undefined) {
        held.set(file, library);
        return library;
      }
      tried.push({ file, problem: problem + because });
    } catch (error) {
      const reason = (error as Error).message.split('\n')[0];
      tried.push(isFile ? { file, problem: `cannot be opened${because}: ${reason}` } : { file });
    }
  }
  return tried;
}

/** NVRTC opens its builtins by bare name, which fails beside a library that was found off the loader's path. */
function preloadBuiltins(koffi: Koffi, file: string): void {
  const name = path.basename(file);
  if (!name.includes('nvrtc')) return;
  const folder = path.dirname(fs.realpathSync(file));
  const major = /(?:\.so\.|nvrtc64_)(\d\d)/.exec(name)?.[1] ?? '';
  const pattern = new RegExp(`^(?:lib)?nvrtc-builtins(?:\\.so\\.|64_)${major}`);
  for (const entry of fs.readdirSync(folder)) {
    if (!pattern.test(entry) || entry.includes('.alt.')) continue;
    const builtins = path.join(folder, entry);
    try {
      if (!held.has(builtins)) held.set(builtins, koffi.load(builtins));
    } catch {
      // NVRTC itself will say what it lacks.
    }
  }
}

function bind<Table extends Signatures>(
  koffi: Koffi,
  library: Library,
  table: Table,
  device: string,
): Calls<Table> {
  const types = {
    i32: 'int32_t',
    u32: 'uint32_t',
    u64: 'uint64_t',
    size: 'size_t',
    address: 'uintptr_t',
    text: 'str',
    texts: koffi.pointer('str'),
    bytes: 'void *',
  } as const satisfies Readonly<Record<Kind, unknown>>;
  const find = (name: string, kinds: readonly Kind[]): unknown =>
    library.func(
      name,
      'int32_t',
      kinds.map((kind) => types[kind]),
    );
  const calls = Object.entries(table).map(([name, kinds]) => {
    try {
      return [name, find(name, kinds)] as const;
    } catch (cause) {
      const former = FORMER[name];
      if (former !== undefined) return [name, find(former, kinds)] as const;
      throw new DeviceError('E_DEVICE', device, `the CUDA libraries lack ${name}: version 12 is the oldest`, {
        cause,
      });
    }
  });
  return Object.fromEntries(calls) as Calls<Table>;
}

function makeBlock(koffi: Koffi, bytes: number): Block {
  const pointer: unknown = koffi.alloc('uint64_t', Math.ceil(bytes / 8));
  const memory = koffi.view(pointer, Math.ceil(bytes / 8) * 8);
  new Uint8Array(memory).fill(0);
  return { address: Number(koffi.address(pointer)), memory };
}

function makeCell(koffi: Koffi): Cell {
  const { address, memory } = makeBlock(koffi, 8);
  const words = new Uint32Array(memory);
  const ints = new Int32Array(memory);
  const floats = new Float32Array(memory);
  return {
    address,
    number: () => words[0]! + words[1]! * 2 ** 32,
    int: () => ints[0]!,
    float: () => floats[0]!,
    set(value) {
      words[0] = value >>> 0;
      words[1] = Math.floor(value / 2 ** 32);
    },
  };
}

function explainBy(koffi: Koffi, cu: DriverCalls, cell: Cell, result: number): string {
  const text = (call: 'cuGetErrorName' | 'cuGetErrorString'): string | undefined => {
    cell.set(0);
    if (cu[call](result, cell.address) !== 0 || cell.number() === 0) return undefined;
    return koffi.decode.string(BigInt(cell.number()));
  };
  const name = text('cuGetErrorName') ?? 'an unknown error';
  const words = text('cuGetErrorString');
  return `${name} (${result})${words === undefined || words === '' ? '' : `: ${words}`}`;
}
