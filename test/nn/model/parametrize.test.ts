// Weight norm and spectral norm: PyTorch's figures, and layers that go on being layers.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { close, numbers } from '../../optim/support.ts';

beforeAll(() => sn.setDevice('wasm'));

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
type Case<K extends string> = Readonly<Record<K, Stored>>;

const torch = JSON.parse(readFileSync(new URL('../../fixtures/training.json', import.meta.url), 'utf8')) as {
  readonly weightNorm: readonly (Case<'weight' | 'bias' | 'g' | 'v' | 'x' | 'out' | 'gradG' | 'gradV'> & {
    readonly dim: number | null;
  })[];
  readonly spectralNorm: readonly (Case<'weight' | 'bias' | 'x' | 'grad' | 'u' | 'v' | 'eval'> & {
    readonly kind: 'Linear' | 'Conv2d';
    readonly start: Case<'u' | 'v'>;
    readonly outs: readonly Stored[];
    readonly names: readonly string[];
  })[];
};

const given = ({ shape, data }: Stored): sn.Tensor => sn.tensor(Float64Array.from(data), { shape });

async function same(found: sn.Tensor, expected: Stored): Promise<void> {
  expect(found.shape).toEqual(expected.shape);
  close(await numbers(found), expected.data, 1e-10);
}

describe('weightNorm', () => {
  test.each(torch.weightNorm)("is PyTorch's along axis $dim", async (expected) => {
    const layer = new nn.Conv1d(2, 3, 2, { dtype: 'f64' });
    nn.loadStateDict(layer, { weight: given(expected.weight), bias: given(expected.bias) });
    const x = given(expected.x);
    const before = await numbers(layer.forward(x));
    expect(nn.weightNorm(layer, { axis: expected.dim })).toBe(layer);
    close(await numbers(layer.forward(x)), before, 1e-12);
    const g = nn.getParameter(layer, 'parametrizations.weight.original0');
    const v = nn.getParameter(layer, 'parametrizations.weight.original1');
    await same(v, expected.v);
    sn.noGrad(() => g.assign(g.mul(1.5)));
    await same(g, expected.g);
    const out = layer.forward(x);
    await same(out, expected.out);
    out.square().sum().backward();
    await same(g.grad!, expected.gradG);
    await same(v.grad!, expected.gradV);
  });

  test('goes through derivatives, compiled steps, dictionaries and conversions', async () => {
    const make = (): nn.Sequential => new nn.Sequential(nn.weightNorm(new nn.Linear(3, 2)), sn.tanh);
    const [model, other] = [make(), make()];
    expect(Object.keys(nn.stateDict(model))).toEqual([
      'layers.0.bias',
      'layers.0.parametrizations.weight.original0',
      'layers.0.parametrizations.weight.original1',
    ]);
    nn.loadStateDict(other, nn.stateDict(model));
    const x = sn.randn([4, 3]);
    const loss = (m: nn.Sequential): sn.Tensor => m.forward(x).square().sum();
    const eager = sn.grad(loss)(model);
    const compiled = sn.compile((m: nn.Sequential) => sn.grad(loss)(m))(other);
    for (const [name, gradient] of nn.namedParameters(eager))
      close(await numbers(nn.getParameter(compiled, name)), await numbers(gradient), 1e-6);
    const optimizer = new SGD(model, { lr: 0.1 });
    loss(model).backward();
    optimizer.step();
    expect(await numbers(model.forward(x))).not.toEqual(await numbers(other.forward(x)));
    expect(nn.to(model, 'bf16').forward(x.cast('bf16')).dtype).toBe('bf16');
  });

  test('comes off again, with the weight as it is', async () => {
    const layer = nn.weightNorm(new nn.Linear(3, 2));
    const x = sn.randn([4, 3]);
    const before = await numbers(layer.forward(x));
    expect(nn.removeParametrization(layer)).toBe(layer);
    expect(Object.keys(nn.stateDict(layer)).sort()).toEqual(['bias', 'weight']);
    expect([layer.weight.requiresGrad, Object.getPrototypeOf(layer)]).toEqual([true, nn.Linear.prototype]);
    close(await numbers(layer.forward(x)), before, 1e-6);
    expect(() => nn.removeParametrization(layer)).toThrow(/weight has no parametrisation/);
  });

  test('is of weights: other fields are refused, and a weight that is computed already', () => {
    const layer = nn.weightNorm(new nn.Linear(3, 2));
    expect(() => nn.weightNorm(layer)).toThrow(/no tensor of floats/);
    expect(() => nn.weightNorm(new nn.Linear(1, 1), { name: 'heads' })).toThrow(/heads of a Linear/);
    expect(() => nn.weightNorm(new nn.Linear(1, 1), { axis: 2 })).toThrow(/no axis 2/);
  });
});

describe('spectralNorm', () => {
  test.each(torch.spectralNorm)("is PyTorch's of $kind, training and in use", async (expected) => {
    const isLinear = expected.kind === 'Linear';
    const layer = isLinear ? new nn.Linear(4, 3, { dtype: 'f64' }) : new nn.Conv2d(2, 3, 2, { dtype: 'f64' });
    nn.loadStateDict(layer, { weight: given(expected.weight), bias: given(expected.bias) });
    nn.spectralNorm<nn.Module>(layer, { powerIterations: 2 });
    expect(Object.keys(nn.torchStateDict(layer)).sort()).toEqual([...expected.names].sort());
    const [u, v] = ['U', 'V'].map((name) => nn.getBuffer(layer, `parametrizations.weight.0.${name}`));
    sn.noGrad(() => {
      u!.assign(given(expected.start.u));
      v!.assign(given(expected.start.v));
    });
    const x = given(expected.x);
    const outs = [layer.forward(x), layer.forward(x)];
    for (const [i, out] of outs.entries()) await same(out, expected.outs[i]!);
    outs[1]!.square().sum().backward();
    await same(nn.getParameter(layer, 'parametrizations.weight.original').grad!, expected.grad);
    await same(u!, expected.u);
    await same(v!, expected.v);
    nn.evalMode(layer);
    await same(layer.forward(x), expected.eval);
    await same(u!, expected.u);
  });

  test('takes the axis of outputs, which is the second of a transposed convolution, of a subclass too', () => {
    class Up extends nn.ConvTranspose2d {}
    for (const [layer, outputs] of [
      [new nn.ConvTranspose1d(2, 5, 3), 5],
      [new Up(2, 5, 3), 5],
      [new nn.Conv2d(2, 7, 3), 7],
    ] as const) {
      nn.spectralNorm<nn.Module>(layer);
      expect(nn.getBuffer(layer, 'parametrizations.weight.0.U').shape).toEqual([outputs]);
    }
  });

  test('brings the greatest singular value to 1, also in a compiled step', async () => {
    const layer = nn.spectralNorm(new nn.Linear(6, 5));
    const step = sn.compile((x: sn.Tensor) => layer.forward(x));
    for (let i = 0; i < 30; i++) await step(sn.ones([1, 6])).data();
    const [largest] = await numbers(sn.linalg.svdvals(sn.noGrad(() => layer.weight)));
    expect(largest).toBeCloseTo(1, 3);
  });
});
