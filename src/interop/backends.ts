// Devices by the names that `setDevice` knows, and backends of the user's among them. A name is
// given once: who comes second is refused.

import { DeviceError, showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isFloat, type DType } from '../ir/dtype.ts';
import type { Backend, Device, DeviceAllocation, DeviceLimits } from '../runtime/device.ts';
import {
  deviceNames,
  findBackend,
  openDevice as openNamed,
  registerBackend as add,
} from '../runtime/registry.ts';
import type { NativeDevice } from '../runtime/sharing.ts';
import { adoptGpu } from '../runtime/webgpu/open.ts';
import { targetOf } from '../schedule/target.ts';
import { sharingOf } from '../tensor/buffer/source.ts';
import { device as current } from '../tensor/device.ts';

/** Memory that a backend gives out: what `Device.allocate` returns. */
export type BackendBuffer = DeviceAllocation;

const aName: arg.Kind<string> = arg.kind(
  'the name of a device',
  (value) => typeof value === 'string' && value !== '',
);
const aBackend: arg.Kind<Backend> = arg.kind('{ name, open }', (value) => {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('open' in value)) return false;
  return aName.accepts(value.name) && typeof value.open === 'function';
});
const takesBackend = arg.takes<typeof registerBackend>(['the backend', aBackend]);
const takesName = arg.takes<typeof hasBackend>(['the name', aName]);
const takesDeviceName = arg.takes<typeof openDevice>(['the name', arg.optional(aName)]);

/**
 * Gives a backend its name for the rest of the process: `setDevice(backend.name)` computes on what it
 * opens. Throws E_STATE where the name is taken; the error's `cause` is the backend.
 */
export function registerBackend(backend: Backend): void {
  takesBackend('registerBackend', backend);
  const { name } = backend;
  if (findBackend(name) !== undefined) {
    throw new DeviceError('E_STATE', name, 'registerBackend: there is a backend of this name', {
      hint: `a name other than ${deviceNames().join(', ')}`,
      cause: backend,
    });
  }
  add(backend);
}

/** The backend of a name; undefined where there is none. Nothing is opened. */
export function getBackend(name: string): Backend | undefined {
  takesName('getBackend', name);
  return findBackend(name);
}

/** Whether there is a backend of this name. Only `openDevice` shows whether it can be opened. */
export function hasBackend(name: string): boolean {
  takesName('hasBackend', name);
  return findBackend(name) !== undefined;
}

/** The device of a name, or the current one. Rejects with E_DEVICE and the reason where it is missing. */
export async function openDevice(name?: string): Promise<Device> {
  takesDeviceName('openDevice', name);
  if (name === undefined) return current();
  if (findBackend(name) !== undefined) return openNamed(name);
  throw new DeviceError('E_DEVICE', 'openDevice', `no backend is called ${showValue(name)}`, {
    hint: `registerBackend(…), or one of ${deviceNames().join(', ')}`,
  });
}

/** A device as `openDevice` gives it. */
export const aDevice: arg.Kind<Device> = arg.kind(
  'a device',
  (value) => typeof value === 'object' && value !== null && 'facts' in value && 'allocate' in value,
  () => 'await openDevice()',
);
const takesNative = arg.takes<typeof nativeDevice>(
  ['the device', aDevice],
  ['the API', arg.oneOf('webgpu', 'cuda', 'wasm', 'host')],
);

/** What is below a device, where that is this API: its GPUDevice, context and stream, or memory. */
export async function nativeDevice<Api extends NativeDevice['api']>(
  device: Device,
  api: Api,
): Promise<Extract<NativeDevice, { api: Api }> | undefined> {
  takesNative('nativeDevice', device, api);
  const native = (await device.sharing?.())?.native;
  return native?.api === api ? (native as Extract<NativeDevice, { api: Api }>) : undefined;
}

const takesGpu = arg.takes<typeof gpuBackend>(['the name', aName], ['the device', arg.anything<GPUDevice>()]);

/**
 * A backend over a GPUDevice of the caller's, to be registered: Sinter computes on it, in its queue,
 * and never destroys it. It should have the adapter's limits.
 */
export function gpuBackend(name: string, gpu: GPUDevice): Backend {
  takesGpu('gpuBackend', name, gpu);
  const isDevice = typeof gpu === 'object' && gpu !== null && typeof gpu.createBuffer === 'function';
  if (!isDevice) throw new TensorError('E_VALUE', 'gpuBackend', `expects a GPUDevice, got ${showValue(gpu)}`);
  return { name, target: 'wgsl', open: () => adoptGpu(name, gpu) };
}

const takesDevice = arg.takes<typeof streamCount>(['the device', aDevice]);

/** Queues that a device spreads work over: 1 everywhere today. */
export async function streamCount(device: Device): Promise<number> {
  takesDevice('streamCount', device);
  return (await device.sharing?.())?.queues ?? 1;
}

/** What a device does by itself. */
export interface Capabilities {
  /** Element types that its kernels compute in; others are made of these, or refused. */
  readonly nativeDTypes: readonly DType[];
  readonly features: readonly string[];
  readonly limits: DeviceLimits;
}

const takesCapable = arg.takes<typeof capabilities>(['the device', aDevice]);

/** What a device does by itself: its element types, features and limits. */
export function capabilities(device: Device): Capabilities {
  takesCapable('capabilities', device);
  const { features, limits } = device.facts;
  return { nativeDTypes: targetOf(device.facts).dtypes, features, limits };
}

const takesDistance = arg.takes<typeof cdistSupports>(
  ['the device', aDevice],
  ['the dtype', arg.dtype],
  ['p', arg.number],
);

/** Whether `cdist` runs on a device in a dtype, with the p-norm: in every float that it computes in. */
export function cdistSupports(device: Device, dtype: DType, p: number): boolean {
  takesDistance('cdistSupports', device, dtype, p);
  return isFloat(dtype) && p >= 0 && capabilities(device).nativeDTypes.includes(dtype);
}

/** Bytes and buffers of a device. */
export interface PoolStats {
  /** Bytes of memory that something holds. */
  readonly live: number;
  /** Bytes of free memory that is kept for what comes. */
  readonly pooled: number;
  /** Buffers that something holds. */
  readonly buffers: number;
}

const takesPool = arg.takes<typeof poolStats>(['the device', aDevice]);

/** How much memory of a device is in use, and how much is kept. */
export function poolStats(device: Device): PoolStats {
  takesPool('poolStats', device);
  const { live, pooled, buffers } = device.memory();
  return { live, pooled, buffers };
}

const takesTrim = arg.takes<typeof trimPool>(
  ['the device', aDevice],
  ['the bytes', arg.optional(arg.notNegative)],
);

/** Returns free memory to the device's API, except for `keep` bytes; it finds dropped buffers first. */
export async function trimPool(device: Device, keep: number = 0): Promise<void> {
  takesTrim('trimPool', device, keep);
  (await sharingOf('trimPool', device)).trim(keep);
}

const takesLimit = arg.takes<typeof limitPool>(['the device', aDevice], ['the bytes', arg.notNegative]);

/** Limits the free memory that is kept to `bytes`; with `Infinity` the limit depends on the memory in use. */
export async function limitPool(device: Device, bytes: number): Promise<void> {
  takesLimit('limitPool', device, bytes);
  (await sharingOf('limitPool', device)).keepAtMost(bytes);
}
