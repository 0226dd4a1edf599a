// Training through a loader, on real data: a perceptron learns digits from files to a stated accuracy, and pictures in folders described
// by a table go all the way into a step.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encode } from 'fast-png';
import { beforeEach, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as data from '../../src/data/index.ts';
import * as nn from '../../src/nn/index.ts';
import { adam, type OptimizerState } from '../../src/optim/index.ts';

const folder = fileURLToPath(new URL('../../../shared/data/mnist/', import.meta.url));
const there = existsSync(folder);
if (!there) console.warn(`skipped: the MNIST files are not at ${folder}`);

beforeEach(() => {
  sn.setDevice('wasm:1');
  sn.manualSeed(1);
});

const optimizer = adam({ lr: 3e-3 });
const rate = data.metrics.accuracy();

interface Learner {
  readonly model: nn.Sequential;
  readonly state: OptimizerState;
}

/** Pixels u8 [n, …] as inputs f32 [n, size]. */
const inputs = (pixels: sn.Tensor): sn.Tensor => pixels.flatten(1).toFloat().div(255);

const step = sn.compile((now: Learner, seen: data.metrics.Rate, pixels: sn.Tensor, label: sn.Tensor) => {
  const lossOf = (model: nn.Sequential): sn.Tensor =>
    sn.crossEntropy(model.forward(inputs(pixels)), label.toInt());
  const { value: loss, grad } = sn.valueAndGrad(lossOf)(now.model);
  const [model, state] = optimizer.update(now.model, grad, now.state);
  return {
    learner: { model, state },
    loss,
    seen: rate.update(seen, now.model.forward(inputs(pixels)), label.toInt()),
  };
});

function newLearner(size: number, classes: number): Learner {
  const model = new nn.Sequential(new nn.Linear(size, 32), sn.relu, new nn.Linear(32, classes));
  return { model, state: optimizer.init(model) };
}

test.skipIf(!there)('a perceptron reads 88 % of unseen digits after one epoch of files', async () => {
  const digits = await data.fromFiles({
    pixels: join(folder, 't10k-images-idx3-ubyte.gz'),
    label: join(folder, 't10k-labels-idx1-ubyte.gz'),
  });
  expect(digits.length).toBe(10_000);
  const numbers = Array.from({ length: 10_000 }, (_, i) => i);
  const [known, unseen] = [
    data.subset(digits, numbers.slice(0, 8000)),
    data.subset(digits, numbers.slice(8000)),
  ];
  const loader = new data.DataLoader(known, { batchSize: 100, shuffle: true, seed: 1, dropLast: true });
  let [learner, seen] = [newLearner(784, 10), rate.init()];
  const reports: data.ProgressReport[] = [];
  const told = { onReport: (at: data.ProgressReport) => void reports.push(at) };
  for await (const { pixels, label } of data.progress(loader, told))
    ({ learner, seen } = step(learner, seen, pixels, label));
  expect(reports.at(-1)).toMatchObject({ done: 80, total: 80, isOver: true });
  // While it learned, from nothing: less than what it knows now.
  expect(await rate.compute(seen).item()).toBeGreaterThan(0.7);

  const score = sn.compile((model: nn.Sequential, pixels: sn.Tensor) => model.forward(inputs(pixels)));
  const accuracy = new data.metrics.Metric(rate);
  const table = new data.metrics.Metric(data.metrics.confusionMatrix({ classes: 10 }));
  for await (const { pixels, label } of new data.DataLoader(unseen, { batchSize: 500 })) {
    const scores = score(learner.model, pixels);
    accuracy.update(scores, label);
    table.update(scores, label);
  }
  expect(await accuracy.compute().item()).toBeGreaterThan(0.88);
  const counts = (await table.compute().array()) as number[][];
  expect(counts.flat().reduce((a, b) => a + b, 0)).toBe(2000);
});

test('a table of pictures becomes batches, and a model that tells them apart', async () => {
  const place = mkdtempSync(join(tmpdir(), 'sinter-training-'));
  try {
    // Pictures that are darker above or below, and a table that says which they are and which to leave out.
    const lines = ['file,kind,usable'];
    for (let i = 0; i < 48; i++) {
      const isDark = i % 2;
      const pixels = Uint8Array.from(
        { length: 64 },
        (_, at) => ((at < 32 ? 1 : 0) ^ isDark) * 150 + ((at * 37 + i * 11) % 90),
      );
      mkdirSync(join(place, 'all'), { recursive: true });
      writeFileSync(
        join(place, 'all', `${i}.png`),
        encode({ width: 8, height: 8, channels: 1, data: pixels }),
      );
      lines.push(`all/${i}.png,${isDark ? 'below' : 'above'},${i % 6 === 5 ? 'no' : 'yes'}`);
    }
    writeFileSync(join(place, 'table.csv'), lines.join('\n'));

    const kinds = ['above', 'below'];
    const rows = await data.readCsv(join(place, 'table.csv'));
    const usable = await data.filter(rows, ({ usable: told }) => told === 'yes');
    expect(usable.length).toBe(40);
    const pictures = data.map(usable, async (row) => ({
      pixels: await data.readImage(join(place, row['file'] as string), { channels: 1, size: [4, 4] }),
      label: data.scalar(kinds.indexOf(row['kind'] as string), 'i32'),
    }));
    const [train, held] = data.randomSplit(pictures, [0.8, 0.2], { seed: 3 });
    const loader = new data.DataLoader(train, { batchSize: 16, shuffle: true, seed: 2, prefetch: 3 });
    let [learner, seen] = [newLearner(16, 2), rate.init()];
    for (let epoch = 0; epoch < 20; epoch++)
      for await (const { pixels, label } of loader) ({ learner, seen } = step(learner, seen, pixels, label));
    const accuracy = new data.metrics.Metric(data.metrics.accuracy());
    for await (const { pixels, label } of new data.DataLoader(held, { batchSize: 8 }))
      accuracy.update(learner.model.forward(inputs(pixels)), label);
    expect(await accuracy.compute().item()).toBe(1);
  } finally {
    rmSync(place, { recursive: true });
  }
});
