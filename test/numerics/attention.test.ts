// Fused attention equals the unfused form, which is the graph as the reference interpreter runs it: for steep scores, rows that
// see nothing, NaN and infinities, narrow dtypes, and all lengths and head sizes; results and gradients, on both kinds of
// schedule. Small problems run as Loops, which also find races; larger ones on the device.

import { describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { explain } from '../../src/explain.ts';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { interpret } from '../../src/ir/interpret.ts';
import { parse } from '../../src/ir/parse.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { runLoops } from '../support/execute.ts';
import { expectClose } from '../support/random-graph.ts';
import {
  attentionRun,
  expectSame,
  filled,
  least,
  maskOf,
  past,
  poisoned,
  scoresOf,
  steep,
  tame,
  type Problem,
} from './attention-cases.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

/** Ten buffers a kernel, as adapters have them, so that masked backward passes stream too. */
const limits = { ...gpuTarget.limits, storageBuffers: 10 };
const targets: readonly Target[] = [
  { ...gpuTarget, limits },
  { ...softwareTarget, limits },
];

/** f32 sums of exact scores: some roundings of 2⁻²⁴ and the exponential's error, a few times that. */
const close = 1e-5;

/** Runs a problem as Loops on both targets; its kernels must be attention, or the test would say nothing about it. */
function check(problem: Problem, tolerance: number = close): void {
  const run = attentionRun(problem);
  const expected = interpret(run.graph, run.inputs);
  for (const target of targets) {
    const kinds = compileGraph(run.graph, target, { check: true }).kernels.map(({ kind }) => kind);
    expect(kinds, target.name).toContain('attention');
    expectSame(runLoops(target, run.graph, run.inputs), expected, run, tolerance);
  }
}

/** q, k, v of one size: two batches, nine queries, eleven keys, eight columns. */
function small(fill: typeof tame = tame): [HostArray, HostArray, HostArray] {
  return [filled([2, 9, 8], fill, 1), filled([2, 11, 8], fill, 2), filled([2, 11, 8], tame, 3)];
}

describe('rows without anything to see', () => {
  const bool = maskOf('bool', 9, 11);

  test('give zeros and have gradient zero', () => {
    for (const isCausal of [false, true]) {
      for (const kind of ['bool', 'infinite'] as const) {
        const problem: Problem = {
          inputs: [...small(), maskOf(kind, 9, 11)],
          attend: (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask!, isCausal }),
        };
        check(problem);
        const { graph, inputs } = attentionRun(problem);
        const [result, dq] = interpret(graph, inputs);
        for (const { data } of [result!, dq!])
          expect([...(data as Float32Array).subarray(24, 32)]).toEqual(Array.from({ length: 8 }, () => 0));
      }
    }
  });

  test('are NaN where the softmax of −∞ is plain', () => {
    check({
      inputs: [...small(), bool],
      attend: (q, k, v, mask) => sn.where(mask!, scoresOf(q, k).mul(0.3), -inf).softmax().matmul(v),
    });
    check({
      inputs: [...small(), maskOf('infinite', 9, 11)],
      attend: (q, k, v, mask) => scoresOf(q, k).add(mask!).softmax().matmul(v),
    });
  });

  test('are zeros again where the weights are masked after it', () => {
    const attend = (q: Tensor, k: Tensor, v: Tensor, mask: Tensor): Tensor =>
      sn.where(mask, sn.where(mask, scoresOf(q, k).mul(0.3), -inf).softmax(), 0).matmul(v);
    check({ inputs: [...small(), bool], attend: attend as Problem['attend'] });
  });

  test('are NaN without a division too', () => {
    const attend = (q: Tensor, k: Tensor, v: Tensor, mask: Tensor): Tensor => {
      const scores = sn.where(mask, scoresOf(q, k), -inf);
      return scores
        .sub(scores.amax(-1, { keepdim: true }))
        .exp()
        .matmul(v);
    };
    check({ inputs: [...small(), bool], attend: attend as Problem['attend'], gradient: false });
  });

  test('mix all values alike where masked scores are finite', () => {
    // A finite mask hides nothing from a row in which everything is masked, whatever the diagonal says.
    check({
      inputs: [...small(), bool],
      attend: (q, k, v, mask) => {
        const seen = sn.logicalAnd(mask!, past(9, 11));
        return sn.where(seen, scoresOf(q, k), least).softmax().matmul(v);
      },
    });
    check({
      inputs: [...small(), maskOf('least', 9, 11)],
      attend: (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask!, isCausal: true }),
    });
  });
});

describe('kernels', () => {
  test('that share the dots of their scores and bind too much are each divided', () => {
    const loss = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      sn.scaledDotProductAttention(q, k, v, { dropout: 0.5 }).square().sum();
    const inputs = small();
    const args = inputs.map(({ shape }) => sn.zeros(shape as number[]));
    // Random words as buffers, not as numbers of a call: four more than the kernels have room for.
    const graph = parse(explain(sn.grad(loss, { argnums: [0, 1, 2] }), ...args).graph);
    const given = graph.parameters.map(({ shape, attrs }, i) =>
      shape.length === 0 ? hostArray('u32', [], [i]) : inputs[Number(attrs.name.slice(3))]!,
    );
    const expected = interpret(graph, given);
    for (const target of targets)
      runLoops(target, graph, given).forEach((got, i) => expectClose(got, expected[i]!, close));
  });

  test('keep a cast to whole numbers where it is', () => {
    check({
      inputs: small(),
      attend: (q, k, v) => scoresOf(q, k).mul(5).softmax().mul(3).cast('i32').cast('f32').matmul(v),
      gradient: false,
    });
  });
});

describe('NaN and infinities', () => {
  test.each([
    ['q', 0, { 20: nan, 40: inf, 60: -inf }],
    ['k', 1, { 17: nan }],
    ['k', 1, { 17: inf, 120: -inf }],
    ['v', 2, { 17: nan, 120: inf, 121: -inf }],
  ] as const)('in %s reach the rows that they reach unfused', (_, which, at) => {
    const inputs: HostArray[] = small();
    inputs[which] = poisoned(inputs[which]!, at);
    check({ inputs, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v) });
    check({ inputs, attend: (q, k, v) => scoresOf(q, k).softmax().matmul(v) });
    check({
      inputs: [...inputs, maskOf('bool', 9, 11)],
      attend: (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask! }),
    });
  });
});

describe('steep scores', () => {
  test('of ±1e4 are exact', () => {
    check({
      inputs: small(steep),
      attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { scale: 1 }),
      scale: 1,
    });
  });
});
