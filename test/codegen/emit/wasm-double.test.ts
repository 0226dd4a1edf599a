// Functions of doubles as WebAssembly computes them, against figures of more digits than a double has
// (scripts/double-fixtures.py), and at many more arguments against this engine's Math. The table is what was measured, rounded up.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { erf } from '../../../src/ir/interpret/erf.ts';
import type { ElementwiseOp } from '../../../src/ir/ops.ts';
import type { Width } from '../../../src/codegen/loop/loop.ts';
import { mapLoop, type Arrays } from '../run-loop.ts';
import { runWasm } from './run-wasm.ts';
import { randomInt, randomUnit } from '../values.ts';

const file = new URL('../../fixtures/double.json', import.meta.url);
const fixtures = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, readonly number[][]>>;

interface Row {
  readonly op: ElementwiseOp;
  /** Largest error in units in the last place. */
  readonly ulp: number;
  /** Math's function, and its own error, if it is above one unit. */
  readonly math: (a: number, b: number) => number;
  readonly mathUlp?: number;
  /** The largest arguments of those drawn, besides any double. */
  readonly reach: readonly number[];
}

const rows: readonly Row[] = [
  { op: 'exp', ulp: 1, math: Math.exp, reach: [1, 745] },
  { op: 'exp2', ulp: 1, math: (x) => 2 ** x, reach: [1, 1075] },
  { op: 'expm1', ulp: 1.3, math: Math.expm1, reach: [1e-3, 1, 709] },
  { op: 'log', ulp: 1, math: Math.log, reach: [2, 1e5] },
  { op: 'log2', ulp: 1, math: Math.log2, reach: [2, 1e5] },
  { op: 'log1p', ulp: 1, math: Math.log1p, reach: [1e-3, 2, 1e5] },
  { op: 'sin', ulp: 1, math: Math.sin, reach: [10, 1e5, 1e7, 1e20] },
  { op: 'cos', ulp: 1, math: Math.cos, reach: [10, 1e5, 1e7, 1e20] },
  { op: 'tan', ulp: 1.5, math: Math.tan, reach: [10, 1e5, 1e7, 1e20] },
  { op: 'asin', ulp: 1, math: Math.asin, reach: [1e-3, 1] },
  { op: 'acos', ulp: 1, math: Math.acos, reach: [1e-3, 1] },
  { op: 'atan', ulp: 1, math: Math.atan, reach: [1, 10, 1e6] },
  { op: 'sinh', ulp: 1.8, math: Math.sinh, reach: [1, 20, 710] },
  { op: 'cosh', ulp: 1, math: Math.cosh, reach: [1, 20, 710] },
  { op: 'tanh', ulp: 2, math: Math.tanh, reach: [0.3, 1, 20], mathUlp: 2 },
  // The interpreter's is 4 units off right behind 0.46875, where it begins to subtract from 1.
  { op: 'erf', ulp: 1, math: erf, reach: [1, 6], mathUlp: 4 },
  { op: 'pow', ulp: 1, math: Math.pow, reach: [3, 20] },
  { op: 'atan2', ulp: 1, math: Math.atan2, reach: [1, 1e4] },
];

function applied(op: ElementwiseOp, columns: readonly Float64Array[], width: Width): Float64Array {
  const arrays: Arrays = new Map(columns.map((data, k) => [`x${k}`, data]));
  runWasm(mapLoop({ op, args: columns.map(() => 'f64'), result: 'f64' }, width, columns[0]!.length), arrays);
  return arrays.get('out') as Float64Array;
}

/** Rows of arguments as columns, up to a multiple of four. */
function columnsOf(args: readonly (readonly number[])[]): Float64Array[] {
  const size = Math.ceil(args.length / 4) * 4;
  return args[0]!.map((_, k) => Float64Array.from({ length: size }, (__, i) => args[i]?.[k] ?? 0));
}

const view = new DataView(new ArrayBuffer(8));

/** Doubles in order, as whole numbers one apart. */
function orderOf(x: number): bigint {
  view.setFloat64(0, x);
  const bits = view.getBigInt64(0);
  return bits < 0n ? -(bits & (2n ** 63n - 1n)) : bits;
}

const unitsApart = (a: number, b: number): number => Number(orderOf(a) - orderOf(b));

const anyDouble = (): number => {
  view.setUint32(0, randomInt(2 ** 32));
  view.setUint32(4, randomInt(2 ** 32));
  return view.getFloat64(0);
};

test.each(rows.map((row) => [row.op, row] as const))('%s is near the exact figures', (op, { ulp }) => {
  const cases = fixtures[op]!;
  const found = applied(op, columnsOf(cases.map((one) => one.slice(0, -2))), 4);
  let worst = 0;
  const wrong = cases.flatMap((one, i) => {
    const [near, missing] = one.slice(-2) as [number, number];
    const error = Math.abs(unitsApart(found[i]!, near) - missing);
    worst = Math.max(worst, error);
    return error <= ulp
      ? []
      : [`${op}(${one.slice(0, -2).join(', ')}) = ${found[i]}, ${error} ulp off ${near}`];
  });
  expect(wrong.slice(0, 5), `${wrong.length} wrong, at most ${worst} ulp`).toEqual([]);
});

test.each(rows.map((row) => [row.op, row] as const))("%s is near Math's, at any width", (op, row) => {
  const arity = fixtures[op]![0]!.length - 2;
  const draw = (most: number | undefined): number[] =>
    Array.from({ length: arity }, () => (most === undefined ? anyDouble() : most * (2 * randomUnit() - 1)));
  const args = [undefined, ...row.reach].flatMap((most) => Array.from({ length: 2000 }, () => draw(most)));
  const columns = columnsOf(args);
  const found = applied(op, columns, 4);
  const wrong = args.flatMap(([a = 0, b = 0], i) => {
    const [y, meant] = [found[i]!, row.math(a, b)];
    if (Object.is(y, meant) || Math.abs(unitsApart(y, meant)) <= Math.ceil(row.ulp) + (row.mathUlp ?? 1))
      return [];
    return [`${op}(${a}, ${b}) = ${y}, not ${meant}`];
  });
  expect(wrong.slice(0, 5), `${wrong.length} wrong`).toEqual([]);
  for (const width of [1, 2] as const) expect(applied(op, columns, width)).toEqual(found);
});

test('powers of whole numbers that fit, powers of two and their logarithms are exact', () => {
  const whole = Array.from({ length: 201 }, (_, i) => i - 100);
  const powers = whole.flatMap((x) =>
    Array.from({ length: 17 }, (_, y) => [x, y, BigInt(x) ** BigInt(y)] as const),
  );
  const fitting = powers.filter(([, , power]) => Number.isSafeInteger(Number(power)));
  const results = applied('pow', columnsOf(fitting.map(([x, y]) => [x, y])), 4);
  expect(fitting.filter(([, , power], i) => results[i] !== Number(power))).toEqual([]);

  const exponents = Array.from({ length: 2098 }, (_, i) => i - 1074);
  const twos = exponents.map((n) => 2 ** n);
  expect([...applied('exp2', columnsOf(exponents.map((n) => [n])), 4)].slice(0, 2098)).toEqual(twos);
  expect([...applied('log2', columnsOf(twos.map((x) => [x])), 4)].slice(0, 2098)).toEqual(exponents);
});
