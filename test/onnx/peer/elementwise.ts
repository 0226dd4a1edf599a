// Random nodes of operators on each element, of conversions, and of reductions.

import type { DType } from '../../../src/ir/dtype.ts';
import { attr, ints, type Family } from './draw.ts';

const floatTypes: readonly DType[] = ['f32', 'f32', 'f64'];
const numbers: readonly DType[] = ['f32', 'f64', 'i32', 'i64'];
const all: readonly DType[] = ['f32', 'f64', 'i32', 'i64', 'u32', 'u64', 'i8', 'u8', 'i16', 'u16'];

const unary =
  (ops: readonly (readonly [op: string, since: readonly number[], types: readonly DType[]])[]): Family =>
  (draw) => {
    const [op, since, types] = draw.pick(ops);
    // A scalar's places have no axes: ONNX Runtime gives them one.
    const shape = op === 'NonZero' ? draw.shape(draw.int(1, 4)) : draw.anyShape();
    return { op, opset: draw.pick(since), inputs: [draw.tensor(shape, draw.pick(types))] };
  };

const functions = unary([
  ['Abs', [6, 13], all],
  ['Acos', [7, 22], floatTypes],
  ['Acosh', [9, 22], floatTypes],
  ['Asin', [7, 22], floatTypes],
  ['Asinh', [9, 22], floatTypes],
  ['Atan', [7, 22], floatTypes],
  ['Atanh', [9, 22], floatTypes],
  ['BitwiseNot', [18], ['i32', 'u8', 'i64', 'u16']],
  ['Ceil', [6, 13], floatTypes],
  ['Cos', [7, 22], floatTypes],
  ['Cosh', [9, 22], floatTypes],
  ['Erf', [9, 13], floatTypes],
  ['Exp', [6, 13], floatTypes],
  ['Floor', [6, 13], floatTypes],
  ['HardSwish', [14, 22], ['f32']],
  ['Identity', [1, 13, 14, 16, 21], all],
  ['IsInf', [10, 20], ['f32', 'f64']],
  ['IsNaN', [9, 13, 20], ['f32', 'f64']],
  ['Log', [6, 13], floatTypes],
  ['Mish', [18, 22], ['f32']],
  ['Neg', [6, 13], ['f32', 'f64', 'i32', 'i64', 'i8']],
  ['NonZero', [9, 13], ['f32', 'bool', 'i32', 'i64', 'u8']],
  ['Not', [1], ['bool']],
  ['Reciprocal', [6, 13], floatTypes],
  ['Relu', [6, 13, 14], ['f32', 'f64', 'i32', 'i8']],
  ['Round', [11, 22], floatTypes],
  ['Shape', [1, 13, 15, 19, 21], all],
  ['Sigmoid', [6, 13], floatTypes],
  ['Sign', [9, 13], all],
  ['Sin', [7, 22], floatTypes],
  ['Sinh', [9, 22], floatTypes],
  ['Size', [1, 13, 19], all],
  ['Softplus', [1, 22], ['f32']],
  ['Softsign', [1, 22], ['f32']],
  ['Sqrt', [6, 13], floatTypes],
  ['Tan', [7, 22], floatTypes],
  ['Tanh', [6, 13], floatTypes],
]);

const tuned: Family = (draw) => {
  const [op, since, names] = draw.pick([
    ['Celu', [12], ['alpha']],
    ['Elu', [6, 22], ['alpha']],
    ['HardSigmoid', [6, 22], ['alpha', 'beta']],
    ['LeakyRelu', [6, 16], ['alpha']],
    ['Selu', [6, 22], ['alpha', 'gamma']],
    ['Shrink', [9], ['lambd', 'bias']],
    ['ThresholdedRelu', [10, 22], ['alpha']],
    ['Swish', [24], ['alpha']],
  ] as const);
  const attributes = names.flatMap((name) =>
    draw.coin() ? [attr.float(name, Math.fround(draw.int(1, 20) / 8))] : [],
  );
  return { op, opset: draw.pick(since), attributes, inputs: [draw.tensor(draw.anyShape())] };
};

const binary: Family = (draw) => {
  const [op, since, types] = draw.pick([
    ['Add', [7, 13, 14], numbers],
    ['And', [7], ['bool']],
    ['BitwiseAnd', [18], ['i32', 'u8', 'i64']],
    ['BitwiseOr', [18], ['i32', 'u8', 'i64']],
    ['BitwiseXor', [18], ['i32', 'u8', 'i64']],
    ['Div', [7, 13, 14], ['f32', 'f64']],
    ['Equal', [7, 11, 13, 19], ['i32', 'i64', 'bool', 'f32']],
    ['Greater', [7, 9, 13], numbers],
    ['GreaterOrEqual', [12, 16], numbers],
    ['Less', [7, 9, 13], numbers],
    ['LessOrEqual', [12, 16], numbers],
    ['Mul', [7, 13, 14], numbers],
    ['Or', [7], ['bool']],
    ['PRelu', [7, 9, 16], ['f32']],
    ['Sub', [7, 13, 14], numbers],
    ['Xor', [7], ['bool']],
    ['Max', [8, 12, 13], ['f32', 'f64']],
    ['Min', [8, 12, 13], ['f32', 'f64']],
  ] as const);
  const dtype = draw.pick(types as readonly DType[]);
  const shape = draw.anyShape();
  const [x, y] = [draw.tensor(shape, dtype), draw.tensor(draw.broadcast(shape), dtype)];
  const isOneWay = op === 'PRelu' || draw.coin();
  return { op, opset: draw.pick(since as readonly number[]), inputs: isOneWay ? [x, y] : [y, x] };
};

/** Divisors and shifts that have a meaning. */
const whole: Family = (draw) => {
  const shape = draw.anyShape();
  const op = draw.pick(['Div', 'Mod', 'BitShift', 'Pow', 'Mod']);
  const dtype = draw.pick<DType>(
    op === 'BitShift'
      ? ['u8', 'u32', 'u64']
      : op === 'Pow'
        ? ['i32', 'i64', 'f32']
        : op === 'Div'
          ? ['i32', 'i64', 'i8', 'u8', 'u32']
          : ['i32', 'i64', 'i8', 'u8', 'u32', 'i16', 'f32'],
  );
  const x = draw.tensor(shape, dtype, { least: op === 'Pow' ? 1 : -9 });
  const y = draw.tensor(draw.broadcast(shape), dtype, { least: 1, most: 4 });
  if (op === 'BitShift')
    return {
      op,
      opset: 11,
      inputs: [x, y],
      attributes: [attr.text('direction', draw.pick(['LEFT', 'RIGHT']))],
    };
  if (op === 'Pow') {
    const exponent = draw.tensor(y.shape, draw.pick<DType>(['i32', 'i64', 'f32']), { least: 0, most: 3 });
    return {
      op,
      opset: draw.pick([12, 13, 15]),
      inputs: [x, exponent],
      tolerance: dtype === 'f32' ? 1e-4 : 1,
    };
  }
  if (op === 'Div') return { op, opset: draw.pick([7, 13, 14]), inputs: [x, y] };
  const isFloat = dtype === 'f32' || draw.coin();
  return { op, opset: draw.pick([10, 13]), inputs: [x, y], attributes: [attr.int('fmod', isFloat ? 1 : 0)] };
};

const variadic: Family = (draw) => {
  const [op, since] = draw.pick([
    ['Max', [8, 12, 13]],
    ['Min', [8, 12, 13]],
    ['Mean', [8, 13]],
    ['Sum', [8, 13]],
  ] as const);
  const shape = draw.anyShape(3);
  const opset = draw.pick(since as readonly number[]);
  const isExtremum = op === 'Max' || op === 'Min';
  const dtype = draw.pick<DType>(
    isExtremum && opset >= 12 ? ['f32', 'i32', 'i64', 'u32', 'i8', 'u8'] : ['f32'],
  );
  const inputs = Array.from({ length: draw.int(1, 4) }, () => draw.tensor(draw.broadcast(shape), dtype));
  return { op, opset, inputs };
};

const old: Family = (draw) => {
  const shape = draw.shape(draw.int(1, 4));
  const op = draw.pick(['Softmax', 'LogSoftmax', 'Hardmax']);
  const opset = draw.pick([7, 11, 13]);
  const axis = opset === 7 ? draw.int(0, shape.length - 1) : draw.axis(shape.length);
  const attributes = draw.rarely() && shape.length > 1 ? [] : [attr.int('axis', axis)];
  return { op, opset, attributes, inputs: [draw.tensor(shape, draw.pick(['f32', 'f32', 'f64']))] };
};

const clip: Family = (draw) => {
  const opset = draw.pick([6, 11, 12, 13]);
  const dtype = draw.pick<DType>(
    opset >= 12 ? ['f32', 'f64', 'i32', 'i64', 'u8', 'i8', 'u32', 'u64'] : ['f32'],
  );
  const x = draw.tensor(draw.anyShape(), dtype);
  if (opset === 6) {
    const attributes = [
      ...(draw.coin() ? [attr.float('min', -draw.int(0, 3))] : []),
      ...(draw.coin() ? [attr.float('max', draw.int(0, 3))] : []),
    ];
    return { op: 'Clip', opset, attributes, inputs: [x] };
  }
  const bound = (): ReturnType<typeof draw.tensor> | undefined =>
    draw.rarely(3) ? undefined : draw.tensor([], dtype);
  return { op: 'Clip', opset, inputs: [x, bound(), bound()], stored: draw.coin() ? [1, 2] : [] };
};

const cast: Family = (draw) => {
  const codes: Readonly<Record<string, number>> = {
    f32: 1,
    u8: 2,
    i8: 3,
    u16: 4,
    i16: 5,
    i32: 6,
    i64: 7,
    bool: 9,
    f16: 10,
    f64: 11,
    u32: 12,
    u64: 13,
  };
  const from = draw.pick<DType>([...all, 'bool', 'f16']);
  const to = draw.pick(Object.keys(codes));
  // What a negative number is without a sign, a conversion of floats does not say.
  const isFloat = from.startsWith('f');
  const x = draw.tensor(draw.anyShape(), from);
  if (isFloat && to.startsWith('u')) x.data.forEach((v, i) => (x.data[i] = Math.abs(Number(v))));
  const like = draw.coin();
  if (like)
    return { op: 'CastLike', opset: draw.pick([15, 19, 21]), inputs: [x, draw.tensor([1], to as DType)] };
  return {
    op: 'Cast',
    opset: draw.pick([6, 9, 13, 19, 21]),
    inputs: [x],
    attributes: [attr.int('to', codes[to]!)],
  };
};

const reduce: Family = (draw) => {
  const op = draw.pick(
    'L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare'.split(' ').map((name) => `Reduce${name}`),
  );
  const opset = draw.pick([7, 11, 13, 18, 20]);
  const dtype = draw.pick<DType>(['f32', 'f32', 'f64', 'i32', 'i64']);
  const rank = draw.int(0, 4);
  // Where an axis has no elements ONNX Runtime keeps its size. Whole numbers have logarithms and roots above 0 only.
  const least = dtype.startsWith('f') || !/L2|Log/.test(op) ? -9 : 1;
  const x = draw.tensor(
    draw.ints(rank, 1, 4),
    dtype,
    op === 'ReduceProd' ? { least: -1, most: 2 } : { least },
  );
  const keep = draw.coin() ? [attr.int('keepdims', draw.int(0, 1))] : [];
  const chosen = draw.shuffled(x.shape.map((_, axis) => axis)).slice(0, draw.int(0, rank));
  const axes = chosen.map((axis) => (opset >= 11 && draw.coin() ? axis - rank : axis));
  const isInput = opset >= 18 || (op === 'ReduceSum' && opset >= 13);
  const isFloat = dtype.startsWith('f');
  const tolerance = isFloat ? 1e-4 : op.includes('L2') || op.includes('Log') ? 1 : undefined;
  const rest = tolerance === undefined ? {} : { tolerance };
  if (!isInput) {
    const own = axes.length === 0 ? [] : [attr.ints('axes', axes)];
    return { op, opset, attributes: [...keep, ...own], inputs: [x], ...rest };
  }
  const noop = draw.rarely() ? [attr.int('noop_with_empty_axes', 1)] : [];
  const list = draw.coin() || axes.length > 0 ? ints(axes) : undefined;
  return {
    op,
    opset,
    attributes: [...keep, ...noop],
    inputs: list === undefined ? [x] : [x, list],
    stored: draw.coin() ? [1] : [],
    ...rest,
  };
};

const places: Family = (draw) => {
  const opset = draw.pick([7, 11, 12, 13]);
  const rank = draw.int(1, 4);
  const x = draw.tensor(draw.ints(rank, 1, 4), draw.pick<DType>(['f32', 'f64', 'i32', 'i8', 'u8']), {
    least: -2,
    most: 2,
  });
  const attributes = [
    ...(draw.rarely() ? [] : [attr.int('axis', opset >= 11 ? draw.axis(rank) : draw.int(0, rank - 1))]),
    ...(draw.coin() ? [attr.int('keepdims', draw.int(0, 1))] : []),
    ...(opset >= 12 && draw.coin() ? [attr.int('select_last_index', draw.int(0, 1))] : []),
  ];
  return { op: draw.pick(['ArgMax', 'ArgMin']), opset, attributes, inputs: [x] };
};

const running: Family = (draw) => {
  const rank = draw.int(1, 4);
  const x = draw.tensor(draw.shape(rank, 6), draw.pick<DType>(['f32', 'f64', 'i32', 'i64']), {
    least: -3,
    most: 3,
  });
  const attributes = ['exclusive', 'reverse'].flatMap((name) => (draw.coin() ? [attr.int(name, 1)] : []));
  const op = draw.rarely() ? 'CumProd' : 'CumSum';
  const opset = op === 'CumProd' ? 26 : draw.pick([11, 14]);
  return { op, opset, attributes, inputs: [x, ints([draw.axis(rank)], [])], stored: draw.coin() ? [1] : [] };
};

const choice: Family = (draw) => {
  const shape = draw.anyShape();
  const dtype = draw.pick<DType>(['f32', 'f64', 'i32', 'i64', 'u8']);
  const inputs = [
    draw.tensor(draw.broadcast(shape), 'bool'),
    draw.tensor(draw.broadcast(shape), dtype),
    draw.tensor(draw.broadcast(shape), dtype),
  ];
  return { op: 'Where', opset: draw.pick([9, 16]), inputs };
};

export const elementwise: Readonly<Record<string, Family>> = {
  functions,
  tuned,
  binary,
  whole,
  variadic,
  softmax: old,
  clip,
  cast,
  reduce,
  places,
  running,
  choice,
};
