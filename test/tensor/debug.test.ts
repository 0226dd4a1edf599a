// Indices outside their axis, labels that are no class, weights that are none: told at the next read with `setDebug(true)`, always on
// the interpreter, by the operation's name and the user's line; without it devices keep their documented meaning.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SinterError, userLocation, type ErrorCode } from '../../src/errors.ts';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';

const ints = (...values: readonly number[]): Tensor => sn.tensor(values, { dtype: 'i32' });
const x = (): Tensor => sn.tensor([1, 2, 3, 4, 5, 6], { shape: [2, 3] });
const two = (value: number): Tensor => ints(0, value).reshape([1, 2]);

type Case = readonly [name: string, record: (bad: number) => Tensor, code: ErrorCode, message: RegExp];

/** Each is right for 0 and wrong for 7. */
const cases: readonly Case[] = [
  ['gather', (i) => sn.gather(x(), 1, two(i)), 'E_INDEX', /^gather: index 7 is outside axis 1 of f32\[2,3\]/],
  [
    'takeAlongAxis',
    (i) => sn.takeAlongAxis(x(), two(i), 1),
    'E_INDEX',
    /^takeAlongAxis: index 7 is outside axis 1 of f32\[2,3\]/,
  ],
  [
    'indexSelect',
    (i) => sn.indexSelect(x(), 0, ints(i)),
    'E_INDEX',
    /^indexSelect: index 7 is outside axis 0/,
  ],
  ['take', (i) => sn.take(x(), ints(i)), 'E_INDEX', /^take: index 7 is outside the 6 elements of f32\[2,3\]/],
  ['embedding', (i) => sn.embedding(ints(i), x()), 'E_INDEX', /^embedding: index 7 is outside the 2 rows/],
  ['at', (i) => sn.at(x(), ints(i)), 'E_INDEX', /^at: index 7 is outside an axis of 2 of f32\[2,3\]/],
  ['scatter', (i) => sn.scatter(x(), 1, two(i), 1), 'E_INDEX', /^scatter: index 7 is outside axis 1/],
  [
    'scatterAdd',
    (i) => sn.scatterAdd(x(), 1, two(i), 1),
    'E_INDEX',
    /^scatterAdd: index 7 is outside axis 1/,
  ],
  [
    'scatterReduce',
    (i) => sn.scatterReduce(x(), 1, two(i), 1, 'amax'),
    'E_INDEX',
    /^scatterReduce: index 7 is outside axis 1/,
  ],
  [
    'indexAdd',
    (i) => sn.indexAdd(x(), 0, ints(i), sn.ones([1, 3])),
    'E_INDEX',
    /^indexAdd: index 7 is outside axis 0/,
  ],
  [
    'indexCopy',
    (i) => sn.indexCopy(x(), 0, ints(i), sn.ones([1, 3])),
    'E_INDEX',
    /^indexCopy: index 7 is outside axis 0/,
  ],
  ['oneHot', (i) => sn.oneHot(ints(i), 3), 'E_INDEX', /^oneHot: class 7 is outside the 3 classes/],
  ['bceLoss', (i) => sn.bceLoss(sn.tensor([0.5, i]), 0), 'E_VALUE', /^bceLoss: x must be in \[0, 1\]: 7/],
  [
    'bceLoss, its target',
    (i) => sn.bceLoss(sn.tensor([0.5]), sn.tensor([i])),
    'E_VALUE',
    /^bceLoss: the target must be in \[0, 1\]: 7/,
  ],
  [
    'segmentSum',
    (i) => sn.segmentSum(x(), ints(0, i), 2),
    'E_INDEX',
    /^segmentSum: segment id 7 is outside the 2 segments/,
  ],
  [
    'crossEntropy',
    (i) => sn.crossEntropy(x(), ints(0, i)),
    'E_INDEX',
    /^crossEntropy: label 7 is outside the 3 classes of f32\[2,3\]/,
  ],
  ['nllLoss', (i) => sn.nllLoss(x(), ints(0, i)), 'E_INDEX', /^nllLoss: label 7 is outside the 3 classes/],
  [
    'multinomial',
    (i) => sn.multinomial(sn.tensor([1, 1 - i]).add(0.5), 1),
    'E_VALUE',
    /^multinomial: weights must not be negative or NaN: -5.5/,
  ],
  [
    'segmentReduce',
    (i) => sn.segmentReduce(x(), 'sum', { lengths: ints(2, i) }),
    'E_VALUE',
    /^segmentReduce: lengths add up to 9, of 2 on axis 0/,
  ],
  [
    'bernoulli',
    (i) => sn.bernoulli(sn.tensor([0.5, i])),
    'E_VALUE',
    /^bernoulli: probabilities must be in \[0, 1\]: 7/,
  ],
];

async function errorOf(read: () => Promise<unknown>): Promise<SinterError> {
  const error: unknown = await read().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SinterError);
  return error as SinterError;
}

describe.each(['interpreter', 'wasm', 'webgpu:software'])('on %s', (device) => {
  beforeEach(() => {
    sn.setDevice(device);
    sn.setDebug(device !== 'interpreter');
  });
  afterEach(() => {
    sn.setDebug(false);
    sn.setDevice(undefined);
  });

  test.each(cases)('%s', async (_, record, code, message) => {
    await record(0).data();
    const wrong = record(7);
    const error = await errorOf(() => wrong.data());
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/debug\.test\.ts:\d+/);
    expect(error.code).toBe(code);
    // Told once, and the next computation is as ever.
    expect(await sn.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
  });

  test('the next read tells, whatever it reads', async () => {
    sn.take(x(), ints(-9));
    const error = await errorOf(() => sn.tensor([1]).add(1).item());
    expect(error.message).toMatch(/^take: index -9 is outside/);
  });

  test('each call of a compiled function is watched', async () => {
    const pick = sn.compile((table: Tensor, places: Tensor) => table.take(places).mul(2));
    expect(await pick(x(), ints(1, 2)).array()).toEqual([4, 6]);
    const wrong = pick(x(), ints(1, 6));
    expect((await errorOf(() => wrong.data())).message).toMatch(/^take: index 6 is outside the 6 elements/);
    expect(await pick(x(), ints(5, 0)).array()).toEqual([12, 2]);
  });

  test('gradients are watched as they are recorded, and are right', async () => {
    const loss = (logits: Tensor, labels: Tensor): Tensor => sn.crossEntropy(logits, labels);
    const step = sn.compile((logits: Tensor, labels: Tensor) => sn.grad(loss)(logits, labels));
    expect((await step(x(), ints(0, 2)).data()).length).toBe(6);
    const wrong = step(x(), ints(0, 99));
    expect((await errorOf(() => wrong.data())).message).toMatch(/^crossEntropy: label 99 is outside the 3/);
  });

  test('what is right is not told', async () => {
    expect(await sn.at(x(), ints(-1), ints(-3)).array()).toEqual([4]);
    const ignored = sn.crossEntropy(x(), ints(0, -100), { ignoreIndex: -100 });
    expect(Number.isFinite(await ignored.item())).toBe(true);
    expect((await sn.take(x(), ints(0).slice(0, 0, 0)).data()).length).toBe(0);
    expect((await errorOf(() => sn.at(x(), ints(-3)).data())).message).toMatch(/^at: index -3 is outside/);
  });
});

test('without checks a device reads 0 outside an axis, and drops what is written there', async () => {
  sn.setDevice('wasm');
  sn.setChecks(false);
  expect(await sn.take(x(), ints(6, 0)).array()).toEqual([0, 1]);
  expect(await sn.scatterAdd(x(), 0, ints(7).reshape([1, 1]), 1).array()).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  sn.setChecks(true);
  sn.setDevice(undefined);
});

test('a compiled function is traced anew when watching begins or ends', async () => {
  sn.setDevice('wasm');
  sn.setChecks(false);
  const pick = sn.compile((table: Tensor, places: Tensor) => table.take(places));
  expect(await pick(x(), ints(6)).array()).toEqual([0]);
  for (const [on, off] of [
    [() => sn.setDebug(true), () => sn.setDebug(false)],
    [() => sn.setChecks(true), () => sn.setChecks(false)],
  ] as const) {
    on();
    const wrong = pick(x(), ints(6));
    await errorOf(() => wrong.data());
    off();
    expect(await pick(x(), ints(6)).array()).toEqual([0]);
  }
  sn.setChecks(true);
  sn.setDevice(undefined);
});

test('an error that is made behind a wait does not name a line of Node as its place', async () => {
  const place = await Promise.resolve(undefined).then(userLocation);
  expect(place).not.toMatch(/task_queues|node:/);
});
