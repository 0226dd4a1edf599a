// Rows rotated by the kernels of every target: their products with each other vanish, and what they are rows of keeps its
// products of columns, since an orthogonal matrix came between.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DType } from '../../../src/ir/dtype.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { cudaTarget, gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, seed } from '../../support/property.ts';
import { everyDevice } from '../../support/devices.ts';
import { Sketch } from '../cases.ts';

interface Rows {
  readonly dtype: DType;
  readonly batch: number;
  readonly n: number;
  /** Columns of one part, and how many of them count. */
  readonly half: number;
  readonly width: number;
  readonly parts: number;
  readonly seed: number;
}

const rows = fc
  .record({
    dtype: fc.constantFrom<DType>('f32', 'f32', 'f64'),
    batch: fc.integer({ min: 1, max: 3 }),
    n: fc.integer({ min: 1, max: 9 }),
    half: fc.constantFrom(1, 3, 4, 8, 16, 20),
    share: fc.integer({ min: 1, max: 4 }),
    parts: fc.constantFrom(1, 2),
    seed: fc.nat(2 ** 20),
  })
  .map(({ share, ...rest }): Rows => ({ ...rest, width: Math.ceil((rest.half * share) / 4) }));

/** Elements of a fixed sequence: a row in four is a multiple of another, so that ranks are not full. */
function inputOf({ dtype, batch, n, half, parts, seed: start }: Rows): HostArray {
  const columns = half * parts;
  let state = start + 1;
  const draw = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const values = Array.from({ length: batch * n * columns }, draw);
  for (let row = 1; row < batch * n; row++)
    if (draw() < -0.5)
      for (let k = 0; k < columns; k++) values[row * columns + k] = 2 * values[(row - 1) * columns + k]!;
  return hostArray(dtype, [batch, n, columns], values);
}

function graphOf({ dtype, batch, n, half, width, parts }: Rows): Graph {
  const s = new Sketch();
  const x = s.input([batch, n, half * parts], dtype);
  return s.graph([s.b.add('jacobiRows', [x], { width, parts }) as Node]);
}

/** What is off: the cosines of rows beside the whole, and the products of columns, by the size of the whole. */
function faultsOf(shape: Rows, before: HostArray, after: HostArray): { cosine: number; change: number } {
  const { batch, n, half, width, parts } = shape;
  const columns = half * parts;
  let [cosine, change] = [0, 0];
  for (let m = 0; m < batch; m++) {
    const at = (of: HostArray, i: number, k: number, part: number): number =>
      part < parts ? Number(of.data[(m * n + i) * columns + part * half + k]) : 0;
    let whole = 0;
    for (let i = 0; i < n; i++)
      for (let k = 0; k < half; k++) whole += at(before, i, k, 0) ** 2 + at(before, i, k, 1) ** 2;
    const product = (count: number, u: (e: number, part: number) => number, v: typeof u): number => {
      let [real, imaginary] = [0, 0];
      for (let e = 0; e < count; e++) {
        real += u(e, 0) * v(e, 0) + u(e, 1) * v(e, 1);
        imaginary += u(e, 1) * v(e, 0) - u(e, 0) * v(e, 1);
      }
      return Math.hypot(real, imaginary);
    };
    const rowOf = (of: HostArray, i: number) => (k: number, part: number) => at(of, i, k, part);
    for (let i = 0; i < n; i++)
      for (let j = 0; j < i; j++)
        cosine = Math.max(cosine, product(width, rowOf(after, i), rowOf(after, j)) / whole);
    for (let k = 0; k < half; k++)
      for (let l = 0; l <= k; l++) {
        const gram = (of: HostArray): number =>
          product(
            n,
            (i, part) => at(of, i, k, part),
            (i, part) => at(of, i, l, part),
          );
        change = Math.max(change, Math.abs(gram(after) - gram(before)) / whole);
      }
  }
  return { cosine, change };
}

function check(shape: Rows, before: HostArray, after: HostArray): void {
  const { cosine, change } = faultsOf(shape, before, after);
  const epsilon = shape.dtype === 'f64' ? 2 ** -52 : 2 ** -23;
  expect(cosine).toBeLessThan(40 * epsilon);
  expect(change).toBeLessThan(40 * shape.n * epsilon);
}

test('rows of the interpreter become orthogonal by an orthogonal matrix', () => {
  checkLaw(200, rows, (shape) => {
    const input = inputOf(shape);
    check(shape, input, interpret(graphOf(shape), [input])[0]!);
  });
});

describe('kernels, run as Loops without races,', () => {
  const targets = { gpu: gpuTarget, software: softwareTarget, cuda: cudaTarget, wasm: wasmTarget };
  test.each(Object.entries(targets))('rotate rows on %s', (_, target) => {
    checkLaw(target.id === 'wasm' ? 40 : 12, rows, (given) => {
      const shape: Rows = target.dtypes.includes('f64') ? given : { ...given, dtype: 'f32' };
      const input = inputOf(shape);
      check(shape, input, runLoops(target, graphOf(shape), [input])[0]!);
    });
  });

  test('take more pairs of rows than a workgroup has invocations', () => {
    const narrow = { ...gpuTarget, limits: { ...gpuTarget.limits, workgroupInvocations: 4 } };
    const shape: Rows = { dtype: 'f32', batch: 2, n: 19, half: 8, width: 8, parts: 1, seed: 3 };
    const input = inputOf(shape);
    check(shape, input, runLoops(narrow, graphOf(shape), [input])[0]!);
  });
});

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('%s', (name) => {
  test('rotates rows', async () => {
    const device = await openDevice(name);
    const target = targetOf(device.facts);
    const wide: Rows = { dtype: 'f32', batch: 1, n: 40, half: 48, width: 48, parts: 1, seed: 9 };
    const drawn = fc.sample(rows, { numRuns: 8, seed });
    for (const given of [wide, { ...wide, n: 20, parts: 2 }, ...drawn]) {
      const shape: Rows = target.dtypes.includes('f64') ? given : { ...given, dtype: 'f32' };
      const input = inputOf(shape);
      check(shape, input, (await runOnDevice(device, target, graphOf(shape), [input]))[0]!);
    }
    expect(await device.finish()).toBeUndefined();
  });
});
