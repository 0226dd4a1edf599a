// Walking the layers of a model, containers, and state that is added by name.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

class Net extends nn.Module {
  readonly blocks = new nn.ModuleList([new nn.Linear(2, 2), new nn.Linear(2, 2)]);
  readonly heads = new nn.ModuleDict({ left: new nn.Linear(2, 1), right: new nn.Linear(2, 1) });
  readonly plain = [new nn.Sequential(sn.relu, new nn.Dropout())];
  readonly scales = new nn.ParameterList([sn.ones([2])]);
  readonly again = this.blocks.at(0);

  forward(x: sn.Tensor): sn.Tensor {
    for (const block of this.blocks) x = block.forward(x).mul(this.scales.at(0));
    return this.heads.get('left').forward(this.plain[0]!.forward(x));
  }
}

const names = [
  '',
  'blocks',
  'blocks.0',
  'blocks.1',
  'heads',
  'heads.left',
  'heads.right',
  'plain.0',
  'plain.0.layers.1',
  'scales',
];

describe('walks', () => {
  test('give each layer once, outer ones first, under its first name', () => {
    const net = new Net();
    expect([...nn.namedModules(net).keys()]).toEqual(names);
    expect(nn.modules(net)).toEqual([...nn.namedModules(net).values()]);
    expect(nn.modules([net])).toHaveLength(names.length);
    expect(nn.modules(net).filter((layer) => layer === net.again)).toHaveLength(1);
  });

  test('give children: those that no other layer holds, also from arrays and objects', () => {
    expect([...nn.namedChildren(new Net()).keys()]).toEqual([
      'blocks',
      'heads',
      'plain.0',
      'scales',
      'again',
    ]);
    expect(nn.children({ a: new Net() })).toHaveLength(1);
  });

  test('apply visits inner layers first', () => {
    const seen: string[] = [];
    const net = new Net();
    expect(nn.apply(net, (layer) => void seen.push(layer.constructor.name))).toBe(net);
    expect(seen.at(-1)).toBe('Net');
    expect(seen.indexOf('Linear')).toBeLessThan(seen.indexOf('ModuleList'));
  });

  test('find by name, and name what is near where there is nothing', () => {
    const net = new Net();
    expect(nn.getSubmodule(net, 'blocks.1')).toBe(net.blocks.at(1));
    expect(nn.getSubmodule(net, '')).toBe(net);
    expect(nn.getParameter(net, 'again.weight')).toBe(net.blocks.at(0).weight);
    expect(() => nn.getSubmodule(net, 'blocks.2')).toThrow(/no layer 'blocks.2'/);
    expect(() => nn.getParameter(net, 'heads.left.wight')).toThrow(/heads\.left\.weight/);
    expect(nn.getBuffer(new nn.BatchNorm(2), 'runningVar').shape).toEqual([2]);
    expect(() => nn.getBuffer(net, 'blocks.0.weight')).toThrow(/no buffer/);
  });

  test('freeze a model, and forget its gradients', () => {
    const net = new Net();
    net
      .forward(sn.ones([3, 2]))
      .sum()
      .backward();
    expect(nn.parameters(net).some(({ grad }) => grad !== undefined)).toBe(true);
    nn.zeroGrad(net);
    expect(nn.parameters(net).every(({ grad }) => grad === undefined)).toBe(true);
    nn.requiresGrad_(net, false);
    expect(nn.parameters(net).some(({ requiresGrad }) => requiresGrad)).toBe(false);
    expect(net.forward(sn.ones([3, 2])).requiresGrad).toBe(false);
    nn.requiresGrad_(net);
    expect(nn.parameters(net).every(({ requiresGrad }) => requiresGrad)).toBe(true);
  });
});

describe('containers', () => {
  test("name what they hold as PyTorch's do", () => {
    const names = [...nn.namedParameters(new Net()).keys()];
    expect(names.slice(0, 6)).toEqual([
      'blocks.0.weight',
      'blocks.0.bias',
      'blocks.1.weight',
      'blocks.1.bias',
      'heads.left.weight',
      'heads.left.bias',
    ]);
    expect(names.at(-1)).toBe('scales.0');
  });

  test('are lists and dictionaries', () => {
    const list = new nn.ModuleList([new nn.Linear(1, 1)]);
    const other = new nn.Linear(1, 2);
    expect(list.append(other).length).toBe(2);
    expect([list.at(-1) === other, [...list].length]).toEqual([true, 2]);
    list.set(0, other);
    expect(list.at(0)).toBe(other);
    const dict = new nn.ParameterDict({ a: sn.ones([1]) });
    dict.set('b', sn.ones([2]));
    expect([dict.keys(), dict.has('c'), dict.get('b').requiresGrad]).toEqual([['a', 'b'], false, true]);
    expect([dict.delete('a'), dict.delete('a'), dict.keys()]).toEqual([true, false, ['b']]);
    expect([...dict].map(([key]) => key)).toEqual(['b']);
  });

  test('refuse what they cannot hold, and names that layers have', () => {
    expect(() => new nn.ModuleList([sn.relu as never])).toThrow(/item 0 must be a layer/);
    expect(() => new nn.ModuleList().at(0)).toThrow(/no item 0/);
    expect(() => new nn.ModuleDict({ forward: new nn.ReLU() })).toThrow(/'forward' cannot be the name/);
    expect(() => new nn.ModuleDict({ 'a.b': new nn.ReLU() })).toThrow(/cannot be the name/);
    expect(() => new nn.ModuleList().forward()).toThrow(/no forward of its own/);
  });

  test('go through derivatives and compiled steps like any layer', async () => {
    const net = new Net();
    const loss = (model: Net, x: sn.Tensor): sn.Tensor => nn.evalMode(model).forward(x).square().sum();
    const step = sn.compile((model: Net, x: sn.Tensor) => sn.grad(loss)(model, x));
    const [eager, compiled] = [sn.grad(loss)(net, sn.ones([3, 2])), step(net, sn.ones([3, 2]))];
    expect(compiled.blocks).toBeInstanceOf(nn.ModuleList);
    for (const [name, tensor] of nn.namedParameters(compiled))
      expect(await tensor.array(), name).toEqual(await nn.getParameter(eager, name).array());
  });
});

class Counting extends nn.Module {
  readonly scale = nn.parameter(sn.ones([2]));

  constructor() {
    super();
    this.registerBuffer('count', sn.tensor(0));
    this.registerBuffer('mask', sn.tensor([1, 0]), { persistent: false });
  }

  forward(x: sn.Tensor): sn.Tensor {
    const { count, mask } = this as unknown as Record<'count' | 'mask', sn.Tensor>;
    sn.noGrad(() => count.assign(count.add(1)));
    return x.mul(this.scale).mul(mask);
  }
}

describe('registerBuffer', () => {
  test('makes state: not trained, saved unless it is said not to be', () => {
    const layer = new Counting();
    expect([...nn.namedParameters(layer).keys()]).toEqual(['scale']);
    expect([...nn.namedBuffers(layer).keys()]).toEqual(['count', 'mask']);
    expect(Object.keys(nn.stateDict(layer))).toEqual(['scale', 'count']);
    expect(nn.loadStateDict(new Counting(), nn.stateDict(layer))).toEqual({ missing: [], unexpected: [] });
    expect(nn.buffers(layer)).toHaveLength(2);
  });

  test('makes what copies share: neither a gradient nor a new parameter takes its place', async () => {
    const layer = new Counting();
    const step = sn.compile((model: Counting, x: sn.Tensor) =>
      sn.grad((m: Counting, at: sn.Tensor) => m.forward(at).sum())(model, x),
    );
    const gradient = step(layer, sn.ones([3, 2]));
    step(layer, sn.ones([3, 2]));
    expect(await gradient.scale.array()).toEqual([3, 0]);
    expect(await nn.getBuffer(layer, 'count').item()).toBe(2);
    expect(nn.getBuffer(gradient, 'count')).toBe(nn.getBuffer(layer, 'count'));
  });

  test('refuses names that are taken', () => {
    expect(() => new Counting().registerBuffer('forward', sn.ones([1]))).toThrow(/has "forward" already/);
    expect(() => new Counting().registerBuffer('scale', sn.ones([1]))).toThrow(/has "scale" already/);
  });
});

test('summary tells what layers give and train, computes nothing and leaves nothing behind', async () => {
  const net = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm(4), sn.relu, new nn.Linear(4, 2));
  const before = await nn.getBuffer(net, 'layers.1.runningMean').array();
  expect(nn.summary(net, sn.ones([5, 3])).split('\n')).toEqual([
    'layer       kind        output    parameters',
    '──────────  ──────────  ────────  ──────────',
    'model       Sequential  f32[5,2]           0',
    '  layers.0  Linear      f32[5,4]          16',
    '  layers.1  BatchNorm   f32[5,4]           8',
    '  layers.3  Linear      f32[5,2]          10',
    '',
    '34 parameters, 34 of them trained; 8 values of state; 168 B',
  ]);
  expect(nn.summary(net)).toMatch(/^layer +kind +parameters\n/);
  expect(await nn.getBuffer(net, 'layers.1.runningMean').array()).toEqual(before);
  expect([net.training, net.registeredHooks]).toEqual([true, undefined]);
});
