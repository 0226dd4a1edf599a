// The two WebGPU backends: `webgpu` is hardware and refuses software adapters, `webgpu:software` is SwiftShader in Node and
// the browser's fallback adapter in a page. In: nothing, or an adapter of your own; out: a Device.

import { DeviceError } from '../../errors.ts';
import type { Backend, Device, DeviceFacts } from '../device.ts';
import { WebGpuDevice } from './device.ts';

/** How to open: every field has a default that fits the place the code runs in. */
export interface WebGpuOptions {
  /** Where the adapter comes from. */
  readonly adapter?: () => Promise<GPUAdapter | null>;
  /** Bytes all buffers together may take. Default: unlimited on hardware, three quarters of the memory on software. */
  readonly budget?: number;
}

type Kind = 'webgpu' | 'webgpu:software';

/** The machine's GPU. */
export const webgpuBackend: Backend = { name: 'webgpu', open: () => openWebGpu('webgpu') };

/** WebGPU without a GPU: SwiftShader out of npm in Node, the fallback adapter in a browser. */
export const webgpuSoftwareBackend: Backend = {
  name: 'webgpu:software',
  open: () => openWebGpu('webgpu:software'),
};

/** Opens a WebGPU device; rejects with DeviceError E_DEVICE and the reason when there is none. */
export async function openWebGpu(kind: Kind, options: WebGpuOptions = {}): Promise<Device> {
  const node = isNode() ? await import('./node.ts') : undefined;
  const adapter = await (options.adapter ?? defaultAdapter(kind, node))();
  if (adapter === null) throw new DeviceError('E_DEVICE', kind, 'no WebGPU adapter was found');
  const { info } = adapter;
  const software = isSoftware(info);
  if (kind === 'webgpu' && software) {
    throw new DeviceError('E_DEVICE', kind, `only a software adapter was found: ${describe(info)}`, {
      hint: 'webgpu:software',
    });
  }
  const gpu = await requestDevice(adapter, kind);
  node?.destroyAtExit(gpu);
  const budget = options.budget ?? (software && node !== undefined ? node.hostMemoryBudget() : Infinity);
  const wait = software ? node?.patiently : undefined;
  return new WebGpuDevice(gpu, factsOf(kind, gpu, info, software), budget, wait);
}

/** Asked of every adapter that has them. */
const FEATURES: readonly GPUFeatureName[] = ['subgroups', 'shader-f16', 'timestamp-query'];

/** Raised from WebGPU's small defaults to whatever the adapter has. */
const LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const;

async function requestDevice(adapter: GPUAdapter, kind: Kind): Promise<GPUDevice> {
  const requiredFeatures = FEATURES.filter((feature) => adapter.features.has(feature));
  const requiredLimits = Object.fromEntries(LIMITS.map((limit) => [limit, adapter.limits[limit]]));
  try {
    return await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (cause) {
    throw new DeviceError('E_DEVICE', kind, `${describe(adapter.info)} gave no device: ${String(cause)}`, {
      cause,
    });
  }
}

function defaultAdapter(
  kind: Kind,
  node: typeof import('./node.ts') | undefined,
): () => Promise<GPUAdapter | null> {
  if (node !== undefined) return kind === 'webgpu' ? node.hardwareAdapter : node.softwareAdapter;
  return async () => {
    const gpu = globalThis.navigator?.gpu as GPU | undefined;
    if (gpu === undefined)
      throw new DeviceError('E_DEVICE', kind, 'this browser has no WebGPU (navigator.gpu)');
    if (kind === 'webgpu') return gpu.requestAdapter({ powerPreference: 'high-performance' });
    return (await gpu.requestAdapter({ forceFallbackAdapter: true })) ?? gpu.requestAdapter();
  };
}

function factsOf(kind: Kind, gpu: GPUDevice, info: GPUAdapterInfo, software: boolean): DeviceFacts {
  const { limits } = gpu;
  // Drivers fail at the very edge of what they announce: 2^30 bytes do not fit where 2^30 - 256 do.
  const bufferBytes = limits.maxBufferSize - 256;
  return {
    name: kind,
    description: describe(info),
    software,
    features: FEATURES.filter((feature) => gpu.features.has(feature)),
    ...(gpu.features.has('subgroups')
      ? { subgroups: { min: info.subgroupMinSize ?? 4, max: info.subgroupMaxSize ?? 128 } }
      : {}),
    limits: {
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
      bufferBytes,
      bindingBytes: Math.min(bufferBytes, limits.maxStorageBufferBindingSize),
      workgroupBytes: limits.maxComputeWorkgroupStorageSize,
      workgroupInvocations: limits.maxComputeInvocationsPerWorkgroup,
      workgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
    },
  };
}

function isSoftware(info: GPUAdapterInfo): boolean {
  const words = `${info.architecture} ${info.device} ${info.description}`;
  return info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|basic render/i.test(words);
}

function describe(info: GPUAdapterInfo): string {
  const words = [info.vendor, info.architecture, info.device, info.description].filter((word) => word !== '');
  return words.join(' ') || 'an unnamed adapter';
}

function isNode(): boolean {
  return typeof process !== 'undefined' && process.versions?.node !== undefined;
}
