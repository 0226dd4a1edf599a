// Images as arrays: decoded by packages in Node (fast-png, jpeg-js: optional peers), by the browser
// in a page, brought to a number of channels and to a size.

import * as arg from '../../ir/arguments.ts';
import { SinterError, TensorError, ParseError } from '../../errors.ts';
import { Allowance, limitTable } from '../../io/allowance.ts';
import type { HostTensor } from '../../io/host.ts';
import { checkedPng } from './png.ts';
import {
  aSource,
  bytesOf,
  isNode,
  malformed,
  nameOf,
  packageFor,
  placeOf,
  type FileSource,
} from './source.ts';

export interface ImageOptions {
  /** 1 (grey), 3 (colours; the default) or 4 (with opacity). */
  readonly channels?: 1 | 3 | 4;
  /** [height, width] to which it is resized, by areas; its own by default. */
  readonly size?: readonly [height: number, width: number];
  /** Most bytes of the picture; by default 64 MiB and eight times the file. Infinity for none. */
  readonly maxBytes?: number;
}

const channelCount: arg.Kind<1 | 3 | 4> = arg.kind('1, 3 or 4', (value) =>
  [1, 3, 4].includes(value as number),
);
/** The kinds of the options of images. */
export const imageTable: arg.Table<ImageOptions> = {
  channels: channelCount,
  size: arg.tupleOf(arg.count(1), arg.count(1)),
  ...limitTable,
};
const takesImage = arg.takes<typeof readImage>(
  ['the file', aSource],
  ['options', arg.options<ImageOptions>(imageTable)],
);

/**
 * An image in a file, PNG or JPEG (in pages whatever the browser knows), as u8 [channels, height, width]. A JPEG file is turned
 * upright, as its EXIF data say, in Node as in pages.
 */
export async function readImage(file: FileSource, options: ImageOptions = {}): Promise<HostTensor<'u8'>> {
  takesImage('readImage', file, options);
  return imageOf('readImage', file, options);
}

/** `readImage` for those who have checked their options. */
export async function imageOf(
  op: string,
  file: FileSource,
  { channels = 3, size, maxBytes }: ImageOptions,
): Promise<HostTensor<'u8'>> {
  const bytes = await bytesOf(op, file);
  let pixels: Pixels;
  try {
    pixels = await decodedImage(op, bytes, nameOf(file), maxBytes);
  } catch (error) {
    throw malformed(op, file, error);
  }
  const own = withChannels(pixels, channels);
  const { height, width, samples } = size === undefined ? own : resized(own, ...size);
  const data = new Uint8Array(channels * height * width);
  for (let pixel = 0; pixel < height * width; pixel++)
    for (let c = 0; c < channels; c++)
      data[c * height * width + pixel] = Math.round(samples[pixel * channels + c] as number);
  return { dtype: 'u8', shape: [channels, height, width], data };
}

/** The picture in the bytes of a file. Throws E_FORMAT, and E_LIMIT where it takes more than `maxBytes`. */
export async function decodedImage(
  op: string,
  bytes: Uint8Array,
  name: string,
  maxBytes: number | undefined,
): Promise<Pixels> {
  const allowance = new Allowance(op, bytes.length, maxBytes);
  if (bytes[0] === 0x89 && bytes[1] === 0x50) {
    const checked = await checkedPng(bytes, allowance);
    return isNode() ? png(op, checked) : inPage(bytes);
  }
  if (bytes[0] === 0xff && bytes[1] === 0xd8) {
    const orientation = checkJpeg(bytes, allowance);
    return isNode() ? turned(await jpeg(op, bytes, allowance), orientation) : inPage(bytes);
  }
  if (!isNode()) return inPage(bytes);
  throw new TensorError('E_FORMAT', op, `${name} is neither PNG nor JPEG`);
}

/** What is used of fast-png. */
interface PngPackage {
  decode(bytes: Uint8Array): PngImage;
  convertIndexedToRgb(image: PngImage): Uint8Array;
}

interface PngImage {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly channels: number;
  readonly palette?: readonly (readonly number[])[];
  readonly data: Uint8Array | Uint16Array;
}

async function png(op: string, bytes: Uint8Array): Promise<Pixels> {
  const { convertIndexedToRgb, decode } = await packageFor<PngPackage>(op, 'fast-png', undefined);
  const image = decode(bytes);
  const { width, height, depth, palette, data } = image;
  if (palette !== undefined) {
    const samples = convertIndexedToRgb(image);
    return { width, height, channels: palette[0]?.length ?? 3, samples };
  }
  const { channels } = image;
  if (depth < 8) return { width, height, channels, samples: spread(image) };
  if (data instanceof Uint8Array) return { width, height, channels, samples: data };
  return { width, height, channels, samples: Float32Array.from(data, (sample) => sample / 257) };
}

/** Grey samples of 1, 2 or 4 bits as bytes. Rows begin at whole bytes, and the first sample has the highest bits of one. */
function spread({ width, height, depth, data }: PngImage): Uint8Array {
  const most = 2 ** depth - 1;
  const rowBytes = Math.ceil((width * depth) / 8);
  const out = new Uint8Array(width * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const bit = x * depth;
      const byte = data[y * rowBytes + (bit >> 3)]!;
      out[y * width + x] = (((byte >> (8 - depth - (bit & 7))) & most) * 255) / most;
    }
  return out;
}

/** What is used of jpeg-js. */
interface JpegPackage {
  decode(
    bytes: Uint8Array,
    options: { readonly useTArray: true; readonly formatAsRGBA: false; readonly maxMemoryUsageInMB: number },
  ): Decoded;
}

interface Decoded {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

/** In a thread: how often a file goes over its picture is for it to say. */
async function jpeg(op: string, bytes: Uint8Array, allowance: Allowance): Promise<Pixels> {
  const { askPeer } = await import('./peer.ts');
  const module = await placeOf(op, 'jpeg-js');
  const { width, height, data } = await askPeer<Uint8Array, Decoded>({
    op,
    module,
    allowance,
    fileBytes: bytes.length,
    given: bytes,
    task: ({ decode }: JpegPackage, given) => {
      const found = decode(given, { useTArray: true, formatAsRGBA: false, maxMemoryUsageInMB: 4096 });
      return { width: found.width, height: found.height, data: found.data };
    },
  });
  return { width, height, channels: 3, samples: data };
}

/** By the browser. Opacity is kept as it is in the file, not multiplied in. */
async function inPage(bytes: Uint8Array): Promise<Pixels> {
  if (typeof createImageBitmap !== 'function' || typeof OffscreenCanvas === 'undefined')
    throw new SinterError('E_UNSUPPORTED', 'readImage: there are no images here: neither Node nor a page');
  const bitmap = await createImageBitmap(new Blob([bytes as Uint8Array<ArrayBuffer>]), {
    premultiplyAlpha: 'none',
    colorSpaceConversion: 'none',
  });
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d');
  if (context === null) throw new SinterError('E_UNSUPPORTED', 'readImage: the page has no canvas');
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  return { width, height, channels: 4, samples: new Uint8Array(data) };
}

/** Grey from colours by their luma (ITU-R BT.601), colours from grey by repeating it; opaque where nothing is said. */
function withChannels({ width, height, channels, samples }: Pixels, wanted: 1 | 3 | 4): Pixels {
  if (channels === wanted) return { width, height, channels, samples };
  const isGrey = channels < 3;
  const out = new Float32Array(width * height * wanted);
  for (let pixel = 0; pixel < width * height; pixel++) {
    const at = (c: number): number => samples[pixel * channels + c] as number;
    const colour = (c: number): number => (isGrey ? at(0) : at(c));
    if (wanted === 1) out[pixel] = isGrey ? at(0) : 0.299 * at(0) + 0.587 * at(1) + 0.114 * at(2);
    else for (let c = 0; c < 3; c++) out[pixel * wanted + c] = colour(c);
    if (wanted === 4) out[pixel * 4 + 3] = channels % 2 === 0 ? at(channels - 1) : 255;
  }
  return { width, height, channels: wanted, samples: out };
}

// Resizing of images on the host: each result is a mean of the pixels under a triangle around its
// place, which is as wide as the scale when an image shrinks, so that nothing is passed over
// (bilinear with antialiasing, as in PIL and torchvision).

/** Samples by row, column and channel, from 0 to 255. */
interface Pixels {
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
function resized({ width, height, channels, samples }: Pixels, toHeight: number, toWidth: number): Pixels {
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

// JPEG files before they are decoded (ITU-T T.81): the frame's size is held to the bytes that are
// there. Each block of 8 × 8 samples takes a bit of them at least.

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'jpeg', problem);
}

/** Markers of frames: those with Huffman codes that decoders know, and the others. */
const known: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2]);
const frames: ReadonlySet<number> = new Set([
  0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf,
]);

/**
 * How the picture lies (1 to 8, as EXIF counts). Throws ParseError E_FORMAT where the file cannot hold the picture that it declares,
 * E_LIMIT where that is too large.
 */
function checkJpeg(bytes: Uint8Array, allowance: Allowance): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let hasFrame = false;
  let orientation: number | undefined;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) throw broken(`byte ${at}: there is no marker`);
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker === 0xd9) break;
    const length = view.getUint16(at + 2);
    const end = at + 2 + length;
    if (length < 2 || end > bytes.length) throw broken(`byte ${at}: a segment runs past the end of the file`);
    if (frames.has(marker)) {
      if (hasFrame) throw broken('it has two frames');
      checkFrame(bytes.subarray(at + 4, end), marker, bytes.length, allowance);
      hasFrame = true;
    }
    if (marker === 0xe1) orientation ??= orientationOf(bytes.subarray(at + 4, end));
    at = marker === 0xda ? behindScan(bytes, end) : end;
  }
  if (!hasFrame) throw broken('it has no frame');
  return orientation ?? 1;
}

/** The orientation in a segment of EXIF data, a TIFF file behind six bytes; undefined where it has none that can be read. */
function orientationOf(segment: Uint8Array): number | undefined {
  if (String.fromCharCode(...segment.subarray(0, 6)) !== 'Exif\0\0' || segment.length < 14) return undefined;
  const view = new DataView(segment.buffer, segment.byteOffset + 6, segment.length - 6);
  const isLittle = view.getUint16(0) === 0x4949;
  const begin = view.getUint32(4, isLittle);
  if (view.getUint16(2, isLittle) !== 42 || begin + 2 > view.byteLength) return undefined;
  const count = view.getUint16(begin, isLittle);
  for (let at = begin + 2; at < begin + 2 + 12 * count && at + 12 <= view.byteLength; at += 12) {
    if (view.getUint16(at, isLittle) !== 0x0112) continue;
    const value = view.getUint16(at + 8, isLittle);
    return value >= 1 && value <= 8 ? value : undefined;
  }
  return undefined;
}

/** The picture upright. From 5 on rows are columns; then it may be the other way round along each of its axes. */
function turned({ width, height, channels, samples }: Pixels, orientation: number): Pixels {
  if (orientation === 1) return { width, height, channels, samples };
  const isTransposed = orientation >= 5;
  const isMirrored = [2, 3, 7, 8].includes(orientation);
  const isUpsideDown = [3, 4, 6, 7].includes(orientation);
  const [newWidth, newHeight] = isTransposed ? [height, width] : [width, height];
  const out = new Uint8Array(samples.length);
  for (let y = 0; y < newHeight; y++)
    for (let x = 0; x < newWidth; x++) {
      const [column, row] = isTransposed ? [y, x] : [x, y];
      const fromColumn = isMirrored ? width - 1 - column : column;
      const fromRow = isUpsideDown ? height - 1 - row : row;
      const from = (fromRow * width + fromColumn) * channels;
      for (let c = 0; c < channels; c++) out[(y * newWidth + x) * channels + c] = samples[from + c] as number;
    }
  return { width: newWidth, height: newHeight, channels, samples: out };
}

function checkFrame(frame: Uint8Array, marker: number, fileBytes: number, allowance: Allowance): void {
  if (!known.has(marker)) throw broken(`frames of the kind 0x${marker.toString(16)} are not read`);
  const [precision, h0 = 0, h1 = 0, w0 = 0, w1 = 0, count = 0] = frame;
  if (frame.length !== 6 + 3 * count) throw broken('its frame has another length');
  const [height, width] = [256 * h0 + h1, 256 * w0 + w1];
  if (precision !== 8 || height === 0 || width === 0 || ![1, 3, 4].includes(count))
    throw broken(`its frame is of ${count} × ${width} × ${height} samples of ${precision} bits`);
  const factors = Array.from({ length: count }, (_, i) => frame[7 + 3 * i]!).flatMap((byte) => [
    byte >> 4,
    byte & 15,
  ]);
  if (factors.some((factor) => factor < 1 || factor > 4))
    throw broken('its samples are not 1 to 4 times as many');
  allowance.spend(3 * width * height, `a picture of ${width} × ${height} pixels`);
  if (Math.ceil(width / 8) * Math.ceil(height / 8) > 8 * 16 * fileBytes)
    throw broken(`${fileBytes} bytes cannot hold a picture of ${width} × ${height} pixels`);
}

/** The first marker behind a scan's bits that is none of their own. */
function behindScan(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(0xff, at);
    if (at < 0) return bytes.length;
    const next = bytes[at + 1] ?? 0;
    if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at;
  }
}
