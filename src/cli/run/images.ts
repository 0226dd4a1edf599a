// PNG and JPEG files as inputs of models: pixels in the layout and number of channels that the
// input's shape says, floats from 0 to 1 and normalised by channel, integers as they are.

import { readFile } from 'node:fs/promises';
import { decodedImage } from '../../data/files/image.ts';
import { SinterError } from '../../errors.ts';
import { tensor, type DType, type Tensor } from '../../index.ts';
import { UsageError } from '../command.ts';

export interface Normalisation {
  /** By channel, or one for all: (pixel − mean) / std. */
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** Samples by row, column and channel, from 0 to 1. */
interface Image {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly samples: Float32Array;
}

export interface ImagePort {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export function isImage(file: string): boolean {
  return /\.(?:png|jpe?g)$/i.test(file);
}

/**
 * The image in a file as a tensor of this type. Throws UsageError where its size or the input's
 * rank is another.
 */
export async function readImage(
  file: string,
  port: ImagePort,
  { mean, std }: Normalisation,
): Promise<Tensor> {
  const image = await decoded(file);
  const { channels, height, width, first } = layoutOf(port, file);
  if (image.width !== width || image.height !== height) {
    throw new UsageError(
      `${file} has ${image.width} × ${image.height} pixels (width × height), the input ${port.name} takes ${width} × ${height}\n  try: resize the image`,
    );
  }
  for (const [option, list] of [
    ['mean', mean],
    ['std', std],
  ] as const) {
    if (list.length > 1 && list.length !== channels)
      throw new UsageError(`--${option}: ${list.length} numbers for ${channels} channels of ${port.name}`);
  }
  const isReal = /^b?f/.test(port.dtype);
  const sample = samplerOf(image, channels);
  const out = new Float32Array(channels * height * width);
  for (let pixel = 0; pixel < height * width; pixel++) {
    for (let c = 0; c < channels; c++) {
      const value = sample(pixel, c);
      const normal = (value - (mean[c] ?? mean[0] ?? 0)) / (std[c] ?? std[0] ?? 1);
      out[first ? c * height * width + pixel : pixel * channels + c] = isReal
        ? normal
        : Math.round(255 * value);
    }
  }
  return tensor(out, { dtype: port.dtype, shape: [...port.shape] });
}

interface Layout {
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  /** Whether channels come before rows. */
  readonly first: boolean;
}

/**
 * Which axis is of channels: the one of size 3, else of size 1; the axis behind the batch where
 * both could be.
 */
function layoutOf({ name, shape }: ImagePort, file: string): Layout {
  const rest = shape.length === 4 && shape[0] === 1 ? shape.slice(1) : shape;
  const [a = 0, b = 0, c = 0] = rest;
  if (rest.length === 2) return { channels: 1, height: a, width: b, first: true };
  if (rest.length === 3) {
    for (const channels of [3, 1, 4]) {
      if (a === channels) return { channels, height: b, width: c, first: true };
      if (c === channels) return { channels, height: a, width: b, first: false };
    }
  }
  throw new UsageError(
    `${file} is an image, and the input ${name} of shape [${shape.join(', ')}] takes none: expected [1, 3, height, width] or [1, height, width, 3], or 1 channel`,
  );
}

/**
 * Grey from colours by their luma, colours from grey by repeating it; opacity is dropped unless it
 * is asked for.
 */
function samplerOf({ channels, samples }: Image, wanted: number): (pixel: number, channel: number) => number {
  const isGrey = channels < 3;
  const at = (pixel: number, c: number): number => samples[pixel * channels + c]!;
  return (pixel, c) => {
    if (c === 3) return channels % 2 === 0 ? at(pixel, channels - 1) : 1;
    if (isGrey) return at(pixel, 0);
    return wanted > 1 ? at(pixel, c) : 0.299 * at(pixel, 0) + 0.587 * at(pixel, 1) + 0.114 * at(pixel, 2);
  };
}

async function decoded(file: string): Promise<Image> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new UsageError(`there is no file ${file}`);
    throw error;
  }
  try {
    const { samples, ...sizes } = await decodedImage(file, bytes, file, Infinity);
    return { ...sizes, samples: Float32Array.from(samples, (sample) => sample / 255) };
  } catch (error) {
    if (error instanceof SinterError && error.message.includes(file)) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new SinterError('E_FORMAT', `${file}: no image: ${problem}`, { cause: error });
  }
}
