import { describe, expect, test } from 'vitest';
import { setRetainedMemoryLimit } from '../../src/tensor/handle/memory.ts';
import { fromHost } from '../../src/tensor/record.ts';
import { grad, gradients, noGrad, valueAndGrad, vjp } from '../../src/tensor/derivative/transform.ts';
import { customVjp } from '../../src/tensor/derivative/custom.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { add, exp, fill, less, mul, spyDevice, sub, sum, vec } from './support.ts';

const cube = (x: Tensor): Tensor => sum(mul(mul(x, x), x));

describe('backward', () => {
  test('fills the gradient of every leaf and nothing else', async () => {
    spyDevice();
    const [x, w] = [vec(1, 2), vec(3, 4).requiresGrad_()];
    const y = mul(x, w);
    sum(mul(y, y)).backward();
    expect(await w.grad!.array()).toEqual([6, 32]);
    expect(x.grad).toBeUndefined();
    expect(y.grad).toBeUndefined();
    expect(w.grad).toBe(w.grad);
    expect(w.grad!.requiresGrad).toBe(false);
  });

  test('adds to a gradient that is there, until zeroGrad', async () => {
    spyDevice();
    const w = vec(1, 2).requiresGrad_();
    sum(mul(w, 3)).backward();
    sum(mul(w, w)).backward();
    expect(await w.grad!.array()).toEqual([5, 7]);
    w.zeroGrad();
    expect(w.grad).toBeUndefined();
    sum(w).backward();
    expect(await w.grad!.array()).toEqual([1, 1]);
  });

  test('works after the loss has been read', async () => {
    spyDevice();
    const w = vec(1, 2).requiresGrad_();
    const loss = cube(w);
    expect(await loss.item()).toBe(9);
    loss.backward();
    expect(await w.grad!.array()).toEqual([3, 12]);
  });

  test('works twice with retainGraph, and not without', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    const loss = cube(w);
    loss.backward(undefined, { retainGraph: true });
    await loss.item();
    loss.backward();
    expect(await w.grad!.array()).toEqual([24]);
    expect(() => loss.backward()).toThrow('was released by an earlier backward');
  });

  test('a released history is not taken for a constant', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    const first = cube(w);
    first.backward();
    await first.item();
    expect(() => add(first, cube(w)).backward()).toThrow('the history of f32[] was released');
  });

  test('a value that was cut off from its released history is a constant, or a leaf', async () => {
    spyDevice();
    const [w, v] = [vec(2).requiresGrad_(), vec(1, 2).requiresGrad_()];
    const loss = cube(w);
    loss.backward();
    await loss.item();
    loss.requiresGrad_(false);
    sum(mul(v, loss)).backward();
    expect(await v.grad!.array()).toEqual([8, 8]);
    loss.requiresGrad_();
    mul(loss, 3).backward();
    loss.backward();
    expect(await loss.grad!.item()).toBe(4);
  });

  test('a seed weighs the elements', async () => {
    spyDevice();
    const w = vec(1, 2).requiresGrad_();
    mul(w, w).backward(vec(1, 10));
    expect(await w.grad!.array()).toEqual([2, 40]);
  });

  test.each([
    [
      'several elements need a seed',
      () => mul(vec(1, 2).requiresGrad_(), 2),
      undefined,
      'expects one element, or a seed: f32[2]',
    ],
    [
      'a seed is like the value',
      () => mul(vec(1, 2).requiresGrad_(), 2),
      vec(1),
      'the seed f32[1] is not like the value f32[2]',
    ],
    [
      'without a leaf there is nothing to do',
      () => sum(vec(1)),
      undefined,
      'does not depend on any tensor that requires gradients',
    ],
  ])('%s', (_, make, seed, message) => {
    spyDevice();
    expect(() => make().backward(seed)).toThrow(message);
  });

  test('only floats can be leaves', () => {
    expect(() => fromHost(Int32Array.of(1), [1], 'i32').requiresGrad_()).toThrow(
      'only floats have gradients: i32[1]',
    );
  });

  test('equal leaves are different leaves', async () => {
    spyDevice();
    const [p, q] = [fill(2, 1).requiresGrad_(), fill(2, 1).requiresGrad_()];
    sum(mul(p, add(q, 1))).backward();
    expect(await p.grad!.array()).toEqual([2, 2]);
    expect(await q.grad!.array()).toEqual([1, 1]);
  });

  test('gradients do not flow into the history of a leaf', async () => {
    spyDevice();
    const w = vec(1).requiresGrad_();
    const v = mul(w, 2).detach().requiresGrad_();
    sum(mul(v, w)).backward();
    expect([await v.grad!.array(), await w.grad!.array()]).toEqual([[1], [2]]);
  });

  test('comparisons end the history', () => {
    const w = vec(1).requiresGrad_();
    expect(less(w, 2).requiresGrad).toBe(false);
    expect(mul(w, 2).requiresGrad).toBe(true);
  });
});

describe('cutting history', () => {
  test('noGrad and detach give values without history', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    const frozen = noGrad(() => mul(w, w));
    expect(frozen.requiresGrad).toBe(false);
    sum(mul(mul(w, w).detach(), mul(frozen, w))).backward();
    expect(await w.grad!.array()).toEqual([16]);
  });

  test('noGrad is left when the function throws', () => {
    expect(() =>
      noGrad(() => {
        throw new Error('out');
      }),
    ).toThrow('out');
    expect(mul(vec(1).requiresGrad_(), 2).requiresGrad).toBe(true);
  });

  test('a gradient used in a loss is a constant', async () => {
    spyDevice();
    const w = vec(3).requiresGrad_();
    cube(w).backward();
    const g = w.grad!;
    w.zeroGrad();
    sum(mul(g, w)).backward();
    expect(await w.grad!.array()).toEqual([27]);
  });

  test('requiresGrad_(false) makes a constant of a leaf', () => {
    const w = vec(1).requiresGrad_();
    w.requiresGrad_(false);
    expect(mul(w, 2).requiresGrad).toBe(false);
  });
});

describe('assign', () => {
  test('readers recorded before see the old value, those after the new one', async () => {
    spyDevice();
    const x = vec(1, 2);
    const before = mul(x, 10);
    x.assign(add(x, 1));
    const after = mul(x, 10);
    expect(await after.array()).toEqual([20, 30]);
    expect(await before.array()).toEqual([10, 20]);
    expect(x.version).toBe(1);
  });

  test('backward uses the values of its own time', async () => {
    spyDevice();
    const w = vec(1, 2).requiresGrad_();
    const loss = cube(w);
    w.assign(vec(10, 10));
    loss.backward();
    expect(await w.grad!.array()).toEqual([3, 12]);
    w.zeroGrad();
    cube(w).backward();
    expect(await w.grad!.array()).toEqual([300, 300]);
    expect(w.requiresGrad).toBe(true);
  });

  test('a training loop descends, evaluated at every step or at none', async () => {
    const train = async (flush: boolean): Promise<unknown> => {
      spyDevice();
      const w = vec(1, -2).requiresGrad_();
      for (let i = 0; i < 10; i++) {
        const loss = sum(mul(w, w));
        w.zeroGrad();
        loss.backward();
        w.assign(noGrad(() => sub(w, mul(w.grad!, 0.25))));
        if (flush) await loss.item();
      }
      return w.array();
    };
    expect(await train(true)).toEqual([2 ** -10, -2 * 2 ** -10]);
    expect(await train(false)).toEqual([2 ** -10, -2 * 2 ** -10]);
  });

  test('a non-leaf takes over the history of the value', async () => {
    spyDevice();
    const w = vec(3).requiresGrad_();
    const state = vec(0);
    state.assign(mul(w, w));
    expect(state.requiresGrad).toBe(true);
    sum(state).backward();
    expect(await w.grad!.array()).toEqual([6]);
  });

  test('types must agree', () => {
    expect(() => vec(1, 2).assign(vec(1))).toThrow('assign: f32[2] cannot take f32[1]');
  });

  test('a gradient that needs a value given up since is an error that names it', async () => {
    spyDevice();
    const before = setRetainedMemoryLimit(0);
    try {
      const w = vec(1, 2).requiresGrad_();
      const loss = cube(w);
      await loss.item();
      w.assign(add(w, 1).detach());
      await w.data();
      expect(() => loss.backward()).toThrow(
        /the gradient needs the value of t\d+ f32\[2\], which was overwritten/,
      );
    } finally {
      setRetainedMemoryLimit(before);
    }
  });

  test('a late read of what an overwritten value was needed for is an error, never a wrong number', async () => {
    spyDevice();
    const before = setRetainedMemoryLimit(0);
    try {
      const w = vec(1, 2);
      const h = exp(w);
      await sum(h).item();
      w.assign(add(w, 1));
      await w.data();
      await expect(h.data()).rejects.toThrow(
        /f32\[2\] was computed from t\d+ f32\[2\], which was overwritten/,
      );
    } finally {
      setRetainedMemoryLimit(before);
    }
  });

  test('within the budget a late read gets the old value', async () => {
    spyDevice();
    const w = vec(1, 2);
    const h = mul(w, 3);
    await sum(h).item();
    w.assign(add(w, 1));
    await w.data();
    expect(await h.array()).toEqual([3, 6]);
  });
});

describe('functional derivatives', () => {
  test('grad gives a tree like the argument', async () => {
    spyDevice();
    const loss = (p: { w: Tensor; b: readonly Tensor[]; name: string }): Tensor =>
      sum(mul(p.w, exp(p.b[0]!)));
    const g = grad(loss)({ w: vec(2), b: [vec(0)], name: 'layer' });
    expect(await g.w.array()).toEqual([1]);
    expect(await g.b[0]!.array()).toEqual([2]);
    expect(g.name).toBe('layer');
    expect(g.w.requiresGrad).toBe(false);
  });

  test('argnums chooses arguments', async () => {
    spyDevice();
    const f = (x: Tensor, y: Tensor): Tensor => sum(mul(mul(x, x), y));
    const second = grad(f, { argnums: 1 })(vec(3), vec(5)) as Tensor;
    expect(await second.array()).toEqual([9]);
    const both = grad(f, { argnums: [0, 1] })(vec(3), vec(5)) as unknown as Tensor[];
    expect(await Promise.all(both.map((g) => g.array()))).toEqual([[30], [9]]);
    expect(() => grad(f, { argnums: 2 })(vec(3), vec(5))).toThrow('there is no argument 2');
  });

  test('the value comes along, computed in the same run', async () => {
    const spy = spyDevice();
    const { value, grad: g } = valueAndGrad(cube)(vec(1, 2));
    expect([await value.item(), await g.array()]).toEqual([9, [3, 12]]);
    expect(spy.count.run).toBe(1);
  });

  test('derivatives nest', async () => {
    spyDevice();
    const third = grad((x: Tensor) => sum(grad((y: Tensor) => sum(grad(cube)(y)))(x)));
    expect(await third(vec(1, 2)).array()).toEqual([6, 6]);
  });

  test('captured tensors are constants, even those of an outer derivative at the same point', async () => {
    spyDevice();
    // d/dx x·(d/dy y·x at y=x) = d/dx x·x = 2x
    const f = (x: Tensor): Tensor => sum(mul(x, grad((y: Tensor) => sum(mul(y, x)))(x)));
    expect(await grad(f)(vec(1, 2)).array()).toEqual([2, 4]);
    const a = vec(3);
    const g = (x: Tensor): Tensor => sum(mul(x, grad((y: Tensor) => sum(mul(mul(y, y), x)))(a)));
    // d/dx x·(2a·x) = 4a·x
    expect(await grad(g)(a).array()).toEqual([36]);
    expect(await grad((x: Tensor) => sum(mul(x, a)))(a).array()).toEqual([3]);
  });

  test('an argument without influence has gradient zero', async () => {
    spyDevice();
    expect(
      await grad((x: Tensor, y: Tensor) => sum(add(y, mul(x.detach(), 2))))(vec(1, 2), vec(1, 2)).array(),
    ).toEqual([0, 0]);
  });

  test('an integer argument is an error that says where it is', () => {
    const ids = fromHost(Int32Array.of(1), [1], 'i32');
    expect(() => grad((p: { ids: Tensor }) => sum(p.ids))({ ids })).toThrow(
      'grad: argument 0 at .ids is i32[1]',
    );
  });

  test('grad works inside noGrad, and its result has no history there', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    const g = noGrad(() => grad(cube)(w));
    expect(g.requiresGrad).toBe(false);
    expect(await g.array()).toEqual([12]);
    expect(grad(cube)(w).requiresGrad).toBe(true);
  });

  test('backward goes through a functional gradient', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    sum(grad(cube)(w)).backward();
    expect(await w.grad!.array()).toEqual([12]);
  });

  test('vjp pulls cotangents back through trees', async () => {
    spyDevice();
    const { value, vjp: pull } = vjp(
      (x: Tensor, y: Tensor) => ({ product: mul(x, y), first: x }),
      vec(2),
      vec(3),
    );
    expect(await value.product.array()).toEqual([6]);
    const [dx, dy] = pull({ product: vec(10), first: vec(1) });
    expect([await dx.array(), await dy.array()]).toEqual([[31], [20]]);
    expect(() => pull({ product: vec(10) } as never)).toThrow('the trees differ in structure');
  });

  test('gradients are taken with respect to any tensor of the history', async () => {
    spyDevice();
    const w = vec(2).requiresGrad_();
    const h = mul(w, w);
    const y = mul(h, h);
    const [dh, dw] = gradients(sum(y), [h, w]);
    expect([await dh!.array(), await dw!.array()]).toEqual([[8], [32]]);
    expect(w.grad).toBeUndefined();
    const [second] = gradients(sum(gradients(sum(y), [w])[0]!), [w]);
    expect(await second!.array()).toEqual([48]);
    expect(() => gradients(sum(y), [vec(1)])).toThrow('f32[1] does not require gradients');
  });
});

describe('customVjp', () => {
  const doubled = customVjp(
    (x) => mul(x, x),
    (g, [x]) => [mul(g, exp(x!))],
  );

  test('the rule replaces the derivative, not the value', async () => {
    spyDevice();
    const x = vec(0).requiresGrad_();
    const y = doubled(x);
    expect(await y.array()).toEqual([0]);
    sum(y).backward();
    expect(await x.grad!.array()).toEqual([1]);
  });

  test('its derivative is that of the rule', async () => {
    spyDevice();
    const second = grad((x: Tensor) => sum(grad((y: Tensor) => sum(doubled(y)))(x)));
    expect(await second(vec(0, 1)).array()).toEqual([1, Math.fround(Math.E)]);
  });

  test('undefined means no gradient', async () => {
    spyDevice();
    const first = customVjp(
      (x, y) => add(x!, y!),
      (g) => [mul(g, 2), undefined],
    );
    const [x, y] = [vec(1).requiresGrad_(), vec(1).requiresGrad_()];
    sum(first(x, y)).backward();
    expect(await x.grad!.array()).toEqual([2]);
    expect(y.grad).toBeUndefined();
  });
});
