// Loops of mapped functions: `vmap` of a scan is a scan of all examples, whatever of it differs between them; and it has derivatives.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';

type Tensor = sn.Tensor;
const list = async (x: Tensor): Promise<number[]> => Array.from(await x.data(), Number);
const close = (found: readonly number[], expected: readonly number[]): void => {
  expect(found).toHaveLength(expected.length);
  found.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
};

/** A recurrence of a carry over inputs, with weights, a count that no example changes, and stacked results. */
function recur(h: Tensor, xs: Tensor, w: Tensor): readonly [Tensor, Tensor, Tensor] {
  const [{ state, count }, seen] = sn.scan(
    (carry: { state: Tensor; count: Tensor }, x: Tensor, i) => [
      { state: carry.state.matmul(w).add(x).tanh(), count: carry.count.add(i) },
      carry.state.mul(i.cast('f32')),
    ],
    { state: h, count: sn.tensor(0, { dtype: 'i32' }) },
    xs,
  );
  return [state, seen, count];
}

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));

  const [size, trips, width] = [3, 4, 2];
  sn.manualSeed(5);
  const [h, xs, w] = [
    sn.randn([size, width]),
    sn.randn([size, trips, width]),
    sn.randn([size, width, width]),
  ] as const;

  test.each([
    ['everything', [0, 0, 0]],
    ['the start', [0, null, null]],
    ['the inputs', [null, 0, null]],
    ['the weights', [null, null, 0]],
  ] as const)('mapped over %s it gives what calls one by one give', async (_, inAxes) => {
    const whole = [h, xs, w] as const;
    const pick = (example: number): [Tensor, Tensor, Tensor] =>
      whole.map((x, i) => x.at(inAxes[i] === null ? 0 : example)) as [Tensor, Tensor, Tensor];
    const given = whole.map((x, i) => (inAxes[i] === null ? x.at(0) : x)) as [Tensor, Tensor, Tensor];
    const found = sn.vmap(recur, { inAxes })(...given);
    const each = [0, 1, 2].map((example) => recur(...pick(example)));
    for (const [at, result] of found.entries())
      close(await list(result), await list(sn.stack(each.map((results) => results[at]!))));
  });

  test('derivatives backwards and forwards pass through, in either order', async () => {
    const loss = (a: Tensor, b: Tensor): Tensor => recur(a, b, w.at(0))[0].square().sum();
    const each = sn.vmap(sn.grad(loss))(h, xs);
    const single = [0, 1, 2].map((i) => sn.grad(loss)(h.at(i), xs.at(i)));
    close(await list(each), await list(sn.stack(single)));
    const all = sn.grad((a: Tensor) => sn.vmap(loss)(a, xs).sum())(h);
    close(await list(all), await list(sn.stack(single)));
    const { tangent } = sn.jvp((a: Tensor) => sn.vmap(loss)(a, xs), [h], [h]);
    close(await list(tangent), await list(sn.stack(single).mul(h).sum(1)));
  });
});

describe('what a mapped function says of a loop inside of it is said of the loop, and not of its body', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  const rows = (xs: Tensor, places: Tensor): Tensor =>
    sn.scan((carry: Tensor, x: Tensor) => [carry, sn.indexSelect(x, 0, places)], sn.zeros([]), xs)[1];
  const chosen = (x: Tensor, places: Tensor): Tensor =>
    sn.cond(
      x.at(0, 0).gt(0),
      () => sn.indexSelect(x, 0, places),
      () => x.slice(0, 0, 2),
      [],
    );
  const xs = sn.arange(24).cast('f32').add(1).reshape([2, 2, 3, 2]);

  test.each([
    ['an iteration', rows, xs],
    ['a branch', chosen, xs.select(1, 0)],
  ] as const)('places that %s reads at are checked for all examples', async (_, fn, x) => {
    const mapped = sn.vmap(fn, { inAxes: [0, null] });
    for (const called of [mapped, sn.compile(mapped)]) {
      const places = (last: number): Tensor => sn.tensor([1, last], { dtype: 'i32' });
      const each = await Promise.all([0, 1].map((i) => fn(x.at(i), places(0)).array()));
      expect(await called(x, places(0)).array()).toEqual(each);
      // Only the device knows these.
      const far = (last: number): Tensor => places(last).add(x.sum().mul(0).cast('i32'));
      expect(await called(x, far(0)).array()).toEqual(each);
      await expect((async () => called(x, far(7)).array())()).rejects.toThrow('index 7 is outside');
    }
  });

  test('draws are', () => {
    const noisy = (x: Tensor): Tensor => sn.foriLoop(0, 3, (_, carry: Tensor) => carry.add(sn.rand([2])), x);
    expect(() => sn.vmap(noisy)(sn.zeros([2, 2]))).toThrow('the body draws random numbers');
  });
});

test('a loop of a mapped function draws by keys', async () => {
  sn.setDevice('interpreter');
  const noisy = (x: Tensor, key: Tensor): Tensor =>
    sn.foriLoop(0, 3, (i, carry: Tensor) => carry.add(sn.rand([2], { key: sn.foldIn(key, i) })), x);
  const keys = sn.splitKey(sn.key(1), 2);
  const found = await sn
    .vmap(noisy)(sn.zeros([2, 2]), keys)
    .array();
  expect(found).toEqual([
    await noisy(sn.zeros([2]), keys.at(0)).array(),
    await noisy(sn.zeros([2]), keys.at(1)).array(),
  ]);
});
