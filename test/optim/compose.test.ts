// What is built around the step of an optimizer: several gradients a step, an optimizer a group of
// parameters, averages of parameters, and steps that evaluate the loss themselves.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Linear } from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';
import { torchCases } from '../support/torch/figures.ts';
import { close, fromTorch, numbers } from './support.ts';

beforeAll(() => sn.setDevice('interpreter'));
afterAll(() => sn.setDevice(undefined));

const gradients = [
  [1, -2],
  [0.5, 1],
  [3, 0.25],
  [-1, 2],
  [0.5, 0.5],
  [2, -4],
  [9, 9],
] as const;

/** The mean of gradients 2i and 2i + 1. */
const mean = (i: number): number[] =>
  gradients[2 * i]!.map((value, j) => (value + gradients[2 * i + 1]![j]!) / 2);

describe('an optimizer that accumulates two gradients', () => {
  const makers = {
    adam: (accumulate: number) => optim.adam({ lr: 0.1, accumulate }),
    radam: (accumulate: number) => optim.radam({ lr: 0.1, betas: [0.5, 0.4], accumulate }),
    momentum: (accumulate: number) => optim.sgd({ lr: 0.1, momentum: 0.9, dampening: 0.5, accumulate }),
  };

  test.each(Object.entries(makers))('%s moves at every other step, by the mean', async (_, make) => {
    const [two, one] = [make(2), make(1)];
    let [params, state] = [{ w: sn.tensor([1, 2]) }, two.init({ w: sn.tensor([1, 2]) })];
    let [known, past] = [{ w: sn.tensor([1, 2]) }, one.init({ w: sn.tensor([1, 2]) })];
    const step = sn.compile((p: typeof params, s: typeof state, g: sn.Tensor) => two.update(p, { w: g }, s));
    for (const [i, gradient] of gradients.entries()) {
      [params, state] = step(params, state, sn.tensor([...gradient]));
      if (i % 2 === 1) [known, past] = one.update(known, { w: sn.tensor(mean(i >> 1)) }, past);
      close(await numbers(params.w), await numbers(known.w), 1e-6);
    }
  });

  test('by steps', async () => {
    const [w, v] = [sn.tensor([1, 2]).requiresGrad_(), sn.tensor([1, 2]).requiresGrad_()];
    const two = new optim.AdamW([w], { lr: 0.1, accumulate: 2 });
    const one = new optim.AdamW([v], { lr: 0.1 });
    for (const [i, gradient] of gradients.entries()) {
      w.grad = sn.tensor([...gradient]);
      two.step();
      if (i % 2 === 0) continue;
      v.grad = sn.tensor(mean(i >> 1));
      one.step();
      close(await numbers(w), await numbers(v), 1e-6);
    }
  });
});

describe('a partition', () => {
  const tree = () => ({ layer: { weight: sn.ones([2]), bias: sn.ones([2]) } });

  test('moves each parameter by the first entry that its path fits', async () => {
    const [still, fast] = [optim.sgd({ lr: 0 }), optim.adamW({ lr: 0.5, weightDecay: 0 })];
    const optimizer = optim.partition([
      [/bias$/, still],
      [/./, fast],
    ]);
    const [moved, state] = optimizer.update(tree(), tree(), optimizer.init(tree()));
    expect(await numbers(moved.layer.bias)).toEqual([1, 1]);
    close(await numbers(moved.layer.weight), [0.5, 0.5], 1e-6);
    expect(Object.keys(state.slots[0]!)).not.toEqual(Object.keys(state.slots[1]!));
    const [all] = optimizer.update(tree(), tree(), optimizer.init(tree()), { lr: 0.25 });
    close(await numbers(all.layer.bias), [0.75, 0.75], 1e-6);
  });

  test('leaves no parameter out', () => {
    const optimizer = optim.partition([[/weight/, optim.sgd()]]);
    expect(() => optimizer.init(tree())).toThrow(/partition: no entry is for f32\[2\] at \.layer\.bias/);
  });

  test('takes what takes only matrices beside what takes the rest', async () => {
    const model = new Linear(3, 2);
    const optimizer = optim.partition([
      [/weight$/, optim.muon()],
      [/./, optim.adam()],
    ]);
    const loss = (m: Linear, x: sn.Tensor): sn.Tensor => m.forward(x).square().sum();
    const x = sn.ones([4, 3]);
    const before = Number(await loss(model, x).item());
    const [next] = optimizer.update(model, sn.grad(loss)(model, x), optimizer.init(model));
    expect(Number(await loss(next, x).item())).toBeLessThan(before);
    expect(() => optim.muon().init(model)).toThrow(/muon: a parameter must be a matrix/);
  });
});

describe('averages', () => {
  test('ema keeps its share of what was', async () => {
    const average = optim.ema({ decay: 0.75 });
    let state = average.init({ w: sn.tensor([4]), n: sn.tensor([1], { dtype: 'i32' }) });
    const update = sn.compile((s: typeof state, w: sn.Tensor, n: sn.Tensor) => average.update(s, { w, n }));
    state = update(state, sn.tensor([8]), sn.tensor([2], { dtype: 'i32' }));
    state = update(state, sn.tensor([1]), sn.tensor([3], { dtype: 'i32' }));
    expect(await numbers(state.average.w)).toEqual([4 * 0.5625 + 8 * 0.1875 + 0.25]);
    expect([await numbers(state.average.n), await state.count.item()]).toEqual([[3], 3]);
  });

  test('swa is the mean of all', async () => {
    const average = optim.swa();
    let state = average.init(sn.tensor([1, 3]));
    for (const values of [
      [2, 3],
      [6, 9],
    ])
      state = average.update(state, sn.tensor(values));
    close(await numbers(state.average), [3, 5], 1e-6);
  });

  test('a model and its average are two models', async () => {
    const model = new Linear(2, 1);
    const average = optim.ema({ decay: 0.5 });
    const state = average.init(model);
    const x = sn.ones([1, 2]);
    const before = await numbers(model.forward(x));
    model.weight.assign(model.weight.detach().add(1));
    expect(await numbers(state.average.forward(x))).toEqual(before);
    const [now] = await numbers(average.update(state, model).average.forward(x));
    close([now!], [before[0]! + 1], 1e-6);
  });
});

describe('LBFGS', () => {
  const rosenbrock = (p: sn.Tensor, steep: number): sn.Tensor => {
    const [head, tail] = [p.narrow(0, 0, p.size - 1), p.narrow(0, 1, p.size - 1)];
    return sn.sub(1, head).square().add(tail.sub(head.square()).square().mul(steep)).sum();
  };
  const closureOf = (p: sn.Tensor, optimizer: optim.LBFGS, steep: number) => (): sn.Tensor => {
    optimizer.zeroGrad();
    const loss = rosenbrock(p, steep);
    loss.backward();
    return loss;
  };

  test.each(torchCases('optim', 'lbfgs'))('$name goes where PyTorch goes', async (one) => {
    const p = fromTorch(one.inputs[0]!).requiresGrad_();
    const optimizer = new optim.LBFGS([p], one.args);
    for (const expected of one.outputs) {
      await optimizer.step(closureOf(p, optimizer, 2));
      close(await numbers(p), expected.data as Float64Array, 1e-9);
    }
  });

  test('finds the minimum of a narrow valley by a line search', async () => {
    const p = sn.tensor(Float64Array.of(-1.2, 1, -1.2, 1)).requiresGrad_();
    const optimizer = new optim.LBFGS([p], {
      lineSearch: 'strongWolfe',
      maxIter: 200,
      toleranceChange: 1e-14,
    });
    const first = await optimizer.step(closureOf(p, optimizer, 100));
    expect(first).toBeGreaterThan(500);
    close(await numbers(p), [1, 1, 1, 1], 1e-6);
  });

  test('moves parameters of several shapes and dtypes together', async () => {
    const target = { w: sn.tensor([[1, 2]]), b: sn.tensor([3], { dtype: 'f16' }) };
    const model = { w: sn.zeros([1, 2]).requiresGrad_(), b: sn.zeros([1], { dtype: 'f16' }).requiresGrad_() };
    const optimizer = new optim.LBFGS(model, { lineSearch: 'strongWolfe' });
    await optimizer.step(() => {
      optimizer.zeroGrad();
      const loss = model.w.sub(target.w).square().sum().add(model.b.sub(target.b).cast('f32').square().sum());
      loss.backward();
      return loss;
    });
    close(await numbers(model.w), [1, 2], 1e-3);
    close(await numbers(model.b), [3], 1e-2);
  });
});

test('the average that ASGD keeps is that of its parameters from t0 on', async () => {
  const w = sn.tensor([1]).requiresGrad_();
  const optimizer = new optim.ASGD([w], { lr: 0.1, lambd: 0, t0: 1 });
  const seen: number[] = [];
  for (let i = 0; i < 5; i++) {
    w.grad = sn.ones([1]);
    optimizer.step();
    seen.push(...(await numbers(w)));
  }
  const average = optimizer.stateDict().tensors['0.average']!;
  // The first three weights are 1: the average starts with the third value.
  const counted = seen.slice(2);
  const mean = counted.reduce((a, b) => a + b) / counted.length;
  close(await numbers(average), [mean], 1e-6);
});

describe('derivatives go through steps of functional optimizers', () => {
  type Weights = { readonly w: sn.Tensor };
  const loss = ({ w }: Weights): sn.Tensor => w.pow(4).sum();
  const makers: Readonly<Record<string, () => optim.FunctionalOptimizer>> = {
    sgd: () => optim.sgd({ lr: 0.01, momentum: 0.9, weightDecay: 0.1 }),
    adam: () => optim.adam({ lr: 0.1, amsgrad: true }),
    adamW: () => optim.adamW({ lr: 0.1, accumulate: 2 }),
    adamax: () => optim.adamax({ lr: 0.1 }),
    nadam: () => optim.nadam({ lr: 0.1 }),
    radam: () => optim.radam({ lr: 0.1, betas: [0.5, 0.4] }),
    adagrad: () => optim.adagrad({ lr: 0.1 }),
    adadelta: () => optim.adadelta({ lr: 0.1 }),
    rmsprop: () => optim.rmsprop({ lr: 0.1, momentum: 0.9, centered: true }),
    rprop: () => optim.rprop({ lr: 0.01 }),
    asgd: () => optim.asgd({ lr: 0.01 }),
    adafactor: () => optim.adafactor({ lr: 0.1 }),
    muon: () => optim.muon({ lr: 0.1 }),
    lion: () => optim.lion({ lr: 0.1 }),
    lamb: () => optim.lamb({ lr: 0.1 }),
    partition: () => optim.partition([[/w/, optim.sgd({ lr: 0.01 })]]),
  };
  const start = sn.tensor(Float64Array.of(1, -0.7, 0.4, 1.3), { shape: [2, 2] });
  const along = sn.tensor(Float64Array.of(0.3, 0.9, -0.5, 0.2), { shape: [2, 2] });
  /** How `f` changes from `start` along `along`, by the gradient and by a difference. */
  const both = async (f: (w: sn.Tensor) => sn.Tensor): Promise<[number, number]> => {
    const at = async (step: number): Promise<number> => Number(await f(start.add(along.mul(step))).item());
    const slope = Number(await sn.grad(f)(start).mul(along).sum().item());
    return [slope, ((await at(1e-5)) - (await at(-1e-5))) / 2e-5];
  };

  test.each(Object.entries(makers))('%s', async (_, make) => {
    const optimizer = make();
    const after = (w: sn.Tensor): sn.Tensor => {
      let [params, state] = [{ w }, optimizer.init({ w })];
      for (let i = 0; i < 2; i++) {
        [params, state] = optimizer.update(params, sn.grad(loss)(params), state);
        // The first step of some depends on signs only.
        params = { w: params.w.mul(w) };
      }
      return loss(params);
    };
    const [slope, difference] = await both(after);
    close([slope], [difference], 1e-5);
    expect(Math.abs(slope)).toBeGreaterThan(0.1);
    close([Number(await sn.jvp(after, [start], [along]).tangent.item())], [slope], 1e-9);
  });

  test('that are compiled, run in a loop, clipped, scaled and averaged', async () => {
    const scaled = optim.scaled(optim.sgd({ lr: 0.01, momentum: 0.5 }), { initScale: 4 });
    const average = optim.ema({ decay: 0.5 });
    const step = (params: Weights, state: ReturnType<typeof scaled.init>): [Weights, typeof state] => {
      const raw = sn.grad((p: Weights) => scaled.scale(loss(p), state))(params);
      return scaled.update(params, optim.clipByValue(optim.clipByNorm(raw, 3)[0], 2), state);
    };
    const compiled = sn.compile(step);
    const from = (w: sn.Tensor, run: typeof step): sn.Tensor => {
      const first = { w };
      const [params] = run(...run(first, scaled.init(first)));
      return loss(average.update(average.init(first), params).average);
    };
    // The first call of the compiled step is within no derivative.
    const value = Number(await from(start, compiled).item());
    const [slope, difference] = await both((w) => from(w, step));
    close([slope], [difference], 1e-6);
    close(await both((w) => from(w, compiled)), [slope, difference], 1e-9);
    const looped = await both((w) => {
      const first = { w };
      const turn = (carry: ReturnType<typeof step>): [typeof carry, undefined] => [step(...carry), undefined];
      const [[params]] = sn.scan(turn, [first, scaled.init(first)], undefined, { length: 2 });
      return loss(average.update(average.init(first), params).average);
    });
    close(looped, [slope, difference], 1e-9);
    close([Number(await from(start, compiled).item())], [value], 1e-12);
    // Within a derivative of its own a step asks for none around it: one trace serves all calls.
    const whole = sn.compile((w: sn.Tensor) =>
      sn
        .grad((p: sn.Tensor) => from(p, step))(w)
        .mul(along)
        .sum(),
    );
    close(await numbers(whole(start)), [slope], 1e-9);
    const { traces } = sn.stats();
    close(await numbers(whole(start)), [slope], 1e-9);
    expect(sn.stats().traces).toBe(traces);
  });

  test('of models, whose parameters are leaves where no derivative leads through them', async () => {
    sn.manualSeed(1);
    const [model, x] = [new Linear(2, 1), sn.tensor([[1, 2]])];
    const cost = (m: Linear): sn.Tensor => m.forward(x).square().sum();
    const [optimizer, lr] = [optim.sgd({ lr: 0.1 }), sn.tensor(0.1)];
    const stepped = (m: Linear, rate: sn.Tensor = lr): Linear =>
      optimizer.update(m, sn.grad(cost)(m), optimizer.init(m), { lr: rate })[0];
    const plain = (m: Linear): Linear => sn.treeMap((p, g) => p.sub(g!.mul(0.1)), m, sn.grad(cost)(m));
    const [found, known] = [stepped, plain].map(
      (next) => sn.grad((m: Linear) => cost(next(m)))(model).weight,
    );
    close(await numbers(found!), await numbers(known!), 1e-6);
    expect((await numbers(known!)).some((value) => value !== 0)).toBe(true);
    // The derivative by the rate leads through the step; what is handed out of it has no history.
    const { grad, aux } = sn.grad(
      (rate: sn.Tensor) => {
        const next = stepped(model, rate);
        return [cost(next), next] as const;
      },
      { hasAux: true },
    )(lr);
    expect(await grad.item()).not.toBe(0);
    expect(() => aux.weight.sum().backward()).toThrow(/does not depend/);
    const next = stepped(model);
    next.weight.sum().backward();
    expect(await numbers(next.weight.grad!)).toEqual([1, 1]);
    expect(model.weight.grad).toBeUndefined();
  });
});
