// Every operation under its public name. src/index.ts lists them one by one; methods.ts makes methods of those that start with
// a tensor.

export * from './activation.ts';
export * from './attention.ts';
export * from './cast.ts';
export * from './compare.ts';
export * from './conv.ts';
export * from './creation.ts';
export * from './einsum.ts';
export * from './elementwise.ts';
export * from './gather.ts';
export * from './indexing.ts';
export * from './join.ts';
export * from './loss.ts';
export * from './matmul.ts';
export * from './movement.ts';
export * from './norm.ts';
export * from './pool.ts';
export * from './random.ts';
export * from './rearrange.ts';
export * from './reduce.ts';
export { affineGrid, gridSample, type GridOptions, type SampleOptions } from './sample.ts';
export * from './scan.ts';
export * from './similarity.ts';
export * from './softmax.ts';
export * from './sort.ts';
export * from './view.ts';
