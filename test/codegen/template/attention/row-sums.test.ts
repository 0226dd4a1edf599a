// The gradient of attention takes Σ P ∘ dP of a row from the result and its gradient: one sweep over the keys less, in as many
// kernels, with the values of the interpreter; and only where the result is made of just these weights.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import * as sn from '../../../../src/index.ts';
import type { Tensor } from '../../../../src/index.ts';
import { optimise, scheduleKernels } from '../../../../src/compile.ts';
import type { Graph } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { gpuTarget, wasmTarget, type Target } from '../../../../src/schedule/target.ts';
import {
  attentionRun,
  expectSame,
  filled,
  maskOf,
  scoresOf,
  tame,
  type Attend,
  type AttentionRun,
} from '../../../numerics/attention-cases.ts';
import { runLoops } from '../../../support/execute.ts';
import { checkLaw } from '../../../support/property.ts';
import { expectClose } from '../../../support/random/graph.ts';
import { recorded } from '../../../support/recorded.ts';

const roomy: Target = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 10 } };
const narrow: Target = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 9 } };
const units: Target = {
  ...roomy,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16'],
  limits: { ...roomy.limits, workgroupBytes: 160 * 1024, workgroupInvocations: 1024 },
};

/** Row products; kernels that sweep over the keys once more for a sum; and all kernels. */
function counted(graph: Graph, target: Target): { products: number; twice: number; kernels: number } {
  const { kernels } = scheduleKernels(optimise(graph, target), target, new Map(), new Map());
  const bodies = kernels.flatMap(({ body }) => (body.kind === 'attention' ? [body] : []));
  return {
    products: bodies.reduce((sum, { rowProducts }) => sum + rowProducts.length, 0),
    twice: bodies.filter(({ online, outers }) => online === undefined && outers.some(({ pass }) => pass > 0))
      .length,
    kernels: kernels.length,
  };
}

const attends: Readonly<Record<string, Attend>> = {
  plain: (q, k, v) => sn.scaledDotProductAttention(q, k, v),
  causal: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true, scale: 0.3 }),
  masked: (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask! }),
  grouped: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { enableGqa: true }),
  dropped: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { dropout: 0.25 }),
  written: (q, k, v) => scoresOf(q, k).mul(0.4).softmax().matmul(v),
};

/** Results that other weights than those of the softmax make. */
const others: Readonly<Record<string, Attend>> = {
  mixed: (q, k, v) => {
    const weights = scoresOf(q, k).mul(0.4).softmax();
    return weights.matmul(v).add(weights.square().matmul(v));
  },
  halved: (q, k, v, mask) => {
    const weights = scoresOf(q, k).mul(0.4).softmax();
    return weights.matmul(v).add(sn.where(mask!, weights, 0).matmul(v));
  },
};

function runOf(
  attend: Attend,
  dtype: 'f32' | 'bf16',
  [queries, keys, depth, columns]: readonly [number, number, number, number],
): AttentionRun {
  const heads = attend === attends['grouped'] ? 4 : 2;
  const isMasked = attend === attends['masked'] || attend === others['halved'];
  const inputs = [
    filled([heads, queries, depth], tame, 1, dtype),
    filled([2, keys, depth], tame, 2, dtype),
    filled([2, keys, columns], tame, 3, dtype),
    ...(isMasked ? [maskOf('bool', queries, keys)] : []),
  ];
  return attentionRun({ inputs, attend });
}

function check(run: AttentionRun, target: Target, tolerance: number): void {
  expectSame(runLoops(target, run.graph, run.inputs), interpret(run.graph, run.inputs), run, tolerance);
}

test.each(Object.entries(attends))('%s: a sweep less, in as many kernels', (_, attend) => {
  const { graph } = runOf(attend, 'f32', [24, 40, 16, 16]);
  const [before, after] = [counted(graph, narrow), counted(graph, roomy)];
  expect([before.products, before.twice]).toEqual([0, 1]);
  expect([after.products, after.twice]).toEqual([1, 0]);
  expect(after.kernels).toBeLessThanOrEqual(before.kernels);
  expect(counted(graph, wasmTarget).products).toBe(0);
});

test.each(Object.entries(others))('%s: sums over the keys stay', (_, attend) => {
  const run = runOf(attend, 'f32', [9, 20, 8, 8]);
  expect(counted(run.graph, roomy).products).toBe(0);
  check(run, roomy, 1e-4);
});

const size = fc.integer({ min: 2, max: 30 });
test('values are those of the interpreter, whatever the sizes', () => {
  const attend = fc.constantFrom(...Object.values(attends));
  checkLaw(8, fc.tuple(attend, fc.tuple(size, size, size, size)), ([one, sizes]) =>
    check(runOf(one, 'f32', sizes), roomy, 1e-4),
  );
});

test('on matrix units, at depths around those of fragments', () => {
  const width = fc.integer({ min: 6, max: 20 });
  checkLaw(2, fc.tuple(fc.constantFrom('causal', 'grouped', 'dropped'), width), ([name, columns]) => {
    const run = runOf(attends[name]!, 'bf16', [21, 24, 16, columns]);
    expect(counted(run.graph, units).products).toBe(1);
    check(run, units, 4e-2);
  });
});

test('second derivatives', () => {
  const [q, k, v] = [filled([6, 4], tame, 1), filled([9, 4], tame, 2), filled([9, 8], tame, 3)];
  const loss = (x: Tensor, y: Tensor, z: Tensor): Tensor => attends['causal']!(x, y, z).square().sum();
  const steep = (x: Tensor, y: Tensor, z: Tensor): Tensor => sn.grad(loss)(x, y, z).square().sum() as Tensor;
  const { graph } = recorded(
    (x: Tensor, y: Tensor, z: Tensor) => sn.grad(steep)(x, y, z),
    [q, k, v].map(({ shape }) => sn.zeros(shape as number[])),
  );
  const [actual] = runLoops(roomy, graph, [q, k, v]);
  const [expected] = interpret(graph, [q, k, v]);
  expectClose(actual!, expected!, 1e-3);
});
