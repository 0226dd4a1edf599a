// Which tensors of a model are trained is one question with one answer: those that require gradients, for loops of `backward` and
// `step` as for `grad` and functional optimizers, compiled or not. Trees of plain arrays and objects are parameters, as in JAX.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear, Module } from '../../../src/nn/index.ts';
import { adam, adamW, clipByNorm, clipByValue, rmsprop, sgd, SGD } from '../../../src/optim/index.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { close, numbers } from '../../optim/support.ts';

beforeAll(() => sn.setDevice('interpreter'));

/** A frozen layer, a trained one, a constant, a mask and a table of integers. */
class Net extends Module {
  readonly table = sn.tensor([1, 2, 3]);
  readonly mask = sn.ones([2, 3]).tril().toBool();
  readonly shift = sn.tensor(new Int32Array([1, 0, 1]));
  readonly frozen = new Linear(3, 3);
  readonly head = new Linear(3, 1);
  constructor() {
    super();
    for (const p of [this.frozen.weight, this.frozen.bias!]) p.requiresGrad_(false);
  }
  forward(x: sn.Tensor): sn.Tensor {
    const hidden = this.frozen.forward(x.add(this.table)).add(this.shift);
    return this.head.forward(sn.where(this.mask, hidden, 0));
  }
}
const x = (): sn.Tensor => sn.tensor([[1, -1, 2], [0, 1, 1]]); // prettier-ignore
const loss = (m: Net, input: sn.Tensor): sn.Tensor => m.forward(input).square().mean();

const still = ['table', 'mask', 'shift'] as const;
/** Everything that must not move, and what must. */
const values = async (m: Net): Promise<{ fixed: number[][]; moved: number[][] }> => {
  const fixed = [...still.map((key) => m[key]), m.frozen.weight, m.frozen.bias!];
  return {
    fixed: await Promise.all(fixed.map(numbers)),
    moved: await Promise.all([m.head.weight, m.head.bias!].map(numbers)),
  };
};

function fresh(): Net {
  sn.manualSeed(11);
  return new Net();
}

describe('gradients of a model', () => {
  test('are what backward gives where gradients are required, and 0 elsewhere', async () => {
    const model = fresh();
    loss(model, x()).backward();
    const compiled = sn.compile((m: Net, input: sn.Tensor) => sn.grad(loss)(m, input));
    for (const g of [
      sn.grad(loss)(model, x()),
      sn.valueAndGrad(loss)(model, x()).grad,
      sn.vjp((m: Net) => loss(m, x()), model).vjp(sn.ones([]))[0],
      compiled(model, x()),
    ]) {
      expect(g).toBeInstanceOf(Net);
      close(await numbers(g.head.weight), await numbers(model.head.weight.grad!), 1e-6);
      for (const [zero, like] of [
        ...still.map((key) => [g[key], model[key]] as const),
        [g.frozen.weight, model.frozen.weight] as const,
      ]) {
        expect([zero.dtype, zero.shape]).toEqual([like.dtype, like.shape]);
        expect(new Set(await numbers(zero))).toEqual(new Set([0]));
      }
    }
  });

  test('count in norms as in the class world', async () => {
    const model = fresh();
    loss(model, x()).backward();
    const all = [...(await numbers(model.head.weight.grad!)), ...(await numbers(model.head.bias!.grad!))];
    const [clipped, norm] = clipByNorm(sn.grad(loss)(model, x()), 1e-3);
    expect(Number(await norm.item())).toBeCloseTo(Math.hypot(...all), 5);
    expect([clipped.mask.dtype, clipped.shift.dtype]).toEqual(['bool', 'i32']);
    expect(clipByValue(sn.grad(loss)(model, x()), 0.1).mask.dtype).toBe('bool');
  });

  test('of plain trees are those of every float', async () => {
    const tree = { w: sn.tensor([2]).requiresGrad_(), c: sn.tensor([3]) };
    const g = sn.grad((p: typeof tree) => p.w.mul(p.c).sum())(tree);
    expect([await numbers(g.w), await numbers(g.c)]).toEqual([[3], [2]]);
    expect(() =>
      sn.grad((p: { w: sn.Tensor; i: sn.Tensor }) => p.w.sum())({ ...tree, i: fresh().shift }),
    ).toThrow('grad: argument 0 at .i is i32[3]: only floats have gradients');
  });

  test('are refused where nothing requires them', () => {
    const model = fresh();
    const constants = sn.treeMap((p) => p.detach(), model);
    expect(() => sn.grad(loss)(constants, x())).toThrow(
      /grad: no tensor of argument 0 requires gradients, \.table for one[^]*try: requiresGrad_\(\)/,
    );
    expect(() => sn.vjp((m: Net) => loss(m, x()), constants)).toThrow(
      'no tensor of argument 0 requires gradients',
    );
    for (const optimizer of [sgd(), adam()]) {
      expect(() => optimizer.init(constants)).toThrow('no tensor of the parameters requires gradients');
    }
    // A model without any tensors, or without floats, has nothing to train and nothing to say.
    expect(
      sn.grad((m: { scale: sn.Tensor; list: Module[] }) => m.scale.sum())({ scale: sn.ones([1]), list: [] })
        .list,
    ).toEqual([]);
  });

  test('nest: what an outer derivative goes through is trained inside', async () => {
    // One step of inner training, differentiated: only the head moves, and only through it gradients flow.
    const meta = (m: Net, input: sn.Tensor): sn.Tensor => {
      const g = sn.grad(loss)(m, input);
      return loss(
        sn.treeMap((p, d) => (p.dtype === 'f32' ? p.sub(d.mul(0.1)) : p), m, g),
        input,
      );
    };
    const model = fresh();
    const g = sn.grad(meta)(model, x());
    expect(new Set(await numbers(g.frozen.weight))).toEqual(new Set([0]));
    const [value, step] = [await numbers(g.head.bias!), 1e-3];
    const moved = async (by: number): Promise<number> => {
      const other = fresh();
      sn.noGrad(() => other.head.bias!.assign(model.head.bias!.add(by)));
      return Number(await meta(other, x()).item());
    };
    expect(value[0]).toBeCloseTo(((await moved(step)) - (await moved(-step))) / (2 * step), 2);
  });
});

describe('functional optimizers', () => {
  test.each([
    ['compiled', true],
    ['compiled, with donation', 'donate'],
    ['not compiled', false],
  ])('move what the classes move: %s', async (_, how) => {
    const model = fresh();
    const before = await values(model);
    const byClass = fresh();
    const object = new SGD(byClass, { lr: 0.1, momentum: 0.9, weightDecay: 0.1 });
    const optimizer = sgd({ lr: 0.1, momentum: 0.9, weightDecay: 0.1 });
    const plain = (m: Net, state: ReturnType<typeof optimizer.init>, input: sn.Tensor) =>
      optimizer.update(m, sn.grad(loss)(m, input), state);
    const step = how === false ? plain : sn.compile(plain, how === 'donate' ? { donate: [0, 1] } : {});
    let [at, state] = [model, optimizer.init(model)];
    let compiled = 0;
    for (let i = 0; i < 4; i++) {
      [at, state] = step(at, state, x());
      object.zeroGrad();
      loss(byClass, x()).backward();
      object.step();
      expect(at.head.weight.requiresGrad).toBe(true);
      expect([at.frozen.weight, at.table, at.mask].map(({ requiresGrad }) => requiresGrad)).toEqual([
        false,
        false,
        false,
      ]);
      await numbers(at.head.weight);
      if (i === 1) compiled = compileCount();
    }
    expect(compileCount()).toBe(compiled);
    const [found, expected] = [await values(at), await values(byClass)];
    expect(found.fixed).toEqual(before.fixed);
    found.moved.forEach((part, i) => close(part, expected.moved[i]!, 1e-5));
    expect(found.moved).not.toEqual(before.moved);
  });

  test('keep no state for what is not trained', () => {
    const state = adam().init(fresh());
    expect(state.slots.map((slots) => Object.keys(slots).length)).toEqual([0, 0, 0, 0, 0, 2, 2]);
  });

  test.each([adamW({ weightDecay: 0.5 }), rmsprop({ weightDecay: 0.5 })])(
    'decay nothing that is frozen',
    async (optimizer) => {
      const model = fresh();
      const [next] = optimizer.update(model, sn.grad(loss)(model, x()), optimizer.init(model));
      expect(next.frozen.weight).toBe(model.frozen.weight);
      expect(next.table).toBe(model.table);
    },
  );

  test('in plain trees train every float, and hand integers through', async () => {
    const ids = fresh().shift;
    const [next, state] = sgd({ lr: 1 }).update(
      { w: sn.tensor([2]), ids, name: 'a' },
      { w: sn.tensor([0.5]), ids, name: 'a' },
      sgd({ lr: 1 }).init({ w: sn.tensor([2]), ids, name: 'a' }),
    );
    expect([await numbers(next.w), next.ids, next.name]).toEqual([[1.5], ids, 'a']);
    expect(next.w.requiresGrad).toBe(false);
    expect(state.slots.length).toBe(2);
    expect(() => sgd().init({ w: 2 })).toThrow(
      /sgd: a parameter is a tensor, got 2 at \.w[^]*try: sn\.tensor\(2\)/,
    );
  });
});
