// Every operation on every register type, with arguments: special values in all combinations, and random values; and how far a
// device's result may be from the interpreter's. What may be rounded differently is written next to the operation.

import type { LoopOp, RegisterType, Width } from '../../../src/codegen/loop/loop.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import { isWide } from '../../../src/ir/dtype.ts';
import { elementwiseRows, facts, isElementwise, opNames, type TypeFamily } from '../../../src/ir/ops.ts';
import { emptyData, type HostData, type Scalar } from '../../../src/ir/value.ts';
import { mapLoop } from '../run-loop.ts';
import { randomInt, randomReal, randomUnit } from '../values.ts';

/** Allowed error: relative to the result, or absolute. `exact` means equal to the bit, but for the sign of zero. */
interface Tolerance {
  readonly rel?: number;
  readonly abs?: number;
}
const exact: Tolerance = {};
const rounded: Tolerance = { rel: 1.2e-7 };

export interface Case {
  readonly op: LoopOp;
  readonly args: readonly RegisterType[];
  readonly result: RegisterType;
  readonly tolerance: Tolerance;
  /** Largest magnitude of random float arguments. */
  readonly reach?: readonly number[];
  /** A constant last argument, instead of a loaded one. */
  readonly last?: number;
}

const unary = (op: LoopOp, tolerance: Tolerance, ...reach: number[]): Case => ({
  op,
  args: ['f32'],
  result: 'f32',
  tolerance,
  reach,
});
const same = (op: LoopOp, type: RegisterType, count: number, tolerance: Tolerance = exact): Case => ({
  op,
  args: Array<RegisterType>(count).fill(type),
  result: type,
  tolerance,
});
const test2 = (op: LoopOp, type: RegisterType): Case => ({
  op,
  args: [type, type],
  result: 'bool',
  tolerance: exact,
});
const types: readonly RegisterType[] = ['f32', 'i32', 'u32', 'bool'];
const integers: readonly RegisterType[] = ['i32', 'u32'];
const numbers: readonly RegisterType[] = ['f32', 'i32', 'u32'];
const constantLast = (op: LoopOp, type: RegisterType, ...lasts: number[]): Case[] =>
  lasts.map((last) => ({ ...same(op, type, 2), last }));

const floatCases: readonly Case[] = [
  unary('neg', exact),
  unary('abs', exact),
  unary('sign', exact),
  unary('floor', exact, 10, 1e9),
  unary('ceil', exact, 10, 1e9),
  unary('round', exact, 10, 1e9),
  unary('trunc', exact, 10, 1e9),
  unary('exp', { rel: 4e-7 }, 1, 20, 100),
  unary('exp2', { rel: 3e-7 }, 1, 20, 150),
  unary('expm1', { rel: 4e-7 }, 1e-4, 1, 20, 100),
  unary('log', { rel: 3e-7 }, 2, 1e5, 3e38),
  unary('log2', { rel: 4e-7 }, 2, 1e5, 3e38),
  unary('log1p', { rel: 4e-7 }, 1e-4, 2, 1e5, 3e38),
  unary('sin', { abs: 2e-7 }, 1, 20, 1e4, 6e4, 1e7, 1e20, 3e38),
  unary('cos', { abs: 2e-7 }, 1, 20, 1e4, 6e4, 1e7, 1e20, 3e38),
  unary('tan', { rel: 5e-7, abs: 1e-7 }, 1, 20, 1e4),
  unary('asin', { rel: 4e-7 }, 1e-3, 1, 1.1),
  unary('acos', { rel: 4e-7, abs: 1e-7 }, 1e-3, 1, 1.1),
  unary('atan', { rel: 3e-7 }, 1e-3, 1, 10, 1e6),
  unary('sinh', { rel: 8e-7 }, 1e-3, 1, 20, 89),
  unary('cosh', { rel: 8e-7 }, 1, 20, 89),
  unary('tanh', { rel: 5e-7 }, 1e-4, 1, 10),
  unary('erf', { rel: 5e-7 }, 1e-4, 1, 4),
  unary('sqrt', { rel: 2e-7 }, 10, 3e38),
  unary('rsqrt', { rel: 4e-7 }, 10, 3e38),
  unary('recip', { rel: 3e-7 }, 10, 1e30),
  unary('roundF16', exact, 1e-6, 1, 7e4),
  unary('roundBf16', exact, 1, 3.4e38),
  { op: 'isNan', args: ['f32'], result: 'bool', tolerance: exact },
  same('add', 'f32', 2, rounded),
  same('sub', 'f32', 2, rounded),
  same('mul', 'f32', 2, rounded),
  { ...same('div', 'f32', 2, { rel: 3e-7 }), reach: [10, 1e30] },
  { ...same('mod', 'f32', 2), reach: [10, 1e4, 3e38] },
  { ...same('pow', 'f32', 2, { rel: 8e-7 }), reach: [3, 20, 1e4] },
  { ...same('pow', 'f32', 2, rounded), last: 2, reach: [10, 1e10] },
  { ...same('pow', 'f32', 2, { rel: 2e-7 }), last: 3, reach: [10, 1e10] },
  same('min', 'f32', 2),
  same('max', 'f32', 2),
  same('pmin', 'f32', 2),
  same('pmax', 'f32', 2),
  { ...same('atan2', 'f32', 2, { rel: 4e-7 }), reach: [1, 1e4, 1e30] },
  // Fused or not.
  { ...same('fma', 'f32', 3, { rel: 1.2e-7, abs: 1e-5 }), reach: [10] },
];

const otherCases: readonly Case[] = [
  same('neg', 'i32', 1),
  same('neg', 'u32', 1),
  same('abs', 'i32', 1),
  same('abs', 'u32', 1),
  same('sign', 'i32', 1),
  same('sign', 'u32', 1),
  ...(['not', 'and', 'or', 'xor'] as const).flatMap((op) =>
    ([...integers, 'bool'] as const).map((type) => same(op, type, op === 'not' ? 1 : 2)),
  ),
  ...(['add', 'sub', 'mul', 'div', 'mod', 'shl', 'shr', 'mulhi'] as const).flatMap((op) =>
    integers.map((type) => same(op, type, 2)),
  ),
  ...(['min', 'max'] as const).flatMap((op) =>
    (['i32', 'u32', 'bool'] as const).map((type) => same(op, type, 2)),
  ),
  ...(['div', 'mod'] as const).flatMap((op) => [
    ...constantLast(op, 'i32', 7, 8, 0, -1, -2147483648),
    ...constantLast(op, 'u32', 7, 8, 0),
  ]),
  ...(['shl', 'shr'] as const).flatMap((op) =>
    integers.flatMap((type) => constantLast(op, type, 0, 5, 31, 32, ...(type === 'i32' ? [-1] : []))),
  ),
  ...(['floorDiv', 'floorMod'] as const).flatMap((op) => constantLast(op, 'i32', 1, 3, 8, 1000)),
  ...(['lt', 'le', 'eq', 'ne'] as const).flatMap((op) => types.map((type) => test2(op, type))),
  ...types.map((type): Case => ({ op: 'where', args: ['bool', type, type], result: type, tolerance: exact })),
  ...types.flatMap((from) =>
    types.map((to): Case => ({
      op: 'cast',
      args: [from],
      result: to,
      tolerance: exact,
      reach: [10, 1e9, 1e11],
    })),
  ),
  ...numbers.flatMap((from) =>
    numbers.map((to): Case => ({ op: 'bitcast', args: [from], result: to, tolerance: exact })),
  ),
];

const typesOf: Readonly<Record<TypeFamily, readonly RegisterType[]>> = {
  float: ['f32'],
  integer: integers,
  number: numbers,
  bits: [...integers, 'bool'],
  any: types,
};
const listed: ReadonlySet<LoopOp> = new Set([...floatCases, ...otherCases].map(({ op }) => op));
/** Elementwise ops that nothing above names, on all types of their row. */
const plainCases: readonly Case[] = opNames
  .filter((op) => isElementwise(op))
  .filter((op) => !listed.has(op))
  .flatMap((op) => {
    const { takes, gives } = elementwiseRows[op];
    return typesOf[takes].map((type): Case => {
      const tolerance = type === 'f32' ? { rel: 1e-6, abs: 1e-6 } : exact;
      const one = same(op, type, Number(facts(op).arity), tolerance);
      return gives === 'bool' ? { ...one, result: 'bool' } : one;
    });
  });

const tiny = 2 ** -126;
const special: Readonly<Record<RegisterType, readonly Scalar[]>> = {
  f32: [
    0,
    -0,
    1,
    -1,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2,
    -2,
    2.5,
    3,
    -3,
    1e-30,
    1e5,
    -1e5,
    16777217,
    2147483648,
    4294967296,
    -2147483648,
    65519.996,
    65520,
    70000,
    3.4028234663852886e38,
    -3.4028234663852886e38,
    tiny,
    -tiny,
    tiny / 4,
    Infinity,
    -Infinity,
    NaN,
  ],
  i32: [0, 1, -1, 2, 3, -3, 5, 31, 32, 33, -31, -32, 65535, 65536, 2147483647, -2147483647, -2147483648],
  u32: [0, 1, 2, 3, 5, 31, 32, 33, 65535, 65536, 2147483647, 2147483648, 4294967294, 4294967295],
  bool: [0, 1],
  f64: [
    0,
    -0,
    1,
    -1,
    0.5,
    -1.5,
    2.5,
    -3,
    1e-300,
    1e5,
    16777217,
    2147483647.5,
    2147483648,
    -2147483648.5,
    -2147483649,
    2 ** 53 + 2,
    2 ** 63,
    -(2 ** 63),
    2 ** 64,
    1e300,
    -1e300,
    Infinity,
    -Infinity,
    NaN,
  ],
  i64: [0n, 1n, -1n, 2n, -3n, 31n, 32n, 63n, 64n, -64n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n, -(2n ** 63n)],
  u64: [0n, 1n, 2n, 3n, 31n, 32n, 63n, 64n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n],
};

const arrayOf = (type: RegisterType, values: readonly Scalar[]): HostData => {
  const data = emptyData(type, Math.ceil(values.length / 4) * 4);
  values.forEach((value, i) => {
    data[i] = value;
  });
  return data;
};

const randomCount = 600;

function randomOf(type: RegisterType, reach: number | undefined): Scalar {
  if (type === 'bool') return randomInt(2);
  if (isWide(type)) {
    const short = randomInt(3) === 0;
    const word = short
      ? BigInt(randomInt(100))
      : (BigInt(randomInt(2 ** 32)) << 32n) | BigInt(randomInt(2 ** 32));
    return type === 'i64' ? BigInt.asIntN(64, word) : word;
  }
  if (type === 'f32' || type === 'f64')
    return reach === undefined ? randomReal() : (2 * randomInt(2) - 1) * reach * randomUnit();
  const word = randomInt(3) === 0 ? randomInt(100) : randomInt(2 ** 32);
  return type === 'i32' ? word | 0 : word;
}

/** Arguments: every combination of special values, then random ones. */
export function argumentsOf({ args, reach, last }: Case): HostData[] {
  const loaded = last === undefined ? args : args.slice(0, -1);
  let rows: Scalar[][] = [[]];
  for (const type of loaded) {
    const values = loaded.length === 3 && type !== 'bool' ? special[type].slice(0, 12) : special[type];
    rows = rows.flatMap((row) => values.map((value) => [...row, value]));
  }
  for (const most of reach === undefined || reach.length === 0 ? [undefined] : reach) {
    for (let i = 0; i < randomCount; i++) rows.push(loaded.map((type) => randomOf(type, most)));
  }
  return loaded.map((type, k) =>
    arrayOf(
      type,
      rows.map((row) => row[k]!),
    ),
  );
}

const isDenormal = (x: number): boolean => x !== 0 && Math.abs(x) < tiny;
const flush = (x: number): number => (isDenormal(x) ? 0 : x);
const flushed = (data: HostData, denormal: boolean): HostData =>
  denormal && data instanceof Float32Array ? data.map(flush) : data;

function near(actual: number, expected: number, { rel = 0, abs = 0 }: Tolerance): boolean {
  if (Object.is(actual, expected) || actual === expected) return true;
  if (Number.isNaN(actual) || Number.isNaN(expected)) return false;
  if (!Number.isFinite(expected)) return false;
  // At the end of the range, a rounding may overflow; at the other end, results that are denormal or nearly so may be zero.
  if (!Number.isFinite(actual))
    return rel > 0 && Math.abs(expected) > 3.40282e38 && actual > 0 === expected > 0;
  return Math.abs(actual - expected) <= Math.max(rel * Math.abs(expected), abs, rel > 0 ? 2 * tiny : 0);
}

export const nameOf = ({ op, args, result, last }: Case): string =>
  `${op}(${args.map((type, i) => (i === args.length - 1 && last !== undefined ? last : type)).join(', ')}) → ${result}`;

/** What of an operation's results, at a width, the interpreter does not agree with. */
export function disagreements(
  row: Case,
  width: Width,
  inputs: readonly HostData[],
  actual: HostData,
): string[] {
  const size = inputs[0]!.length;
  const loop = mapLoop(row, width, size);
  // Adapters may flush denormal arguments and results, bit operations excepted.
  const meanings = [false, true].map((denormal) => {
    const host = new Map(inputs.map((data, k) => [`x${k}`, flushed(data, denormal)]));
    host.set('out', emptyData(row.result, size));
    interpretLoop(loop, host, []);
    return host.get('out')!;
  });
  const wrong: string[] = [];
  for (let i = 0; i < size; i++) {
    const got = actual[i]!;
    const fits = meanings.some((expected) => {
      const meant = expected[i]!;
      if (typeof got === 'bigint' || typeof meant === 'bigint') return got === meant;
      if (near(got, meant, row.tolerance)) return true;
      return row.op !== 'bitcast' && row.result !== 'f64' && flush(meant) === 0 && flush(got) === 0;
    });
    if (!fits) wrong.push(`(${inputs.map((data) => data[i]).join(', ')}) = ${got}, not ${meanings[0]![i]}`);
  }
  return wrong;
}

/** All that every target has. */
export const spellingCases: readonly Case[] = [...floatCases, ...otherCases, ...plainCases];

const longs: readonly RegisterType[] = ['f64', 'i64', 'u64'];
const longIntegers: readonly RegisterType[] = ['i64', 'u64'];
/** C's functions on doubles are near to JavaScript's, which themselves are not the nearest. */
const close: Tolerance = { rel: 4e-15, abs: 1e-15 };

/** Those on bytes and halves of words, which languages of CPU cores have. */
export const byteCases: readonly Case[] = [
  { op: 'evenI8', args: ['u32'], result: 'u32', tolerance: exact },
  { op: 'oddI8', args: ['u32'], result: 'u32', tolerance: exact },
  { op: 'dotI16', args: ['u32', 'u32'], result: 'i32', tolerance: exact },
];

/** Those on registers of 64 bits. */
export const longCases: readonly Case[] = [
  ...floatCases
    .filter(({ op }) => op !== 'roundF16' && op !== 'roundBf16')
    .map((row): Case => ({
      ...row,
      args: row.args.map(() => 'f64'),
      result: row.result === 'f32' ? 'f64' : row.result,
      tolerance: row.tolerance === exact ? exact : close,
      reach: (row.reach ?? []).filter((most) => most <= 1e5),
    })),
  ...(['neg', 'abs', 'sign', 'not'] as const).flatMap((op) => longIntegers.map((type) => same(op, type, 1))),
  ...(
    ['and', 'or', 'xor', 'add', 'sub', 'mul', 'div', 'mod', 'shl', 'shr', 'mulhi', 'min', 'max'] as const
  ).flatMap((op) => longIntegers.map((type) => same(op, type, 2))),
  ...(['div', 'mod', 'shl', 'shr'] as const).flatMap((op) =>
    longIntegers.flatMap((type) => constantLast(op, type, 0, 7, 40, 64)),
  ),
  ...(['lt', 'le', 'eq', 'ne'] as const).flatMap((op) => longs.map((type) => test2(op, type))),
  ...longs.map((type): Case => ({ op: 'where', args: ['bool', type, type], result: type, tolerance: exact })),
  ...longs.flatMap((long) =>
    [...types, ...longs].flatMap((other): Case[] => {
      const row = (from: RegisterType, result: RegisterType): Case => {
        return { op: 'cast', args: [from], result, tolerance: exact, reach: [10, 1e9, 1e11, 1e20] };
      };
      return [row(long, other), row(other, long)];
    }),
  ),
  ...longs.flatMap((from) =>
    longs.map((result): Case => ({ op: 'bitcast', args: [from], result, tolerance: exact })),
  ),
];
