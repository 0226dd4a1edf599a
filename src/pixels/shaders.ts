// The two passes that stand between textures and tensors, in WGSL: one reads a texture into the
// elements of a tensor, one draws elements into a texture. Sizes and layouts are constants of the
// text, so each has a pipeline of its own, which is kept with its GPUDevice.

import type { PictureSize } from './source.ts';

/** `frame`: a texture that belongs to a video; `image`: one of ours. */
export type TextureKind = 'frame' | 'image';

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
export const side = 8;

/** Each pixel as elements from 0 to 1; a texture of another size is interpolated. */
export function readShader(kind: TextureKind, extent: PictureSize): string {
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
export function drawShader(extent: PictureSize): string {
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
