// The fusion budget: how many kernels each workload may take, and how much more than the least it
// may move. Counted, not timed.

import { describe, expect, test } from 'vitest';
import { budget, type BudgetLine } from '../../src/cli/bench/budget.ts';
import { explainFor } from '../../src/explain/explain.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { treeLeaves } from '../../src/tensor/tree.ts';
import { checkpointed, unchecked } from '../../src/workloads/models.ts';
import { workloads } from '../../src/workloads/all.ts';
import { timedWorkloads } from '../../src/workloads/timed/workloads.ts';

/** Most kernels, and most bytes as a multiple of the lower bound. */
const most: Readonly<Record<string, readonly [kernels: number, ratio: number]>> = {
  gelu: [1, 1],
  softmax: [1, 1],
  logSoftmax: [1, 1],
  layerNorm: [1, 1],
  rmsNorm: [1, 1],
  crossEntropyGrad: [2, 1.01],
  lmHeadLoss: [3, 1.07],
  matmulBiasGelu: [1, 1],
  convBiasRelu: [1, 1],
  normMatmul: [2, 1.3],
  attention: [1, 1],
  bigSum: [2, 1.01],
  cumsum: [3, 1.51],
  lstmStep: [3, 1.5],
  fft1d: [1, 1],
  choleskySolve: [4, 3.81],
  topkRouting: [5, 1.2],
  adam100: [1, 1],
  mlpTrainAdam: [9, 1.3],
  vmapPerSampleGrad: [7, 1.02],
  gptBlockForward: [7, 4],
  gptBlockTrain: [22, 4],
  // What each of 128 turns reads and writes counts, weights too.
  rnnScan: [26, 222],
  checkpointed: [334, 42],
  convTrain: [3, 2],
  // What each of 128 turns reads and writes counts.
  lstmTrain: [23, 77],
  decodeAttention: [1, 1],
  gemv: [1, 1],
  gemvHalf: [1, 1],
  gemvQ8: [1, 1],
  gemvQ4K: [1, 1],
  llamaDecodeLayer: [6, 1.01],
  llamaPrefillLayer: [11, 1.64],
  moeDecodeLayer: [9, 1.01],
  llamaDecodeStep: [100, 1.01],
};

const lines: ReadonlyMap<string, BudgetLine> = new Map(budget().map((line) => [line.workload, line]));

test('every workload has a budget', () => {
  expect(workloads.map(({ name }) => name)).toEqual(Object.keys(most));
});

test('a workload that is timed under the name of a counted one is the same program', () => {
  const shared = timedWorkloads.filter(({ name }) => lines.has(name));
  expect(shared.map(({ name }) => name)).toEqual([
    'gelu',
    'softmax',
    'layerNorm',
    'gptBlockForward',
    'mlpTrainAdam',
    'convTrain',
    'lstmTrain',
    'decodeAttention',
    'gemv',
    'gemvHalf',
    'gemvQ8',
  ]);
  const shapes = (args: readonly unknown[]): unknown =>
    treeLeaves(args).map(({ dtype, shape }) => [dtype, shape]);
  for (const { name, fn, args } of shared) {
    const counted = workloads.find((one) => one.name === name)!;
    if (fn === counted.fn) {
      expect(shapes(args()), name).toEqual(shapes(counted.args()));
      continue;
    }
    const { kernels, bytes, lowerBoundBytes } = lines.get(name)!;
    expect(explainFor(gpuTarget, fn, ...args()).totals, name).toMatchObject({
      kernels,
      bytes,
      lowerBoundBytes,
    });
  }
});

describe('the budget holds', () => {
  test.each(Object.entries(most))('%s: at most %j', (name, [kernels, ratio]) => {
    const line = lines.get(name)!;
    expect(line.kernels).toBeGreaterThan(0);
    expect(line.kernels).toBeLessThanOrEqual(kernels);
    expect(line.bytes / line.lowerBoundBytes).toBeLessThanOrEqual(ratio);
  });
});

test('checkpointed layers take a third of the memory for a third more arithmetic', () => {
  const args = checkpointed.args();
  const [plain, again] = [unchecked, checkpointed.fn].map((fn) => explainFor(gpuTarget, fn, ...args));
  expect(again!.memory.peak).toBeLessThanOrEqual(0.35 * plain!.memory.peak);
  expect(again!.memory.scratch).toBeLessThanOrEqual(0.2 * plain!.memory.scratch);
  expect(again!.totals.flops).toBeLessThanOrEqual(1.35 * plain!.totals.flops);
  expect(again!.totals.flops).toBeGreaterThan(plain!.totals.flops);
});

test('no workload moves less than the lower bound', () => {
  for (const { bytes, lowerBoundBytes } of lines.values())
    expect(bytes).toBeGreaterThanOrEqual(lowerBoundBytes);
});

test('memory stays close to what must be there at once', () => {
  for (const [name, { peakBytes, leastPeakBytes }] of lines) {
    expect(peakBytes).toBeGreaterThanOrEqual(leastPeakBytes);
    expect(peakBytes / leastPeakBytes, name).toBeLessThanOrEqual(1.05);
  }
  for (const { name, fn, args } of workloads) {
    const { inputs, outputs, scratch, lowerBound } = explainFor(gpuTarget, fn, ...args()).memory;
    expect(scratch, name).toBeLessThanOrEqual(1.15 * (lowerBound - inputs - outputs));
  }
});

test('the lower bound is inputs once and outputs once', () => {
  expect(lines.get('softmax')!.lowerBoundBytes).toBe(2 * 4 * 1024 * 1024);
  expect(lines.get('bigSum')!.lowerBoundBytes).toBe(4 * 2 ** 24 + 4);
});
