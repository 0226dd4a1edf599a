// `compile(fn, { memory })`: training steps that fit the memory they are given, with the results of
// the plain ones; what `explain` says of it; and what is too little.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { compileGraph } from '../../../src/compile.ts';
import type { Program } from '../../../src/runtime/program.ts';
import { softwareTarget, wasmTarget, type Target } from '../../../src/schedule/target.ts';
import { traceFlat } from '../../../src/tensor/tracing.ts';
import { flatten } from '../../../src/tensor/tree.ts';
import { decoderLoss, initDecoder } from '../../../src/workloads/transformer.ts';

type T = sn.Tensor;
type Step = (...args: never[]) => unknown;

/** Bytes of inputs, outputs and arenas. */
function bytesOf({ buffers, inputs, outputs, arenas }: Program): number {
  const ends = new Set([...inputs, ...outputs]);
  return (
    [...ends].reduce((sum, at) => sum + buffers[at]!.bytes, 0) + arenas.reduce((sum, bytes) => sum + bytes, 0)
  );
}

function compiled(fn: Step, args: readonly unknown[], target: Target, memory?: number) {
  const { graph, scalarIndices: scalars } = traceFlat(fn, flatten(args, 'test'), 'compile');
  return compileGraph(graph, target, { scalars, check: true, ...(memory !== undefined && { memory }) });
}

async function values(tree: unknown): Promise<number[][]> {
  const leaves = sn.treeLeaves(tree as sn.Tree<T>);
  return Promise.all(leaves.map(async (leaf) => Array.from((await leaf.data()) as Float32Array)));
}

/** A perceptron whose activations are far larger than its weights. */
function perceptron(): readonly [Step, readonly unknown[]] {
  const weights = Array.from({ length: 8 }, () => sn.normal([32, 32], { std: 0.25 }));
  const loss = (ws: readonly T[], x: T): T =>
    ws
      .reduce((y, w) => sn.dropout(y.matmul(w).gelu(), 0.1).add(y), x)
      .square()
      .mean() as T;
  return [sn.valueAndGrad(loss) as Step, [weights, sn.rand([512, 32])]];
}

function convolutions(): readonly [Step, readonly unknown[]] {
  const kernels = Array.from({ length: 8 }, () => sn.normal([8, 8, 3, 3], { std: 0.15 }));
  const loss = (ks: readonly T[], x: T): T =>
    ks
      .reduce((y, k) => sn.conv2d(y, k, undefined, { padding: 1 }).relu().add(y), x)
      .square()
      .mean() as T;
  return [sn.valueAndGrad(loss) as Step, [kernels, sn.rand([4, 8, 16, 16])]];
}

function transformer(): readonly [Step, readonly unknown[]] {
  const params = initDecoder({ vocabulary: 32, context: 32, width: 32, heads: 2, layers: 3 });
  const loss = (p: typeof params, tokens: T, targets: T): T => decoderLoss(p, tokens, targets, 2);
  const tokens = sn
    .arange(8 * 32)
    .remainder(32)
    .cast('i32')
    .reshape([8, 32]);
  return [sn.valueAndGrad(loss) as Step, [params, tokens, tokens]];
}

/** Each with the shares of its plain memory that it is to fit. */
const models = [
  ['perceptron', perceptron, [0.9, 0.6, 0.4]],
  ['convolutions', convolutions, [0.7]],
  ['transformer', transformer, [0.9, 0.4]],
] as const;

async function checkFits(make: () => readonly [Step, readonly unknown[]], target: Target, share: number) {
  sn.manualSeed(2);
  const [fn, args] = make();
  const plain = compiled(fn, args, target);
  const memory = Math.floor(share * bytesOf(plain.program));
  const { program, fitting } = compiled(fn, args, target, memory);
  expect(bytesOf(program)).toBeLessThanOrEqual(memory);
  expect(fitting).toMatchObject({ budget: memory, plain: bytesOf(plain.program), bytes: bytesOf(program) });
  expect(fitting!.values.length).toBeGreaterThan(0);
  const call = (step: Step): Promise<number[][]> => {
    sn.manualSeed(7);
    return values(step(...(args as never[])));
  };
  const expected = await call(sn.compile(fn));
  const found = await call(sn.compile(fn, { memory }));
  // Kernels with other neighbours may round a sum in another order.
  found.forEach((list, i) => {
    const room = 1e-5 * Math.max(...expected[i]!.map(Math.abs));
    list.forEach((x, k) => expect(Math.abs(x - expected[i]![k]!)).toBeLessThanOrEqual(room));
  });
}

describe('a step fits, with the same results', () => {
  beforeAll(() => sn.setDevice('wasm'));
  for (const [name, make, shares] of models)
    test.each(shares)(`${name} in %f of the plain memory`, (share) => checkFits(make, wasmTarget, share));

  test('on software WebGPU', async () => {
    await sn.setDevice('webgpu:software');
    await checkFits(perceptron, softwareTarget, 0.6);
    await sn.setDevice('wasm');
  });
});

test('products are computed again last', () => {
  const [fn, args] = transformer();
  const plain = compiled(fn, args, wasmTarget);
  const { fitting } = compiled(fn, args, wasmTarget, Math.floor(0.85 * bytesOf(plain.program)));
  const dots = ({ kernels }: typeof plain): number => kernels.reduce((sum, { flops }) => sum + flops, 0);
  expect(fitting!.flops).toBeLessThan(0.05 * dots(plain));
});

test('explain says what is computed again, as text and as data', () => {
  const [fn, args] = perceptron();
  const { memory } = sn.explain(fn, ...args);
  const budget = Math.floor(0.6 * memory.peak);
  const step = sn.compile(fn, { memory: budget });
  const told = sn.explain(step as Step, ...args);
  expect(told.memory.peak).toBeLessThanOrEqual(budget);
  const { recomputed } = told.toJSON();
  expect(recomputed).toMatchObject({
    budget,
    plainPeak: memory.peak,
    savedBytes: memory.peak - told.memory.peak,
  });
  expect(recomputed!.addedFlops).toBe(told.totals.flops - sn.explain(fn, ...args).totals.flops);
  expect(String(told)).toMatch(/\d+ values computed again save .* for .* flops/);
  expect(sn.explain(fn, ...args).toJSON().recomputed).toBeUndefined();
  const roomy = sn.explain(sn.compile(fn, { memory: 2 * memory.peak }) as Step, ...args);
  expect(roomy.recomputed!.values).toEqual([]);
  expect(String(roomy)).toContain('nothing is computed again');
});

test('too little is an error that says the least it takes', async () => {
  await sn.setDevice('wasm');
  const [fn, args] = perceptron();
  const step = sn.compile(fn, { memory: 1000 }) as (...args: unknown[]) => readonly T[];
  await expect(values(step(...args))).rejects.toMatchObject({
    code: 'E_LIMIT',
    message: expect.stringMatching(
      /memory 1000 bytes is too little: a run takes .*at least .*at its peak: .*try: memory: \d+/s,
    ),
  });
  const [, least] = /try: memory: (\d+)/.exec(
    await values(step(...args)).then(String, (error: Error) => error.message),
  )!;
  expect((await values(sn.compile(fn, { memory: Number(least) })(...(args as never[])))).length).toBe(9);
  expect(() => sn.compile(fn, { memory: -1 })).toThrow('a number of bytes');
  expect(() => sn.compile(fn, { memory: '1 GiB' as unknown as number })).toThrow('a number of bytes');
});
