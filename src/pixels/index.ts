// `sinter/pixels`: pictures and frames of videos as tensors, and tensors on canvases.

export { fromPixels } from './read.ts';
export { toCanvas } from './canvas.ts';
export type {
  FrameSource,
  FromPixelsOptions,
  ImageSource,
  PixelData,
  PixelLayout,
  PixelSource,
  ToCanvasOptions,
} from './source.ts';
