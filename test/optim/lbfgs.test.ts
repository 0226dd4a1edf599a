// LBFGS where calls are short, and beside what it does not train. Figures of whole trajectories are in compose.test.ts.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { BatchNorm, Linear, Sequential } from '../../src/nn/index.ts';
import { LBFGS } from '../../src/optim/index.ts';
import { close, numbers } from './support.ts';

beforeAll(() => sn.setDevice('interpreter'));

function valley(w: sn.Tensor): sn.Tensor {
  const [head, tail] = [w.narrow(0, 0, 2), w.narrow(0, 1, 2)];
  return tail.sub(head.square()).square().mul(100).add(sn.sub(1, head).square()).sum();
}

// What PyTorch 2.13 gives from [−1.2, 1, 0.5] in f64.
test.each([
  [
    'one direction a call, by a line search',
    { maxIter: 1, lineSearch: 'strongWolfe' },
    [49.199999999999996, 12.969624690142998, 5.203542581048499, 4.169184948417657],
    2,
  ],
  [
    'steps of one length, whose last is measured by the next call',
    { maxIter: 4, lr: 0.001 },
    [49.199999999999996, 48.8079924408123, 48.495911348501046, 48.178756249619155],
    4,
  ],
] as const)('%s', async (_, options, losses, evaluations) => {
  const w = sn.tensor(Float64Array.of(-1.2, 1, 0.5)).requiresGrad_();
  const optimizer = new LBFGS([w], options);
  let count = 0;
  const found: number[] = [];
  while (found.length < losses.length) {
    const before = await optimizer.step(() => {
      count += 1;
      optimizer.zeroGrad();
      const loss = valley(w);
      loss.backward();
      return loss;
    });
    found.push(before);
  }
  close(found, losses, 1e-12);
  expect(count).toBe(losses.length * evaluations);
});

test('moves both parts of complex parameters', async () => {
  const z = sn
    .complex(sn.tensor([3, 1]), sn.tensor([4, -1]))
    .detach()
    .requiresGrad_();
  const other = sn.tensor([2]).requiresGrad_();
  const target = sn.complex(sn.tensor([1, 2]), sn.tensor([-1, 5]));
  const optimizer = new LBFGS({ z, other });
  await optimizer.step(() => {
    optimizer.zeroGrad();
    const loss = z.sub(target).abs().square().sum().add(other.sub(5).square().sum());
    loss.backward();
    return loss;
  });
  close(await numbers(z), [1, -1, 2, 5], 1e-5);
  close(await numbers(other), [5], 1e-5);
});

test('leaves the state of layers to them, and tables of integers alone', async () => {
  const norm = new BatchNorm(2);
  const model = {
    net: new Sequential(new Linear(3, 2), norm),
    table: sn.tensor([2 ** 24 + 1], { dtype: 'i32' }),
  };
  const x = sn.arange(12, undefined, 1, { dtype: 'f32' }).reshape([4, 3]);
  const optimizer = new LBFGS(model, { maxIter: 2, lineSearch: 'strongWolfe' });
  const means: number[][] = [];
  await optimizer.step(async () => {
    optimizer.zeroGrad();
    const loss = model.net.forward(x).sub(1).square().mean();
    loss.backward();
    means.push(await numbers(norm.runningMean!));
    return loss;
  });
  expect(means.length).toBeGreaterThan(1);
  expect(await numbers(norm.runningMean!)).toEqual(means.at(-1));
  expect(await model.table.array()).toEqual([2 ** 24 + 1]);
});
