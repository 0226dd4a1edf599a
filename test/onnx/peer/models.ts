// Random networks as exporters write them: blocks over x [batch, length, width] whose shapes are computed by nodes, so that one file
// takes every batch and length. A block reads what stands so far and gives a new x of the same kind.

import { graph, modelOf, node, port, type Draft } from '../../support/onnx/file.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { attr, type Draw } from './draw.ts';
import { Maker } from './maker.ts';

/** The width of every network: two heads of four. */
const width = 8;
const heads = 2;

type Block = (m: Maker, x: string, earlier: readonly string[]) => string;

const linear: Block = (m, x) => {
  const product = m.add('MatMul', [x, m.weight(width, width)]);
  const sum = m.add('Add', [product, m.weight(width)]);
  return m.add(m.draw.pick(['Relu', 'Tanh', 'Sigmoid', 'Erf', 'Softplus']), [sum]);
};

const residual: Block = (m, x, earlier) => m.add('Add', [x, m.draw.pick(earlier)]);

const layerNorm: Block = (m, x) => {
  const axes = [attr.ints('axes', [-1])];
  const centred = m.add('Sub', [x, m.add('ReduceMean', [x], axes)]);
  const variance = m.add('ReduceMean', [m.add('Pow', [centred, m.float(2)])], axes);
  const deviation = m.add('Sqrt', [m.add('Add', [variance, m.float(0.1)])]);
  return m.add('Mul', [m.add('Div', [centred, deviation]), m.weight(width)]);
};

/** Attention with heads whose shapes are computed, masked as decoders mask. */
const attention: Block = (m, x) => {
  const [batch, length] = [m.size(x, 0), m.size(x, 1)];
  const split = m.shape(batch, length, heads, width / heads);
  const [q, k, v] = [0, 1, 2].map(() => {
    const product = m.add('MatMul', [x, m.weight(width, width)]);
    return m.add('Transpose', [m.add('Reshape', [product, split])], [attr.ints('perm', [0, 2, 1, 3])]);
  }) as [string, string, string];
  const turned = m.add('Transpose', [k], [attr.ints('perm', [0, 1, 3, 2])]);
  let scores = m.add('Mul', [m.add('MatMul', [q, turned]), m.float(0.5)]);
  const mask = m.draw.pick(['none', 'triangle', 'comparison']);
  if (mask === 'triangle') {
    const ones = m.add(
      'ConstantOfShape',
      [m.shape(length, length)],
      [{ name: 'value', type: 4, t: { dataType: 1, dims: [1n], floatData: [1] } }],
    );
    const seen = m.add('Cast', [m.add('Trilu', [ones], [attr.int('upper', 0)])], [attr.int('to', 9)]);
    scores = m.add('Where', [seen, scores, m.float(-1e4)]);
  } else if (mask === 'comparison') {
    const place = m.range(length);
    const rows = m.add('Unsqueeze', [place, m.ints(1)]);
    const hidden = m.add('Greater', [place, rows]);
    scores = m.add('Add', [
      scores,
      m.add('Mul', [m.add('Cast', [hidden], [attr.int('to', 1)]), m.float(-100)]),
    ]);
  }
  const weights = m.add('Softmax', [scores], [attr.int('axis', -1)]);
  const read = m.add('Transpose', [m.add('MatMul', [weights, v])], [attr.ints('perm', [0, 2, 1, 3])]);
  return m.add('Reshape', [read, m.shape(batch, length, width)]);
};

const positions: Block = (m, x) => {
  const [batch, length] = [m.size(x, 0), m.size(x, 1)];
  const line = m.add('Unsqueeze', [m.range(length), m.ints(0)]);
  const ids = m.add('Expand', [line, m.shape(batch, length)]);
  return m.add('Add', [x, m.add('Gather', [m.weight(32, width), ids])]);
};

/** PyTorch's expand: sizes of −1 are those that are there. */
const expanded: Block = (m, x) => {
  const wanted = m.shape(m.size(x, 0), m.size(x, 1), -1);
  const ones = m.add(
    'ConstantOfShape',
    [m.add('Shape', [wanted])],
    [{ name: 'value', type: 4, t: { dataType: 7, dims: [1n], int64Data: [1n] } }],
  );
  const open = m.add('Equal', [wanted, m.add('Mul', [ones, m.scalar(-1)])]);
  const shape = m.add('Where', [open, ones, wanted]);
  return m.add('Mul', [x, m.add('Expand', [m.weight(1, 1, width), shape])]);
};

/** The line cut in two by a computed size, and put together the other way round. */
const halves: Block = (m, x) => {
  const half = m.add('Unsqueeze', [m.add('Div', [m.size(x, 1), m.scalar(2)]), m.ints(0)]);
  const [axis, far] = [m.ints(1), m.ints(2 ** 31 - 1)];
  const front = m.add('Slice', [x, m.ints(0), half, axis]);
  const back = m.add('Slice', [x, half, far, axis]);
  return m.add('Concat', [back, front], [attr.int('axis', 1)]);
};

const gated: Block = (m, x) => {
  const wide = m.add('MatMul', [x, m.weight(width, 2 * width)]);
  const [a, b] = m.many('Split', [wide, m.ints(width, width)], 2, [attr.int('axis', -1)]) as [string, string];
  return m.add('Mul', [a, m.add('Sigmoid', [b])]);
};

const convolved: Block = (m, x) => {
  const turned = m.add('Transpose', [x], [attr.ints('perm', [0, 2, 1])]);
  const pads = [attr.ints('pads', [1, 1])];
  const y = m.draw.coin()
    ? m.add('Conv', [turned, m.weight(width, width, 3), m.weight(width)], pads)
    : m.add('MaxPool', [turned], [...pads, attr.ints('kernel_shape', [3])]);
  return m.add('Transpose', [y], [attr.ints('perm', [0, 2, 1])]);
};

/** A softmax over the line, by hand. */
const spread: Block = (m, x) => {
  const shifted = m.add('Sub', [
    x,
    m.add('ReduceMax', [x], [attr.ints('axes', [1]), attr.int('keepdims', 1)]),
  ]);
  const powers = m.add('Exp', [shifted]);
  return m.add('Div', [powers, m.add('ReduceSum', [powers, m.ints(1)], [attr.int('keepdims', 1)])]);
};

/** Padded by a computed number and cut again. */
const padded: Block = (m, x) => {
  const length = m.size(x, 1);
  const odd = m.add('Mod', [length, m.scalar(4)]);
  const missing = m.add('Sub', [m.scalar(4), odd]);
  const pads = m.shape(0, missing, 0, 0, m.draw.int(0, 2), 0);
  const wide = m.add('Pad', [x, pads, m.float(0.5)]);
  const start = m.add('Unsqueeze', [m.draw.coin() ? missing : m.scalar(0), m.ints(0)]);
  const end = m.add('Add', [start, m.add('Unsqueeze', [length, m.ints(0)])]);
  return m.add('Slice', [wide, start, end, m.ints(1)]);
};

/** Twice as long by resizing to computed sizes, and the mean of pairs again. */
const resized: Block = (m, x) => {
  const turned = m.add('Transpose', [x], [attr.ints('perm', [0, 2, 1])]);
  const float = m.add('Cast', [m.size(x, 1)], [attr.int('to', 1)]);
  const twice = m.add('Cast', [m.add('Floor', [m.add('Mul', [float, m.float(2)])])], [attr.int('to', 7)]);
  const sizes = m.shape(m.size(x, 0), width, twice);
  const modes = [
    attr.text('mode', m.draw.pick(['nearest', 'linear'])),
    attr.text('coordinate_transformation_mode', 'half_pixel'),
  ];
  const long = m.add('Resize', [turned, '', '', sizes], modes);
  const pairs = m.add('AveragePool', [long], [attr.ints('kernel_shape', [2]), attr.ints('strides', [2])]);
  return m.add('Transpose', [pairs], [attr.ints('perm', [0, 2, 1])]);
};

/** The order of each line by its last element, undone by scattering. */
const ordered: Block = (m, x) => {
  const key = m.add('Squeeze', [m.add('Slice', [x, m.ints(-1), m.ints(width), m.ints(2)]), m.ints(2)]);
  const count = m.add('Unsqueeze', [m.size(x, 1), m.ints(0)]);
  const [, places] = m.many('TopK', [key, count], 2, [attr.int('axis', 1)]) as [string, string];
  const wide = m.add('Expand', [m.add('Unsqueeze', [places, m.ints(2)]), m.add('Shape', [x])]);
  const sorted = m.add('GatherElements', [x, wide], [attr.int('axis', 1)]);
  if (m.draw.coin()) return sorted;
  return m.add('ScatterElements', [x, wide, m.add('Neg', [sorted])], [attr.int('axis', 1)]);
};

const product: Block = (m, x) =>
  m.add('Einsum', [x, m.weight(width, width)], [attr.text('equation', 'bsd,ed->bse')]);

const summed: Block = (m, x) => m.add('Mul', [m.add('CumSum', [x, m.scalar(1)]), m.float(0.25)]);

/** Lines where a condition on computed sizes chooses the branch. */
const branched: Block = (m, x) => {
  const isLong = m.add('Greater', [m.size(x, 1), m.scalar(2)]);
  const branch = (op: string): Draft => {
    const y = m.name();
    return {
      ...graph({ inputs: [], outputs: [port(y, 1, ['b', 's', width])], nodes: [node(op, [x], [y])] }),
      name: 'branch',
    };
  };
  const bodies: Draft[] = [
    { name: 'then_branch', type: 5, g: branch('Neg') },
    { name: 'else_branch', type: 5, g: branch('Abs') },
  ];
  return m.add('If', [isLong], bodies);
};

/** As many rounds as the line is long: what is carried, and a row a round. */
const looped: Block = (m, x) => {
  const { i, on, state, next, row, still } = m.names('i', 'on', 'state', 'next', 'row', 'still');
  const step = m.name();
  const body = graph({
    inputs: [port(i, 7, []), port(on, 9, []), port(state, 1, ['b', 's', width])],
    outputs: [port(still, 9, []), port(next, 1, ['b', 's', width]), port(row, 1, ['b', width])],
    nodes: [
      node('Identity', [on], [still]),
      node('Gather', [x, i], [row], [attr.int('axis', 1)]),
      node('Unsqueeze', [row, m.ints(1)], [step]),
      node('Add', [state, step], [next]),
    ],
  });
  const [total, rows] = m.many('Loop', [m.size(x, 1), '', x], 2, [
    { name: 'body', type: 5, g: { ...body, name: 'body' } },
  ]) as [string, string];
  const turned = m.add('Transpose', [rows], [attr.ints('perm', [1, 0, 2])]);
  return m.add('Mul', [m.add('Sub', [total, turned]), m.float(0.25)]);
};

/** Taken apart, one part moved to the end, and put together. */
const relisted: Block = (m, x) => {
  const sizes = m.draw.pick([m.ints(2, 3, 3), m.ints(1, 6, 1), m.scalar(4), m.scalar(3)]);
  const parts = m.add('SplitToSequence', [x, sizes], [attr.int('axis', 2)]);
  const place = m.scalar(m.draw.int(-2, 1));
  const part = m.add('SequenceAt', [parts, place]);
  const rest = m.add('SequenceErase', [parts, place]);
  const list = m.add(
    'SequenceInsert',
    m.draw.coin() ? [rest, part] : [rest, part, m.scalar(m.draw.int(-1, 1))],
  );
  return m.add('ConcatFromSequence', [list], [attr.int('axis', -1)]);
};

/** A list that a loop fills, one element of the line a round. */
const gathered: Block = (m, x) => {
  const { i, on, list, still, row, longer } = m.names('i', 'on', 'list', 'still', 'row', 'longer');
  const type = { sequence: { elem: { tensor: { elemType: 1 } } } };
  const body = graph({
    inputs: [port(i, 7, []), port(on, 9, []), { name: list, type }],
    outputs: [port(still, 9, []), { name: longer, type }],
    nodes: [
      node('Identity', [on], [still]),
      node('Gather', [x, i], [row], [attr.int('axis', 1)]),
      node('SequenceInsert', [list, row], [longer]),
    ],
  });
  const start = m.add('SequenceEmpty', []);
  const rows = m.add(
    'Loop',
    [m.size(x, 1), '', start],
    [{ name: 'body', type: 5, g: { ...body, name: 'body' } }],
  );
  return m.add('ConcatFromSequence', [rows], [attr.int('axis', 1), attr.int('new_axis', 1)]);
};

/** The sum of what is above 0, as many elements as there are. */
const chosen: Block = (m, x) => {
  const places = m.add('NonZero', [m.add('Greater', [x, m.float(0)])]);
  const found = m.add('GatherND', [x, m.add('Transpose', [places])]);
  const total = m.add('ReduceSum', [found], [attr.int('keepdims', 0)]);
  const count = m.add('Cast', [m.size(places, 1)], [attr.int('to', 1)]);
  return m.add('Add', [x, m.add('Div', [total, m.add('Add', [count, m.float(1)])])]);
};

/** Halved until the largest element is small: rounds that the data decides. */
const halved: Block = (m, x) => {
  const { i, on, state, next, goes, half, most } = m.names(
    'i',
    'on',
    'state',
    'next',
    'goes',
    'half',
    'most',
  );
  const [factor, limit] = [m.float(0.5), m.float(1.25)];
  const body = graph({
    inputs: [port(i, 7, []), port(on, 9, []), port(state, 1, ['b', 's', width])],
    outputs: [port(goes, 9, []), port(next, 1, ['b', 's', width])],
    nodes: [
      node('Mul', [state, factor], [next]),
      node('Abs', [next], [half]),
      node('ReduceMax', [half], [most], [attr.int('keepdims', 0)]),
      node('Greater', [most, limit], [goes]),
    ],
  });
  const start = m.constant({ dtype: 'bool', shape: [], data: Uint8Array.of(1) });
  return m.add('Loop', [m.scalar(20), start, x], [{ name: 'body', type: 5, g: { ...body, name: 'body' } }]);
};

const blocks: readonly Block[] = [
  chosen,
  halved,
  relisted,
  gathered,
  linear,
  residual,
  layerNorm,
  attention,
  positions,
  expanded,
  halves,
  gated,
  convolved,
  spread,
  padded,
  resized,
  ordered,
  product,
  summed,
  branched,
  looped,
];

/** A network, and inputs of several sizes for it. */
export interface Network {
  readonly file: Uint8Array;
  readonly runs: readonly Readonly<Record<string, HostArray>>[];
  /** What it is made of, to be read in a failure. */
  readonly made: readonly string[];
}

export function network(draw: Draw): Network {
  const m = new Maker(draw);
  const hasIds = draw.coin();
  const dims = ['batch', 'length'];
  const inputs = hasIds ? [port('ids', 7, dims)] : [port('x', 1, [...dims, width])];
  let x = hasIds ? m.add('Gather', [m.weight(16, width), 'ids']) : 'x';
  const earlier = [x];
  const made: string[] = [];
  for (let k = draw.int(1, 5); k > 0; k--) {
    const block = draw.pick(blocks);
    made.push(block.name);
    x = block(m, x, earlier);
    earlier.push(x);
  }
  const outputs: Draft[] = [port(x, 1, [...dims, width])];
  if (draw.coin()) outputs.push({ name: m.add('Shape', [x]) });
  const nodes = draw.coin() ? m.nodes : draw.shuffled(m.nodes);
  const file = modelOf(
    { inputs, outputs, initializers: m.initializers, nodes: draw.coin() ? m.nodes : nodes },
    17,
  );
  const runs = Array.from({ length: 2 }, () => {
    const shape = [draw.int(1, 3), draw.int(1, 6)];
    return hasIds
      ? { ids: draw.tensor(shape, 'i64', { least: 0, most: 15 }) }
      : { x: draw.tensor([...shape, width]) };
  });
  return { file, runs, made };
}
