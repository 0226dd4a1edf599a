// Whether memory stays flat and steps stay cheap in a long loop of training that disposes of nothing: a perceptron, new batches
// at every step, the loss read now and then. `npx tsx bench/memory-flat.ts [device] [steps]` prints a table for an eager
// optimizer with and without moments, and for a compiled step that donates its state.

import { compile, manualSeed, setDevice, tensor, valueAndGrad, type Tensor } from '../src/index.ts';
import { Linear, Sequential } from '../src/nn/index.ts';
import { Adam, adam, SGD } from '../src/optim/index.ts';
import { device } from '../src/tensor/device.ts';
import { compileCount } from '../src/tensor/evaluate/executable.ts';

export const faces = ['Adam', 'SGD', 'compiled Adam'] as const;
export type Face = (typeof faces)[number];

export interface Sample {
  readonly step: number;
  readonly loss: number;
  /** Since the sample before. */
  readonly msPerStep: number;
  readonly rssMiB: number;
  /** What of that is not the engine's heap. */
  readonly nativeMiB: number;
  readonly heapMiB: number;
  /** Live buffers of the device, and what they and the pool of freed ones hold. */
  readonly buffers: number;
  readonly deviceMiB: number;
  /** Compiled since the loop began. */
  readonly programs: number;
}

const [batch, inputs, hidden] = [16, 8, 16];
const readEvery = 50;

/** Inputs in [-1, 1], and a function of them that a perceptron can learn. */
function newBatch(): [x: Tensor, y: Tensor] {
  const x = Float32Array.from({ length: batch * inputs }, () => 2 * Math.random() - 1);
  const y = Float32Array.from({ length: batch }, (_, i) => {
    const [a, b, c] = [x[i * inputs]!, x[i * inputs + 1]!, x[i * inputs + 2]!];
    return a * b + Math.sin(2 * c);
  });
  return [tensor(x, { shape: [batch, inputs] }), tensor(y, { shape: [batch, 1] })];
}

function perceptron(): Sequential {
  return new Sequential(new Linear(inputs, hidden), (x: Tensor) => x.tanh(), new Linear(hidden, 1));
}

function lossOf(model: Sequential, x: Tensor, y: Tensor): Tensor {
  return model.forward(x).sub(y).square().mean();
}

/** A step of training on a new batch; gives its loss. */
function trainer(face: Face): () => Tensor {
  const model = perceptron();
  if (face === 'compiled Adam') {
    const { init, update } = adam({ lr: 0.003 });
    const step = compile(
      (current: Sequential, state: ReturnType<typeof init>, x: Tensor, y: Tensor) => {
        const { value, grad } = valueAndGrad((m: Sequential) => lossOf(m, x, y))(current);
        return [value, ...update(current, grad, state)] as const;
      },
      { donate: [0, 1] },
    );
    let [current, state] = [model, init(model)];
    return () => {
      const [loss, nextModel, nextState] = step(current, state, ...newBatch());
      [current, state] = [nextModel, nextState];
      return loss;
    };
  }
  const optimizer =
    face === 'Adam' ? new Adam(model, { lr: 0.003 }) : new SGD(model, { lr: 0.05, momentum: 0.9 });
  return () => {
    const loss = lossOf(model, ...newBatch());
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
}

/**
 * Trains on the chosen device for as many steps as the last of `at` says, and takes samples at these steps, once `collect` has freed
 * what is garbage.
 */
export async function measureTraining(
  face: Face,
  at: readonly number[],
  collect: () => void = () => undefined,
): Promise<Sample[]> {
  manualSeed(1);
  const { memory } = await device().then((open) => ({ memory: () => open.memory() }));
  const step = trainer(face);
  const samples: Sample[] = [];
  const programs = compileCount();
  let [since, start] = [0, performance.now()];
  for (let i = 1; i <= at.at(-1)!; i++) {
    const loss = step();
    if (i % readEvery !== 0 && !at.includes(i)) continue;
    const value = (await loss.item()) as number;
    if (!at.includes(i)) continue;
    collect();
    const { rss, heapTotal, heapUsed } = process.memoryUsage();
    const { live, pooled, buffers } = memory();
    const msPerStep = (performance.now() - start) / (i - since);
    const deviceMiB = (live + pooled) / 2 ** 20;
    samples.push({
      step: i,
      loss: value,
      msPerStep,
      rssMiB: rss / 2 ** 20,
      nativeMiB: (rss - heapTotal) / 2 ** 20,
      heapMiB: heapUsed / 2 ** 20,
      buffers,
      deviceMiB,
      programs: compileCount() - programs,
    });
    [since, start] = [i, performance.now()];
  }
  return samples;
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [name = 'webgpu:software', steps = '10000'] = process.argv.slice(2);
  const last = Number(steps);
  setDevice(name);
  for (const face of faces) {
    console.log(`\n${face} on ${name}`);
    const samples = await measureTraining(face, [last / 10, last / 2, last]);
    console.table(
      samples.map((sample) =>
        Object.fromEntries(Object.entries(sample).map(([key, value]) => [key, Number(value.toPrecision(3))])),
      ),
    );
  }
}
