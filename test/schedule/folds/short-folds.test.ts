// Folds of a few elements that many read: the shares of a token's experts are computed in the kernel of the sum that they are
// for, whose results are those of the interpreter.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { binary, broadcast, reduce, reduceKeep, reshape } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { Sketch } from '../../codegen/cases.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';

interface Mixture {
  readonly rows: number;
  readonly used: number;
  readonly width: number;
}

/** Σ softmax(scores) · results over what is used, with the shares themselves if they are asked for. */
function mixture({ rows, used, width }: Mixture, also: 'nothing' | 'shares' = 'nothing'): Graph {
  const s = new Sketch();
  const { b } = s;
  const shares = s.softmax(s.input([rows, used]), 1);
  const results = s.input([rows, used, width]);
  const spread = broadcast(b, reshape(b, shares, [rows, used, 1]), dims(results));
  const sum = reduce(b, 'sum', binary(b, 'mul', results, spread), [1]);
  return s.graph(also === 'shares' ? [sum, shares] : [sum]);
}

const kindsOf = (graph: Graph, target: Target): readonly string[] =>
  scheduleGraph(graph, target, new Map()).kernels.map(({ kind }) => kind);

const targets: readonly Target[] = [gpuTarget, softwareTarget, cudaTarget, wasmTarget];

test.each(targets)('shares of few are part of the sum that they are for, on $name', (target) => {
  const sizes: fc.Arbitrary<Mixture> = fc.record({
    rows: fc.integer({ min: 1, max: 4 }),
    used: fc.integer({ min: 1, max: 4 }),
    width: fc.integer({ min: 64, max: 200 }),
  });
  checkLaw(30, sizes, (given) => {
    const graph = mixture(given);
    if (target.machine === 'gpu') expect(kindsOf(graph, target)).toEqual(['row-reduction']);
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 1, 'tame'),
    );
    const [found] = runLoops(target, graph, inputs);
    expectClose(found!, interpret(graph, inputs)[0]!, 1e-5);
  });
});

test('infinite scores and such that are no numbers give what they give by kernels of their own', () => {
  const graph = mixture({ rows: 4, used: 3, width: 64 });
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  [NaN, 1, 2, Infinity, 1, 2, -Infinity, 1, 2, 80, -80, 1].forEach((score, i) => {
    inputs[0]!.data[i] = score;
  });
  const [found] = runLoops(gpuTarget, graph, inputs);
  expectClose(found!, interpret(graph, inputs)[0]!, 1e-5);
});

test('folds of more elements, for fewer readers, or that are results keep their kernel', () => {
  const kinds = (given: Mixture, also?: 'shares'): number => kindsOf(mixture(given, also), gpuTarget).length;
  expect(kinds({ rows: 1, used: 2, width: 1024 })).toBe(1);
  expect(kinds({ rows: 1, used: 5, width: 1024 })).toBe(2);
  expect(kinds({ rows: 5, used: 4, width: 1024 })).toBe(2);
  expect(kinds({ rows: 1, used: 2, width: 16 })).toBe(2);
  expect(kinds({ rows: 1, used: 2, width: 1024 }, 'shares')).toBe(2);
  // What a product of many rows reads is computed once.
  const s = new Sketch();
  const scale = broadcast(s.b, reduceKeep(s.b, 'max', s.input([8, 2]), [1]), [8, 2]);
  const graph = s.graph([s.matmul(binary(s.b, 'add', scale, 1), s.input([2, 4096]))]);
  expect(kindsOf(graph, softwareTarget)).toEqual(['row-reduction', 'dot']);
});

test('a fold of folds is one, term by term', () => {
  const s = new Sketch();
  const { b } = s;
  const x: Node = s.input([2, 2]);
  const most = reduce(b, 'prod', reduce(b, 'min', x, [0]), [0]);
  const graph = s.graph([binary(b, 'mul', broadcast(b, most, [1000]), s.input([1000]))]);
  expect(kindsOf(graph, gpuTarget)).toEqual(['map']);
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  expectClose(runLoops(gpuTarget, graph, inputs)[0]!, interpret(graph, inputs)[0]!, 1e-6);
});
