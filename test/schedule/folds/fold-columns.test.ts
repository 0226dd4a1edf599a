// Folds over the rows of a product on a GPU: the kernel of the product folds its tiles and stores no product, as the
// loss of a language model wants it. Whatever the sizes, it is what the interpreter computes.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { isLegal, legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import { contractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { optimise } from '../../../src/compile.ts';
import { add, binary, broadcast, cast, neg, reduce, reshape, sub } from '../../../src/ir/build.ts';
import { dims, nodeBytes, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Kernel } from '../../../src/schedule/kernel.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { logSoftmax, logSumExp, pick } from '../../../src/tensor/formula/elementwise.ts';
import { Sketch } from '../../codegen/cases.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';

const foldings = ['loss', 'log of sums', 'maximum and sum', 'smallest square'] as const;

interface Sizes {
  readonly dtype: 'f32' | 'f16' | 'bf16';
  /** Rows: one axis or two, and batches of products. */
  readonly batch: number;
  readonly lines: number;
  readonly m: number;
  readonly parts: number;
  readonly k: number;
  readonly turnRhs: boolean;
  readonly bias: boolean;
  /** Something of every element is added, whose values are special. */
  readonly isSpecial: boolean;
  readonly folding: (typeof foldings)[number];
  readonly flat: boolean;
  readonly pick: number;
}

const sizes: fc.Arbitrary<Sizes> = fc.record({
  dtype: fc.constantFrom('f32', 'f32', 'f16', 'bf16'),
  batch: fc.constantFrom(1, 1, 2),
  lines: fc.constantFrom(1, 1, 2),
  m: fc.integer({ min: 32, max: 70 }),
  parts: fc.integer({ min: 4, max: 5 }),
  k: fc.integer({ min: 1, max: 20 }),
  turnRhs: fc.boolean(),
  bias: fc.boolean(),
  isSpecial: fc.boolean(),
  folding: fc.constantFrom(...foldings),
  flat: fc.boolean(),
  pick: fc.nat(),
});

/** The product's rows, and folds of them. */
function graphOf({
  dtype,
  batch,
  lines,
  m,
  parts,
  k,
  turnRhs,
  bias,
  isSpecial,
  folding,
  flat,
}: Sizes): Graph {
  const s = new Sketch();
  const v = 64 * parts;
  const x = s.input([batch, lines, m, k], dtype);
  const w = s.input([batch, ...(turnRhs ? [v, k] : [k, v])], dtype);
  const places = s.input([batch * lines * m], 'i32');
  const more = [s.input([v]), s.input([batch, lines, m, v])] as const;
  const product = s.dot(x, w, [0], [0], [3], [turnRhs ? 2 : 1]);
  let z = cast(s.b, product, 'f32');
  if (bias) z = add(s.b, z, broadcast(s.b, more[0], dims(z)));
  if (isSpecial) z = add(s.b, z, more[1]);
  if (flat) z = reshape(s.b, z, [batch * lines * m, v]);
  return s.graph(foldsOf(s, z, reshape(s.b, places, dims(z).slice(0, -1)), folding));
}

function foldsOf(s: Sketch, z: Node, places: Node, folding: Sizes['folding']): Node[] {
  const { b } = s;
  const last = dims(z).length - 1;
  switch (folding) {
    case 'loss': {
      const loss = neg(b, pick(b, logSoftmax(b, z, [last]), places, last));
      return [
        loss,
        reduce(
          b,
          'sum',
          loss,
          dims(loss).map((_, axis) => axis),
        ),
      ];
    }
    case 'log of sums':
      return [logSumExp(b, z, [last]), pick(b, z, places, last)];
    case 'maximum and sum':
      return [reduce(b, 'max', z, [last]), reduce(b, 'sum', binary(b, 'mul', z, 0.25), [last])];
    case 'smallest square':
      return [reduce(b, 'min', binary(b, 'mul', z, z), [last])];
    default:
      return folding satisfies never;
  }
}

function kernelsOf(graph: Graph, target: Target): readonly Kernel[] {
  return scheduleGraph(optimise(graph, target, true), target, new Map()).kernels;
}

function foldsIn(kernels: readonly Kernel[]): readonly Kernel[] {
  return kernels.filter(({ body }) => body.kind === 'contract' && body.folds !== undefined);
}

/** Places of which some are none. */
function inputsOf(graph: Graph, { parts, isSpecial }: Sizes): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, i) => {
    const fixed = shape as readonly number[];
    if (dtype !== 'i32') return randomArray(dtype, fixed, i + 1, i === 4 && isSpecial ? 'special' : 'tame');
    const places = Int32Array.from({ length: fixed[0]! }, (_, row) => ((row * 37) % (64 * parts + 9)) - 4);
    return { dtype, shape: fixed, data: places };
  });
}

test.each([gpuTarget, { ...cudaTarget, matrixUnits: [] }])(
  'every legal tiling folds its columns, on $name',
  (target) => {
    checkLaw(24, sizes, (size) => {
      const graph = graphOf(size);
      const [kernel] = foldsIn(kernelsOf(graph, target));
      if (kernel?.body.kind !== 'contract') throw new Error('the product is not folded');
      const legal = legalTilings(contractProblem(kernel, kernel.body), target);
      const tiling = legal[size.pick % legal.length]!;
      const inputs = inputsOf(graph, size);
      const wanted = interpret(graph, inputs);
      runLoops(target, graph, inputs, (problem) =>
        problem.folds !== undefined && isLegal(tiling, problem, target) ? tiling : undefined,
      ).forEach((got, i) => expectClose(got, wanted[i]!, size.dtype === 'f32' ? 1e-4 : 2e-2));
    });
  },
);

const plain: Sizes = {
  dtype: 'f32',
  batch: 1,
  lines: 1,
  m: 64,
  parts: 6,
  k: 8,
  turnRhs: true,
  bias: true,
  isSpecial: true,
  folding: 'loss',
  flat: true,
  pick: 0,
};

test.each(foldings)('no array of a product is stored: %s', (folding) => {
  const rows = plain.m * 64 * plain.parts;
  for (const target of [gpuTarget, cudaTarget]) {
    const kernels = kernelsOf(graphOf({ ...plain, folding }), target);
    expect(foldsIn(kernels)).toHaveLength(1);
    for (const { writes } of kernels)
      for (const { node } of writes) expect(nodeBytes(node)).toBeLessThan(4 * rows);
  }
});

test('a loss is a kernel for the product, one for its rows and one for their sum', () => {
  expect(kernelsOf(graphOf(plain), gpuTarget).map(({ kind }) => kind)).toEqual([
    'dot',
    'row-reduction',
    'row-reduction',
  ]);
});

test.each([
  ['-Infinity in one part', [[3, -Infinity]]],
  ['-Infinity everywhere', [[-1, -Infinity]]],
  ['+Infinity', [[70, Infinity]]],
  [
    'both infinities',
    [
      [70, Infinity],
      [3, -Infinity],
    ],
  ],
  ['NaN', [[200, NaN]]],
  ['the largest float', [[200, 3.4e38]]],
  ['the least float everywhere', [[-1, -3.4028234663852886e38]]],
] as const)('rows with %s', (_, changes) => {
  for (const folding of ['loss', 'log of sums', 'maximum and sum'] as const) {
    const size = { ...plain, folding };
    const graph = graphOf(size);
    const inputs = inputsOf(graph, { ...size, isSpecial: false });
    const data = inputs[4]!.data as Float32Array;
    const width = 64 * size.parts;
    for (let row = 0; row < size.m; row += 2)
      for (const [column, value] of changes)
        if (column < 0) data.fill(value, row * width, (row + 1) * width);
        else data[row * width + column] = value;
    const wanted = interpret(graph, inputs);
    runLoops(gpuTarget, graph, inputs).forEach((got, i) => expectClose(got, wanted[i]!, 1e-4));
  }
});

test('equal logits have the loss of a fair guess', () => {
  const size = { ...plain, isSpecial: false, bias: false };
  const graph = graphOf(size);
  const inputs = inputsOf(graph, size);
  (inputs[0]!.data as Float32Array).fill(0);
  (inputs[2]!.data as Int32Array).fill(17);
  const [losses] = runLoops(gpuTarget, graph, inputs);
  for (const loss of losses!.data) expect(Number(loss)).toBeCloseTo(Math.log(64 * size.parts), 5);
});

test('what somebody else reads is stored, and folded as before', () => {
  const s = new Sketch();
  const z = s.matmul(s.input([64, 8]), s.input([8, 512]));
  const max = reduce(s.b, 'max', z, [1]);
  for (const outputs of [
    [z, max],
    // A reader that is no fold, and one that needs a row twice.
    [max, s.b.add('argReduce', [z], { monoid: 'max', axis: 1 }) as Node],
    [reduce(s.b, 'sum', sub(s.b, z, broadcast(s.b, reshape(s.b, max, [64, 1]), [64, 512])), [1])],
  ])
    expect(foldsIn(kernelsOf(s.graph(outputs), gpuTarget))).toEqual([]);
});

test('machines without tiles, small products and matrix units are left alone', () => {
  const graph = graphOf(plain);
  for (const target of [softwareTarget, wasmTarget]) expect(foldsIn(kernelsOf(graph, target))).toEqual([]);
  expect(foldsIn(kernelsOf(graphOf({ ...plain, m: 31 }), gpuTarget))).toEqual([]);
  expect(foldsIn(kernelsOf(graphOf({ ...plain, parts: 3 }), gpuTarget))).toEqual([]);
  expect(foldsIn(kernelsOf(graphOf({ ...plain, dtype: 'bf16' }), cudaTarget))).toEqual([]);
});

test('every element of a result may be written beside the folds', () => {
  const s = new Sketch();
  const parts = reshape(s.b, s.matmul(s.input([40, 12]), s.input([12, 320])), [40, 5, 64]);
  const max = reduce(s.b, 'max', parts, [2]);
  const shifted = sub(s.b, parts, broadcast(s.b, reshape(s.b, max, [40, 5, 1]), [40, 5, 64]));
  const graph = s.graph([shifted, max]);
  expect(kernelsOf(graph, gpuTarget)).toHaveLength(1);
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  const wanted = interpret(graph, inputs);
  runLoops(gpuTarget, graph, inputs).forEach((got, i) => expectClose(got, wanted[i]!, 1e-5));
});
