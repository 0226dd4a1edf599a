// A perceptron 784-128-10 learns handwritten digits: idx files in, a compiled Adam step that gives its memory back to itself,
// accuracy on images it has not seen. Run it with `npx tsx examples/mnist-mlp.ts FOLDER`, where the folder holds the MNIST files
// (images-idx3 and labels-idx1, gzipped or not). `mnist-bundle.ts` has the same step for pages.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as sn from 'sinter';
import { gunzip, readIdx } from 'sinter/io';
import * as nn from 'sinter/nn';
import { adam, type OptimizerState } from 'sinter/optim';

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

/** What training changes. */
export interface Learner {
  readonly model: nn.Sequential;
  readonly optimizer: OptimizerState;
}

const optimizer = adam({ lr: 2e-3 });

/** A perceptron that knows nothing yet, with weights of the current seed. */
export function newLearner(): Learner {
  const model = new nn.Sequential(new nn.Linear(784, 128), sn.relu, new nn.Linear(128, 10));
  return { model, optimizer: optimizer.init(model) };
}

/** One step: images f32[n, 784] from 0 to 1, labels i32[n]. */
export function train(
  { model, optimizer: before }: Learner,
  images: sn.Tensor,
  labels: sn.Tensor,
): { state: Learner; loss: sn.Tensor } {
  const lossOf = (net: nn.Sequential): sn.Tensor => sn.crossEntropy(net.forward(images), labels);
  const { value: loss, grad } = sn.valueAndGrad(lossOf)(model);
  const [next, after] = optimizer.update(model, grad, before);
  return { state: { model: next, optimizer: after }, loss };
}

/** A number for each digit and image; the greatest is the guess. */
export function predict({ model }: Learner, images: sn.Tensor): { logits: sn.Tensor } {
  return { logits: model.forward(images) };
}

/** Reads the images and labels of the first such pair of files in a folder. */
export async function readDigits(folder: string): Promise<Digits> {
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

  let learner = newLearner();
  const step = sn.compile(
    (now: Learner, chosen: sn.Tensor) =>
      train(now, images.indexSelect(0, chosen), labels.indexSelect(0, chosen)),
    { donate: [0] },
  );
  const measure = sn.compile((now: Learner) => {
    const [x, y] = [images.narrow(0, all - held, held), labels.narrow(0, all - held, held)];
    return predict(now, x).logits.argmax(1).eq(y).cast('f32').mean();
  });

  const losses: number[] = [];
  let accuracy = 0;
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const order = await shuffled(count);
    const pending: sn.Tensor[] = [];
    for (let start = 0; start + batch <= count; start += batch) {
      const { state, loss } = step(learner, sn.tensor(order.slice(start, start + batch)));
      learner = state;
      pending.push(loss);
    }
    const mean = Number(await sn.stack(pending).mean().item());
    losses.push(mean);
    accuracy = Number(await measure(learner).item());
    say(`epoch ${epoch}  loss ${mean.toFixed(4)}  held images right ${(100 * accuracy).toFixed(2)} %`);
  }
  const weights = (await nn.parameters(learner.model)[0]!.data()) as Float32Array;
  return { accuracy, losses, weights };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = process.argv[2];
  if (folder === undefined) {
    console.error('usage: npx tsx examples/mnist-mlp.ts FOLDER');
    process.exitCode = 2;
  } else await mnist({ folder, epochs: 5, batch: 64, seed: 1, held: 2000, say: console.log });
}
