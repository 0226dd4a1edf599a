// Recurrent layers and cells against PyTorch's: outputs, last states and gradients, from its state dictionaries by its own names
// (scripts/recurrent-fixtures.py).

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import { namedParameters } from '../../src/nn/index.ts';

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Case {
  readonly kind: 'RNN' | 'GRU' | 'LSTM' | 'RNNCell' | 'GRUCell' | 'LSTMCell';
  readonly options: Readonly<Record<string, never>>;
  readonly lengths: readonly number[] | null;
  readonly state: Readonly<Record<string, Stored>>;
  readonly x: Stored;
  readonly states: readonly Stored[];
  readonly outputs: readonly Stored[];
  readonly weights: readonly Stored[];
  readonly grads: Readonly<Record<string, Stored>>;
}

const layers = {
  RNN: nn.RNN,
  GRU: nn.GRU,
  LSTM: nn.LSTM,
  RNNCell: nn.RNNCell,
  GRUCell: nn.GRUCell,
  LSTMCell: nn.LSTMCell,
} as const;

const path = new URL('../fixtures/recurrent.json', import.meta.url);
const cases = JSON.parse(readFileSync(path, 'utf8')) as readonly Case[];

const read = ({ shape, data }: Stored): Tensor => sn.tensor([...data], { shape: [...shape], dtype: 'f64' });

function close(found: ArrayLike<number | bigint>, { data }: Stored, what: string): void {
  expect(found.length, what).toBe(data.length);
  data.forEach((want, i) => expect(Number(found[i]), `${what}[${i}]`).toBeCloseTo(want, 10));
}

function layerOf({ kind, options, state }: Case): InstanceType<(typeof layers)[Case['kind']]> {
  const layer = new layers[kind](2, 3, { ...options, dtype: 'f64' });
  nn.loadStateDict(layer, Object.fromEntries(Object.entries(state).map(([name, at]) => [name, read(at)])));
  return layer;
}

beforeAll(() => sn.setDevice('wasm'));

describe('recurrent layers are those of PyTorch', () => {
  for (const one of cases) {
    const told = `${one.kind} ${JSON.stringify(one.options)}${one.lengths === null ? '' : ', lengths'}`;
    test(told, async () => {
      const layer = layerOf(one);
      const x = read(one.x).requiresGrad_();
      const states = one.states.map((state) => read(state).requiresGrad_());
      const given = states.length > 1 ? states : states[0];
      const run = layer.forward.bind(layer) as (...args: readonly unknown[]) => unknown;
      const options = one.lengths === null ? {} : { lengths: one.lengths };
      const results = one.kind.endsWith('Cell') ? run(x, given) : run(x, given, options);
      const outputs = [results].flat(3) as Tensor[];
      const total = outputs
        .map((output, i) => output.mul(read(one.weights[i]!)).sum())
        .reduce((p, q) => p.add(q));
      const wanted = new Map<string, Tensor>([
        ['x', x],
        ...states.map((state, i) => [`state${i}`, state] as const),
        ...namedParameters(layer),
      ]);
      const grads = sn.gradients([total], [...wanted.values()]);
      for (const [i, output] of outputs.entries()) close(await output.data(), one.outputs[i]!, `output ${i}`);
      for (const [i, name] of [...wanted.keys()].entries())
        close(await grads[i]!.data(), one.grads[name]!, `gradient of ${name}`);
    });
  }

  test('a compiled layer gives what the recorded one gives', async () => {
    const one = cases.find(({ kind }) => kind === 'LSTM')!;
    const layer = layerOf(one) as nn.LSTM;
    const forward = sn.compile((x: Tensor) => layer.forward(x)[0]);
    const x = read(one.x);
    expect(await forward(x).array()).toEqual(await layer.forward(x)[0].array());
  });

  test('gruCellFused is gruCell behind its products, and hands on what a derivative needs', async () => {
    const one = cases.find(({ kind }) => kind === 'GRUCell')!;
    const [w, u, c, d] = ['weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'].map((name) =>
      read(one.state[name]!),
    ) as [Tensor, Tensor, Tensor, Tensor];
    const [x, h] = [read(one.x), read(one.states[0]!)];
    const [next, workspace] = sn.gruCellFused(x.matmul(w.T), h.matmul(u.T), c, d, h);
    close(await next.data(), one.outputs[0]!, 'next');
    const [, z, n, held] = workspace.split(3, 1) as [Tensor, Tensor, Tensor, Tensor];
    expect(workspace.shape).toEqual([3, 15]);
    close(await n.add(z.mul(held.sub(n))).data(), one.outputs[0]!, 'of the workspace');
  });

  test('states, inputs and lengths that do not fit are errors that say so', () => {
    const layer = new nn.LSTM(2, 3);
    expect(() => layer.forward(sn.zeros([4, 1, 5]))).toThrow(/LSTM: expects floats \[time,batch,2\]/);
    expect(() => layer.forward(sn.zeros([4, 1, 2]), [sn.zeros([1, 1, 3]), sn.zeros([1, 2, 3])])).toThrow(
      /a state must be \[1,1,3\]/,
    );
    expect(() => layer.forward(sn.zeros([4, 1, 2]), undefined, { lengths: [5] })).toThrow(/up to 4/);
    expect(() => sn.gruCell(sn.zeros([1, 2]), sn.zeros([1, 3]), sn.zeros([9, 3]), sn.zeros([9, 3]))).toThrow(
      /gruCell: expects x \[\.\.,I\]/,
    );
  });
});
