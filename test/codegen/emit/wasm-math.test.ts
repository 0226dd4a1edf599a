// What a Loop computes after its functions became sequences of WebAssembly's operations: the Loop interpreter rounds every
// operation to f32 as WebAssembly does, so these are the errors that a kernel has. The table below is what was measured, rounded up.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { constant, LoopBuilder, operandsOf, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopOp, RegisterType, Stmt, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { expandMath, isExpanded } from '../../../src/codegen/emit/shared/math/math.ts';
import { anyLaneOf } from '../../../src/codegen/emit/shared/math/any-lane.ts';
import { mayBeExpanded } from '../../../src/codegen/emit/shared/math/needed.ts';
import { isElementwise, opNames, type ElementwiseOp } from '../../../src/ir/ops.ts';
import { compileScalar } from '../../../src/ir/interpret/scalar.ts';
import { roundBf16, roundF16, type HostData } from '../../../src/ir/value.ts';
import { checkLaw } from '../../support/property.ts';
import { mapLoop } from '../run-loop.ts';
import { randomReal, randomUnit } from '../values.ts';

type Range = readonly [from: number, to: number];
interface Row {
  readonly op: ElementwiseOp;
  /** Largest error in units in the last place of the f32 result. */
  readonly ulp: number;
  /** An absolute error that is small enough next to zeros. */
  readonly abs?: number;
  /** Ranges of the arguments, besides all f32. */
  readonly ranges: readonly (readonly Range[])[];
}

const one = (...ranges: readonly Range[]): readonly (readonly Range[])[] => ranges.map((range) => [range]);
const everywhere: readonly Range[] = [
  [-4, 4],
  [-100, 100],
  [-65536, 65536],
  [65536, 1e7],
  [-3e38, 3e38],
];

const rows: readonly Row[] = [
  { op: 'exp', ulp: 1.2, ranges: one([-1, 1], [-86.9, 88.72]) },
  { op: 'exp2', ulp: 2.5, ranges: one([-1, 1], [-125.4, 128]) },
  { op: 'expm1', ulp: 2.4, ranges: one([-1e-3, 1e-3], [-1, 1], [-20, 88.7]) },
  { op: 'log', ulp: 0.9, ranges: one([0.5, 2], [0, 1e-38], [0, 1e5]) },
  { op: 'log2', ulp: 1.9, ranges: one([0.5, 2], [0, 1e-38], [0, 1e5]) },
  { op: 'log1p', ulp: 4.2, ranges: one([-0.999, 1], [-1e-3, 1e-3], [0, 1e4]) },
  { op: 'sin', ulp: 3.5, ranges: one(...everywhere) },
  { op: 'cos', ulp: 3.5, ranges: one(...everywhere) },
  { op: 'tan', ulp: 5.3, ranges: one(...everywhere) },
  { op: 'asin', ulp: 2.7, ranges: one([-1, 1], [-1e-3, 1e-3]) },
  { op: 'acos', ulp: 1.5, ranges: one([-1, 1], [0.99, 1]) },
  { op: 'atan', ulp: 2.2, ranges: one([-1, 1], [-10, 10]) },
  { op: 'sinh', ulp: 5.5, ranges: one([-1, 1], [-89.4, 89.4]) },
  { op: 'cosh', ulp: 3.5, ranges: one([-1, 1], [-89.4, 89.4]) },
  { op: 'tanh', ulp: 7, ranges: one([-1, 1], [-10, 10]) },
  { op: 'erf', ulp: 2.6, ranges: one([-1, 1], [-5, 5]) },
  { op: 'rsqrt', ulp: 1.6, ranges: one([0, 10]) },
  { op: 'recip', ulp: 0.5, ranges: one([-10, 10]) },
  { op: 'sign', ulp: 0, ranges: one([-1, 1]) },
  { op: 'mod', ulp: 0, ranges: [[...one([-10, 10], [-4, 4])].map(([range]) => range!)] },
  {
    op: 'pow',
    ulp: 1.9,
    ranges: [
      [
        [0, 3],
        [-20, 20],
      ],
      [
        [0.9, 1.1],
        [-800, 800],
      ],
      [
        [0.7, 1.42],
        [-250, 250],
      ],
    ],
  },
  {
    op: 'atan2',
    ulp: 2.5,
    ranges: [
      [
        [-2, 2],
        [-2, 2],
      ],
      [
        [-1e4, 1e4],
        [-1, 1],
      ],
    ],
  },
];

const tiny = 2 ** -126;
/** Multiples of π/2 but for little, where reducing an angle is hardest. */
const nearZeros = [4476.76953125, 8953.5390625, 35814.15625, 52516.43359375, 57855.5703125, 1082394.125];
const special = [
  ...nearZeros,
  0,
  1,
  0.5,
  1.5,
  2,
  3,
  0.25,
  4,
  1e-30,
  1e5,
  16777217,
  65536,
  65537,
  1e10,
  88.7228,
  88.73,
  87.3,
  104,
  127.5,
  128,
  3.4028234663852886e38,
  tiny,
  tiny / 4,
  2 ** -149,
  Infinity,
]
  .flatMap((x) => [x, -x])
  .concat(NaN);
const random = (count: number, make: () => number): Float32Array =>
  Float32Array.from({ length: count }, make);

/** The arguments of a row: special values in all combinations, any f32, and its ranges. */
function argumentsOf({ ranges }: Row): Float32Array[] {
  const arity = ranges[0]!.length;
  const columns: number[][] = Array.from({ length: arity }, () => []);
  const add = (values: readonly number[]): void => values.forEach((value, k) => columns[k]!.push(value));
  for (const a of special) for (const b of arity === 1 ? [0] : special) add([a, b].slice(0, arity));
  for (let i = 0; i < 2000; i++) add(columns.map(randomReal));
  for (const range of ranges)
    for (let i = 0; i < 3000; i++) add(range.map(([from, to]) => from + (to - from) * randomUnit()));
  while (columns[0]!.length % 4 !== 0) add(columns.map(() => 1));
  return columns.map((column) => Float32Array.from(column));
}

function run(loop: Loop, inputs: readonly HostData[], size: number): Float32Array {
  const out = new Float32Array(size);
  interpretLoop(loop, new Map([...inputs.map((data, k) => [`x${k}`, data] as const), ['out', out]]), []);
  return out;
}

function applied(
  op: LoopOp,
  inputs: readonly Float32Array[],
  width: Width = 4,
  last?: number,
  result: RegisterType = 'f32',
): Float32Array {
  const args = [...inputs.map((): RegisterType => 'f32'), ...(last === undefined ? [] : (['f32'] as const))];
  const row = { op, args, result, ...(last !== undefined && { last }) };
  return run(expandMath(mapLoop(row, width, inputs[0]!.length)), inputs, inputs[0]!.length);
}

/** What lies between two neighbouring f32 of this size. */
const unit = (x: number): number =>
  2 ** (Math.max(-126, Math.floor(Math.log2(Math.max(Math.abs(x), tiny)))) - 23);

const f64Meaning = (op: ElementwiseOp): ((...args: number[]) => number) =>
  compileScalar(op, 'f64', 'f64') as (...args: number[]) => number;

/** How the result is wrong, if it is; else its error in units. */
function errorOf(row: Row, actual: number, exact: number): number | string {
  const expected = Math.fround(exact);
  if (Object.is(actual, expected)) return 0;
  if (!Number.isFinite(expected) || !Number.isFinite(actual)) return `${actual}, not ${expected}`;
  // Exponentials that would be denormal, or nearly, are 0, with the sign.
  if (actual === 0 && exact !== 0 && Math.abs(exact) < 2 ** -125) return 0;
  if (actual === 0 && expected === 0) return `${Object.is(actual, -0) ? '-0' : '0'}, not ${exact}`;
  const error = Math.abs(actual - exact);
  return row.abs !== undefined && error <= row.abs ? 0 : error / unit(expected);
}

describe('errors of', () => {
  test.each(rows.map((row) => [row.op, row] as const))('%s', (op, row) => {
    const inputs = argumentsOf(row);
    const meaning = f64Meaning(op);
    let worst = 0;
    const wrong: string[] = [];
    applied(op, inputs).forEach((actual, i) => {
      const args = inputs.map((column) => column[i]!);
      const exact = meaning(...args);
      const error = errorOf(row, actual, exact);
      if (typeof error === 'string') wrong.push(`${op}(${args.join(', ')}) = ${error}`);
      else if (error > row.ulp)
        wrong.push(`${op}(${args.join(', ')}) = ${actual}, ${error} ulp off ${exact}`);
      else worst = Math.max(worst, error);
    });
    expect(wrong.slice(0, 8), `${wrong.length} wrong; else at most ${worst} ulp`).toEqual([]);
  });

  test('roundings to 16-bit floats', () => {
    const values = Float32Array.from([
      ...random(40_000, randomReal),
      ...random(20_000, () => 8e-5 * (2 * randomUnit() - 1)),
      ...random(20_000, () => 7e4 * (2 * randomUnit() - 1)),
      // Every tie of a binade, and what is next to ties.
      ...Array.from({ length: 4096 }, (_, i) => 1 + (i + 0.5) / 1024),

      65519.996,
      65520,
      -65520,
      0,
      -0,
      NaN,
      Infinity,
      -Infinity,
      2 ** -25,
      2 ** -24 * 1.5,
      2 ** -149,
      3.4e38,
    ]);
    for (const [op, round] of [
      ['roundF16', roundF16],
      ['roundBf16', roundBf16],
    ] as const) {
      const actual = applied(op, [values]);
      const wrong = [...values].filter((x, i) => !Object.is(actual[i], round(x)));
      expect(wrong.slice(0, 8), op).toEqual([]);
    }
  });

  test('isNan, and fma as a product and a sum', () => {
    const x = Float32Array.from([0, -0, 1, NaN, Infinity, -Infinity, 1e-45, 3e38]);
    const loop = expandMath(mapLoop({ op: 'isNan', args: ['f32'], result: 'bool' }, 4, 8));
    const out = new Uint8Array(8);
    interpretLoop(
      loop,
      new Map<string, HostData>([
        ['x0', x],
        ['out', out],
      ]),
      [],
    );
    expect([...out]).toEqual([0, 0, 0, 1, 0, 0, 0, 0]);
    const [a, b, c] = [random(64, randomReal), random(64, randomReal), random(64, randomReal)];
    const sums = applied('fma', [a, b, c]);
    expect([...sums]).toEqual([...a].map((v, i) => Math.fround(Math.fround(v * b[i]!) + c[i]!)));
  });
});

describe('exact are', () => {
  const whole = Array.from({ length: 41 }, (_, i) => i - 20);

  test('powers of whole numbers that fit', () => {
    const pairs = whole.flatMap((x) => whole.map((y) => [x, y] as const));
    const fitting = pairs.filter(([x, y]) => y >= 0 && Math.abs(x ** y) <= 2 ** 24).slice(0, 400 - (400 % 4));
    const columns = [0, 1].map((k) => Float32Array.from(fitting, (pair) => pair[k]!));
    expect([...applied('pow', columns)]).toEqual(fitting.map(([x, y]) => x ** y || 0));
  });

  test('squares and cubes, rounded after each product', () => {
    const x = random(256, () => 20 * randomUnit() - 10);
    expect(applied('pow', [x], 4, 2)).toEqual(x.map((v) => v * v));
    expect(applied('pow', [x], 4, 3)).toEqual(x.map((v) => Math.fround(v * v) * v));
  });

  test('powers of two and their logarithms', () => {
    const n = Float32Array.from({ length: 252 }, (_, i) => i - 124);
    const powers = n.map((x) => 2 ** x);
    expect([...applied('exp2', [n])]).toEqual([...powers]);
    expect([...applied('log2', [powers])]).toEqual([...n]);
  });
});

test.each(rows.map((row) => [row.op, row] as const))(
  '%s of a scalar, a pair and four lanes are the same bits',
  (op, row) => {
    const inputs = argumentsOf(row).map((column) => column.slice(0, 1200));
    const four = applied(op, inputs, 4);
    expect(applied(op, inputs, 1)).toEqual(four);
    expect(applied(op, inputs, 2)).toEqual(four);
  },
);

test('odd functions are odd, and tanh and erf stay within ±1', () => {
  const ops = ['sin', 'tan', 'asin', 'atan', 'sinh', 'tanh', 'erf', 'sign'] as const;
  const value = fc.float({ noNaN: true });
  checkLaw(25, fc.array(value, { minLength: 4, maxLength: 4 }), (given) => {
    const x = Float32Array.from(given);
    for (const op of ops) {
      const [there, back] = [applied(op, [x]), applied(op, [x.map((v) => -v)])];
      // JavaScript has one NaN.
      expect([...back], op).toEqual([...there].map((y) => (op === 'sign' && y === 0 ? 0 : -y)));
      if (op === 'tanh' || op === 'erf') for (const y of there) expect(Math.abs(y)).toBeLessThanOrEqual(1);
    }
  });
});

/** All values of a body, and their parts. */
function valuesIn(body: readonly Stmt[]): Value[] {
  const parts = (value: Value): Value[] => [value, ...operandsOf(value).flatMap(parts)];
  return body.flatMap((stmt): Value[] => {
    switch (stmt.kind) {
      case 'let':
      case 'var':
      case 'assign':
        return parts(stmt.value);
      case 'store':
        return [...parts(stmt.index), ...parts(stmt.value)];
      case 'for':
        return [...parts(stmt.start), ...parts(stmt.end), ...valuesIn(stmt.body)];
      case 'if':
        return [...parts(stmt.condition), ...valuesIn(stmt.then), ...valuesIn(stmt.else ?? [])];
      default:
        return [];
    }
  });
}

/** Operations with an instruction of their own. */
const simple: ReadonlySet<string> = new Set(
  'add sub mul div sqrt neg abs floor ceil trunc round min max pmin pmax lt le eq ne where and or xor not shl shr cast bitcast'.split(
    ' ',
  ),
);

test('what is expanded on some type is known to be beforehand, and few other operations are', () => {
  const types: readonly RegisterType[] = ['f32', 'f64', 'i32', 'u32', 'i64', 'u64', 'bool'];
  const ops = [
    ...opNames.filter(isElementwise),
    'roundF16',
    'roundBf16',
    'floorDiv',
    'floorMod',
    'pmin',
  ] as const;
  const expanded = ops.filter((op) => types.some((type) => isExpanded(op, type)));
  expect(expanded.length).toBeGreaterThan(15);
  expect(ops.filter(mayBeExpanded)).toEqual(expanded);
});

test('only operations that WebAssembly has are left, and shifts by constants', () => {
  for (const { op, ranges } of [...rows, { op: 'roundF16', ranges: one([0, 1]) } as const]) {
    const args = ranges[0]!.map((): RegisterType => 'f32');
    for (const value of valuesIn(expandMath(mapLoop({ op, args, result: 'f32' }, 4, 64)).body)) {
      if (value.kind !== 'op') continue;
      expect(simple.has(value.op), `${value.op} in ${op}`).toBe(true);
      expect(isExpanded(value.op, value.args[0]!.type)).toBe(false);
      if (value.op === 'shl' || value.op === 'shr') expect(value.args[1]!.kind).toBe('constant');
    }
  }
});

describe('a Loop', () => {
  const f32 = (op: LoopOp, ...args: Value[]): Value => operation(op, args, 'f32');

  /** Sums sin and cos of four elements each in a loop, by way of a register that changes. */
  function loopOf(): Loop {
    const b = new LoopBuilder(new Set(['out']));
    const total = b.var('total', constant(0, 'f32', 4));
    b.for('i', constant(0), constant(16), 4, (i) => {
      const x = b.let({ kind: 'load', buffer: 'x0', index: i, aligned: true, type: 'f32', width: 4 }, 'x');
      b.if(operation('lt', [constant(3), i], 'bool'), () => {
        b.assign(total, f32('add', total, f32('mul', f32('sin', x), f32('cos', x))));
        b.assign(total, f32('exp', f32('tanh', total)));
      });
      b.assign(total, f32('sin', total));
    });
    b.store('out', constant(0), total, true);
    return {
      name: 'apply',
      kind: 'map',
      header: [],
      buffers: [
        { name: 'x0', space: 'global', dtype: 'f32', size: 16, access: 'read' },
        { name: 'out', space: 'global', dtype: 'f32', size: 4, access: 'read_write' },
      ],
      usesScalars: false,
      grid: [1, 1, 1],
      workgroup: [1, 1, 1],
      body: b.body,
    };
  }

  test('with branches, loops and registers computes what it did', () => {
    const x = random(16, () => 10 * randomUnit() - 5);
    const loop = loopOf();
    const [before, after] = [run(loop, [x], 4), run(expandMath(loop), [x], 4)];
    before.forEach((y, i) => expect(Math.abs(after[i]! - y)).toBeLessThan(1e-5));
  });

  test('reduces an angle once for its sine and cosine, and asks at once whether any lane is far', () => {
    const conditions: Value[] = [];
    const collect = (body: readonly Stmt[]): void => {
      for (const stmt of body) {
        if (stmt.kind === 'for') collect(stmt.body);
        if (stmt.kind !== 'if') continue;
        if (anyLaneOf(stmt.condition) !== undefined) conditions.push(stmt.condition);
        collect(stmt.then);
      }
    };
    collect(expandMath(loopOf()).body);
    expect(conditions.length).toBe(2);
  });

  test('without functions stays as it is', () => {
    const loop = mapLoop({ op: 'add', args: ['f32', 'f32'], result: 'f32' }, 4, 64);
    expect(expandMath(loop)).toEqual(loop);
  });
});
