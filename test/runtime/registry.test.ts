// Devices by name: found when first asked for, kept, reopened when lost, and refused with every reason.
//
// Runs on the sources: it loads the registry anew for each test.
// Runs in a process of its own: its devices are registered for good.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import type { Backend, Device } from '../../src/runtime/device.ts';
import { compilerName, withoutCompiler } from './native/machine.ts';

type Registry = typeof import('../../src/runtime/registry.ts');
let registry: Registry;
beforeEach(async () => {
  vi.resetModules(); // A registry of its own for each test.
  vi.stubEnv('SINTER_DEVICE', '');
  vi.stubEnv('SINTER_CC', compilerName);
  vi.stubEnv('SINTER_CUDA_DRIVER', '/no/driver'); // Machines with CUDA count as machines without.
  registry = await import('../../src/runtime/registry.ts');
});
afterEach(() => vi.unstubAllEnvs());

/** A backend that counts its openings and remembers the device it gave last. */
interface Fake extends Backend {
  opened: number;
  last: { lost: boolean };
}

function fake(name: string): Fake {
  const backend: Fake = {
    name,
    opened: 0,
    last: { lost: true },
    open: async () => {
      const device = {
        lost: false,
        facts: { description: `${name} device`, software: false, features: [] },
        destroy: () => {
          device.lost = true;
        },
      };
      backend.opened += 1;
      backend.last = device;
      return device as unknown as Device;
    },
  };
  return backend;
}

function missing(name: string, reason: string): Backend {
  return { name, open: () => Promise.reject(new DeviceError('E_DEVICE', name, reason)) };
}

test('nothing is opened before it is asked for, and each device once', async () => {
  const backend = fake('webgpu');
  registry.registerBackend(backend);
  expect(backend.opened).toBe(0);
  const [a, b] = await Promise.all([registry.openDevice(), registry.openDevice('webgpu')]);
  expect(a).toBe(b);
  expect(await registry.openDevice('webgpu')).toBe(a);
  expect(backend.opened).toBe(1);
});

test('a lost device is opened again', async () => {
  const backend = fake('webgpu');
  registry.registerBackend(backend);
  await registry.openDevice();
  backend.last.lost = true;
  const [a, b] = await Promise.all([registry.openDevice(), registry.openDevice()]);
  expect(a).toBe(b);
  expect(a.lost).toBe(false);
  expect(backend.opened).toBe(2);
});

test('a failure is not remembered', async () => {
  registry.registerBackend(missing('webgpu', 'unplugged'));
  await expect(registry.openDevice('webgpu')).rejects.toThrow('unplugged');
  let plugged = false;
  const backend = fake('webgpu');
  registry.registerBackend({
    name: 'webgpu',
    open: () => (plugged ? backend.open() : Promise.reject(new Error('still unplugged'))),
  });
  await expect(registry.openDevice('webgpu')).rejects.toThrow('still unplugged');
  plugged = true;
  expect((await registry.openDevice('webgpu')).facts.description).toBe('webgpu device');
});

test('without a GPU the CPU computes, by compiled C on Linux, and what imitates a GPU only where it cannot', async () => {
  for (const name of ['cuda', 'webgpu']) registry.registerBackend(missing(name, 'not here'));
  const native = fake('native');
  registry.registerBackend(native);
  const isFirst = process.platform === 'linux';
  await registry.openDevice();
  expect(native.opened).toBe(isFirst ? 1 : 0);
  registry.registerBackend(missing('native', 'no compiler'));
  expect((await registry.openDevice()).facts.name).toBe('wasm');
  registry.registerBackend(missing('wasm', 'no SIMD'));
  const software = fake('webgpu:software');
  registry.registerBackend(software);
  expect((await registry.openDevice()).facts.description).toBe('webgpu:software device');
  expect(software.opened).toBe(1);
});

test('without any device the error says what was tried and what to do', async () => {
  for (const name of ['webgpu', 'native', 'wasm', 'webgpu:software'])
    registry.registerBackend(missing(name, 'no driver here'));
  const error: unknown = await registry.openDevice().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'DeviceError', code: 'E_DEVICE' });
  expect((error as Error).message).toContain('webgpu: no driver here');
  expect((error as Error).message).toContain("try: setDevice('interpreter')");
});

test('the default is there before its facts are complete, and a device that is named is whole', async () => {
  for (const name of ['cuda', 'webgpu', 'native']) registry.registerBackend(missing(name, 'not here'));
  let [asked, installed] = [0, false];
  const whole = (): Promise<void> => {
    asked += 1;
    return installed ? Promise.resolve() : Promise.reject(new DeviceError('E_DEVICE', 'wasm', 'no compiler'));
  };
  const { open } = fake('wasm');
  registry.registerBackend({ name: 'wasm', open: async () => Object.assign(await open(), { whole }) });
  const begun = await registry.beginDevice();
  expect([begun.facts.description, asked]).toEqual(['wasm device', 0]);
  await expect(registry.openDevice('wasm')).rejects.toThrow('no compiler');
  installed = true;
  expect(await registry.openDevice('wasm')).toBe(begun);
});

test('an unknown name is refused with the names there are', async () => {
  await expect(registry.openDevice('abacus')).rejects.toThrow(
    'abacus: there is no such device: expected cuda, webgpu, webgpu:software, wasm, native, interpreter',
  );
});

test('CUDA devices go by number, and CUDA comes before WebGPU', async () => {
  const [cuda, webgpu] = [fake('cuda'), fake('webgpu')];
  registry.registerBackend(cuda);
  registry.registerBackend(webgpu);
  const first = await registry.openDevice();
  expect(first.facts.description).toBe('cuda device');
  expect(await registry.openDevice('cuda:0')).toBe(first);
  expect([cuda.opened, webgpu.opened]).toEqual([1, 0]);
  expect(['cuda', 'cuda:7', 'cuda:x', 'cuda:'].map(registry.isDeviceName)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  await expect(registry.openDevice('cuda:7')).rejects.toThrow('cuda:7: no CUDA driver on this machine');
});

test('SINTER_DEVICE chooses the default and nothing else', async () => {
  vi.stubEnv('SINTER_DEVICE', 'interpreter');
  expect((await registry.openDevice()).facts.name).toBe('interpreter');
  const other = fake('webgpu');
  registry.registerBackend(other);
  expect((await registry.openDevice('webgpu')).facts.description).toBe('webgpu device');
});

test('discover tells for every device what it is or why it is not there', async () => {
  registry.registerBackend(missing('webgpu', 'no driver here'));
  const kept = fake('kept');
  const passing = fake('passing');
  registry.registerBackend(kept);
  registry.registerBackend(passing);
  await registry.openDevice('kept');
  const reports = await registry.discover();
  expect(reports.map(({ name, available }) => [name, available])).toEqual([
    ['cuda', false],
    ['webgpu', false],
    ['webgpu:software', true],
    ['wasm', true],
    ['native', withoutCompiler === undefined],
    ['interpreter', true],
    ['kept', true],
    ['passing', true],
  ]);
  expect(reports[1]).toEqual({ name: 'webgpu', available: false, reason: 'webgpu: no driver here' });
  expect(reports[2]).toMatchObject({
    software: true,
    description: expect.stringMatching(/swiftshader/i) as string,
  });
  expect(kept.last.lost).toBe(false); // In use: stays open.
  expect(passing.last.lost).toBe(true); // Opened to look: closed again.
});

test('hardware WebGPU refuses a software adapter', async () => {
  const { openWebGpu } = await import('../../src/runtime/webgpu/open.ts');
  const { softwareAdapter } = await import('../../src/runtime/webgpu/node.ts');
  await expect(openWebGpu('webgpu', { adapter: () => softwareAdapter() })).rejects.toThrow(
    /only a software adapter was found: google swiftshader/,
  );
  await expect(openWebGpu('webgpu', { adapter: () => Promise.resolve(null) })).rejects.toThrow(
    'no WebGPU adapter',
  );
});

test('an adapter that refuses a device is reported with its name', async () => {
  const { openWebGpu } = await import('../../src/runtime/webgpu/open.ts');
  const adapter = {
    info: { vendor: 'acme', architecture: 'x1', device: '', description: '', isFallbackAdapter: false },
    features: new Set<string>(),
    limits: {},
    requestDevice: () => Promise.reject(new Error('busy')),
  };
  await expect(
    openWebGpu('webgpu', { adapter: () => Promise.resolve(adapter as unknown as GPUAdapter) }),
  ).rejects.toThrow('acme x1 gave no device: Error: busy');
});

test.each(['wasm', 'wasm:2', 'webgpu:software', 'interpreter'])(
  '%s says what it runs before it is opened',
  async (name) => {
    const { target } = registry.findBackend(name)!;
    expect(target).toBeDefined();
    expect((await registry.openDevice(name)).facts.target).toBe(target);
    await registry.closeDevice(name);
  },
);
