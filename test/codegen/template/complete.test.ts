// Rows completed by the kernels of every target: what was there stays, bit for bit, and all rows are orthonormal.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DType } from '../../../src/ir/dtype.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { cudaTarget, gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../../src/schedule/target.ts';
import { everyDevice } from '../../support/devices.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, seed } from '../../support/property.ts';
import { Sketch } from '../cases.ts';

interface Rows {
  readonly dtype: DType;
  readonly batch: number;
  readonly n: number;
  readonly columns: number;
  readonly parts: number;
  /** How many rows are there of each matrix; they may stand anywhere. */
  readonly seed: number;
}

const cases = fc
  .record({
    dtype: fc.constantFrom<DType>('f32', 'f32', 'f64'),
    batch: fc.integer({ min: 1, max: 3 }),
    n: fc.integer({ min: 1, max: 8 }),
    more: fc.nat(5),
    parts: fc.constantFrom(1, 2),
    seed: fc.nat(2 ** 20),
  })
  .map(({ more, ...rest }): Rows => ({ ...rest, columns: rest.n + more }));

/** Σ x·conj(y) of rows with a real and an imaginary half. */
function product(x: readonly number[], y: readonly number[], half: number): readonly [number, number] {
  let [re, im] = [0, 0];
  for (let k = 0; k < half; k++) {
    const [a, b, c, d] = [x[k]!, x[half + k] ?? 0, y[k]!, y[half + k] ?? 0];
    re += a * c + b * d;
    im += b * c - a * d;
  }
  return [re, im];
}

function inputsOf({ dtype, batch, n, columns, parts, seed: start }: Rows): HostArray[] {
  let state = start + 1;
  const draw = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const missing: number[] = [];
  const data: number[] = [];
  for (let matrix = 0; matrix < batch; matrix++) {
    const kept: number[][] = [];
    for (let i = 0; i < n; i++) {
      const isMissing = draw() < 0;
      missing.push(Number(isMissing));
      const row = Array.from({ length: columns * parts }, () => (isMissing ? 0 : draw()));
      if (!isMissing) {
        for (let pass = 0; pass < 2; pass++)
          for (const other of kept) {
            const [re, im] = product(row, other, columns);
            const before = [...other];
            for (let k = 0; k < columns; k++) {
              const [c, d] = [before[k]!, before[columns + k] ?? 0];
              row[k] = row[k]! - (re * c - im * d);
              if (parts === 2) row[columns + k] = row[columns + k]! - (re * d + im * c);
            }
          }
        const size = Math.hypot(...row);
        row.forEach((value, k) => (row[k] = value / size));
        kept.push(row);
      }
      data.push(...row);
    }
  }
  return [hostArray(dtype, [batch, n, columns * parts], data), hostArray('bool', [batch, n], missing)];
}

function graphOf({ dtype, batch, n, columns, parts }: Rows): Graph {
  const s = new Sketch();
  const [x, missing] = [s.input([batch, n, columns * parts], dtype), s.input([batch, n], 'bool')];
  return s.graph([s.b.add('completeRows', [x, missing], { parts }) as Node]);
}

function check(
  { dtype, batch, n, columns, parts }: Rows,
  [x, missing]: readonly HostArray[],
  found: HostArray,
): void {
  const width = columns * parts;
  const rowOf = (of: HostArray, i: number): number[] =>
    Array.from(of.data.slice(i * width, (i + 1) * width) as Float64Array, Number);
  for (let i = 0; i < batch * n; i++)
    if (Number(missing!.data[i]) === 0) expect(rowOf(found, i)).toEqual(rowOf(x!, i));
  let worst = 0;
  for (let m = 0; m < batch; m++)
    for (let i = 0; i < n; i++)
      for (let j = 0; j <= i; j++) {
        const [re, im] = product(rowOf(found, m * n + i), rowOf(found, m * n + j), columns);
        worst = Math.max(worst, Math.hypot(re - Number(i === j), im));
      }
  expect(worst).toBeLessThan(20 * columns * (dtype === 'f64' ? 2 ** -52 : 2 ** -23));
}

test('rows that the interpreter completes are orthonormal', () => {
  checkLaw(100, cases, (shape) => {
    const inputs = inputsOf(shape);
    check(shape, inputs, interpret(graphOf(shape), inputs)[0]!);
  });
});

describe('kernels, run as Loops without races,', () => {
  const targets = { gpu: gpuTarget, software: softwareTarget, cuda: cudaTarget, wasm: wasmTarget };
  test.each(Object.entries(targets))('complete rows on %s', (_, target) => {
    checkLaw(8, cases, (given) => {
      const shape: Rows = target.dtypes.includes('f64') ? given : { ...given, dtype: 'f32' };
      const inputs = inputsOf(shape);
      check(shape, inputs, runLoops(target, graphOf(shape), inputs)[0]!);
    });
  });
});

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('%s', (name) => {
  test('completes rows', async () => {
    const device = await openDevice(name);
    const target = targetOf(device.facts);
    for (const given of fc.sample(cases, { numRuns: 6, seed })) {
      const shape: Rows = target.dtypes.includes('f64') ? given : { ...given, dtype: 'f32' };
      const inputs = inputsOf(shape);
      check(shape, inputs, (await runOnDevice(device, target, graphOf(shape), inputs))[0]!);
    }
    expect(await device.finish()).toBeUndefined();
  });
});
