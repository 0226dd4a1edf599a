// What attention on matrix units and by warp groups meets besides plain numbers: heads that are shared or lie between positions
// and columns, rows that see nothing, masks of every kind; NaN and infinities reach what they reach in the unfused form, whichever blocks are walked over without masks.

import { describe, expect, test } from 'vitest';

import * as sn from '../../../../src/index.ts';
import type { Tensor } from '../../../../src/index.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import { gpuTarget, type Target } from '../../../../src/schedule/target.ts';
import {
  attentionRun,
  expectSame,
  filled,
  least,
  maskOf,
  past,
  poisoned,
  scoresOf,
  tame,
  type Problem,
} from '../../../numerics/attention-cases.ts';
import { runLoops } from '../../../support/execute.ts';
import { attentionHeaders } from '../mma-cases.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

const limits = {
  ...gpuTarget.limits,
  storageBuffers: 16,
  workgroupBytes: 227 * 1024,
  workgroupInvocations: 1024,
};
const units: Target = {
  ...gpuTarget,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16'],
  limits,
};
const targets: readonly (readonly [string, Target])[] = [
  ['on matrix units', units],
  ['by warp groups', { ...units, warpgroups: true }],
];

const [queries, keys, features] = [72, 200, 64];

function inputs(): [HostArray, HostArray, HostArray] {
  const input = (rows: number, seed: number): HostArray => filled([1, rows, features], tame, seed, 'bf16');
  return [input(queries, 1), input(keys, 2), input(keys, 3)];
}

const causal = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
  sn.scaledDotProductAttention(q, k, v, { isCausal: true });
const seen = (): Tensor => past(queries, keys);

describe.each(targets)('%s', (how, target) => {
  function check(problem: Problem): void {
    const run = attentionRun(problem);
    const headers = attentionHeaders(run.graph, target);
    expect(headers.some((header) => header.includes(how))).toBe(true);
    expectSame(runLoops(target, run.graph, run.inputs), interpret(run.graph, run.inputs), run, 4e-2);
  }

  test.each(['bool', 'infinite', 'least'] as const)('rows that see nothing, by a mask that is %s', (kind) => {
    for (const isCausal of [false, true])
      check({
        inputs: [...inputs(), maskOf(kind, queries, keys)],
        attend: (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask!, isCausal }),
        gradient: isCausal,
      });
  });

  test('rows that see nothing are NaN where the softmax of −∞ is plain', () => {
    check({
      inputs: [...inputs(), maskOf('bool', queries, keys)],
      attend: (q, k, v, mask) =>
        sn
          .where(mask!, scoresOf(q.cast('f32'), k.cast('f32')).mul(0.3), -inf)
          .softmax()
          .cast('bf16')
          .matmul(v),
      gradient: false,
    });
  });

  test('rows mix all values alike where masked scores are finite', () => {
    check({
      inputs: [...inputs(), maskOf('bool', queries, keys)],
      attend: (q, k, v, mask) =>
        sn
          .where(sn.logicalAnd(mask!, seen()), scoresOf(q.cast('f32'), k.cast('f32')), least)
          .softmax()
          .cast('bf16')
          .matmul(v),
      gradient: false,
    });
  });

  test('weights of keys that the maximum leaves out are divided by a sum that may be large', () => {
    const [q, k, v] = inputs();
    const first = (array: HostArray, at: (row: number) => number): HostArray => {
      const data = Float32Array.from(array.data as ArrayLike<number>, (_, i) =>
        i % features === 0 ? at(Math.floor(i / features)) : 0,
      );
      return { ...array, data } as HostArray;
    };
    check({
      inputs: [first(q, () => 1), first(k, (row) => (row === 150 ? 88 : 0)), v],
      attend: (x, y, z) => {
        const scores = scoresOf(x.cast('f32'), y.cast('f32'));
        const most = sn.where(sn.arange(keys).lt(100), scores, least).max(-1, { keepdim: true });
        const terms = scores.sub(most).exp();
        return terms
          .div(terms.sum(-1, { keepdim: true }))
          .cast('bf16')
          .matmul(z);
      },
      gradient: false,
    });
  });

  test('a window that slides', () => {
    check({
      inputs: inputs(),
      attend: (q, k, v) => {
        const scores = scoresOf(q.cast('f32'), k.cast('f32')).mul(0.125);
        const [row, key] = [sn.arange(queries).reshape([queries, 1]), sn.arange(keys)];
        const near = sn.logicalAnd(key.le(row.add(100)), row.le(key.add(30)));
        return sn.where(near, scores, -inf).softmax().cast('bf16').matmul(v);
      },
    });
  });

  test('heads between the positions and the columns', () => {
    const lay = (x: Tensor): Tensor => sn.moveaxis(x, 1, 2);
    const input = (rows: number, seed: number): HostArray =>
      filled([2, rows, 2, features], tame, seed, 'bf16');
    check({
      inputs: [input(queries, 1), input(136, 2), input(136, 3)],
      attend: (q, k, v) => lay(causal(lay(q), lay(k), lay(v))),
    });
  });

  test('heads of queries that share those of keys', () => {
    const input = (heads: number, rows: number, seed: number): HostArray =>
      filled([1, heads, rows, features], tame, seed, 'bf16');
    for (const isCausal of [false, true])
      check({
        inputs: [input(4, queries, 1), input(2, 136, 2), input(2, 136, 3)],
        attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { enableGqa: true, isCausal }),
        gradient: isCausal,
      });
  });

  test.each([
    ['q', 0, { 20: nan, 4000: inf, 4200: -inf }],
    ['k', 1, { 17: nan }],
    ['k', 1, { 17: inf, 4000: -inf }],
    ['v', 2, { 17: nan, 120: inf, 121: -inf }],
  ] as const)('NaN and infinities in %s', (_, which, at) => {
    const given: HostArray[] = inputs();
    given[which] = poisoned(given[which]!, at);
    check({ inputs: given, attend: causal, gradient: false });
    check({ inputs: given, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v), gradient: false });
  });
});
