// One random trial per differentiable op, or the reason why an op has no derivative; the type makes the list complete.

import { tableNode } from '../support/fft.ts';
import * as fc from 'fast-check';
import { derivativeBy } from '../../src/autograd/custom.ts';
import { collectiveDerivatives } from '../../src/autograd/rules-collective.ts';
import { collectiveDerivative } from '../../src/autograd/slots.ts';
import { meshRules } from '../../src/ir/typing/collective.ts';
import { meshTypes } from '../../src/ir/typing/slots.ts';
import { fill } from '../../src/slot.ts';
import { splitKey, whole } from '../../src/ir/mesh/split.ts';
import { add, cast, complex, conj, constant, imag, mul, real, unary, bounded } from '../../src/ir/build.ts';
import type { GraphBuilder, Node } from '../../src/ir/graph.ts';
import type { Attrs, Monoid, Op, ScatterMode } from '../../src/ir/ops.ts';
import { identity, product } from '../../src/ir/matrix.ts';
import { sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import { factor } from '../../src/tensor/formula/matrix.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { distinct, randomNumbers, values, type Trial } from './differences.ts';

// As sinter/distributed fills them.
fill([meshTypes, meshRules], [collectiveDerivative, collectiveDerivatives]);

type Random = () => number;

/** A shape of up to three axes, and the random numbers of the trial. */
const anyShape = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 });
const someShape = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 });
const randomSeed = fc.integer();

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
const integer = (random: Random, low: number, high: number): number =>
  low + Math.floor(random() * (high - low + 1));
const shuffled = (random: Random, list: readonly number[]): number[] =>
  list
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);

function trial(
  shapes: fc.Arbitrary<FixedShape>,
  make: (shape: FixedShape, random: Random) => Trial,
): fc.Arbitrary<Trial> {
  return fc.tuple(shapes, randomSeed).map(([shape, seed]) => make(shape, randomNumbers(seed)));
}

const node = <K extends Op>(b: GraphBuilder, op: K, inputs: readonly Node[], attrs: Attrs<K>): Node =>
  b.add(op, inputs, attrs) as Node;

/** An elementwise op on operands drawn from intervals in which it is smooth. */
function smooth(op: Op, ...intervals: readonly (readonly [number, number])[]): fc.Arbitrary<Trial> {
  return trial(anyShape, (shape, random) => ({
    inputs: intervals.map(([low, high]) => values(shape, random, (u) => low + (high - low) * u)),
    build: (b, inputs) => node(b, op, inputs, {} as Attrs),
  }));
}

/** As `smooth` on two operands that never tie. */
const untied = (op: 'min' | 'max'): fc.Arbitrary<Trial> =>
  trial(anyShape, (shape, random) => {
    const both = distinct([2, ...shape], random).data as Float64Array;
    const half = both.length / 2;
    return {
      inputs: [both.slice(0, half), both.slice(half)].map((data) => hostArray('f64', shape, data)),
      build: (b, inputs) => node(b, op, inputs, {}),
    };
  });

const axisOf = (shape: FixedShape, random: Random): number => integer(random, 0, shape.length - 1);

/** Products are tried with zeros among the factors, extrema without ties. */
function monoidValues(monoid: Monoid, shape: FixedShape, random: Random): HostArray {
  if (monoid === 'min' || monoid === 'max') return distinct(shape, random);
  return values(shape, random, (u) => (monoid === 'prod' && u < 0.3 ? 0 : 4 * u - 2));
}

const floatMonoids: readonly Monoid[] = ['sum', 'prod', 'min', 'max'];

/** Indices for `axis` of an operand of `shape`; distinct along the axis, or any, some of them outside. */
function indicesInto(shape: FixedShape, axis: number, unique: boolean, random: Random): HostArray {
  const at = shape.map((dim, i) => (i === axis && !unique ? integer(random, 1, 5) : integer(random, 1, dim)));
  const inner = sizeOf(at.slice(axis + 1));
  const data = new Array<number>(sizeOf(at));
  const used = new Map<string, number[]>();
  for (let i = 0; i < data.length; i++) {
    const line = `${Math.floor(i / (inner * at[axis]!))},${i % inner}`;
    if (!used.has(line)) used.set(line, shuffled(random, [...Array(shape[axis]!).keys()]));
    data[i] = unique ? used.get(line)!.pop()! : integer(random, -1, shape[axis]!);
  }
  return hostArray('i32', at, data);
}

const dotTrial = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 2 }), { maxLength: 2 }),
    fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    randomSeed,
  )
  .map(([batch, contract, freeL, freeR, seed]): Trial => {
    const random = randomNumbers(seed);
    // Each operand's axes stand in any order; attributes say where the batch and contracting ones went.
    const side = (free: readonly number[]) => {
      const sizes = [...batch, ...contract, ...free];
      const order = shuffled(random, [...sizes.keys()]);
      const places = [...sizes.keys()].map((axis) => order.indexOf(axis));
      return {
        shape: order.map((axis) => sizes[axis]!),
        batch: places.slice(0, batch.length),
        contract: places.slice(batch.length, batch.length + contract.length),
      };
    };
    const [left, right] = [side(freeL), side(freeR)];
    const attrs: Attrs<'dot'> = {
      lhsBatch: left.batch,
      rhsBatch: right.batch,
      lhsContract: left.contract,
      rhsContract: right.contract,
      dtype: 'f64',
    };
    return {
      inputs: [values(left.shape, random), values(right.shape, random)],
      build: (b, inputs) => node(b, 'dot', inputs, attrs),
    };
  });

/** A convolution of any configuration; some have no output at all. */
export const convTrial: fc.Arbitrary<Trial & { readonly attrs: Attrs<'conv'> }> = fc
  .tuple(fc.integer({ min: 0, max: 2 }), randomSeed)
  .map(([rank, seed]) => {
    const random = randomNumbers(seed);
    const spatial = (low: number, high: number): number[] =>
      Array.from({ length: rank }, () => integer(random, low, high));
    const groups = integer(random, 1, 3);
    const [channels, outputs] = [integer(random, 1, 2), groups * integer(random, 1, 2)];
    const attrs: Attrs<'conv'> = {
      strides: spatial(1, 3),
      padLow: spatial(-2, 3),
      padHigh: spatial(-2, 3),
      lhsDilation: spatial(1, 3),
      rhsDilation: spatial(1, 3),
      groups,
    };
    return {
      inputs: [
        values([integer(random, 1, 2), groups * channels, ...spatial(1, 5)], random),
        values([outputs, channels, ...spatial(1, 3)], random),
      ],
      build: (b, inputs) => node(b, 'conv', inputs, attrs),
      attrs,
    };
  });

// x·sin x with its derivative given by hand, so that only the registered rule is at work.
const sine = derivativeBy((b, [x], _value, g) => {
  const slope = b.add('fma', [x!, unary(b, 'cos', x!), unary(b, 'sin', x!)], {}) as Node;
  return [mul(b, g, slope)];
});

const flat = 'its derivative is 0 wherever it exists';
const notFloat = 'it gives or takes integers or bool';
const source = 'it has no float inputs';
const processes = 'collective.test.ts has its derivatives, over several processes';
/** A real function of two real tensors by way of a complex one; complex.test.ts has complex inputs. */
const throughComplex = (of: (b: GraphBuilder, z: Node) => Node): fc.Arbitrary<Trial> =>
  trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random), values(shape, random)],
    build: (b, [x, y]) => of(b, complex(b, x!, y!)),
  }));

/** A trial per op, or why it has no derivative. */
export const trials: { readonly [K in Op]: fc.Arbitrary<Trial> | string } = {
  neg: smooth('neg', [-2, 2]),
  abs: trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random, (u) => (u < 0.5 ? u - 1 : u))],
    build: (b, inputs) => node(b, 'abs', inputs, {}),
  })),
  sign: flat,
  floor: flat,
  ceil: flat,
  round: flat,
  trunc: flat,
  exp: smooth('exp', [-2, 2]),
  exp2: smooth('exp2', [-2, 2]),
  expm1: smooth('expm1', [-2, 2]),
  log: smooth('log', [0.3, 3]),
  log2: smooth('log2', [0.3, 3]),
  log1p: smooth('log1p', [-0.7, 2]),
  sin: smooth('sin', [-4, 4]),
  cos: smooth('cos', [-4, 4]),
  tan: smooth('tan', [-1.2, 1.2]),
  asin: smooth('asin', [-0.8, 0.8]),
  acos: smooth('acos', [-0.8, 0.8]),
  atan: smooth('atan', [-3, 3]),
  sinh: smooth('sinh', [-2, 2]),
  cosh: smooth('cosh', [-2, 2]),
  tanh: smooth('tanh', [-2, 2]),
  erf: smooth('erf', [-2, 2]),
  sqrt: smooth('sqrt', [0.3, 3]),
  rsqrt: smooth('rsqrt', [0.3, 3]),
  recip: smooth('recip', [-2, -0.4]),
  not: notFloat,
  isNan: notFloat,
  // Through f32 and back: inputs and steps are short binary fractions, so that f32 holds them exactly (seeds are not).
  cast: trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random, (u) => Math.floor(256 * u) / 64 - 2)],
    build: (b, [x]) => cast(b, cast(b, x!, 'f32'), 'f64'),
    step: 2 ** -10,
    order: 1,
  })),
  bitcast: notFloat,
  add: smooth('add', [-2, 2], [-2, 2]),
  sub: smooth('sub', [-2, 2], [-2, 2]),
  mul: smooth('mul', [-2, 2], [-2, 2]),
  div: smooth('div', [-2, 2], [0.4, 2]),
  // Dividends stay away from multiples of the divisor, where mod jumps.
  mod: trial(anyShape, (shape, random) => {
    const divisor = values(shape, random, (u) => (u < 0.5 ? u - 1 : u));
    const away = (y: number): number => y * (integer(random, -3, 3) + 0.2 + 0.6 * random());
    const dividend = (divisor.data as Float64Array).map(away);
    return {
      inputs: [hostArray('f64', shape, dividend), divisor],
      build: (b, inputs) => node(b, 'mod', inputs, {}),
    };
  }),
  pow: smooth('pow', [0.3, 2], [-2, 2]),
  min: untied('min'),
  max: untied('max'),
  atan2: smooth('atan2', [0.2, 2], [-2, 2]),
  and: notFloat,
  or: notFloat,
  xor: notFloat,
  shl: notFloat,
  shr: notFloat,
  mulhi: notFloat,
  lt: notFloat,
  le: notFloat,
  eq: notFloat,
  ne: notFloat,
  where: trial(anyShape, (shape, random) => ({
    inputs: [
      hostArray(
        'bool',
        shape,
        (values(shape, random).data as Float64Array).map((u) => (u > 0 ? 1 : 0)),
      ),
      values(shape, random),
      values(shape, random),
    ],
    build: (b, inputs) => node(b, 'where', inputs, {}),
  })),
  fma: smooth('fma', [-2, 2], [-2, 2], [-2, 2]),
  reshape: trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random)],
    build: (b, inputs) => node(b, 'reshape', inputs, { shape: [1, sizeOf(shape), 1] }),
  })),
  permute: trial(anyShape, (shape, random) => {
    const order = shuffled(random, [...shape.keys()]);
    return { inputs: [values(shape, random)], build: (b, inputs) => node(b, 'permute', inputs, { order }) };
  }),
  broadcast: trial(anyShape, (shape, random) => {
    const kept = shape.slice(integer(random, 0, shape.length)).map((dim) => (random() < 0.4 ? 1 : dim));
    return { inputs: [values(kept, random)], build: (b, inputs) => node(b, 'broadcast', inputs, { shape }) };
  }),
  slice: trial(fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 2 }), (shape, random) => {
    const size = shape.map((dim) => integer(random, 0, dim));
    const reach = size.map((n, axis) => (n < 2 ? 3 : Math.floor((shape[axis]! - 1) / (n - 1))));
    const step = reach.map((most) => integer(random, 1, most) * pick(random, [1, -1]));
    const start = size.map((n, axis) => {
      const extent = Math.max(0, n - 1) * Math.abs(step[axis]!);
      const first = integer(random, 0, shape[axis]! - 1 - extent);
      return step[axis]! < 0 ? first + extent : first;
    });
    return {
      inputs: [values(shape, random)],
      build: (b, inputs) => node(b, 'slice', inputs, { start, size, step }),
    };
  }),
  pad: trial(anyShape, (shape, random) => {
    const amounts = (): number[] => shape.map(() => integer(random, 0, 2));
    const attrs = { low: amounts(), high: amounts(), interior: amounts(), value: 3 };
    return { inputs: [values(shape, random)], build: (b, inputs) => node(b, 'pad', inputs, attrs) };
  }),
  concat: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    const part = (): HostArray => values(shape.with(axis, integer(random, 0, 3)), random);
    const inputs = Array.from({ length: integer(random, 1, 3) }, part);
    return { inputs, build: (b, nodes) => node(b, 'concat', [...nodes, nodes[0]!], { axis }) };
  }),
  window: trial(someShape, (outer, random) => {
    const axis = axisOf(outer, random);
    const attrs = {
      axis,
      size: pick(random, [1, 2, 3, 9, 11]),
      stride: integer(random, 1, 4),
      dilation: integer(random, 1, 3),
    };
    const reach = (attrs.size - 1) * attrs.dilation + 1;
    const shape = outer.with(axis, Math.max(0, reach + integer(random, -1, 6)));
    return { inputs: [values(shape, random)], build: (b, inputs) => node(b, 'window', inputs, attrs) };
  }),
  parameter: source,
  constant: source,
  iota: source,
  randomBits: source,
  reduce: trial(anyShape, (shape, random) => {
    const monoid = pick(random, floatMonoids);
    const axes = [...shape.keys()].filter(() => random() < 0.6);
    return {
      inputs: [monoidValues(monoid, shape, random)],
      build: (b, inputs) => node(b, 'reduce', inputs, { monoid, axes }),
    };
  }),
  argReduce: notFloat,
  argSort: notFloat,
  searchSorted: notFloat,
  dequantize: notFloat,
  radixRank: notFloat,
  jacobiRows: 'what is made of it has rules of its own',
  iterate: 'loop.test.ts has its derivatives',
  completeRows: 'what is made of it has rules of its own',
  scan: trial(someShape, (outer, random) => {
    const monoid = pick(random, floatMonoids);
    const axis = axisOf(outer, random);
    const shape = outer.with(axis, integer(random, 0, 6));
    const exclusive = random() < 0.5;
    const attrs = { monoid, axis, exclusive, reverse: random() < 0.5 };
    return {
      inputs: [monoidValues(monoid, shape, random)],
      build: (b, inputs) => {
        const scanned = node(b, 'scan', inputs, attrs);
        // An exclusive extremum starts at ±∞, which differences cannot weigh.
        if (!exclusive || (monoid !== 'min' && monoid !== 'max')) return scanned;
        return node(b, 'max', [node(b, 'min', [scanned, full(b, shape, 99)], {}), full(b, shape, -99)], {});
      },
    };
  }),
  fft: trial(someShape, (outer, random) => {
    const axis = axisOf(outer, random);
    const shape = [...outer.with(axis, integer(random, 1, 6)), 2];
    const attrs = { axis, inverse: random() < 0.5 };
    return {
      inputs: [values(shape, random)],
      build: (b, [x]) => node(b, 'fft', [x!, tableNode(b, shape[axis]!, 'f64')], attrs),
    };
  }),
  fftPart: trial(someShape, (outer, random) => {
    const shape = outer.with(outer.length - 1, integer(random, 1, 6));
    const part = integer(random, 0, 1);
    return {
      inputs: [values(shape, random), values(shape, random)],
      build: (b, [re, im]) => node(b, 'fftPart', [re!, im!, tableNode(b, shape.at(-1)!, 'f64')], { part }),
    };
  }),
  dot: dotTrial,
  conv: convTrial,
  gather: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    return {
      inputs: [values(shape, random), indicesInto(shape, axis, false, random)],
      build: (b, inputs) => node(b, 'gather', inputs, { axis }),
    };
  }),
  scatter: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    const mode = pick<ScatterMode>(random, ['set', 'add', 'mul', 'min', 'max']);
    const indices = indicesInto(shape, axis, mode === 'set', random);
    const size = sizeOf(shape);
    // Operand and updates are drawn together, so that extrema do not tie between them.
    const monoid: Monoid = mode === 'mul' ? 'prod' : 'max';
    const drawn = monoidValues(monoid, [size + indices.data.length], random).data as Float64Array;
    return {
      inputs: [
        hostArray('f64', shape, drawn.slice(0, size)),
        indices,
        hostArray('f64', indices.shape, drawn.slice(size)),
      ],
      build: (b, inputs) => node(b, 'scatter', inputs, { axis, mode }),
    };
  }),
  scatterAddAtomic: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    const indices = indicesInto(shape, axis, false, random);
    return {
      inputs: [indices, values(indices.shape, random)],
      build: (b, inputs) => node(b, 'scatterAddAtomic', inputs, { axis, size: shape[axis]! }),
    };
  }),
  segmentReduce: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    const [slots, count] = [shape[axis]!, integer(random, 1, 5)];
    const mode = pick<ScatterMode>(random, ['set', 'add', 'max']);
    // Of several updates set in one slot all are given its cotangent, as by a scatter: one each, then.
    const most = mode === 'set' ? 1 : 2;
    const starts = [integer(random, 0, 1)];
    for (let slot = 0; slot < slots; slot++)
      starts.push(Math.min(count, starts.at(-1)! + integer(random, 0, most)));
    const along = (list: readonly number[]): HostArray => {
      const lined = shape.with(axis, list.length);
      const stride = sizeOf(shape.slice(axis + 1));
      const data = Array.from(
        { length: sizeOf(lined) },
        (_, i) => list[Math.floor(i / stride) % list.length]!,
      );
      return hostArray('i32', lined, data);
    };
    const updates = shape.with(axis, count);
    const drawn = distinct([sizeOf(shape) + sizeOf(updates)], random).data as Float64Array;
    return {
      inputs: [
        hostArray('f64', shape, drawn.slice(0, sizeOf(shape))),
        along(starts.map((start) => Math.min(start, count))),
        along(shuffled(random, [...Array(count).keys()])),
        hostArray('f64', updates, drawn.slice(sizeOf(shape))),
      ],
      build: (b, inputs) => node(b, 'segmentReduce', inputs, { axis, mode }),
    };
  }),
  permuteScatter: trial(someShape, (shape, random) => {
    const axis = axisOf(shape, random);
    const places = shuffled(random, [...Array(shape[axis]!).keys()]);
    return {
      inputs: [values(shape, random)],
      build: (b, inputs) => {
        const line = shape.map((_, i) => (i === axis ? places.length : 1));
        const each = places.map((place) => node(b, 'constant', [], { value: place, dtype: 'i32' }));
        const parts = each.map((place) => node(b, 'reshape', [place], { shape: line.with(axis, 1) }));
        const at = node(b, 'concat', parts, { axis });
        return node(b, 'permuteScatter', [inputs[0]!, node(b, 'broadcast', [at], { shape })], { axis });
      },
    };
  }),
  factor: trial(fc.constant([]), (_, random) => {
    const kind = pick(random, ['cholesky', 'lowerSolve', 'unitLowerSolve', 'lu', 'qr'] as const);
    const [lines, m] = [integer(random, 1, 2), integer(random, 1, 4)];
    const n = kind === 'cholesky' ? m : integer(random, 1, 4);
    const isSolve = kind === 'lowerSolve' || kind === 'unitLowerSolve';
    const size = [lines, m, isSolve ? m : n];
    // Far from singular, and pivots are where they are.
    const draw = (shape: readonly number[]): HostArray => values(shape, random, (u) => 1.2 * u - 0.6);
    return {
      inputs: [draw(size), ...(isSolve ? [draw([lines, m, n])] : [])],
      build: (b, [x, y]) => {
        const solid = add(b, x!, mul(b, identity(b, lines, [size[1]!, size[2]!], 'f64'), full(b, size, 3)));
        // What Cholesky's factorization reads half of is symmetric.
        const square = kind === 'cholesky' ? product(b, solid, solid, { ofY: true }) : solid;
        return factor(b, kind, square, ...(isSolve ? [y!] : []));
      },
    };
  }),
  complex: throughComplex((b, z) => real(b, mul(b, z, z))),
  real: throughComplex((b, z) => real(b, unary(b, 'exp', z))),
  imag: throughComplex((b, z) => imag(b, unary(b, 'sin', z))),
  conj: throughComplex((b, z) => imag(b, mul(b, conj(b, z), unary(b, 'exp', z)))),
  stopGradient: 'that is what it is for',
  barrier: trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random), values(shape, random)],
    build: (b, inputs) => node(b, 'barrier', inputs, {}),
  })),
  customVjp: trial(anyShape, (shape, random) => ({
    inputs: [values(shape, random)],
    build: (b, [x]) => {
      const value = mul(b, x!, unary(b, 'sin', x!));
      return sine.node(b, [value, x!]);
    },
  })),
  shard: trial(someShape, (shape, random) => ({
    inputs: [values(shape, random)],
    build: (b, [x]) =>
      node(b, 'shard', [mul(b, x!, x!)], { mesh: 'data=2', split: splitKey(whole(shape.length)) }),
  })),
  toPart: processes,
  toWhole: processes,
  bounded: trial(someShape, (shape, random) => {
    const [axis, n] = [axisOf(shape, random), integer(random, -1, 4)];
    return {
      inputs: [values(shape, random)],
      build: (b, [x]) => bounded(b, mul(b, x!, x!), axis, constant(b, n, 'i32')),
    };
  }),
  rankIndex: source,
  allReduce: processes,
  allGather: processes,
  reduceScatter: processes,
  allToAll: processes,
  permuteRanks: processes,
  broadcastRank: processes,
};

function full(b: GraphBuilder, shape: FixedShape, value: number): Node {
  return node(b, 'broadcast', [node(b, 'constant', [], { value, dtype: 'f64' })], { shape });
}
