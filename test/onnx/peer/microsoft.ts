// Random nodes of com.microsoft: what optimisers and exporters fuse, in floats. Quantised ones are in bytes.ts.

import type { HostArray } from '../../../src/ir/value.ts';
import type { Draft } from '../../support/onnx/file.ts';
import { attr, floats, type Draw, type Family, type NodeCase } from './draw.ts';
import { bytes } from './bytes.ts';

/** A node of the domain. */
export function contrib(
  op: string,
  inputs: readonly (HostArray | undefined)[],
  attributes: readonly Draft[] = [],
  rest: Partial<NodeCase> = {},
): NodeCase {
  return { op, opset: 17, domain: 'com.microsoft', inputs, attributes, ...rest };
}

const integers = (values: readonly number[], shape: readonly number[] = [values.length]): HostArray => ({
  dtype: 'i32',
  shape,
  data: Int32Array.from(values),
});

const activations: Family = (draw) => {
  const x = draw.tensor(draw.ints(3, 1, 4));
  const bias = draw.tensor([x.shape[2]!]);
  return draw.pick([
    () => contrib('FastGelu', draw.coin() ? [x] : [x, bias], [], { tolerance: 2e-3 }),
    () => contrib('Gelu', [x]),
    () => contrib('BiasGelu', [x, bias]),
    () => contrib('QuickGelu', [x], draw.coin() ? [] : [attr.float('alpha', 0.75)]),
  ])();
};

const normals: Family = (draw) => {
  const [batch, length, width] = draw.ints(3, 1, 4) as [number, number, number];
  const shape = [batch, length, width];
  const x = draw.tensor(shape);
  const vector = (): HostArray => draw.tensor([width]);
  const skip = draw.tensor(draw.pick([shape, [1, length, width], [length, width]]));
  const attributes = [attr.float('epsilon', 0.125)];
  const sums = draw.coin() ? { outputs: 4, unwanted: [1, 2] } : {};
  switch (draw.int(0, 3)) {
    case 0: {
      const rest = draw.coin() ? [undefined, ...(draw.coin() ? [vector()] : [])] : [vector(), vector()];
      return contrib('SkipLayerNormalization', [x, skip, vector(), ...rest], attributes, sums);
    }
    case 1: {
      const rest = draw.coin() ? [] : [vector()];
      return contrib('SkipSimplifiedLayerNormalization', [x, skip, vector(), ...rest], attributes, sums);
    }
    case 2:
      return contrib('SimplifiedLayerNormalization', [x, vector()], attributes, { domain: '' });
    default: {
      const [words, places, segments] = [5, length + 1, 2].map((rows) => draw.tensor([rows, width]));
      const ids = integers(draw.ints(batch * length, 0, 4), [batch, length]);
      const hasSegments = draw.coin();
      const segment = hasSegments ? integers(draw.ints(batch * length, 0, 1), [batch, length]) : undefined;
      const mask = draw.coin() ? integers(draw.ints(batch * length, 0, 1), [batch, length]) : undefined;
      const place = draw.coin() ? integers(draw.ints(batch * length, 0, length), [batch, length]) : undefined;
      const inputs = [
        ids,
        segment,
        words,
        places,
        hasSegments ? segments : undefined,
        vector(),
        vector(),
        mask,
        place,
      ];
      return contrib('EmbedLayerNormalization', inputs, attributes, { outputs: draw.pick([2, 3]) });
    }
  }
};

const fusedProducts: Family = (draw) => {
  const [m, k, n] = draw.ints(3, 1, 4) as [number, number, number];
  if (draw.coin()) {
    const [ta, tb] = [draw.int(0, 1), draw.int(0, 1)];
    const activation = draw.pick(['Relu', 'Tanh', 'Sigmoid', 'LeakyRelu', 'Elu', 'Celu', 'Selu']);
    const a = draw.tensor(ta === 1 ? [k, m] : [m, k]);
    const b = draw.tensor(tb === 1 ? [n, k] : [k, n]);
    return contrib(
      'FusedGemm',
      [a, b, draw.tensor(draw.pick([[n], [m, n], [1]]))],
      [
        attr.int('transA', ta),
        attr.int('transB', tb),
        attr.float('alpha', 0.5),
        attr.text('activation', activation),
        attr.float('activation_alpha', 0.25),
        attr.float('activation_gamma', 1.5),
      ],
    );
  }
  const batch = draw.ints(draw.int(0, 2), 1, 3);
  const turned = (rows: number, columns: number, side: string): [number[], Draft[]] => {
    const isTurned = draw.coin();
    const isBatch = batch.length > 0 && draw.coin();
    const [first, last] = isTurned ? [columns, rows] : [rows, columns];
    const shape = isBatch ? [first, ...batch, last] : [...batch, first, last];
    return [
      shape,
      [attr.int(`trans${side}`, isTurned ? 1 : 0), attr.int(`transBatch${side}`, isBatch ? 1 : 0)],
    ];
  };
  const [[left, first], [right, second]] = [turned(m, k, 'A'), turned(k, n, 'B')];
  const attributes = [...first, ...second, attr.float('alpha', draw.pick([1, 0.5]))];
  return contrib('FusedMatMul', [draw.tensor(left), draw.tensor(right)], attributes);
};

const fusedConvs: Family = (draw) => {
  const kernel = draw.ints(2, 1, 3);
  const spatial = kernel.map((size) => size + draw.int(0, 3));
  const [channels, outs] = [draw.int(1, 3), draw.int(1, 3)];
  const x = draw.tensor([draw.int(1, 2), channels, ...spatial]);
  const w = draw.tensor([outs, channels, ...kernel]);
  const sizes = spatial.map((size, i) => size - kernel[i]! + 1);
  const added = draw.coin() ? draw.tensor([x.shape[0]!, outs, ...sizes]) : undefined;
  const [activation, numbers] = draw.pick<readonly [string, readonly number[]]>([
    ['Relu', []],
    ['LeakyRelu', [0.25]],
    ['Clip', [-1, 2]],
    ['HardSigmoid', [0.25, 0.5]],
    ['Tanh', []],
  ]);
  const attributes = [attr.text('activation', activation), attr.ints('kernel_shape', kernel)];
  if (numbers.length > 0) attributes.push(attr.floats('activation_params', numbers));
  return contrib(
    'FusedConv',
    [x, w, draw.coin() || added ? draw.tensor([outs]) : undefined, added],
    attributes,
  );
};

/** Attributes that attention of every kind has. */
function scaled(draw: Draw, heads: number): Draft[] {
  const attributes = [attr.int('num_heads', heads)];
  if (draw.coin()) attributes.push(attr.float('scale', 0.375));
  return attributes;
}

/** A mask in one of its forms for texts of so many queries and keys. */
function maskOf(draw: Draw, batch: number, queries: number, keys: number): HostArray | undefined {
  switch (draw.int(0, 4)) {
    case 0:
      return integers(draw.ints(batch, 1, keys));
    case 1:
      return integers([
        ...draw.ints(batch, 2, keys + 1).map((n) => Math.min(n, keys)),
        ...draw.ints(batch, 0, 1),
      ]);
    case 2:
      return integers(draw.ints(batch * keys, 0, 1), [batch, keys]);
    case 3:
      return integers(draw.ints(batch * queries * keys, 0, 1), [batch, queries, keys]);
    default:
      return undefined;
  }
}

const contribAttention: Family = (draw) => {
  const [batch, length, heads, size] = [draw.int(1, 2), draw.int(1, 4), draw.int(1, 3), draw.int(1, 3)];
  const width = heads * size;
  const past = draw.coin() ? draw.int(1, 3) : 0;
  const causal = draw.coin() ? [attr.int('unidirectional', 1)] : [];
  const attributes = [...scaled(draw, heads), ...causal];
  const keys = past + length;
  const bias = draw.rarely(3)
    ? draw.tensor([draw.pick([1, batch]), draw.pick([1, heads]), length, keys])
    : undefined;
  if (draw.coin()) {
    const input = draw.int(1, 4);
    const values = past === 0 && draw.coin() ? heads * draw.int(1, 3) : width;
    if (values !== width) attributes.push(attr.ints('qkv_hidden_sizes', [width, width, values]));
    const inputs = [
      draw.tensor([batch, length, input]),
      draw.tensor([input, 2 * width + values]),
      draw.tensor([2 * width + values]),
      maskOf(draw, batch, length, keys),
      past > 0 ? draw.tensor([2, batch, heads, past, size]) : undefined,
      bias,
    ];
    return contrib('Attention', inputs, attributes, { outputs: values === width ? 2 : 1, tolerance: 1e-3 });
  }
  const isCross = past === 0 && bias === undefined && draw.coin();
  const others = isCross ? draw.int(1, 4) : length;
  const mask = maskOf(draw, batch, length, past + others);
  const isCache = isCross && draw.coin();
  const side = (): HostArray =>
    isCache ? draw.tensor([batch, heads, others, size]) : draw.tensor([batch, others, width]);
  const inputs = [
    draw.tensor([batch, length, width]),
    side(),
    side(),
    draw.coin() ? draw.tensor([3 * width]) : undefined,
    mask?.shape.length === 1 && mask.shape[0] !== batch ? undefined : mask,
    bias,
    ...(past > 0 ? [draw.tensor([batch, heads, past, size]), draw.tensor([batch, heads, past, size])] : []),
  ];
  return contrib('MultiHeadAttention', inputs, isCross ? scaled(draw, heads) : attributes, {
    outputs: past > 0 ? 3 : 1,
    tolerance: 1e-3,
  });
};

/** Cosines and sines of angles, a row a place. */
function anglesOf(draw: Draw, rows: number, half: number): [HostArray, HostArray] {
  const angles = Array.from({ length: rows * half }, () => draw.int(-6, 6) / 2);
  return [floats(angles.map(Math.cos), [rows, half]), floats(angles.map(Math.sin), [rows, half])];
}

const contribRotary: Family = (draw) => {
  const [batch, length, heads, half] = [draw.int(1, 2), draw.int(1, 4), draw.int(1, 2), draw.int(1, 2)];
  const size = 2 * half + (draw.coin() ? 0 : 2);
  const isPart = size > 2 * half;
  const [cos, sin] = anglesOf(draw, 8, half);
  const places = draw.coin()
    ? { dtype: 'i64' as const, shape: [1], data: BigInt64Array.of(BigInt(draw.int(0, 3))) }
    : {
        dtype: 'i64' as const,
        shape: [batch, length],
        data: BigInt64Array.from(draw.ints(batch * length, 0, 7), BigInt),
      };
  const attributes = [attr.int('interleaved', draw.int(0, 1))];
  if (isPart || draw.coin()) attributes.push(attr.int('num_heads', heads));
  if (isPart) attributes.push(attr.int('rotary_embedding_dim', 2 * half));
  const shape = draw.coin() ? [batch, heads, length, size] : [batch, length, heads * size];
  return contrib('RotaryEmbedding', [draw.tensor(shape), places, cos, sin], attributes);
};

const groupQuery: Family = (draw) => {
  const [shared, group, half] = [draw.int(1, 2), draw.int(1, 3), draw.pick([8, 16])];
  const [heads, size] = [shared * group, 2 * half];
  const isFirst = draw.coin();
  const batch = isFirst ? draw.int(1, 2) : draw.int(1, 2);
  const length = isFirst ? draw.int(1, 4) : batch === 1 && draw.coin() ? draw.int(2, 3) : 1;
  const past = isFirst ? 0 : draw.int(2, 4);
  // Texts of a batch have unequal pasts, of which the longest fills the cache.
  const lengths = Array.from({ length: batch }, (_, i) =>
    i === 0 || isFirst ? past + length : length + draw.int(1, past),
  );
  const spare = !isFirst && draw.rarely() ? 2 : 0;
  const kv = (): HostArray => draw.tensor([batch, shared, past + spare, size]);
  const isPacked = draw.coin();
  const flat = (count: number): HostArray => draw.tensor([batch, length, count * size]);
  const attributes = [...scaled(draw, heads), attr.int('kv_num_heads', shared)];
  const isTurned = draw.coin();
  const [cos, sin] = anglesOf(draw, 12, half);
  if (isTurned) attributes.push(attr.int('do_rotary', 1), attr.int('rotary_interleaved', draw.int(0, 1)));
  if (draw.rarely()) attributes.push(attr.int('local_window_size', draw.int(1, 4)));
  if (draw.rarely()) attributes.push(attr.float('softcap', 2));
  const isSmooth = draw.rarely();
  if (isSmooth) attributes.push(attr.int('smooth_softmax', 1));
  const inputs = [
    isPacked ? flat(heads + 2 * shared) : flat(heads),
    isPacked ? undefined : flat(shared),
    isPacked ? undefined : flat(shared),
    past > 0 ? kv() : undefined,
    past > 0 ? kv() : undefined,
    integers(lengths.map((n) => n - 1)),
    integers([past + length], []),
    isTurned ? cos : undefined,
    isTurned ? sin : undefined,
  ];
  return contrib('GroupQueryAttention', inputs, attributes, { outputs: 3, stored: [6], tolerance: 1e-3 });
};

const experts: Family = (draw) => {
  const [tokens, hidden, inner, count] = [draw.int(1, 4), draw.int(1, 4), draw.int(1, 4), draw.int(2, 4)];
  const activation = draw.pick(['relu', 'gelu', 'silu', 'identity', 'swiglu']);
  const outputs = activation === 'swiglu' ? 2 * inner : inner;
  const attributes = [
    attr.text('activation_type', activation),
    attr.int('k', draw.int(1, count)),
    attr.int('normalize_routing_weights', draw.int(0, 1)),
  ];
  if (activation === 'swiglu')
    attributes.push(
      attr.int('swiglu_fusion', 1),
      attr.float('swiglu_limit', 2),
      attr.float('activation_alpha', 1.5),
      attr.float('activation_beta', 1),
    );
  const bias = (width: number): HostArray | undefined =>
    draw.coin() ? draw.tensor([count, width]) : undefined;
  const inputs = [
    draw.tensor([tokens, hidden]),
    draw.tensor([tokens, count]),
    draw.tensor([count, outputs, hidden]),
    bias(outputs),
    draw.tensor([count, hidden, inner]),
    bias(hidden),
  ];
  return contrib('MoE', inputs, attributes, { tolerance: 1e-3 });
};

const contribVarious: Family = (draw) => {
  switch (draw.int(0, 3)) {
    case 0: {
      const n = draw.int(1, 3);
      const x = draw.tensor([draw.int(1, 2), n, n]);
      // Far from singular.
      for (let i = 0; i < x.data.length; i++)
        if (Math.floor(i / n) % n === i % n) x.data[i] = 9 + Number(x.data[i]);
      return contrib('Inverse', [x], [], { tolerance: 1e-3 });
    }
    case 1: {
      const regions = draw.int(1, 3);
      const share = (): number => draw.pick([0, 0.25, 0.5, 0.75, 1, 1.25, -0.25]);
      const boxes = Array.from({ length: 4 * regions }, share);
      const images = draw.int(1, 2);
      const inputs = [
        draw.tensor([images, draw.int(1, 2), draw.int(2, 4), draw.int(2, 4)]),
        floats(boxes, [regions, 4]),
        integers(draw.ints(regions, 0, images - 1)),
        integers(draw.ints(2, 1, 4)),
      ];
      return contrib('CropAndResize', inputs, [attr.float('extrapolation_value', 5)], { stored: [3] });
    }
    case 2: {
      const width = draw.int(1, 4);
      const metric = attr.text('metric', draw.pick(['euclidean', 'sqeuclidean']));
      const inputs = [draw.tensor([draw.int(1, 4), width]), draw.tensor([draw.int(1, 4), width])];
      return contrib('CDist', inputs, [metric], { tolerance: 1e-2 });
    }
    default:
      return contrib('Trilu', [draw.tensor(draw.ints(2, 1, 4))], [attr.int('upper', draw.int(0, 1))]);
  }
};

export const microsoft: Readonly<Record<string, Family>> = {
  activations,
  normals,
  fusedProducts,
  fusedConvs,
  contribAttention,
  contribRotary,
  groupQuery,
  experts,
  contribVarious,
  ...bytes,
};
