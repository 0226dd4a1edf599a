// A perceptron 784-128-10 learns handwritten digits: idx files in, a compiled Adam step that gives its memory back to itself,
// accuracy on images it has not seen. Run it with `npx tsx examples/mnist-mlp.ts FOLDER`, where the folder holds the MNIST files
// (images-idx3 and labels-idx1, gzipped or not).

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as sn from '../src/index.ts';
import { gunzip, readIdx } from '../src/io/index.ts';
import * as nn from '../src/nn/index.ts';
import { adam, type OptimizerState } from '../src/optim/index.ts';

export interface MnistSettings {
  readonly folder: string;
  readonly epochs: number;
  readonly batch: number;
  readonly seed: number;
  /** Images at the end of the file that are only used to measure. */
  readonly held: number;
  /** Images to train on, all others by default. */
  readonly train?: number;
  readonly say: (text: string) => void;
}

interface Digits {
  /** f32[n, 784], from 0 to 1 */
  readonly images: Float32Array;
  /** i32[n] */
  readonly labels: Int32Array;
}

/** Reads the images and labels of the first such pair of files in a folder. */
async function readDigits(folder: string): Promise<Digits> {
  const files = (await readdir(folder)).sort();
  const read = async (part: string): Promise<Uint8Array> => {
    const name = files.find((file) => file.includes(part));
    if (name === undefined) throw new Error(`${folder} has no file *${part}*`);
    const bytes = new Uint8Array(await readFile(join(folder, name)));
    return readIdx(name.endsWith('.gz') ? await gunzip(bytes) : bytes).data;
  };
  const [pixels, labels] = [await read('images-idx3'), await read('labels-idx1')];
  return { images: Float32Array.from(pixels, (pixel) => pixel / 255), labels: Int32Array.from(labels) };
}

/** 0 … n−1 in an order that the generator's seed fixes. */
async function shuffled(n: number): Promise<Int32Array> {
  const keys = (await sn.rand([n]).data()) as Float32Array;
  return Int32Array.from(keys.keys()).sort((a, b) => keys[a]! - keys[b]! || a - b);
}

/** Trains and gives the share of held images told right, and the weights, to compare runs by. */
export async function mnist(
  settings: MnistSettings,
): Promise<{ accuracy: number; losses: number[]; weights: Float32Array }> {
  const { folder, epochs, batch, seed, held, say } = settings;
  sn.manualSeed(seed);
  const digits = await readDigits(folder);
  const all = digits.labels.length;
  const count = settings.train ?? all - held;
  const images = sn.tensor(digits.images, { shape: [all, 784] });
  const labels = sn.tensor(digits.labels);

  const optimizer = adam({ lr: 2e-3 });
  let model = new nn.Sequential(new nn.Linear(784, 128), sn.relu, new nn.Linear(128, 10));
  let state = optimizer.init(model);

  const step = sn.compile(
    (net: nn.Sequential, before: OptimizerState, chosen: sn.Tensor) => {
      const [x, y] = [images.indexSelect(0, chosen), labels.indexSelect(0, chosen)];
      const loss = (m: nn.Sequential): sn.Tensor => sn.crossEntropy(m.forward(x), y);
      const { value, grad } = sn.valueAndGrad(loss)(net);
      const [next, after] = optimizer.update(net, grad, before);
      return { model: next, state: after, loss: value };
    },
    { donate: [0, 1] },
  );
  const measure = sn.compile((net: nn.Sequential) => {
    const [x, y] = [images.narrow(0, all - held, held), labels.narrow(0, all - held, held)];
    return net.forward(x).argmax(1).eq(y).cast('f32').mean();
  });

  const losses: number[] = [];
  let accuracy = 0;
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const order = await shuffled(count);
    const pending: sn.Tensor[] = [];
    for (let start = 0; start + batch <= count; start += batch) {
      const done = step(model, state, sn.tensor(order.slice(start, start + batch)));
      ({ model, state } = done);
      pending.push(done.loss);
    }
    const mean = Number(await sn.stack(pending).mean().item());
    losses.push(mean);
    accuracy = Number(await measure(model).item());
    say(`epoch ${epoch}  loss ${mean.toFixed(4)}  held images right ${(100 * accuracy).toFixed(2)} %`);
  }
  const weights = (await nn.parameters(model)[0]!.data()) as Float32Array;
  return { accuracy, losses, weights };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = process.argv[2];
  if (folder === undefined) {
    console.error('usage: npx tsx examples/mnist-mlp.ts FOLDER');
    process.exitCode = 2;
  } else await mnist({ folder, epochs: 5, batch: 64, seed: 1, held: 2000, say: console.log });
}
