// What the functions of `sinter/pixels` take. Pages have canvases; here one that takes what it is given stands in.

import { meaning, options, t, word } from '../kinds.ts';
import type { Rows } from './operation.ts';

const layout = word('chw', 'hwc');
const context = {
  createImageData: (width: number, height: number) => ({ data: new Uint8ClampedArray(4 * width * height) }),
  putImageData: () => undefined,
};
const one = meaning(() => 1);

export const pixelsRows: Rows = {
  fromPixels: [
    meaning(() => ({ data: Uint8Array.of(1, 2, 3, 4), width: 1, height: 1 })),
    // Other sizes are drawn, which nothing here can.
    options({ layout, channels: meaning(() => 3, 'number'), width: one, height: one }),
  ],
  toCanvas: [
    t(2, 3),
    meaning(() => ({ getContext: () => context, width: 0, height: 0 })),
    options({ layout: word('chw') }),
  ],
};
