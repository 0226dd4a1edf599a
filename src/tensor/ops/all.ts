// Every operation under its public name. src/index.ts lists them one by one; methods.ts makes
// methods of those that start with a tensor.

export * from './elementwise/activation.ts';
export * from './product/attention.ts';
export * from './elementwise/arithmetic.ts';
export * from './complex/complex.ts';
export * from './elementwise/cast.ts';
export * from './elementwise/compare.ts';
export * from './product/conv.ts';
export * from './creation/creation.ts';
export * from './product/einsum.ts';
export * from './elementwise/elementwise.ts';
export * from './shape/gather.ts';
export * from './shape/scatter.ts';
export * from './shape/indexing.ts';
export * from './shape/join.ts';
export * from './classification-loss.ts';
export * from './loss.ts';
export * from './product/matmul.ts';
export * from './shape/movement.ts';
export * from './reduce/norm.ts';
export * from './product/pool.ts';
export * from './creation/random.ts';
export * from './shape/rearrange.ts';
export type { Axes, ReduceOptions } from './reduce/axes.ts';
export * from './reduce/extremum.ts';
export * from './reduce/reduce.ts';
export { affineGrid, gridSample, type GridOptions, type SampleOptions } from './creation/sample.ts';
export * from './reduce/scan.ts';
export * from './product/similarity.ts';
export * from './reduce/softmax.ts';
export * from './reduce/sort.ts';
export * from './shape/view.ts';
