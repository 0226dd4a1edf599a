// The functions that `vjp` and `linearize` give, called anywhere: in a compiled function, the body of a loop, a branch, under `vmap`,
// `grad`, `jvp` and `vjp`. Everywhere they give what they give where they were made, and derivatives of them too.

import { describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';

type T = sn.Tensor;

const x0 = (): T => sn.tensor([0.3, -1.2, 2]);
const direction = (): T => sn.tensor([1, -2, 0.5]);
const weight = sn.tensor([
  [1, 2, -1],
  [0.5, 0, 3],
  [-2, 1, 1],
]);
const functions: Readonly<Record<string, (x: T) => T>> = {
  sin: (x) => x.sin(),
  layers: (x) => weight.matmul(x.tanh()).square().mul(x),
  'a loop': (x) => sn.foriLoop(0, 3, (_, at: T) => at.mul(x.cos()).add(0.1), x),
  'a branch': (x) =>
    sn.cond(
      x.mean().gt(0),
      (at: T) => at.square(),
      (at: T) => at.exp(),
      x,
    ),
  'a custom derivative': (x) =>
    sn.customVjp(
      (at: T) => at.exp(),
      (g, [at]) => [g.mul(at!.exp())],
    )(x),
  gradient: (x) => sn.grad((at: T) => at.square().sum().mul(at.sin().sum()))(x),
  'a constant': (x) => x.detach().mul(2),
};

/** Each function of one tangent or cotangent, at a point. */
const ways: Readonly<Record<string, (f: (x: T) => T, x: T) => (t: T) => T>> = {
  linearize: (f, x) => sn.linearize(f, x).jvp,
  vjp: (f, x) => {
    const { vjp } = sn.vjp(f, x);
    return (t) => vjp(t)[0];
  },
};

/** What calls a function of one tensor elsewhere. */
const callers: Readonly<Record<string, (f: (t: T) => T) => (t: T) => T>> = {
  compile: (f) => sn.compile(f),
  'compile of vmap': (f) => sn.compile((t: T) => sn.vmap(f)(sn.stack([t, t.mul(2)]))),
  vmap: (f) => (t) => sn.vmap(f)(sn.stack([t, t.mul(2)])),
  'a body': (f) => (t) => sn.foriLoop(0, 2, (_, at: T) => f(at), t),
  'a body in compile': (f) => sn.compile((t: T) => sn.foriLoop(0, 2, (_, at: T) => f(at), t)),
  'a branch in compile': (f) =>
    sn.compile((t: T) =>
      sn.cond(
        t.sum().gt(-9),
        (at: T) => f(at),
        (at: T) => at,
        t,
      ),
    ),
  'compile of grad': (f) => sn.compile((t: T) => sn.grad((at: T) => f(at).mul(f(at)).sum())(t)),
  'grad of compile': (f) => sn.grad((t: T) => sn.compile(f)(t).square().sum()),
  'compile of jvp': (f) => sn.compile((t: T) => sn.jvp((at: T) => f(at).square(), [t], [t]).tangent),
  'compile of vjp': (f) => sn.compile((t: T) => sn.vjp((at: T) => f(at).square(), t).vjp(t)[0]),
  'jacrev of compile': (f) => sn.jacrev(sn.compile(f)),
  checkpoint: (f) => sn.compile((t: T) => sn.grad((at: T) => sn.checkpoint(f)(at).square().sum())(t)),
};

/** The same callers without `compile` and loops: everything in one recording. */
const plainly: Readonly<Record<string, (f: (t: T) => T) => (t: T) => T>> = {
  compile: (f) => f,
  'compile of vmap': (f) => (t) => sn.stack([f(t), f(t.mul(2))]),
  vmap: (f) => (t) => sn.stack([f(t), f(t.mul(2))]),
  'a body': (f) => (t) => f(f(t)),
  'a body in compile': (f) => (t) => f(f(t)),
  'a branch in compile': (f) => f,
  'compile of grad': (f) => sn.grad((at: T) => f(at).square().sum()),
  'grad of compile': (f) => sn.grad((at: T) => f(at).square().sum()),
  'compile of jvp': (f) => (t) => sn.jvp((at: T) => f(at).square(), [t], [t]).tangent,
  'compile of vjp': (f) => (t) => sn.vjp((at: T) => f(at).square(), t).vjp(t)[0],
  'jacrev of compile': (f) => sn.jacrev(f),
  checkpoint: (f) => sn.grad((at: T) => f(at).square().sum()),
};

async function expectClose(found: T, expected: T): Promise<void> {
  const [a, b] = [(await found.data()) as Float32Array, (await expected.data()) as Float32Array];
  expect(found.shape).toEqual(expected.shape);
  a.forEach((value, i) => expect(value).toBeCloseTo(b[i]!, 3));
}

describe.each(Object.keys(ways))('what %s gives', (way) => {
  describe.each(Object.keys(callers))('called by %s', (caller) => {
    test.each(Object.keys(functions))('is the same function: %s', async (name) => {
      const linear = ways[way]!(functions[name]!, x0());
      const called = callers[caller]!(linear);
      const plain = plainly[caller]!(ways[way]!(functions[name]!, x0()));
      await expectClose(called(direction()), plain(direction()));
      // Again, with what has been computed, and at another direction.
      await expectClose(called(x0()), plain(x0()));
    });
  });

  test('inside one compiled function, and there in the body of a loop', async () => {
    const f = functions['layers']!;
    const inside = sn.compile((x: T, t: T) => {
      const linear = ways[way]!(f, x);
      return sn.foriLoop(0, 2, (_, at: T) => linear(at).mul(0.1), t);
    });
    const linear = ways[way]!(f, x0());
    const expected = linear(linear(direction()).mul(0.1)).mul(0.1);
    await expectClose(inside(x0(), direction()), expected);
  });

  test('carries gradients to the point at which it was made', async () => {
    const f = functions['layers']!;
    const through = (call: (fn: (t: T) => T) => (t: T) => T): ((x: T) => T) =>
      sn.grad((x: T) => call(ways[way]!(f, x))(direction()).square().sum());
    const expected = through((fn) => fn)(x0());
    await expectClose(through((fn) => sn.compile(fn))(x0()), expected);
    await expectClose(through((fn) => (t) => sn.foriLoop(0, 1, (_, at: T) => fn(at), t))(x0()), expected);
    await expectClose(
      sn.compile(through((fn) => (t) => sn.foriLoop(0, 1, (_, at: T) => fn(at), t)))(x0()),
      expected,
    );
    const leaf = x0().requiresGrad_();
    const linear = ways[way]!(f, leaf);
    sn.compile((t: T) => linear(t).square().sum())(direction()).backward();
    await expectClose(leaf.grad!, expected);
  });

  test('goes by the values that it was made at', async () => {
    const layer = new Linear(3, 3);
    const linear = ways[way]!((x) => layer.forward(x).tanh(), x0());
    const expected = await linear(direction()).data();
    const called = sn.compile(linear);
    await called(direction()).data();
    layer.weight.assign(layer.weight.mul(2));
    expect(await called(direction()).data()).toEqual(expected);
  });

  test('is refused outside of the compiled function that it belongs to', () => {
    let leaked: ((t: T) => T) | undefined;
    sn.compile((x: T) => {
      leaked = ways[way]!((at) => at.sin(), x);
      return leaked(x);
    })(x0());
    expect(() => leaked!(direction())).toThrow(
      new RegExp(`^${way}: a function that ${way} gave exists only inside`),
    );
    expect(() => sn.compile((t: T) => leaked!(t))(direction())).toThrow(/exists only inside/);
  });
});
