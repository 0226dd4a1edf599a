// Metrics: each figure is what its definition gives when it is written down in plain loops, however the items are cut into batches, as
// an object, inside a compiled step, and merged from parts.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile, crossEntropy, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import { metrics } from '../../src/data/index.ts';

type Functions = metrics.MetricFunctions<unknown, readonly Tensor[]>;

const classes = 4;
/** A few shapes alone, since each is compiled: 22 items at once, or 10, 10 and 2. */
const many = { minLength: 22, maxLength: 22 };
const sizes = fc.constantFrom(22, 10);
const grid = fc.integer({ min: 0, max: 12 }).map((at) => at / 12);
/** Items: scores of the classes with many ties, and a label. */
const items = fc.array(
  fc.record({
    scores: fc.array(grid, { minLength: classes, maxLength: classes }),
    label: fc.nat(classes - 1),
  }),
  many,
);
interface Item {
  readonly scores: readonly number[];
  readonly label: number;
}

const scoresOf = (list: readonly Item[]): Tensor => tensor(list.map(({ scores }) => [...scores]));
const labelsOf = (list: readonly Item[]): Tensor =>
  tensor(
    list.map(({ label }) => label),
    { dtype: 'i32' },
  );

/** A figure by batches of an object, by a compiled update, and by merging two halves: they must agree. */
async function figure(
  make: () => unknown,
  batches: readonly (readonly Tensor[])[],
): Promise<number | number[]> {
  const functions = make() as Functions;
  const metric = new metrics.Metric(functions);
  for (const batch of batches) metric.update(...batch);
  const value = (await metric.compute().array()) as number | number[];
  const [first, second] = [new metrics.Metric(functions), new metrics.Metric(functions)];
  batches.forEach((batch, i) => (i % 2 === 0 ? first : second).update(...batch));
  first.merge(second);
  close((await first.compute().array()) as number | number[], value);
  return value;
}

function close(found: unknown, expected: unknown): void {
  const [a, b] = [[found].flat(3), [expected].flat(3)] as [number[], number[]];
  expect(a.length).toBe(b.length);
  a.forEach((value, i) => {
    if (Number.isNaN(b[i])) expect(value).toBeNaN();
    else expect(Math.abs(value - b[i]!)).toBeLessThanOrEqual(2e-6 * Math.max(1, Math.abs(b[i]!)));
  });
}

function cut<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
    list.slice(i * size, (i + 1) * size),
  );
}

const mean = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
const argmax = (list: readonly number[]): number => list.indexOf(Math.max(...list));
/** The places of the greatest scores, the first of equals before the others. */
const best = (list: readonly number[], k: number): number[] =>
  [...list.keys()].sort((a, b) => list[b]! - list[a]! || a - b).slice(0, k);

describe.each(['interpreter', 'wasm:1', 'webgpu:software'])('on %s', (device) => {
  const check = (
    law: (list: Item[], of: (make: () => unknown) => Promise<number | number[]>) => Promise<void>,
    runs = 4,
  ): Promise<void> => {
    setDevice(device);
    return fc.assert(
      fc.asyncProperty(items, sizes, async (list, size) => {
        const batches = cut(list, size).map((batch) => [scoresOf(batch), labelsOf(batch)]);
        await law(list, (make) => figure(make, batches));
      }),
      { numRuns: runs },
    );
  };

  test('accuracy is the share of labels found, over items and over classes', () =>
    check(async (list, of) => {
      const right = ({ scores, label }: Item, k = 1): number => (best(scores, k).includes(label) ? 1 : 0);
      close(await of(() => metrics.accuracy()), mean(list.map((item) => right(item))));
      close(await of(() => metrics.accuracy({ topK: 2 })), mean(list.map((item) => right(item, 2))));
      const own = [0, 1, 2, 3]
        .map((c) => list.filter(({ label }) => label === c))
        .filter(({ length }) => length > 0);
      const macro = mean(own.map((part) => mean(part.map((item) => right(item)))));
      close(await of(() => metrics.accuracy({ average: 'macro', classes })), macro);
      const others = list.filter(({ label }) => label !== 2);
      close(await of(() => metrics.accuracy({ ignoreIndex: 2 })), mean(others.map((item) => right(item))));
    }));

  test('the confusion matrix counts, and precision, recall and F follow from it', () =>
    check(async (list, of) => {
      const table = [0, 1, 2, 3].map((row) =>
        [0, 1, 2, 3].map(
          (column) => list.filter(({ scores, label }) => label === row && argmax(scores) === column).length,
        ),
      );
      expect(await of(() => metrics.confusionMatrix({ classes }))).toEqual(table);
      const ofTarget = table.map((row) =>
        row.map(
          (count) =>
            count /
            Math.max(
              1,
              row.reduce((a, b) => a + b, 0),
            ),
        ),
      );
      close(await of(() => metrics.confusionMatrix({ classes, normalize: 'target' })), ofTarget);
      const right = table.map((row, c) => row[c]!);
      const target = table.map((row) => row.reduce((a, b) => a + b, 0));
      const predicted = target.map((_, c) => table.reduce((total, row) => total + row[c]!, 0));
      const share = (a: number, b: number): number => (b === 0 ? 0 : a / b);
      const figures = {
        precision: right.map((count, c) => share(count, predicted[c]!)),
        recall: right.map((count, c) => share(count, target[c]!)),
        f1: right.map((count, c) => share(2 * count, target[c]! + predicted[c]!)),
      };
      const made = { precision: metrics.precision, recall: metrics.recall, f1: metrics.f1 };
      for (const name of ['precision', 'recall', 'f1'] as const) {
        const [each, metric] = [figures[name], made[name]];
        close(await of(() => metric({ classes, average: 'none' })), each);
        const occurring = each.filter((_, c) => target[c]! + predicted[c]! > 0);
        close(await of(() => metric({ classes })), mean(occurring));
        const weighted = each.reduce((total, value, c) => total + value * target[c]!, 0) / list.length;
        close(await of(() => metric({ classes, average: 'weighted' })), weighted);
        close(
          await of(() => metric({ classes, average: 'micro' })),
          share(
            right.reduce((a, b) => a + b, 0),
            list.length,
          ),
        );
      }
      const beta2 = right.map((count, c) => share(5 * count, 4 * target[c]! + predicted[c]!));
      close(await of(() => metrics.f1({ classes, beta: 2, average: 'none' })), beta2);
    }, 2));

  test('areas and precisions are those of all pairs and thresholds', async () => {
    setDevice(device);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(grid, fc.boolean()), many), sizes, async (list, size) => {
        const [ones, others] = [list.filter(([, one]) => one), list.filter(([, one]) => !one)];
        const pairs = ones.flatMap(([s]) => others.map(([t]) => (s > t ? 1 : s === t ? 0.5 : 0) as number));
        const area = pairs.length === 0 ? NaN : mean(pairs);
        const average = mean(
          ones.map(([s]) => ones.filter(([t]) => t >= s).length / list.filter(([t]) => t >= s).length),
        );
        const batches = cut(list, size).map((batch) => [
          tensor(batch.map(([score]) => score)),
          tensor(batch.map(([, one]) => one)),
        ]);
        close(await figure(() => metrics.overAll(metrics.rocAuc), batches), area);
        close(await figure(() => metrics.overAll(metrics.averagePrecisionScore), batches), average);
        // Scores are multiples of 1/12, so 13 bins tell them apart.
        const range = [-1 / 24, 25 / 24] as const;
        close(await figure(() => metrics.auc({ bins: 13, range }), batches), area);
        close(await figure(() => metrics.averagePrecision({ bins: 13, range }), batches), average);
      }),
      { numRuns: 4 },
    );
  });

  test('errors, variance and likelihood are their formulas', async () => {
    setDevice(device);
    const number = fc.double({ min: -3, max: 3, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(number, number), many), sizes, async (given, size) => {
        const list = given.map(([p, t], i) => [Math.fround(p), Math.fround(t + i)] as const);
        const batches = cut(list, size).map((batch) => [
          tensor(batch.map(([p]) => p)),
          tensor(batch.map(([, t]) => t)),
        ]);
        const square = mean(list.map(([p, t]) => (p - t) ** 2));
        close(await figure(() => metrics.mse(), batches), square);
        close(await figure(() => metrics.mae(), batches), mean(list.map(([p, t]) => Math.abs(p - t))));
        const middle = mean(list.map(([, t]) => t));
        const spread = mean(list.map(([, t]) => (t - middle) ** 2));
        if (spread > 0.1) close(await figure(() => metrics.r2(), batches), 1 - square / spread);
        close(
          await figure(
            () => metrics.mean(),
            batches.map(([p]) => [p!]),
          ),
          mean(list.map(([p]) => p)),
        );
        const weights = mean(list.map(([, t]) => t ** 2));
        const squared = batches.map(([p, t]) => [p!, t!.square()]);
        if (weights > 0.1)
          close(
            await figure(() => metrics.mean(), squared),
            mean(list.map(([p, t]) => p * t ** 2)) / weights,
          );
      }),
      { numRuns: 4 },
    );
    const logits = tensor([
      [1, 2, 0.5],
      [0, -1, 3],
      [2, 2, 2],
    ]);
    const targets = tensor([1, 0, 2], { dtype: 'i32' });
    const loss = (await crossEntropy(logits, targets).item()) as number;
    close(await figure(() => metrics.perplexity(), [[logits, targets]]), Math.exp(loss));
    const two = (await crossEntropy(logits.slice(0, 1, 3), targets.slice(0, 1, 3)).item()) as number;
    close(await figure(() => metrics.perplexity({ ignoreIndex: 1 }), [[logits, targets]]), Math.exp(two));
  });

  test('a state goes through a compiled step', async () => {
    setDevice(device);
    const metric = metrics.confusionMatrix({ classes: 3 });
    const rate = metrics.accuracy();
    let builds = 0;
    const step = compile((table: Tensor, found: metrics.Rate, preds: Tensor, targets: Tensor) => {
      builds += 1;
      return { table: metric.update(table, preds, targets), found: rate.update(found, preds, targets) };
    });
    let [table, found] = [metric.init(), rate.init()];
    const preds = tensor([
      [0.1, 0.7, 0.2],
      [0.9, 0, 0.1],
    ]);
    for (let i = 0; i < 5; i++)
      ({ table, found } = step(table, found, preds, tensor([1, i % 3], { dtype: 'i32' })));
    expect(builds).toBe(1);
    expect(await metric.compute(table).array()).toEqual([
      [2, 0, 0],
      [2, 5, 0],
      [1, 0, 0],
    ]);
    close(await rate.compute(found).array(), 0.7);
  });
});

describe('a Metric', () => {
  test('starts over, and goes on from a state', async () => {
    setDevice('interpreter');
    const metric = new metrics.Metric(metrics.mean());
    metric.update(3);
    metric.update(tensor([5, 7]));
    expect(await metric.compute().item()).toBe(5);
    const { state } = metric;
    metric.reset();
    expect(await metric.compute().item()).toBeNaN();
    metric.load(state);
    metric.update(1);
    expect(await metric.compute().item()).toBe(4);
    expect(() => metric.load({ total: zeros([]) } as never)).toThrow(/load: the trees differ in structure/);
  });

  test('sums a hundred thousand batches as well as one', async () => {
    setDevice('wasm:1');
    const functions = metrics.mean();
    const hundred = compile((state: metrics.MeanState, value: Tensor) => {
      let next = state;
      for (let i = 0; i < 100; i++) next = functions.update(next, value);
      return next;
    });
    let state = functions.init();
    for (let i = 0; i < 1000; i++) state = hundred(state, tensor(0.1));
    const value = (await functions.compute(state).item()) as number;
    expect(Math.abs(value - Math.fround(0.1))).toBeLessThan(1e-7);
  });

  test('keeps nothing of what it was given: its update is computed with the next one', async () => {
    setDevice('wasm:1');
    const metric = new metrics.Metric(metrics.accuracy());
    const [preds, targets] = [tensor([[0.1, 0.9]]), tensor([1], { dtype: 'i32' })];
    for (let i = 0; i < 200; i++) metric.update(preds, targets);
    expect(await metric.compute().item()).toBe(1);
    // Its own state of a compiled step would be left behind in the trace.
    const step = compile((x: Tensor) => {
      metric.update(x, targets);
      return x;
    });
    expect(() => step(preds)).toThrow(
      /update: a function that is being compiled cannot change what lies outside[^]*metric\.update\(state, …\)/,
    );
  });

  test('carries no history', async () => {
    setDevice('interpreter');
    const w = tensor([1, 2]).requiresGrad_();
    const metric = new metrics.Metric(metrics.mean());
    metric.update(w.mul(2));
    expect(metric.compute().requiresGrad).toBe(false);
  });

  test('refuses what does not fit', async () => {
    setDevice('interpreter');
    const rate = new metrics.Metric(metrics.accuracy());
    expect(() => rate.update(zeros([2, 3]), zeros([2]))).toThrow(/accuracy: the targets must be labels/);
    expect(() => rate.update(zeros([2, 3]), zeros([3], { dtype: 'i32' }))).toThrow(
      /scores \[N,C,…\] for targets \[N,…\]/,
    );
    expect(() => metrics.accuracy({ average: 'macro' })).toThrow(/needs their number/);
    const table = new metrics.Metric(metrics.confusionMatrix({ classes: 2 }));
    expect(() => table.update(zeros([2, 3]), zeros([2], { dtype: 'i32' }))).toThrow(/must be of 2 classes/);
    table.update(tensor([0, 5], { dtype: 'i32' }), tensor([0, 1], { dtype: 'i32' }));
    await expect(table.compute().array()).rejects.toThrow(
      /confusionMatrix: predicted label 5[^]*the 2 classes/,
    );
    expect(await metrics.rocAuc(tensor([0.5, NaN]), tensor([0, 1], { dtype: 'i32' })).item()).toBeNaN();
    const binned = new metrics.Metric(metrics.auc());
    binned.update(tensor([0.1, NaN, 0.5]), tensor([0, 1, 1], { dtype: 'i32' }));
    expect(await binned.compute().item()).toBeNaN();
  });
});
