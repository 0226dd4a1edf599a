// What the browser tests compute: one program that runs in Node, in a page and in a worker, on the device it is given. Goes
// out: plain numbers and errors, so that they can be sent over and compared.

import {
  compile,
  DeviceError,
  exp,
  linspace,
  loadCompiler,
  manualSeed,
  matmul,
  measuredSchedules,
  mseLoss,
  mul,
  rand,
  randn,
  setDevice,
  sin,
  SinterError,
  softmax,
  tanh,
  TensorError,
  valueAndGrad,
  zeros,
  type Tensor,
} from '../../src/index.ts';
import { readFile } from '../../src/io/index.ts';
import { Linear, Sequential } from '../../src/nn/index.ts';
import { adam, type OptimizerState } from '../../src/optim/index.ts';

/** What a page measured, and what it keeps for the next one. */
export interface Tuned {
  readonly product: readonly number[];
  readonly measured: readonly string[];
  readonly kept: string;
}

/** Tunes a product on the device, and looks into the database. */
export async function tune(name: string): Promise<Tuned> {
  setDevice(name);
  await loadCompiler();
  const [x, y] = [linspace(0, 1, 12).reshape([3, 4]), linspace(-1, 1, 8).reshape([4, 2])];
  const product = await compile(matmul, { tune: true })(x, y).data();
  const kept = await new Promise<string>((resolve, reject) => {
    const asked = indexedDB.open('sinter');
    asked.addEventListener('error', () => reject(asked.error ?? new Error('no database')));
    asked.addEventListener('success', () => {
      const record = asked.result.transaction('schedules').objectStore('schedules').get('book');
      record.addEventListener('success', () => resolve(String(record.result)));
    });
  });
  return { product: [...product].map(Number), measured: Object.keys(measuredSchedules().entries), kept };
}

export interface Numbers {
  /** exp(sin x)·x on 24 points. */
  readonly elementwise: readonly number[];
  /** Rows of softmax, 5 by 7. */
  readonly softmax: readonly number[];
  /** A 9 by 33 matrix times a 33 by 6 one. */
  readonly matmul: readonly number[];
  /** Uniform and normal draws. */
  readonly draws: readonly number[];
  /** Of a small network learning a sine, one a step. */
  readonly losses: readonly number[];
}

/** What several threads compute: enough to be worth it, and few numbers to compare. */
export async function computeShared(name: string): Promise<number[]> {
  setDevice(name);
  const rows = sin(linspace(0, 1e3, 512 * 384)).reshape([512, 384]);
  const product = matmul(softmax(rows, 1), exp(rows.permute([1, 0])));
  return [...(await numbers(product.sum(1))), ...(await numbers(product.amax(0)))];
}

/** What is left of an error when it crosses from one realm to another. */
export interface Caught {
  readonly name: string;
  readonly code: string | undefined;
  readonly kind: 'TensorError' | 'DeviceError' | 'SinterError' | 'another';
  readonly message: string;
}

const STEPS = 20;

/** Runs everything on a device. */
export async function compute(name: string): Promise<Numbers> {
  setDevice(name);
  manualSeed(7);
  const x = linspace(-3, 3, 24);
  const rows = linspace(-2, 5, 35).reshape([5, 7]);
  const left = linspace(-1, 1, 9 * 33).reshape([9, 33]);
  const right = linspace(0.5, -0.25, 33 * 6).reshape([33, 6]);
  return {
    elementwise: await numbers(mul(exp(sin(x)), x)),
    softmax: await numbers(softmax(rows, 1)),
    matmul: await numbers(matmul(left, right)),
    draws: [...(await numbers(rand([10]))), ...(await numbers(randn([10])))],
    losses: await learn(),
  };
}

/** A step of Adam on a network of two layers, compiled once and run `STEPS` times. */
async function learn(): Promise<number[]> {
  const x = linspace(-1, 1, 32).reshape([32, 1]);
  const y = sin(mul(x, 3));
  const optimizer = adam({ lr: 0.03 });
  const step = compile(
    (model: Sequential, state: OptimizerState, x: Tensor, y: Tensor) => {
      const { value, grad } = valueAndGrad((net: Sequential) => mseLoss(net.forward(x), y))(model);
      const [nextModel, nextState] = optimizer.update(model, grad, state);
      return { model: nextModel, state: nextState, loss: value };
    },
    { donate: [0, 1] },
  );
  let model: Sequential = new Sequential(new Linear(1, 16), tanh, new Linear(16, 1));
  let state = optimizer.init(model);
  const losses: Tensor[] = [];
  for (let i = 0; i < STEPS; i++) {
    const next = step(model, state, x, y);
    ({ model, state } = next);
    losses.push(next.loss);
  }
  return Promise.all(losses.map(async (loss) => Number(await loss.item())));
}

/** The mistakes a page can make, by name, and what each throws. */
export async function mistakes(): Promise<Readonly<Record<string, Caught>>> {
  return {
    'sizes that do not fit': await caught(() => matmul(zeros([8, 3]), zeros([4, 5]))),
    'a device that is not there': await caught(async () => {
      setDevice('abacus');
      await zeros([2]).data();
    }),
    'a GPU where there is none': await caught(async () => {
      setDevice('webgpu');
      await zeros([2]).data();
    }),
    'a file by its path': await caught(() => readFile('/weights.npy')),
  };
}

async function caught(work: () => unknown): Promise<Caught> {
  try {
    await work();
  } catch (error) {
    const kind =
      error instanceof TensorError
        ? 'TensorError'
        : error instanceof DeviceError
          ? 'DeviceError'
          : error instanceof SinterError
            ? 'SinterError'
            : 'another';
    const { name, message } = error as Error;
    return { name, code: error instanceof SinterError ? error.code : undefined, kind, message };
  }
  throw new Error('nothing was thrown');
}

async function numbers(x: Tensor): Promise<number[]> {
  return Array.from((await x.data()) as Float32Array);
}
