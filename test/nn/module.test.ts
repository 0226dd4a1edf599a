import { beforeAll, describe, expect, test } from 'vitest';
import { loadSafetensors, saveSafetensors } from '../../src/io/index.ts';
import * as nn from '../../src/nn/index.ts';
import { compile } from '../../src/tensor/compile/compile.ts';
import { setDevice } from '../../src/tensor/device.ts';
import '../../src/operations/methods.ts';
import { compileCount } from '../../src/tensor/evaluate/executable.ts';
import { manualSeed } from '../../src/tensor/generator.ts';
import { relu } from '../../src/tensor/ops/elementwise/activation.ts';
import { ones, tensor } from '../../src/tensor/ops/creation/creation.ts';
import { randn } from '../../src/tensor/ops/creation/random.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { grad } from '../../src/tensor/derivative/transform.ts';
import { flatten, treeLeaves, treeMap, unflatten } from '../../src/tensor/tree.ts';
import { close, numbers } from '../optim/support.ts';

beforeAll(() => setDevice('interpreter'));

/** A little of everything: nesting, a list, a function as a layer, state, an option. */
class Net extends nn.Module {
  readonly body = new nn.Sequential(new nn.Linear(3, 4), relu, new nn.BatchNorm(4), new nn.Dropout(0.25));
  readonly heads = { left: new nn.Linear(4, 1), right: [new nn.Linear(4, 2, { bias: false })] };
  readonly slope: number;

  constructor(slope = 2) {
    super();
    this.slope = slope;
  }

  forward(x: Tensor): Tensor {
    const hidden = this.body.forward(x).mul(this.slope);
    return this.heads.left.forward(hidden).add(this.heads.right[0]!.forward(hidden));
  }
}

const parameterNames = [
  'body.layers.0.weight',
  'body.layers.0.bias',
  'body.layers.2.weight',
  'body.layers.2.bias',
  'heads.left.weight',
  'heads.left.bias',
  'heads.right.0.weight',
];
const bufferNames = ['body.layers.2.runningMean', 'body.layers.2.runningVar'];

describe('names', () => {
  test('parameters are found in nested modules, objects and lists', () => {
    const net = new Net();
    expect([...nn.namedParameters(net).keys()]).toEqual(parameterNames);
    expect(nn.parameters(net)).toEqual([...nn.namedParameters(net).values()]);
    expect(nn.parameters(net).every(({ requiresGrad }) => requiresGrad)).toBe(true);
    expect(nn.countParameters(net)).toBe(12 + 4 + 4 + 4 + 4 + 1 + 8);
    expect([...nn.namedParameters([net]).keys()][0]).toBe('0.body.layers.0.weight');
  });

  test('buffers are state, not parameters', () => {
    const net = new Net();
    expect([...nn.namedBuffers(net).keys()]).toEqual(bufferNames);
    expect(Object.keys(nn.stateDict(net)).sort()).toEqual([...parameterNames, ...bufferNames].sort());
  });

  test('a shared tensor is one parameter, and stands in the dictionary under every name', () => {
    const [a, b] = [new nn.Linear(2, 2, { bias: false }), new nn.Linear(2, 2, { bias: false })];
    b.weight = a.weight;
    expect([...nn.namedParameters({ a, b }).keys()]).toEqual(['a.weight']);
    expect(Object.keys(nn.stateDict({ a, b }))).toEqual(['a.weight', 'b.weight']);
  });
});

describe('state dictionaries', () => {
  test('carry a model over, through a file', async () => {
    const [from, to] = [new Net(), new Net()];
    from.forward(randn([5, 3]));
    const x = randn([4, 3]);
    nn.evalMode([from, to]);
    expect(await numbers(to.forward(x))).not.toEqual(await numbers(from.forward(x)));
    const file = await saveSafetensors(nn.stateDict(from));
    expect(nn.loadStateDict(to, loadSafetensors(file))).toEqual({ missing: [], unexpected: [] });
    expect(await numbers(to.forward(x))).toEqual(await numbers(from.forward(x)));
    expect(nn.parameters(to).every(({ requiresGrad }) => requiresGrad)).toBe(true);
  });

  test('are snapshots', async () => {
    const layer = new nn.Linear(1, 1);
    const before = nn.stateDict(layer);
    const value = await numbers(before['weight']!);
    layer.weight.assign(ones([1, 1]));
    expect(await numbers(before['weight']!)).toEqual(value);
    nn.loadStateDict(layer, before);
    expect(await numbers(layer.weight)).toEqual(value);
  });

  test('convert dtypes', async () => {
    const half = new nn.Linear(2, 1, { dtype: 'f16', bias: false });
    nn.loadStateDict(half, { weight: tensor([[1.0001, 2]]) });
    expect(half.weight.dtype).toBe('f16');
    expect(await numbers(half.weight)).toEqual([1, 2]);
  });

  test('name everything that does not fit, and change nothing then', async () => {
    const layer = new nn.Linear(2, 3);
    const before = await numbers(layer.weight);
    expect(() => nn.loadStateDict(layer, { weight: ones([3, 2]), scale: ones([1]) })).toThrow(
      'loadStateDict: the dictionary lacks bias; the model lacks scale',
    );
    expect(() => nn.loadStateDict(layer, { weight: ones([2, 3]), bias: ones([2]) })).toThrow(
      'weight is f32[3,2], given f32[2,3]; bias is f32[3], given f32[2]',
    );
    expect(await numbers(layer.weight)).toEqual(before);
    const report = nn.loadStateDict(layer, { weight: ones([3, 2]), scale: ones([1]) }, { strict: false });
    expect(report).toEqual({ missing: ['bias'], unexpected: ['scale'] });
    expect(await numbers(layer.weight)).toEqual([1, 1, 1, 1, 1, 1]);
  });
});

describe('modules are trees', () => {
  test('of their parameters, with everything else kept', () => {
    const net = new Net(3);
    const { leaves, paths, structure } = flatten(net);
    expect(leaves).toEqual(nn.parameters(net));
    expect(paths[0]).toBe('.body.layers[0].weight');
    const copy = unflatten(structure, leaves) as Net;
    expect(copy).toBeInstanceOf(Net);
    expect(copy).not.toBe(net);
    expect(copy).toEqual(net);
    expect((copy.body.layers[2] as nn.BatchNorm).runningMean).toBe(
      (net.body.layers[2] as nn.BatchNorm).runningMean,
    );
  });

  test('a gradient has the structure of the module', async () => {
    const layer = new nn.Linear(2, 1);
    const x = tensor([[3, 4]]);
    const found = grad((at: nn.Linear) => at.forward(x).sum())(layer);
    expect(found).toBeInstanceOf(nn.Linear);
    expect(await numbers(found.weight)).toEqual([3, 4]);
    expect(await numbers(found.bias!)).toEqual([1]);
    expect(layer.weight.grad).toBeUndefined();
  });

  test('settings may differ between trees that are mapped together, structure may not', () => {
    const [a, b] = [new Net(1), nn.evalMode(new Net(2))];
    expect(treeMap((x, y) => x.add(y!), a, b).slope).toBe(1);
    expect(() => treeMap((x) => x, new nn.Linear(1, 1), new nn.Linear(1, 1, { bias: false }))).toThrow(
      'Linear{weight:*,bias:*} and Linear{weight:*}',
    );
  });

  test('instances of other classes are settings inside a module, and refused elsewhere', () => {
    class Holder extends nn.Module {
      readonly when = new Date(0);
      forward(x: Tensor): Tensor {
        return x;
      }
    }
    expect(treeLeaves(new Holder())).toEqual([]);
    expect(() => flatten({ when: new Date(0) })).toThrow('got Date at .when');
  });
});

describe('compile', () => {
  test('takes modules as arguments; their numbers stay numbers', async () => {
    const net = nn.evalMode(new Net(2));
    const x = randn([2, 3]);
    let traces = 0;
    const forward = compile((at: Net, input: Tensor) => {
      traces += 1;
      expect(at.slope).toBe(2);
      return at.forward(input).detach();
    });
    const expected = await numbers(net.forward(x));
    close(await numbers(forward(net, x)), expected, 1e-6);
    const before = compileCount();
    const other = new Net(2);
    nn.loadStateDict(other, nn.stateDict(net));
    close(await numbers(forward(net, x)), expected, 1e-6);
    expect(compileCount()).toBe(before);
    expect(traces).toBe(1);
  });

  test('traces anew when a setting, a class or a mode differs', async () => {
    const calls: string[] = [];
    const run = compile((layer: nn.Dropout, x: Tensor) => {
      calls.push(`${layer.training} ${layer.p}`);
      return layer.forward(x);
    });
    const x = ones([64]);
    const layer = new nn.Dropout(0.5);
    expect(await numbers(run(layer, x))).toContain(0);
    expect(await numbers(run(layer, x))).toContain(2);
    expect(await numbers(run(nn.evalMode(layer), x))).toEqual(new Array(64).fill(1));
    run(new nn.Dropout(0.25), x);
    run(nn.train(layer), x);
    expect(calls).toEqual(['true 0.5', 'false 0.5', 'true 0.25']);

    // Two classes of one name and one shape are two structures.
    const classOf = (factor: number): nn.Module & { forward(x: Tensor): Tensor } => {
      class Scale extends nn.Module {
        forward(at: Tensor): Tensor {
          return at.mul(factor);
        }
      }
      return new Scale();
    };
    const apply = compile((at: ReturnType<typeof classOf>, input: Tensor) => at.forward(input));
    expect(await numbers(apply(classOf(2), ones([1])))).toEqual([2]);
    expect(await numbers(apply(classOf(3), ones([1])))).toEqual([3]);
  });

  test('hands back the state that a layer keeps, also under grad', async () => {
    const x = tensor([[1], [3]]);
    const [plain, traced] = [new nn.BatchNorm(1), new nn.BatchNorm(1)];
    const loss = (norm: nn.BatchNorm, input: Tensor): Tensor => norm.forward(input).sum();
    const step = compile((norm: nn.BatchNorm, input: Tensor) => grad(loss)(norm, input));
    for (let i = 0; i < 3; i++) {
      plain.forward(x);
      step(traced, x);
      close(await numbers(traced.runningMean!), await numbers(plain.runningMean!), 1e-6);
      close(await numbers(traced.runningVar!), await numbers(plain.runningVar!), 1e-6);
    }
    // Mean 2 and unbiased variance 2, by a momentum of 0.1 from 0 and 1.
    close(await numbers(traced.runningMean!), [2 * (1 - 0.9 ** 3)], 1e-6);
    close(await numbers(traced.runningVar!), [1 + (1 - 0.9 ** 3)], 1e-6);
  });
});

test('layers and tensors in a Map or a Set are refused: they would be no part of the model', () => {
  class Named extends nn.Module {
    readonly held: unknown;
    constructor(held: unknown) {
      super();
      this.held = held;
    }
    forward(x: Tensor): Tensor {
      return x;
    }
  }
  const layer = new nn.Linear(2, 2);
  for (const [held, words] of [
    [new Map([['a', layer]]), 'held is a Map with layers'],
    [new Set([ones([2])]), 'held is a Set with tensors'],
  ] as const) {
    expect(() => nn.parameters(new Named(held))).toThrow(words);
    expect(() => nn.stateDict([new Named(held)])).toThrow(`0.${words}`);
  }
  expect(nn.parameters(new Named(new Map([['a', 1]])))).toEqual([]);
  expect(nn.parameters(new Named({ a: layer }))).toHaveLength(2);
});

test('train and evalMode reach every layer', () => {
  const net = new Net();
  expect(nn.evalMode(net)).toBe(net);
  expect([net, net.body, ...net.body.layers.slice(2)].map((at) => (at as nn.Module).training)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  nn.train([{ net }]);
  expect((net.body.layers[3] as nn.Module).training).toBe(true);
});

test('parameters are computed once, not in every forward pass', async () => {
  manualSeed(5);
  const layer = new nn.Linear(2, 2);
  const x = ones([1, 2]);
  await numbers(layer.forward(x));
  expect(String(layer.weight)).toMatch(/^Tensor f32\[2,2\] \(requires grad\) \[\[/);
});
