// Weights that stand at several places of a model are one parameter: for `parameters` and optimizers that assign, and for whatever takes
// a model as a tree and gives one back. In trees of plain objects and arrays places count: there two places are two leaves.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { loadSafetensors, saveSafetensors } from '../../../src/io/index.ts';
import { Embedding, Linear, loadStateDict, Module, parameters, stateDict } from '../../../src/nn/index.ts';
import { adam, adamW, clipByNorm, rmsprop, sgd, SGD } from '../../../src/optim/index.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { flatten } from '../../../src/tensor/tree.ts';
import { close, numbers } from '../../optim/support.ts';

beforeAll(() => sn.setDevice('interpreter'));

class Tied extends Module {
  readonly emb = new Embedding(4, 3);
  readonly head = new Linear(3, 4, { bias: false });
  constructor() {
    super();
    this.head.weight = this.emb.weight;
  }
  forward(tokens: sn.Tensor): sn.Tensor {
    return this.head.forward(this.emb.forward(tokens));
  }
}

const x = (): sn.Tensor => sn.tensor(new Int32Array([0, 1, 2]));
const y = (): sn.Tensor => sn.tensor(new Int32Array([1, 2, 3]));
const loss = (m: Tied, tokens: sn.Tensor, next: sn.Tensor): sn.Tensor =>
  sn.crossEntropy(m.forward(tokens), next);

/** The gradient that `backward` leaves at the one parameter, and its value after steps of a class. */
async function byClass(steps: number): Promise<{ model: Tied; grad: number[]; trained: number[] }> {
  sn.manualSeed(3);
  const model = new Tied();
  const start = stateDict(model);
  loss(model, x(), y()).backward();
  const grad = await numbers(model.emb.weight.grad!);
  const optimizer = new SGD(model, { lr: 0.5, momentum: 0.9 });
  for (let i = 0; i < steps; i++) {
    optimizer.zeroGrad();
    loss(model, x(), y()).backward();
    optimizer.step();
  }
  const trained = await numbers(model.emb.weight);
  loadStateDict(model, start);
  return { model, grad, trained };
}

const expectTied = (m: Tied): void => expect(m.head.weight).toBe(m.emb.weight);

describe('a shared tensor is one leaf', () => {
  test('of the tree, at its first place', () => {
    const model = new Tied();
    const { leaves, paths } = flatten([model, model.emb]);
    expect(leaves).toEqual(parameters(model));
    expect(paths).toEqual(['[0].emb.weight']);
    expect(sn.treeLeaves(model).length).toBe(1);
  });

  test('that treeMap sees once, and gives back at every place', () => {
    let seen = 0;
    const twice = sn.treeMap((p) => ((seen += 1), p.mul(2)), new Tied());
    expectTied(twice);
    expect(seen).toBe(1);
  });

  test('trees that are not tied alike do not fit, by name', () => {
    const loose = new Tied();
    loose.head.weight = loose.emb.weight.detach().requiresGrad_();
    const told = /the trees differ in structure.*head\.weight/;
    expect(() => sn.treeMap((p) => p, new Tied(), loose)).toThrow(told);
    expect(() => sgd().update(new Tied(), loose, sgd().init(new Tied()))).toThrow(told);
  });

  test('in plain trees places count, as in JAX', async () => {
    const w = sn.tensor([3]);
    const g = sn.grad((p: { a: sn.Tensor; b: sn.Tensor }) => p.a.mul(p.b).mul(p.b).sum())({ a: w, b: w });
    expect([await numbers(g.a), await numbers(g.b)]).toEqual([[9], [18]]);
  });
});

describe('derivatives', () => {
  test('are the sum over all places, at every place', async () => {
    const { model, grad } = await byClass(0);
    for (const found of [
      sn.grad(loss)(model, x(), y()),
      sn.valueAndGrad(loss)(model, x(), y()).grad,
      sn.vjp((m: Tied) => loss(m, x(), y()), model).vjp(sn.ones([]))[0],
      sn.compile((m: Tied, a: sn.Tensor, b: sn.Tensor) => sn.grad(loss)(m, a, b))(model, x(), y()),
    ]) {
      expectTied(found);
      close(await numbers(found.emb.weight), grad, 1e-6);
    }
    const [clipped, norm] = clipByNorm(sn.grad(loss)(model, x(), y()), 1e9);
    expectTied(clipped);
    expect(Number(await norm.item())).toBeCloseTo(Math.hypot(...grad), 5);
  });
});

describe('functional optimizers', () => {
  test.each([
    ['compiled', true],
    ['not compiled', false],
  ])('step a tied weight once, as the classes do: %s', async (_, compiled) => {
    const { model, trained } = await byClass(3);
    const optimizer = sgd({ lr: 0.5, momentum: 0.9 });
    const plain = (m: Tied, state: ReturnType<typeof optimizer.init>, a: sn.Tensor, b: sn.Tensor) =>
      optimizer.update(m, sn.grad(loss)(m, a, b), state);
    const step = compiled ? sn.compile(plain) : plain;
    let [at, state] = [model, optimizer.init(model)];
    expect(state.slots.length).toBe(1);
    for (let i = 0; i < 3; i++) {
      [at, state] = step(at, state, x(), y());
      expectTied(at);
    }
    close(await numbers(at.emb.weight), trained, 1e-6);
  });

  test.each([adam(), adamW(), rmsprop()])('keep one state for it', async (optimizer) => {
    const model = new Tied();
    const [next, state] = optimizer.update(model, sn.grad(loss)(model, x(), y()), optimizer.init(model));
    expectTied(next);
    expect(state.slots.length).toBe(1);
    expect((await numbers(next.head.weight)).length).toBe(12);
  });
});

describe('compile', () => {
  test('traces anew for a model that is tied otherwise', async () => {
    const [tied, loose] = [new Tied(), new Tied()];
    loose.head.weight = loose.emb.weight.detach().requiresGrad_();
    const grad = sn.compile((m: Tied, a: sn.Tensor, b: sn.Tensor) => sn.grad(loss)(m, a, b));
    expectTied(grad(tied, x(), y()));
    const apart = grad(loose, x(), y());
    expect(apart.head.weight).not.toBe(apart.emb.weight);
    expect(await numbers(apart.head.weight)).not.toEqual(await numbers(apart.emb.weight));
    expectTied(grad(tied, x(), y()));
    const before = compileCount();
    grad(loose, x(), y());
    expect(compileCount()).toBe(before);
  });
});

describe('saving and loading', () => {
  test('keeps weights tied, whether the file has them once or twice', async () => {
    const from = new Tied();
    const all = stateDict(from);
    expect(Object.keys(all)).toEqual(['emb.weight', 'head.weight']);
    for (const names of [['emb.weight', 'head.weight'], ['emb.weight'], ['head.weight']]) {
      const to = new Tied();
      const part = Object.fromEntries(names.map((name) => [name, all[name]!]));
      const file = loadSafetensors(await saveSafetensors(part));
      expect(loadStateDict(to, file)).toEqual({ missing: [], unexpected: [] });
      expectTied(to);
      expect(await numbers(to.head.weight)).toEqual(await numbers(from.head.weight));
    }
  });

  test('two values for one weight are an error', async () => {
    const to = new Tied();
    const before = await numbers(to.emb.weight);
    const values = { 'emb.weight': sn.ones([4, 3]), 'head.weight': sn.zeros([4, 3]) };
    const file = loadSafetensors(await saveSafetensors(values));
    expect(() => loadStateDict(to, file)).toThrow(/head\.weight and emb\.weight are one tensor of the model/);
    expect(await numbers(to.emb.weight)).toEqual(before);
  });
});

describe('a model that contains itself', () => {
  class Ring extends Module {
    readonly inner = new Linear(1, 1);
    self: Ring | undefined;
    forward(at: sn.Tensor): sn.Tensor {
      return at;
    }
  }
  test('is an error wherever it is walked', () => {
    const ring = new Ring();
    ring.self = ring;
    for (const walk of [
      () => sn.treeLeaves(ring),
      () => parameters(ring),
      () => stateDict(ring),
      () => sn.compile((at: Ring) => at.inner.weight)(ring),
    ]) {
      expect(walk).toThrow(/contains itself at .*self/);
    }
    const list: unknown[] = [];
    list.push(list);
    expect(() => sn.treeLeaves(list)).toThrow('the tree contains itself at [0]');
  });
});
