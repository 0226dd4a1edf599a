// Folds over the rows of a product on a GPU: the kernel of the product folds its tiles and stores no product, as the
// loss of a language model wants it. Whatever the sizes, it is what the interpreter computes.

import { expect, test } from 'vitest';

import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { binary, broadcast, reduce, reshape, sub } from '../../../src/ir/build.ts';
import { nodeBytes, type Node } from '../../../src/ir/graph.ts';
import * as sn from '../../../src/index.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  withPrecision,
  type Target,
} from '../../../src/schedule/target.ts';
import { traceFunction } from '../../../src/tensor/derivative/transform.ts';
import { Sketch } from '../../codegen/cases.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import {
  foldings,
  foldingTilings,
  foldsIn,
  graphOf,
  inputsOf,
  kernelsOf,
  pinnedTo,
  sizes,
  type Sizes,
} from './column-cases.ts';

/** Few multiprocessors, so that warp groups of each have several tiles. */
const hopper: Target = {
  ...withPrecision(cudaTarget, 'tf32'),
  warpgroups: true,
  cores: { count: 3, invocations: 2048 },
};

const everyTiling: readonly (readonly [string, Target, readonly ContractTiling['kind'][]])[] = [
  ['staged, WGSL', gpuTarget, ['staged']],
  ['staged, CUDA', cudaTarget, ['staged']],
  ['mma', hopper, ['mma']],
  ['wgmma', hopper, ['wgmma']],
];

test.each(everyTiling)('every legal tiling folds its columns: %s', (kind, target, kinds) => {
  let folded = 0;
  checkLaw(14, sizes, (size) => {
    const of: Sizes = kind === 'wgmma' ? { ...size, dtype: 'bf16', k: 8 * size.k } : size;
    const graph = graphOf(of);
    const legal = foldingTilings(graph, target, kinds);
    if (legal.length === 0) return;
    folded += 1;
    const inputs = inputsOf(graph, of);
    const wanted = interpret(graph, inputs);
    const pinned = pinnedTo(legal[of.pick % legal.length]!);
    const isExact = of.dtype === 'f32' && kind !== 'mma';
    runLoops(target, graph, inputs, pinned).forEach((got, i) =>
      expectClose(got, wanted[i]!, isExact ? 1e-4 : 2e-2),
    );
  });
  expect(folded).toBeGreaterThan(5);
});

const plain: Sizes = {
  dtype: 'f32',
  batch: 1,
  lines: 1,
  m: 64,
  parts: 6,
  more: 0,
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

test.each([0, 17])(
  'a loss is a kernel for the product, one for its rows and one for their sum: %i columns more',
  (more) => {
    for (const target of [gpuTarget, hopper])
      expect(kernelsOf(graphOf({ ...plain, more }), target).map(({ kind }) => kind)).toEqual([
        'dot',
        'row-reduction',
        'row-reduction',
      ]);
  },
);

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
  ['NaN in the last part', [[390, NaN]]],
  ['a last part of −∞ alone', Array.from({ length: 17 }, (_, column) => [384 + column, -Infinity] as const)],
  ['the largest float', [[200, 3.4e38]]],
  ['the least float everywhere', [[-1, -3.4028234663852886e38]]],
] as const)('rows with %s', (_, changes) => {
  for (const [folding, more, target, kind] of [
    ['loss', 17, gpuTarget, 'staged'],
    ['log of sums', 0, gpuTarget, 'staged'],
    ['maximum and sum', 17, gpuTarget, 'staged'],
    ['smoothed loss', 17, gpuTarget, 'staged'],
    ['weighted loss', 17, gpuTarget, 'staged'],
    ['loss', 17, hopper, 'mma'],
    ['loss', 17, hopper, 'wgmma'],
  ] as const) {
    const size: Sizes = { ...plain, folding, more, dtype: kind === 'staged' ? 'f32' : 'bf16' };
    const graph = graphOf(size);
    const inputs = inputsOf(graph, { ...size, isSpecial: false });
    const data = inputs[4]!.data as Float32Array;
    const width = 64 * size.parts + more;
    for (let row = 0; row < size.m; row += 2)
      for (const [column, value] of changes)
        if (column < 0) data.fill(value, row * width, (row + 1) * width);
        else data[row * width + (column % width)] = value;
    const wanted = interpret(graph, inputs);
    const [tiling] = foldingTilings(graph, target, [kind]);
    runLoops(target, graph, inputs, pinnedTo(tiling!)).forEach((got, i) =>
      expectClose(got, wanted[i]!, kind === 'staged' ? 1e-4 : 2e-2),
    );
  }
});

const weight = sn.tensor(Float32Array.from({ length: 300 }, (_, i) => 1 + (i % 7)));
test.each([
  ['a sum', { reduction: 'sum' }],
  ['every loss', { reduction: 'none' }],
  ['targets that do not count', { ignoreIndex: 3 }],
  ['smoothed labels', { labelSmoothing: 0.1 }],
  ['weights of classes', { weight }],
  ['weights, and targets that do not count', { weight, ignoreIndex: 3 }],
] as const)('crossEntropy of a product stores no logits: %s', (_, options) => {
  const { graph } = traceFunction(
    (x: sn.Tensor, w: sn.Tensor, targets: sn.Tensor) =>
      sn.crossEntropy(x.matmul(w.transpose(0, 1)), targets, options),
    [sn.zeros([40, 8]), sn.zeros([300, 8]), sn.zeros([40], { dtype: 'i32' })],
  );
  for (const { writes } of kernelsOf(graph, gpuTarget))
    for (const { node } of writes) expect(nodeBytes(node)).toBeLessThan(4 * 40 * 300);
  const inputs = graph.parameters.map(({ dtype, shape }, i): HostArray => {
    const fixed = shape as readonly number[];
    if (dtype !== 'i32') return randomArray(dtype, fixed, i + 1, 'tame');
    return { dtype, shape: fixed, data: Int32Array.from({ length: 40 }, (__, row) => (row * 37) % 300) };
  });
  const wanted = interpret(graph, inputs);
  runLoops(gpuTarget, graph, inputs).forEach((got, i) => expectClose(got, wanted[i]!, 1e-4));
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
  const left = sub(s.b, z, broadcast(s.b, reshape(s.b, max, [64, 1]), [64, 512]));
  for (const outputs of [
    [z, max],
    // A reader that is no fold, and one that needs a row twice.
    [max, s.b.add('argReduce', [z], { monoid: 'max', axis: 1 }) as Node],
    [reduce(s.b, 'sum', binary(s.b, 'mul', left, left), [1])],
  ])
    expect(foldsIn(kernelsOf(s.graph(outputs), gpuTarget))).toEqual([]);
});

test('machines without tiles and small products are left alone', () => {
  const graph = graphOf(plain);
  for (const target of [softwareTarget, wasmTarget]) expect(foldsIn(kernelsOf(graph, target))).toEqual([]);
  expect(foldsIn(kernelsOf(graphOf({ ...plain, m: 31 }), gpuTarget))).toEqual([]);
  expect(foldsIn(kernelsOf(graphOf({ ...plain, parts: 3 }), gpuTarget))).toEqual([]);
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
