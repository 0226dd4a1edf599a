// Pixels on a GPUDevice that tensors are computed on: no byte of them visits the host. A source
// becomes a texture (of a video the frame that the decoder has, by `importExternalTexture`), a pass
// writes it into the memory of a tensor; and the memory of a tensor is drawn into the texture that a
// canvas shows next.

import { DeviceError, TensorError } from '../errors.ts';
import { device } from '../tensor/storage/device.ts';
import { drawShader, readShader, side, type TextureKind } from './shaders.ts';
import { isFrame, sizeOfSource, type PictureSize, type FrameSource, type ImageSource } from './source.ts';

/** The GPUDevice that tensors are computed on now. */
export interface CurrentGpu {
  readonly name: string;
  readonly device: GPUDevice;
  /** Resolves when what was asked for so far stands in its queue. */
  submitted(): Promise<void>;
}

/** Undefined where tensors are computed on something else. */
export async function currentGpu(): Promise<CurrentGpu | undefined> {
  const target = await device();
  const sharing = await target.sharing?.();
  if (sharing?.native.api !== 'webgpu') return undefined;
  return {
    name: target.facts.name,
    device: sharing.native.device,
    submitted: () => sharing.submitted(),
  };
}

/** Queues work in an error scope; rejects with E_VALIDATION where the GPU, or a call, refuses it. */
export async function guarded(
  { name, device: gpu }: CurrentGpu,
  op: string,
  work: () => void,
): Promise<void> {
  let thrown: unknown;
  gpu.pushErrorScope('validation');
  try {
    work();
  } catch (error) {
    thrown = error;
  }
  const refused = await gpu.popErrorScope().catch(() => null);
  if (thrown instanceof TensorError) throw thrown;
  const problem = refused?.message ?? (thrown === undefined ? undefined : String(thrown));
  if (problem !== undefined)
    throw new DeviceError('E_VALIDATION', name, `${op}: ${problem.trim().split('\n')[0]}`, { cause: thrown });
}

/** GPUTextureUsage's numbers; not every realm has such a global. */
const usage = { COPY_DST: 2, TEXTURE_BINDING: 4, RENDER_ATTACHMENT: 16 } as const;

const passes = new WeakMap<GPUDevice, Map<string, GPUComputePipeline>>();
const drawings = new WeakMap<GPUDevice, Map<string, GPURenderPipeline>>();
const samplers = new WeakMap<GPUDevice, GPUSampler>();

function kept<K extends object, V>(cache: WeakMap<K, V>, key: K, make: () => V): V {
  const known = cache.get(key) ?? make();
  cache.set(key, known);
  return known;
}

function keptByText<V>(
  cache: WeakMap<GPUDevice, Map<string, V>>,
  gpu: GPUDevice,
  text: string,
  make: () => V,
): V {
  const known = kept(cache, gpu, () => new Map<string, V>());
  const found = known.get(text) ?? make();
  known.set(text, found);
  return found;
}

/**
 * Queues the pass that writes a source's pixels into the memory of a tensor. A frame must be whole
 * until this returns, and no longer.
 */
export function readPixels(
  gpu: GPUDevice,
  source: FrameSource | ImageSource,
  extent: PictureSize,
  memory: GPUBufferBinding,
): void {
  const kind: TextureKind = isFrame(source) ? 'frame' : 'image';
  const text = readShader(kind, extent);
  const pipeline = keptByText(passes, gpu, text, () =>
    gpu.createComputePipeline({
      label: 'pixels of a source',
      layout: 'auto',
      compute: { module: gpu.createShaderModule({ code: text }), entryPoint: 'read' },
    }),
  );
  const sampler = kept(samplers, gpu, () => gpu.createSampler({ magFilter: 'linear', minFilter: 'linear' }));
  const texture = isFrame(source) ? undefined : textureOf(gpu, source);
  const image = texture?.createView() ?? gpu.importExternalTexture({ source: source as FrameSource });
  const group = gpu.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [
      { binding: 0, resource: memory },
      { binding: 1, resource: image },
      { binding: 2, resource: sampler },
    ],
  });
  const encoder = gpu.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(Math.ceil(extent.width / side), Math.ceil(extent.height / side));
  pass.end();
  gpu.queue.submit([encoder.finish()]);
  texture?.destroy();
}

function textureOf(gpu: GPUDevice, source: ImageSource): GPUTexture {
  const { width, height } = sizeOfSource(source);
  const texture = gpu.createTexture({
    size: [width, height],
    format: 'rgba8unorm',
    usage: usage.COPY_DST | usage.TEXTURE_BINDING | usage.RENDER_ATTACHMENT,
  });
  gpu.queue.copyExternalImageToTexture({ source }, { texture }, [width, height]);
  return texture;
}

type Canvas = HTMLCanvasElement | OffscreenCanvas;

/** Which device a canvas shows textures of, and whether the page shines through. */
const shown = new WeakMap<Canvas, { readonly gpu: GPUDevice; readonly alphaMode: GPUCanvasAlphaMode }>();

/** The canvas's context, for textures of this device; throws E_STATE where it has one of another kind. */
export function contextOf(canvas: Canvas): GPUCanvasContext {
  const context = canvas.getContext('webgpu') as GPUCanvasContext | null;
  if (context !== null) return context;
  throw new TensorError(
    'E_STATE',
    'toCanvas',
    'the canvas has a context of another kind than webgpu',
    'a canvas that nothing was drawn on',
  );
}

/** Queues the pass that draws a tensor's memory on the canvas, which takes its size. */
export function drawPixels(
  gpu: GPUDevice,
  canvas: Canvas,
  context: GPUCanvasContext,
  extent: PictureSize,
  memory: GPUBufferBinding,
): void {
  const { width, height, channels } = extent;
  const format = navigator.gpu.getPreferredCanvasFormat();
  const alphaMode = channels === 4 ? 'premultiplied' : 'opaque';
  const before = shown.get(canvas);
  if (before?.gpu !== gpu || before.alphaMode !== alphaMode) {
    context.configure({ device: gpu, format, alphaMode });
    shown.set(canvas, { gpu, alphaMode });
  }
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const text = drawShader(extent);
  const pipeline = keptByText(drawings, gpu, text, () => {
    const module = gpu.createShaderModule({ code: text });
    return gpu.createRenderPipeline({
      label: 'pixels of a tensor',
      layout: 'auto',
      vertex: { module, entryPoint: 'corner' },
      fragment: { module, entryPoint: 'draw', targets: [{ format }] },
    });
  });
  const group = gpu.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: memory }],
  });
  const encoder = gpu.createCommandEncoder();
  const view = context.getCurrentTexture().createView();
  const pass = encoder.beginRenderPass({
    colorAttachments: [{ view, loadOp: 'clear', storeOp: 'store' }],
  });
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.draw(3);
  pass.end();
  gpu.queue.submit([encoder.finish()]);
}
