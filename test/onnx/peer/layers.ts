// Random nodes of quantised operators, recurrent layers, attention, signals, boxes and losses.

import type { DType } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Draft } from '../../support/onnx/file.ts';
import { attr, floats, ints, type Draw, type Family } from './draw.ts';

/** Powers of two as scales: no division rounds, so that halves are halves everywhere. */
const scales = (draw: Draw, shape: readonly number[]): HostArray =>
  floats(
    Array.from({ length: sizeOf(shape) }, () => 2 ** -draw.int(0, 6)),
    shape,
  );

const quantize: Family = (draw) => {
  const opset = draw.pick([10, 13, 19, 21]);
  const types: readonly DType[] = opset >= 21 ? ['u8', 'i8', 'u16', 'i16'] : ['u8', 'i8'];
  const dtype = draw.pick(types);
  const x = draw.tensor(draw.ints(draw.int(1, 4), 1, 5));
  const rank = x.shape.length;
  const axis = draw.axis(rank);
  const kind = opset >= 21 ? draw.int(0, 2) : opset >= 13 ? draw.int(0, 1) : 0;
  const attributes: Draft[] = kind > 0 ? [attr.int('axis', axis)] : [];
  let shape: number[] = [];
  if (kind === 1) shape = [x.shape.at(axis)!];
  if (kind === 2) {
    const block = draw.int(1, 3);
    const at = axis < 0 ? axis + rank : axis;
    shape = x.shape.map((dim, i) => (i === at ? Math.ceil(dim / block) : dim));
    attributes.push(attr.int('block_size', block));
  }
  const zero = draw.coin() ? draw.tensor(shape, dtype) : undefined;
  if (draw.coin()) return { op: 'QuantizeLinear', opset, attributes, inputs: [x, scales(draw, shape), zero] };
  const q = draw.tensor(x.shape, zero === undefined && kind === 0 && draw.rarely() ? 'i32' : dtype, {
    least: -100,
    most: 100,
  });
  return { op: 'DequantizeLinear', opset, attributes, inputs: [q, scales(draw, shape), zero] };
};

const dynamicQuantize: Family = (draw) => ({
  op: 'DynamicQuantizeLinear',
  opset: 11,
  inputs: [draw.tensor(draw.ints(draw.int(0, 3), 1, 5))],
  outputs: 3,
  tolerance: 1,
});

const integerProducts: Family = (draw) => {
  const [m, k, n] = draw.ints(3, 1, 5) as [number, number, number];
  const batch = draw.ints(draw.int(0, 2), 1, 2);
  const [left, right] = [draw.pick<DType>(['u8', 'i8']), draw.pick<DType>(['u8', 'i8'])];
  const wide = { least: -100, most: 100 };
  const zero = (dtype: DType, shape: readonly number[]): HostArray => draw.tensor(shape, dtype);
  if (draw.coin()) {
    const [a, b] = [draw.tensor([...batch, m, k], left, wide), draw.tensor([...batch, k, n], right, wide)];
    const zeros = draw.coin()
      ? []
      : [zero(left, []), ...(draw.coin() ? [] : [zero(right, batch.length === 0 && draw.coin() ? [n] : [])])];
    return { op: 'MatMulInteger', opset: 10, inputs: [a, b, ...zeros] };
  }
  const [a, b] = [draw.tensor([...batch, m, k], left, wide), draw.tensor([...batch, k, n], right, wide)];
  const isColumn = batch.length === 0 && draw.coin();
  const own = isColumn ? [n] : [];
  const out = left;
  const inputs = [
    a,
    scales(draw, []),
    zero(left, []),
    b,
    scales(draw, own),
    zero(right, own),
    scales(draw, []),
    zero(out, []),
  ];
  return { op: 'QLinearMatMul', opset: draw.pick([10, 21]), inputs };
};

const integerConv: Family = (draw) => {
  const kernel = draw.ints(2, 1, 3);
  const spatial = kernel.map((size) => size + draw.int(0, 3));
  const [channels, outs] = [draw.int(1, 3), draw.int(1, 3)];
  const [left, right] = [draw.pick<DType>(['u8', 'i8']), draw.pick<DType>(['u8', 'i8'])];
  const wide = { least: -100, most: 100 };
  const x = draw.tensor([draw.int(1, 2), channels, ...spatial], left, wide);
  const w = draw.tensor([outs, channels, ...kernel], right, wide);
  const attributes = draw.coin() ? [attr.ints('pads', draw.ints(4, 0, 1))] : [];
  if (draw.coin()) {
    const zeros = draw.coin()
      ? []
      : [draw.tensor([], left), ...(draw.coin() ? [] : [draw.tensor([], right)])];
    return { op: 'ConvInteger', opset: 10, attributes, inputs: [x, w, ...zeros] };
  }
  const own = draw.coin() ? [outs] : [];
  const zero = draw.tensor(own, right);
  zero.data.fill(0 as never);
  const bias = draw.coin() ? [draw.tensor([outs], 'i32', wide)] : [];
  const inputs = [
    x,
    scales(draw, []),
    draw.tensor([], left),
    w,
    scales(draw, own),
    zero,
    scales(draw, []),
    draw.tensor([], left),
    ...bias,
  ];
  return { op: 'QLinearConv', opset: 10, attributes, inputs, tolerance: 1 };
};

const recurrent: Family = (draw) => {
  const [op, gates, states] = draw.pick([
    ['RNN', 1, 1],
    ['GRU', 3, 1],
    ['LSTM', 4, 2],
  ] as const);
  const [time, batch, width, hidden] = [draw.int(1, 4), draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)];
  const way = draw.pick(['forward', 'reverse', 'bidirectional']);
  const ways = way === 'bidirectional' ? 2 : 1;
  const x = draw.tensor([time, batch, width]);
  const inputs: (HostArray | undefined)[] = [
    x,
    draw.tensor([ways, gates * hidden, width]),
    draw.tensor([ways, gates * hidden, hidden]),
    draw.coin() ? draw.tensor([ways, 2 * gates * hidden]) : undefined,
    draw.coin() ? draw.tensor([batch], 'i32', { least: 1, most: time }) : undefined,
    draw.coin() ? draw.tensor([ways, batch, hidden]) : undefined,
  ];
  if (states === 2) {
    inputs.push(inputs[5] === undefined ? undefined : draw.tensor([ways, batch, hidden]));
    if (draw.coin()) inputs.push(draw.tensor([ways, 3 * hidden]));
  }
  const attributes: Draft[] = [attr.int('hidden_size', hidden), attr.text('direction', way)];
  if (draw.coin()) attributes.push(attr.float('clip', 0.75));
  if (op === 'GRU' && draw.coin()) attributes.push(attr.int('linear_before_reset', draw.int(0, 1)));
  if (op === 'LSTM' && draw.rarely()) attributes.push(attr.int('input_forget', 1));
  if (draw.rarely(3)) {
    const count = ways * (op === 'RNN' ? 1 : op === 'GRU' ? 2 : 3);
    const names = Array.from({ length: count }, () =>
      draw.pick([
        'Sigmoid',
        'Tanh',
        'Relu',
        'Affine',
        'LeakyRelu',
        'ThresholdedRelu',
        'ScaledTanh',
        'HardSigmoid',
        'Elu',
        'Softsign',
      ]),
    );
    const takesAlpha = names.filter((name) =>
      ['Affine', 'LeakyRelu', 'ThresholdedRelu', 'ScaledTanh', 'HardSigmoid', 'Elu'].includes(name),
    );
    const takesBeta = names.filter((name) => ['Affine', 'ScaledTanh', 'HardSigmoid'].includes(name));
    attributes.push(attr.texts('activations', names));
    // One for each that takes it: those that take none are passed over.
    attributes.push(
      attr.floats(
        'activation_alpha',
        takesAlpha.map(() => draw.int(1, 4) / 4),
      ),
    );
    attributes.push(
      attr.floats(
        'activation_beta',
        takesBeta.map(() => draw.int(1, 4) / 4),
      ),
    );
  }
  return { op, opset: draw.pick([7, 14, 22]), attributes, inputs, outputs: states + 1, tolerance: 1e-3 };
};

const attention: Family = (draw) => {
  const [batch, shared, group] = [draw.int(1, 2), draw.int(1, 2), draw.int(1, 2)];
  const heads = shared * group;
  const [queries, fresh, size, out] = [draw.int(1, 3), draw.int(1, 4), draw.pick([2, 4]), draw.pick([2, 4])];
  const past = draw.rarely(3) ? draw.int(1, 3) : 0;
  const isFlat = draw.coin();
  const heads4 = (count: number, length: number, width: number): HostArray =>
    draw.tensor(isFlat ? [batch, length, count * width] : [batch, count, length, width]);
  const keys = past + fresh;
  const mask = draw.pick([
    undefined,
    draw.tensor([queries, keys], 'bool'),
    draw.tensor([queries, keys]),
    draw.tensor([batch, 1, queries, keys]),
    draw.tensor([batch, heads, queries, keys]),
    draw.tensor([1, heads, queries, keys], 'bool'),
  ]);
  // A query that may see nothing gives zeros; ONNX Runtime gives it something to see.
  const width = mask?.shape.at(-1) ?? 1;
  if (mask?.dtype === 'bool') mask.data.forEach((_, i) => i % width === 0 && (mask.data[i] = 1));
  const inputs: (HostArray | undefined)[] = [
    heads4(heads, queries, size),
    heads4(shared, fresh, size),
    heads4(shared, fresh, out),
    mask,
  ];
  if (past > 0)
    inputs.push(draw.tensor([batch, shared, past, size]), draw.tensor([batch, shared, past, out]));
  const attributes: Draft[] = isFlat
    ? [attr.int('q_num_heads', heads), attr.int('kv_num_heads', shared)]
    : [];
  // Queries behind past keys see those; ONNX Runtime counts queries from the first key.
  const isCausal = past === 0 && draw.coin();
  if (isCausal) attributes.push(attr.int('is_causal', 1));
  if (draw.coin()) attributes.push(attr.float('scale', 0.5));
  // ONNX Runtime caps the scores after it has hidden what a causal mask hides, which brings it back.
  if (!isCausal && draw.coin()) attributes.push(attr.float('softcap', 2));
  const outputs = draw.pick(past > 0 ? [3, 4] : [1, 4]);
  if (outputs === 4 && draw.coin()) attributes.push(attr.int('qk_matmul_output_mode', draw.pick([0, 1, 3])));
  return { op: 'Attention', opset: draw.pick([23, 24]), attributes, inputs, outputs, tolerance: 1e-3 };
};

const rotary: Family = (draw) => {
  const [batch, heads, length, size] = [draw.int(1, 2), draw.int(1, 3), draw.int(1, 4), draw.pick([4, 8])];
  const isFlat = draw.coin();
  const x = draw.tensor(isFlat ? [batch, length, heads * size] : [batch, heads, length, size]);
  const width = draw.coin() && (!isFlat || true) ? draw.pick([2, 4]) : 0;
  const half = (width || size) / 2;
  const attributes: Draft[] = [attr.int('interleaved', draw.int(0, 1))];
  if (isFlat || width > 0) attributes.push(attr.int('num_heads', heads));
  if (width > 0) attributes.push(attr.int('rotary_embedding_dim', width));
  const caches = (shape: readonly number[]): HostArray[] => [
    draw.tensor([...shape, half]),
    draw.tensor([...shape, half]),
  ];
  if (draw.coin())
    return { op: 'RotaryEmbedding', opset: 23, attributes, inputs: [x, ...caches([batch, length])] };
  const places = draw.tensor([batch, length], 'i64', { least: 0, most: 7 });
  return { op: 'RotaryEmbedding', opset: 23, attributes, inputs: [x, ...caches([8]), places] };
};

const cache: Family = (draw) => {
  const [batch, heads, size, width] = [draw.int(1, 2), draw.int(1, 2), draw.int(3, 6), draw.int(1, 3)];
  const fresh = draw.int(1, 3);
  const isCircular = draw.coin();
  const past = draw.tensor([batch, heads, size, width]);
  const update = draw.tensor([batch, heads, fresh, width]);
  const start = draw.coin()
    ? [draw.tensor([batch], 'i64', { least: 0, most: isCircular ? size - 1 : size - fresh })]
    : [];
  const attributes = [
    attr.text('mode', isCircular ? 'circular' : 'linear'),
    ...(draw.coin() ? [attr.int('axis', -2)] : []),
  ];
  return { op: 'TensorScatter', opset: 24, attributes, inputs: [past, update, ...start] };
};

const fourier: Family = (draw) => {
  const opset = draw.pick([17, 20]);
  const [batch, length] = [draw.int(1, 2), draw.int(1, 9)];
  const parts = draw.int(1, 2);
  const middle = draw.coin() ? [draw.int(1, 3)] : [];
  const x = draw.tensor([batch, length, ...middle, parts], draw.pick<DType>(['f32', 'f64']));
  const isInverse = draw.coin();
  const oneSided = parts === 1 && !isInverse && draw.coin();
  const attributes = [attr.int('inverse', isInverse ? 1 : 0), attr.int('onesided', oneSided ? 1 : 0)];
  const size = draw.coin() ? ints([draw.int(1, 9)], []) : undefined;
  const axis = draw.int(1, x.shape.length - 2);
  if (opset === 17)
    return {
      op: 'DFT',
      opset,
      attributes: [...attributes, attr.int('axis', axis)],
      inputs: [x, size],
      tolerance: 1e-3,
    };
  return { op: 'DFT', opset, attributes, inputs: [x, size, ints([axis], [])], tolerance: 1e-3 };
};

const shortTime: Family = (draw) => {
  const length = draw.int(8, 20);
  const frame = draw.int(2, 8);
  const x = draw.tensor([draw.int(1, 2), length, 1]);
  const step = ints([draw.int(1, 4)], []);
  const window = draw.coin() ? draw.tensor([frame]) : undefined;
  const inputs = [x, step, window, window === undefined || draw.coin() ? ints([frame], []) : undefined];
  return {
    op: 'STFT',
    opset: 17,
    attributes: draw.coin() ? [attr.int('onesided', draw.int(0, 1))] : [],
    inputs,
    tolerance: 1e-3,
  };
};

const filters: Family = (draw) => {
  if (draw.coin()) {
    const op = draw.pick(['HannWindow', 'HammingWindow', 'BlackmanWindow']);
    const attributes = draw.coin() ? [attr.int('periodic', draw.int(0, 1))] : [];
    return { op, opset: 17, attributes, inputs: [ints([draw.int(2, 12)], [])] };
  }
  const low = draw.int(0, 100);
  const inputs = [
    ints([draw.int(1, 8)], []),
    ints([draw.pick([16, 32, 64])], []),
    ints([8000], []),
    floats([low], []),
    floats([low + draw.int(500, 3000)], []),
  ];
  return { op: 'MelWeightMatrix', opset: 17, inputs };
};

const boxes: Family = (draw) => {
  if (draw.rarely()) {
    const n = draw.int(1, 4);
    return {
      op: 'Det',
      opset: draw.pick([11, 22]),
      inputs: [draw.tensor([...draw.shape(draw.int(0, 2), 3), n, n])],
      tolerance: 1e-3,
    };
  }
  const [batch, classes, count] = [draw.int(1, 2), draw.int(1, 2), draw.int(1, 8)];
  const isCentred = draw.coin();
  const corners = Array.from({ length: batch * count }, () => {
    const [a, b] = [draw.int(0, 8), draw.int(0, 8)];
    return isCentred
      ? [a, b, draw.int(1, 6), draw.int(1, 6)]
      : [a, b, a + draw.int(1, 5), b + draw.int(1, 5)];
  });
  // Scores that differ: which of equal ones comes first is not told.
  const scores = draw.shuffled(Array.from({ length: batch * classes * count }, (_, i) => (i + 1) / 64));
  const inputs: (HostArray | undefined)[] = [
    floats(corners.flat(), [batch, count, 4]),
    floats(scores, [batch, classes, count]),
  ];
  if (!draw.rarely(8)) inputs.push(ints([draw.int(0, 5)]));
  if (inputs.length === 3 && draw.coin()) inputs.push(floats([draw.pick([0, 0.2, 0.5, 0.9])]));
  if (inputs.length === 4 && draw.coin()) inputs.push(floats([draw.pick([0, 0.1, 0.3])]));
  return {
    op: 'NonMaxSuppression',
    opset: draw.pick([10, 11]),
    attributes: [attr.int('center_point_box', isCentred ? 1 : 0)],
    inputs,
  };
};

const losses: Family = (draw) => {
  const [n, c] = [draw.int(1, 3), draw.int(1, 4)];
  const rest = draw.ints(draw.int(0, 2), 1, 3);
  const isEntropy = draw.coin();
  const target = draw.tensor([n, ...rest], draw.pick<DType>(['i32', 'i64']), { least: 0, most: c - 1 });
  const attributes: Draft[] = draw.coin() ? [attr.text('reduction', draw.pick(['none', 'sum', 'mean']))] : [];
  if (draw.coin()) attributes.push(attr.int('ignore_index', draw.int(-1, c - 1)));
  const inputs = [draw.tensor([n, c, ...rest]), target, ...(draw.coin() ? [draw.tensor([c])] : [])];
  const op = isEntropy ? 'SoftmaxCrossEntropyLoss' : 'NegativeLogLikelihoodLoss';
  return {
    op,
    opset: draw.pick([12, 13]),
    attributes,
    inputs,
    outputs: isEntropy && draw.coin() ? 2 : 1,
    tolerance: 1e-3,
  };
};

const dropped: Family = (draw) => {
  const x = draw.tensor(draw.anyShape(3));
  const opset = draw.pick([7, 10, 12, 13, 22]);
  // What the mask is where nothing is dropped, opset 12 is the first to say.
  const outputs = opset < 12 ? 1 : draw.int(1, 2);
  if (opset < 12)
    return { op: 'Dropout', opset, attributes: [attr.float('ratio', 0.25)], inputs: [x], outputs };
  return { op: 'Dropout', opset, inputs: draw.coin() ? [x] : [x, floats([0.25], [])], outputs };
};

const gelu: Family = (draw) => ({
  op: 'Gelu',
  opset: 20,
  attributes: draw.coin() ? [attr.text('approximate', draw.pick(['tanh', 'none']))] : [],
  inputs: [draw.tensor(draw.anyShape(3))],
});

export const layers: Readonly<Record<string, Family>> = {
  quantize,
  dynamicQuantize,
  integerProducts,
  integerConv,
  recurrent,
  attention,
  rotary,
  cache,
  fourier,
  shortTime,
  filters,
  boxes,
  losses,
  dropped,
  gelu,
};
