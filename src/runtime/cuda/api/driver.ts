// Node only: the CUDA driver. It is looked for in this order: SINTER_CUDA_DRIVER (a file), its
// plain name, the folders where systems and containers keep it; search.ts makes the list.

import { DeviceError } from '../../../errors.ts';
import { loadKoffi, type Koffi } from '../../koffi.ts';
import {
  absent,
  bind,
  makeBlock,
  makeCell,
  openFirst,
  type HostBlock,
  type Calls,
  type Cell,
  type LibraryOptions,
} from './library.ts';
import { driverPlaces, firstVersion } from './search.ts';

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
  cuPointerGetAttribute: ['address', 'i32', 'address'],
  cuMemsetD32Async: ['address', 'u32', 'size', 'address'],
  cuStreamCreate: ['address', 'u32'],
  cuStreamDestroy_v2: ['address'],
  cuStreamSynchronize: ['address'],
  cuStreamQuery: ['address'],
  cuStreamWaitEvent: ['address', 'address', 'u32'],
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
  /**
   * Function, grid, block, bytes of dynamic shared memory, stream, addresses of the arguments,
   * nothing.
   */
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
  /**
   * Where to, type, axes, tensor, sizes, strides, box, steps, interleaving, swizzle, promotion,
   * filling.
   */
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

/** Former names of functions whose present names are newer than the oldest supported CUDA. */
const FORMER: Readonly<Record<string, string>> = { cuEventElapsedTime_v2: 'cuEventElapsedTime' };

/** Functions by their exported names, `_v2` included: the plain names are older functions. */
export type DriverCalls = Calls<typeof DRIVER>;
export type DriverCall = keyof DriverCalls;

/** The driver, open. */
export interface Driver {
  readonly cu: DriverCalls;
  readonly cell: Cell;
  /** Zeroed memory, for as long as the driver is open. */
  block(bytes: number): HostBlock;
  /** The bytes at an address that something else owns. */
  view(address: number, bytes: number): ArrayBuffer;
  /** `CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered`. */
  explain(result: number): string;
  /** CUDA's version that the driver is for: 13.0 is 13000. */
  readonly version: number;
}

/** Opens the driver; rejects with E_DEVICE, and what was searched, where there is none. */
export async function openDriver(device: string, options: LibraryOptions = {}): Promise<Driver> {
  const { env = process.env, resolve } = options;
  const koffi = await loadKoffi(device, 'CUDA', resolve);
  const found = openFirst(koffi, driverPlaces(env, process.platform), () => undefined);
  if (Array.isArray(found)) throw absent(device, 'no CUDA driver', found, 'SINTER_CUDA_DRIVER');
  const cu = bind<typeof DRIVER>(koffi, found, DRIVER, device, FORMER);
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
  return {
    cu,
    cell,
    block: (bytes) => makeBlock(koffi, bytes),
    view: (address, bytes) => koffi.view(BigInt(address), bytes),
    explain: (result) => explainBy(koffi, cu, cell, result),
    version,
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
