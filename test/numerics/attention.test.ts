// Fused attention equals the unfused form, which is the graph as the reference interpreter runs it: for steep scores, rows that
// see nothing, NaN and infinities, narrow dtypes, and all lengths and head sizes; results and gradients, on both kinds of
// schedule. Small problems run as Loops, which also find races; larger ones on the device.

import { describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { explain } from '../../src/explain/explain.ts';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { runLoops } from '../support/execute.ts';
import { expectClose } from '../support/random/graph.ts';
import {
  attentionRun,
  expectSame,
  filled,
  gentle,
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
  const scaled: Problem['attend'] = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { scale: 1 });

  test('of ±1e4 are exact', () => {
    check({ inputs: small(steep), attend: scaled, scale: 1 });
    check({ inputs: small(steep), attend: (q, k, v) => scoresOf(q, k).softmax().matmul(v), scale: 1 });
  });

  test('of ±1e4 that are rounded err by their rounding', () => {
    // A score of 1e4 has steps of 1e-3; the sums of its terms, as large, round in another order.
    const wide: typeof tame = (next) => next() * 200 - 100;
    check({ inputs: small(wide), attend: scaled, scale: 1 }, 2e-2);
  });

  test('of one key far above the rest give its value', () => {
    const [q, k, v] = small(() => 0);
    const inputs = [poisoned(q, { 0: 1e4, 8: -1e4 }), poisoned(k, { 40: 1, 80: 1 }), v];
    check({ inputs, attend: scaled, scale: 1 });
  });
});

type Masking = 'no mask' | 'causal' | 'bool' | 'infinite' | 'causal and bool';

/** Attention under one kind of mask, which is the fourth input where it is one. */
function masking(
  kind: Masking,
  queries: number,
  keys: number,
): Pick<Problem, 'attend'> & { mask: HostArray[] } {
  const isCausal = kind.startsWith('causal');
  const mask = kind === 'infinite' ? kind : 'bool';
  return {
    mask: kind === 'no mask' || kind === 'causal' ? [] : [maskOf(mask, queries, keys)],
    attend: (q, k, v, given) =>
      sn.scaledDotProductAttention(q, k, v, { isCausal, ...(given && { mask: given }) }),
  };
}

const maskings: readonly Masking[] = ['no mask', 'causal', 'bool', 'infinite', 'causal and bool'];

describe.each(maskings)('with %s', (kind) => {
  test.each([
    [7, 7, 1],
    [7, 7, 5],
    [7, 4, 64],
    [5, 9, 80],
    [2, 6, 256],
    [20, 37, 8],
  ])('%i queries see %i keys in %i columns', (queries, keys, width) => {
    const { mask, attend } = masking(kind, queries, keys);
    const shapes = [queries, keys, keys].map((rows) => [2, rows, width]);
    check({ inputs: [...shapes.map((shape, i) => filled(shape, tame, i + 1)), ...mask], attend });
  });
});

test.each([
  [1, 1, 1],
  [1, 7, 1],
  [5, 1, 4],
  [1, 1, 5],
])('%i queries and %i keys in %i columns are right without streaming', (queries, keys, width) => {
  for (const kind of maskings) {
    const { mask, attend } = masking(kind, queries, keys);
    const shapes = [queries, keys, keys].map((rows) => [2, rows, width]);
    const inputs = [...shapes.map((shape, i) => filled(shape, tame, i + 1)), ...mask];
    if (queries === 1 && keys > 1) check({ inputs, attend, gradient: false });
    const run = attentionRun({ inputs, attend });
    for (const target of targets)
      expectSame(runLoops(target, run.graph, run.inputs), interpret(run.graph, run.inputs), run, close);
  }
});

test('values may be wider or narrower than keys', () => {
  for (const width of [1, 3, 30]) {
    const inputs = [filled([2, 9, 8], tame, 1), filled([2, 11, 8], tame, 2), filled([2, 11, width], tame, 3)];
    check({ inputs, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true }) });
  }
});

describe('heads', () => {
  const grouped = (kind: Masking): Problem => {
    const { mask, attend } = masking(kind, 9, 11);
    const shapes = [
      [2, 4, 9, 8],
      [2, 2, 11, 8],
      [2, 2, 11, 8],
    ];
    return {
      inputs: [...shapes.map((shape, i) => filled(shape, tame, i + 1)), ...mask],
      attend: (q, k, v, ...rest) =>
        attend(q, sn.repeatInterleave(k, 2, 1), sn.repeatInterleave(v, 2, 1), ...rest),
    };
  };

  test.each(maskings)('of queries may share those of keys, %s', (kind) => check(grouped(kind)));

  test('may share one head of keys and values by broadcasting', () => {
    const inputs = [
      filled([2, 3, 9, 8], tame, 1),
      ...[2, 3].map((seed) => filled([2, 1, 11, 8], tame, seed)),
    ];
    check({ inputs, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true }) });
  });

  test('may lie between the positions and the columns', () => {
    const inputs = [1, 2, 3].map((seed) => filled([2, 9, 3, 8], tame, seed));
    const lay = (x: Tensor): Tensor => sn.moveaxis(x, 1, 2);
    check({
      inputs,
      attend: (q, k, v) => lay(sn.scaledDotProductAttention(lay(q), lay(k), lay(v), { isCausal: true })),
    });
  });

  test('of one tensor are queries, keys and values at once', () => {
    const inputs = [1, 2, 3].map((seed) => filled([2, 9, 8], tame, seed));
    check({ inputs, attend: (x) => sn.scaledDotProductAttention(x, x, x, { isCausal: true }) });
  });
});

// A result is rounded to its dtype once; two that lie on either side of a step are one step apart. The plain form rounds the
// scores and the weights too: scores of at most 2 have errors of half a step of 2, which e^x makes relative errors of weights.
describe.each([
  ['f16', 2 ** -10, 2 ** -8],
  ['bf16', 2 ** -7, 2 ** -5],
] as const)('in %s', (dtype, step, steps) => {
  const inputs = [filled([2, 9, 8], gentle, 1, dtype), filled([2, 11, 8], gentle, 2, dtype)];
  inputs.push(filled([2, 11, 8], gentle, 3, dtype));

  test('scores stay wide, and weights are rounded once', () => {
    check({ inputs, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v) }, step);
    const { mask, attend } = masking('causal and bool', 9, 11);
    check({ inputs: [...inputs, ...mask], attend }, step);
  });

  test('the plain form rounds where it says so', () => {
    check({ inputs, attend: (q, k, v) => scoresOf(q, k).softmax().matmul(v), scale: 1 }, steps);
  });

  test('steep scores do not overflow', () => {
    // 160 · 160 is more than the largest f16; in f32 it is exact.
    const steepest: typeof tame = (next, column) =>
      column === 0 ? (next() < 0.5 ? -160 : 160) : Math.floor(next() * 5) - 2;
    const wide = [filled([2, 9, 8], steepest, 1, dtype), filled([2, 11, 8], steepest, 2, dtype), inputs[2]!];
    check(
      { inputs: wide, attend: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { scale: 1 }), scale: 1 },
      step,
    );
  });
});

describe('dropout', () => {
  const dropped = (isCausal: boolean, dropout: number): Problem['attend'] => {
    return (q, k, v) => sn.scaledDotProductAttention(q, k, v, { dropout, isCausal });
  };

  test('keeps and drops the same weights forward and backward', () => {
    for (const isCausal of [false, true]) check({ inputs: small(), attend: dropped(isCausal, 0.4) });
    check({ inputs: small(), attend: (q, k, v) => sn.dropout(scoresOf(q, k).softmax(), 0.4).matmul(v) });
  });

  test('of a whole row gives zeros, also of one that is NaN', () => {
    const [q, k, v] = small();
    const inputs = [poisoned(q, { 20: nan, 40: inf, 60: nan, 100: nan, 130: nan }), k, v];
    const attend = dropped(false, 0.95);
    check({ inputs, attend });
    const run = attentionRun({ inputs, attend });
    const [result] = interpret(run.graph, run.inputs);
    const rows = Array.from({ length: 18 }, (_, row) =>
      Array.from((result!.data as Float32Array).subarray(row * 8, row * 8 + 8)),
    );
    expect(rows.filter((row) => row.every((x) => x === 0)).length).toBeGreaterThan(3);
  });
});

test('NaN that no query may see does not matter, fused or not, but for 0 · NaN', () => {
  // Behind the diagonal a fused kernel need not look: where the unfused form gives NaN it may give what it would without.
  const [q, k, v] = small();
  const attend: Problem['attend'] = (x, y, z) => sn.scaledDotProductAttention(x, y, z, { isCausal: true });
  const seen = attentionRun({ inputs: [q, k, poisoned(v, { 80: nan, 87: inf })], attend, gradient: false });
  const clean = attentionRun({ inputs: [q, k, poisoned(v, { 80: 0, 87: 0 })], attend, gradient: false });
  const [unfused, without] = [seen, clean].map(({ graph, inputs }) => interpret(graph, inputs)[0]!);
  for (const target of targets) {
    const [fused] = runLoops(target, seen.graph, seen.inputs);
    const spared = [...(fused!.data as Float32Array)].map((x, i) =>
      Number.isNaN(unfused!.data[i]) && !Number.isNaN(x)
        ? Number(without!.data[i])
        : Number(unfused!.data[i]),
    );
    expectSame([fused!], [hostArray('f32', fused!.shape, spared)], clean, close);
  }
});
