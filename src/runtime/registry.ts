// Which devices there are. Backends are listed by name and looked for only when first asked; the
// default is the first of `DEFAULT_ORDER` that this machine has, unless `SINTER_DEVICE` names
// another.

import { DeviceError, notLoading } from '../errors.ts';
import { cudaBackend, cudaBackendOf } from './cuda/open.ts';
import { isNativeUsual, nativeBackendOf, nativeBackends } from './native/open.ts';
import type { Backend, Device } from './device.ts';
import { parts } from './parts.ts';
import type { TargetId } from './program.ts';
import { threadsOfName } from './wasm/names.ts';

/** Tried in order when no device is named. */
const DEFAULT_ORDER: readonly string[] = [
  'cuda',
  'webgpu',
  ...(isNativeUsual ? ['native'] : []),
  'wasm',
  'webgpu:software',
];

/** A backend whose code is loaded when it is opened, but for the parts that backends share. */
interface Lazy extends Backend {
  readonly parts: readonly unknown[];
}

function lazy(name: string, target: TargetId, importing: () => Promise<Backend>): Lazy {
  const found = (): Promise<Backend> =>
    importing().catch((cause: unknown) => {
      throw notLoading(`the device ${name}`, cause);
    });
  return { name, target, parts, open: async () => (await found()).open() };
}

const backends = new Map<string, Backend>(
  [
    cudaBackend,
    lazy('webgpu', 'wgsl', async () => (await import('./webgpu/open.ts')).webgpuBackend),
    lazy('webgpu:software', 'wgsl', async () => (await import('./webgpu/open.ts')).webgpuSoftwareBackend),
    lazy('wasm', 'wasm', async () => (await import('./wasm/device.ts')).wasmBackend),
    ...nativeBackends,
    lazy(
      'interpreter',
      'interpreter',
      async () => (await import('./interpreter/device.ts')).interpreterBackend,
    ),
  ].map((backend) => [backend.name, backend]),
);
const opened = new Map<string, Promise<Device>>();

/** Adds a backend, or replaces the one of its name. */
export function registerBackend(backend: Backend): void {
  backends.set(backend.name, backend);
  opened.delete(backend.name);
}

/** The names that `openDevice` knows, in the order they were registered. */
export function deviceNames(): readonly string[] {
  return [...backends.keys()];
}

/**
 * Whether `openDevice` knows the name: one of `deviceNames`, `cuda:1` for the machine's second CUDA
 * device, or `wasm:2` and `native:2` for two threads.
 */
export function isDeviceName(name: string): boolean {
  return backendOf(name) !== undefined;
}

/** The backend of a name, another name of its device included. */
export function findBackend(name: string): Backend | undefined {
  return backendOf(name);
}

function backendOf(name: string): Backend | undefined {
  return backends.get(name) ?? cudaBackendOf(name) ?? nativeBackendOf(name) ?? wasmBackendOf(name);
}

/** The backend of `wasm:2`, with so many threads; undefined for other names. */
function wasmBackendOf(name: string): Backend | undefined {
  const threads = threadsOfName(name, 'wasm');
  if (threads === undefined) return undefined;
  return lazy(name, 'wasm', async () => (await import('./wasm/device.ts')).wasmBackendOf(name, threads));
}

/** What `SINTER_DEVICE` says, where there is an environment. */
export function deviceFromEnvironment(): string | undefined {
  const name = typeof process === 'undefined' ? undefined : process.env?.['SINTER_DEVICE'];
  return name === undefined || name === '' ? undefined : name;
}

/**
 * The device of this name, else of `SINTER_DEVICE`, else the default, whole. One device per name: it is
 * opened at first use, and again after it was lost. Rejects with E_DEVICE and the reasons when
 * there is none.
 */
export async function openDevice(name?: string): Promise<Device> {
  const device = await beginDevice(name);
  await device.whole?.();
  return device;
}

/** The same as soon as programs can run on it, whole or not. */
export async function beginDevice(name: string | undefined = deviceFromEnvironment()): Promise<Device> {
  if (name !== undefined) return openNamed(name);
  const reasons: string[] = [];
  for (const candidate of DEFAULT_ORDER) {
    try {
      return await openNamed(candidate);
    } catch (error) {
      reasons.push(`\n  ${messageOf(error)}`);
    }
  }
  throw new DeviceError('E_DEVICE', 'default', `no device was found:${reasons.join('')}`, {
    hint: "setDevice('interpreter'), which is slow and runs anywhere",
  });
}

async function openNamed(called: string): Promise<Device> {
  const name = canonical(called);
  const backend = backendOf(name);
  if (backend === undefined) {
    throw new DeviceError('E_DEVICE', name, `there is no such device: expected ${deviceNames().join(', ')}`);
  }
  const known = opened.get(name);
  if (known !== undefined) {
    const device = await known;
    if (!device.lost) return device;
    if (opened.get(name) === known) opened.delete(name);
    return openNamed(name);
  }
  const opening = backend.open();
  opened.set(name, opening);
  // Failures are not cached, because a driver or package may be installed meanwhile.
  opening.catch(() => opened.delete(name));
  return opening;
}

/** Ends the device of this name, if it is open; resolves when nothing of it is left. */
export async function closeDevice(called: string): Promise<void> {
  const name = canonical(called);
  const device = await opened.get(name)?.catch(() => undefined);
  if (device === undefined) return;
  // Failures are reported by reads, not here.
  await device.finish().catch(() => undefined);
  opened.delete(name);
  await device.destroy();
}

/** The first CUDA device has two names. */
function canonical(name: string): string {
  return name === 'cuda:0' ? 'cuda' : name;
}

/** One line of `sinter devices`. */
export type DeviceReport =
  | {
      readonly name: string;
      readonly available: true;
      readonly description: string;
      readonly software: boolean;
      readonly features: readonly string[];
    }
  | { readonly name: string; readonly available: false; readonly reason: string };

/** Looks for every device; those that were not open are closed again. */
export async function discover(): Promise<readonly DeviceReport[]> {
  const reports: DeviceReport[] = [];
  for (const [name, backend] of backends) {
    try {
      const known = opened.get(name);
      const device = await (known ?? backend.open());
      try {
        await device.whole?.();
        const { description, software, features } = device.facts;
        reports.push({ name, available: true, description, software, features });
      } finally {
        if (known === undefined) await device.destroy();
      }
    } catch (error) {
      reports.push({ name, available: false, reason: messageOf(error) });
    }
  }
  return reports;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
