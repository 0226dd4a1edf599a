// Pixels on a GPUDevice that tensors are computed on: no byte of them visits the host. A source
// becomes a texture (of a video the frame that the decoder has, by `importExternalTexture`), a pass
// writes it into the memory of a tensor; and the memory of a tensor is drawn into the texture that a
// canvas shows next.

import { DeviceError, TensorError } from '../errors.ts';
import { device } from '../tensor/device.ts';
import { isFrame, sizeOfSource, type FrameSource, type ImageSource, type PictureSize } from './source.ts';

// The two passes that stand between textures and tensors, in WGSL: one reads a texture into the
// elements of a tensor, one draws elements into a texture. Sizes and layouts are constants of the
// text, so each has a pipeline of its own, which is kept with its GPUDevice.

/** `frame`: a texture that belongs to a video; `image`: one of ours. */
type TextureKind = 'frame' | 'image';

/** Elements from one pixel to the next, and from one channel to the next. */
function steps({ width, height, channels, layout }: PictureSize): { pixel: number; channel: number } {
  return layout === 'chw' ? { pixel: 1, channel: width * height } : { pixel: channels, channel: 1 };
}

function placeOf(extent: PictureSize, channel: number): string {
  const step = steps(extent);
  const pixel = step.pixel === 1 ? 'pixel' : `pixel * ${step.pixel}u`;
  return channel === 0 ? pixel : `${pixel} + ${channel * step.channel}u`;
}

/** Invocations of a workgroup along each side. */
const side = 8;

/** Each pixel as elements from 0 to 1; a texture of another size is interpolated. */
function readShader(kind: TextureKind, extent: PictureSize): string {
  const { width, height, channels } = extent;
  const [type, load] =
    kind === 'frame'
      ? ['texture_external', 'textureLoad(image, id.xy)']
      : ['texture_2d<f32>', 'textureLoad(image, id.xy, 0)'];
  const stores = Array.from(
    { length: channels },
    (_, channel) => `  elements[${placeOf(extent, channel)}] = color[${channel}];`,
  );
  return `@group(0) @binding(0) var<storage, read_write> elements: array<f32>;
@group(0) @binding(1) var image: ${type};
@group(0) @binding(2) var between: sampler;

@compute @workgroup_size(${side}, ${side})
fn read(@builtin(global_invocation_id) id: vec3u) {
  let size = vec2u(${width}u, ${height}u);
  if (any(id.xy >= size)) { return; }
  let at = (vec2f(id.xy) + 0.5) / vec2f(size);
  var color = textureSampleBaseClampToEdge(image, between, at);
  if (all(textureDimensions(image) == size)) { color = ${load}; }
  let pixel = id.y * ${width}u + id.x;
${stores.join('\n')}
}
`;
}

/** One triangle over the whole target, each of whose pixels looks its elements up. */
function drawShader(extent: PictureSize): string {
  const { width, channels } = extent;
  const channel = (i: number): string => `elements[${placeOf(extent, i)}]`;
  const [red, green, blue] = channels < 3 ? [0, 0, 0] : [0, 1, 2];
  const color = `vec3f(${[red!, green!, blue!].map(channel).join(', ')})`;
  // What lies on the page behind the canvas shines through by how opaque a pixel is.
  const alpha = channels === 4 ? `saturate(${channel(3)})` : '1.0';
  return `@group(0) @binding(0) var<storage, read> elements: array<f32>;

@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
  return vec4f(f32(i % 2u) * 4.0 - 1.0, f32(i / 2u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn draw(@builtin(position) at: vec4f) -> @location(0) vec4f {
  let pixel = u32(at.y) * ${width}u + u32(at.x);
  let alpha = ${alpha};
  return vec4f(saturate(${color}) * alpha, alpha);
}
`;
}

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
    'a new canvas',
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
