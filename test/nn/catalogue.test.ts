// Layers and losses as modules against PyTorch's, with its state dictionaries: outputs, gradients and running statistics
// (scripts/layers/fixtures.py).

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
  readonly dtype?: 'i32' | 'bool';
}

type Named = Readonly<Record<string, Stored>>;

interface Case {
  readonly kind: string;
  readonly args: readonly unknown[];
  readonly state: Named;
  readonly train: boolean;
  readonly inputs: readonly Stored[];
  readonly options: Named;
  readonly output: Stored;
  readonly weight: Stored;
  readonly grads: Named;
  readonly after: Named;
  /** PyTorch's name of the method that is called; `forward` by default. */
  readonly method?: string;
  /** What of its result is the output. */
  readonly member?: string;
}

type Made = nn.Module & { forward(...inputs: readonly unknown[]): Tensor };

const made = Object.fromEntries(Object.entries(nn)) as unknown as Readonly<
  Record<string, new (...given: readonly unknown[]) => Made>
>;

const path = new URL('../fixtures/layers.json', import.meta.url);
const cases = JSON.parse(readFileSync(path, 'utf8')) as readonly Case[];

const read = ({ shape, data, dtype }: Stored): Tensor =>
  sn.tensor([...data], { shape: [...shape], dtype: dtype ?? 'f64' });

const readAll = (named: Named): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(named).map(([name, at]) => [name, read(at)]));

function isStored(value: unknown): value is Stored {
  return typeof value === 'object' && value !== null && 'shape' in value && 'data' in value;
}

/** An argument whose options may be tensors. */
function argument(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, at]) => [
    name,
    isStored(at) ? read(at) : (at as unknown),
  ]);
  return Object.fromEntries(entries);
}

async function close(found: Tensor, want: Stored, what: string): Promise<void> {
  expect(found.shape, what).toEqual(want.shape);
  const data = await found.data();
  want.data.forEach((value, i) => expect(Number(data[i]), `${what}[${i}]`).toBeCloseTo(value, 9));
}

function layerOf({ kind, args, state, train }: Case): Made {
  const make = made[kind]!;
  const layer = new make(...args.map(argument));
  nn.loadTorchStateDict(layer, readAll(state));
  return nn.train(layer, train);
}

/** Gradients by our names under PyTorch's, as a layer would that had them for values. */
function inTheirNames(one: Case, own: Readonly<Record<string, Tensor>>): Record<string, Tensor> {
  const layer = layerOf(one);
  const parameters = Object.entries(own).filter(([name]) => !name.startsWith('input'));
  nn.loadStateDict(layer, { ...nn.stateDict(layer), ...Object.fromEntries(parameters) });
  return nn.torchStateDict(layer);
}

/** The output of a call: of `forward`, or of the method that a case names. */
function called(layer: Made, { method = 'forward', member }: Case, given: readonly unknown[]): Tensor {
  const name = method.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const result: unknown = (layer as unknown as Record<string, Made['forward']>)[name]!.call(layer, ...given);
  return (member === undefined ? result : (result as Readonly<Record<string, unknown>>)[member]) as Tensor;
}

beforeAll(() => sn.setDevice('wasm'));

describe('layers and losses are those of PyTorch', () => {
  cases.forEach((one, place) => {
    test(`${one.kind} ${place}`, async () => {
      const layer = layerOf(one);
      const inputs = one.inputs.map((at, i) =>
        `input${i}` in one.grads ? read(at).requiresGrad_() : read(at),
      );
      const options = Object.keys(one.options).length === 0 ? [] : [readAll(one.options)];
      const output = called(layer, one, [...inputs, ...options]);
      await close(output, one.output, 'output');
      const wanted = new Map([
        ...inputs.flatMap((x, i) => (x.requiresGrad ? [[`input${i}`, x] as const] : [])),
        ...nn.namedParameters(layer),
      ]);
      if (wanted.size === 0) return;
      const total = output.mul(read(one.weight)).sum();
      const slopes = sn.gradients([total], [...wanted.values()]);
      const own = Object.fromEntries([...wanted.keys()].map((name, i) => [name, slopes[i]!]));
      const found = { ...own, ...inTheirNames(one, own) };
      for (const [name, want] of Object.entries(one.grads)) await close(found[name]!, want, name);
      const after = nn.torchStateDict(layer);
      for (const [name, want] of Object.entries(one.after)) await close(after[name]!, want, name);
    });
  });
});

test('factors of losses are state, and are not trained', () => {
  const loss = new nn.CrossEntropyLoss({ weight: sn.ones([3]) });
  expect([...nn.namedBuffers(loss).keys()]).toEqual(['weight']);
  expect(nn.countParameters(loss)).toBe(0);
});

test('circular pads bring the other end', async () => {
  const x = sn.tensor([[1, 2, 3]]);
  expect(await new nn.CircularPad1d([[1, 2]]).forward(x).array()).toEqual([[3, 1, 2, 3, 1, 2]]);
  const plane = new nn.CircularPad2d(1).forward(
    sn.tensor([
      [
        [1, 2],
        [3, 4],
      ],
    ]),
  );
  expect(await plane.array()).toEqual([
    [
      [4, 3, 4, 3],
      [2, 1, 2, 1],
      [4, 3, 4, 3],
      [2, 1, 2, 1],
    ],
  ]);
  expect(
    () =>
      new nn.CircularPad1d([
        [1, 2],
        [1, 2],
      ]),
  ).toThrow(/^CircularPad1d: padding must be/);
});

test('dropout drops whole channels in training, and nothing without', async () => {
  const x = sn.ones([4, 8, 3, 3]);
  const layer = new nn.Dropout2d(0.5);
  const planes = (await sn.flatten(layer.forward(x), 2).array()) as number[][][];
  const kinds = new Set(planes.flat().map((plane) => plane.join()));
  expect([...kinds].sort()).toEqual([Array(9).fill(0).join(), Array(9).fill(2).join()]);
  expect(await nn.evalMode(layer).forward(x).array()).toEqual(await x.array());
});

test('every class has the name under which it is exported', () => {
  const classes = Object.entries(nn).filter(([name]) => /^[A-Z]/.test(name));
  expect(classes.length).toBeGreaterThan(100);
  expect(classes.filter(([name, layer]) => layer.name !== name)).toEqual([]);
});

test('layers that differ in their rank name themselves in what they refuse', () => {
  const ranked = Object.entries(made).filter(
    ([name]) => /[123]d$/.test(name) && !/^Up|^Soft|^Cross/.test(name),
  );
  expect(ranked.length).toBeGreaterThan(45);
  for (const [name, layer] of ranked) {
    expect(() => new layer('no'), name).toThrow(new RegExp(`^${name}: `));
  }
});
