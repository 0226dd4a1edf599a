// Inputs of the timed workloads: uniform random numbers from seeds, the same bytes on every machine
// (Mulberry32, a counter hashed by multiplications and shifts).

/** Numbers in [0, 1), 2⁻³² apart. */
export function uniformSource(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `n` numbers in [low, high), rounded to f32. */
export function uniform(n: number, seed: number, low = -1, high = 1): Float32Array {
  const next = uniformSource(seed);
  const numbers = new Float32Array(n);
  for (let i = 0; i < n; i++) numbers[i] = low + (high - low) * next();
  return numbers;
}

/** Operands of a matrix product [m, k] · [k, n]. */
export interface Product {
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly a: Float32Array;
  readonly b: Float32Array;
}

export function product(m: number, k: number, n: number): Product {
  return { m, k, n, a: uniform(m * k, 16), b: uniform(k * n, 17) };
}

/** Of `gelu`. */
export function chain(): Float32Array {
  return uniform(2 ** 22, 11, -3, 3);
}

export const side = 1024;

/** Of `softmax`. */
export function softmaxRows(): Float32Array {
  return uniform(side * side, 12, -4, 4);
}

/** Of `layerNorm`. */
export function normRows(): { readonly [name in 'x' | 'gain' | 'shift']: Float32Array } {
  return { x: uniform(side * side, 13, -4, 4), gain: uniform(side, 14, 0.5, 1.5), shift: uniform(side, 15) };
}

export const image = { channels: 32, filters: 64, size: 56, window: 3 } as const;

/**
 * Of `conv3x3`: an image [channels, size, size] and weights [filters, channels, window, window].
 */
export function convolution(): { readonly [name in 'x' | 'weight']: Float32Array } {
  const { channels, filters, size, window } = image;
  return {
    x: uniform(channels * size * size, 18),
    weight: uniform(filters * channels * window * window, 19, -0.1, 0.1),
  };
}

export const layer = { batch: 4, length: 128, width: 256, heads: 4, hidden: 1024 } as const;

export type LayerPart =
  | 'gain1'
  | 'shift1'
  | 'qkv'
  | 'qkvBias'
  | 'project'
  | 'projectBias'
  | 'gain2'
  | 'shift2'
  | 'up'
  | 'upBias'
  | 'down'
  | 'downBias';

/** Matrices are [in, out]. */
export const layerShapes: Readonly<Record<LayerPart, readonly number[]>> = {
  gain1: [layer.width],
  shift1: [layer.width],
  qkv: [layer.width, 3 * layer.width],
  qkvBias: [3 * layer.width],
  project: [layer.width, layer.width],
  projectBias: [layer.width],
  gain2: [layer.width],
  shift2: [layer.width],
  up: [layer.width, layer.hidden],
  upBias: [layer.hidden],
  down: [layer.hidden, layer.width],
  downBias: [layer.width],
};

export type LayerData = Readonly<Record<LayerPart | 'x', Float32Array>>;

/** Of `gptBlockForward`. */
export function transformerLayer(): LayerData {
  const { batch, length, width, hidden } = layer;
  const matrix = (from: number, to: number, seed: number): Float32Array => {
    const bound = 1 / Math.sqrt(from);
    return uniform(from * to, seed, -bound, bound);
  };
  return {
    x: uniform(batch * length * width, 20),
    gain1: uniform(width, 21, 0.5, 1.5),
    shift1: uniform(width, 22, -0.1, 0.1),
    qkv: matrix(width, 3 * width, 23),
    qkvBias: uniform(3 * width, 24, -0.1, 0.1),
    project: matrix(width, width, 25),
    projectBias: uniform(width, 26, -0.1, 0.1),
    gain2: uniform(width, 27, 0.5, 1.5),
    shift2: uniform(width, 28, -0.1, 0.1),
    up: matrix(width, hidden, 29),
    upBias: uniform(hidden, 30, -0.1, 0.1),
    down: matrix(hidden, width, 31),
    downBias: uniform(width, 32, -0.1, 0.1),
  };
}

export const perceptron = { batch: 64, inputs: 784, hidden: 256, classes: 10, rate: 1e-3 } as const;

export type PerceptronPart = 'w1' | 'b1' | 'w2' | 'b2';

export const perceptronShapes: Readonly<Record<PerceptronPart, readonly number[]>> = {
  w1: [perceptron.inputs, perceptron.hidden],
  b1: [perceptron.hidden],
  w2: [perceptron.hidden, perceptron.classes],
  b2: [perceptron.classes],
};

export interface PerceptronData {
  readonly x: Float32Array;
  readonly labels: Int32Array;
  readonly parameters: Readonly<Record<PerceptronPart, Float32Array>>;
}

/** Of `mlpTrainAdam`. */
export function trainStep(): PerceptronData {
  const { batch, inputs, hidden, classes } = perceptron;
  const next = uniformSource(40);
  return {
    labels: Int32Array.from({ length: batch }, () => Math.floor(next() * classes)),
    x: uniform(batch * inputs, 41, 0, 1),
    parameters: {
      w1: uniform(inputs * hidden, 42, -0.05, 0.05),
      b1: new Float32Array(hidden),
      w2: uniform(hidden * classes, 43, -0.1, 0.1),
      b2: new Float32Array(classes),
    },
  };
}

/** How many additions of `b` to `a` the workloads of small vectors do. */
export const additions = 100;

export function smallVectors(): { readonly [name in 'a' | 'b']: Float32Array } {
  return { a: uniform(64, 50), b: uniform(64, 51) };
}
