// Every dtype on WebAssembly at the edges of its range: casts between all pairs, and arithmetic on all pairs of values, as the
// reference interpreter has them, to the bit.

import { expect, test } from 'vitest';
import { binary, broadcast, cast, permute, reshape, unary } from '../../src/ir/build.ts';
import {
  realDTypes as dtypes,
  integerRange,
  isFloat,
  isInteger,
  isWide,
  type DType,
} from '../../src/ir/dtype.ts';
import type { Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { BinaryOp, UnaryOp } from '../../src/ir/ops.ts';
import { fromInteger, fromReal, hostArray, type HostArray, type Scalar } from '../../src/ir/value.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { wasmTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runOnDevice } from '../support/execute.ts';
import { randomArray } from '../support/random/values.ts';

const unit = (bits: number): number => 2 ** -bits;
/** Ends of ranges, halves, and what lies halfway between 16-bit floats, or so close to it that two roundings are one too many. */
const reals: readonly number[] = [
  0,
  0.25,
  0.5,
  0.75,
  1,
  1.5,
  2.5,
  3.999,
  1 / 3,
  Math.PI,
  1e-3,
  1e3,
  65503.9,
  65504,
  65519.99,
  65519.999999,
  65520,
  65536,
  1e20,
  1e300,
  16777217,
  2 ** 53 + 2,
  (2 - 2 ** -7) * 2 ** 127,
  (2 - 2 ** -8) * 2 ** 127,
  3.4028234663852886e38,
  3.4028235677973366e38,
  Number.MAX_VALUE,
  Infinity,
  ...[8, 11, 24].flatMap((bits) => [
    1 + unit(bits),
    1 + 3 * unit(bits),
    1 + unit(bits) + unit(52),
    1 + unit(bits) - unit(52),
    1 + unit(bits) + unit(30),
    1 + 3 * unit(bits) - unit(40),
  ]),
  ...[24, 25, 26, 126, 133, 134, 135, 149, 150, 1022, 1074].flatMap((bits) => [
    unit(bits),
    1.5 * unit(bits),
    unit(bits) * (1 + unit(40)),
  ]),
  ...[7, 8, 15, 16, 31, 32, 63, 64].flatMap((bits) => [
    2 ** bits - 1,
    2 ** bits,
    2 ** bits + 1,
    2 ** bits - 0.5,
    2 ** bits * (1 + unit(52)),
  ]),
];
const wholes: readonly bigint[] = [
  0n,
  1n,
  2n,
  3n,
  7n,
  100n,
  ...[7n, 8n, 10n, 11n, 15n, 16n, 23n, 24n, 25n, 31n, 32n, 52n, 53n, 54n, 62n, 63n, 64n].flatMap((bits) => [
    2n ** bits - 1n,
    2n ** bits,
    2n ** bits + 1n,
    // Halfway, and next to it, in f32 and in the 16-bit floats.
    2n ** bits + 2n ** bits / 256n,
    2n ** bits + 2n ** bits / 2048n + 1n,
    2n ** bits + 2n ** bits / 16_777_216n + 1n,
    2n ** bits + (3n * 2n ** bits) / 16_777_216n - 1n,
  ]),
];

/** The distinct values of a dtype that those above become, with either sign. */
function edgesOf(dtype: DType): Scalar[] {
  const values = isFloat(dtype)
    ? [...reals.flatMap((x) => [x, -x]).map(fromReal(dtype)), NaN]
    : wholes.flatMap((x) => [x, -x]).map(fromInteger(dtype));
  return [...new Map(values.map((value) => [Object.is(value, -0) ? '-0' : String(value), value])).values()];
}

function arrayOf(dtype: DType, values: readonly Scalar[]): HostArray {
  const { data } = hostArray(
    dtype,
    [values.length],
    values.map(() => 0),
  );
  values.forEach((value, i) => {
    data[i] = value;
  });
  return { dtype, shape: [values.length], data };
}

const device = openDevice('wasm');

/** An output by its name, and what it is to be equal to, if that is another. */
type Made = readonly [name: string, node: Node, meant?: Node];

/** Runs what is made of the inputs, and compares bit for bit. */
async function agree(
  inputs: readonly HostArray[],
  make: (s: Sketch, inputs: Node[]) => readonly Made[],
): Promise<void> {
  const s = new Sketch();
  const made = make(
    s,
    inputs.map(({ shape, dtype }) => s.input([...shape], dtype)),
  );
  const graph = s.graph(made.map(([, node]) => node));
  const expected = interpret(s.graph(made.map(([, node, meant = node]) => meant)), inputs);
  const actual = await runOnDevice(await device, wasmTarget, graph, inputs);
  const wrong = made.flatMap(([name], k) => {
    const [found, meant] = [actual[k]!, expected[k]!];
    const differing = [...meant.data.keys()].filter((i) => !Object.is(found.data[i], meant.data[i]));
    return differing.map((i) => {
      const given = inputs.map(({ data }) => data[i % data.length]).join(', ');
      return `${name} of element ${i} (${given}): ${found.data[i]}, not ${meant.data[i]}`;
    });
  });
  expect(wrong.slice(0, 8), `${wrong.length} wrong`).toEqual([]);
}

/** Casts to every dtype; to floats of 16 bits by way of f32, as PyTorch's, so that what is near a tie is rounded twice. */
function casts(s: Sketch, x: Node): readonly Made[] {
  return dtypes.map((to): Made => {
    const isShort = to === 'f16' || to === 'bf16';
    return [to, cast(s.b, x, to), isShort ? cast(s.b, cast(s.b, x, 'f32'), to) : cast(s.b, x, to)];
  });
}

test.each(dtypes)('%s casts to every dtype', async (from) => {
  const x = arrayOf(from, edgesOf(from));
  await agree([x], (s, [node]) => casts(s, node!));
});

test.each(dtypes)('%s casts to every dtype, read across and one by one', async (from) => {
  const values = edgesOf(from).slice(0, 63);
  const x = arrayOf(from, values);
  await agree([x], (s, [node]) => {
    const rows = broadcast(s.b, reshape(s.b, node!, [values.length, 1]), [values.length, 3]);
    return casts(s, permute(s.b, rows, [1, 0]));
  });
  for (const value of values.slice(0, 20))
    await agree([{ ...arrayOf(from, [value]), shape: [] }], (s, [node]) => casts(s, node!));
});

const numbers = dtypes.filter((dtype) => dtype !== 'bool');
const integers = dtypes.filter(isInteger);

/** All pairs of two lists, as one column each. */
function pairs(dtype: DType, left: readonly Scalar[], right: readonly Scalar[]): HostArray[] {
  const all = left.flatMap((x) => right.map((y) => [x, y] as const));
  return [0, 1].map((k) =>
    arrayOf(
      dtype,
      all.map((pair) => pair[k as 0 | 1]),
    ),
  );
}

const ofNumbers: readonly BinaryOp[] = [
  'add',
  'sub',
  'mul',
  'div',
  'mod',
  'min',
  'max',
  'lt',
  'le',
  'eq',
  'ne',
];
const ofBits: readonly BinaryOp[] = ['and', 'or', 'xor', 'shl', 'shr', 'mulhi'];

test.each(numbers)('arithmetic on %s', async (dtype) => {
  const edges = edgesOf(dtype);
  const few = edges.filter((_, i) => i % Math.ceil(edges.length / 40) === 0);
  const [low, high] = isInteger(dtype) ? integerRange(dtype) : [];
  const ends = [low, high].flatMap((end) => (end === undefined ? [] : [isWide(dtype) ? end : Number(end)]));
  const values = [...few, ...ends];
  const ops = isInteger(dtype) ? [...ofNumbers, ...ofBits] : ofNumbers;
  await agree(pairs(dtype, values, values), (s, [x, y]) =>
    ops.map((op) => [op, binary(s.b, op, x!, y!)] as const),
  );
});

test.each(integers)('shifts of %s by any count', async (dtype) => {
  const counts = [0, 1, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, -1, -8].map((count) =>
    fromInteger(dtype)(BigInt(count)),
  );
  await agree(pairs(dtype, edgesOf(dtype), counts), (s, [x, y]) =>
    (['shl', 'shr'] as const).map((op) => [op, binary(s.b, op, x!, y!)] as const),
  );
});

const exactUnary: readonly Exclude<UnaryOp, 'cast' | 'bitcast'>[] = ['neg', 'abs', 'sign'];
const exactOnFloats: typeof exactUnary = ['floor', 'ceil', 'round', 'trunc', 'sqrt', 'recip', 'isNan'];

test.each(numbers)('signs and roundings of %s', async (dtype) => {
  const ops = [...exactUnary, ...(isFloat(dtype) ? exactOnFloats : (['not'] as const))];
  await agree([arrayOf(dtype, edgesOf(dtype))], (s, [x]) =>
    ops.map((op) => [op, unary(s.b, op, x!)] as const),
  );
});

test.each(numbers)('%s is added up at places that are data', async (dtype) => {
  const at: HostArray = {
    dtype: 'i32',
    shape: [90],
    data: Int32Array.from({ length: 90 }, (_, i) => (i * 7) % 6),
  };
  await agree([at, randomArray(dtype, [90], 1, 'tame')], (s, [places, x]) => [
    ['scatterAddAtomic', s.b.add('scatterAddAtomic', [places!, x!], { axis: 0, size: 5 }) as Node],
  ]);
});
