// The steps random programs are made of: each picks operands among earlier nodes, brings them into a form its op takes, and
// adds one op (or a small group). Dice that read 0 give the simplest variant.

import { tableNode } from '../fft.ts';
import { isFloat, isInteger, type DType } from '../../../src/ir/dtype.ts';
import { dims, type Node } from '../../../src/ir/graph.ts';
import { windowCount } from '../../../src/ir/infer.ts';
import {
  elementwiseRows,
  facts,
  opNames,
  type BinaryOp,
  type TypeFamily,
  type Monoid,
  type Op,
  type ScatterMode,
  type UnaryOp,
} from '../../../src/ir/ops.ts';
import { sameShape, sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { Unfit, type Draft } from './draft.ts';
import { pickConstant, randomIndices } from './values.ts';
import { factorRule } from '../../../src/autograd/rules-factor.ts';
import { factorDerivative } from '../../../src/autograd/slots.ts';
import { factors } from '../../../src/ir/typing/factor.ts';
import { factorTypes } from '../../../src/ir/typing/slots.ts';

// Programs may have every operation.
factorTypes.fill(factors);
factorDerivative.fill(factorRule);

/** A whole number in [0, sides). */
export type Dice = (sides: number) => number;

export type StepKind =
  | 'parameter'
  | 'constant'
  | 'iota'
  | 'random'
  | 'unary'
  | 'math'
  | 'not'
  | 'isNan'
  | 'binary'
  | 'bits'
  | 'compare'
  | 'where'
  | 'fma'
  | 'cast'
  | 'bitcast'
  | 'reshape'
  | 'permute'
  | 'broadcast'
  | 'slice'
  | 'pad'
  | 'concat'
  | 'window'
  | 'reduce'
  | 'argReduce'
  | 'argSort'
  | 'searchSorted'
  | 'scan'
  | 'fft'
  | 'dot'
  | 'conv'
  | 'gather'
  | 'scatter'
  | 'scatterAddAtomic'
  | 'factor'
  | 'marker';

/** Adds a node to the draft; throws Unfit when it cannot. */
export type Step = (draft: Draft, dice: Dice) => Node;

const oneOf = <T>(dice: Dice, choices: readonly T[]): T => choices[dice(choices.length)]!;

/** An earlier node that fits, often the latest, so that chains grow. */
function pick(draft: Draft, dice: Dice, fits: (node: Node) => boolean = () => true): Node {
  const fitting = draft.nodes.filter(fits);
  if (fitting.length === 0) throw new Unfit('no operand');
  return dice(2) === 0 ? fitting.at(-1)! : fitting.at(-1 - dice(fitting.length))!;
}

const isNumber = (node: Node): boolean => node.dtype !== 'bool';
const hasAxis = (node: Node): boolean => node.shape.length > 0;
const isFloatNode = (node: Node): boolean => isFloat(node.dtype);
const isIntegerNode = (node: Node): boolean => isInteger(node.dtype);

function castTo(draft: Draft, x: Node, dtype: DType): Node {
  return x.dtype === dtype ? x : draft.add('cast', [x], { dtype });
}

function broadcastTo(draft: Draft, x: Node, shape: FixedShape): Node {
  return sameShape(x.shape, shape) ? x : draft.add('broadcast', [x], { shape });
}

function scalar(draft: Draft, value: number, dtype: DType): Node {
  return draft.add('constant', [], {
    value: dtype === 'i64' || dtype === 'u64' ? BigInt(value) : value,
    dtype,
  });
}

/** An operand of `x`'s dtype and of a shape that broadcasts with it: a constant, an earlier node, `x` itself. */
function partner(draft: Draft, dice: Dice, x: Node, dtype: DType = x.dtype): Node {
  switch (dice(4)) {
    case 0:
      return broadcastTo(draft, scalar(draft, pickConstant(dice(64), dtype, draft.values), dtype), dims(x));
    case 1:
      return castTo(draft, x, dtype);
    default: {
      const other = pick(draft, dice);
      const y = castTo(draft, other, dtype);
      if (common(dims(x), dims(y)) !== undefined) return y;
      if (sizeOf(dims(y)) === 0) throw new Unfit('nothing to read');
      // Shapes that do not broadcast: read one element.
      const first = dims(y).map((dim) => dice(dim));
      const ones = first.map(() => 1);
      const element = draft.add('slice', [y], { start: first, size: ones, step: ones });
      return draft.add('reshape', [element], { shape: [] });
    }
  }
}

function common(a: FixedShape, b: FixedShape): FixedShape | undefined {
  const rank = Math.max(a.length, b.length);
  const shape: number[] = [];
  for (let i = rank; i > 0; i--) {
    const [x, y] = [a.at(-i) ?? 1, b.at(-i) ?? 1];
    if (x !== y && x !== 1 && y !== 1) return undefined;
    shape.push(x === 1 ? y : x);
  }
  return shape;
}

/** The operands brought to one shape. */
function aligned(draft: Draft, operands: readonly Node[]): Node[] {
  const shape = operands
    .map(dims)
    .reduce<FixedShape | undefined>((all, next) => all && common(all, next), []);
  if (shape === undefined) throw new Unfit('shapes');
  return operands.map((operand) => broadcastTo(draft, operand, shape));
}

const plain = (draft: Draft, op: Op, inputs: readonly Node[]): Node => draft.add(op, inputs, {});

const unaryOps = opNames.filter((op): op is UnaryOp => facts(op).class === 'unary');
const binaryOps = opNames.filter((op): op is BinaryOp => facts(op).class === 'binary');
/** Results are of the operands' type, which is of one of the families. */
const takes = (op: UnaryOp | BinaryOp, ...families: readonly TypeFamily[]): boolean =>
  elementwiseRows[op].gives === undefined && families.includes(elementwiseRows[op].takes);
const anyUnary = unaryOps.filter((op) => takes(op, 'number'));
const floatUnary: readonly UnaryOp[] = ['neg', ...unaryOps.filter((op) => takes(op, 'float'))];
const anyBinary = binaryOps.filter((op) => takes(op, 'number', 'any'));
const floatBinary: readonly BinaryOp[] = [
  ...(['add', 'sub', 'mul', 'div'] as const),
  ...binaryOps.filter((op) => takes(op, 'float')),
  ...(['min', 'max'] as const),
];
const integerBinary = binaryOps.filter((op) => takes(op, 'bits', 'integer'));

function monoidFor(dice: Dice, dtype: DType): Monoid {
  return oneOf<Monoid>(dice, dtype === 'bool' ? ['and', 'or'] : ['sum', 'max', 'min', 'prod']);
}

function splitInto(dice: Dice, size: number): FixedShape {
  const divisors = [1, 2, 3, 4, 5].filter((n) => size % n === 0);
  const first = oneOf(dice, divisors);
  return [first, size / first];
}

/** Indices for gather and scatter along an axis: made of data, or counted. */
function indicesFor(draft: Draft, dice: Dice, x: Node, axis: number): Node {
  const shape = dims(x).map((dim, i) =>
    i === axis ? oneOf(dice, [1, 2, 3, 4, 5, 0, 2, 3]) : Math.max(0, dim - dice(2)),
  );
  const dtype = oneOf(dice, ['i32', 'u32'] as const);
  if (dice(2) === 0) return draft.parameter(randomIndices(dtype, shape, dims(x)[axis]!, dice(2 ** 20)));
  const count = draft.add('iota', [], { shape, axis: dice(shape.length), dtype });
  const factor = broadcastTo(draft, scalar(draft, dice(3), dtype), shape);
  const shift = broadcastTo(draft, scalar(draft, dice(3), dtype), shape);
  return plain(draft, 'add', [plain(draft, 'mul', [count, factor]), shift]);
}

const reshape: Step = (draft, dice) => {
  const x = pick(draft, dice);
  const size = sizeOf(dims(x));
  const choices: FixedShape[] = [
    [size],
    [1, size],
    [size, 1],
    [...splitInto(dice, size), 1],
    splitInto(dice, size),
  ];
  if (size === 1) choices.push([], [1, 1]);
  return draft.add('reshape', [x], { shape: oneOf(dice, choices) });
};

const permute: Step = (draft, dice) => {
  const x = pick(draft, dice, hasAxis);
  const rest = x.shape.map((_, axis) => axis);
  const order: number[] = [];
  while (rest.length > 0) order.push(...rest.splice(rest.length - 1 - dice(rest.length), 1));
  return draft.add('permute', [x], { order });
};

const broadcast: Step = (draft, dice) => {
  const x = pick(draft, dice);
  const stretched = dims(x).map((dim) => (dim === 1 ? 1 + dice(3) : dim));
  const extra =
    x.shape.length < 4 ? oneOf(dice, [[], [2], [1], [1, 3], [3], [2, 2], dice(4) === 3 ? [0] : []]) : [];
  return draft.add('broadcast', [x], { shape: [...extra, ...stretched] });
};

const slice: Step = (draft, dice) => {
  const x = pick(draft, dice, hasAxis);
  const [start, size, step]: [number[], number[], number[]] = [[], [], []];
  for (const dim of dims(x)) {
    const by = oneOf(dice, [1, 1, 2, -1, 3, -2]);
    const first = dim === 0 ? 0 : by > 0 ? dice(dim) : dim - 1 - dice(dim);
    const reach = dim === 0 ? 0 : Math.floor((by > 0 ? dim - 1 - first : first) / Math.abs(by)) + 1;
    start.push(first);
    size.push(dice(20) === 19 ? 0 : Math.max(Math.min(1, reach), reach - dice(3)));
    step.push(by);
  }
  return draft.add('slice', [x], { start, size, step });
};

const pad: Step = (draft, dice) => {
  const x = pick(draft, dice, hasAxis);
  const sides = (): number[] => x.shape.map(() => Math.max(0, dice(4) - 1));
  const value = pickConstant(dice(64), x.dtype, draft.values);
  const interior = dice(3) === 2 ? sides() : x.shape.map(() => 0);
  return draft.add('pad', [x], { low: sides(), high: sides(), interior, value });
};

const concat: Step = (draft, dice) => {
  const x = pick(draft, dice, hasAxis);
  const axis = dice(x.shape.length);
  const fits = (node: Node): boolean =>
    node.dtype === x.dtype &&
    node.shape.length === x.shape.length &&
    node.shape.every((dim, i) => i === axis || dim === x.shape[i]);
  const parts = Array.from({ length: 1 + dice(3) }, () => pick(draft, dice, fits));
  return draft.add('concat', [x, ...parts], { axis });
};

const window: Step = (draft, dice) => {
  const x = pick(draft, dice, (node) => hasAxis(node) && node.shape.length < 5);
  const [size, stride, dilation] = [1 + dice(3), 1 + dice(2), 1 + dice(2)];
  return draft.add('window', [x], { axis: dice(x.shape.length), size, stride, dilation });
};

const dot: Step = (draft, dice) => {
  const x = pick(draft, dice, isNumber);
  const shape = dims(x);
  const roles = shape.map(() => oneOf(dice, ['contract', 'free', 'batch'] as const));
  const lhsBatch = shape.flatMap((_, axis) => (roles[axis] === 'batch' ? [axis] : []));
  const lhsContract = shape.flatMap((_, axis) => (roles[axis] === 'contract' ? [axis] : []));
  const { dtype } = x;
  if (dice(4) === 3)
    return draft.add('dot', [x, x], {
      lhsBatch,
      rhsBatch: lhsBatch,
      lhsContract,
      rhsContract: lhsContract,
      dtype,
    });
  const free = oneOf(dice, [[], [2], [3], [1, 2]]);
  const paired = [...lhsBatch, ...lhsContract].map((axis) => shape[axis]!);
  // The right operand's axes in another order than the pairs.
  const turn = dice(paired.length + free.length);
  const unturned = [...paired, ...free];
  const place = unturned.map((_, axis) => (axis + turn) % unturned.length);
  const rhsShape = unturned.map((_, axis) => unturned[place.indexOf(axis)]!);
  const rhs = draft.parameter(draft.fill(dtype, rhsShape, dice(2 ** 20)));
  const rhsBatch = lhsBatch.map((_, i) => place[i]!);
  const rhsContract = lhsContract.map((_, i) => place[lhsBatch.length + i]!);
  return draft.add('dot', [x, rhs], { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype });
};

const conv: Step = (draft, dice) => {
  const x = pick(draft, dice, (node) => isNumber(node) && node.shape.length <= 4);
  const shape = [...Array.from({ length: 3 - x.shape.length }, () => 1), ...dims(x)];
  const lhs = sameShape(shape, x.shape) ? x : draft.add('reshape', [x], { shape });
  const channels = shape[1]!;
  const groups = oneOf(dice, [1, channels % 2 === 0 && channels > 0 ? 2 : 1, Math.max(1, channels)]);
  const spatial = shape.slice(2);
  const kernel = [groups * (1 + dice(2)), channels / groups, ...spatial.map(() => 1 + dice(3))];
  const rhs = draft.parameter(draft.fill(x.dtype, kernel, dice(2 ** 20)));
  const each = (least: number, sides: number): number[] => spatial.map(() => least + dice(sides));
  const cropped = dice(4) === 3 ? -1 : 0;
  const attrs = {
    strides: each(1, 2),
    padLow: each(cropped, 3),
    padHigh: each(cropped, 3),
    lhsDilation: dice(3) === 2 ? each(1, 2) : each(1, 1),
    rhsDilation: each(1, 2),
    groups,
  };
  const positive = spatial.every((dim, i) => {
    const dilated = dim === 0 ? 0 : (dim - 1) * attrs.lhsDilation[i]! + 1;
    const padded = dilated + attrs.padLow[i]! + attrs.padHigh[i]!;
    return padded >= 0 && windowCount(padded, kernel[i + 2]!, attrs.strides[i]!, attrs.rhsDilation[i]!) >= 0;
  });
  if (!positive) throw new Unfit('cropped to nothing');
  return draft.add('conv', [lhs, rhs], attrs);
};

/** All steps by name. */
export const steps: Readonly<Record<StepKind, Step>> = {
  parameter: (draft, dice) => {
    const shape = dims(pick(draft, dice));
    return draft.parameter(draft.fill(oneOf(dice, draft.dtypes), shape, dice(2 ** 20)));
  },
  constant: (draft, dice) => {
    const dtype = oneOf(dice, draft.dtypes);
    return broadcastTo(
      draft,
      scalar(draft, pickConstant(dice(64), dtype, draft.values), dtype),
      dims(pick(draft, dice)),
    );
  },
  iota: (draft, dice) => {
    const dtype = oneOf(
      dice,
      draft.dtypes.filter((each) => each !== 'bool'),
    );
    const shape = dims(pick(draft, dice, hasAxis));
    return draft.add('iota', [], { shape, axis: dice(shape.length), dtype });
  },
  random: (draft, dice) => {
    const words = Array.from({ length: 4 }, () => scalar(draft, dice(1000), 'u32'));
    return draft.add('randomBits', words, { shape: dims(pick(draft, dice)) });
  },
  unary: (draft, dice) => {
    const x = pick(draft, dice);
    return plain(draft, x.dtype === 'bool' ? 'not' : oneOf(dice, anyUnary), [x]);
  },
  math: (draft, dice) => plain(draft, oneOf(dice, floatUnary), [pick(draft, dice, isFloatNode)]),
  not: (draft, dice) => plain(draft, 'not', [pick(draft, dice, (node) => !isFloatNode(node))]),
  isNan: (draft, dice) => plain(draft, 'isNan', [pick(draft, dice, isFloatNode)]),
  binary: (draft, dice) => {
    const x = pick(draft, dice);
    const choices: readonly BinaryOp[] =
      x.dtype === 'bool' ? ['and', 'or', 'xor', 'min', 'max'] : isFloat(x.dtype) ? floatBinary : anyBinary;
    const op = oneOf(dice, choices);
    const operands = [x, partner(draft, dice, x)];
    return plain(draft, op, aligned(draft, dice(2) === 0 ? operands : operands.toReversed()));
  },
  bits: (draft, dice) => {
    const x = pick(draft, dice, isIntegerNode);
    return plain(draft, oneOf(dice, integerBinary), aligned(draft, [x, partner(draft, dice, x)]));
  },
  compare: (draft, dice) => {
    const x = pick(draft, dice);
    const op = oneOf(dice, ['lt', 'le', 'eq', 'ne'] as const);
    return plain(draft, op, aligned(draft, [x, partner(draft, dice, x)]));
  },
  where: (draft, dice) => {
    const condition = castTo(draft, pick(draft, dice), 'bool');
    const x = pick(draft, dice);
    return plain(draft, 'where', aligned(draft, [condition, x, partner(draft, dice, x)]));
  },
  fma: (draft, dice) => {
    const x = pick(draft, dice, isFloatNode);
    return plain(draft, 'fma', aligned(draft, [x, partner(draft, dice, x), partner(draft, dice, x)]));
  },
  cast: (draft, dice) => draft.add('cast', [pick(draft, dice)], { dtype: oneOf(dice, draft.dtypes) }),
  bitcast: (draft, dice) => {
    const x = pick(
      draft,
      dice,
      (node) => node.dtype === 'i32' || node.dtype === 'u32' || node.dtype === 'f32',
    );
    return draft.add('bitcast', [x], { dtype: oneOf(dice, ['i32', 'u32'] as const) });
  },
  reshape,
  permute,
  broadcast,
  slice,
  pad,
  concat,
  window,
  reduce: (draft, dice) => {
    const x = pick(draft, dice);
    const axes = x.shape.flatMap((_, axis) => (dice(3) === 0 ? [] : [axis]));
    return draft.add('reduce', [x], { monoid: monoidFor(dice, x.dtype), axes });
  },
  argReduce: (draft, dice) => {
    const x = pick(draft, dice, (node) => hasAxis(node) && !node.shape.includes(0));
    const monoid = oneOf(dice, ['max', 'min'] as const);
    return draft.add('argReduce', [x], { monoid, axis: dice(x.shape.length) });
  },
  argSort: (draft, dice) => {
    // Values that are the same to the last bit on every device: neighbours may be as close as that.
    const x = pick(draft, dice, (node) => hasAxis(node) && (node.op === 'parameter' || !isFloatNode(node)));
    return draft.add('argSort', [x], { axis: dice(x.shape.length), descending: dice(2) === 1 });
  },
  searchSorted: (draft, dice) => {
    // As for sorts; boundaries in no order have answers too.
    const exact = (node: Node): boolean => node.op === 'parameter' || !isFloatNode(node);
    const x = pick(draft, dice, (node) => hasAxis(node) && exact(node));
    const shape = [...dims(x).slice(0, -1), oneOf(dice, [3, 1, 4, 0])];
    const values = draft.parameter(draft.fill(x.dtype, shape, dice(2 ** 20)));
    return draft.add('searchSorted', [x, values], { right: dice(2) === 1 });
  },
  scan: (draft, dice) => {
    const x = pick(draft, dice, hasAxis);
    const [reverse, exclusive] = [dice(3) === 2, dice(3) === 2];
    const axis = dice(x.shape.length);
    return draft.add('scan', [x], { monoid: monoidFor(dice, x.dtype), axis, reverse, exclusive });
  },
  fft: (draft, dice) => {
    const isCalm = (x: number | bigint): boolean => Math.abs(Number(x)) <= 1e12;
    const x = pick(draft, dice, (node) => {
      const fits = hasAxis(node) && (node.dtype === 'f32' || node.dtype === 'f64') && !node.shape.includes(0);
      // What is not finite spreads over a line in other ways where no root is multiplied with.
      return fits && (draft.value(node).data as Float64Array).every(isCalm);
    });
    const axis = dice(x.shape.length);
    const n = dims(x)[axis]!;
    // Constants of short lines; others are kernels' own affair.
    if (n > 9) throw new Unfit('a long line');
    const real = draft.add('reshape', [x], { shape: [...dims(x), 1] });
    const pairs = draft.add('concat', [real, draft.add('neg', [real], {})], { axis: x.shape.length });
    return draft.add('fft', [pairs, tableNode(draft, n, x.dtype)], { axis, inverse: dice(2) === 1 });
  },
  dot,
  conv,
  gather: (draft, dice) => {
    const x = pick(draft, dice, hasAxis);
    const axis = dice(x.shape.length);
    return draft.add('gather', [x, indicesFor(draft, dice, x, axis)], { axis });
  },
  scatter: (draft, dice) => {
    const x = pick(draft, dice, hasAxis);
    const axis = dice(x.shape.length);
    const indices = indicesFor(draft, dice, x, axis);
    const updates = draft.parameter(draft.fill(x.dtype, dims(indices), dice(2 ** 20)));
    const modes: readonly ScatterMode[] = x.dtype === 'bool' ? ['set'] : ['set', 'add', 'max', 'min', 'mul'];
    return draft.add('scatter', [x, indices, updates], { axis, mode: oneOf(dice, modes) });
  },
  scatterAddAtomic: (draft, dice) => {
    const x = pick(draft, dice, (node) => hasAxis(node) && isNumber(node));
    const axis = dice(x.shape.length);
    const size = oneOf(dice, [4, 1, 9]);
    const indices = draft.parameter(randomIndices('i32', dims(x), size, dice(2 ** 20)));
    return draft.add('scatterAddAtomic', [indices, x], { axis, size });
  },
  factor: (draft, dice) => {
    const x = pick(draft, dice, (node) => node.op === 'parameter' && node.dtype === 'f32');
    if (sizeOf(dims(x)) === 0) throw new Unfit('no elements');
    const kind = oneOf(dice, [
      'cholesky',
      'lowerSolve',
      'unitLowerSolve',
      'lu',
      'householder',
      'qr',
    ] as const);
    const [m, n] = [1 + dice(5), 1 + dice(5)];
    const isSquare = kind === 'cholesky' || kind === 'lowerSolve' || kind === 'unitLowerSolve';
    // An element of whatever size, brought near to 0, beside a diagonal that decides the pivots.
    const shape = [1 + dice(2), m, isSquare ? m : n];
    const first = draft.add('slice', [x], {
      start: dims(x).map(() => 0),
      size: dims(x).map(() => 1),
      step: dims(x).map(() => 1),
    });
    const one = draft.add('reshape', [first], { shape: [] });
    const clean = plain(draft, 'where', [plain(draft, 'isNan', [one]), scalar(draft, 0.5, 'f32'), one]);
    const small = broadcastTo(draft, plain(draft, 'tanh', [clean]), shape);
    const at = (axis: number): Node => draft.add('iota', [], { shape, axis, dtype: 'i32' });
    const large = broadcastTo(draft, scalar(draft, 16, 'f32'), shape);
    const matrix = plain(draft, 'where', [plain(draft, 'eq', [at(1), at(2)]), large, small]);
    if (!isSquare || kind === 'cholesky') return draft.add('factor', [matrix], { kind });
    const sides = draft.add('slice', [matrix], {
      start: [0, 0, 0],
      size: [shape[0]!, m, 1],
      step: [1, 1, 1],
    });
    return draft.add('factor', [matrix, sides], { kind });
  },
  marker: (draft, dice) => plain(draft, 'stopGradient', [pick(draft, dice)]),
};

/** Step names; the common ones stand several times, so that they are drawn more often. */
export const stepKinds: readonly StepKind[] = [
  ...(['binary', 'binary', 'binary', 'unary', 'math', 'compare', 'where', 'cast', 'constant'] as const),
  ...(['reshape', 'permute', 'broadcast', 'slice', 'reduce', 'binary', 'math', 'unary', 'slice'] as const),
  ...(Object.keys(steps) as StepKind[]),
];
