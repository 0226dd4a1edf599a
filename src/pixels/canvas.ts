// Tensors as pictures. On WebGPU the canvas shows what a pass draws of the tensor's memory; on other
// devices the elements are read and put there as bytes.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { showShape } from '../ir/shape.ts';
import { aTensor } from '../tensor/expect.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { div } from '../tensor/ops/elementwise/arithmetic.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { contextOf, currentGpu, drawPixels, guarded } from './gpu.ts';
import { aCanvas, aLayout, type PictureSize, type ToCanvasOptions } from './source.ts';
import type { Canvas } from '../platform.ts';

const takes = arg.takes<typeof toCanvas>(
  ['the picture', aTensor],
  ['the canvas', aCanvas],
  ['options', arg.options<ToCanvasOptions>({ layout: aLayout })],
);

/**
 * Draws a tensor on a canvas, which takes its size: `[height, width]`, or 1, 3 or 4 channels as
 * planes (with `layout: 'hwc'` beside each other), from 0 to 1, u8 from 0 to 255. On WebGPU nothing
 * is read back. Resolves when it is queued behind what computes it.
 */
export async function toCanvas(x: Tensor, canvas: Canvas, options: ToCanvasOptions = {}): Promise<void> {
  takes('toCanvas', x, canvas, options);
  const extent = extentOf(x, options.layout ?? 'chw');
  const shares = x.dtype === 'u8' ? div(cast(x, 'f32'), 255) : cast(x, 'f32');
  const gpu = await currentGpu();
  if (gpu === undefined) {
    put((await shares.data()) as Float32Array, canvas, extent);
    return;
  }
  const context = contextOf(canvas);
  const memory = await shares.buffer();
  try {
    const place = memory.as('webgpu');
    if (place === undefined || memory.device !== gpu.name) {
      const problem = `the picture lies on ${memory.device}, and ${gpu.name} draws`;
      throw new TensorError('E_STATE', 'toCanvas', problem, `setDevice('${gpu.name}') before it is computed`);
    }
    await guarded(gpu, 'toCanvas', () => drawPixels(gpu.device, canvas, context, extent, place));
  } finally {
    memory.release();
  }
}

function extentOf(x: Tensor, layout: 'chw' | 'hwc'): PictureSize {
  const { shape, dtype, rank } = x;
  const planes = rank === 2 ? [1, ...shape] : layout === 'chw' ? shape : [shape[2]!, shape[0]!, shape[1]!];
  const [channels, height, width] = planes as [number, number, number];
  const isPicture = (rank === 2 || rank === 3) && [1, 3, 4].includes(channels) && width * height > 0;
  if (isPicture && !dtype.startsWith('c'))
    return { channels, height, width, layout: rank === 2 ? 'chw' : layout };
  const expected = layout === 'chw' ? '[channels, height, width]' : '[height, width, channels]';
  throw new TensorError(
    'E_SHAPE',
    'toCanvas',
    `${showShape(shape, dtype)} is not a picture: expected [height, width] or ${expected} of 1, 3 or 4 channels`,
    layout === 'chw' && [1, 3, 4].includes(shape[2]!) ? "{ layout: 'hwc' }" : undefined,
  );
}

/** Elements as bytes on the canvas. */
function put(elements: Float32Array, canvas: Canvas, extent: PictureSize): void {
  const { width, height, channels, layout } = extent;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D | null;
  if (context === null)
    throw new TensorError(
      'E_STATE',
      'toCanvas',
      'the canvas has a context of another kind than 2d',
      'a new canvas',
    );
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const image = context.createImageData(width, height);
  const pixels = width * height;
  for (let pixel = 0; pixel < pixels; pixel++)
    for (let channel = 0; channel < 4; channel++) {
      const from = channels < 3 && channel < 3 ? 0 : channel;
      const at = layout === 'chw' ? from * pixels + pixel : pixel * channels + from;
      // Bytes saturate, and round.
      image.data[4 * pixel + channel] = from < channels ? 255 * elements[at]! : 255;
    }
  context.putImageData(image, 0, 0);
}
