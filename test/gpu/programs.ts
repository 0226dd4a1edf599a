// Whole programs, for GPUs: what users write, at sizes at which the device's own kernels are chosen (warp groups, split keys, rows of a
// few, folds over columns, blocks), against the same programs on WebAssembly.

import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import { type Tensor } from '../../src/index.ts';
import { blockFacts, type BlockFormat } from '../../src/ir/blocks/format.ts';
import { rowsToWords } from '../../src/ir/blocks/layout.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { fromBlocks, type QuantizedTensor } from '../../src/quant/index.ts';
import type { Device } from '../../src/runtime/device.ts';
import { targetOf, wasmTarget } from '../../src/schedule/target.ts';
import { blocksOf } from '../codegen/blocks/blocks.ts';
import { runOnDevice } from '../support/execute.ts';
import { randomArray } from '../support/random/values.ts';
import { recorded } from '../support/recorded.ts';

/** An argument: a tensor of small numbers, whole ones below a bound, or a matrix in blocks. */
type Given =
  | { readonly dtype: DType; readonly shape: readonly number[]; readonly below?: number }
  | { readonly format: BlockFormat; readonly shape: readonly [number, number] };

export interface GpuProgram {
  readonly name: string;
  readonly fn: (...args: never[]) => unknown;
  readonly given: readonly Given[];
}

const of = (dtype: DType, ...shape: readonly number[]): Given => ({ dtype, shape });
const whole = (below: number, ...shape: readonly number[]): Given => ({ dtype: 'i32', shape, below });
const program = (name: string, given: readonly Given[], fn: GpuProgram['fn']): GpuProgram => ({
  name,
  fn,
  given,
});

/** Attention and, summed with weights, its gradients. */
function attentions(): GpuProgram[] {
  const one = (
    dtype: DType,
    [heads, groups, queries, keys, features]: readonly [number, number, number, number, number],
    isCausal: boolean,
  ): GpuProgram[] => {
    const given = [
      of(dtype, 1, heads, queries, features),
      of(dtype, 1, groups, keys, features),
      of(dtype, 1, groups, keys, features),
    ];
    const attend = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, k, v, { isCausal, enableGqa: heads !== groups });
    const what = `${dtype}, ${heads}/${groups} heads, ${queries} x ${keys}, ${features} features${isCausal ? ', causal' : ''}`;
    return [
      program(`attention of ${what}`, given, attend),
      program(`gradients of attention of ${what}`, given, (q: Tensor, k: Tensor, v: Tensor) =>
        sn.grad((x: Tensor, y: Tensor, z: Tensor) => attend(x, y, z).square().sum(), {
          argnums: [0, 1, 2],
        })(q, k, v),
      ),
    ];
  };
  return [
    ...one('bf16', [16, 16, 1024, 1024, 128], true),
    ...one('f16', [16, 16, 1024, 1024, 64], true),
    ...one('bf16', [16, 16, 1024, 1024, 64], false),
    ...one('bf16', [16, 4, 900, 1100, 128], false),
    ...one('bf16', [24, 24, 777, 777, 96], true),
    ...one('f16', [16, 16, 640, 640, 256], true),
    ...one('bf16', [16, 16, 1000, 1000, 80], true),
    ...one('f32', [8, 8, 500, 500, 64], true),
  ];
}

function products(): GpuProgram[] {
  const list: GpuProgram[] = [];
  const lies: readonly (readonly [string, boolean, boolean])[] = [
    ['nn', false, false],
    ['nt', false, true],
    ['tn', true, false],
    ['tt', true, true],
  ];
  for (const dtype of ['bf16', 'f16'] as const)
    for (const [way, left, right] of lies)
      for (const [m, n, k] of [
        [2048, 2048, 512],
        [1000, 1032, 328],
        [1, 2048, 2048],
        [7, 2048, 2048],
      ] as const)
        list.push(
          program(
            `product ${way} of ${dtype}, ${m} x ${n} x ${k}`,
            [left ? of(dtype, k, m) : of(dtype, m, k), right ? of(dtype, n, k) : of(dtype, k, n)],
            (a: Tensor, b: Tensor) => (left ? a.T : a).matmul(right ? b.T : b),
          ),
        );
  list.push(
    program(
      'product with bias, GELU and residual',
      [of('bf16', 2048, 1024), of('bf16', 1024, 2048), of('bf16', 2048), of('bf16', 2048, 2048)],
      (x: Tensor, w: Tensor, b: Tensor, r: Tensor) => x.matmul(w).add(b).gelu().add(r),
    ),
    program('batched product', [of('bf16', 6, 512, 256), of('bf16', 6, 256, 512)], (a: Tensor, b: Tensor) =>
      a.matmul(b),
    ),
    program(
      'product of heads that were split',
      [of('bf16', 2, 512, 1024), of('bf16', 2, 512, 1024)],
      (q: Tensor, k: Tensor) => {
        const split = (x: Tensor): Tensor => x.reshape([2, 512, 8, 128]).permute([0, 2, 1, 3]);
        return split(q).matmul(split(k).transpose(-1, -2));
      },
    ),
    program(
      'product of a row that was broadcast',
      [of('bf16', 1, 1024), of('bf16', 1024, 1024)],
      (a: Tensor, b: Tensor) => a.broadcastTo([512, 1024]).matmul(b),
    ),
    program(
      'product of a slice that was broadcast',
      [of('bf16', 4, 1024), of('bf16', 1024, 1024)],
      (a: Tensor, b: Tensor) => a.narrow(0, 2, 1).broadcastTo([512, 1024]).matmul(b),
    ),
    program(
      'product, its gradients, f32',
      [of('f32', 512, 300), of('f32', 300, 700)],
      (a: Tensor, b: Tensor) =>
        sn.grad((x: Tensor, y: Tensor) => x.matmul(y).square().mean(), { argnums: [0, 1] })(a, b),
    ),
    program('product of f64', [of('f64', 130, 70), of('f64', 70, 190)], (a: Tensor, b: Tensor) =>
      a.matmul(b),
    ),
    program(
      'perceptron and its gradients in bf16',
      [of('bf16', 1024, 784), of('bf16', 784, 1024), of('bf16', 1024, 512)],
      (x: Tensor, a: Tensor, b: Tensor) =>
        sn.grad((u: Tensor, v: Tensor) => x.matmul(u).relu().matmul(v).square().mean(), { argnums: [0, 1] })(
          a,
          b,
        ),
    ),
  );
  return list;
}

function convolutions(): GpuProgram[] {
  const one = (
    dtype: DType,
    image: readonly number[],
    weight: readonly number[],
    stride: number,
  ): GpuProgram[] => {
    const convolve = (x: Tensor, w: Tensor): Tensor => sn.conv2d(x, w, undefined, { padding: 1, stride });
    const what = `of ${dtype}, ${image.join('x')} by ${weight.join('x')}, in steps of ${stride}`;
    return [
      program(`convolution ${what}`, [of(dtype, ...image), of(dtype, ...weight)], convolve),
      program(
        `gradients of convolution ${what}`,
        [of(dtype, ...image), of(dtype, ...weight)],
        (x: Tensor, w: Tensor) =>
          sn.grad((a: Tensor, b: Tensor) => convolve(a, b).square().mean(), { argnums: [0, 1] })(x, w),
      ),
    ];
  };
  return [
    ...one('bf16', [8, 64, 56, 56], [128, 64, 3, 3], 1),
    ...one('f16', [16, 128, 14, 14], [128, 128, 3, 3], 1),
    ...one('bf16', [16, 128, 7, 7], [128, 128, 3, 3], 1),
    ...one('bf16', [4, 64, 56, 56], [64, 64, 3, 3], 2),
    ...one('f32', [4, 32, 28, 28], [32, 32, 3, 3], 1),
  ];
}

function losses(): GpuProgram[] {
  return (['bf16', 'f16', 'f32'] as const).flatMap((dtype) =>
    [32_768, 5003].flatMap((words) => {
      const given = [of(dtype, 256, 512), of(dtype, words, 512), whole(words, 256)];
      const loss = (hidden: Tensor, head: Tensor, targets: Tensor): Tensor =>
        sn.crossEntropy(hidden.matmul(head.T), targets);
      const what = `loss of ${words} words in ${dtype}`;
      return [
        program(what, given, loss),
        program(`gradients of the ${what}`, given, (h: Tensor, w: Tensor, t: Tensor) =>
          sn.grad((x: Tensor, y: Tensor) => loss(x, y, t), { argnums: [0, 1] })(h, w),
        ),
      ];
    }),
  );
}

function decoding(): GpuProgram[] {
  const list: GpuProgram[] = [];
  for (const dtype of ['f32', 'f16'] as const)
    for (const keys of [4096, 1000])
      list.push(
        program(
          `decode attention over ${keys} keys of ${dtype}`,
          [of(dtype, 32, 1, 128), of(dtype, 32, keys, 128), of(dtype, 32, keys, 128)],
          (q: Tensor, k: Tensor, v: Tensor) => sn.scaledDotProductAttention(q, k, v),
        ),
      );
  for (const dtype of ['f32', 'f16', 'bf16'] as const)
    for (const rows of [1, 2, 5, 16])
      list.push(
        program(
          `${rows} rows by a matrix of ${dtype}`,
          [of('f32', rows, 2048), of(dtype, 2048, 1536)],
          (x: Tensor, w: Tensor) => x.matmul(w.cast('f32')),
        ),
      );
  for (const format of Object.keys(blockFacts) as BlockFormat[])
    for (const rows of [1, 3, 16, 200])
      list.push(
        program(
          `${rows} rows by a matrix of ${format}`,
          [of('f32', rows, 1024), { format, shape: [768, 1024] }],
          (x: Tensor, w: QuantizedTensor) => x.matmul(w.dequantize().T),
        ),
      );
  return list;
}

function rows(): GpuProgram[] {
  return [
    program('softmax of long rows', [of('f32', 8, 131_072)], (x: Tensor) => x.softmax(-1)),
    program('softmax of bf16', [of('bf16', 300, 4096)], (x: Tensor) => x.softmax(-1)),
    program('layer norm and its gradients', [of('f32', 300, 8192), of('f32', 8192)], (x: Tensor, g: Tensor) =>
      sn.grad((a: Tensor, b: Tensor) => sn.layerNorm(a, [8192], b).square().sum(), { argnums: [0, 1] })(x, g),
    ),
    program('sum of all', [of('f32', 4_000_037)], (x: Tensor) => x.sum()),
    program('sums of columns', [of('f32', 5000, 777)], (x: Tensor) => x.sum(0)),
    program('running sum', [of('f32', 1_000_003)], (x: Tensor) => x.cumsum(0)),
    program('sort', [of('f32', 100_003)], (x: Tensor) => x.sort()),
    program('top 50', [of('f32', 3, 50_257)], (x: Tensor) => x.topk(50)),
    program('argmax', [of('f32', 64, 50_257)], (x: Tensor) => x.argmax(-1)),
    program(
      'rows added to places',
      [of('f32', 1000, 64), whole(1000, 5000), of('f32', 5000, 64)],
      (x: Tensor, at: Tensor, v: Tensor) => x.indexAdd(0, at as never, v),
    ),
    program(
      'transposed sum of bf16',
      [of('bf16', 2048, 1024), of('bf16', 1024, 2048)],
      (x: Tensor, y: Tensor) => x.T.add(y),
    ),
  ];
}

export function gpuPrograms(): readonly GpuProgram[] {
  return [...products(), ...attentions(), ...convolutions(), ...losses(), ...decoding(), ...rows()];
}

/** Runs one on the device and on `wasm`; gives both, and the schedules of its kernels. */
export async function runBoth(
  { fn, given }: GpuProgram,
  device: Device,
  wasm: Device,
): Promise<{
  readonly found: readonly HostArray[];
  readonly expected: readonly HostArray[];
  readonly schedules: readonly string[];
}> {
  const { graph, leaves } = recorded(
    fn,
    given.map((one) =>
      'format' in one
        ? fromBlocks(new Uint8Array(sizeOfBlocks(one.format, one.shape)), {
            format: one.format,
            shape: one.shape,
          })
        : sn.zeros([...one.shape], { dtype: one.dtype }),
    ),
  );
  const values = given.map(valuesOf);
  const inputs = leaves.map((leaf) => values[leaf]!);
  const target = targetOf(device.facts);
  const { kernels } = compileGraph(graph, target, { inspect: true });
  const schedules = kernels.map(({ kind, schedule }) => `${kind} ${schedule}`);
  const found = await runOnDevice(device, target, graph, inputs);
  const expected = await runOnDevice(wasm, wasmTarget, graph, inputs);
  return { found, expected, schedules };
}

const sizeOfBlocks = (format: BlockFormat, [height, width]: readonly [number, number]): number =>
  (blockFacts[format].bytes * height * width) / blockFacts[format].values;

function valuesOf(one: Given, i: number): HostArray {
  if ('format' in one) {
    const { format, shape } = one;
    const [height, width] = shape;
    const words = rowsToWords(
      format,
      width,
      blocksOf(format, (height * width) / blockFacts[format].values, i + 1),
    );
    return hostArray('u32', [height, words.length / height], Array.from(words));
  }
  const { dtype, shape, below } = one;
  if (below === undefined) return randomArray(dtype, shape, i + 1, 'tame');
  const words = randomArray('u32', shape, i + 1, 'special').data as Uint32Array;
  return hostArray(
    'i32',
    shape,
    Array.from(words, (word, at) => (word + 7 * at) % below),
  );
}
