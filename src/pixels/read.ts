// Pictures as tensors. On WebGPU a pass writes the pixels where the tensor lies; on other devices the
// browser hands them over as bytes, and the tensor is computed of those.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { fromBuffer } from '../tensor/from-buffer.ts';
import { allocateBuffer } from '../tensor/buffer/source.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { div } from '../tensor/ops/elementwise/arithmetic.ts';
import { narrow } from '../tensor/ops/shape/indexing.ts';
import { permute } from '../tensor/ops/shape/view.ts';
import { fromBytes } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { currentGpu, guarded, readPixels } from './gpu.ts';
import {
  aLayout,
  aSource,
  checkBytes,
  isPixelData,
  shapeOf,
  sizeOfSource,
  type PictureSize,
  type FromPixelsOptions,
  type PixelData,
  type PixelSource,
} from './source.ts';

const takes = arg.takes<typeof fromPixels>(
  ['the source', aSource],
  [
    'options',
    arg.options<FromPixelsOptions>({
      layout: aLayout,
      channels: arg.kind<3 | 4>('3 or 4', (value) => value === 3 || value === 4),
      width: arg.count(1),
      height: arg.count(1),
    }),
  ],
);

/**
 * The pixels of a picture or of a video's frame at this moment, as f32 from 0 to 1: `[3, height,
 * width]`, or `[height, width, 4]` with `layout: 'hwc'`. On WebGPU they stay on the GPU. A
 * VideoFrame may be closed once the promise is kept.
 */
export async function fromPixels(
  source: PixelSource,
  options: FromPixelsOptions = {},
): Promise<Tensor<'f32'>> {
  takes('fromPixels', source, options);
  const { layout = 'chw', channels = layout === 'chw' ? 3 : 4 } = options;
  const { width, height } = sizeOfSource(source);
  const extent: PictureSize = {
    layout,
    channels,
    width: options.width ?? width,
    height: options.height ?? height,
  };
  if (isPixelData(source)) checkBytes(source);
  const isResized = extent.width !== width || extent.height !== height;
  if (isPixelData(source) && !isResized) return fromRgba(source, extent);
  const gpu = await currentGpu();
  if (gpu === undefined) return fromRgba(drawn(source, extent), extent);
  const image = isPixelData(source) ? await createImageBitmap(imageData(source)) : source;
  const memory = await allocateBuffer(extent.channels * extent.width * extent.height);
  try {
    const place = (await memory.asMut('webgpu'))!;
    // What was queued before may use memory that is given out anew.
    await gpu.submitted();
    await guarded(gpu, 'fromPixels', () => readPixels(gpu.device, image, extent, place));
    return fromBuffer(memory, { shape: shapeOf(extent) });
  } finally {
    memory.release();
    if (image !== source) (image as ImageBitmap).close();
  }
}

/** Bytes as a tensor of them would be computed. */
function fromRgba({ data, width, height }: PixelData, { channels, layout }: PictureSize): Tensor {
  const bytes = fromBytes(new Uint8Array(data), [height, width, 4], 'u8');
  const wanted = channels === 4 ? bytes : narrow(bytes, 2, 0, channels);
  const shares = div(cast(wanted, 'f32'), 255);
  return layout === 'hwc' ? shares : permute(shares, [2, 0, 1]);
}

/** The pixels of a source at a size, as the browser draws them. */
function drawn(source: PixelSource, { width, height }: PictureSize): PixelData {
  if (typeof OffscreenCanvas === 'undefined') throw noCanvas();
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })!;
  let image: Exclude<PixelSource, PixelData> = source as Exclude<PixelSource, PixelData>;
  if (isPixelData(source)) {
    image = new OffscreenCanvas(source.width, source.height);
    image.getContext('2d')!.putImageData(imageData(source), 0, 0);
  }
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

function imageData({ data, width, height }: PixelData): ImageData {
  if (typeof ImageData === 'undefined') throw noCanvas();
  return new ImageData(new Uint8ClampedArray(data), width, height);
}

const noCanvas = (): TensorError =>
  new TensorError(
    'E_UNSUPPORTED',
    'fromPixels',
    'another size needs a canvas, and there is none here',
    "the source's own width and height, and interpolate()",
  );
