// Softmax of few, long rows becomes chunks where a GPU is faster that way: the same values, for NaN, infinities and chunks
// of −∞ too, in the graph, in its Loops and on a device.

import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { broadcast, cast, reduceKeep, sub, unary } from '../../../src/ir/build.ts';
import { dims, topological, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { verify } from '../../../src/ir/verify.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { optimise } from '../../../src/compile.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { Sketch } from '../../codegen/cases.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { wordsFrom } from '../../support/random/values.ts';

let device: Device;

beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

/** A GPU that starts kernels in no time: rows become chunks as soon as they are long enough for two. */
const eager: Target = { ...gpuTarget, name: 'eager', launch: 0 };

type Kind = 'softmax' | 'log softmax' | 'both and the sum';

function program(kind: Kind, shape: readonly number[], axes: readonly number[], dtype: 'f32' | 'f16'): Graph {
  const s = new Sketch();
  const { b } = s;
  const x = cast(b, s.input(shape, dtype), 'f32');
  const spread = (value: Node): Node => broadcast(b, value, dims(x));
  const below = sub(b, x, spread(reduceKeep(b, 'max', x, axes)));
  const weights = unary(b, 'exp', below);
  const total = reduceKeep(b, 'sum', weights, axes);
  const softmax = (): Node => b.add('div', [weights, spread(total)], {}) as Node;
  const logSoftmax = (): Node => sub(b, below, spread(unary(b, 'log', total)));
  if (kind === 'softmax') return s.graph([softmax()]);
  return s.graph(kind === 'log softmax' ? [logSoftmax()] : [softmax(), logSoftmax(), total]);
}

function elements(
  shape: readonly number[],
  values: string,
  seed: number,
  dtype: 'f32' | 'f16' = 'f32',
): HostArray {
  const next = wordsFrom(seed);
  const count = shape.reduce((a, n) => a * n, 1);
  const real = (): number => (next() / 2 ** 32) * 8 - 4;
  const odd = next() % count;
  const data = Array.from({ length: count }, (_, i) => {
    if (values === 'rows of -Infinity' && i < count / shape[0]!) return -Infinity;
    if (values === 'chunks of -Infinity') return i % 3000 < 2400 ? -Infinity : real();
    if (values === 'one huge' && i === odd) return 60_000;
    if (values === 'one NaN' && i === odd) return NaN;
    if (values === 'one Infinity' && i === odd) return Infinity;
    return real();
  });
  return hostArray(dtype, shape, data);
}

const count = (graph: Graph, op: string): number =>
  topological(graph.outputs).filter((node) => node.op === op).length;

test('a row of a vocabulary fills the machine; many rows and short ones stay one kernel', () => {
  for (const [target, shape, chunked] of [
    [cudaTarget, [1, 131_072], true],
    [cudaTarget, [1, 128_256], true],
    [cudaTarget, [4, 151_936], true],
    [cudaTarget, [1, 32_768], false],
    [cudaTarget, [64, 32_768], false],
    [cudaTarget, [1024, 131_072], false],
    [gpuTarget, [1, 32_768], true],
    [gpuTarget, [1, 4096], false],
    [gpuTarget, [64, 32_768], false],
    [softwareTarget, [1, 131_072], false],
    [wasmTarget, [1, 131_072], false],
  ] as const) {
    const split = optimise(program('softmax', shape, [1], 'f32'), target);
    expect([target.name, shape, count(split, 'exp') === 0]).toEqual([target.name, shape, chunked]);
    if (!chunked) continue;
    const [rows, chunks] = topological(split.outputs)
      .filter(({ op }) => op === 'reduce')
      .map((node) => dims(node))
      .find((sizes) => sizes.length === 2)!;
    expect(rows).toBe(shape[0]);
    // At least as many workgroups as there are multiprocessors, where chunks are not too short for that.
    expect(rows! * chunks!).toBeGreaterThanOrEqual(Math.min(target.cores.count, (rows! * shape[1]) / 1024));
  }
});

const kinds = ['softmax', 'log softmax', 'both and the sum'] as const;
const valueKinds = [
  'tame',
  'rows of -Infinity',
  'chunks of -Infinity',
  'one huge',
  'one NaN',
  'one Infinity',
] as const;

test('chunks mean the same as rows', () => {
  const randomCase = fc.record({
    kind: fc.constantFrom(...kinds),
    shape: fc.constantFrom([1, 1024], [2, 2052], [3, 1539], [1, 4099], [2, 3, 1100], [5000], [2, 40, 31]),
    values: fc.constantFrom(...valueKinds),
    dtype: fc.constantFrom('f32' as const, 'f16' as const),
    seed: fc.nat({ max: 2 ** 20 }),
  });
  checkLaw(60, randomCase, ({ kind, shape, values, dtype, seed }) => {
    const axes = shape.length === 3 && shape[2] === 31 ? [1, 2] : [shape.length - 1];
    const graph = program(kind, shape, axes, dtype);
    const inputs = [elements(shape, values, seed, dtype)];
    const split = optimise(graph, eager);
    verify(split, 'splitSoftmaxes');
    expect(count(split, 'reduce')).toBe(4);
    const expected = interpret(graph, inputs);
    interpret(split, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-5));
    runLoops(eager, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 3e-5));
  });
});

test.each(valueKinds)('a row of 100,003 elements on a device, %s', async (values) => {
  const graph = program('both and the sum', [1, 100_003], [1], 'f32');
  expect(count(optimise(graph, gpuTarget), 'reduce')).toBe(4);
  const inputs = [elements([1, 100_003], values, 11)];
  const expected = interpret(graph, inputs);
  const found = await runOnDevice(device, gpuTarget, graph, inputs);
  found.forEach((got, i) => expectClose(got, expected[i]!, 3e-5));
});

test('what only looks like softmax stays as it is', () => {
  const s = new Sketch();
  const { b } = s;
  const x = s.input([3072, 3072]);
  // The maximum of row i is taken from column i.
  const top = reduceKeep(b, 'max', x, [1]);
  const across = broadcast(b, b.add('reshape', [top], { shape: [1, 3072] }) as Node, [3072, 3072]);
  const sums = reduceKeep(b, 'sum', unary(b, 'exp', sub(b, x, across)), [1]);
  const wide: Target = { ...eager, cores: { count: 2 ** 20, invocations: 1 } };
  const split = optimise(s.graph([sums]), wide);
  expect(count(split, 'exp')).toBe(1);
  expect(count(optimise(program('softmax', [3072, 3072], [1], 'f32'), wide), 'exp')).toBe(0);
});

test('the weights of attention stay what its kernels are known by', () => {
  const attention = (keys: number): Graph => {
    const s = new Sketch();
    return s.graph([s.attention([1, 1, 16], [1, keys, 16], [1, keys, 16])]);
  };
  const split = optimise(attention(2053), eager);
  expect([count(split, 'exp'), count(split, 'recip')]).toEqual([1, 0]);
});
