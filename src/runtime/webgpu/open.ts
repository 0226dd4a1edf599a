// The two WebGPU backends: `webgpu` is hardware and refuses software adapters, `webgpu:software` is
// an adapter that computes on the processor: the host's own (a browser's fallback adapter, lavapipe
// in Deno), else SwiftShader out of npm in Node. In: nothing, or an adapter of your own; out: a
// Device.

import { DeviceError } from '../../errors.ts';
import type { Backend, Device, DeviceFacts } from '../device.ts';
import { describeAdapter, findAdapter, hostSource, softwareName, type AdapterKind } from './adapters.ts';
import { WebGpuDevice } from './device.ts';

/** How to open: every field has a default that fits the place the code runs in. */
export interface WebGpuOptions {
  /** Where the adapter comes from; by default the host's, or npm's in Node. */
  readonly adapter?: () => Promise<GPUAdapter | null>;
  /**
   * Bytes all buffers together may take. Default: unlimited on hardware, three quarters of the
   * memory on software.
   */
  readonly budget?: number;
}

/** The machine's GPU. */
export const webgpuBackend: Backend = { name: 'webgpu', open: () => openWebGpu('webgpu') };

/**
 * WebGPU without a GPU: the fallback adapter of a browser or of Deno, SwiftShader out of npm in
 * Node.
 */
export const webgpuSoftwareBackend: Backend = {
  name: 'webgpu:software',
  open: () => openWebGpu('webgpu:software'),
};

/** Opens a WebGPU device; rejects with DeviceError E_DEVICE and the reason when there is none. */
export async function openWebGpu(kind: AdapterKind, options: WebGpuOptions = {}): Promise<Device> {
  const node = isNode() ? await import('./node.ts') : undefined;
  const dawn = kind === 'webgpu' ? node?.hardwareAdapter : node?.softwareAdapter;
  const host = hostSource(kind);
  const sources = options.adapter === undefined ? [host, dawn] : [options.adapter];
  const { adapter, source } = await findAdapter(
    kind,
    sources.filter((each) => each !== undefined),
  );
  const { info } = adapter;
  const software = softwareName(info) !== undefined;
  const gpu = await requestDevice(adapter, kind);
  node?.destroyAtExit(gpu);
  const budget = options.budget ?? (software && node !== undefined ? node.hostMemoryBudget() : Infinity);
  // Awaiting Dawn in Node keeps a core busy; awaiting the host's WebGPU does not.
  const wait = software && source !== host ? node?.patiently : undefined;
  const subgroups = await subgroupsOf(gpu, info);
  return new WebGpuDevice(gpu, factsOf(kind, gpu, info, software, subgroups), budget, wait);
}

/** A device over a GPUDevice of somebody else's, who keeps it. */
export async function adoptGpu(name: string, gpu: GPUDevice): Promise<Device> {
  const node = isNode() ? await import('./node.ts') : undefined;
  const info = (gpu.adapterInfo as GPUAdapterInfo | undefined) ?? nobody;
  const software = softwareName(info) !== undefined;
  const budget = software && node !== undefined ? node.hostMemoryBudget() : Infinity;
  const wait = software && hostSource('webgpu') === undefined ? node?.patiently : undefined;
  const subgroups = await subgroupsOf(gpu, info);
  return new WebGpuDevice(gpu, factsOf(name, gpu, info, software, subgroups), budget, wait, true);
}

/** Of a GPUDevice that does not tell its adapter. */
const nobody = {
  vendor: '',
  architecture: '',
  device: '',
  description: '',
  isFallbackAdapter: false,
} as GPUAdapterInfo;

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

async function requestDevice(adapter: GPUAdapter, kind: AdapterKind): Promise<GPUDevice> {
  const requiredFeatures = FEATURES.filter((feature) => adapter.features.has(feature));
  const requiredLimits = Object.fromEntries(LIMITS.map((limit) => [limit, adapter.limits[limit]]));
  try {
    return await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (cause) {
    throw new DeviceError(
      'E_DEVICE',
      kind,
      `${describeAdapter(adapter.info)} gave no device: ${String(cause)}`,
      {
        cause,
      },
    );
  }
}

/**
 * Sizes of subgroups, where kernels can use them. WebGPU does not specify which invocations form a
 * subgroup, so kernels need `subgroup_id`; whether it exists is tested by compiling a shader that
 * uses it.
 */
async function subgroupsOf(gpu: GPUDevice, info: GPUAdapterInfo): Promise<DeviceFacts['subgroups']> {
  if (!gpu.features.has('subgroups')) return undefined;
  gpu.pushErrorScope('validation');
  gpu.createShaderModule({
    code: `enable subgroups;
requires subgroup_id;
@compute @workgroup_size(1)
fn main(@builtin(subgroup_id) number: u32, @builtin(num_subgroups) count: u32) {}`,
  });
  if ((await gpu.popErrorScope().catch(() => true)) !== null) return undefined;
  return { min: info.subgroupMinSize ?? 4, max: info.subgroupMaxSize ?? 128 };
}

function factsOf(
  kind: string,
  gpu: GPUDevice,
  info: GPUAdapterInfo,
  software: boolean,
  subgroups: DeviceFacts['subgroups'],
): DeviceFacts {
  const { limits } = gpu;
  // Drivers fail at the very edge of what they announce: 2^30 bytes do not fit where 2^30 - 256 do.
  // Some announce 2^31 - 1, but sizes are whole words.
  const bufferBytes = Math.floor(limits.maxBufferSize / 256) * 256 - 256;
  return {
    name: kind,
    target: 'wgsl',
    combining: 'nobody',
    description: describeAdapter(info),
    software,
    features: FEATURES.filter((feature) => gpu.features.has(feature)),
    ...(subgroups === undefined ? {} : { subgroups }),
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

function isNode(): boolean {
  return typeof process !== 'undefined' && process.versions?.node !== undefined;
}
