// Gradients and `compile`: a compiled function gives the gradients of the function, to every order and wherever they are asked for,
// and gives them from programs that are compiled once.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Dropout, Linear, Sequential } from '../../../src/nn/index.ts';
import { sgd } from '../../../src/optim/index.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { spyDevice } from '../support.ts';

const { tensor } = sn;
const leaf = (...values: readonly number[]): sn.Tensor => tensor(values).requiresGrad_();

/** Counts how often a function is traced. */
function counting<A extends unknown[], R>(fn: (...args: A) => R): [(...args: A) => R, () => number] {
  let count = 0;
  return [(...args) => ((count += 1), fn(...args)), () => count];
}

describe('a call whose results carry gradients', () => {
  test('is traced once, and runs a program of its own', async () => {
    spyDevice();
    const net = new Sequential(new Linear(3, 3), sn.tanh, new Linear(3, 3));
    const [body, traces] = counting((x: sn.Tensor) => net.forward(x));
    const f = sn.compile(body);
    let compiled = 0;
    for (let i = 0; i < 6; i++) {
      if (i === 2) compiled = compileCount();
      const loss = f(tensor([[i, 1, 2]]))
        .square()
        .sum();
      loss.backward();
      await loss.item();
      await Promise.all(net.layers.map((l) => l instanceof Linear && l.weight.grad!.data()));
      for (const l of net.layers) if (l instanceof Linear) [l.weight, l.bias!].forEach((p) => p.zeroGrad());
    }
    expect(traces()).toBe(1);
    expect(compileCount()).toBe(compiled);
  });

  test('gives the gradients of the function itself', async () => {
    spyDevice();
    const body = (x: sn.Tensor, w: sn.Tensor, n: sn.Tensor): { y: sn.Tensor; norm: sn.Tensor } => {
      const h = x.matmul(w).add(n).softmax(-1);
      return { y: h.mul(x), norm: h.square().sum(1) };
    };
    const values: unknown[][] = [body, sn.compile(body)].map(() => []);
    for (const [i, f] of [body, sn.compile(body)].entries()) {
      const [x, w] = [tensor([[1, -2], [0.5, 3]]).requiresGrad_(), tensor([[0.3, 1], [-1, 2]]).requiresGrad_()]; // prettier-ignore
      const { y, norm } = f(x, w, 0.25 as unknown as sn.Tensor);
      expect([y.requiresGrad, norm.requiresGrad]).toEqual([true, true]);
      y.exp()
        .sum()
        .add(norm.mul(tensor([2, -3])).sum())
        .backward();
      values[i]!.push(...(await Promise.all([x.grad!.array(), w.grad!.array()])));
    }
    expect(values[1]).toEqual(values[0]);
  });

  test('has what its derivative reads kept by its program, and recomputes what is cheap', async () => {
    const spy = spyDevice();
    const w = tensor([[1, 2], [3, 4]]).requiresGrad_(); // prettier-ignore
    const f = sn.compile((x: sn.Tensor) => x.matmul(w).relu().exp());
    const y = f(tensor([[1, -1]]));
    await y.data();
    // The result, and the product: exp is computed again of it, or is the result.
    expect(spy.outputs).toEqual([2]);
    y.sum().backward();
    const before = spy.count.run;
    await w.grad!.data();
    expect(spy.count.run).toBe(before + 1);
  });

  test('gives second derivatives', async () => {
    spyDevice();
    const cube = sn.compile((x: sn.Tensor) => x.pow(3).sum());
    const slope = sn.grad(cube);
    const curvature = sn.grad((x: sn.Tensor) => slope(x).sum());
    expect(await curvature(tensor([1, 2])).array()).toEqual([6, 12]);
    // A compiled gradient, differentiated from outside.
    const inside = sn.compile((x: sn.Tensor) => sn.grad((z: sn.Tensor) => z.pow(3).sum())(x));
    const p = leaf(1, 2);
    inside(p).sum().backward();
    expect(await p.grad!.array()).toEqual([6, 12]);
    // A gradient penalty through a compiled network.
    const net = new Linear(2, 1);
    const f = sn.compile((x: sn.Tensor) => net.forward(x).tanh().sum());
    const penalty = (g: (x: sn.Tensor) => sn.Tensor): sn.Tensor =>
      sn
        .grad(g)(tensor([[1, 2]]))
        .square()
        .sum();
    const want: unknown[] = [];
    for (const g of [(x: sn.Tensor) => net.forward(x).tanh().sum(), (x: sn.Tensor) => f(x)]) {
      net.weight.zeroGrad();
      penalty(g).backward();
      want.push(await net.weight.grad!.data());
    }
    expect(want[1]).toEqual(want[0]);
  });

  test('carries gradients through the values that it assigns, and ends them at leaves', async () => {
    spyDevice();
    const [w, state] = [leaf(3), tensor([0])];
    const step = sn.compile((x: sn.Tensor) => void state.assign(w.mul(x)));
    step(tensor([2]));
    expect(state.requiresGrad).toBe(true);
    state.sum().backward();
    expect(await w.grad!.array()).toEqual([2]);
    const update = sn.compile(() => void w.assign(w.mul(2)));
    update();
    expect([await w.array(), w.requiresGrad]).toEqual([[6], true]);
    w.zeroGrad();
    w.mul(5).sum().backward();
    expect(await w.grad!.array()).toEqual([5]);
  });

  test('sees the value that a parameter had at the call', async () => {
    spyDevice();
    const w = leaf(3);
    const f = sn.compile((x: sn.Tensor) => w.mul(w).mul(x));
    const y = f(tensor([1]));
    w.assign(tensor([10]));
    y.sum().backward();
    expect(await w.grad!.array()).toEqual([6]);
  });

  test('draws the same random numbers backwards as forwards', async () => {
    spyDevice();
    const [p, drop] = [leaf(...new Array<number>(32).fill(1)), new Dropout(0.5)];
    const f = sn.compile((x: sn.Tensor) => drop.forward(x));
    for (let i = 0; i < 3; i++) {
      p.zeroGrad();
      const y = f(p);
      y.sum().backward();
      expect(await p.grad!.array()).toEqual(await y.array());
    }
  });

  test('has no history under noGrad, where gradients are not asked for, or when nothing requires them', async () => {
    spyDevice();
    const net = new Linear(2, 2);
    const [body, traces] = counting((x: sn.Tensor) => net.forward(x));
    const f = sn.compile(body);
    expect(sn.noGrad(() => f(sn.ones([1, 2]))).requiresGrad).toBe(false);
    expect(sn.compile((x: sn.Tensor) => x.mul(2))(sn.ones([2])).requiresGrad).toBe(false);
    expect(sn.compile((x: sn.Tensor) => x.mul(2).detach())(leaf(1)).requiresGrad).toBe(false);
    for (const q of [net.weight, net.bias!]) q.requiresGrad_(false);
    expect(f(sn.ones([1, 2])).requiresGrad).toBe(false);
    await sn
      .compile((x: sn.Tensor) => x.argmax())(leaf(1, 2))
      .data();
    expect(traces()).toBeLessThanOrEqual(2);
  });
});

describe('one trace serves tensors that require gradients and tensors that do not', () => {
  test('a functional step is compiled once', async () => {
    spyDevice();
    const opt = sgd({ lr: 0.1 });
    const [body, traces] = counting((m: Linear, state: ReturnType<typeof opt.init>, x: sn.Tensor) => {
      const { value, grad } = sn.valueAndGrad((at: Linear) => at.forward(x).square().mean())(m);
      return [value, ...opt.update(m, grad, state)] as const;
    });
    const step = sn.compile(body);
    let m = new Linear(3, 3);
    let state = opt.init(m);
    let before = 0;
    const losses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const [value, ...next] = step(m, state, sn.ones([2, 3]));
      [m, state] = next;
      losses.push(Number(await value.item()));
      if (i === 0) {
        expect(value.requiresGrad).toBe(true);
        before = compileCount();
      }
    }
    expect([traces(), compileCount() - before]).toEqual([1, 0]);
    expect(losses[3]).toBeLessThan(losses[0]!);
  });

  test('a function that asks gets the truth, and a trace for each answer', async () => {
    spyDevice();
    const [body, traces] = counting((x: sn.Tensor) => {
      const y = x.mul(2);
      return { y, asked: [x.requiresGrad, y.requiresGrad, y.detach().requiresGrad] };
    });
    const f = sn.compile(body);
    expect(f(leaf(1)).asked).toEqual([true, true, false]);
    expect(f(tensor([1])).asked).toEqual([false, false, false]);
    expect(f(leaf(1).mul(3)).asked).toEqual([true, true, false]);
    expect(f(tensor([2])).asked).toEqual([false, false, false]);
    expect(traces()).toBe(2);
  });

  test('backward inside accumulates in leaves from outside, and refuses what is none', async () => {
    spyDevice();
    const f = sn.compile((x: sn.Tensor) => x.mul(x).sum().backward());
    const p = leaf(3);
    f(p);
    expect(await p.grad!.array()).toEqual([6]);
    expect(() => f(tensor([1]))).toThrow(/backward: .*does not depend on any tensor that requires gradients/);
    const q = leaf(2).mul(1);
    expect(() => f(q)).toThrow(/depends on tensors outside of the compiled function/);
    p.zeroGrad();
    f(p);
    expect(await p.grad!.array()).toEqual([6]);
  });

  test('a leaf made inside leaves as a leaf, a released value as a released one', async () => {
    spyDevice();
    const w = leaf(2);
    const [made, loss] = sn.compile((x: sn.Tensor) => {
      const l = x.mul(w).sum();
      l.backward();
      return [x.mul(2).detach().requiresGrad_(), l] as const;
    })(tensor([3]));
    expect([await w.grad!.array(), made.requiresGrad]).toEqual([[3], true]);
    made.square().sum().backward();
    expect(await made.grad!.array()).toEqual([12]);
    expect(() => loss.backward()).toThrow(/released by an earlier backward/);
    expect(await loss.item()).toBe(6);
  });

  test('an input handed through keeps its history', async () => {
    spyDevice();
    const p = leaf(1, 2);
    const [same, other] = sn.compile((x: sn.Tensor) => [x, x.mul(3)] as const)(p);
    same.mul(10).sum().add(other.sum()).backward();
    expect(await p.grad!.array()).toEqual([13, 13]);
  });
});

describe('with a donation', () => {
  test('a gradient that does not read what was donated is given', async () => {
    spyDevice();
    const [w, f] = [leaf(2, 3), sn.compile((x: sn.Tensor, y: sn.Tensor) => x.add(y), { donate: [0] })];
    const x = tensor([1, 1]).add(0);
    const z = f(x, w);
    expect(z.requiresGrad).toBe(true);
    z.mul(5).sum().backward();
    expect(await w.grad!.array()).toEqual([5, 5]);
  });

  test('one that does is an error that says so', async () => {
    spyDevice();
    const [w, f] = [leaf(2, 3), sn.compile((x: sn.Tensor, y: sn.Tensor) => x.mul(y), { donate: [0] })];
    const z = f(tensor([1, 1]).add(0), w);
    expect(await z.array()).toEqual([2, 3]);
    expect(() => z.sum().backward()).toThrow(/E_STATE|which was donated/);
    expect(w.grad).toBe(undefined);
  });

  test('a loop that hands its state on computes what it would without', async () => {
    spyDevice();
    const net = new Linear(4, 4);
    const [body, traces] = counting((x: sn.Tensor) => net.forward(x).tanh());
    const f = sn.compile(body, { donate: [0] });
    let [x, y]: [sn.Tensor, sn.Tensor] = [sn.ones([2, 4]).add(0), sn.ones([2, 4])];
    for (let i = 0; i < 5; i++) [x, y] = [f(x), body(y)];
    expect(await x.array()).toEqual(await y.array());
    expect([x.requiresGrad, traces()]).toEqual([true, 6]);
  });
});

/** Steps of random functions of two tensors: what they give and how they are differentiated has to agree, compiled or not. */
const steps: readonly ((x: sn.Tensor, y: sn.Tensor) => sn.Tensor)[] = [
  (x, y) => x.add(y),
  (x, y) => x.mul(y),
  (x, y) => x.matmul(y.transpose(0, 1)).div(4),
  (x) => x.tanh(),
  (x) => x.softmax(-1),
  (x) => x.sub(x.mean(1, { keepdim: true })),
  (x, y) => sn.where(x.gt(y), x, y.mul(2)),
  (x) => x.detach().add(x),
  (x, y) => sn.noGrad(() => x.mul(y)).add(x),
  (x) => x.cumsum(0),
  (x) => sn.repeat(x.slice(1, 0, 2), [1, 2]).slice(1, 0, 3),
  (x, y) => sn.grad((z: sn.Tensor) => z.mul(z).mul(y).sum())(x),
  (x) => sn.customVjp((z) => z.square(), (g, [z]) => [g.mul(z!).mul(3)])(x), // prettier-ignore
];

describe('random functions', () => {
  const runs = Number(process.env['SINTER_COMPILE_RUNS'] ?? 40);

  test('have the same values, gradients and gradients of gradients, compiled or not', async () => {
    spyDevice();
    const program = fc.array(fc.nat(steps.length - 1), { minLength: 1, maxLength: 6 });
    const data = (seed: number): sn.Tensor =>
      tensor(
        Float32Array.from({ length: 9 }, (_, i) => Math.sin(seed + 2 * i)),
        { shape: [3, 3] },
      );
    await fc.assert(
      fc.asyncProperty(program, fc.nat(99), fc.boolean(), async (list, seed, captures) => {
        const measured: unknown[] = [];
        for (const isCompiled of [false, true]) {
          const [p, q] = [data(seed).requiresGrad_(), data(seed + 1).requiresGrad_()];
          const body = (x: sn.Tensor, y: sn.Tensor): sn.Tensor[] => {
            let z = x;
            for (const step of list) z = steps[step]!(z, captures ? q : y);
            return [z, z.square().sum()];
          };
          const f = isCompiled ? sn.compile(body) : body;
          const [z, s] = f(p, q) as [sn.Tensor, sn.Tensor];
          const first = sn.gradients([z.sum(), s], [p]);
          const total = first[0]!.square().sum();
          const second = total.requiresGrad ? sn.gradients(total, [p, q]) : [];
          const all = [z, s, ...first, ...second];
          measured.push(await Promise.all(all.map(async (t) => Array.from(await t.data(), Number))));
          measured.push([z.requiresGrad, s.requiresGrad, total.requiresGrad]);
        }
        expect(measured[3]).toEqual(measured[1]);
        const [want, got] = [measured[0] as number[][], measured[2] as number[][]];
        want.forEach((values, i) =>
          values.forEach((value, k) => expect(got[i]![k]).toBeCloseTo(value, Math.abs(value) > 10 ? 1 : 3)),
        );
      }),
      { numRuns: runs },
    );
  });
});
