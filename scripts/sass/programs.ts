// What is counted: the kernels of the budget's workloads, and of a few programs more that have kernels which those lack (wide rows,
// halves, large products). Every distinct kernel of a program comes once, with how often it runs.

import { compileGraph } from '../../src/compile.ts';
import type { Loop } from '../../src/codegen/loop/loop.ts';
import * as sn from '../../src/index.ts';
import { manualSeed, type Tensor } from '../../src/index.ts';
import { bytesOfBlocks } from '../../src/ir/blocks/format.ts';
import { fromBlocks, type QuantizedTensor } from '../../src/quant/index.ts';
import type { Target } from '../../src/schedule/target.ts';
import { traceFunction } from '../../src/tensor/derivative/transform.ts';
import { workloads } from '../../src/workloads/all.ts';
import { matrixSide, rowByBlocks } from '../../src/workloads/decoding.ts';
import { workload, type Workload } from '../../src/workloads/workload.ts';

const halves = (...shape: readonly number[]): Tensor => sn.zeros(shape, { dtype: 'bf16' });

const attend = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
  sn.scaledDotProductAttention(q, k, v, { isCausal: true });

const heads = (): [Tensor, Tensor, Tensor] => [
  halves(4, 16, 2048, 128),
  halves(4, 16, 2048, 128),
  halves(4, 16, 2048, 128),
];

/** Programs besides the workloads. */
const more: readonly Workload[] = [
  workload(
    'addHalf',
    'the sum of two tensors of bf16, 16 Mi elements',
    (x: Tensor, y: Tensor) => x.add(y),
    () => [halves(16, 1024, 1024), halves(16, 1024, 1024)],
  ),
  workload(
    'softmaxWide',
    'softmax of rows, [64, 32768]',
    (x: Tensor) => x.softmax(-1),
    () => [sn.zeros([64, 32_768])],
  ),
  workload(
    'layerNormWide',
    'layer norm of rows, [2048, 8192]',
    (x: Tensor) => sn.layerNorm(x, [8192]),
    () => [sn.zeros([2048, 8192])],
  ),
  workload(
    'matmulHalf',
    'a product of bf16, 4096 × 4096 × 4096',
    (x: Tensor, y: Tensor) => x.matmul(y),
    () => [halves(4096, 4096), halves(4096, 4096)],
  ),
  workload(
    'matmulLarge',
    'a product of f32, 4096 × 4096 × 4096',
    (x: Tensor, y: Tensor) => x.matmul(y),
    () => [sn.zeros([4096, 4096]), sn.zeros([4096, 4096])],
  ),
  workload(
    'lmHeadLossHalf',
    'mean cross-entropy of 4096 tokens over 32768 words, from 2048 features each, in bf16',
    (hidden: Tensor, words: Tensor, targets: Tensor) =>
      sn.crossEntropy(hidden.matmul(words.transpose(0, 1)), targets),
    () => [halves(4096, 2048), halves(32_768, 2048), sn.zeros([4096], { dtype: 'i32' })],
  ),
  workload(
    'convHalf',
    'a convolution of bf16, 3 × 3, [32, 128, 56, 56] to 128 channels',
    (x: Tensor, w: Tensor) => sn.conv2d(x, w, undefined, { padding: 1 }),
    () => [halves(32, 128, 56, 56), halves(128, 128, 3, 3)],
  ),
  workload(
    'attentionHalf',
    'causal attention of bf16, batch 4, 16 heads, 2048 positions, 128 features',
    attend,
    heads,
  ),
  workload(
    'attentionGradHalf',
    'the gradients of that attention',
    (q: Tensor, k: Tensor, v: Tensor) =>
      sn.grad((a: Tensor, b: Tensor, c: Tensor) => attend(a, b, c).square().sum(), { argnums: [0, 1, 2] })(
        q,
        k,
        v,
      ),
    heads,
  ),
];

/**
 * Matrices of the other formats that models mostly have. They are not among the compiled programs: their roofline counts decoding
 * as arithmetic of floats, and kernels put floats together of bits instead.
 */
const blockFormats = [
  ['gemvQ4', 'q4_0'],
  ['gemvQ6K', 'q6_k'],
] as const;
const blocked = blockFormats.map(([name, format]) =>
  workload(
    name,
    `a row by a matrix of ${format}, 4096 × 4096`,
    rowByBlocks,
    (): [Tensor, QuantizedTensor] => {
      const blocks = new Uint8Array(bytesOfBlocks(name, format, matrixSide ** 2));
      return [sn.zeros([1, matrixSide]), fromBlocks(blocks, { format, shape: [matrixSide, matrixSide] })];
    },
  ),
);

export const counted: readonly Workload[] = [...workloads, ...more, ...blocked];

/** Programs whose machine code is compared with committed figures: each kind of kernel once, because compiling takes long. */
export const compiledPrograms: readonly Workload[] = [
  ...workloads.filter(({ name }) =>
    'gelu softmax layerNorm matmulBiasGelu convBiasRelu attention bigSum adam100 decodeAttention gemv gemvHalf gemvQ8'
      .split(' ')
      .includes(name),
  ),
  ...more,
];

/** A kernel of a program. */
export interface CountedKernel {
  readonly workload: string;
  readonly name: string;
  readonly kind: string;
  readonly schedule: string;
  readonly loop: Loop;
  readonly source: string;
  /** How often a run has it run. */
  readonly times: number;
  /** Of one run of it: arithmetic, and bytes that it must move at least. */
  readonly flops: number;
  readonly bytes: number;
  /** Bytes of shared memory that a launch asks for. */
  readonly dynamicShared: number;
}

/** The distinct kernels of a program for a target, in the order in which they run first. */
export function kernelsOf({ name: workload, fn, args }: Workload, target: Target): readonly CountedKernel[] {
  manualSeed(7);
  const { graph } = traceFunction(fn as (...args: never[]) => unknown, args());
  const { kernels, program, inside } = compileGraph(graph, target, { inspect: true });
  const found = new Map<number, CountedKernel>();
  for (const [i, { name, kind, schedule, times, pipeline, source, flops, bytes }] of kernels.entries()) {
    const known = found.get(pipeline);
    if (known !== undefined) {
      found.set(pipeline, { ...known, times: known.times + times });
      continue;
    }
    const dynamicShared = program.kernels[pipeline]!.sharedBytes ?? 0;
    const loop = inside!.loops[i]!;
    found.set(pipeline, { workload, name, kind, schedule, loop, source, times, flops, bytes, dynamicShared });
  }
  return [...found.values()];
}
