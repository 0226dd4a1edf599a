// Products of few rows, except on cores of a CPU: several of one left operand are one kernel, and what that operand
// needs of its rows (a norm) has no kernel, since every workgroup, or every invocation of the software adapter,
// computes it. All of it is what the interpreter computes.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { legalTilings } from '../../src/codegen/template/contract/choose.ts';
import { contractProblem } from '../../src/codegen/template/contract/problem.ts';
import { add, binary, broadcast, reduceKeep, sub, unary } from '../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Kernel } from '../../src/schedule/kernel.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import { cudaTarget, gpuTarget, softwareTarget, wasmTarget, type Target } from '../../src/schedule/target.ts';
import { runLoops } from '../support/execute.ts';
import { checkLaw } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';
import { Sketch } from '../codegen/cases.ts';

type Norm = 'none' | 'mean square' | 'mean and variance' | 'maximum';

interface Sizes {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly products: number;
  readonly norm: Norm;
  readonly turnRhs: boolean;
  readonly pick: number;
}

const sizes: fc.Arbitrary<Sizes> = fc.record({
  batch: fc.integer({ min: 1, max: 3 }),
  m: fc.integer({ min: 1, max: 4 }),
  n: fc.oneof(fc.constantFrom(4, 8, 64), fc.integer({ min: 4, max: 70 })),
  k: fc.oneof(fc.constantFrom(4, 64, 256, 1100), fc.integer({ min: 2, max: 70 })),
  products: fc.integer({ min: 1, max: 3 }),
  norm: fc.constantFrom('none', 'mean square', 'mean and variance', 'maximum'),
  turnRhs: fc.boolean(),
  pick: fc.nat(),
});

/** x with its rows, along the last axis, made alike. */
function normed(s: Sketch, x: Node, norm: Norm): Node {
  const { b } = s;
  const [shape, last] = [dims(x), dims(x).length - 1];
  const spread = (row: Node): Node => broadcast(b, row, shape);
  const meanOf = (y: Node): Node => binary(b, 'mul', reduceKeep(b, 'sum', y, [last]), 1 / shape[last]!);
  const scaled = (y: Node): Node => {
    const square = add(b, meanOf(binary(b, 'mul', y, y)), spread1(b, y, 1e-3));
    return binary(b, 'mul', y, spread(unary(b, 'rsqrt', square)));
  };
  switch (norm) {
    case 'none':
      return binary(b, 'mul', x, 0.5);
    case 'mean square':
      return binary(b, 'mul', scaled(x), broadcast(b, s.input([shape[last]!]), shape));
    case 'mean and variance':
      return scaled(sub(b, x, spread(meanOf(x))));
    case 'maximum':
      return sub(b, x, spread(reduceKeep(b, 'max', x, [last])));
    default:
      return norm satisfies never;
  }
}

/** A number for every row of y. */
function spread1(b: Sketch['b'], y: Node, value: number): Node {
  const number = b.add('constant', [], { value, dtype: 'f32' }) as Node;
  return broadcast(b, number, [...dims(y).slice(0, -1), 1]);
}

function graphOf({ batch, m, n, k, products, norm, turnRhs }: Sizes): Graph {
  const s = new Sketch();
  const x = normed(s, s.input([batch, m, k]), norm);
  const results = Array.from({ length: products }, () =>
    s.dot(x, s.input([batch, ...(turnRhs ? [n, k] : [k, n])]), [0], [0], [2], [turnRhs ? 2 : 1]),
  ).map((product) => binary(s.b, 'mul', product, 1 / Math.sqrt(k)));
  // All of them meet, as what a gate lets through does.
  const met = results.reduce((all, next) => binary(s.b, 'mul', unary(s.b, 'tanh', all), next));
  return s.graph([add(s.b, met, s.input([batch, m, n]))]);
}

function kernelsOf(graph: Graph, target: Target): readonly Kernel[] {
  return scheduleGraph(graph, target, new Map()).kernels;
}

const subgroups = { min: 8, max: 32 };
const cases: readonly { readonly target: Target; readonly name: string; readonly mostK: number }[] = [
  { target: gpuTarget, name: 'wgsl', mostK: 1100 },
  { target: { ...gpuTarget, subgroups }, name: 'wgsl with subgroups', mostK: 1100 },
  { target: cudaTarget, name: 'cuda', mostK: 1100 },
  // Longer rows are normed once: that takes less than to norm them again for every few columns.
  { target: softwareTarget, name: 'the software adapter', mostK: 24 },
];

test.each(cases)('norms and products of few rows are one kernel, in every schedule, on $name', (row) => {
  const { target, mostK } = row;
  checkLaw(60, sizes, (drawn) => {
    const given = { ...drawn, k: Math.min(drawn.k, mostK) };
    const graph = graphOf(given);
    const kernels = kernelsOf(graph, target);
    expect(kernels.map(({ kind }) => kind)).toEqual(['dot']);
    const [{ body }] = kernels as [Kernel];
    if (body.kind !== 'contract') throw new Error('no contraction');
    expect(body.siblings?.length ?? 0).toBe(given.products - 1);
    const stages = { none: 0, 'mean square': 1, 'mean and variance': 2, maximum: 1 };
    expect(body.stages?.length ?? 0).toBe(stages[given.norm]);
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 1, 'tame'),
    );
    const legal = legalTilings(contractProblem(kernels[0]!, body), target);
    const results = runLoops(target, graph, inputs, () => legal[given.pick % legal.length]!);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-4));
  });
});

test('a row that is not a number, and one that is infinite, are so in all of their results', () => {
  const graph = graphOf({
    batch: 1,
    m: 3,
    n: 8,
    k: 32,
    products: 2,
    norm: 'mean square',
    turnRhs: true,
    pick: 0,
  });
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  inputs[0]!.data[5] = NaN;
  inputs[0]!.data[40] = Infinity;
  const [want] = interpret(graph, inputs);
  for (const target of [gpuTarget, softwareTarget]) {
    expect(kindsOf(graph, target)).toEqual(['dot']);
    const [result] = runLoops(target, graph, inputs);
    expectClose(result!, want!, 1e-4);
    expect(result!.data.slice(0, 16).every(Number.isNaN)).toBe(true);
    expect(result!.data.slice(16).every(Number.isFinite)).toBe(true);
  }
});

/** A norm of rows and a product of them, with more that `also` makes of both. */
function normAndProduct(
  m: number,
  also: (s: Sketch, x: Node, product: Node) => readonly Node[] = (_, __, product) => [product],
  n = 16,
): Graph {
  const s = new Sketch();
  const x = normed(s, s.input([m, 16]), 'mean square');
  const product = s.matmul(x, s.input([16, n]));
  return s.graph(also(s, x, product));
}

const kindsOf = (graph: Graph, target: Target = gpuTarget): readonly string[] =>
  kernelsOf(graph, target).map(({ kind }) => kind);

test('a norm keeps its kernel where that costs less, or where something else needs it', () => {
  expect(kindsOf(normAndProduct(4))).toEqual(['dot']);
  expect(kindsOf(normAndProduct(4), softwareTarget)).toEqual(['dot']);
  // Many rows, many workgroups, another reader, and products whose operands are packed.
  expect(kindsOf(normAndProduct(5))).toEqual(['row-reduction', 'dot']);
  expect(kindsOf(normAndProduct(1, undefined, 2 ** 23))).toEqual(['row-reduction', 'dot']);
  expect(kindsOf(normAndProduct(4, (s, x, product) => [add(s.b, x, product)]))).toEqual([
    'row-reduction',
    'dot',
  ]);
  expect(kindsOf(normAndProduct(4, (_, x, product) => [x, product]))).toEqual(['row-reduction', 'dot']);
  expect(kindsOf(normAndProduct(1, undefined, 2 ** 17), softwareTarget)).toEqual(['row-reduction', 'dot']);
  expect(kindsOf(normAndProduct(4), wasmTarget)).toEqual(['row-reduction', 'dot']);
});

test('columns that are normed, and not rows, keep their kernel', () => {
  const s = new Sketch();
  const x = s.input([3, 4]);
  const scale = broadcast(s.b, reduceKeep(s.b, 'max', x, [0]), [3, 4]);
  const graph = s.graph([s.matmul(binary(s.b, 'mul', x, scale), s.input([4, 8]))]);
  expect(kindsOf(graph)).toEqual(['row-reduction', 'dot']);
});

test('a kernel gives a product away rather than what is made of its products', () => {
  const s = new Sketch();
  const x = s.input([2, 16]);
  const outputs = [0, 1, 2].map(() => {
    const product = s.matmul(x, s.input([16, 8]));
    return add(s.b, product, broadcast(s.b, s.input([8]), dims(product)));
  });
  const graph = s.graph(outputs);
  // One kernel would bind seven inputs and three results.
  expect(kindsOf(graph, cudaTarget)).toEqual(['dot']);
  expect(kindsOf(graph)).toEqual(['dot', 'dot']);
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  for (const target of [gpuTarget, cudaTarget]) {
    const results = runLoops(target, graph, inputs);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-4));
  }
});

test('a product that needs another one of the same operand has a kernel of its own', () => {
  const s = new Sketch();
  const x = s.input([2, 8]);
  const first = s.matmul(x, s.input([8, 8]));
  const weights = add(s.b, broadcast(s.b, reduceKeep(s.b, 'sum', first, [0]), [8, 8]), s.input([8, 8]));
  const graph = s.graph([first, s.matmul(x, weights)]);
  expect(kindsOf(graph).filter((kind) => kind === 'dot')).toHaveLength(2);
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  const results = runLoops(gpuTarget, graph, inputs);
  interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-4));
});

test('a reduction that is asked for where another product ends has a kernel of its own', () => {
  const s = new Sketch();
  const x = s.input([2, 16]);
  const sums = broadcast(s.b, reduceKeep(s.b, 'sum', x, [1]), [2, 8]);
  const scaled = binary(s.b, 'mul', s.matmul(s.input([2, 8]), s.input([8, 8])), sums);
  const graph = s.graph([s.matmul(scaled, s.input([8, 8]))]);
  expect(kindsOf(graph)).toEqual(['row-reduction', 'dot', 'dot']);
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  for (const target of [gpuTarget, cudaTarget]) {
    const results = runLoops(target, graph, inputs);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-4));
  }
});
