// A page downloads the compiler in chunks, and the recorded graph says which of them it needs (src/compile/chunks.ts). Here the
// slots of all other chunks are emptied, as they are in a page, and everything still compiles to the same programs.

import { rowFamilies, type Row } from '../../scripts/operations/rows.ts';
import { describe, expect, test } from 'vitest';
import { slotsBy } from '../../src/compile/all.ts';
import { chunksOf, longestWhole } from '../../src/compile/chunks.ts';
import { compileGraph, type CompileOptions } from '../../src/compile.ts';
import { CompilerBug, SinterError } from '../../src/errors.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import type { Graph, Node } from '../../src/ir/graph.ts';
import * as sn from '../../src/index.ts';
import {
  cudaTarget,
  gpuTarget,
  leastTargetOf,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../src/schedule/target.ts';
import type { Slot } from '../../src/slot.ts';
import { graphOf, graphKeyOf } from '../../src/tensor/evaluate/graph-key.ts';
import { storageOf } from '../../src/tensor/handle/leaf.ts';
import { nodeOf } from '../../src/tensor/record.ts';
import { canonical } from '../../src/tensor/handle/recording.ts';
import { evaluate, tensorsOf } from '../support/coverage/call.ts';

const units: Target = { ...cudaTarget, matrixUnits: ['f16', 'bf16', 'tf32'], warpgroups: true };
const targets: Readonly<Record<string, Target>> = {
  wasm: wasmTarget,
  wgsl: gpuTarget,
  software: softwareTarget,
  cuda: cudaTarget,
  units,
};

/** What `work` gives where only these chunks have come. */
function withOnly<T>(chunks: ReadonlySet<string>, work: () => T): T {
  const emptied = Object.entries(slotsBy)
    .filter(([chunk]) => !chunks.has(chunk))
    .flatMap(([, slots]) => slots)
    .map((slot): readonly [Slot<unknown>, unknown] => [slot, slot.filled]);
  for (const [slot] of emptied) slot.fill(undefined);
  try {
    return work();
  } finally {
    for (const [slot, value] of emptied) slot.fill(value);
  }
}

/** The graph of values that are pending. */
function graphOfAll(results: readonly sn.Tensor[]): Graph {
  const leaf = (node: Node): object | undefined => storageOf(node);
  const graphKey = graphKeyOf(
    results.map((result) => canonical(nodeOf(result))),
    leaf,
  );
  return graphOf(graphKey, graphKey.outputs, () => undefined);
}

/** The program, as text, or the error of who wants what the target does not have. */
function programOf(graph: Graph, target: Target, options: CompileOptions): string {
  try {
    return JSON.stringify(compileGraph(graph, target, options).program);
  } catch (error) {
    if (!(error instanceof SinterError) || error instanceof CompilerBug) throw error;
    return String(error);
  }
}

/** Whose turn it is. */
let turn = 0;

/** Compares on all targets, or on the next of them. */
function expectNeedsOnly(
  name: string,
  graph: Graph,
  options: CompileOptions = {},
  on = Object.entries(targets),
): void {
  for (const [id, target] of on) {
    const whole = programOf(graph, target, options);
    const chunks = chunksOf(graph, target, options).add(target.id as 'wasm');
    // What is fetched while the device is being opened is of use on it.
    const early = [...chunksOf(graph, leastTargetOf(target.id), options)];
    expect([name, id, early.filter((chunk) => !chunks.has(chunk))]).toEqual([name, id, []]);
    expect([name, id, withOnly(chunks, () => programOf(graph, target, options))]).toEqual([name, id, whole]);
  }
}

/** The tensors that a row of the catalogue gives, recorded and not computed. */
function resultsOf(row: Row): {
  readonly given: readonly sn.Tensor[];
  readonly results: readonly sn.Tensor[];
} {
  const given = Object.fromEntries(
    Object.entries(row.given).map(([name, code]) => {
      const value = evaluate(code, {});
      return [
        name,
        value instanceof sn.Tensor && isFloat(value.dtype) ? value.detach().requiresGrad_() : value,
      ];
    }),
  );
  const results = tensorsOf(evaluate(row.call, given)).filter((result) => result instanceof sn.Tensor);
  return { given: Object.values(given).filter((value) => value instanceof sn.Tensor), results };
}

/** Undefined where there is none. */
function gradientsOf(losses: readonly sn.Tensor[], inputs: readonly sn.Tensor[]): sn.Tensor[] | undefined {
  try {
    return sn.gradients(losses, inputs);
  } catch (error) {
    if (error instanceof SinterError && error.code === 'E_GRAD') return undefined;
    throw error;
  }
}

describe.each(rowFamilies().map((family) => [family.title, family] as const))('%s', (_, family) => {
  test('compile with the chunks that their graphs ask for, and so do their gradients', () => {
    const next = (): [string, Target][] => [Object.entries(targets)[turn++ % 5]!];
    for (const row of family.rows) {
      const { given, results } = resultsOf(row);
      if (results.length === 0) continue;
      expectNeedsOnly(row.name, graphOfAll(results), {}, next());
      const inputs = given.filter((x) => x.requiresGrad);
      const losses = results.filter((x) => x.requiresGrad && isFloat(x.dtype)).map((x) => x.sum());
      if (inputs.length === 0 || losses.length === 0) continue;
      const gradients = gradientsOf(losses, inputs);
      if (gradients !== undefined)
        expectNeedsOnly(`gradient of ${row.name}`, graphOfAll([...results, ...gradients]), {}, next());
    }
  });
});

test('verifiers and budgets of memory are asked for where they are used', () => {
  const x = sn.ones([64, 64]);
  const graph = graphOfAll([x.matmul(x).exp().sum()]);
  expectNeedsOnly('check', graph, { check: true });
  expectNeedsOnly('memory', graph, { memory: 1e6 });
});

test('elementwise programs need the compiler alone, products no rare operations', () => {
  const x = sn.ones([4, 4]);
  expect([...chunksOf(graphOfAll([x.exp().add(x.T)]), wasmTarget)]).toEqual(['compiler']);
  const product = graphOfAll([x.matmul(x).softmax(1)]);
  expect([...chunksOf(product, wasmTarget)]).toEqual(['compiler', 'products', 'products-cpu']);
  expect([...chunksOf(product, gpuTarget)]).toEqual(['compiler', 'products', 'products-gpu']);
  const long = graphOfAll([
    sn
      .ones([64, 4])
      .matmul(sn.ones([4, 256]))
      .softmax(1),
  ]);
  expect([...chunksOf(long, gpuTarget)]).toEqual([
    'compiler',
    'products',
    'products-gpu',
    'column-folds',
    'selections',
  ]);
  expect([...chunksOf(product, undefined)]).toEqual(['compiler', 'products']);
});

test.each([
  ['slices', () => sn.ones([8]).slice(0, 2, 6).exp()],
  ['concatenations', () => sn.cat([sn.ones([4]), sn.ones([4]).exp()])],
  ['padding', () => sn.pad(sn.ones([4]), [[1, 2]]).exp()],
  ['positions', () => sn.ones([4, 4]).tril().sum()],
  ['choices', () => sn.where(sn.ones([4]).gt(0), sn.ones([4]), sn.zeros([4])).exp()],
  [
    'gathers',
    () =>
      sn
        .ones([8])
        .indexSelect(0, sn.tensor([1, 2], { dtype: 'i32' }))
        .exp(),
  ],
] as const)('%s ask for what selects', (name, value) => {
  const graph = graphOfAll([value()]);
  expect(chunksOf(graph, wasmTarget).has('selections')).toBe(true);
  expectNeedsOnly(name, graph);
});

test('rows ask for what selects where they may be padded', () => {
  for (const [row, asks] of [
    [longestWhole - 1, false],
    [longestWhole, false],
    [100_003, true],
  ] as const)
    for (const axis of [0, 1]) {
      const shape: readonly [number, number] = axis === 0 ? [row, 3] : [3, row];
      const graph = graphOfAll([sn.ones(shape).add(1).sum(axis)]);
      expect([row, chunksOf(graph, wasmTarget).has('selections')]).toEqual([row, asks]);
      expectNeedsOnly(`rows of ${row}`, graph);
    }
});

test('WebAssembly asks for functions that it has no instructions for, other languages do not', () => {
  const x = sn.ones([4]);
  for (const graph of [x.log(), x.pow(1.5), x.fmod(0.3), x.sin(), x.cast('f16').exp()].map((y) =>
    graphOfAll([y]),
  )) {
    expect([...chunksOf(graph, wasmTarget)]).toEqual(['compiler', 'wasm-functions']);
    expect(chunksOf(graph, gpuTarget).has('wasm-functions')).toBe(false);
    expectNeedsOnly('a function', graph);
  }
  expect([...chunksOf(graphOfAll([x.exp().tanh().sqrt()]), wasmTarget)]).toEqual(['compiler']);
});

/** Losses and what they are differentiated by. */
const networks: Readonly<Record<string, () => readonly [loss: sn.Tensor, weights: readonly sn.Tensor[]]>> = {
  'a perceptron': () => {
    const [w, v] = [weight([8, 16]), weight([16, 4])];
    return [sn.mseLoss(sn.ones([6, 8]).matmul(w).tanh().matmul(v), sn.ones([6, 4])), [w, v]];
  },
  'a perceptron with sums of many terms, which are cut': () => {
    const [w, v] = [weight([4096, 8]), weight([8, 4])];
    return [sn.mseLoss(sn.ones([2, 4096]).matmul(w).tanh().matmul(v), sn.ones([2, 4])), [w, v]];
  },
  'a classifier': () => {
    const [w, v] = [weight([8, 16]), weight([16, 4])];
    const logits = sn.ones([6, 8]).matmul(w).relu().matmul(v);
    return [sn.crossEntropy(logits, sn.tensor([0, 1, 2, 3, 0, 1], { dtype: 'i32' })), [w, v]];
  },
  attention: () => {
    const [q, k, v] = [weight([2, 8, 4]), weight([2, 8, 4]), weight([2, 8, 4])];
    return [sn.scaledDotProductAttention(q, k, v).square().sum(), [q, k, v]];
  },
  'batches of products': () => {
    const [w, v] = [weight([3, 8, 8]), weight([3, 8, 8])];
    return [sn.ones([3, 8, 8]).matmul(w).tanh().matmul(v).square().sum(), [w, v]];
  },
  // Their derivatives by the weights are products on cores.
  'convolutions without a product': () => {
    const [w, v] = [weight([8, 8, 3, 3]), weight([8, 8, 3, 3])];
    const x = sn.ones([16, 8, 12, 12]);
    return [sn.conv2d(sn.conv2d(x, w).relu(), v).square().sum(), [w, v]];
  },
};

function weight(shape: readonly number[]): sn.Tensor {
  return sn.ones(shape).requiresGrad_();
}

describe.each(Object.entries(networks))('%s', (name, network) => {
  test('needs what its graph asks for, on every target', () => {
    const [loss, weights] = network();
    const steps = sn.gradients([loss], weights).map((slope, i) => weights[i]!.sub(slope.mul(0.1)));
    expectNeedsOnly(name, graphOfAll([loss]));
    expectNeedsOnly(`${name}, trained`, graphOfAll([loss, ...steps]));
  });
});

test('attention is asked for where products weigh by products', () => {
  const needs = (name: string): boolean => {
    const [loss, weights] = networks[name]!();
    return chunksOf(graphOfAll([loss, ...sn.gradients([loss], weights)]), wasmTarget).has('attention');
  };
  expect(Object.keys(networks).map((name) => [name, needs(name)])).toEqual([
    ['a perceptron', false],
    ['a perceptron with sums of many terms, which are cut', true],
    ['a classifier', true],
    ['attention', true],
    ['batches of products', true],
    ['convolutions without a product', false],
  ]);
});

test('what is used and was not asked for is a bug of the compiler that names it', () => {
  const x = sn.ones([4, 4]);
  const graph = graphOfAll(x.sort());
  expect(() => withOnly(new Set(['wasm']), () => compileGraph(graph, wasmTarget))).toThrow(
    /compiler bug in chunks: the pass splitSorts is used and is not loaded/,
  );
});
