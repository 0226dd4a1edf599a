// What the timed workloads should give, in float64 and written out plainly: sampled where the whole
// would take long.

import * as data from './inputs.ts';

/** Flat positions of a result and the values there. For a train step: losses by step. */
export type Reference = readonly (readonly [position: number, value: number])[];

/**
 * The largest difference relative to the largest reference value; infinite where a value is NaN.
 */
export function errorOf(got: ArrayLike<number>, reference: Reference): number {
  let [worst, largest] = [0, 0];
  for (const [position, value] of reference) {
    const difference = Math.abs(got[position]! - value);
    worst = Math.max(worst, Number.isNaN(difference) ? Infinity : difference);
    largest = Math.max(largest, Math.abs(value));
  }
  return worst / (largest || 1);
}

/** The value at positions spread over all of `n`. */
export function sampled(n: number, count: number, valueAt: (position: number) => number): Reference {
  const next = data.uniformSource(1);
  return Array.from({ length: count }, () => {
    const position = Math.floor(n * next());
    return [position, valueAt(position)] as const;
  });
}

function everyNth(values: ArrayLike<number>, n: number): Reference {
  return Array.from({ length: Math.ceil(values.length / n) }, (_, i) => [n * i, values[n * i]!] as const);
}

function geluTanh(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

export function chain(): Reference {
  const x = data.chain();
  return sampled(x.length, 20_000, (i) => geluTanh(2 * x[i]! + 1) * x[i]!);
}

/** Softmax of a row in place. */
export function normalise(row: Float64Array): void {
  const most = row.reduce((a, b) => Math.max(a, b));
  row.forEach((value, i) => (row[i] = Math.exp(value - most)));
  const sum = row.reduce((a, b) => a + b);
  row.forEach((value, i) => (row[i] = value / sum));
}

export function softmax(): Reference {
  const x = Float64Array.from(data.softmaxRows());
  for (let at = 0; at < x.length; at += data.side) normalise(x.subarray(at, at + data.side));
  return everyNth(x, 37);
}

function normed(x: ArrayLike<number>, gain: ArrayLike<number>, shift: ArrayLike<number>): Float64Array {
  const width = gain.length;
  const out = Float64Array.from(x);
  for (let at = 0; at < out.length; at += width) {
    const row = out.subarray(at, at + width);
    const mean = row.reduce((a, b) => a + b) / width;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    row.forEach(
      (value, i) => (row[i] = ((value - mean) / Math.sqrt(variance + 1e-5)) * gain[i]! + shift[i]!),
    );
  }
  return out;
}

export function layerNorm(): Reference {
  const { x, gain, shift } = data.normRows();
  return everyNth(normed(x, gain, shift), 53);
}

export function matmul(m: number, k: number, n: number): Reference {
  const { a, b } = data.product(m, k, n);
  return sampled(m * n, 3000, (position) => {
    const [row, column] = [Math.floor(position / n), position % n];
    let sum = 0;
    for (let i = 0; i < k; i++) sum += a[row * k + i]! * b[i * n + column]!;
    return sum;
  });
}

export function convolution(): Reference {
  const { channels, filters, size, window } = data.image;
  const { x, weight } = data.convolution();
  const reach = (window - 1) / 2;
  return sampled(filters * size * size, 5000, (position) => {
    const [filter, row, column] = [
      Math.floor(position / size ** 2),
      Math.floor(position / size) % size,
      position % size,
    ];
    let sum = 0;
    for (let c = 0; c < channels; c++) {
      for (let i = 0; i < window; i++) {
        for (let j = 0; j < window; j++) {
          const [y, z] = [row + i - reach, column + j - reach];
          if (y < 0 || y >= size || z < 0 || z >= size) continue;
          sum += x[(c * size + y) * size + z]! * weight[((filter * channels + c) * window + i) * window + j]!;
        }
      }
    }
    return sum;
  });
}

/** x [rows, inner] · w [inner, columns] + bias. */
function linear(x: ArrayLike<number>, w: ArrayLike<number>, bias: ArrayLike<number>): Float64Array {
  const columns = bias.length;
  const inner = w.length / columns;
  const rows = x.length / inner;
  const out = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) out[r * columns + c] = bias[c]!;
    for (let i = 0; i < inner; i++) {
      const factor = x[r * inner + i]!;
      for (let c = 0; c < columns; c++) out[r * columns + c]! += factor * w[i * columns + c]!;
    }
  }
  return out;
}

/**
 * Causal attention over rows of queries, keys and values [batch · positions, 3 · heads · features].
 */
function attended(qkv: Float64Array): Float64Array {
  const { batch, length, width, heads } = data.layer;
  const features = width / heads;
  const out = new Float64Array(batch * length * width);
  const at = (b: number, position: number, part: number, h: number): number =>
    ((b * length + position) * 3 + part) * width + h * features;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < length; i++) {
        const weights = new Float64Array(i + 1);
        for (let j = 0; j <= i; j++) {
          for (let f = 0; f < features; f++)
            weights[j]! += qkv[at(b, i, 0, h) + f]! * qkv[at(b, j, 1, h) + f]!;
          weights[j]! /= Math.sqrt(features);
        }
        normalise(weights);
        const to = (b * length + i) * width + h * features;
        for (let j = 0; j <= i; j++) {
          for (let f = 0; f < features; f++) out[to + f]! += weights[j]! * qkv[at(b, j, 2, h) + f]!;
        }
      }
    }
  }
  return out;
}

export function transformerLayer(): Reference {
  const p = data.transformerLayer();
  const plus = (a: Float64Array, b: ArrayLike<number>): Float64Array => a.map((value, i) => value + b[i]!);
  const seen = attended(linear(normed(p.x, p.gain1, p.shift1), p.qkv, p.qkvBias));
  const middle = plus(linear(seen, p.project, p.projectBias), p.x);
  const hidden = linear(normed(middle, p.gain2, p.shift2), p.up, p.upBias).map(geluTanh);
  return everyNth(plus(linear(hidden, p.down, p.downBias), middle), 11);
}

/** The first three losses of training. */
export function losses(): Reference {
  const { batch, inputs, hidden, classes, rate } = data.perceptron;
  const { x, labels, parameters } = data.trainStep();
  const names = Object.keys(data.perceptronShapes) as data.PerceptronPart[];
  const zeros = (name: data.PerceptronPart): Float64Array => new Float64Array(parameters[name].length);
  const state = names.map((name) => ({
    name,
    value: Float64Array.from(parameters[name]),
    mean: zeros(name),
    square: zeros(name),
  }));
  const [w1, b1, w2, b2] = state.map(({ value }) => value) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  return [1, 2, 3].map((step) => {
    const h = linear(x, w1, b1).map((value) => Math.max(0, value));
    const slope = linear(h, w2, b2);
    let loss = 0;
    for (let i = 0; i < batch; i++) {
      const row = slope.subarray(i * classes, (i + 1) * classes);
      normalise(row);
      loss -= Math.log(row[labels[i]!]!) / batch;
      row[labels[i]!]! -= 1;
      row.forEach((value, j) => (row[j] = value / batch));
    }
    const grads = { w1: zeros('w1'), b1: zeros('b1'), w2: zeros('w2'), b2: zeros('b2') };
    for (let i = 0; i < batch; i++) {
      for (let j = 0; j < classes; j++) {
        grads.b2[j]! += slope[i * classes + j]!;
        for (let k = 0; k < hidden; k++)
          grads.w2[k * classes + j]! += h[i * hidden + k]! * slope[i * classes + j]!;
      }
      for (let k = 0; k < hidden; k++) {
        if (h[i * hidden + k]! <= 0) continue;
        let back = 0;
        for (let j = 0; j < classes; j++) back += slope[i * classes + j]! * w2[k * classes + j]!;
        grads.b1[k]! += back;
        for (let q = 0; q < inputs; q++) grads.w1[q * hidden + k]! += x[i * inputs + q]! * back;
      }
    }
    for (const { name, value, mean, square } of state) {
      grads[name].forEach((g, i) => {
        mean[i] = 0.9 * mean[i]! + 0.1 * g;
        square[i] = 0.999 * square[i]! + 0.001 * g * g;
        const spread = Math.sqrt(square[i]! / (1 - 0.999 ** step)) + 1e-8;
        value[i]! -= (rate * mean[i]!) / (1 - 0.9 ** step) / spread;
      });
    }
    return [step - 1, loss] as const;
  });
}

export function sums(): Reference {
  const { a, b } = data.smallVectors();
  return everyNth(
    Float64Array.from(a, (value, i) => value + data.additions * b[i]!),
    1,
  );
}
