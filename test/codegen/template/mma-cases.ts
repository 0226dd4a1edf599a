// Products and convolutions for matrix units, at sizes around the edges of fragments, copies and
// tiles, and the schedules that there are for them.

import * as fc from 'fast-check';
import { contractProblem, type ContractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import { optimise, scheduleKernels } from '../../../src/compile.ts';
import { add, binary, broadcast, cast } from '../../../src/ir/build.ts';
import { dims, type Graph } from '../../../src/ir/graph.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { unsharedMemory } from '../../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';

export interface Product {
  readonly dtype: 'f16' | 'bf16' | 'f32';
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly turnLhs: boolean;
  readonly turnRhs: boolean;
  /** Where an operand comes from: as it lies, computed from it, or narrowed from f32. */
  readonly from: 'memory' | 'prologue' | 'f32';
  readonly epilogue: boolean;
  readonly pick: number;
}

/** Around the edges of fragments, copies and tiles. */
const size = fc.oneof(fc.constantFrom(1, 8, 16, 24, 32, 40, 64, 72), fc.integer({ min: 1, max: 80 }));
export const product: fc.Arbitrary<Product> = fc.record({
  dtype: fc.constantFrom('f16', 'bf16', 'f32'),
  batch: fc.integer({ min: 1, max: 2 }),
  m: size,
  n: size,
  k: size,
  turnLhs: fc.boolean(),
  turnRhs: fc.boolean(),
  from: fc.constantFrom('memory', 'prologue', 'f32'),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

export function graphOf({ dtype, batch, m, n, k, turnLhs, turnRhs, from, epilogue }: Product): Graph {
  const s = new Sketch();
  const source = from === 'f32' ? 'f32' : dtype;
  const x = s.input([batch, ...(turnLhs ? [k, m] : [m, k])], source);
  const y = s.input([batch, ...(turnRhs ? [n, k] : [k, n])], dtype);
  const lhs = from === 'f32' ? cast(s.b, x, dtype) : from === 'prologue' ? binary(s.b, 'mul', x, 0.5) : x;
  const z = s.dot(lhs, y, [0], [0], [turnLhs ? 1 : 2], [turnRhs ? 2 : 1]);
  if (!epilogue) return s.graph([z]);
  const biased = add(s.b, cast(s.b, z, 'f32'), broadcast(s.b, s.input([n]), dims(z)));
  return s.graph([binary(s.b, 'max', biased, 0)]);
}

export function problemOf(graph: Graph, target: Target): ContractProblem {
  const { kernels } = scheduleGraph(graph, target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract')!;
  if (kernel.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}

export function tensorSchedules(graph: Graph, target: Target): readonly ContractTiling[] {
  return legalTilings(problemOf(graph, target), target).filter(({ kind }) => kind === 'mma');
}

export function inputsOf(graph: Graph): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, i) => randomArray(dtype, shape as number[], i + 1, 'tame'));
}

/** What the attention kernels of a graph say of themselves. */
export function attentionHeaders(graph: Graph, target: Target): readonly string[] {
  const { kernels } = scheduleKernels(optimise(graph, target), target, new Map(), new Map());
  return kernels
    .filter(({ kind }) => kind === 'attention')
    .map((kernel) => lowerKernel(kernel, target, unsharedMemory, new Map()).loop.header[0]!);
}
