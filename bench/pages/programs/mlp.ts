// A perceptron that learns to tell whether two bits differ: 20 steps of Adam, as the README trains it.

import { manualSeed, mseLoss, setDevice, tanh, tensor } from 'sinter';
import { Linear, Sequential } from 'sinter/nn';
import { Adam } from 'sinter/optim';

const device = new URLSearchParams(location.search).get('device');
if (device !== null) setDevice(device);

async function train(): Promise<number> {
  manualSeed(0);
  const model = new Sequential(new Linear(2, 16), tanh, new Linear(16, 1));
  const optimizer = new Adam(model, { lr: 0.05 });
  const x = tensor([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ]);
  const xor = tensor([[0], [1], [1], [0]]);
  for (let step = 0; step < 20; step++) {
    mseLoss(model.forward(x), xor).backward();
    optimizer.step();
    optimizer.zeroGrad();
  }
  return Number(await mseLoss(model.forward(x), xor).item());
}

void train().then((loss) => console.log([loss]));
