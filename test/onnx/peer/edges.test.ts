// Edges of operators, case by case: our results are those of ONNX Runtime, and what it refuses is refused here by an error that
// names the node.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../../src/index.ts';
import { SinterError } from '../../../src/errors.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { hostArray, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import { codeOf, typeOf } from '../../../src/onnx/element.ts';
import { loadOnnx } from '../../../src/onnx/index.ts';
import { attribute, graph, model, node, port, type Draft } from '../../support/onnx/file.ts';
import type { Arrays } from '../../support/onnx/runtime.ts';
import { differenceOf, modelOf, runOurs, runPeer, type Outcome } from './compare.ts';
import { attr, floats, ints, type NodeCase } from './draw.ts';
import { contrib } from './microsoft.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const array = (dtype: DType, shape: readonly number[], values: readonly Scalar[]): HostArray =>
  hostArray(dtype, shape, values);

/** Values that look random: −3 to 3, exact in f32. */
function spread(shape: readonly number[], dtype: DType = 'f32'): HostArray {
  const size = shape.reduce((a, b) => a * b, 1);
  const fraction = dtype === 'f64' ? 1e-9 : 0;
  return array(
    dtype,
    shape,
    Array.from({ length: size }, (_, i) => ((i * 37) % 101) / 16 - 3 + i * fraction),
  );
}

const count = (n: number): HostArray => ints([n]);
const scalar = (x: number, dtype: DType = 'f32'): HostArray => array(dtype, [], [x]);
const boxes = (...list: readonly (readonly number[])[]): HostArray =>
  floats(list.flat(), [1, list.length, 4]);

function suppression(
  limit: number,
  second: readonly number[],
  scores: readonly number[] = [1, 0.5],
): NodeCase {
  const list = boxes([0, 0, 10, 10], second);
  const inputs = [list, floats(scores, [1, 1, scores.length]), count(5), floats([limit])];
  return { op: 'NonMaxSuppression', opset: 11, inputs };
}

function regions(op: NodeCase['op'], dtype: DType, points: number, mode: string): NodeCase {
  const corners = [0.3, 0.4, 5.2, 6.1, 1, 1, 3, 3, -2, -2, 9, 9, 4.5, 4, 4.6, 4.2];
  const attributes = [
    attr.text('mode', mode),
    attr.int('sampling_ratio', points),
    attr.int('output_height', 3),
    attr.int('output_width', 2),
    attr.float('spatial_scale', 0.75),
  ];
  const inputs = [spread([2, 2, 7, 8], dtype), array(dtype, [4, 4], corners), ints([0, 1, 0, 1])];
  return { op, opset: 16, attributes, inputs, tolerance: dtype === 'f64' ? 1e-13 : 1e-5 };
}

function resized(style: readonly (readonly [string, string])[], more: Partial<NodeCase> = {}): NodeCase {
  const roi = floats([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9]);
  const attributes = style.map(([name, value]) => attr.text(name, value));
  return {
    op: 'Resize',
    opset: 19,
    inputs: [spread([1, 2, 4, 5]), roi, floats([1, 1, 2, 1.7])],
    attributes,
    ...more,
  };
}

const cropped = (nearest: string): NodeCase =>
  resized([
    ['mode', 'nearest'],
    ['coordinate_transformation_mode', 'tf_crop_and_resize'],
    ['nearest_mode', nearest],
  ]);

const bytes = array(
  'u8',
  [1, 1, 8, 9],
  Array.from({ length: 72 }, (_, i) => (i * 89) % 256),
);
const smoothed = (mode: string): NodeCase => ({
  op: 'Resize',
  opset: 19,
  inputs: [bytes, undefined, floats([1, 1, 0.5, 0.6])],
  attributes: [attr.text('mode', mode), attr.int('antialias', 1)],
});

const zeroBytes: NodeCase = {
  op: 'DynamicQuantizeLinear',
  opset: 11,
  inputs: [floats([0, 0, 0])],
  outputs: 3,
};

/** Shares of bytes, in the form of an opset. */
const shares = (opset: number): NodeCase =>
  contrib(
    'QLinearSoftmax',
    [bytes, scalar(0.01), scalar(3, 'u8'), scalar(1 / 256), scalar(0, 'u8')],
    [attr.int('opset', opset)],
  );

/** Two sums of three features. */
const fitted = (attributes: readonly Draft[]): NodeCase => ({
  op: 'LinearRegressor',
  opset: 17,
  domain: 'ai.onnx.ml',
  inputs: [spread([2, 3])],
  attributes: [attr.floats('coefficients', [1, 2, 3, 4, 5, 6]), ...attributes],
});

/** Experts whose weights have a scale for each of 16 numbers. */
const expert = (block: number): NodeCase => {
  const weight = array('u8', [2, 32, 16], new Array<number>(1024).fill(0x5a));
  const scales = spread([2, 32, 2]);
  const inputs = [spread([1, 32]), spread([1, 2]), weight, scales, undefined, weight, scales];
  const rest = { stored: [2, 3, 5, 6], tolerance: 1e-3 };
  return contrib('QMoE', inputs, [attr.int('block_size', block)], rest);
};

const same: Readonly<Record<string, NodeCase>> = {
  'shares of bytes along the last axis, as no axis is told': shares(13),
  'shares of bytes of opset 12 along the last axis, as no axis is told': shares(12),
  'sums for as many targets as are told': fitted([attr.int('targets', 2)]),
  'experts of blocks of the size that is told': expert(16),
  'bytes of a division in f32': {
    op: 'QuantizeLinear',
    opset: 23,
    inputs: [spread([2, 6]), scalar(0.25), scalar(3, 'u8')],
    attributes: [attr.int('precision', 1)],
  },
  ...Object.fromEntries(
    [1, 3, 5, 7, 9, 13, 14, 18, 19].map((twentieths) => [
      `boxes that overlap by just ${twentieths}/20`,
      suppression(twentieths / 20, [0, 0, 10, twentieths / 2]),
    ]),
  ),
  'a score that is NaN': suppression(0.5, [20, 20, 30, 30], [NaN, 0.5]),
  'regions of f64, means of points': regions('RoiAlign', 'f64', 2, 'avg'),
  'regions of f64, means of as many points as fit': regions('RoiAlign', 'f64', 0, 'avg'),
  'regions of f64, maxima': regions('RoiAlign', 'f64', 2, 'max'),
  'regions of f32': regions('RoiAlign', 'f32', 0, 'avg'),
  'a crop, floors': cropped('floor'),
  'a crop, halves down': cropped('round_prefer_floor'),
  'a crop, halves up': cropped('round_prefer_ceil'),
  'bytes, smoothed and linear': smoothed('linear'),
  'bytes, smoothed and cubic, beyond the range of bytes': smoothed('cubic'),
  'bytes with their scale, of zeros alone': zeroBytes,
  'a condition that is longer than what it chooses of': {
    op: 'Compress',
    opset: 11,
    inputs: [floats([1, 2, 3, 4], [2, 2]), array('bool', [6], [0, 1, 0, 0, 1, 1])],
  },
  'statistics of doubles, in the type that they have': {
    op: 'LayerNormalization',
    opset: 17,
    inputs: [spread([2, 3, 4], 'f64'), spread([4], 'f64')],
    outputs: 3,
  },
  'means of doubles over time, with the standard momentum': {
    op: 'BatchNormalization',
    opset: 15,
    inputs: [spread([2, 3, 4], 'f64'), ...Array.from({ length: 4 }, () => array('f64', [3], [1, 2, 3]))],
    attributes: [attr.int('training_mode', 1)],
    outputs: 3,
    tolerance: 1e-12,
  },
  'tuples that count from the end': {
    op: 'GatherND',
    opset: 13,
    inputs: [spread([2, 3, 4]), array('i64', [2, 2, 2], [0n, -1n, -3n, 0n, 2n, 3n, -1n, -4n])],
    attributes: [attr.int('batch_dims', 1)],
  },
};

describe('is the same in ONNX Runtime:', () => {
  test.each(Object.entries(same))('%s', async (_, item) => {
    const { file, given } = modelOf(item);
    const [expected, actual] = [await runPeer(file, given), await runOurs(file, given)];
    if (expected.kind === 'refused') throw new Error(expected.reason);
    if (actual.kind === 'refused') throw new Error(actual.reason);
    expect(actual.results.length).toBe(expected.results.length);
    actual.results.forEach((result, i) =>
      expect(differenceOf(result, expected.results[i]!, item.tolerance)).toBeUndefined(),
    );
  });
});

const quantised = (scale: HostArray, zero: HostArray, block = 0): NodeCase => ({
  op: 'QuantizeLinear',
  opset: 21,
  inputs: [spread([2, 6]), scale, zero],
  attributes: [attr.int('axis', 1), attr.int('block_size', block)],
});

const pointed = (op: string, index: HostArray, ...rest: readonly HostArray[]): NodeCase => ({
  op,
  opset: 18,
  inputs: [spread([4, 2]), index, ...rest],
});

/** What is refused, with what our error says. */
const refused: Readonly<Record<string, readonly [NodeCase, RegExp]>> = {
  'an attribute of another operator of com.microsoft': [
    contrib('Gelu', [floats([1])], [attr.float('alpha', 2)]),
    /Gelu: there is no attribute 'alpha': Gelu has none$/,
  ],
  'an attribute of another operator of ai.onnx.ml': [
    fitted([attr.int('n_targets', 2)]),
    /there is no attribute 'n_targets': LinearRegressor has coefficients, intercepts, post_transform, targets$/,
  ],
  'an attribute that the standard has for an operator of this name': [
    contrib('GatherND', [spread([2, 3]), ints([1, 0], [2, 1])], [attr.int('batch_dims', 1)]),
    /there is no attribute 'batch_dims': GatherND has none$/,
  ],
  'sums for more targets than there are': [
    fitted([attr.int('targets', 3)]),
    /LinearRegressor .*3 targets have coefficients for 2/,
  ],
  'experts of other blocks than are told': [expert(32), /attribute 'block_size' is not supported/],
  'a tuple that would be another': [pointed('GatherND', ints([0, 2], [1, 2])), /outside axis/],
  'a tuple that would be another, before the first': [
    pointed('GatherND', ints([1, -3], [1, 2])),
    /outside axis/,
  ],
  'a place that would be in the next of the batch': [
    {
      op: 'GatherND',
      opset: 13,
      inputs: [spread([2, 3]), ints([3, 0], [2, 1])],
      attributes: [attr.int('batch_dims', 1)],
    },
    /outside axis/,
  ],
  'a write to a tuple that would be another': [
    pointed('ScatterND', ints([0, 2], [1, 2]), floats([7])),
    /outside axis/,
  ],
  'updates of another shape': [
    pointed('ScatterND', ints([0, 1], [1, 2]), floats([7, 8])),
    /ScatterND .*\[1\], not \[2\]/,
  ],
  'scores of another number of boxes': [
    suppression(0.5, [1, 1, 2, 2], [1, 0.5, 0.25]),
    /NonMaxSuppression .*scores \[1,1,3\] do not fit boxes \[1,2,4\]/,
  ],
  'a limit of overlaps beyond 1': [suppression(1.5, [1, 1, 2, 2]), /iou_threshold 1.5/],
  'scales of another axis': [
    quantised(floats([1, 2, 3, 4]), array('i8', [4], [0, 0, 0, 0])),
    /QuantizeLinear .*\[4\], expected \[6\]/,
  ],
  'scales of other blocks': [
    quantised(spread([2, 2]), array('i8', [2, 2], [0, 0, 0, 0]), 2),
    /\[2,2\], expected \[2,3\]/,
  ],
  'two types of quantised numbers': [
    {
      ...quantised(scalar(1), scalar(0, 'u8')),
      attributes: [attr.int('output_dtype', 3)],
    },
    /int8.*uint8/,
  ],
  'scales of some axes': [
    resized([], { inputs: [spread([1, 1, 4, 6]), undefined, floats([1, 2])] }),
    /expected 4/,
  ],
  'a scale below 0': [
    resized([], { inputs: [spread([1, 1, 4, 6]), undefined, floats([1, 1, -2, 2])] }),
    /resized by -2/,
  ],
  'an axis that is squeezed and has two elements': [
    { op: 'Squeeze', opset: 13, inputs: [spread([2, 1]), ints([0])] },
    /Squeeze .*axis 0 has 2 elements/,
  ],
  'an axis that is made twice': [
    { op: 'Unsqueeze', opset: 13, inputs: [spread([2]), ints([0, -3])] },
    /Unsqueeze .*\[0,-3\] name an axis twice/,
  ],
  'channels that fill no blocks': [
    { op: 'DepthToSpace', opset: 13, inputs: [spread([1, 6, 2, 3])], attributes: [attr.int('blocksize', 2)] },
    /DepthToSpace .*6 channels are no multiple/,
  ],
  'columns that are no blocks of an image': [
    { op: 'Col2Im', opset: 18, inputs: [spread([1, 9, 9]), ints([4, 4]), ints([2, 2])] },
    /Col2Im .*9 channels are no multiple of the block's 4/,
  ],
  'angles of another width than a head': [
    {
      op: 'RotaryEmbedding',
      opset: 23,
      inputs: [spread([1, 1, 2, 4]), spread([3, 3]), spread([3, 3]), ints([0, 1], [1, 2])],
    },
    /RotaryEmbedding .*by 2 angles, got 3/,
  ],
  'heads that do not divide': [
    {
      op: 'Attention',
      opset: 23,
      inputs: [spread([1, 4, 2, 8]), spread([1, 3, 2, 8]), spread([1, 3, 2, 8])],
    },
    /Attention .*4 heads of queries are no multiple of 3/,
  ],
  'a sum of two types': [
    { op: 'Add', opset: 14, inputs: [floats([1, 2]), ints([1, 2])] },
    /Add .*one type are expected, got float and int64/,
  ],
  'a choice of two types': [
    { op: 'Where', opset: 16, inputs: [array('bool', [1], [1]), floats([1]), array('f64', [1], [1])] },
    /Where .*got float and double/,
  ],
  'a kernel of another size than is told': [
    {
      op: 'Conv',
      opset: 11,
      inputs: [spread([1, 3, 6, 6]), spread([3, 3, 3, 3])],
      attributes: [attr.ints('kernel_shape', [5, 5])],
    },
    /kernel_shape \[5,5\] does not fit the weight \[3,3,3,3\]/,
  ],
};

describe('is refused, as in ONNX Runtime:', () => {
  test.each(Object.entries(refused))('%s', async (_, [item, message]) => {
    const { file, given } = modelOf(item);
    expect((await runPeer(file, given)).kind).toBe('refused');
    const actual = await runOurs(file, given);
    expect(actual.kind).toBe('refused');
    expect(actual.kind === 'refused' && actual.error).toBeInstanceOf(SinterError);
    expect(actual.kind === 'refused' && (actual.error as Error).message).toMatch(message);
  });
});

/** A file whose one node has a body of these nodes, in ONNX Runtime and here. */
async function withBody(
  item: Draft,
  inputs: Arrays,
  outputs: readonly string[],
): Promise<readonly [Outcome, Outcome]> {
  const ports = Object.entries(inputs).map(([name, { dtype, shape }]) =>
    port(name, codeOf(typeOf(dtype)), shape),
  );
  const file = model(graph({ inputs: ports, outputs: outputs.map((name) => ({ name })), nodes: [item] }));
  return [await runPeer(file, inputs), await runOurs(file, inputs)];
}

const bodyOf = (inputs: readonly Draft[], outputs: readonly Draft[], nodes: readonly Draft[]): Draft => ({
  ...graph({ inputs, outputs, nodes }),
  name: 'body',
});
const typed = (name: string, code = 1): Draft => ({ name, type: { tensor: { elemType: code } } });

describe('is refused with the name of the node, as in ONNX Runtime:', () => {
  const message = ([peer, ours]: readonly [Outcome, Outcome]): string => {
    expect(peer.kind).toBe('refused');
    expect(ours.kind === 'refused' && ours.error).toBeInstanceOf(SinterError);
    return ours.kind === 'refused' ? (ours.error as Error).message : '';
  };

  test('a condition of two elements', async () => {
    const branch = (op: string): Draft => bodyOf([], [typed('b')], [node(op, ['x'], ['b'])]);
    const attributes = [attribute('then_branch', branch('Neg')), attribute('else_branch', branch('Abs'))];
    const choice = node('If', ['c'], ['y'], attributes, '', 'choice');
    const found = await withBody(choice, { c: array('bool', [2], [1, 0]), x: floats([1]) }, ['y']);
    expect(message(found)).toMatch(/If 'choice'.*one element, not \[2\]/);
  });

  test('lines of two lengths', async () => {
    const nodes = [node('Add', ['a', 'e'], ['b']), node('Mul', ['b', 'f'], ['o'])];
    const body = bodyOf(
      ['a', 'e', 'f'].map((name) => typed(name)),
      [typed('b'), typed('o')],
      nodes,
    );
    const attributes = [attribute('body', body), attribute('num_scan_inputs', 2)];
    const lines = node('Scan', ['start', 'p', 'q'], ['y', 's'], attributes, '', 'lines');
    const inputs = { start: floats([0, 0]), p: spread([4, 2]), q: spread([5, 2]) };
    expect(message(await withBody(lines, inputs, ['y', 's']))).toMatch(/Scan 'lines'.* of 4 and of 5/);
  });

  test('rows of a loop that grow', async () => {
    const nodes = [
      node('Identity', ['goesOn'], ['next']),
      node('Concat', ['v', 'x'], ['w'], [attribute('axis', 0)]),
      node('Identity', ['w'], ['row']),
    ];
    const ports = [port('i', 7, []), port('goesOn', 9, []), typed('v')];
    const body = bodyOf(ports, [port('next', 9, []), typed('w'), typed('row')], nodes);
    const grows = node('Loop', ['n', '', 'x'], ['y', 's'], [attribute('body', body)], '', 'grows');
    const inputs = { n: array('i64', [], [3n]), x: floats([1, 2]) };
    expect(message(await withBody(grows, inputs, ['y', 's']))).toMatch(/Loop 'grows'.*shapes must agree/);
  });
});

test('an output of another type than the file declares is refused, as in ONNX Runtime', async () => {
  const parts = {
    inputs: [port('x', 1, [2])],
    outputs: [port('y', 7, [2])],
    nodes: [node('Neg', ['x'], ['y'])],
  };
  const file = model(graph(parts));
  expect((await runPeer(file, { x: floats([1, 2]) })).kind).toBe('refused');
  const run = (await loadOnnx(file)).run({ x: Float32Array.of(1, 2) });
  await expect(run).rejects.toThrow(/output 'y': the file declares int64 elements, and its nodes give float/);
});

test('doubles are resized with the digits of doubles', async () => {
  const { file, given } = modelOf({
    op: 'Resize',
    opset: 19,
    inputs: [array('f64', [2], [0, 1]), undefined, floats([3])],
    attributes: [attr.text('mode', 'linear')],
  });
  const found = await runOurs(file, given);
  if (found.kind === 'refused') throw new Error(found.reason);
  const expected = array('f64', [6], [0, 0, 1 / 3, 2 / 3, 1, 1]);
  expect(differenceOf(found.results[0]!, expected, 1e-15)).toBeUndefined();
});

describe('is refused, although ONNX Runtime computes something:', () => {
  test.each<readonly [string, NodeCase, RegExp]>([
    ['sums for fewer targets than there are', fitted([]), /1 targets have coefficients for 2/],
    [
      'bytes of a division in fewer bits than the scale has',
      {
        op: 'QuantizeLinear',
        opset: 23,
        inputs: [spread([2, 6]), scalar(0.25), scalar(3, 'u8')],
        attributes: [attr.int('precision', 10)],
      },
      /'precision': float16 is not supported for scales of float/,
    ],
  ])('%s', async (_, item, message) => {
    const { file, given } = modelOf(item);
    expect((await runPeer(file, given)).kind).toBe('results');
    const found = await runOurs(file, given);
    expect(found.kind === 'refused' && found.error).toBeInstanceOf(SinterError);
    expect(found.kind === 'refused' && (found.error as Error).message).toMatch(message);
  });
});

test.each([
  ['all of it', [], [1, 0, 0]],
  ['infinities alone', [attr.int('isinf_only', 1)], [1, 0, 1]],
  ['NaN alone', [attr.int('isnan_only', 1)], [1, 1, 0]],
] as const)('IsAllFinite looks for %s', async (_, attributes, expected) => {
  for (const [i, odd] of [2, -Infinity, NaN].entries()) {
    const { file, given } = modelOf(contrib('IsAllFinite', [spread([3]), floats([1, odd])], attributes));
    const found = await runOurs(file, given);
    if (found.kind === 'refused') throw new Error(found.reason);
    expect([...found.results[0]!.data]).toEqual([expected[i]]);
  }
});
