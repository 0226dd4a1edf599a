// What `npm run bench:gpu` times: bandwidth-bound programs, and products on and off the matrix units. Each knows the bytes that it must
// move or the arithmetic that it must do, and checks samples of its result in float64: a program that is wrong is fast.

import { dtypeBytes } from '../src/ir/dtype.ts';
import { bytesOfBlocks } from '../src/ir/blocks/format.ts';
import * as sn from '../src/index.ts';
import type { DType, Tensor } from '../src/index.ts';
import { adam } from '../src/optim/index.ts';
import { fromBlocks, quantize, QuantizedTensor, type BlockFormat } from '../src/quant/index.ts';

export interface GpuWorkload {
  readonly name: string;
  readonly about: string;
  /** What a call moves at least; its time is compared with that of a copy. */
  readonly bytes?: number;
  /** Multiplications and additions of a call. */
  readonly flops?: number;
  /** Makes the inputs; gives a step, and what its last result is off by (relative to the values), with the most allowed. */
  readonly prepare: () => Prepared | Promise<Prepared>;
}

export interface Prepared {
  readonly step: () => void;
  readonly check: () => Promise<number>;
  readonly tolerance: number;
}

/** Sizes for a data-centre GPU, or for a CPU that plays one. */
export interface GpuSizes {
  readonly elements: number;
  readonly rows: number;
  readonly width: number;
  /** Adam's parameters, in so many tensors. */
  readonly parameters: number;
  readonly tensors: number;
  /** Sides of square products. */
  readonly sides: readonly number[];
  readonly simpleSide: number;
  readonly heads: number;
  readonly positions: number;
  readonly headWidth: number;
  /** Positions of the attention that is long. */
  readonly longPositions: number;
  /** Attention of one query: heads, keys. */
  readonly cache: readonly [heads: number, keys: number];
  /** A matrix that a row is multiplied by: inputs and outputs. */
  readonly matrix: readonly [inputs: number, outputs: number];
  /** A convolution's pictures, channels (both sides) and places along a side. */
  readonly pictures: readonly [count: number, channels: number, side: number];
  /** A language model's last product and loss: tokens, features and words. */
  readonly head: readonly [tokens: number, features: number, words: number];
  /** Wide rows. */
  readonly wide: readonly [rows: number, width: number];
  /** Numbers that are sorted and summed up. */
  readonly sorted: number;
}

export const fullSizes: GpuSizes = {
  elements: 2 ** 27,
  rows: 16_384,
  width: 8192,
  parameters: 2 ** 27,
  tensors: 100,
  sides: [2048, 4096, 8192],
  simpleSide: 4096,
  heads: 16,
  positions: 4096,
  headWidth: 128,
  longPositions: 16_384,
  cache: [32, 16_384],
  matrix: [8192, 32_768],
  pictures: [32, 128, 56],
  head: [4096, 2048, 32_768],
  wide: [2048, 32_768],
  sorted: 2 ** 24,
};

/** The same programs in a second or so on the stand-in. */
export const smallSizes: GpuSizes = {
  elements: 4096,
  rows: 8,
  width: 256,
  parameters: 4000,
  tensors: 10,
  sides: [64],
  simpleSide: 64,
  heads: 2,
  positions: 64,
  headWidth: 32,
  longPositions: 128,
  cache: [2, 96],
  matrix: [256, 512],
  pictures: [1, 16, 8],
  head: [16, 32, 64],
  wide: [2, 4096],
  sorted: 5000,
};

const F32 = 4;
const gelu = { approximate: 'tanh' } as const;

export function gpuWorkloads(sizes: GpuSizes): readonly GpuWorkload[] {
  return [
    elementwise(sizes),
    softmax(sizes),
    layerNorm(sizes),
    adamStep(sizes),
    matmul('f32', sizes.simpleSide),
    ...sizes.sides.map((side) => matmul('bf16', side)),
    matmul('f16', sizes.sides.at(-1)!),
    matmulBiasGelu(sizes.sides.at(-1)!),
    attention(sizes, 'attention', sizes.positions),
    attention(sizes, 'attention-long', sizes.longPositions),
    attentionGradient(sizes),
    ...(['f32', 'f16'] as const).map((dtype) => decodeAttention(sizes, dtype)),
    ...(['f32', 'f16', 'q8_0', 'q4_0', 'q4_k', 'q6_k'] as const).map((format) => rowByMatrix(sizes, format)),
    convolution(sizes),
    ...[false, true].map((isGradient) => headLoss(sizes, isGradient)),
    addHalf(sizes),
    wideSoftmax(sizes),
    sumOfAll(sizes),
    runningSum(sizes),
    sort(sizes),
  ];
}

/** Steps of a compiled function over fixed arguments; the last result is kept. */
function repeated(
  fn: (...args: Tensor[]) => Tensor,
  args: readonly Tensor[],
): { readonly step: () => void; readonly last: () => Tensor } {
  const compiled = sn.compile(fn);
  let last: Tensor | undefined;
  return {
    step: () => {
      const result = compiled(...args);
      last?.dispose();
      last = result;
    },
    last: () => last!,
  };
}

function elementwise({ elements }: GpuSizes): GpuWorkload {
  return {
    name: 'elementwise',
    about: `gelu(2x + 1) · x of ${elements} f32`,
    bytes: 2 * F32 * elements,
    prepare: () => {
      const x = sn.randn([elements]);
      const { step, last } = repeated((v) => v.mul(2).add(1).gelu(gelu).mul(v), [x]);
      const check = async (): Promise<number> => {
        const [given, found] = [await part(x, 64), await part(last(), 64)];
        return worst(
          found,
          given.map((v) => geluOf(2 * v + 1) * v),
        );
      };
      return { step, check, tolerance: 1e-4 };
    },
  };
}

function softmax({ rows, width }: Pick<GpuSizes, 'rows' | 'width'>): GpuWorkload {
  return {
    name: 'softmax',
    about: `softmax of ${rows} rows of ${width} f32`,
    bytes: 2 * F32 * rows * width,
    prepare: () => {
      const x = sn.randn([rows, width]);
      const { step, last } = repeated((v) => v.softmax(-1), [x]);
      const check = async (): Promise<number> => {
        const given = await row(x, rows - 1);
        return worst(await row(last(), rows - 1), softmaxOf(given));
      };
      return { step, check, tolerance: 1e-4 };
    },
  };
}

function layerNorm({ rows, width }: GpuSizes): GpuWorkload {
  return {
    name: 'layerNorm',
    about: `layer norm with weight and bias of ${rows} rows of ${width} f32`,
    bytes: 2 * F32 * rows * width,
    prepare: () => {
      const [x, gain, shift] = [sn.randn([rows, width]), sn.randn([width]), sn.randn([width])];
      const { step, last } = repeated((v, g, s) => sn.layerNorm(v, width, g, s), [x, gain, shift]);
      const check = async (): Promise<number> => {
        const [given, g, s] = [await row(x, rows - 1), await part(gain, width), await part(shift, width)];
        const mean = given.reduce((a, b) => a + b, 0) / width;
        const variance = given.reduce((a, b) => a + (b - mean) ** 2, 0) / width;
        const wanted = given.map((v, i) => ((v - mean) / Math.sqrt(variance + 1e-5)) * g[i]! + s[i]!);
        return worst(await row(last(), rows - 1), wanted);
      };
      return { step, check, tolerance: 1e-4 };
    },
  };
}

function adamStep({ parameters, tensors }: GpuSizes): GpuWorkload {
  const each = parameters / tensors;
  const width = Math.max(4, 4 * Math.floor(each / 4));
  const rate = 1e-3;
  return {
    name: 'adam',
    about: `Adam over ${tensors} tensors of ${width} f32`,
    // Parameters and two moments are read and written, gradients are read.
    bytes: 7 * F32 * tensors * width,
    prepare: () => {
      const make = (): Tensor[] => Array.from({ length: tensors }, () => sn.randn([width]));
      const optimizer = adam({ lr: rate });
      const grads = make();
      let params = make();
      let state = optimizer.init(params);
      const before = part(params[0]!, 16);
      const update = sn.compile((p: Tensor[], s: typeof state, g: Tensor[]) => optimizer.update(p, g, s), {
        donate: [0, 1],
      });
      let steps = 0;
      return {
        step: () => {
          [params, state] = update(params, state, grads) as unknown as [Tensor[], typeof state];
          steps += 1;
        },
        // Equal gradients each time: every step moves a parameter by the rate, against the gradient's sign.
        check: async () => {
          const [from, to, g] = [await before, await part(params[0]!, 16), await part(grads[0]!, 16)];
          return worst(
            to,
            from.map((v, i) => v - steps * rate * Math.sign(g[i]!)),
          );
        },
        tolerance: 1e-2,
      };
    },
  };
}

function matmul(dtype: DType, side: number): GpuWorkload {
  return {
    name: `matmul-${dtype}-${side}`,
    about: `${dtype} [${side}, ${side}] · [${side}, ${side}]`,
    flops: 2 * side ** 3,
    prepare: () => {
      const [a, b] = [sn.randn([side, side], { dtype }), sn.randn([side, side], { dtype })];
      const { step, last } = repeated((x, y) => x.matmul(y), [a, b]);
      const check = async (): Promise<number> => {
        const [given, found] = [await row(a, side - 1), await row(last(), side - 1)];
        return worst(found.slice(0, 4), await productOf(given, b, 4));
      };
      return { step, check, tolerance: dtype === 'f32' ? 1e-4 : 2e-2 };
    },
  };
}

function matmulBiasGelu(side: number): GpuWorkload {
  return {
    name: `matmul-bias-gelu-bf16-${side}`,
    about: `gelu(x · w + b) in bf16, side ${side}`,
    flops: 2 * side ** 3,
    prepare: () => {
      const dtype = 'bf16';
      const a = sn.randn([side, side], { dtype });
      const [b, bias] = [sn.randn([side, side], { dtype }), sn.randn([side], { dtype })];
      const { step, last } = repeated((x, w, c) => x.matmul(w).add(c).gelu(gelu), [a, b, bias]);
      const check = async (): Promise<number> => {
        const [given, shift] = [await row(a, side - 1), await part(bias, 4)];
        const sums = await productOf(given, b, 4);
        const found = await row(last(), side - 1);
        return worst(
          found.slice(0, 4),
          sums.map((v, i) => geluOf(v + shift[i]!)),
        );
      };
      return { step, check, tolerance: 3e-2 };
    },
  };
}

function attention({ heads, headWidth }: GpuSizes, name: string, positions: number): GpuWorkload {
  return {
    name,
    about: `causal attention in bf16, ${heads} heads of ${positions} positions of ${headWidth}`,
    // Two products over the half of the scores that is seen.
    flops: 2 * heads * positions ** 2 * headWidth,
    prepare: () => {
      const shape = [1, heads, positions, headWidth];
      const [q, k, v] = [0, 1, 2].map(() => sn.randn(shape, { dtype: 'bf16' })) as [Tensor, Tensor, Tensor];
      const { step, last } = repeated(
        (x, y, z) => sn.scaledDotProductAttention(x, y, z, { isCausal: true }),
        [q, k, v],
      );
      const check = async (): Promise<number> => {
        // The last query of the last head sees every key.
        const at = heads * positions - 1;
        const wanted = await attended(q, k, v, at, positions);
        return worst(await row(last().reshape([-1, headWidth]), at), wanted);
      };
      return { step, check, tolerance: 3e-2 };
    },
  };
}

/** Weights of the `count` last keys for the query of a row, in float64. */
async function weightsOf(queries: Tensor, keys: Tensor, at: number, count: number): Promise<number[]> {
  const query = await row(queries.reshape([-1, queries.shape.at(-1)!]), at);
  const seen = await lastRows(keys, count);
  return softmaxOf(seen.map((key) => dotOf(query, key) / Math.sqrt(query.length)));
}

/** What that query gives. */
async function attended(
  queries: Tensor,
  keys: Tensor,
  values: Tensor,
  at: number,
  count: number,
): Promise<number[]> {
  const weights = await weightsOf(queries, keys, at, count);
  const given = await lastRows(values, count);
  return given[0]!.map((_, i) => weights.reduce((sum, w, n) => sum + w * given[n]![i]!, 0));
}

/** The last rows along all axes but the last one: those of the last head. */
async function lastRows(x: Tensor, count: number): Promise<number[][]> {
  const lines = x.reshape([-1, x.shape.at(-1)!]);
  return rowsFrom(lines, lines.shape[0]! - count, count);
}

function attentionGradient({ heads, positions, headWidth }: GpuSizes): GpuWorkload {
  return {
    name: 'attention-gradient',
    about: `causal attention in bf16 and its gradients, ${heads} heads of ${positions} positions of ${headWidth}`,
    // Two products forward and five backward over the half of the scores that is seen.
    flops: 7 * heads * positions ** 2 * headWidth,
    prepare: () => {
      const dtype = 'bf16';
      const shape = [1, heads, positions, headWidth];
      const [q, k, v, u] = [0, 1, 2, 3].map(() => sn.randn(shape, { dtype })) as [
        Tensor,
        Tensor,
        Tensor,
        Tensor,
      ];
      const { step, last } = repeated(
        (x, y, z, upstream) => {
          const attend = (a: Tensor, b: Tensor, c: Tensor): Tensor =>
            sn.scaledDotProductAttention(a, b, c, { isCausal: true });
          const { value, vjp } = sn.vjp(attend, x, y, z);
          const [dx, dy, dz] = vjp(upstream) as [Tensor, Tensor, Tensor];
          return sn.stack([value, dx, dy, dz], 0);
        },
        [q, k, v, u],
      );
      const check = async (): Promise<number> => {
        // Only the last query of a head sees its last key: dV there is that query's weight times its gradient.
        const at = heads * positions - 1;
        const lines = (x: Tensor): Tensor => x.reshape([-1, headWidth]);
        const weights = await weightsOf(q, k, at, positions);
        const upstream = await row(lines(u), at);
        const found = await row(lines(last()), 3 * heads * positions + at);
        return worst(
          found,
          upstream.map((x) => weights.at(-1)! * x),
        );
      };
      return { step, check, tolerance: 3e-2 };
    },
  };
}

function decodeAttention({ cache: [heads, keys], headWidth }: GpuSizes, dtype: 'f32' | 'f16'): GpuWorkload {
  return {
    name: `decode-attention-${dtype}`,
    about: `attention of one query over ${keys} keys of ${dtype}, ${heads} heads of ${headWidth}`,
    bytes: 2 * dtypeBytes(dtype) * heads * keys * headWidth,
    prepare: () => {
      const q = sn.randn([heads, 1, headWidth], { dtype });
      const [k, v] = [0, 1].map(() => sn.randn([heads, keys, headWidth], { dtype })) as [Tensor, Tensor];
      const { step, last } = repeated((x, y, z) => sn.scaledDotProductAttention(x, y, z), [q, k, v]);
      const check = async (): Promise<number> => {
        const wanted = await attended(q, k, v, heads - 1, keys);
        return worst(await row(last().reshape([-1, headWidth]), heads - 1), wanted);
      };
      return { step, check, tolerance: dtype === 'f32' ? 1e-4 : 1e-2 };
    },
  };
}

function rowByMatrix(
  { matrix: [inputs, outputs] }: GpuSizes,
  format: 'f32' | 'f16' | BlockFormat,
): GpuWorkload {
  const isDense = format === 'f32' || format === 'f16';
  return {
    name: `row-by-matrix-${format}`,
    about: `a row of ${inputs} by a matrix of ${format} with ${outputs} outputs`,
    bytes: isDense ? dtypeBytes(format) * inputs * outputs : bytesOfBlocks('bench', format, inputs * outputs),
    prepare: async () => {
      const x = sn.randn([1, inputs]);
      // The matrix is these rows again and again: blocks are made on the host.
      const few = Math.min(64, outputs);
      const some = await made(few, inputs);
      const kept = isDense ? some.cast(format) : await quantize(some, format);
      const { step, last } =
        kept instanceof QuantizedTensor
          ? await rowByBlocks(x, kept, outputs / few)
          : repeated((a, b) => a.matmul(b.cast('f32').T), [x, sn.tile(kept, [outputs / few, 1])]);
      const check = async (): Promise<number> => {
        const line = await row(x, 0);
        const all = await numbers(kept instanceof QuantizedTensor ? kept.dequantize() : kept);
        const wanted = Array.from({ length: few }, (_, i) =>
          dotOf(line, all.slice(i * inputs, (i + 1) * inputs)),
        );
        return worst(await numbers(last().narrow(1, outputs - few, few)), wanted);
      };
      return { step, check, tolerance: 1e-4 };
    },
  };
}

/** Steps of a row by a matrix of blocks, which is these rows so many times. */
async function rowByBlocks(
  x: Tensor,
  some: QuantizedTensor,
  times: number,
): Promise<ReturnType<typeof repeated>> {
  const { format, shape } = some;
  const blocks = await some.blocks();
  const all = Array.from({ length: times }, () => blocks);
  const matrix = fromBlocks(all, { format, shape: [shape[0]! * times, shape[1]!] });
  const multiply = (a: Tensor, b: QuantizedTensor): Tensor => a.matmul(b.dequantize().T);
  return repeated(multiply as never, [x, matrix] as never);
}

/** Rows of numbers that are about as large as weights, which are not drawn again. */
async function made(count: number, width: number): Promise<Tensor> {
  const drawn = sn.randn([count, width]).mul(1 / Math.sqrt(width));
  return sn.tensor((await drawn.data()) as Float32Array).reshape([count, width]);
}

function convolution({ pictures: [count, channels, side] }: GpuSizes): GpuWorkload {
  return {
    name: 'convolution-bf16',
    about: `a 3 x 3 convolution in bf16, [${count}, ${channels}, ${side}, ${side}] to ${channels} channels`,
    flops: 2 * 9 * count * channels ** 2 * side ** 2,
    prepare: () => {
      const dtype = 'bf16';
      const x = sn.randn([count, channels, side, side], { dtype });
      const w = sn.randn([channels, channels, 3, 3], { dtype });
      const { step, last } = repeated((a, b) => sn.conv2d(a, b, undefined, { padding: 1 }), [x, w]);
      const check = async (): Promise<number> => {
        // The second place of the second line of the last picture, in every channel.
        const window = x
          .narrow(0, count - 1, 1)
          .narrow(2, 0, 3)
          .narrow(3, 0, 3)
          .reshape([1, channels * 9]);
        const [taps, line] = [await numbers(w), await row(window, 0)];
        const width = channels * 9;
        const wanted = Array.from({ length: channels }, (_, i) =>
          dotOf(line, taps.slice(i * width, (i + 1) * width)),
        );
        const found = last()
          .narrow(0, count - 1, 1)
          .narrow(2, 1, 1)
          .narrow(3, 1, 1);
        return worst(await numbers(found), wanted);
      };
      return { step, check, tolerance: 2e-2 };
    },
  };
}

function headLoss({ head: [tokens, features, words] }: GpuSizes, isGradient: boolean): GpuWorkload {
  const product = 2 * tokens * features * words;
  return {
    name: isGradient ? 'head-loss-gradient' : 'head-loss',
    about: `cross-entropy of ${tokens} tokens over ${words} words from ${features} features in bf16${isGradient ? ', its gradients' : ''}`,
    flops: isGradient ? 3 * product : product,
    prepare: () => {
      const dtype = 'bf16';
      const hidden = sn
        .randn([tokens, features])
        .mul(1 / Math.sqrt(features))
        .cast(dtype);
      const head = sn.randn([words, features], { dtype });
      const targets = sn.randint(0, words, [tokens]);
      const loss = (h: Tensor, w: Tensor, t: Tensor): Tensor => sn.crossEntropy(h.matmul(w.T), t);
      const { step, last } = repeated(
        isGradient
          ? (h, w, t) => {
              const { value, grad } = sn.valueAndGrad((a: Tensor, b: Tensor) => loss(a, b, t), {
                argnums: [0, 1],
              })(h, w) as unknown as { value: Tensor; grad: [Tensor, Tensor] };
              return sn.cat(
                [value.reshape([1]).cast(dtype), grad[0].reshape([-1]), grad[1].reshape([-1])],
                0,
              );
            }
          : loss,
        [hidden, head, targets],
      );
      const check = async (): Promise<number> => {
        // Of random words the loss is near the logarithm of their number, and half more for the spread of scores.
        const [found] = await part(last().reshape([-1]), 1);
        return Math.abs(found! - (Math.log(words) + 0.5)) / found!;
      };
      return { step, check, tolerance: words < 1000 ? 1 : 5e-2 };
    },
  };
}

function addHalf({ elements }: GpuSizes): GpuWorkload {
  return {
    name: 'add-bf16',
    about: `the sum of two times ${elements} bf16`,
    bytes: 3 * 2 * elements,
    prepare: () => {
      const dtype = 'bf16';
      const [x, y] = [sn.randn([elements], { dtype }), sn.randn([elements], { dtype })];
      const { step, last } = repeated((a, b) => a.add(b), [x, y]);
      const check = async (): Promise<number> => {
        const [a, b] = [await part(x, 64), await part(y, 64)];
        return worst(
          await part(last(), 64),
          a.map((v, i) => v + b[i]!),
        );
      };
      return { step, check, tolerance: 1e-2 };
    },
  };
}

function wideSoftmax({ wide: [rows, width] }: GpuSizes): GpuWorkload {
  return { ...softmax({ rows, width }), name: 'softmax-wide' };
}

function sumOfAll({ elements }: GpuSizes): GpuWorkload {
  return {
    name: 'sum',
    about: `the sum of ${elements} f32`,
    bytes: F32 * elements,
    prepare: () => {
      // Whole numbers whose sums are exact.
      const x = sn.arange(elements).remainder(3).cast('f32');
      const { step, last } = repeated((v) => v.sum(), [x]);
      const wanted = 3 * Math.floor(elements / 3) + (elements % 3 === 2 ? 1 : 0);
      const check = async (): Promise<number> => Math.abs(Number(await last().item()) - wanted) / wanted;
      return { step, check, tolerance: 1e-6 };
    },
  };
}

function runningSum({ sorted }: GpuSizes): GpuWorkload {
  return {
    name: 'running-sum',
    about: `the running sum of ${sorted} f32`,
    bytes: 2 * F32 * sorted,
    prepare: () => {
      const x = sn.arange(sorted).remainder(2).cast('f32');
      const { step, last } = repeated((v) => v.cumsum(0), [x]);
      const check = async (): Promise<number> => {
        const found = await numbers(last().narrow(0, sorted - 4, 4));
        return worst(
          found,
          [4, 3, 2, 1].map((back) => Math.floor((sorted - back + 1) / 2)),
        );
      };
      return { step, check, tolerance: 1e-6 };
    },
  };
}

function sort({ sorted }: GpuSizes): GpuWorkload {
  return {
    name: 'sort',
    about: `${sorted} f32 in order`,
    bytes: 2 * F32 * sorted,
    prepare: () => {
      const x = sn.randn([sorted]);
      const { step, last } = repeated((v) => v.sort()[0], [x]);
      const check = async (): Promise<number> => {
        const found = await numbers(last());
        const given = (await numbers(x)).sort((a, b) => a - b);
        return worst(found, given);
      };
      return { step, check, tolerance: 0 };
    },
  };
}

function geluOf(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044_715 * x ** 3)));
}

function softmaxOf(values: readonly number[]): number[] {
  const top = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = values.map((v) => Math.exp(v - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((v) => v / sum);
}

function dotOf(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, v, i) => sum + v * b[i]!, 0);
}

/** The first entries of a row times a matrix. */
async function productOf(line: readonly number[], matrix: Tensor, count: number): Promise<number[]> {
  const columns = await numbers(matrix.narrow(1, 0, count).permute([1, 0]));
  const height = line.length;
  return Array.from({ length: count }, (_, i) => dotOf(line, columns.slice(i * height, (i + 1) * height)));
}

/** The first entries of a vector. */
function part(x: Tensor, count: number): Promise<number[]> {
  return numbers(x.narrow(0, 0, count));
}

function row(x: Tensor, at: number): Promise<number[]> {
  return numbers(x.narrow(0, at, 1));
}

async function rowsFrom(x: Tensor, start: number, count: number): Promise<number[][]> {
  const all = await numbers(x.narrow(0, start, count));
  const width = all.length / count;
  return Array.from({ length: count }, (_, i) => all.slice(i * width, (i + 1) * width));
}

async function numbers(x: Tensor): Promise<number[]> {
  return [...((await x.cast('f32').data()) as Float32Array)];
}

/** The largest difference, relative to the largest value. */
function worst(found: readonly number[], wanted: readonly number[]): number {
  const largest = wanted.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-30);
  const errors = wanted.map((v, i) => Math.abs(v - (found[i] ?? NaN)));
  return errors.some(Number.isNaN) ? NaN : Math.max(...errors) / largest;
}
