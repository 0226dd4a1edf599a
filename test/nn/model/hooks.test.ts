// Hooks around `forward` and on the way back, eager, differentiated and compiled.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { close, numbers } from '../../optim/support.ts';

beforeAll(() => sn.setDevice('wasm'));

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

const { hooks: torch } = JSON.parse(
  readFileSync(new URL('../../fixtures/training.json', import.meta.url), 'utf8'),
) as { readonly hooks: Readonly<Record<string, Stored>> & { seenInput: Stored[]; seenOutput: Stored[] } };

const given = ({ shape, data }: Stored): sn.Tensor => sn.tensor(Float64Array.from(data), { shape });

async function same(found: sn.Tensor | undefined, expected: Stored): Promise<void> {
  expect(found!.shape).toEqual(expected.shape);
  close(await numbers(found!), expected.data, 1e-11);
}

class Pair extends nn.Module {
  readonly linear = new nn.Linear(3, 2, { dtype: 'f64' });

  forward(x: sn.Tensor, y: sn.Tensor): [sn.Tensor, sn.Tensor] {
    const hidden = this.linear.forward(x);
    return [hidden.mul(y), hidden.add(y).tanh()];
  }
}

function pair(): Pair {
  const made = new Pair();
  nn.loadStateDict(made.linear, { weight: given(torch['weight']!), bias: given(torch['bias']!) });
  return made;
}

describe('a full backward hook', () => {
  test("sees PyTorch's gradients, and changes those that go on", async () => {
    const layer = pair();
    const [x, y] = [given(torch['x']!).requiresGrad_(), given(torch['y']!).requiresGrad_()];
    let seen: readonly nn.Gradients[] = [];
    layer.registerFullBackwardHook((_, gradInput, gradOutput) => {
      seen = [gradInput, gradOutput];
      return [gradInput[0]!.mul(2), gradInput[1]!.mul(-1)];
    });
    const [a, b] = layer.forward(x, y);
    a.square().sum().add(b.sum()).backward();
    await same(x.grad, torch['gradX']!);
    await same(y.grad, torch['gradY']!);
    await same(layer.linear.weight.grad, torch['gradWeight']!);
    for (const [i, expected] of torch.seenInput.entries()) await same(seen[0]![i], expected);
    for (const [i, expected] of torch.seenOutput.entries()) await same(seen[1]![i], expected);
  });

  test('is part of the derivative inside of compile, whatever grad is taken of', async () => {
    const layer = pair();
    layer.registerFullBackwardHook((_, [x, y]) => [x!.mul(2), y!.mul(-1)]);
    const step = sn.compile((model: Pair, x: sn.Tensor, y: sn.Tensor) =>
      sn.grad(
        (m: Pair, at: sn.Tensor, other: sn.Tensor) => {
          const [a, b] = m.forward(at, other);
          return a.square().sum().add(b.sum());
        },
        { argnums: [1, 2] },
      )(model, x, y),
    );
    const [gradX, gradY] = step(layer, given(torch['x']!), given(torch['y']!));
    await same(gradX, torch['gradX']!);
    await same(gradY, torch['gradY']!);
  });

  test('of a first layer sees no gradients of arguments, and cannot give any', async () => {
    const layer = new nn.Linear(2, 2);
    const seen: unknown[] = [];
    const { remove } = layer.registerFullBackwardHook((_, gradInput, [out]) => {
      seen.push(gradInput, out!.shape);
    });
    layer
      .forward(sn.ones([3, 2]))
      .sum()
      .backward();
    expect(seen).toEqual([[undefined], [3, 2]]);
    expect(await layer.bias!.grad!.array()).toEqual([3, 3]);
    remove();
    layer.registerFullBackwardHook(() => sn.ones([3, 2]));
    expect(() =>
      layer
        .forward(sn.ones([3, 2]))
        .sum()
        .backward(),
    ).toThrow(/no argument of forward/);
  });

  test('that gives another shape is refused', () => {
    const layer = new nn.ReLU();
    layer.registerFullBackwardHook(() => sn.ones([2]));
    const x = sn.ones([3]).requiresGrad_();
    expect(() => layer.forward(x).sum().backward()).toThrow(/gave f32\[2\] for a gradient f32\[3\]/);
  });
});

describe('forward hooks', () => {
  test('run before and after, in order, and change arguments and results until they are removed', async () => {
    const layer = new nn.Identity();
    const order: string[] = [];
    const before = layer.registerForwardPreHook((at, [x]) => {
      order.push(`before ${at.constructor.name}`);
      return (x as sn.Tensor).add(1);
    });
    const after = layer.registerForwardHook((_, [x], value) => {
      order.push('after');
      return (value as sn.Tensor).mul(x as sn.Tensor);
    });
    expect(await layer.forward(sn.tensor([2])).array()).toEqual([9]);
    expect(order).toEqual(['before Identity', 'after']);
    after.remove();
    expect(await layer.forward(sn.tensor([2])).array()).toEqual([3]);
    before.remove();
    before.remove();
    expect(await layer.forward(sn.tensor([2])).array()).toEqual([2]);
  });

  test('run where containers call the layer, and for its copies inside of derivatives', async () => {
    const inner = new nn.Linear(2, 2);
    const seen: number[][] = [];
    inner.registerForwardHook((_, __, value) => void seen.push([...(value as sn.Tensor).shape]));
    const net = new nn.Sequential(inner, sn.relu);
    net.forward(sn.ones([3, 2]));
    sn.grad((model: nn.Sequential) => model.forward(sn.ones([4, 2])).sum())(net);
    expect(seen).toEqual([
      [3, 2],
      [4, 2],
    ]);
  });

  test('added or removed later, make compiled functions new: held, and captured', async () => {
    const layer = new nn.Identity();
    const captured = sn.compile((x: sn.Tensor) => layer.forward(x));
    const given = sn.compile((model: nn.Identity, x: sn.Tensor) => model.forward(x));
    const both = async (): Promise<unknown[]> => [
      await captured(sn.tensor([2])).array(),
      await given(layer, sn.tensor([2])).array(),
    ];
    expect(await both()).toEqual([[2], [2]]);
    const { remove } = layer.registerForwardHook((_, __, value) => (value as sn.Tensor).mul(5));
    expect(await both()).toEqual([[10], [10]]);
    remove();
    expect(await both()).toEqual([[2], [2]]);
  });
});
