// Attention on matrix units: f16 and bf16, forward and backward, masked or not, at sizes around those of fragments and blocks,
// equals the unfused form on the reference interpreter, without a race between copies and readers.

import { describe, expect, test } from 'vitest';

import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import { optimise, scheduleKernels } from '../../../src/compile.ts';
import * as sn from '../../../src/index.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { unsharedMemory } from '../../../src/schedule/memory/plan.ts';
import { gpuTarget, type Target } from '../../../src/schedule/target.ts';
import {
  attentionRun,
  expectSame,
  filled,
  maskOf,
  tame,
  type Attend,
} from '../../numerics/attention-cases.ts';
import { runLoops } from '../../support/execute.ts';

const target: Target = {
  ...gpuTarget,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16'],
  limits: {
    ...gpuTarget.limits,
    storageBuffers: 16,
    workgroupBytes: 160 * 1024,
    workgroupInvocations: 1024,
  },
};

/** Headers of the attention kernels. */
function attentions(graph: Graph): readonly string[] {
  const optimised = optimise(graph, target);
  const { kernels } = scheduleKernels(optimised, target, new Map(), new Map());
  return kernels
    .filter(({ kind }) => kind === 'attention')
    .map((kernel) => lowerKernel(kernel, target, unsharedMemory, new Map()).loop.header[0]!);
}

const plain: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v);
const causal: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true });
const masked: Attend = (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask! });

describe.each(['f16', 'bf16'] as const)('%s', (dtype) => {
  test.each([
    ['no mask', plain, 16, 16, 16, 16],
    ['no mask', plain, 40, 70, 24, 40],
    ['no mask', plain, 130, 33, 8, 64],
    ['causal', causal, 70, 70, 32, 16],
    ['causal', causal, 33, 65, 40, 9],
    ['bool', masked, 24, 40, 16, 16],
  ] as const)('%s, case %#', (_, attend, queries, keys, depth, columns) => {
    const input = (shape: number[], seed: number) => filled(shape, tame, seed, dtype);
    const inputs = [
      input([1, 2, queries, depth], 1),
      input([1, 2, keys, depth], 2),
      input([1, 2, keys, columns], 3),
      ...(attend === masked ? [maskOf('bool', queries, keys)] : []),
    ];
    const run = attentionRun({ inputs, attend });
    const found = attentions(run.graph);
    expect(found.length).toBeGreaterThan(1);
    for (const header of found) expect(header).toContain(`on matrix units (${dtype})`);
    const results = runLoops(target, run.graph, run.inputs);
    expectSame(results, interpret(run.graph, run.inputs), run, dtype === 'f16' ? 5e-3 : 4e-2);
  });
});
