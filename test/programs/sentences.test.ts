// A classifier of sequences of different lengths: what is behind the end of a sequence changes nothing, and it learns.

import { expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Embedding, Linear, LSTM, Module } from '../../src/nn/index.ts';
import { AdamW } from '../../src/optim/index.ts';

class Classifier extends Module {
  readonly embedding = new Embedding(12, 8);
  readonly lstm = new LSTM(8, 12, { batchFirst: true, bidirectional: true });
  readonly head = new Linear(24, 2);

  forward(tokens: sn.Tensor, lengths: readonly number[]): sn.Tensor {
    const [outputs] = this.lstm.forward(this.embedding.forward(tokens), undefined, { lengths });
    const counts = sn.tensor([...lengths]).unsqueeze(1);
    return this.head.forward(outputs.sum(1).div(counts));
  }
}

const lengths = [7, 3, 5, 1, 6, 2];
const words = lengths.map((length, i) =>
  Array.from({ length: 7 }, (_, t) => (t < length ? 1 + ((i * 5 + t * 3) % 10) : 0)),
);
// Whether the first word is an even one.
const labels = sn.tensor(
  words.map(([first]) => first! % 2),
  { dtype: 'i32' },
);

test('padding changes nothing, and the model learns its sentences', async () => {
  sn.setDevice('wasm');
  sn.manualSeed(3);
  const model = new Classifier();
  const tokens = sn.tensor(words, { dtype: 'i32' });
  const other = tokens.add(sn.tensor(words).eq(0).cast('i32').mul(11));
  const [a, b] = [await model.forward(tokens, lengths).data(), await model.forward(other, lengths).data()];
  expect(a).toEqual(b);

  const optimizer = new AdamW(model, { lr: 0.05 });
  let loss = Infinity;
  for (let i = 0; i < 25; i++) {
    optimizer.zeroGrad();
    const now = sn.crossEntropy(model.forward(tokens, lengths), labels);
    now.backward();
    optimizer.step();
    loss = await now.item();
  }
  expect(loss).toBeLessThan(0.05);
  expect(await model.forward(tokens, lengths).argmax(1).eq(labels).all().item()).toBe(true);
});
