// Random nodes of products and normalisations.

import type { DType } from '../../../src/ir/dtype.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Draft } from '../../support/onnx/file.ts';
import { attr, floats, type Family } from './draw.ts';

const matmul: Family = (draw) => {
  const [m, k, n] = [draw.int(0, 4), draw.int(1, 5), draw.int(1, 4)];
  const batch = draw.shape(draw.int(0, 2), 3);
  const dtype = draw.pick<DType>(['f32', 'f32', 'f64', 'i32', 'i64', 'u32']);
  const [left, right] = draw.pick([
    [
      [...batch, m, k],
      [...draw.broadcast(batch), k, n],
    ],
    [
      [...draw.broadcast(batch), m, k],
      [...batch, k, n],
    ],
    [[k], [...batch, k, n]],
    [[...batch, m, k], [k]],
    [[k], [k]],
  ] as const);
  return {
    op: 'MatMul',
    opset: draw.pick(dtype === 'f32' || dtype === 'f64' ? [1, 9, 13] : [9, 13]),
    inputs: [draw.tensor(left, dtype), draw.tensor(right, dtype)],
  };
};

const gemm: Family = (draw) => {
  const [m, k, n] = [draw.int(1, 4), draw.int(1, 5), draw.int(1, 4)];
  const [ta, tb] = [draw.int(0, 1), draw.int(0, 1)];
  const dtype = draw.pick<DType>(['f32', 'f32', 'f64', 'i32', 'i64']);
  const isFloat = dtype === 'f32' || dtype === 'f64';
  const a = draw.tensor(ta === 1 ? [k, m] : [m, k], dtype);
  const b = draw.tensor(tb === 1 ? [n, k] : [k, n], dtype);
  const c = draw.pick([[m, n], [n], [1, n], [m, 1], [], [1]]);
  const factor = (name: string): Draft[] =>
    isFloat && draw.coin() ? [attr.float(name, draw.int(-4, 4) / 4)] : [];
  const attributes = [attr.int('transA', ta), attr.int('transB', tb), ...factor('alpha'), ...factor('beta')];
  const opset = draw.pick([7, 9, 11, 13]);
  const inputs = opset >= 11 && draw.coin() ? [a, b] : [a, b, draw.tensor(c, dtype)];
  return { op: 'Gemm', opset, attributes, inputs };
};

const einsum: Family = (draw) => {
  const sizes: Readonly<Record<string, number>> = { a: 2, b: 3, c: 4, d: 1, A: 3 };
  const equation = draw.pick([
    'ab,bc->ac',
    'ab,cb->ac',
    '...ab,...bc->...ac',
    'aa->a',
    'aa->',
    'ab->ba',
    'ab',
    'ba',
    'ab,b',
    'abc,cb->',
    'a,b->ab',
    '...a->...',
    'a...->...a',
    'aab->b',
    'abc,abc->abc',
    'ab,ab->a',
    'abA,Ac->abc',
    'ab , bc -> ac',
    '...a,...a->...',
    'ab,bc,cA->aA',
    'abb->ab',
    '...ab->...ba',
    'ab->',
    ',ab->ab',
    '->',
  ]);
  const [left] = equation.replaceAll(' ', '').split('->') as [string];
  const more = draw.ints(draw.int(0, 2), 1, 3);
  const inputs = left.split(',').map((term) => {
    const at = term.indexOf('...');
    const letters = (text: string): number[] => Array.from(text, (letter) => sizes[letter]!);
    return draw.tensor(
      at < 0 ? letters(term) : [...letters(term.slice(0, at)), ...more, ...letters(term.slice(at + 3))],
    );
  });
  return { op: 'Einsum', opset: 12, attributes: [attr.text('equation', equation)], inputs };
};

const norm: Family = (draw) => {
  const spatial = draw.ints(draw.int(0, 3), 1, 4);
  const [n, c] = [draw.int(1, 3), draw.int(1, 4)];
  const x = draw.tensor([n, c, ...spatial]);
  const eps = draw.coin() ? [attr.float('epsilon', 0.125)] : [];
  const channel = (): HostArray => draw.tensor([c]);
  const positive = (): HostArray => floats(draw.ints(c, 1, 9).map((v) => v / 4));
  switch (draw.int(0, 6)) {
    case 0:
      return {
        op: 'BatchNormalization',
        opset: draw.pick([7, 9, 14, 15]),
        attributes: eps,
        inputs: [x, channel(), channel(), channel(), positive()],
      };
    case 1:
      return {
        op: 'InstanceNormalization',
        opset: draw.pick([6, 22]),
        attributes: eps,
        inputs: [draw.tensor([n, c, ...spatial, draw.int(2, 4)]), channel(), channel()],
        tolerance: 1e-3,
      };
    case 2: {
      const axis = draw.axis(x.shape.length);
      const shape = x.shape.slice(axis);
      const inputs = [x, draw.tensor(shape), ...(draw.coin() ? [draw.tensor(shape)] : [])];
      return {
        op: 'LayerNormalization',
        opset: 17,
        attributes: [...eps, attr.int('axis', axis)],
        inputs,
        outputs: draw.pick([1, 3]),
        tolerance: 1e-3,
      };
    }
    case 3: {
      const groups = draw.int(1, 2);
      const opset = draw.pick([18, 21]);
      const per = (): HostArray => draw.tensor([opset === 18 ? groups : groups * c]);
      const big = draw.tensor([n, groups * c, ...spatial, 3]);
      return {
        op: 'GroupNormalization',
        opset,
        attributes: [...eps, attr.int('num_groups', groups)],
        inputs: [big, per(), per()],
        tolerance: 1e-3,
      };
    }
    case 4: {
      const size = draw.pick([1, 3, 5]);
      const attributes = [
        attr.int('size', size),
        ...(draw.coin() ? [attr.float('alpha', 0.5), attr.float('beta', 0.5), attr.float('bias', 2)] : []),
      ];
      return {
        op: 'LRN',
        opset: draw.pick([1, 13]),
        attributes,
        inputs: [draw.tensor([n, c, draw.int(1, 3), draw.int(1, 3)])],
      };
    }
    case 5: {
      const attributes = [attr.int('axis', draw.axis(x.shape.length)), attr.int('p', draw.int(1, 2))];
      return { op: 'LpNormalization', opset: draw.pick([1, 22]), attributes, inputs: [x] };
    }
    default: {
      const four = draw.tensor([n, c, draw.int(1, 3), draw.int(2, 3)]);
      const attributes = draw.coin()
        ? [
            attr.ints(
              'axes',
              draw.pick([
                [0, 2, 3],
                [0, 1, 2, 3],
                [-1, 0],
                [2, 3],
              ]),
            ),
          ]
        : [];
      return {
        op: 'MeanVarianceNormalization',
        opset: draw.pick([9, 13]),
        attributes,
        inputs: [four],
        tolerance: 1e-3,
      };
    }
  }
};

const rms: Family = (draw) => {
  const x = draw.tensor(draw.ints(draw.int(1, 4), 1, 4));
  const axis = draw.axis(x.shape.length);
  return {
    op: 'RMSNormalization',
    opset: 23,
    attributes: [attr.int('axis', axis)],
    inputs: [x, draw.tensor(x.shape.slice(axis))],
    tolerance: 1e-3,
  };
};

const training: Family = (draw) => {
  const [n, c] = [draw.int(2, 3), draw.int(1, 3)];
  const x = draw.tensor([n, c, draw.int(1, 3), draw.int(2, 3)]);
  const channel = (): HostArray => draw.tensor([c]);
  const attributes = [attr.int('training_mode', 1), attr.float('momentum', 0.75)];
  return {
    op: 'BatchNormalization',
    opset: draw.pick([14, 15]),
    attributes,
    inputs: [x, channel(), channel(), channel(), channel()],
    outputs: 3,
    tolerance: 1e-3,
  };
};

export const products: Readonly<Record<string, Family>> = { matmul, gemm, einsum, norm, rms, training };
