// The page's side of pixels.test.ts: pictures of known colours through computations onto canvases, and what the canvases show.

import { clamp, compile, setDevice, stats, sub, type Tensor } from '../../src/index.ts';
import { fromPixels, toCanvas, type PixelLayout, type PixelSource } from '../../src/pixels/index.ts';

/** RGBA bytes of a picture. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly data: readonly number[];
}

export interface Shown extends Picture {
  /** Bytes that crossed between host and device from source to canvas. */
  readonly crossed: number;
}

export type SourceKind = 'frame' | 'bitmap' | 'canvas' | 'bytes' | 'video';

export interface PixelsApi {
  inverted(
    device: string,
    kind: SourceKind,
    picture: Picture,
    layout: PixelLayout,
    size?: Pick<Picture, 'width' | 'height'>,
  ): Promise<Shown>;
  elements(
    device: string,
    kind: SourceKind,
    picture: Picture,
    options: object,
  ): Promise<{ readonly shape: readonly number[]; readonly data: readonly number[] }>;
  failures(device: string): Promise<readonly string[]>;
}

function canvasOf({ width, height, data }: Picture): OffscreenCanvas {
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext('2d')!.putImageData(new ImageData(Uint8ClampedArray.from(data), width, height), 0, 0);
  return canvas;
}

async function playing({ width, height, data }: Picture): Promise<HTMLVideoElement> {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d')!;
  const draw = (): void =>
    context.putImageData(new ImageData(Uint8ClampedArray.from(data), width, height), 0, 0);
  draw();
  const video = document.createElement('video');
  video.muted = true;
  video.srcObject = canvas.captureStream(30);
  // A stream has a frame whenever something is drawn.
  const redrawn = setInterval(draw, 20);
  await video.play();
  await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
  clearInterval(redrawn);
  return video;
}

async function sourceOf(kind: SourceKind, picture: Picture): Promise<PixelSource> {
  const { width, height, data } = picture;
  switch (kind) {
    case 'frame':
      return new VideoFrame(Uint8Array.from(data), {
        format: 'RGBA',
        codedWidth: width,
        codedHeight: height,
        timestamp: 0,
      });
    case 'bitmap':
      return createImageBitmap(canvasOf(picture));
    case 'canvas':
      return canvasOf(picture);
    case 'bytes':
      return { width, height, data: Uint8ClampedArray.from(data) };
    case 'video':
      return playing(picture);
  }
}

function closed(source: PixelSource): void {
  if (source instanceof VideoFrame || source instanceof ImageBitmap) source.close();
}

const invert = compile((x: Tensor) => clamp(sub(1, x), 0, 1));

/** What a canvas shows, as a page that draws it on another one gets it. */
function shownOn(canvas: HTMLCanvasElement): Picture {
  const { width, height } = canvas;
  const context = new OffscreenCanvas(width, height).getContext('2d')!;
  context.drawImage(canvas, 0, 0);
  return { width, height, data: [...context.getImageData(0, 0, width, height).data] };
}

const api: PixelsApi = {
  async inverted(device, kind, picture, layout, size = {} as never) {
    setDevice(device);
    const source = await sourceOf(kind, picture);
    const canvas = document.createElement('canvas');
    // Three channels, so that what is opaque stays so.
    const run = async (): Promise<void> => {
      const x = await fromPixels(source, { layout, channels: 3, ...size });
      await toCanvas(invert(x), canvas, { layout });
      x.dispose();
    };
    await run();
    const before = stats().bytes;
    await run();
    const after = stats().bytes;
    const shown = shownOn(canvas);
    closed(source);
    const crossed = after.uploaded + after.downloaded - before.uploaded - before.downloaded;
    return { ...shown, crossed };
  },

  async elements(device, kind, picture, options) {
    setDevice(device);
    const source = await sourceOf(kind, picture);
    const x = await fromPixels(source, options);
    closed(source);
    return { shape: x.shape, data: [...((await x.data()) as Float32Array)] };
  },

  async failures(device) {
    setDevice(device);
    const frame = (await sourceOf('frame', {
      width: 2,
      height: 2,
      data: Array<number>(16).fill(9),
    })) as VideoFrame;
    frame.close();
    const x = await fromPixels({ width: 1, height: 1, data: Uint8Array.of(1, 2, 3, 4) });
    const used = document.createElement('canvas');
    used.getContext(device.startsWith('webgpu') ? '2d' : 'webgl');
    const attempts = [() => fromPixels(frame), () => toCanvas(x, used), () => fromPixels(new Image())];
    const told: string[] = [];
    for (const attempt of attempts)
      told.push(
        await attempt().then(
          () => 'nothing failed',
          (error: unknown) => String(error),
        ),
      );
    return told;
  },
};

(globalThis as { pixelsTest?: PixelsApi }).pixelsTest = api;
