// Resizing of images on the host: each result is a mean of the pixels under a triangle around its
// place, which is as wide as the scale when an image shrinks, so that nothing is passed over
// (bilinear with antialiasing, as in PIL and torchvision).

/** Samples by row, column and channel, from 0 to 255. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly samples: Float32Array | Uint8Array;
}

/** Which places count to one along an axis, and how much. */
interface Taps {
  readonly first: number;
  readonly weights: readonly number[];
}

function tapsOf(from: number, to: number): Taps[] {
  const scale = from / to;
  const reach = Math.max(1, scale);
  return Array.from({ length: to }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.floor(centre - reach + 0.5));
    const last = Math.min(from, Math.floor(centre + reach + 0.5));
    const raw = Array.from({ length: last - first }, (__, at) =>
      Math.max(0, 1 - Math.abs((first + at + 0.5 - centre) / reach)),
    );
    const total = raw.reduce((sum, weight) => sum + weight, 0);
    return { first, weights: raw.map((weight) => weight / total) };
  });
}

/** The image at another size. */
export function resized(
  { width, height, channels, samples }: Pixels,
  toHeight: number,
  toWidth: number,
): Pixels {
  const rows = new Float32Array(height * toWidth * channels);
  for (const [x, { first, weights }] of tapsOf(width, toWidth).entries())
    for (let y = 0; y < height; y++)
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        for (const [at, weight] of weights.entries())
          sum += weight * (samples[(y * width + first + at) * channels + c] as number);
        rows[(y * toWidth + x) * channels + c] = sum;
      }
  const out = new Float32Array(toHeight * toWidth * channels);
  const stride = toWidth * channels;
  for (const [y, { first, weights }] of tapsOf(height, toHeight).entries())
    for (let i = 0; i < stride; i++) {
      let sum = 0;
      for (const [at, weight] of weights.entries())
        sum += weight * (rows[(first + at) * stride + i] as number);
      out[y * stride + i] = sum;
    }
  return { width: toWidth, height: toHeight, channels, samples: out };
}
