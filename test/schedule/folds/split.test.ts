// Long folds are split by size alone, and legal graphs are what templates can run: both keep the meaning of the graph.

import { describe, expect, test } from 'vitest';

import '../../../src/compile/all.ts';
import { broadcast, reduce } from '../../../src/ir/build.ts';
import { GraphBuilder, topological, type Graph, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Monoid } from '../../../src/ir/ops.ts';
import { verify } from '../../../src/ir/verify.ts';
import { legalise } from '../../../src/schedule/passes/legalise.ts';
import { splitFolds } from '../../../src/schedule/passes/split.ts';
import { gpuTarget, softwareTarget } from '../../../src/schedule/target.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose, randomProgram } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';

function oneInput(shape: readonly number[], make: (b: GraphBuilder, x: Node) => Node): Graph {
  const b = new GraphBuilder();
  const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape });
  return { parameters: [x], outputs: [make(b, x as Node)] };
}

function count(graph: Graph, op: string): number {
  return topological(graph.outputs).filter((node) => node.op === op).length;
}

describe('splitFolds', () => {
  test.each([
    [[20_000], [0]],
    [[3, 9_001], [1]],
    [[9_001, 6], [0]],
    [
      [100, 2, 101],
      [0, 2],
    ],
  ])('splits a long reduction of %j over %j into two and keeps its value', (shape, axes) => {
    for (const monoid of ['sum', 'max', 'min', 'prod'] as const satisfies readonly Monoid[]) {
      const graph = oneInput(shape, (b, x) => reduce(b, monoid, x, axes));
      const split = splitFolds(graph, softwareTarget);
      verify(split, 'splitFolds');
      expect(count(split, 'reduce')).toBe(2);
      const input = randomArray('f32', shape, 7, 'tame');
      expectClose(interpret(split, [input])[0]!, interpret(graph, [input])[0]!, 1e-5);
    }
  });

  test('leaves short rows and many rows alone', () => {
    for (const target of [gpuTarget, softwareTarget])
      for (const [shape, axis] of [
        [[4096], 0],
        [[1024, 65_536], 1],
        [[512, 256], 0],
      ] as const) {
        const graph = oneInput(shape, (b, x) => reduce(b, 'sum', x, [axis]));
        expect(count(splitFolds(graph, target), 'reduce')).toBe(1);
      }
  });

  test('a workgroup takes rows that are too long for one invocation', () => {
    for (const [shape, axis, parts] of [
      [[4, 65_536], 1, 1],
      [[16_777_216], 0, 2],
      [[4096, 64], 0, 1],
      [[65_536, 64], 0, 2],
    ] as const) {
      const graph = oneInput(shape, (b, x) => reduce(b, 'sum', x, [axis]));
      expect(count(splitFolds(graph, gpuTarget), 'reduce')).toBe(parts);
    }
  });

  test.each([false, true])('splits a long scan into chunks, reverse %s', (reverse) => {
    for (const [exclusive, monoid] of [
      [false, 'sum'],
      [true, 'max'],
      [true, 'sum'],
    ] as const) {
      const graph = oneInput(
        [2, 5000],
        (b, x) => b.add('scan', [x], { monoid, axis: 1, reverse, exclusive }) as Node,
      );
      const split = splitFolds(graph, softwareTarget);
      verify(split, 'splitFolds');
      expect(count(split, 'scan')).toBe(2);
      const input = randomArray('f32', [2, 5000], 3, 'tame');
      expectClose(interpret(split, [input])[0]!, interpret(graph, [input])[0]!, 1e-4);
    }
  });

  test('a scan of millions is split until no chunk is long', () => {
    const graph = oneInput(
      [3_000_000],
      (b, x) => b.add('scan', [x], { monoid: 'sum', axis: 0, reverse: false, exclusive: false }) as Node,
    );
    const split = splitFolds(graph, gpuTarget);
    for (const node of topological(split.outputs)) {
      if (node.op === 'scan') expect((node as NodeOf<'scan'>).shape[node.attrs.axis]).toBeLessThan(2048);
    }
  });
});

/** [1,k]·[k,n] over the middle of a batch, contracting two axes. */
function product(dtype: 'f32' | 'f16', batch: number, outer: number, k: number, n: number): Graph {
  const b = new GraphBuilder();
  const shapes = [
    [outer, batch, k],
    [n, k, outer, batch],
  ];
  const parameters = shapes.map((shape, index) =>
    b.add('parameter', [], { index, name: `x${index}`, dtype, shape }),
  );
  const attrs = { lhsBatch: [1], rhsBatch: [3], lhsContract: [2, 0], rhsContract: [1, 2], dtype };
  return { parameters, outputs: [b.add('dot', parameters as unknown as Node[], attrs) as Node] };
}

describe('splitFolds of contractions', () => {
  test.each(['f32', 'f16'] as const)(
    'splits a long %s product of few results and keeps its value',
    (dtype) => {
      const graph = product(dtype, 2, 3, 40_000, 1);
      const split = splitFolds(graph, softwareTarget);
      verify(split, 'splitFolds');
      expect(count(split, 'reduce')).toBe(1);
      const inputs = graph.parameters.map(({ shape }, i) => randomArray(dtype, shape as number[], i, 'tame'));
      const [whole, parts] = [interpret(graph, inputs), interpret(split, inputs)];
      expectClose(parts[0]!, whole[0]!, dtype === 'f16' ? 2e-3 : 1e-5);
    },
  );

  test('sums the parts of halves in f32', () => {
    const split = splitFolds(product('f16', 2, 3, 40_000, 1), softwareTarget);
    const dots = topological(split.outputs).filter((node) => node.op === 'dot');
    expect(dots.map(({ dtype }) => dtype)).toEqual(['f32']);
  });

  test('splits the channels of a convolution with few results, group by group', () => {
    const b = new GraphBuilder();
    const shapes = [
      [2, 2 * 96, 6, 7],
      [2 * 3, 96, 5, 5],
    ];
    const parameters = shapes.map((shape, index) =>
      b.add('parameter', [], { index, name: `x${index}`, dtype: 'f32', shape }),
    );
    const attrs = {
      strides: [2, 1],
      padLow: [0, 1],
      padHigh: [1, 0],
      lhsDilation: [1, 1],
      rhsDilation: [1, 1],
      groups: 2,
    };
    const result = b.add('conv', parameters as unknown as Node[], attrs) as Node;
    const graph: Graph = { parameters, outputs: [result] };
    const split = splitFolds(graph, softwareTarget);
    verify(split, 'splitFolds');
    expect(count(split, 'reduce')).toBe(1);
    const inputs = shapes.map((shape, i) => randomArray('f32', shape, i, 'tame'));
    expectClose(interpret(split, inputs)[0]!, interpret(graph, inputs)[0]!, 1e-5);
  });

  test('leaves products alone that fill the machine, are short, or do not divide', () => {
    for (const target of [gpuTarget, softwareTarget]) {
      for (const [batch, outer, k, n] of [
        [64, 1, 4096, 64],
        [1, 1, 300, 1],
        [1, 1, 39_989, 1],
      ] as const)
        expect(count(splitFolds(product('f32', batch, outer, k, n), target), 'reduce')).toBe(0);
    }
  });
});

describe('legalise', () => {
  test('keeps the meaning of random programs', () => {
    const programs = randomProgram({ dtypes: ['f32', 'i32', 'u32', 'bool', 'f16', 'bf16'], values: 'tame' });
    checkLaw(300, programs, ({ graph, inputs }) => {
      const legal = legalise(graph, gpuTarget);
      verify(legal, 'legalise');
      const expected = interpret(graph, inputs);
      interpret(legal, inputs).forEach((value, i) =>
        expectClose(value, expected[i]!, value.dtype === 'bf16' ? 2e-2 : 4e-3),
      );
    });
  });

  test('a fold over nothing is the identity', () => {
    const graph = oneInput([3, 0], (b, x) => reduce(b, 'max', x, [1]));
    expect(count(legalise(graph, gpuTarget), 'reduce')).toBe(0);
    expect([
      ...interpret(legalise(graph, gpuTarget), [randomArray('f32', [3, 0], 1, 'tame')])[0]!.data,
    ]).toEqual([-Infinity, -Infinity, -Infinity]);
  });

  test('refuses a dtype the target has no arithmetic for, and names it', () => {
    const b = new GraphBuilder();
    const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f64', shape: [2] });
    const graph: Graph = { parameters: [x], outputs: [broadcast(b, x as Node, [3, 2])] };
    expect(() => legalise(graph, gpuTarget)).toThrow(/f64\[2\] is not supported on wgsl.*\n.*wasm/);
  });
});
