import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Node } from '../../src/ir/graph.ts';
import type { FixedShape } from '../../src/ir/shape.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { randomNumbers, record, values, type Trial } from './differences.ts';
import { convTrial, trials } from './trials.ts';

function inner(a: HostArray, b: HostArray): { sum: number; scale: number } {
  let [sum, scale] = [0, 0];
  for (let i = 0; i < a.data.length; i++) {
    const term = Number(a.data[i]) * Number(b.data[i]);
    sum += term;
    scale += Math.abs(term);
  }
  return { sum, scale };
}

/** ⟨f(x,w), g⟩ = ⟨x, gx⟩ = ⟨w, gw⟩: what makes gx and gw the adjoints of a bilinear f, whatever f's attributes are. */
function checkAdjoint({ inputs, build }: Trial, random: () => number): void {
  const graph = record(inputs, build);
  const gradient = gradientGraph(graph, [0, 1], { seedAll: true });
  verify(gradient, 'gradientGraph');
  const g = values(graph.outputs[0]!.shape as FixedShape, random);
  const [y, gx, gw] = interpret(gradient, [...inputs, g]) as [HostArray, HostArray, HostArray];
  const pairing = inner(y, g);
  const tolerance = 1e-12 * (1 + pairing.scale);
  expect(Math.abs(inner(inputs[0]!, gx).sum - pairing.sum)).toBeLessThan(tolerance);
  expect(Math.abs(inner(inputs[1]!, gw).sum - pairing.sum)).toBeLessThan(tolerance);
}

describe('the pullbacks of a bilinear op are its adjoints', () => {
  it('conv with any strides, paddings, dilations and groups', () => {
    const property = fc.property(convTrial, fc.integer(), (sample, seed) =>
      checkAdjoint(sample, randomNumbers(seed)),
    );
    fc.assert(property, { numRuns: 800 });
  });

  it('dot with any batch and contracting axes', () => {
    const dot = trials.dot as fc.Arbitrary<Trial>;
    const property = fc.property(dot, fc.integer(), (sample, seed) =>
      checkAdjoint(sample, randomNumbers(seed)),
    );
    fc.assert(property, { numRuns: 300 });
  });
});

describe('a contraction without elements', () => {
  const attrs = { strides: [2], padLow: [1], padHigh: [1], lhsDilation: [1], rhsDilation: [1], groups: 1 };

  it.each([
    ['no batch', [0, 1, 4], [1, 1, 3]],
    ['no input', [1, 1, 0], [1, 1, 2]],
    ['no channels', [1, 0, 4], [2, 0, 3]],
    ['no outputs', [1, 1, 4], [0, 1, 3]],
    ['a kernel longer than the input', [1, 1, 2], [1, 1, 9]],
  ])('conv: %s gives zeros', (_, x, w) => {
    const inputs = [values(x, Math.random), values(w, Math.random)];
    const graph = record(inputs, (b, nodes) => b.add('conv', nodes, attrs) as Node);
    const gradient = gradientGraph(graph, [0, 1], { seedAll: true });
    const g = values(graph.outputs[0]!.shape as FixedShape, Math.random);
    const [, gx, gw] = interpret(gradient, [...inputs, g]);
    expect([gx!.shape, gw!.shape]).toEqual([x, w]);
    for (const zero of [...gx!.data, ...gw!.data]) expect(zero).toBe(0);
  });
});

const parameters = (dtype: 'f16' | 'f32'): HostArray[] => [
  { dtype, shape: [2, 3], data: new Float32Array(6) },
  { dtype, shape: [3, 4], data: new Float32Array(12) },
];

describe('layout', () => {
  const matmul = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f32' } as const;

  it('the gradients of a matmul are two dots, without permutes', () => {
    const graph = record(parameters('f32'), (b, nodes) => b.add('dot', nodes, matmul) as Node);
    const { outputs } = gradientGraph(graph, [0, 1]);
    expect(outputs.map((node) => node.op)).toEqual(['dot', 'dot', 'dot']);
  });

  it('a dot that widens its result gives gradients in the dtype of its operands', () => {
    const graph = record(parameters('f16'), (b, nodes) => b.add('dot', nodes, matmul) as Node);
    const { outputs } = gradientGraph(graph, [0, 1]);
    expect(outputs.map((node) => node.dtype)).toEqual(['f32', 'f16', 'f16']);
  });
});
