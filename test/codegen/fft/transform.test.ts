// Transforms of every kind of length, along every axis: those that one kernel does, those that two
// do, and those that are convolutions. Errors are held to the bound of a transform of that many
// stages, relative to the root of the mean square of a line (Gentleman and Sande, 1966).

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../../src/compile.ts';
import { fftTable } from '../../../src/ir/fft/table.ts';
import { broadcast, mul, reshape, slice, unary } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { cudaTarget, gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../../src/schedule/target.ts';
import { useStandIn } from '../../cuda/standin/standin.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, checkLawAsync } from '../../support/property.ts';
import { Sketch } from '../cases.ts';

interface Case {
  readonly n: number;
  readonly lines: number;
  readonly axis: 0 | 1;
  readonly inverse: boolean;
  readonly dtype: 'f32' | 'f64';
  readonly values: number;
  readonly parts?: 'both' | 'real';
}

const short = fc.oneof(
  fc.integer({ min: 1, max: 70 }),
  fc.constantFrom(64, 81, 121, 128, 210, 256, 961, 1023),
);
const long = fc.constantFrom(1021, 1024, 2048, 2310, 3125, 4096, 4099, 5000, 8192, 9216);

const casesOf = (lengths: fc.Arbitrary<number>, ...dtypes: readonly ('f32' | 'f64')[]): fc.Arbitrary<Case> =>
  fc.record({
    n: lengths,
    lines: fc.integer({ min: 1, max: 9 }),
    axis: fc.constantFrom(0, 1),
    inverse: fc.boolean(),
    dtype: fc.constantFrom(...dtypes),
    values: fc.integer({ min: 1, max: 2 ** 20 }),
    parts: fc.constantFrom('both', 'real'),
  });

interface Transform {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

function transformOf({ n, lines, axis, inverse, dtype, values, parts = 'both' }: Case): Transform {
  const s = new Sketch();
  const shape = axis === 0 ? [n, lines, 2] : [lines, n, 2];
  const table = fftTable(n);
  const x = s.input(shape, dtype);
  const y = s.b.add('fft', [x, s.input([table.length], dtype)], { axis, inverse });
  // Real parts alone are neighbours in memory, as pairs are not.
  const size = dims(x).with(2, 1);
  const real = reshape(s.b, slice(s.b, y as Node, [0, 0, 0], size), size.slice(0, 2));
  let state = values;
  const next = (): number => (state = (state * 48271) % 2147483647) / 2147483647 - 0.5;
  const elements = Array.from({ length: 2 * n * lines }, next);
  return {
    graph: s.graph(parts === 'both' ? [y] : [unary(s.b, 'neg', real)]),
    inputs: [hostArray(dtype, shape, elements), hostArray(dtype, [table.length], table)],
  };
}

function expectReference(
  found: readonly HostArray[],
  { graph, inputs }: Transform,
  { n, dtype }: Case,
): void {
  const wanted = interpret(graph, inputs)[0]!.data as Float64Array;
  const square = wanted.reduce((sum, x) => sum + x * x, 0) / wanted.length;
  const off = wanted.reduce((most, x, i) => Math.max(most, Math.abs(x - Number(found[0]!.data[i]))), 0);
  const ulp = dtype === 'f32' ? 2 ** -24 : 2 ** -53;
  // Two units of a stage of two for every term, four for those that are convolutions.
  expect(off).toBeLessThanOrEqual(4 * (Math.log2(n) + 4) * ulp * Math.sqrt(square));
}

describe.each([
  ['a GPU', gpuTarget],
  ['a GPU with much memory', cudaTarget],
  ['the software adapter', softwareTarget],
  ['a core', wasmTarget],
] as const)('Loops for %s', (_, target) => {
  test('compute transforms of short lines, without a race', () => {
    const dtypes = target.dtypes.includes('f64') ? (['f32', 'f64'] as const) : (['f32'] as const);
    checkLaw(12, casesOf(short, ...dtypes), (one) => {
      const made = transformOf(one);
      expectReference(runLoops(target, made.graph, made.inputs), made, one);
    });
  });

  test.each([1023, 4096])('compute a line of %i points', (n) => {
    const one: Case = { n, lines: 1, axis: 1, inverse: false, dtype: 'f32', values: 7 };
    const made = transformOf(one);
    expectReference(runLoops(target, made.graph, made.inputs), made, one);
  });
});

test('what comes before and after is computed with vectors either way round, on a core', () => {
  const sizes = fc.record({ n: fc.integer({ min: 1, max: 45 }), lines: fc.integer({ min: 1, max: 11 }) });
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => Math.sin(i + 1));
  checkLaw(20, sizes, ({ n, lines }) => {
    const s = new Sketch();
    const [x, window, gain] = [s.input([lines, n, 2]), s.input([n]), s.input([lines])];
    const table = s.input([fftTable(n).length]);
    const windows = broadcast(s.b, reshape(s.b, window, [1, n, 1]), [lines, n, 2]);
    const gains = broadcast(s.b, reshape(s.b, gain, [lines, 1, 1]), [lines, n, 2]);
    const y = s.b.add('fft', [mul(s.b, x, windows), table], { axis: 1, inverse: false }) as Node;
    const graph = s.graph([mul(s.b, y, gains)]);
    const inputs = [
      hostArray('f32', [lines, n, 2], numbers(2 * lines * n)),
      hostArray('f32', [n], numbers(n)),
      hostArray('f32', [lines], numbers(lines)),
      hostArray('f32', [fftTable(n).length], fftTable(n)),
    ];
    const one: Case = { n, lines, axis: 1, inverse: false, dtype: 'f32', values: 1 };
    expectReference(runLoops(wasmTarget, graph, inputs), { graph, inputs }, one);
  });
});

test.each([
  [2 ** 18, 1, 1],
  // Some of the last four lines are none.
  [1024, 259, 0],
] as const)('%i points of %i lines that no cache holds, along axis %i', async (n, lines, axis) => {
  const device = await openDevice('wasm');
  const one: Case = { n, lines, axis, inverse: false, dtype: 'f32', values: 3 };
  const made = transformOf(one);
  expectReference(await runOnDevice(device, targetOf(device.facts), made.graph, made.inputs), made, one);
});

const devices = ['wasm', 'webgpu:software', ...(useStandIn() ? ['cuda'] : [])];

test.each(devices)(
  'transforms of any length along any axis are within their bound on %s',
  async (name) => {
    const device = await openDevice(name);
    const target = targetOf(device.facts);
    const dtypes = target.dtypes.includes('f64') ? (['f32', 'f64'] as const) : (['f32'] as const);
    const runs = name === 'wasm' ? 25 : 6;
    const all = casesOf(fc.oneof(short, long), ...dtypes);
    await checkLawAsync(runs, all, async (one) => {
      const made = transformOf(one);
      expectReference(await runOnDevice(device, target, made.graph, made.inputs), made, one);
    });
  },
  120_000,
);

test.each([
  [2 ** 12, 1, 1],
  [2 ** 13, 1, 2],
  [2 ** 20, 1, 2],
  [2 ** 24, 1, 2],
  [1023, 1000, 1],
  // A chirp, two transforms of whose products each is one kernel, and what is cut off.
  [1021, 4, 3],
])('%i points of %i lines take so many kernels', (n, lines, kernels) => {
  for (const target of [gpuTarget, wasmTarget]) {
    const s = new Sketch();
    const x = s.input([lines, n, 2]);
    const table = s.input([fftTable(n).length]);
    const graph = s.graph([s.b.add('fft', [x, table], { axis: 1, inverse: true })]);
    expect(compileGraph(graph, target).kernels).toHaveLength(kernels);
  }
});
