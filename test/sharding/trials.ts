// Random nodes of every op whose axes can be split by meshes of 2, 3 and 4, and of ops that random programs do not have.

import { add, mul, reduce, unary } from '../../src/ir/build.ts';
import { Parameters } from '../../src/ir/control/parameters.ts';
import { regionOf } from '../../src/ir/text/region.ts';
import { derivativeBy } from '../../src/autograd/custom.ts';
import { dtypes, isComplex, isFloat, isInteger, type DType } from '../../src/ir/dtype.ts';
import { fftTable } from '../../src/ir/fft/table.ts';
import { GraphBuilder, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { argSort } from '../../src/ir/interpret/interpret.ts';
import type { Attrs, Op, ScatterMode } from '../../src/ir/ops.ts';
import { rowWords } from '../../src/ir/blocks/sizes.ts';
import { sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { randomArray, randomIndices } from '../support/random/values.ts';
import { factors } from '../../src/ir/typing/factor.ts';
import { factorTypes } from '../../src/ir/typing/slots.ts';

factorTypes.fill(factors);

/** A node on parameters, and their values. */
export interface NodeTrial {
  readonly node: Node;
  readonly inputs: readonly HostArray[];
}

/** Draws numbers. */
export class Dice {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** A whole number in [0, sides). */
  below(sides: number): number {
    return Math.floor(this.#random() * sides);
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  shape(least: number, most: number): number[] {
    const rank = least + this.below(most - least + 1);
    return Array.from({ length: rank }, () => this.one([2, 4, 6, 3, 1, 2, 4, 0]));
  }

  /** Values of a dtype, all of them finite and small. */
  array(dtype: DType, shape: FixedShape): HostArray {
    return randomArray(dtype, shape, 1 + this.below(2 ** 20), 'tame');
  }

  indices(shape: FixedShape, size: number): HostArray {
    return randomIndices(this.one(['i32', 'u32'] as const), shape, size, this.below(2 ** 20));
  }
}

const numbers: readonly DType[] = ['f32', 'i32', 'f64', 'f16', 'u8', 'i64', 'u32', 'c64', 'bf16'];
const floats: readonly DType[] = ['f32', 'f64'];

function trial<K extends Op>(op: K, inputs: readonly HostArray[], attrs: Attrs<K>): NodeTrial {
  const b = new GraphBuilder();
  const nodes = inputs.map(({ dtype, shape }, index): NodeOf<'parameter'> =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  return { node: b.add(op, nodes as readonly Node[], attrs) as Node, inputs };
}

/** Shapes of as many elements. */
function regrouped(dice: Dice): readonly [FixedShape, FixedShape] {
  const primes = Array.from({ length: 2 + dice.below(4) }, () => dice.one([2, 3, 2, 4]));
  const grouped = (list: readonly number[]): number[] => {
    const shape = [1];
    for (const prime of list) {
      if (dice.below(2) === 0) shape.push(prime);
      else shape[shape.length - 1] = shape.at(-1)! * prime;
      if (dice.below(8) === 0) shape.push(1);
    }
    return dice.below(2) === 0 || shape[0] !== 1 ? shape : shape.slice(1);
  };
  const other = dice.below(2) === 0 ? primes : primes.toReversed();
  return [grouped(primes), grouped(other)];
}

function scatterShapes(dice: Dice): { operand: number[]; at: number[]; axis: number } {
  const operand = dice.shape(1, 3);
  const axis = dice.below(operand.length);
  const at = operand.map((dim, i) =>
    i === axis ? dice.one([4, 6, 2, 1, 0]) : dice.below(4) === 0 ? Math.max(0, dim - 1) : dim,
  );
  return { operand, at, axis };
}

const sine = derivativeBy((b, [x], _value, g) => [b.add('mul', [x!, g], {}) as Node]);

/** A recurrent layer over a batch, with sums over the batch as carries, as slices, and in between. */
function recurrent(dice: Dice): NodeTrial {
  const [batch, width, trips] = [dice.one([2, 4, 6, 3]), dice.one([2, 4, 3]), dice.below(4)];
  const b = new GraphBuilder();
  const own = new Parameters(b);
  own.add('count', 'i32', []);
  const h = own.add('h', 'f64', [batch, width]);
  const square = own.add('square', 'f64', [width, width]);
  const turns = own.add('turns', 'i32', []);
  const x = own.add('x', 'f64', [batch, width]);
  own.add('unread', 'f64', [batch, width]);
  const w = own.add('w', 'f64', [width, width]);
  const product = { lhsBatch: [], rhsBatch: [], rhsContract: [0], dtype: 'f64' } as const;
  const hidden = b.add('dot', [h, w], { ...product, lhsContract: [1] }) as Node;
  const next = unary(b, 'tanh', add(b, hidden, x));
  // What is the same everywhere beside what is a sum over the batch.
  const gradient = b.add('dot', [x, next], { ...product, lhsContract: [0] }) as Node;
  const step = dice.below(2) === 0 ? gradient : add(b, gradient, w);
  const columns = reduce(b, 'sum', dice.below(2) === 0 ? next : mul(b, next, x), [0]);
  const outputs = [next, add(b, square, mul(b, step, 0.5)), add(b, turns, 1), next, columns, square];
  // The greatest of a batch, and what is not linear in a sum over it, need the whole batch.
  if (dice.below(6) === 0) outputs.push(reduce(b, 'max', next, [0]));
  if (dice.below(6) === 0) outputs.push(unary(b, 'exp', square));
  const body = regionOf({ parameters: own.list, outputs });
  const inputs = [
    dice.array('f64', [batch, width]),
    dice.array('f64', [width, width]),
    dice.array('i32', []),
    dice.array('f64', [trips, batch, width]),
    dice.array('f64', [trips, batch, width]),
    dice.array('f64', [width, width]),
  ];
  const [reverse, result] = [dice.below(2) === 1, dice.below(outputs.length)];
  const loop = { carries: 3, stacked: 2, trips, reverse, recompute: false, guard: dice.one([-1, 2]) };
  return trial('iterate', inputs, { ...loop, body, result });
}

const complexOp = (op: 'real' | 'imag' | 'conj') => (dice: Dice) =>
  trial(op, [dice.array(dice.one(['c64', 'c128'] as const), dice.shape(0, 3))], {});

/** Random nodes of an op. */
export const nodeTrials: { readonly [K in Op]?: (dice: Dice) => NodeTrial } = {
  add: (dice) => {
    const [dtype, shape] = [dice.one(numbers), dice.shape(0, 3)];
    return trial('add', [dice.array(dtype, shape), dice.array(dtype, shape)], {});
  },
  mul: (dice) => {
    const [dtype, shape] = [dice.one(numbers), dice.shape(0, 3)];
    return trial('mul', [dice.array(dtype, shape), dice.array(dtype, shape)], {});
  },
  cast: (dice) => {
    const from = dice.one(dtypes);
    const to = dice.one(dtypes.filter((dtype) => !isComplex(from) || isComplex(dtype)));
    return trial('cast', [dice.array(from, dice.shape(0, 3))], { dtype: to });
  },
  fma: (dice) => {
    const [dtype, shape] = [dice.one(floats), dice.shape(0, 3)];
    return trial(
      'fma',
      [1, 2, 3].map(() => dice.array(dtype, shape)),
      {},
    );
  },
  iota: (dice) => {
    const shape = dice.shape(1, 3);
    const dtype = dice.one(dtypes.filter((each) => each !== 'bool' && !isComplex(each)));
    return trial('iota', [], { shape, axis: dice.below(shape.length), dtype });
  },
  randomBits: (dice) => {
    const words = [dice.below(99), dice.below(99), dice.one([2 ** 32 - 2, 0, 7]), dice.below(9)];
    const inputs = words.map((word) => hostArray('u32', [], [word]));
    return trial('randomBits', inputs, { shape: dice.shape(0, 4) });
  },
  reshape: (dice) => {
    const [from, to] = regrouped(dice);
    return trial('reshape', [dice.array(dice.one(numbers), from)], { shape: to });
  },
  permute: (dice) => {
    const shape = dice.shape(1, 4);
    const order: number[] = [];
    for (const axis of shape.keys()) order.splice(dice.below(order.length + 1), 0, axis);
    return trial('permute', [dice.array(dice.one(numbers), shape)], { order });
  },
  broadcast: (dice) => {
    const shape = dice.shape(1, 4);
    const from = shape.slice(dice.below(shape.length + 1)).map((dim) => (dice.below(3) === 0 ? 1 : dim));
    return trial('broadcast', [dice.array(dice.one(numbers), from)], { shape });
  },
  slice: (dice) => {
    const size = dice.shape(1, 3);
    const step = size.map(() => dice.one([1, 1, 2, 3, -1]));
    const more = size.map(() => dice.one([0, 0, 0, 1]));
    const shape = size.map((count, axis) => count * Math.abs(step[axis]!) + more[axis]!);
    const start = step.map((by, axis) =>
      by < 0 ? Math.max(0, size[axis]! - 1) : dice.below(by + more[axis]!),
    );
    return trial('slice', [dice.array(dice.one(numbers), shape)], { start, size, step });
  },
  pad: (dice) => {
    const shape = dice.shape(1, 3);
    const interior = shape.map(() => dice.one([0, 0, 1, 2]));
    const low = interior.map((most) => dice.below(most + 1));
    const high = interior.map((most, axis) => most - low[axis]! + dice.one([0, 0, 0, 1]));
    return trial('pad', [dice.array('f32', shape)], { low, high, interior, value: dice.one([0, 1]) });
  },
  concat: (dice) => {
    const shape = dice.shape(1, 3);
    const axis = dice.below(shape.length);
    const dtype = dice.one(numbers);
    const inputs = [1, 2, 3].map(() => dice.array(dtype, shape.with(axis, dice.below(4))));
    return trial('concat', inputs, { axis });
  },
  window: (dice) => {
    const outer = dice.shape(1, 3);
    const axis = dice.below(outer.length);
    const [size, dilation] = [1 + dice.below(3), 1 + dice.below(2)];
    const stride = Math.max(1, (size - 1) * dilation + dice.below(3));
    const shape = outer.with(axis, outer[axis]! * stride + dice.one([0, 0, 1]));
    return trial('window', [dice.array(dice.one(numbers), shape)], { axis, size, stride, dilation });
  },
  reduce: (dice) => {
    const shape = dice.shape(1, 3);
    const dtype = dice.one([...floats, 'i32', 'u8', 'bool', 'c64', 'i64'] as const);
    const monoid = dice.one(
      dtype === 'bool'
        ? (['and', 'or'] as const)
        : dtype === 'c64'
          ? (['sum', 'prod'] as const)
          : (['sum', 'prod', 'min', 'max'] as const),
    );
    const axes = [...shape.keys()].filter(() => dice.below(2) === 0);
    return trial('reduce', [dice.array(dtype, shape)], { monoid, axes });
  },
  dot: (dice) => {
    const [batch, contract, left, right] = [1, 2, 1, 1].map((most) => dice.shape(0, most)) as [
      number[],
      number[],
      number[],
      number[],
    ];
    const dtype = dice.one(['f32', 'f64', 'i32', 'u8', 'c64', 'f16'] as const);
    const to = dice.one([
      dtype,
      dtype,
      isComplex(dtype) ? 'c128' : 'i32',
      isComplex(dtype) ? dtype : 'f64',
    ] as const);
    const range = (first: number, count: number): number[] =>
      Array.from({ length: count }, (_, i) => first + i);
    const attrs = {
      lhsBatch: range(0, batch.length),
      rhsBatch: range(right.length, batch.length),
      lhsContract: range(batch.length + left.length, contract.length),
      rhsContract: range(right.length + batch.length, contract.length),
      dtype: to,
    };
    const inputs = [
      dice.array(dtype, [...batch, ...left, ...contract]),
      dice.array(dtype, [...right, ...batch, ...contract]),
    ];
    return trial('dot', inputs, attrs);
  },
  conv: (dice) => {
    const groups = dice.one([1, 1, 2, 4, 6]);
    const [examples, outputs, channels] = [
      dice.one([2, 4, 1, 3]),
      dice.one([1, 2, 3, 4]),
      dice.one([2, 1, 4, 3]),
    ];
    const rank = dice.below(3);
    const each = (of: () => number): number[] => Array.from({ length: rank }, of);
    const kernel = each(() => dice.one([1, 1, 2, 3]));
    const isPlain = dice.below(2) === 0;
    const attrs = {
      strides: kernel.map((size) => (isPlain ? size : 1 + dice.below(2))),
      padLow: each(() => (isPlain ? 0 : dice.below(2))),
      padHigh: each(() => (isPlain ? 0 : dice.below(2))),
      lhsDilation: each(() => (isPlain ? 1 : 1 + dice.below(2))),
      rhsDilation: each(() => (isPlain ? 1 : 1 + dice.below(2))),
      groups,
    };
    const spatial = kernel.map((size) => (isPlain ? size * dice.one([2, 4, 3]) : 3 + dice.below(4)));
    const dtype = dice.one(['f32', 'f64', 'i32'] as const);
    const inputs = [
      dice.array(dtype, [examples, groups * channels, ...spatial]),
      dice.array(dtype, [groups * outputs, channels, ...kernel]),
    ];
    return trial('conv', inputs, attrs);
  },
  gather: (dice) => {
    const { operand, at, axis } = scatterShapes(dice);
    const dtype = dice.one([...numbers, 'bool'] as const);
    return trial('gather', [dice.array(dtype, operand), dice.indices(at, operand[axis]!)], { axis });
  },
  scatter: (dice) => {
    const { operand, at, axis } = scatterShapes(dice);
    const dtype = dice.one(numbers.filter((each) => !isComplex(each)));
    const mode = dice.one<ScatterMode>(['set', 'add', 'mul', 'min', 'max', 'add']);
    const inputs = [dice.array(dtype, operand), dice.indices(at, operand[axis]!), dice.array(dtype, at)];
    return trial('scatter', inputs, { axis, mode });
  },
  scatterAddAtomic: (dice) => {
    const { operand, at, axis } = scatterShapes(dice);
    const size = operand[axis]!;
    const inputs = [dice.indices(at, size), dice.array(dice.one(numbers), at)];
    return trial('scatterAddAtomic', inputs, { axis, size });
  },
  permuteScatter: (dice) => {
    const shape = dice.shape(1, 3);
    const axis = dice.below(shape.length);
    const places = argSort(dice.array('f32', shape), { axis, descending: false });
    return trial('permuteScatter', [dice.array(dice.one(numbers), shape), places], { axis });
  },
  segmentReduce: (dice) => {
    const { operand, at, axis } = scatterShapes(dice);
    const dtype = dice.one(numbers.filter((each) => !isComplex(each)));
    const mode = dice.one<ScatterMode>(['set', 'add', 'mul', 'min', 'max']);
    const count = at[axis]!;
    const starts = operand.with(axis, operand[axis]! + 1);
    // Places ascend along the axis: some of the updates before, some behind.
    const inner = sizeOf(starts.slice(axis + 1));
    const bounds = Array.from({ length: sizeOf(starts) }, (_, i) => {
      const slot = Math.floor(i / Math.max(1, inner)) % starts[axis]!;
      return Math.floor((slot * (count + 1)) / starts[axis]!);
    });
    const inputs = [
      dice.array(dtype, operand),
      hostArray('i32', starts, bounds),
      randomIndices('i32', at, count, dice.below(2 ** 20)),
      dice.array(dtype, at),
    ];
    return trial('segmentReduce', inputs, { axis, mode });
  },
  searchSorted: (dice) => {
    const [lead, n, m] = [dice.shape(0, 2), dice.one([4, 6, 2, 1, 0, 3]), dice.one([4, 2, 6, 0])];
    const dtype = dice.one(['f32', 'i32', 'u8', 'f64', 'i64'] as const);
    const drawn = dice.array(dtype, [...lead, n]);
    const order = argSort(drawn, { axis: lead.length, descending: false }).data;
    const sorted = Array.from(order as Int32Array, (at, i) => drawn.data[Math.floor(i / n) * n + at]!);
    const inputs = [hostArray(dtype, [...lead, n], sorted), dice.array(dtype, [...lead, m])];
    return trial('searchSorted', inputs, { right: dice.below(2) === 1 });
  },
  radixRank: (dice) => {
    const [lines, block] = [dice.one([1, 2, 4, 3]), dice.one([1, 2, 3])];
    const n = block * dice.one([4, 2, 6, 1]) + dice.one([0, 0, 1]);
    const keys = dice.array('u32', [lines, n]);
    return trial('radixRank', [keys], { shift: dice.below(2), digits: dice.one([2, 4]), block });
  },
  dequantize: (dice) => {
    const [rows, columns] = [dice.shape(0, 2), 32 * (1 + dice.below(3))];
    const words = [...rows, rowWords('q4_0', columns)];
    const data = Array.from({ length: sizeOf(words) }, (_, i) => 0x3c003c00 + 7 * i);
    return trial('dequantize', [hostArray('u32', words, data)], { format: 'q4_0', columns });
  },
  fftPart: (dice) => {
    const [n, dtype] = [dice.one([2, 4, 6, 8]), dice.one(floats)];
    const shape = [...dice.shape(1, 2), n];
    const table = hostArray(dtype, [fftTable(n).length], [...fftTable(n)]);
    return trial('fftPart', [dice.array(dtype, shape), dice.array(dtype, shape), table], {
      part: dice.below(2),
    });
  },
  fft: (dice) => {
    const dtype = dice.one(floats);
    const shape = dice.shape(1, 3).map((dim) => Math.max(1, dim));
    const axis = dice.below(shape.length);
    const table = fftTable(shape[axis]!);
    const inputs = [dice.array(dtype, [...shape, 2]), hostArray(dtype, [table.length], [...table])];
    return trial('fft', inputs, { axis, inverse: dice.below(2) === 1 });
  },
  jacobiRows: (dice) => {
    const [lines, n, columns] = [dice.one([2, 4, 3]), 1 + dice.below(3), 2 * (1 + dice.below(3))];
    const parts = dice.one([1, 2] as const);
    const width = dice.below(columns / parts + 1);
    return trial('jacobiRows', [dice.array('f64', [lines, n, columns])], { width, parts });
  },
  completeRows: (dice) => {
    const [lines, n] = [dice.one([2, 4, 3]), 1 + dice.below(3)];
    // Rows of an identity, some of them left out.
    const missing = dice.array('bool', [lines, n]);
    const data = Array.from({ length: lines * n * 4 }, (_, i) => {
      const row = Math.floor(i / 4);
      return missing.data[row] === 0 && i % 4 === row % n ? 1 : 0;
    });
    return trial('completeRows', [hostArray('f64', [lines, n, 4], data), missing], { parts: 1 });
  },
  factor: (dice) => {
    const [lines, n, sides] = [dice.one([1, 2, 4, 3]), 1 + dice.below(3), dice.one([2, 4, 1, 3])];
    const kind = dice.one(['lowerSolve', 'unitLowerSolve', 'cholesky', 'lu', 'qr', 'householder'] as const);
    const drawn = dice.array('f64', [lines, n, n]);
    const data = Array.from(drawn.data as Float64Array, (x, i) =>
      Math.floor(i / n) % n === i % n ? 9 : x / 4,
    );
    const inputs = [hostArray('f64', [lines, n, n], data)];
    if (kind.endsWith('Solve')) inputs.push(dice.array('f64', [lines, n, sides]));
    return trial('factor', inputs, { kind });
  },
  barrier: (dice) =>
    trial('barrier', [dice.array('f32', dice.shape(0, 3)), dice.array('f32', dice.shape(0, 1))], {}),
  customVjp: (dice) => {
    const shape = dice.shape(0, 3);
    const { node, inputs } = trial('add', [dice.array('f64', shape), dice.array('f64', shape)], {});
    return { node: sine.node(new GraphBuilder(), node.inputs), inputs };
  },
  bounded: (dice) => {
    const shape = dice.shape(1, 3);
    const n = hostArray('i32', [], [dice.one([-(2 ** 31), -1, 0, 1, 2, 3, 5, 2 ** 31 - 1])]);
    return trial('bounded', [dice.array(dice.one(numbers), shape), n], { axis: dice.below(shape.length) });
  },
  iterate: recurrent,
  complex: (dice) => {
    const [dtype, shape] = [dice.one(floats), dice.shape(0, 3)];
    return trial('complex', [dice.array(dtype, shape), dice.array(dtype, shape)], {});
  },
  real: complexOp('real'),
  imag: complexOp('imag'),
  conj: complexOp('conj'),
};

/** Whether sums of parts of the values can be compared with the whole. */
export function isFinite({ data }: HostArray): boolean {
  return data.every((x: number | bigint) => Number.isFinite(Number(x)));
}

export const isNumeric = (dtype: DType): boolean => isFloat(dtype) || isInteger(dtype) || isComplex(dtype);
