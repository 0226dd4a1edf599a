// Schedules of dot and conv: each legal one of any problem computes the same, the model's choice is
// among them, and it moves the right way with the shape.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { contractProblem, type ContractProblem } from '../../../src/codegen/template/contract/problem.ts';
import {
  candidateTilings,
  chosenTiling,
  isLegal,
  legalTilings,
} from '../../../src/codegen/template/contract/choose.ts';
import { add, binary, broadcast } from '../../../src/ir/build.ts';
import { dims, type Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { gpuTarget, softwareTarget, wasmTarget, type Target } from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';
import { convolution, convolutionOf } from './convolutions.ts';

interface Product {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly turnLhs: boolean;
  readonly turnRhs: boolean;
  readonly prologue: boolean;
  readonly epilogue: boolean;
  readonly pick: number;
}

/** Sizes around the edges of tiles and vectors. */
const size = fc.oneof(fc.constantFrom(1, 2, 3, 4, 8, 16, 32, 64), fc.integer({ min: 1, max: 70 }));
const product: fc.Arbitrary<Product> = fc.record({
  batch: fc.integer({ min: 1, max: 3 }),
  m: size,
  n: size,
  k: size,
  turnLhs: fc.boolean(),
  turnRhs: fc.boolean(),
  prologue: fc.boolean(),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

function graphOf({ batch, m, n, k, turnLhs, turnRhs, prologue, epilogue }: Product): Graph {
  const s = new Sketch();
  const x = s.input([batch, ...(turnLhs ? [k, m] : [m, k])]);
  const y = s.input([batch, ...(turnRhs ? [n, k] : [k, n])]);
  const scaled = prologue ? binary(s.b, 'mul', x, 0.5) : x;
  const z = s.dot(scaled, y, [0], [0], [turnLhs ? 1 : 2], [turnRhs ? 2 : 1]);
  if (!epilogue) return s.graph([z]);
  const biased = add(s.b, z, broadcast(s.b, s.input([n]), dims(z)));
  return s.graph([biased, binary(s.b, 'max', biased, 0)]);
}

function problemOf(graph: Graph, target: Target): ContractProblem {
  const { kernels } = scheduleGraph(graph, target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract')!;
  if (kernel.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}

describe.each([gpuTarget, softwareTarget, wasmTarget])('on $name', (target) => {
  test('every legal schedule of a product computes it', () => {
    checkLaw(150, product, (sizes) => {
      const graph = graphOf(sizes);
      const inputs = graph.parameters.map(({ dtype, shape }, i) =>
        randomArray(dtype, shape as number[], i + 1, 'tame'),
      );
      const legal = legalTilings(problemOf(graph, target), target);
      const schedule = legal[sizes.pick % legal.length]!;
      const results = runLoops(target, graph, inputs, () => schedule);
      interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-5));
    });
  });

  test('every legal schedule of a convolution computes it', () => {
    checkLaw(200, convolution, (sizes) => {
      const graph = convolutionOf(sizes);
      const inputs = graph.parameters.map(({ dtype, shape }, i) =>
        randomArray(dtype, shape as number[], i + 1, 'tame'),
      );
      const legal = legalTilings(problemOf(graph, target), target);
      const own = target.machine === 'cpu' ? ['image', 'direct'] : ['window'];
      const windows = legal.filter(({ kind }) => own.includes(kind));
      const pool = sizes.pick % 3 === 0 ? legal : windows;
      const schedule = pool[sizes.pick % pool.length]!;
      const results = runLoops(target, graph, inputs, () => schedule);
      interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, 1e-5));
    });
  });

  test('candidates are few, legal, and begin with the choice', () => {
    checkLaw(200, product, (sizes) => {
      const problem = problemOf(graphOf(sizes), target);
      const candidates = candidateTilings(problem, target);
      expect(candidates.length).toBeGreaterThan(0);
      expect(candidates.length).toBeLessThanOrEqual(8);
      for (const candidate of candidates) expect(isLegal(candidate, problem, target)).toBe(true);
      expect(candidates[0]).toEqual(chosenTiling(problem, target));
      expect(new Set(candidates.map((one) => JSON.stringify(one))).size).toBe(candidates.length);
    });
  });
});

function matmul(m: number, k: number, n: number): Graph {
  const s = new Sketch();
  return s.graph([s.matmul(s.input([m, k]), s.input([k, n]))]);
}

function chosen(target: Target, graph: Graph): ReturnType<typeof chosenTiling> {
  return chosenTiling(problemOf(graph, target), target);
}

test('a GPU stages large products and shares k of skinny ones', () => {
  expect(chosen(gpuTarget, matmul(1024, 1024, 1024))).toMatchObject({ kind: 'staged', rows: 8, columns: 8 });
  expect(chosen(gpuTarget, matmul(1, 1024, 4096))).toMatchObject({ kind: 'split-k', along: 'n' });
  expect(chosen(gpuTarget, matmul(4096, 1024, 1))).toMatchObject({ kind: 'split-k', along: 'k', flip: true });
});

test('the software adapter keeps large tiles of large products, and reads whole lines of a single row', () => {
  expect(chosen(softwareTarget, matmul(512, 512, 512))).toMatchObject({ rows: 8, columns: 16 });
  expect(chosen(softwareTarget, matmul(1, 1024, 4096))).toMatchObject({ rows: 1, columns: 64 });
});

test('a schedule that was pinned for other sizes or another machine is not used', () => {
  const graph = matmul(3, 5, 6);
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  const foreign = {
    kind: 'staged',
    flip: false,
    rows: 8,
    columns: 8,
    tileM: 64,
    tileN: 64,
    tileK: 16,
  } as const;
  const results = runLoops(softwareTarget, graph, inputs, () => foreign);
  expectClose(results[0]!, interpret(graph, inputs)[0]!, 1e-5);
});
