// Convolutions from a part of the padded input, and what leaves products in blocks, for registers of eight and sixteen lanes:
// whatever the sizes, they are what the graph says, as Loops and as C, and whole registers are computed at a time.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import type { Loop } from '../../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../../src/codegen/loop/print.ts';
import { legalTilings } from '../../../../src/codegen/template/contract/choose.ts';
import { contractProblem } from '../../../../src/codegen/template/contract/problem.ts';
import { binary, unary } from '../../../../src/ir/build.ts';
import type { Graph, Node } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { scheduleGraph } from '../../../../src/schedule/schedule.ts';
import { cTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import { runLoops } from '../../../support/execute.ts';
import { seed } from '../../../support/property.ts';
import { expectClose } from '../../../support/random/graph.ts';
import { randomArray } from '../../../support/random/values.ts';
import { CKernels, compiler, loopsOf, runCompiled, type Compiled } from '../../../support/text/c.ts';
import { Sketch } from '../../cases.ts';
import { convolution, convolutionOf } from '../convolutions.ts';

type Lanes = 8 | 16;
const wide = (lanes: Lanes): Target => withVectors(cTarget, { lanes, registers: lanes === 8 ? 16 : 32 });

/** The graph with a tiling in `kinds`, the one of that number. */
function pinned(graph: Graph, target: Target, kinds: readonly string[], pick: number): Compiled | undefined {
  const kernel = scheduleGraph(graph, target, new Map()).kernels.find(({ body }) => body.kind === 'contract');
  if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
  const all = legalTilings(contractProblem(kernel, kernel.body), target);
  const tilings = all.filter(({ kind }) => kinds.includes(kind));
  if (tilings.length === 0) return undefined;
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  return { graph, inputs, pinned: () => tilings[pick % tilings.length]! };
}

function isWhatTheGraphSays(run: Compiled, lanes: Lanes): void {
  const { graph, inputs } = run;
  const plain = runLoops(wide(lanes), graph, inputs, run.pinned);
  interpret(graph, inputs).forEach((want, i) => expectClose(plain[i]!, want, 1e-5));
  const widen = (loop: Loop): Loop => widenVectors(loop, lanes);
  expect(runLoops(wide(lanes), graph, inputs, run.pinned, new Map(), widen)).toEqual(plain);
}

test('convolutions of any shape, from a part of the padded input', () => {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  fc.assert(
    fc.property(convolution, fc.constantFrom<Lanes>(8, 16), (sizes, lanes) => {
      const run = pinned(convolutionOf(sizes), wide(lanes), ['image', 'direct'], sizes.pick);
      if (run !== undefined) isWhatTheGraphSays(run, lanes);
    }),
    { numRuns: 60, seed },
  );
});

/** x · sigmoid x of a node. */
function swish(s: Sketch, x: Node): Node {
  const sigmoid = unary(s.b, 'recip', binary(s.b, 'add', unary(s.b, 'exp', unary(s.b, 'neg', x)), 1));
  return binary(s.b, 'mul', x, sigmoid);
}

interface Windows {
  readonly groups: number;
  readonly outputs: number;
  readonly lines: number;
  readonly width: number;
  readonly taps: number;
  readonly stride: number;
}

function windows({ groups, outputs, lines, width, taps, stride }: Windows): Graph {
  const s = new Sketch();
  const x = s.input([1, groups, lines, width]);
  const w = s.input([groups * outputs, 1, taps, taps]);
  const padding = [(taps - 1) / 2, (taps - 1) / 2];
  const z = s.conv(x, w, { strides: [stride, stride], padLow: padding, padHigh: padding, groups });
  return s.graph([swish(s, z)]);
}

const depthwise: readonly Windows[] = [
  { groups: 2, outputs: 1, lines: 14, width: 14, taps: 3, stride: 1 },
  { groups: 3, outputs: 1, lines: 7, width: 7, taps: 5, stride: 1 },
  { groups: 2, outputs: 1, lines: 9, width: 56, taps: 7, stride: 1 },
  { groups: 2, outputs: 3, lines: 21, width: 13, taps: 3, stride: 2 },
  // A single position, of which a group of four has no other lanes.
  { groups: 2, outputs: 3, lines: 1, width: 1, taps: 3, stride: 1 },
];

test('depthwise ones, in every block of lines', () => {
  for (const sizes of depthwise)
    for (const lanes of [8, 16] as const)
      for (let pick = 0; pick < 3; pick++)
        isWhatTheGraphSays(pinned(windows(sizes), wide(lanes), ['direct'], pick)!, lanes);
});

function product(m: number, k: number, n: number): Graph {
  const s = new Sketch();
  return s.graph([swish(s, s.matmul(s.input([m, k]), s.input([k, n])))]);
}

const products = [
  [5, 7, 49],
  [14, 12, 35],
  [13, 40, 66],
  [3, 9, 3],
] as const;

test('products whose last columns are part of a group, or of a panel', () => {
  for (const [m, k, n] of products)
    for (const lanes of [8, 16] as const)
      for (let pick = 0; pick < 3; pick++)
        isWhatTheGraphSays(pinned(product(m, k, n), wide(lanes), ['packed'], pick)!, lanes);
});

test.skipIf(compiler === undefined)('compiled C computes the same', () => {
  const widen = (loop: Loop): Loop => widenVectors(loop, 8);
  const runs = [
    ...depthwise.map((sizes) => pinned(windows(sizes), wide(8), ['direct'], 1)!),
    ...products.map(([m, k, n]) => pinned(product(m, k, n), wide(8), ['packed'], 0)!),
  ];
  const results = runCompiled(new CKernels(loopsOf(wide(8), runs, widen)), wide(8), runs, widen);
  runs.forEach(({ graph, inputs }, i) =>
    interpret(graph, inputs).forEach((want, j) => expectClose(results[i]![j]!, want, 1e-5)),
  );
});

test('whole registers are computed: by taps, and where sums leave', () => {
  const textOf = (graph: Graph, kind: string): string => {
    const [loop] = loopsOf(wide(16), [pinned(graph, wide(16), [kind], 0)!]);
    return printLoop(widenVectors(loop!, 16));
  };
  const calls = (text: string): number => text.split(/\bexp\(/).length - 1;
  // One for whole registers, one for the groups that are left, and one for the group that is not full.
  expect(calls(textOf(windows(depthwise[1]!), 'direct'))).toBe(3);
  // Two registers of a full panel; one at a time of the last one; groups; and the group that is not full.
  expect(calls(textOf(product(14, 12, 35), 'packed'))).toBe(5);
  expect(calls(textOf(product(14, 12, 64), 'packed'))).toBe(2);
});
