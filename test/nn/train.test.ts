import { beforeAll, describe, expect, test } from 'vitest';
import * as nn from '../../src/nn/index.ts';
import { Adam, AdamW, SGD, warmupCosine } from '../../src/optim/index.ts';
import { setDevice } from '../../src/tensor/device.ts';
import '../../src/operations/methods.ts';
import { manualSeed } from '../../src/tensor/generator.ts';
import { arange, tensor } from '../../src/tensor/ops/creation/creation.ts';
import { bceWithLogits } from '../../src/tensor/ops/loss.ts';
import { crossEntropy } from '../../src/tensor/ops/classification-loss.ts';
import { tanh } from '../../src/tensor/ops/elementwise/elementwise.ts';
import { randint } from '../../src/tensor/ops/creation/random.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { numbers } from '../optim/support.ts';

beforeAll(() => setDevice('interpreter'));

const inputs = (): Tensor => tensor([0, 0, 0, 1, 1, 0, 1, 1], { shape: [4, 2] });
const targets = (): Tensor => tensor([0, 1, 1, 0], { shape: [4, 1] });

/** Losses of training a small network on exclusive or. */
async function losses(seed: number, steps: number, dropout = 0): Promise<number[]> {
  manualSeed(seed);
  const model = new nn.Sequential(new nn.Linear(2, 8), tanh, new nn.Dropout(dropout), new nn.Linear(8, 1));
  const optimizer = new Adam(model, { lr: 0.1 });
  const [x, y] = [inputs(), targets()];
  const found: Tensor[] = [];
  for (let i = 0; i < steps; i++) {
    optimizer.zeroGrad();
    const loss = bceWithLogits(model.forward(x), y);
    loss.backward();
    optimizer.step();
    found.push(loss.detach());
  }
  const values = await Promise.all(found.map((loss) => loss.item()));
  return values as number[];
}

describe('training', () => {
  test('learns exclusive or', async () => {
    const found = await losses(1, 100);
    expect(found[0]).toBeGreaterThan(0.5);
    expect(found.at(-1)).toBeLessThan(0.05);
  });

  test('gives the same losses bit by bit from the same seed, random layers included', async () => {
    const first = await losses(2, 50, 0.2);
    expect(await losses(2, 50, 0.2)).toEqual(first);
    expect(await losses(3, 50, 0.2)).not.toEqual(first);
  });

  test('separates classes through convolution, batch norm and pooling', async () => {
    manualSeed(4);
    const model = new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1, bias: false }),
      new nn.BatchNorm(4),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Flatten(),
      new nn.Linear(16, 2),
    );
    // Horizontal and vertical bars.
    const bar = (vertical: boolean, at: number): number[] =>
      Array.from({ length: 16 }, (_, i) => ((vertical ? i % 4 : i >> 2) === at ? 1 : 0));
    const images = [0, 1, 2, 3].flatMap((at) => [...bar(false, at), ...bar(true, at)]);
    const x = tensor(images, { shape: [8, 1, 4, 4] });
    const y = tensor([0, 1, 0, 1, 0, 1, 0, 1], { dtype: 'i32' });
    const optimizer = new SGD(model, { lr: 0.1, momentum: 0.9 });
    for (let i = 0; i < 30; i++) {
      optimizer.zeroGrad();
      crossEntropy(model.forward(x), y).backward();
      optimizer.step();
    }
    nn.evalMode(model);
    expect(await numbers(model.forward(x).argmax(1))).toEqual(await numbers(y));
  });

  test('teaches a transformer to repeat the token before', async () => {
    manualSeed(5);
    class Model extends nn.Module {
      readonly tokens = new nn.Embedding(5, 16);
      readonly places = new nn.Embedding(6, 16);
      readonly block = new nn.TransformerBlock(16, 2, { causal: true, hidden: 16, kvHeads: 1 });
      readonly norm = new nn.LayerNorm(16);
      readonly head = new nn.Linear(16, 5, { bias: false });

      forward(x: Tensor): Tensor {
        const stream = this.tokens.forward(x).add(this.places.forward(arange(6)));
        return this.head.forward(this.norm.forward(this.block.forward(stream)));
      }
    }
    const model = new Model();
    const steps = 60;
    const schedule = warmupCosine({ lr: 0.02, warmup: 5, tMax: steps });
    const optimizer = new AdamW(model, { lr: schedule });
    const loss = (): Tensor => {
      const x = randint(0, 5, [8, 6]);
      const logits = model.forward(x).narrow(1, 1, 5).reshape([40, 5]);
      return crossEntropy(logits, x.narrow(1, 0, 5).reshape([40]));
    };
    let last: Tensor | undefined;
    for (let i = 0; i < steps; i++) {
      optimizer.zeroGrad();
      last = loss();
      last.backward();
      optimizer.step();
    }
    expect(await last!.item()).toBeLessThan(0.3);
  });
});
