// Keys: the same key gives the same numbers on every device, eagerly, compiled and in layers, whatever the generator's state; new keys
// are words of Philox at counts of their own.

import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { philox4x32, randomWords } from '../../src/ir/interpret/random.ts';
import * as sn from '../../src/index.ts';
import { Dropout, Linear, Sequential } from '../../src/nn/index.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { everyDevice } from '../support/devices.ts';
import { read } from './ops/support.ts';

/** Draws of every kind, in an order that matters where they share a generator. */
function drawAll(): Tensor[] {
  const x = sn.full([5], 3);
  const weights = sn.tensor([1, 2, 3, 4]);
  return [
    sn.rand([7]),
    sn.randn([3, 3]),
    sn.uniform([4], { low: -1, high: 2 }),
    sn.normal([3], { mean: 1, std: 2 }),
    sn.randint(-3, 4, [9]),
    sn.randperm(6),
    sn.bernoulli(sn.full([8], 0.5)),
    sn.dropout(x, 0.25),
    sn.multinomial(weights, 2),
    sn.multinomial(weights, 5, { replacement: true }),
    sn.distributions.gamma(2, 1).sample([3]),
  ];
}

async function readAll(list: readonly Tensor[]): Promise<number[][]> {
  return await Promise.all(list.map(read));
}

describe.each(everyDevice)('on %s', (device) => {
  beforeEach(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));

  test('draws by a key are those of a generator with its seed, which stays where it is', async () => {
    sn.manualSeed(2n ** 40n + 7n);
    const expected = await readAll(drawAll());
    sn.manualSeed(1);
    const key = sn.key(2n ** 40n + 7n);
    const [first, again] = [sn.withKey(key, drawAll), sn.withKey(key, drawAll)];
    expect(sn.saveRngState()).toEqual({ seed: '1', counter: '0' });
    expect(await readAll(first)).toEqual(expected);
    expect(await readAll(again)).toEqual(expected);
  });

  test('a compiled function that takes a key is traced once and draws what the eager one does', async () => {
    const model = new Sequential(new Linear(4, 4), new Dropout(0.5));
    const forward = (key: Tensor, x: Tensor): Tensor =>
      sn.withKey(key, () => model.forward(x).add(sn.rand([2, 4])));
    const compiled = sn.compile(forward);
    const x = sn.ones([2, 4]);
    const before = sn.stats().traces;
    const seen = new Set<string>();
    for (const seed of [1, 2, 3]) {
      const found = await read(compiled(sn.key(seed), x));
      const expected = await read(forward(sn.key(seed), x));
      found.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 5));
      seen.add(String(found));
    }
    expect(sn.stats().traces - before).toBe(1);
    expect(seen.size).toBe(3);
  });

  test('new keys are words of Philox, far from the counts of draws', async () => {
    const seed: [number, number] = [42, 5];
    const key = sn.key(42n + (5n << 32n));
    expect(await read(key)).toEqual(seed);
    const words = [...randomWords(seed, [0, 0x8000_0000], 6)];
    expect(await read(sn.splitKey(key, 3))).toEqual(words);
    expect((await read(sn.splitKey(key))).length).toBe(4);
    const folded = philox4x32([9, 0x4000_0000, 0, 0], seed).slice(0, 2);
    expect(await read(sn.foldIn(key, 9))).toEqual([...folded]);
    expect(await read(sn.foldIn(key, sn.tensor([9], { dtype: 'i32' })))).toEqual([...folded]);
    expect(await read(sn.foldIn(key, sn.tensor(9n, { dtype: 'u64' })))).toEqual([...folded]);
  });

  test('a step number inside of a compiled function gives each step its key', async () => {
    const noise = sn.compile((key: Tensor, step: Tensor) => sn.rand([3], { key: sn.foldIn(key, step) }));
    const key = sn.key(3);
    for (const step of [0, 1, 70_000]) {
      const found = await read(noise(key, sn.tensor(step, { dtype: 'i32' })));
      expect(found).toEqual(await read(sn.rand([3], { key: sn.foldIn(key, step) })));
    }
  });
});

test('an option gives one draw its key', async () => {
  sn.setDevice('interpreter');
  const key = sn.key(11);
  const keyed = [
    (option: { key?: Tensor }) => sn.rand([5], option),
    (option: { key?: Tensor }) => sn.randn([5], option),
    (option: { key?: Tensor }) => sn.randLike(sn.ones([5]), option),
    (option: { key?: Tensor }) => sn.randnLike(sn.ones([5]), option),
    (option: { key?: Tensor }) => sn.uniform([5], { low: 1, high: 2, ...option }),
    (option: { key?: Tensor }) => sn.normal([5], { mean: 1, ...option }),
    (option: { key?: Tensor }) => sn.randint(0, 100, [5], option),
    (option: { key?: Tensor }) => sn.randperm(9, option),
    (option: { key?: Tensor }) => sn.bernoulli(sn.full([9], 0.5), option),
    (option: { key?: Tensor }) => sn.dropout(sn.ones([9]), 0.5, option),
    (option: { key?: Tensor }) => sn.multinomial(sn.ones([9]), 3, option),
  ];
  for (const draw of keyed) {
    sn.manualSeed(11);
    const expected = await read(draw({}));
    sn.manualSeed(4);
    expect(await read(draw({ key }))).toEqual(expected);
    expect(sn.saveRngState().counter).toBe('0');
  }
});

test('keys in keys, and a failing function, leave everything as it was', async () => {
  sn.setDevice('interpreter');
  const [outer, inner] = [sn.key(1), sn.key(2)];
  const [one, two, three] = sn.withKey(outer, () => [
    sn.rand([4]),
    sn.withKey(inner, () => sn.rand([4])),
    sn.rand([4]),
  ]) as [Tensor, Tensor, Tensor];
  expect(await read(one)).toEqual(await read(sn.rand([4], { key: outer })));
  expect(await read(two)).toEqual(await read(sn.rand([4], { key: inner })));
  const both = sn.withKey(outer, () => [sn.rand([4]), sn.rand([4])]);
  expect(await read(three)).toEqual(await read(both[1]!));
  sn.manualSeed(9);
  const fail = (): void => {
    sn.withKey(outer, () => {
      throw new Error('by the way');
    });
  };
  expect(fail).toThrow('by the way');
  const next = await read(sn.rand([4]));
  sn.manualSeed(9);
  expect(await read(sn.rand([4]))).toEqual(next);
});

test('gradients of what a key drew go by the same numbers', async () => {
  sn.setDevice('interpreter');
  const key = sn.key(5);
  const loss = (x: Tensor): Tensor => sn.withKey(key, () => x.mul(sn.rand([3])).sum());
  const gradient = sn.grad(loss)(sn.ones([3]));
  expect(await read(gradient)).toEqual(await read(sn.rand([3], { key })));
});

describe('what is refused', () => {
  test('what is no key', () => {
    for (const wrong of [sn.ones([2]), sn.zeros([3], { dtype: 'u32' }), sn.zeros([2, 2], { dtype: 'u32' })]) {
      expect(() => sn.splitKey(wrong)).toThrow(/splitKey: expects a key, u32 \[2\][^]*try: key\(seed\)/);
      expect(() => sn.withKey(wrong, () => 1)).toThrow(/withKey: expects a key/);
      expect(() => sn.rand([2], { key: wrong })).toThrow(/rand: expects a key/);
    }
    expect(() => sn.key(1.5)).toThrow(/key: expects an integer, got 1.5/);
    expect(() => sn.foldIn(sn.key(1), -1)).toThrow(/foldIn/);
    expect(() => sn.foldIn(sn.key(1), sn.ones([1]))).toThrow(/foldIn/);
    expect(() => sn.foldIn(sn.key(1), sn.zeros([2], { dtype: 'i32' }))).toThrow(/one element/);
    expect(() => sn.dropout(sn.ones([2]), 0.5, { seed: 1, key: sn.key(1) })).toThrow(/not by both/);
  });

  test('an asynchronous function', () => {
    expect(() => sn.withKey(sn.key(1), async () => await Promise.resolve(1))).toThrow(/withKey/);
  });

  test('a function compiled outside that draws by the generator', async () => {
    const noise = sn.compile((x: Tensor) => x.add(sn.rand([2])));
    expect(() => sn.withKey(sn.key(1), () => noise(sn.ones([2])))).toThrow(
      /^withKey: a compiled function draws by the generator[^]*try: compile\(\(key, …\) => withKey/,
    );
    const plain = sn.compile((x: Tensor) => x.add(1));
    expect(await read(sn.withKey(sn.key(1), () => plain(sn.ones([2]))))).toEqual([2, 2]);
  });
});

test('a key each, a key for all, and a key around a mapped function', async () => {
  sn.setDevice('interpreter');
  const keys = sn.splitKey(sn.key(7), 3);
  const draw = (key: Tensor): Tensor => sn.withKey(key, () => sn.rand([2]).add(sn.rand([2])));
  const each = await sn.vmap(draw)(keys).array();
  for (const i of [0, 1, 2]) expect(each[i as never]).toEqual(await draw(keys.at(i)).array());
  const shared = sn.key(8);
  const same = await sn
    .vmap((x: Tensor) => x.add(draw(shared)))(sn.zeros([3, 2]))
    .array();
  const one = await draw(shared).array();
  expect(same).toEqual([one, one, one]);
  const around = sn.withKey(shared, () => sn.vmap((x: Tensor) => x.add(sn.rand([4])))(sn.zeros([2, 4])));
  expect(await read(around)).toEqual(await read(sn.rand([8], { key: shared })));
});
