// `sinter/quant`: weights in blocks of a few bits, which products decode where they read them.

export { fromBlocks, fromBlockStream, quantize, type BlockOptions } from './load.ts';
export { QuantizedTensor, type DequantizedType } from './quantized.ts';
export { blockFormats, type BlockFormat } from '../ir/blocks/format.ts';
