// Every kind of layer and loss, forward and backward, on every device against the interpreter: those of the fixtures, and a table of the others.

import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import { everyDevice } from '../support/devices.ts';

type Made = nn.Module & { forward(...inputs: readonly unknown[]): unknown };

/** A layer, and what one call of it is given. */
interface Call {
  readonly name: string;
  readonly layer: Made;
  readonly inputs: readonly Tensor[];
  /** The method that is called, in place of `forward`. */
  readonly method?: string;
}

/** Numbers that no symmetry of a layer hides, between −2 and 2. */
function floats(...shape: readonly number[]): Tensor {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return sn.tensor(
    Array.from({ length: size }, (_, i) => 2 * Math.sin(1.7 * i + 0.3 + shape.length)),
    { shape },
  );
}

function integers(below: number, ...shape: readonly number[]): Tensor {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return sn.tensor(
    Array.from({ length: size }, (_, i) => (i * 7 + 1) % below),
    { shape, dtype: 'i32' },
  );
}

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
  readonly dtype?: 'i32' | 'bool';
}

interface Case {
  readonly kind: string;
  readonly args: readonly unknown[];
  readonly train: boolean;
  readonly inputs: readonly Stored[];
  readonly options: Readonly<Record<string, Stored>>;
  readonly method?: string;
}

const classes = nn as unknown as Readonly<Record<string, new (...given: readonly unknown[]) => Made>>;
const fixtures = JSON.parse(
  readFileSync(new URL('../fixtures/layers.json', import.meta.url), 'utf8'),
) as readonly Case[];

const read = ({ shape, data, dtype }: Stored): Tensor =>
  sn.tensor([...data], { shape: [...shape], dtype: dtype ?? 'f32' });

/** An argument in f32, whose options may be tensors. */
function argument(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([name]) => name !== 'dtype');
  return Object.fromEntries(
    entries.map(([name, at]: [string, unknown]) => [
      name,
      typeof at === 'object' && at !== null && 'data' in at ? read(at as Stored) : at,
    ]),
  );
}

/** The first case of each kind without options of its call; of norms, in training and outside. */
function stored(): Call[] {
  const kinds = new Map<string, Case>();
  for (const one of fixtures) {
    const key = `${one.kind} ${one.method ?? ''} ${one.kind.includes('Norm') && one.train ? 'train' : ''}`;
    if (Object.keys(one.options).length === 0 && !kinds.has(key)) kinds.set(key, one);
  }
  return [...kinds.values()].map(({ kind, args, train, inputs, method }): Call => {
    const layer = nn.train(new classes[kind]!(...args.map(argument)), train);
    const known = { name: kind, layer, inputs: inputs.map(read) };
    if (method === undefined) return known;
    return { ...known, method: method.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) };
  });
}

const curves =
  'ReLU ReLU6 SiLU Sigmoid Tanh GELU LeakyReLU ELU CELU SELU Mish Hardswish Hardsigmoid Hardtanh LogSigmoid Softplus Softsign ' +
  'Softshrink Hardshrink Tanhshrink Softmax LogSoftmax Softmin GLU Identity Flatten';

/** Layers of which no fixture is. */
function others(): Call[] {
  const image = floats(2, 4, 6, 5);
  const volume = floats(1, 4, 3, 4, 3);
  const line = floats(2, 4, 7);
  const rows = floats(3, 4);
  const call = (name: string, given: readonly unknown[], ...inputs: readonly Tensor[]): Call => ({
    name,
    layer: new classes[name]!(...given),
    inputs,
  });
  const images = [line, image, volume];
  const each = (name: string, ...given: readonly unknown[]): Call[] =>
    images.map((x, i) => call(`${name}${i + 1}d`, given, x));
  return [
    ...curves.split(' ').map((name) => call(name, [], rows)),
    call('Threshold', [0.1, -1], rows),
    call('Linear', [4, 3], rows),
    call('Embedding', [5, 3], integers(5, 2, 3)),
    ...each('Conv', 4, 3, 2, { padding: 1 }),
    ...each('ConvTranspose', 4, 3, 2, { stride: 2 }),
    ...each('MaxPool', 2),
    ...each('AvgPool', 2, { padding: 1, countIncludePad: false }),
    ...each('AdaptiveAvgPool', 2),
    ...each('AdaptiveMaxPool', 2),
    ...each('CircularPad', 1),
    ...each('ZeroPad', 1),
    call('LPPool3d', [2], volume),
    call('BatchNorm', [4], image),
    call('GroupNorm', [2, 4], image),
    call('LayerNorm', [4], rows),
    call('RMSNorm', [4], rows),
    call('LocalResponseNorm', [3, { alpha: 0.5 }], image),
    call('Upsample', [{ scaleFactor: 2, mode: 'nearest' }], image),
    call('PixelShuffle', [2], image),
    call('PixelUnshuffle', [2], floats(1, 2, 4, 6)),
    call('ChannelShuffle', [2], image),
    call('RNN', [4, 3], floats(3, 2, 4)),
    call('GRU', [4, 3, { bidirectional: true }], floats(3, 2, 4)),
    call('LSTM', [4, 3, { numLayers: 2 }], floats(3, 2, 4)),
    call('RNNCell', [4, 3], rows),
    call('GRUCell', [4, 3], rows),
    call('LSTMCell', [4, 3], rows),
    call('MultiHeadAttention', [4, 2, { causal: true }], floats(2, 3, 4)),
    call('FeedForward', [4], rows),
    call('TransformerBlock', [4, 2], floats(2, 3, 4)),
    call('TransformerDecoderLayer', [4, 2, { hidden: 6, dropout: 0 }], floats(2, 3, 4), floats(2, 4, 4)),
    call(
      'CausalTransformer',
      [4, { heads: 2, kvHeads: 1, layers: 2, hidden: 6, dropout: 0 }],
      floats(2, 3, 4),
    ),
    call(
      'Transformer',
      [4, { heads: 2, encoderLayers: 1, decoderLayers: 1, hidden: 6, dropout: 0 }],
      floats(2, 4, 4),
      floats(2, 3, 4),
    ),
    call('EmbeddingBag', [5, 3, { mode: 'max' }], integers(5, 2, 3)),
  ];
}

/** The tensors of a result, at any depth. */
function tensorsOf(result: unknown): Tensor[] {
  if (result instanceof sn.Tensor) return [result];
  if (typeof result !== 'object' || result === null) return [];
  return Object.values(result).flatMap(tensorsOf);
}

/** Outputs of a call, and gradients of a weighted sum of them by parameters and inputs. */
function evaluated({ layer, inputs, method = 'forward' }: Omit<Call, 'name'>): Tensor[] {
  const called = (layer as unknown as Record<string, Made['forward']>)[method]!;
  const outputs = tensorsOf(called.call(layer, ...inputs)).filter((y) => y.dtype === 'f32');
  const leaves = [...nn.namedParameters(layer).values(), ...inputs.filter((x) => x.dtype === 'f32')];
  const total = outputs.map((y) => y.mul(floats(...y.shape)).sum()).reduce((sum, part) => sum.add(part));
  return [...outputs, ...(leaves.length === 0 ? [] : sn.gradients([total], leaves))];
}

/** Inputs as leaves, where they have gradients. */
const trained = ({ inputs }: Call): Tensor[] =>
  inputs.map((x) => (x.dtype === 'f32' ? x.clone().detach().requiresGrad_() : x));

/** What the interpreter gives, read by now. */
interface Expected extends Call {
  /** Parameters and buffers as they were before the first call: statistics move in training. */
  readonly state: Readonly<Record<string, Tensor>>;
  readonly found: readonly (readonly number[])[];
}

const values = (tensors: readonly Tensor[]): Promise<number[][]> =>
  Promise.all(tensors.map(async (x) => Array.from(await x.data(), Number)));

/** The layers, whose parameters and buffers are there once and for all, and what one call of each gives. */
async function expected(): Promise<Expected[]> {
  sn.setDevice('interpreter');
  sn.manualSeed(11);
  const all: Expected[] = [];
  for (const call of [...stored(), ...others()]) {
    const state = Object.fromEntries(
      Object.entries(nn.stateDict(call.layer)).map(([name, x]) => [name, x.detach().clone()]),
    );
    await values([...Object.values(state), ...call.inputs]);
    all.push({ ...call, state, found: await values(evaluated({ ...call, inputs: trained(call) })) });
  }
  return all;
}

const ready = expected();

/** How many layers go into one program. */
const perProgram = 16;

afterAll(async () => {
  await sn.close();
  sn.setDevice(undefined);
});

test('there is a call of every kind', async () => {
  const covered = new Set((await ready).map(({ layer }) => layer.constructor));
  const random = /Dropout|RReLU|Fractional/;
  const containers =
    /^(?:Module|Sequential|Transformer(?:En|De)coder|Module(?:List|Dict)|Parameter(?:List|Dict))$/;
  const missing = Object.entries(nn).flatMap(([name, at]) =>
    typeof at === 'function' &&
    at.prototype instanceof nn.Module &&
    !covered.has(at as never) &&
    !random.test(name) &&
    !containers.test(name)
      ? [name]
      : [],
  );
  expect(missing).toEqual([]);
});

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('on %s', (device) => {
  test('layers give what they give on the interpreter, and so do their gradients', async () => {
    const calls = await ready;
    sn.setDevice(device);
    for (let from = 0; from < calls.length; from += perProgram) {
      const part = calls.slice(from, from + perProgram);
      for (const { layer, state } of part) nn.loadStateDict(layer, state);
      const run = sn.compile((given: readonly { layer: Made; inputs: readonly Tensor[] }[]) =>
        given.map(({ layer, inputs }, i) => evaluated({ ...part[i]!, layer, inputs })),
      );
      const results = run(part.map((call) => ({ layer: call.layer, inputs: trained(call) })));
      for (const [i, { name, found }] of part.entries()) {
        const got = await values(results[i]!);
        expect(
          got.map((list) => list.length),
          name,
        ).toEqual(found.map((list) => list.length));
        got.forEach((list, k) =>
          list.forEach((value, at) => {
            const want = found[k]![at]!;
            const isNear =
              Object.is(value, want) || Math.abs(value - want) <= 2e-4 * Math.max(1, Math.abs(want));
            expect(isNear, `${name}: result ${k}, element ${at} is ${value} in place of ${want}`).toBe(true);
          }),
        );
      }
    }
  });
});
