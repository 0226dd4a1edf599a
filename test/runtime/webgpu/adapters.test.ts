// Which adapter a device is opened on: one table says which are software, the host's own WebGPU comes before packages, and what
// every source had to say is in the error.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { DeviceError } from '../../../src/errors.ts';
import {
  describeAdapter,
  findAdapter,
  hostSource,
  softwareName,
} from '../../../src/runtime/webgpu/adapters.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';

/** What an adapter says of itself, as met on machines. */
const infoOf = (given: Partial<GPUAdapterInfo>): GPUAdapterInfo =>
  ({
    vendor: '',
    architecture: '',
    device: '',
    description: '',
    isFallbackAdapter: false,
    ...given,
  }) as GPUAdapterInfo;

const adapterOf = (given: Partial<GPUAdapterInfo>): GPUAdapter =>
  ({ info: infoOf(given) }) as Partial<GPUAdapter> as GPUAdapter;

const gpus: readonly Partial<GPUAdapterInfo>[] = [
  { vendor: 'nvidia', architecture: 'ampere' },
  { vendor: 'apple', architecture: 'metal-3' },
  { vendor: '4318', device: '8711', description: 'NVIDIA GeForce RTX 2060' },
  { vendor: 'intel', architecture: 'gen-12lp', description: 'Mesa Intel(R) UHD Graphics' },
  {},
];

const software: readonly (readonly [string, Partial<GPUAdapterInfo>])[] = [
  ['SwiftShader', { vendor: 'google', architecture: 'swiftshader', isFallbackAdapter: true }],
  ['SwiftShader', { vendor: '6880', device: '49374', description: 'SwiftShader Device (Subzero)' }],
  ['lavapipe', { vendor: '65541', device: '0', description: 'llvmpipe (LLVM 15.0.6, 256 bits)' }],
  ['softpipe', { description: 'softpipe' }],
  ['WARP', { vendor: 'microsoft', architecture: 'warp' }],
  ['WARP', { description: 'Microsoft Basic Render Driver' }],
  // Firefox says nothing else.
  ['fallback', { isFallbackAdapter: true }],
];

describe('what counts as software', () => {
  test.each(software)('%s by its words: %j', (name, info) => expect(softwareName(infoOf(info))).toBe(name));
  test.each(gpus)('a GPU is none: %j', (info) => expect(softwareName(infoOf(info))).toBeUndefined());
});

test('an adapter is called by its words, without numbers', () => {
  expect(software.map(([, info]) => describeAdapter(infoOf(info)))).toEqual([
    'google swiftshader',
    'SwiftShader Device (Subzero)',
    'llvmpipe (LLVM 15.0.6, 256 bits)',
    'softpipe',
    'microsoft warp',
    'Microsoft Basic Render Driver',
    'an unnamed fallback adapter',
  ]);
});

describe('sources of adapters', () => {
  const gpu = adapterOf({ vendor: 'acme', architecture: 'x1' });
  const lavapipe = adapterOf({ description: 'llvmpipe' });
  const none = (): Promise<null> => Promise.resolve(null);
  const broken = (): Promise<null> => Promise.reject(new Error('no bus'));
  const refused = (): Promise<null> =>
    Promise.reject(
      new DeviceError('E_DEVICE', 'webgpu', 'webgpu is missing', { hint: 'npm install webgpu' }),
    );

  test('are asked in turn until one has an adapter of the kind', async () => {
    const asked = vi.fn(() => Promise.resolve(gpu));
    const source = (): Promise<GPUAdapter> => Promise.resolve(lavapipe);
    expect(await findAdapter('webgpu:software', [none, broken, source, asked])).toEqual({
      adapter: lavapipe,
      source,
    });
    expect(asked).not.toHaveBeenCalled();
    expect(await findAdapter('webgpu', [source, asked])).toEqual({ adapter: gpu, source: asked });
  });

  test('say why none will do: software for a GPU, a GPU for software, nothing, failures', async () => {
    await expect(findAdapter('webgpu', [() => Promise.resolve(lavapipe)])).rejects.toThrow(
      'webgpu: only a software adapter was found: llvmpipe\n  try: webgpu:software',
    );
    await expect(findAdapter('webgpu:software', [() => Promise.resolve(gpu)])).rejects.toThrow(
      'webgpu:software: only an adapter of a GPU was found: acme x1\n  try: webgpu',
    );
    await expect(findAdapter('webgpu', [none, refused, broken])).rejects.toThrow(
      `webgpu: no adapter was found:
  webgpu: no WebGPU adapter was found
  webgpu: webgpu is missing
    try: npm install webgpu
  webgpu: no adapter was given: Error: no bus`,
    );
    await expect(findAdapter('webgpu', [])).rejects.toThrow('there is no WebGPU here');
  });
});

describe("the host's own WebGPU", () => {
  afterEach(() => vi.unstubAllGlobals());

  test('is asked for the fallback adapter where software is wanted', async () => {
    expect(hostSource('webgpu')).toBeUndefined();
    const requestAdapter = vi.fn<GPU['requestAdapter']>(() => Promise.resolve(null));
    vi.stubGlobal('navigator', { gpu: { requestAdapter } });
    expect(await hostSource('webgpu')!()).toBeNull();
    expect(await hostSource('webgpu:software')!()).toBeNull();
    expect(requestAdapter.mock.calls).toEqual([
      [{ powerPreference: 'high-performance' }],
      [{ forceFallbackAdapter: true }],
      [],
    ]);
  });

  test('comes before the packages', async () => {
    const requestDevice = vi.fn(() => Promise.reject(new Error('busy')));
    const adapter = {
      ...adapterOf({ description: 'llvmpipe' }),
      features: new Set(),
      limits: {},
      requestDevice,
    };
    vi.stubGlobal('navigator', { gpu: { requestAdapter: () => Promise.resolve(adapter) } });
    await expect(openWebGpu('webgpu:software')).rejects.toThrow('llvmpipe gave no device: Error: busy');
  });

  test('leaves it to the packages where it has none of the kind', async () => {
    const requestAdapter = (): Promise<GPUAdapter> => Promise.resolve(adapterOf({ vendor: 'acme' }));
    vi.stubGlobal('navigator', { gpu: { requestAdapter } });
    const device = await openWebGpu('webgpu:software');
    expect(device.facts.description).toMatch(/swiftshader/i);
    device.destroy();
  });
});
