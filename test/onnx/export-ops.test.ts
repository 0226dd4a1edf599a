// Every primitive's spelling in ONNX, for every dtype that it takes: ONNX Runtime and our own importer compute what the interpreter
// does, on values with the edges in them.

import { fftTable } from '../../src/ir/fft/table.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { realDTypes as dtypes, isFloat, isInteger, type DType } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { isElementwise, opNames, ops, type Attrs, type Op } from '../../src/ir/ops.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { UnsupportedOpsError } from '../../src/onnx/export/graph.ts';
import { fileOf, inOurs, inPeer, withoutBf16 } from '../support/onnx/export.ts';
import { expectClose } from '../support/random/graph.ts';

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

/** Operators that the standard has for f64, and ONNX Runtime's CPU not: files for other runtimes. */
const noDoubles: ReadonlySet<Op> = new Set<Op>([
  'tan',
  'asin',
  'acos',
  'atan',
  'sinh',
  'cosh',
  'erf',
  'atan2',
  'conv',
] as const);

const unspelled: readonly Op[] = [
  'complex',
  'real',
  'imag',
  'conj',
  'randomBits',
  'fftPart',
  'radixRank',
  'permuteScatter',
  'segmentReduce',
  'jacobiRows',
  'factor',
  'completeRows',
  'dequantize',
  'iterate',
  'rankIndex',
  'shard',
  'toPart',
  'toWhole',
  'allReduce',
  'allGather',
  'reduceScatter',
  'allToAll',
  'permuteRanks',
  'broadcastRank',
];

/** The constants of a transform. */
function tableOf(n: number, dtype: DType): HostArray {
  const table = fftTable(n);
  return hostArray(dtype, [table.length], table);
}

interface Case {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

/** A graph of one node over parameters with these elements. */
function caseOf<K extends Op>(op: K, attrs: Attrs<K>, inputs: readonly HostArray[]): Case {
  const b = new GraphBuilder();
  const parameters = inputs.map(({ dtype, shape }, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  const node = b.add(op, parameters as unknown as readonly Node[], attrs);
  return { graph: { parameters: parameters as NodeOf<'parameter'>[], outputs: [node as Node] }, inputs };
}

const floats = [-2.5, -1, -0.5, 0.25, 0.5, 1, 1.5, 2.5, 3, 100];
const edges = [NaN, Infinity, -Infinity, 0];
const integers = [
  0,
  1,
  -1,
  2,
  7,
  -7,
  31,
  127,
  -128,
  255,
  32767,
  -32768,
  65535,
  2 ** 31 - 1,
  -(2 ** 31),
  2 ** 32 - 1,
];

function valuesOf(dtype: DType): readonly (number | bigint)[] {
  if (dtype === 'bool') return [0, 1];
  if (isFloat(dtype)) return [...floats, ...edges];
  const wide = [2n ** 40n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 64n - 1n];
  return dtype === 'i64' || dtype === 'u64' ? [...integers.map(BigInt), ...wide] : integers;
}

/** Every pair of values of a dtype, in two arrays. */
function pairs(dtype: DType): readonly [HostArray, HostArray] {
  const values = valuesOf(dtype);
  const n = values.length;
  const of = (pick: (i: number) => number): HostArray =>
    hostArray(
      dtype,
      [n, n],
      Array.from({ length: n * n }, (_, i) => values[pick(i)]!),
    );
  return [of((i) => Math.floor(i / n)), of((i) => i % n)];
}

/** Values over and over in a shape, no two lines alike. */
function filled(dtype: DType, shape: readonly number[], values = valuesOf(dtype)): HostArray {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return hostArray(
    dtype,
    shape,
    Array.from({ length: size }, (_, i) => values[(i * 7 + (i >> 2)) % values.length]!),
  );
}

const tame = (dtype: DType): readonly (number | bigint)[] =>
  isFloat(dtype) ? floats : dtype === 'bool' ? [0, 1] : [0, 1, 2, 3, 5, 7].map(BigInt);

const places = (dtype: 'i32' | 'u32', shape: readonly number[], size: number): HostArray =>
  hostArray(
    dtype,
    shape,
    filled(
      'i32',
      shape,
      Array.from({ length: size + 2 }, (_, i) => i - 1),
    ).data,
  );

/** Cases of an op for a dtype; undefined where it does not take it. */
function cases(op: Op, dtype: DType): readonly Case[] | undefined {
  try {
    return made(op, dtype);
  } catch (error) {
    if ((error as { code?: string }).code === 'E_DTYPE') return undefined;
    throw error;
  }
}

function made(op: Op, dtype: DType): readonly Case[] {
  const cube = filled(dtype, [2, 3, 4]);
  const calm = filled(dtype, [2, 3, 4], tame(dtype));
  const of = <K extends Op>(name: K, attrs: Attrs<K>, ...inputs: readonly HostArray[]): Case =>
    caseOf(name, attrs, inputs);
  switch (op) {
    case 'cast':
      return dtypes.map((to) =>
        of('cast', { dtype: to }, hostArray(dtype, [valuesOf(dtype).length], valuesOf(dtype))),
      );
    case 'bitcast':
      return isInteger(dtype)
        ? dtypes.flatMap((to) => {
            const isSame = isInteger(to) && to.slice(1) === dtype.slice(1);
            return isSame ? [of('bitcast', { dtype: to }, cube)] : [];
          })
        : [];
    case 'where': {
      const [x, y] = pairs(dtype);
      return [of('where', {}, filled('bool', x.shape), x, y)];
    }
    case 'fma':
      return [of('fma', {}, ...pairs(dtype), filled(dtype, pairs(dtype)[0].shape))];
    case 'reshape':
      return [of('reshape', { shape: [4, 6] }, cube)];
    case 'permute':
      return [of('permute', { order: [2, 0, 1] }, cube)];
    case 'broadcast':
      return [of('broadcast', { shape: [5, 2, 3] }, filled(dtype, [2, 1]))];
    case 'slice':
      return [of('slice', { start: [1, 2, 0], size: [1, 3, 2], step: [1, -1, 2] }, cube)];
    case 'pad':
      return [
        of('pad', { low: [1, 0, 2], high: [0, 1, 0], interior: [0, 0, 0], value: 1 }, cube),
        of('pad', { low: [0, 0, 0], high: [0, 0, 1], interior: [1, 0, 2], value: 0 }, cube),
      ];
    case 'concat':
      return [of('concat', { axis: 1 }, cube, filled(dtype, [2, 1, 4]), filled(dtype, [2, 0, 4]))];
    case 'window':
      return [of('window', { axis: 1, size: 2, stride: 1, dilation: 1 }, cube)];
    case 'constant':
      return valuesOf(dtype).map((value) => of('constant', { value, dtype }));
    case 'iota':
      return [of('iota', { shape: [2, 5], axis: 1, dtype }), of('iota', { shape: [1500], axis: 0, dtype })];
    case 'reduce': {
      const monoids = dtype === 'bool' ? (['and', 'or'] as const) : (['sum', 'prod', 'min', 'max'] as const);
      return monoids.flatMap((monoid) => [
        of('reduce', { monoid, axes: [1] }, cube),
        of('reduce', { monoid, axes: [0, 2] }, cube),
        of('reduce', { monoid, axes: [0, 1, 2] }, calm),
        of('reduce', { monoid, axes: [1] }, filled(dtype, [2, 0, 3])),
      ]);
    }
    case 'argReduce':
      return (['min', 'max'] as const).map((monoid) =>
        of('argReduce', { monoid, axis: 2 }, filled(dtype, [3, 2, 9])),
      );
    case 'argSort':
      return [true, false].map((descending) =>
        of('argSort', { axis: 1, descending }, filled(dtype, [2, 15, 2])),
      );
    case 'scan': {
      const monoids = dtype === 'bool' ? (['and', 'or'] as const) : (['sum', 'prod', 'min', 'max'] as const);
      return monoids.flatMap((monoid) => [
        of('scan', { monoid, axis: 1, reverse: false, exclusive: false }, calm),
        of('scan', { monoid, axis: 2, reverse: true, exclusive: true }, monoid === 'sum' ? calm : cube),
      ]);
    }
    case 'fft':
      if (dtype !== 'f32' && dtype !== 'f64') return [];
      return [
        ...[false, true].map((inverse) =>
          of('fft', { axis: 1, inverse }, filled(dtype, [2, 6, 3, 2], floats.slice(0, 8)), tableOf(6, dtype)),
        ),
        of('fft', { axis: 0, inverse: false }, filled(dtype, [9, 2], floats.slice(0, 8)), tableOf(9, dtype)),
      ];
    case 'dot': {
      const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [2], rhsContract: [0], dtype };
      const batched = { lhsBatch: [0], rhsBatch: [1], lhsContract: [2, 1], rhsContract: [0, 2], dtype };
      return [
        of('dot', attrs, calm, filled(dtype, [4, 2], tame(dtype))),
        of('dot', batched, calm, filled(dtype, [4, 2, 3, 2], tame(dtype))),
        of('dot', attrs, filled(dtype, [2, 3, 0]), filled(dtype, [0, 2])),
      ];
    }
    case 'conv': {
      const plain = {
        strides: [2, 1],
        padLow: [1, 0],
        padHigh: [0, 2],
        lhsDilation: [1, 1],
        rhsDilation: [1, 2],
        groups: 2,
      };
      const back = {
        strides: [1, 1],
        padLow: [1, 2],
        padHigh: [2, 1],
        lhsDilation: [2, 3],
        rhsDilation: [1, 1],
        groups: 1,
      };
      const cropped = { ...back, padLow: [-1, 0], padHigh: [0, -2], lhsDilation: [1, 2] };
      const x = filled(dtype, [2, 4, 5, 6], tame(dtype));
      return [
        of('conv', plain, x, filled(dtype, [6, 2, 3, 2], tame(dtype))),
        of('conv', back, x, filled(dtype, [3, 4, 2, 3], tame(dtype))),
        of('conv', cropped, x, filled(dtype, [3, 4, 2, 2], tame(dtype))),
      ];
    }
    case 'gather':
      return [
        of('gather', { axis: 1 }, cube, places('i32', [2, 5, 4], 3)),
        of('gather', { axis: 2 }, cube, places('u32', [1, 3, 2], 4)),
      ];
    case 'scatter': {
      const modes = dtype === 'bool' ? (['set'] as const) : (['set', 'add', 'mul', 'min', 'max'] as const);
      return modes.map((mode) =>
        of(
          'scatter',
          { axis: 1, mode },
          calm,
          places('i32', [2, 5, 3], 3),
          filled(dtype, [2, 5, 3], tame(dtype)),
        ),
      );
    }
    case 'scatterAddAtomic':
      return [
        of(
          'scatterAddAtomic',
          { axis: 1, size: 3 },
          places('i32', [2, 5, 4], 3),
          filled(dtype, [2, 5, 4], tame(dtype)),
        ),
      ];
    case 'searchSorted': {
      const last = isFloat(dtype) ? NaN : 7;
      const sorted = hostArray(
        dtype,
        [2, 6],
        [0, 1, 1, 2, 5, last, 0, 0, 1, 3, 3, 3].map((n) => (dtype === 'bool' ? Math.min(n, 1) : n)),
      );
      const some = filled(dtype, [2, 4], tame(dtype));
      const values = hostArray(
        dtype,
        [2, 4],
        [...(some.data as Iterable<number>)].map((n, i) => (i === 1 && isFloat(dtype) ? NaN : Number(n))),
      );
      return [true, false].map((right) => of('searchSorted', { right }, sorted, values));
    }
    case 'parameter':
    case 'stopGradient':
    case 'customVjp':
      return op === 'customVjp' ? [of('customVjp', { rule: 0 }, cube)] : [of('stopGradient', {}, cube)];
    case 'bounded':
      return [of('bounded', { axis: 1 }, cube, hostArray('i32', [], [100]))];
    case 'complex':
    case 'real':
    case 'imag':
    case 'conj':
    case 'randomBits':
    case 'fftPart':
    case 'radixRank':
    case 'permuteScatter':
    case 'segmentReduce':
    case 'jacobiRows':
    case 'factor':
    case 'completeRows':
    case 'dequantize':
    case 'iterate':
      return [];
    default: {
      const [x, y] = pairs(dtype);
      return [caseOf(op, {} as Attrs<typeof op>, ops[op].arity === 2 ? [x, y] : [x])];
    }
  }
}

/** Figures of floats: what single operations may be off by, and narrow dtypes round to. */
const tolerance: Readonly<Partial<Record<DType, number>>> = { f16: 2e-3, bf16: 1e-2, f32: 2e-5, f64: 1e-9 };

/** Operations that the runtime computes from constants of f32 whatever their dtype is. */
const single: ReadonlySet<Op> = new Set<Op>(['fft']);

async function check(op: Op, { graph: given, inputs }: Case, run: typeof inPeer): Promise<void> {
  const graph = withoutBf16(given);
  const carried = inputs.map((x) => (x.dtype === 'bf16' ? ({ ...x, dtype: 'f32' } as const) : x));
  const [found] = await run(fileOf(graph), carried);
  const least = single.has(op) && run === inPeer ? (tolerance.f32 ?? 0) : 0;
  const within = Math.max(least, ...[given.outputs[0]!, ...inputs].map(({ dtype }) => tolerance[dtype] ?? 0));
  expectClose(found!, interpret(graph, carried)[0]!, within);
}

const spelled = opNames.filter((op) => !unspelled.includes(op));

describe.each(spelled)('%s', (op) => {
  const all = dtypes.flatMap((dtype) => cases(op, dtype)?.map((one) => [dtype, one] as const) ?? []);
  const inRuntime = all.filter(([dtype]) => !(dtype === 'f64' && noDoubles.has(op)));

  test('means in ONNX Runtime what it means here', async () => {
    expect(inRuntime.length).toBeGreaterThan(0);
    for (const [, one] of inRuntime) await check(op, one, inPeer);
  });

  test('comes back from its file', async () => {
    for (const [, one] of all) await check(op, one, inOurs);
  });

  if (all.length > inRuntime.length) {
    test('is refused by ONNX Runtime for f64', async () => {
      for (const [dtype, { graph, inputs }] of all)
        if (dtype === 'f64') await expect(inPeer(fileOf(graph), inputs)).rejects.toThrow('implementation');
    });
  }
});

test('the bits of floats have a spelling from opset 26 on', async () => {
  const one = caseOf('bitcast', { dtype: 'u32' }, [filled('f32', [4], floats)]);
  expect(() => fileOf(one.graph)).toThrow(UnsupportedOpsError);
  const [found] = await inPeer(fileOf(one.graph, 26), one.inputs);
  expectClose(found!, interpret(one.graph, one.inputs)[0]!, 0);
});

test('every op is spelled, or refused by name', () => {
  expect([...spelled, ...unspelled].sort()).toEqual([...opNames].sort());
  expect(opNames.filter(isElementwise).every((op) => spelled.includes(op))).toBe(true);
});
