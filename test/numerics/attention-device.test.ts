// Fused attention on devices equals the unfused form on the reference interpreter: the lengths and head sizes of models,
// where sums are long, and special values as the device's own arithmetic has them. Small problems run as Loops, in
// attention.test.ts.

import { beforeAll, describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, targetOf, type Target } from '../../src/schedule/target.ts';
import { runOnDevice } from '../support/execute.ts';
import {
  attentionRun,
  expectSame,
  filled,
  maskOf,
  poisoned,
  steep,
  tame,
  type Problem,
} from './attention-cases.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

type Profile = 'software' | 'gpu' | 'wasm';

let profiles: Readonly<Record<Profile, readonly [Device, Target]>>;
beforeAll(async () => {
  const [software, wasm] = [await openDevice('webgpu:software'), await openDevice('wasm')];
  const { limits } = targetOf(software.facts);
  profiles = {
    software: [software, { ...softwareTarget, limits }],
    gpu: [software, { ...gpuTarget, limits }],
    wasm: [wasm, targetOf(wasm.facts)],
  };
});

/** As for Loops, and the device's exponential, which may be off by 1e-6 of itself. */
const close = 2e-5;

async function check(
  problem: Problem,
  tolerance = close,
  among: readonly Profile[] = ['software', 'wasm'],
): Promise<void> {
  const run = attentionRun(problem);
  const expected = interpret(run.graph, run.inputs);
  for (const profile of among) {
    const [device, target] = profiles[profile];
    const kinds = compileGraph(run.graph, target).kernels.map(({ kind }) => kind);
    expect(kinds, profile).toContain('attention');
    expectSame(await runOnDevice(device, target, run.graph, run.inputs), expected, run, tolerance);
  }
}

function qkv(
  batch: readonly number[],
  queries: number,
  keys: number,
  width: number,
  fill = tame,
): [HostArray, HostArray, HostArray] {
  const of = (rows: number, by: typeof tame, seed: number): HostArray =>
    filled([...batch, rows, width], by, seed);
  return [of(queries, fill, 1), of(keys, fill, 2), of(keys, tame, 3)];
}

const plain: Problem['attend'] = (q, k, v) => sn.scaledDotProductAttention(q, k, v);
const causal: Problem['attend'] = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true });
const both: Problem['attend'] = (q, k, v, mask) =>
  sn.scaledDotProductAttention(q, k, v, { mask: mask!, isCausal: true });

describe('lengths', () => {
  test('128 of 128, heads of 64, causal with a mask, forward and backward', async () => {
    await check({ inputs: [...qkv([2], 128, 128, 64), maskOf('bool', 128, 128)], attend: both }, close, [
      'software',
      'gpu',
    ]);
  });

  test('1000 of 1000, heads of 64', async () => {
    await check({ inputs: qkv([1], 1000, 1000, 64), attend: causal, gradient: false });
  });

  test('1000 of 1000, forward and backward', async () => {
    await check({ inputs: qkv([1], 1000, 1000, 8), attend: causal });
  });

  test('7 of 1000 and 1000 of 7, heads of 80', async () => {
    await check({ inputs: qkv([2], 7, 1000, 80), attend: plain });
    await check({ inputs: qkv([2], 1000, 7, 80), attend: plain });
  });

  test('1 of 1000, as when text is generated', async () => {
    await check({ inputs: qkv([4], 1, 1000, 64), attend: plain, gradient: false }, close, [
      'software',
      'gpu',
    ]);
  });
});

describe('head sizes', () => {
  test.each([1, 5, 80, 256])('%i', async (width) => {
    // Backward of the widest takes seconds to compile here; the Loop is checked with it.
    await check({ inputs: qkv([2], 33, 29, width), attend: plain, gradient: width < 256 });
  });

  test('64, of which four query heads share one of keys', async () => {
    const inputs = [
      filled([1, 8, 24, 64], tame, 1),
      filled([1, 2, 24, 64], tame, 2),
      filled([1, 2, 24, 64], tame, 3),
    ];
    const attend: Problem['attend'] = (q, k, v) =>
      causal(q, sn.repeatInterleave(k, 4, 1), sn.repeatInterleave(v, 4, 1));
    await check({ inputs, attend });
  });
});

describe('values', () => {
  test('steep scores of ±1e4', async () => {
    const attend: Problem['attend'] = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { scale: 1 });
    await check({ inputs: qkv([2], 40, 50, 8, steep), attend, scale: 1 }, close, ['software', 'gpu', 'wasm']);
  });

  test('NaN and infinities in some rows', async () => {
    const [q, k, v] = qkv([2], 9, 11, 8);
    const odd = [
      poisoned(q, { 20: nan, 40: inf, 60: -inf }),
      k,
      poisoned(v, { 17: nan, 120: inf, 121: -inf }),
    ];
    await check({ inputs: odd, attend: plain }, close, ['software', 'gpu', 'wasm']);
    const masked: Problem['attend'] = (x, y, z, mask) =>
      sn.scaledDotProductAttention(x, y, z, { mask: mask! });
    await check({ inputs: [...odd, maskOf('bool', 9, 11)], attend: masked });
  });

  test('rows that see nothing: zeros, and NaN in the plain form', async () => {
    const inputs = [...qkv([2], 9, 11, 8), maskOf('infinite', 9, 11)];
    await check({ inputs, attend: both }, close, ['software', 'gpu', 'wasm']);
    const added: Problem['attend'] = (q, k, v, mask) =>
      q.matmul(k.transpose(-1, -2)).add(mask!).softmax().matmul(v);
    await check({ inputs, attend: added, scale: 1 }, close, ['software', 'gpu', 'wasm']);
  });

  test.each([
    ['f16', 2 ** -10],
    ['bf16', 2 ** -7],
  ] as const)('%s', async (dtype, step) => {
    const inputs = [1, 2, 3].map((seed) => filled([2, 40, 20], tame, seed, dtype));
    await check({ inputs, attend: causal }, step);
  });

  test('dropout', async () => {
    const attend: Problem['attend'] = (q, k, v) =>
      sn.scaledDotProductAttention(q, k, v, { dropout: 0.3, isCausal: true });
    await check({ inputs: qkv([2], 40, 40, 8), attend }, close, ['software', 'gpu', 'wasm']);
  });
});

test('the same state of the generator drops the same weights on every device', async () => {
  const run = async (name: string): Promise<number[]> => {
    sn.setDevice(name);
    sn.manualSeed(7);
    const q = sn.randn([2, 33, 8]);
    const y = sn.scaledDotProductAttention(q, q, q, { dropout: 0.5 });
    return [...((await y.data()) as Float32Array)];
  };
  try {
    const [first, again, reference] = [
      await run('webgpu:software'),
      await run('webgpu:software'),
      await run('interpreter'),
    ];
    expect(again).toEqual(first);
    first.forEach((x, i) => expect(Math.abs(x - reference[i]!)).toBeLessThan(1e-4));
  } finally {
    sn.setDevice(undefined);
  }
});
