// What has pixels, and how a tensor lays them out: rows of pixels (`hwc`, as browsers have them) or a
// plane for each channel (`chw`, as convolutions want them). One place for what callers may give.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { Canvas } from '../platform.ts';

/** Where the channels are: first, as planes, or last, beside each other. */
export type PixelLayout = 'chw' | 'hwc';

/** RGBA bytes in rows, as `ImageData` has them; made of anything, in a page or not. */
export interface PixelData {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** A frame of a video. */
export type FrameSource = VideoFrame | HTMLVideoElement;

/** What a browser can put into a texture. */
export type ImageSource = ImageBitmap | HTMLImageElement | Canvas;

/** What pixels are read from. */
export type PixelSource = FrameSource | ImageSource | PixelData;

/** What `fromPixels` makes of a source. */
export interface FromPixelsOptions {
  /** `chw` by default. */
  readonly layout?: PixelLayout;
  /** 3, or 4 with alpha: by default 3 planes, or 4 beside each other. */
  readonly channels?: 3 | 4;
  /** Pixels in a row, as many as the source has by default; others are interpolated. */
  readonly width?: number;
  /** Rows, as many as the source has by default; others are interpolated. */
  readonly height?: number;
}

export interface ToCanvasOptions {
  /** `chw` by default. */
  readonly layout?: PixelLayout;
}

/** A picture, all of it known. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly layout: PixelLayout;
}

const names = ['VideoFrame', 'HTMLVideoElement', 'ImageBitmap', 'HTMLImageElement'] as const;
const canvases = ['HTMLCanvasElement', 'OffscreenCanvas'] as const;

/** Whether a value is of a class that this realm has under that name. */
function isA(name: string, value: unknown): boolean {
  const found = (globalThis as Readonly<Record<string, unknown>>)[name];
  return typeof found === 'function' && value instanceof found;
}

export function isPixelData(value: unknown): value is PixelData {
  const { data, width, height } = Object(value) as Partial<PixelData>;
  if (!(data instanceof Uint8ClampedArray || arg.isBytes(data))) return false;
  return [width, height].every((size) => Number.isSafeInteger(size) && size! > 0);
}

export function isFrame(value: unknown): value is FrameSource {
  return isA('VideoFrame', value) || isA('HTMLVideoElement', value);
}

/** Whether a value has `getContext`, as canvases of any realm do. */
function isCanvas(value: unknown): value is Canvas {
  return typeof (Object(value) as { getContext?: unknown }).getContext === 'function';
}

export const aSource: arg.Kind<PixelSource> = arg.kind(
  `one of ${[...names, ...canvases].join(', ')}, or RGBA bytes as { data, width, height }`,
  (value) => [...names, ...canvases].some((name) => isA(name, value)) || isPixelData(value),
);
export const aCanvas: arg.Kind<Canvas> = arg.kind('a canvas', isCanvas);
export const aLayout: arg.Kind<PixelLayout> = arg.oneOf('chw', 'hwc');

/** The pixels of a source: in a row, and rows. Throws E_STATE where there are none yet. */
export function sizeOfSource(source: PixelSource): { readonly width: number; readonly height: number } {
  const [width, height] = isA('VideoFrame', source)
    ? [(source as VideoFrame).displayWidth, (source as VideoFrame).displayHeight]
    : isA('HTMLVideoElement', source)
      ? [(source as HTMLVideoElement).videoWidth, (source as HTMLVideoElement).videoHeight]
      : isA('HTMLImageElement', source)
        ? [(source as HTMLImageElement).naturalWidth, (source as HTMLImageElement).naturalHeight]
        : [(source as PixelData).width, (source as PixelData).height];
  if (width > 0 && height > 0) return { width, height };
  throw new TensorError(
    'E_STATE',
    'fromPixels',
    `the source has no pixels: it is ${width} by ${height}`,
    'wait until it is loaded, and give a frame that is not closed',
  );
}

/** Throws E_SHAPE where bytes are not four for each pixel. */
export function checkBytes({ data, width, height }: PixelData): void {
  if (data.length === 4 * width * height) return;
  throw new TensorError(
    'E_SHAPE',
    'fromPixels',
    `${width} by ${height} pixels are ${4 * width * height} bytes of RGBA, got ${showValue(data.length)}`,
  );
}

export function shapeOf({ width, height, channels, layout }: PictureSize): [number, number, number] {
  return layout === 'chw' ? [channels, height, width] : [height, width, channels];
}
