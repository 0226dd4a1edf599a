// What the functions of `sinter/quant` take.

import { meaning, options, t, word } from '../kinds.ts';
import type { Rows } from './operation.ts';

const format = word('q8_0', 'q4_0');
const blocks = options({ format, shape: meaning(() => [1, 32], 'emptyList') }, ['format', 'shape']);

export const quantRows: Rows = {
  fromBlocks: [meaning(() => new Uint8Array(34), 'bytes', 'emptyList', 'tensors'), blocks],
  fromBlockStream: [
    meaning(async function* () {
      yield await Promise.resolve(new Uint8Array(34));
    }),
    blocks,
  ],
  quantize: [t(2, 32), format],
};
