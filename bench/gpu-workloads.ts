// What `npm run bench:gpu` times: bandwidth-bound programs, and products on and off the matrix units. Each knows the bytes that it must
// move or the arithmetic that it must do, and checks samples of its result in float64: a program that is wrong is fast.

import * as sn from '../src/index.ts';
import type { DType, Tensor } from '../src/index.ts';
import { adam } from '../src/optim/index.ts';

export interface GpuWorkload {
  readonly name: string;
  readonly about: string;
  /** What a call moves at least; its time is compared with that of a copy. */
  readonly bytes?: number;
  /** Multiplications and additions of a call. */
  readonly flops?: number;
  /** Makes the inputs; gives a step, and what its last result is off by (relative to the values), with the most allowed. */
  readonly prepare: () => Prepared;
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
    attention(sizes),
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

function softmax({ rows, width }: GpuSizes): GpuWorkload {
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

function attention({ heads, positions, headWidth }: GpuSizes): GpuWorkload {
  return {
    name: 'attention',
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
        const lines = (x: Tensor): Tensor => x.reshape([heads * positions, headWidth]);
        const query = await row(lines(q), heads * positions - 1);
        const count = Math.min(positions, 4096);
        const keys = await rowsFrom(lines(k), (heads - 1) * positions, count);
        const values = await rowsFrom(lines(v), (heads - 1) * positions, count);
        const scores = keys.map((key) => dotOf(query, key) / Math.sqrt(headWidth));
        const weights = softmaxOf(scores);
        const wanted = query.map((_, i) => weights.reduce((sum, w, n) => sum + w * values[n]![i]!, 0));
        return worst(await row(lines(last()), heads * positions - 1), wanted);
      };
      return { step, check, tolerance: 3e-2 };
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
