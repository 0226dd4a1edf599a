// Node only: adapters from Dawn (npm `webgpu`). Takes the kind of adapter, gives the adapter.
// Loaded by a dynamic import, so that a browser never sees it. Three traps it guards against: the
// GPU object must outlive everything made from it, the Vulkan loader reads the C environment each
// time an instance is created, and exiting the process with work in flight crashes.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';
import { cacheFolder } from '../cache.ts';
import { importFrom, resolveFromProject, type Resolve } from '../../packages/node.ts';
import { findArchive, unpackDriver, type SoftwareDriver } from './software.ts';

export { patiently } from './patience.ts';

// Nanosecond timestamps: by default Dawn rounds them to 65 µs.
const FLAGS = ['disable-dawn-features=timestamp_quantization'];

// Nothing else keeps what `create()` returns alive, and Node dies without a word if it is collected
// with a call pending. koffi unloads a library once its handle is collected, so that is held too.
// All of it hangs on globalThis because a module may be dropped (test runners reset them) while its
// devices live on.
const heldKey = Symbol.for('sinter.webgpu.held');
const held: unknown[] = ((globalThis as { [heldKey]?: unknown[] })[heldKey] ??= []);

/** A hardware adapter of this machine; rejects with the reason when there is none. */
export function hardwareAdapter(resolve: Resolve = resolveFromProject): Promise<GPUAdapter | null> {
  return exclusive(async () => {
    if (process.platform === 'linux' && !hasVulkanDriver()) {
      throw new DeviceError('E_DEVICE', 'webgpu', 'no Vulkan driver is installed on this machine');
    }
    const gpu = await createGpu('webgpu', resolve);
    const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
    if (adapter !== null) return adapter;
    throw new DeviceError('E_DEVICE', 'webgpu', 'Dawn found no adapter on this machine');
  });
}

/** The SwiftShader adapter out of npm; rejects with what to install when a package is missing. */
export function softwareAdapter(resolve: Resolve = resolveFromProject): Promise<GPUAdapter> {
  return exclusive(async () => {
    const driver = unpackDriver(findArchive(resolve), cacheFolder());
    const restore = await pointLoaderAt(driver, resolve);
    try {
      const gpu = await createGpu('webgpu:software', resolve);
      const adapter = await gpu.requestAdapter();
      if (adapter !== null) return adapter;
      throw new DeviceError('E_DEVICE', 'webgpu:software', `Dawn refused the driver ${driver.manifest}`);
    } finally {
      restore();
    }
  });
}

const atExit = new Set<GPUDevice>();

/** Destroys the device when the process ends: exiting with GPU work in flight would crash it. */
export function destroyAtExit(device: GPUDevice): void {
  if (atExit.size === 0) process.once('exit', destroyAll);
  atExit.add(device);
  void device.lost.then(() => {
    atExit.delete(device);
    if (atExit.size === 0) process.removeListener('exit', destroyAll);
  });
}

function destroyAll(): void {
  for (const device of atExit) device.destroy();
}

/**
 * Bytes a software device may take: its memory is the machine's, which overcommits instead of
 * refusing.
 */
export function hostMemoryBudget(): number {
  const constrained = process.constrainedMemory?.() ?? 0;
  const total = os.totalmem();
  return Math.floor(0.75 * (constrained > 0 && constrained < total ? constrained : total));
}

async function createGpu(device: string, resolve: Resolve): Promise<GPU> {
  try {
    const dawn = await importFrom<typeof import('webgpu')>(resolve('webgpu'));
    const gpu = dawn.create(FLAGS);
    held.push(gpu);
    return gpu;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new DeviceError('E_DEVICE', device, `the package webgpu (Dawn) cannot be loaded: ${reason}`, {
      hint: 'npm install webgpu',
      cause,
    });
  }
}

/** Makes the Vulkan loader find this driver and no other, until the returned function is called. */
async function pointLoaderAt(driver: SoftwareDriver, resolve: Resolve): Promise<() => void> {
  let koffi: typeof import('koffi');
  try {
    koffi = await importFrom<typeof import('koffi')>(resolve('koffi'));
    // Dawn opens `libvulkan.so.1` by name and gets this one when the system has none.
    held.push(koffi.load(driver.loader));
  } catch (cause) {
    throw new DeviceError(
      'E_DEVICE',
      'webgpu:software',
      'the package koffi, which opens the driver, failed',
      {
        hint: 'npm install koffi',
        cause,
      },
    );
  }
  // The C environment, not process.env: in a worker thread the latter is a copy that the loader
  // never sees.
  const libc = koffi.load(null);
  const get = libc.func('const char *getenv(const char *)');
  const set = libc.func('int setenv(const char *, const char *, int)');
  const unset = libc.func('int unsetenv(const char *)');
  const saved = ['VK_ICD_FILENAMES', 'VK_DRIVER_FILES'].map((name) => [name, get(name) as string | null]);
  for (const [name] of saved) set(name, driver.manifest, 1);
  return () => {
    for (const [name, value] of saved) {
      if (value === null) unset(name);
      else set(name, value, 1);
    }
  };
}

/**
 * Whether any driver manifest lies where the Vulkan loader looks; asked first because Dawn
 * complains on the console.
 */
function hasVulkanDriver(): boolean {
  const env = process.env;
  if (env['VK_DRIVER_FILES'] || env['VK_ICD_FILENAMES'] || env['VK_ADD_DRIVER_FILES']) return true;
  const home = os.homedir();
  const roots = [
    ...(env['XDG_CONFIG_HOME'] ?? path.join(home, '.config')).split(':'),
    ...(env['XDG_CONFIG_DIRS'] ?? '/etc/xdg').split(':'),
    '/etc',
    ...(env['XDG_DATA_HOME'] ?? path.join(home, '.local/share')).split(':'),
    ...(env['XDG_DATA_DIRS'] ?? '/usr/local/share:/usr/share').split(':'),
    '/usr/local/share',
    '/usr/share',
    '/run/opengl-driver/share',
  ];
  return roots.some((root) => {
    try {
      return fs.readdirSync(path.join(root, 'vulkan', 'icd.d')).some((file) => file.endsWith('.json'));
    } catch {
      return false;
    }
  });
}

// Adapters are asked for one at a time: the environment variables above are the whole process's.
let turn: Promise<unknown> = Promise.resolve();
function exclusive<T>(work: () => Promise<T>): Promise<T> {
  const result = turn.then(work);
  turn = result.catch(() => undefined);
  return result;
}
