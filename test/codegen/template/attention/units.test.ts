// Attention on matrix units, and by warp groups: f16 and bf16, forward and backward, masked or not, at sizes around those of
// fragments and blocks, equals the unfused form on the reference interpreter, without a race between copies and readers.

import { describe, expect, test } from 'vitest';

import * as sn from '../../../../src/index.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { gpuTarget, type Target } from '../../../../src/schedule/target.ts';
import {
  attentionRun,
  expectSame,
  filled,
  maskOf,
  tame,
  type Attend,
} from '../../../numerics/attention-cases.ts';
import { runLoops } from '../../../support/execute.ts';
import { attentionHeaders } from '../mma-cases.ts';

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

const hopper: Target = {
  ...target,
  warpgroups: true,
  limits: { ...target.limits, workgroupBytes: 227 * 1024 },
};

const plain: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v);
const causal: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true });
const masked: Attend = (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask! });

interface Case {
  readonly mask: string;
  readonly attend: Attend;
  /** Queries, keys, features of keys and of values. */
  readonly sizes: readonly [number, number, number, number];
}

/** Runs the Loops of attention and its gradients; headers say `how` each is computed. */
function check(
  { attend, sizes: [queries, keys, depth, columns] }: Case,
  dtype: 'f16' | 'bf16',
  on: Target,
  how: (headers: readonly string[]) => void,
): void {
  const input = (shape: number[], seed: number) => filled(shape, tame, seed, dtype);
  const inputs = [
    input([1, 2, queries, depth], 1),
    input([1, 2, keys, depth], 2),
    input([1, 2, keys, columns], 3),
    ...(attend === masked ? [maskOf('bool', queries, keys)] : []),
  ];
  const run = attentionRun({ inputs, attend });
  const found = attentionHeaders(run.graph, on);
  expect(found.length).toBeGreaterThan(1);
  how(found);
  const results = runLoops(on, run.graph, run.inputs);
  expectSame(results, interpret(run.graph, run.inputs), run, dtype === 'f16' ? 5e-3 : 4e-2);
}

const fragments: readonly Case[] = [
  { mask: 'no mask', attend: plain, sizes: [16, 16, 16, 16] },
  { mask: 'no mask', attend: plain, sizes: [40, 70, 24, 40] },
  { mask: 'no mask', attend: plain, sizes: [130, 33, 8, 64] },
  { mask: 'causal', attend: causal, sizes: [70, 70, 32, 16] },
  { mask: 'causal', attend: causal, sizes: [33, 65, 40, 9] },
  { mask: 'bool', attend: masked, sizes: [24, 40, 16, 16] },
];

/**
 * Tiles are 64 elements wide and have 64 or 128 rows, blocks 32 to 128 keys. Where there are many keys, all operands of gradients
 * lie in memory; else the upstream gradient is divided first, and its product is left to single warps.
 */
const tiles: readonly (Case & { readonly count: number })[] = [
  { count: 1, mask: 'no mask', attend: plain, sizes: [64, 128, 64, 64] },
  { count: 1, mask: 'no mask', attend: plain, sizes: [72, 136, 48, 64] },
  { count: 4, mask: 'no mask', attend: plain, sizes: [200, 264, 64, 128] },
  { count: 4, mask: 'causal', attend: causal, sizes: [200, 200, 64, 128] },
  { count: 1, mask: 'causal', attend: causal, sizes: [72, 136, 128, 56] },
  { count: 1, mask: 'bool', attend: masked, sizes: [96, 72, 64, 64] },
];

test('dK and dV of 256 features have a kernel each, by warp groups', () => {
  check({ mask: 'causal', attend: causal, sizes: [72, 264, 256, 256] }, 'bf16', hopper, (headers) => {
    expect(headers).toHaveLength(4);
    for (const header of headers) expect(header).toContain('by warp groups (bf16)');
  });
});

describe.each(['f16', 'bf16'] as const)('%s', (dtype) => {
  test.each(fragments)('on matrix units, $mask, $sizes', (one) =>
    check(one, dtype, target, (headers) => {
      for (const header of headers) expect(header).toContain(`on matrix units (${dtype})`);
    }),
  );
  test.each(tiles)('by warp groups, $mask, $sizes', ({ count, ...one }) =>
    check(one, dtype, hopper, (headers) => {
      expect(headers.filter((header) => header.includes(`by warp groups (${dtype})`))).toHaveLength(count);
    }),
  );
});
