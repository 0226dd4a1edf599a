// A software device together with the GPUDevice under it, for tests that count its calls or break it.

import type { Device } from '../../src/runtime/device.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { openWebGpu, type WebGpuOptions } from '../../src/runtime/webgpu/open.ts';

/** Opens `webgpu:software` and keeps hold of what it was given. */
export async function openWithGpu(options: WebGpuOptions = {}): Promise<{ device: Device; gpu: GPUDevice }> {
  const adapter = await softwareAdapter();
  let gpu: GPUDevice | undefined;
  const watched = {
    info: adapter.info,
    features: adapter.features,
    limits: adapter.limits,
    requestDevice: async (descriptor: GPUDeviceDescriptor) => (gpu = await adapter.requestDevice(descriptor)),
  };
  const device = await openWebGpu('webgpu:software', {
    adapter: () => Promise.resolve(watched as unknown as GPUAdapter),
    ...options,
  });
  return { device, gpu: gpu! };
}
