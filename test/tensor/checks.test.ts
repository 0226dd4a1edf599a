// Labels that are no class and indices outside their axis are errors by default, on every device and however they come: told by the
// next read with the operation, the integer, what is allowed, and the user's line. `setChecks(false)` leaves them out.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IndexError, TensorError } from '../../src/errors.ts';
import * as sn from '../../src/index.ts';
import type { DType, Tensor } from '../../src/index.ts';
import { boundsOf } from '../../src/tensor/range-checks.ts';
import { nodeOf } from '../../src/tensor/record.ts';
import { Embedding, Linear, Module } from '../../src/nn/index.ts';
import { AdamW } from '../../src/optim/index.ts';

const ints = (...values: readonly number[]): Tensor => sn.tensor(values, { dtype: 'i32' });
const table = (): Tensor => sn.tensor([1, 2, 3, 4, 5, 6], { shape: [3, 2] });

async function faultOf(read: () => Promise<unknown>): Promise<IndexError> {
  const error: unknown = await read().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(IndexError);
  return error as IndexError;
}

/** That only the device knows: computed from what it computed. */
const computed = (index: Tensor): Tensor => index.cast('f32').mul(1).cast('i32');

const dtypes: readonly DType[] = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'];

describe.each(['interpreter', 'wasm', 'webgpu:software'])('on %s', (device) => {
  beforeEach(() => sn.setDevice(device));
  afterEach(() => {
    sn.setChecks(true);
    sn.setDevice(undefined);
  });

  test('a label that is no class is an error of the loss', async () => {
    const error = await faultOf(() => sn.crossEntropy(sn.zeros([1, 3]), ints(7)).item());
    expect(error).toBeInstanceOf(TensorError);
    expect(error.code).toBe('E_INDEX');
    expect([error.op, error.index, error.allowed]).toEqual(['crossEntropy', 7, [0, 2]]);
    expect(error.message).toMatch(
      /^crossEntropy: label 7 is outside the 3 classes of f32\[1,3\]\n {2}at .*checks\.test\.ts/,
    );
    expect(error.message).toMatch(/try: 0 to 2 are inside; setChecks\(false\)/);
    expect(await sn.crossEntropy(sn.zeros([1, 3]), ints(2)).item()).toBeCloseTo(Math.log(3));
  });

  test('a row outside of an embedding is an error, known or computed', async () => {
    for (const index of [
      ints(0, 3),
      computed(ints(0, 3)),
      sn
        .argmax(ints(0, 5, 1), 0)
        .add(2)
        .reshape([1]),
    ]) {
      const error = await faultOf(() => sn.embedding(index, table()).data());
      expect([error.op, error.index]).toEqual(['embedding', 3]);
    }
    expect(await sn.embedding(computed(ints(2)), table()).array()).toEqual([[5, 6]]);
  });

  test('an ignored label is none', async () => {
    for (const form of [(x: Tensor): Tensor => x, computed]) {
      const loss = (...labels: number[]): Promise<number> =>
        sn
          .crossEntropy(sn.zeros([2, 3]), form(ints(...labels)), { ignoreIndex: -100 })
          .item() as Promise<number>;
      expect(await loss(-100, 1)).toBeCloseTo(Math.log(3));
      expect((await faultOf(() => loss(-100, -1))).index).toBe(-1);
    }
  });

  test.each(dtypes)('integers of %s', async (dtype) => {
    const wide = dtype === 'i64' || dtype === 'u64';
    const at = (value: number): Tensor => sn.tensor([wide ? BigInt(value) : value] as number[], { dtype });
    const pick = sn.compile((index: Tensor) => table().reshape([6]).take(index.add(index).floorDivide(2)));
    for (const read of [
      (i: Tensor): Tensor => table().reshape([6]).take(i),
      (i: Tensor): Tensor => pick(i),
    ]) {
      for (const good of dtype.startsWith('u') ? [0, 5] : [0, 5, -6])
        expect((await read(at(good)).data()).length).toBe(1);
      for (const bad of dtype.startsWith('u') ? [6, 60] : [6, 60, -7, -60])
        expect(Number((await faultOf(() => read(at(bad)).data())).index)).toBe(bad);
    }
  });

  test('what a compiled function is called with is looked at in each call, and no call is forgotten', async () => {
    const rows = sn.compile((index: Tensor) => sn.embedding(index, table()).sum());
    expect(await rows(ints(0, 2)).item()).toBe(14);
    expect((await faultOf(() => rows(ints(0, 9)).item())).index).toBe(9);
    const inner = sn.compile((index: Tensor) => sn.embedding(computed(index), table()).sum());
    expect(await inner(ints(0, 2)).item()).toBe(14);
    // The call in between is wrong, the last one is right.
    inner(ints(0, 9));
    inner(ints(0, 1));
    const error = await faultOf(() => inner(ints(1, 1)).item());
    expect([error.index, error.op]).toEqual([9, 'embedding']);
    expect(error.message).toMatch(/checks\.test\.ts/);
    expect(await inner(ints(1, 2)).item()).toBe(18);
  });

  test('captured indices, numbers and sizes that vary', async () => {
    const captured = ints(0, 1);
    const sum = sn.compile(() => sn.embedding(captured, table()).sum());
    expect(await sum().item()).toBe(10);
    captured.assign(ints(0, 4));
    expect((await faultOf(() => sum().item())).index).toBe(4);
    const part = sn.compile((at: Tensor) => table().take(at.cast('i32')));
    expect(await part(1).item()).toBe(2);
    expect((await faultOf(() => part(6).item())).index).toBe(6);
    const many = sn.compile((index: Tensor) => sn.embedding(computed(index), table()).sum(), {
      dims: [[sn.dim('n', { max: 16 })]],
    });
    for (const n of [1, 3, 4, 7]) expect(await many(sn.zeros([n], { dtype: 'i32' })).item()).toBe(3 * n);
    expect((await faultOf(() => many(ints(0, 1, 2, 3, 0)).item())).index).toBe(3);
  });

  test('through gradients, of functions that are compiled too', async () => {
    const loss = (weight: Tensor, index: Tensor): Tensor => sn.embedding(computed(index), weight).sum();
    const gradient = sn.grad(loss);
    for (const fn of [gradient, sn.compile(gradient)]) {
      expect(await (fn(table(), ints(0, 2)) as Tensor).array()).toEqual([[1, 1], [0, 0], [1, 1]]); // prettier-ignore
      expect((await faultOf(() => (fn(table(), ints(0, 5)) as Tensor).data())).index).toBe(5);
    }
    const weight = table().requiresGrad_();
    sn.embedding(ints(-1), weight).sum().backward();
    expect((await faultOf(() => weight.grad!.data())).index).toBe(-1);
  });

  test('examples of vmap name their place', async () => {
    const rows = sn.vmap((index: Tensor) => sn.embedding(index, table()));
    expect((await rows(ints(0, 1, 2)).data()).length).toBe(6);
    for (const fn of [rows, sn.compile(rows)])
      expect((await faultOf(() => fn(ints(0, 8, 2)).data())).message).toMatch(
        /^embedding: example 1: index 8/,
      );
  });

  test('turns of loops and the branch that is taken', async () => {
    const pick = (index: Tensor): Tensor => sn.embedding(index.reshape([1]), table()).sum();
    const scanned = (all: Tensor): Tensor =>
      sn.scan((sum: Tensor, i: Tensor) => [sum.add(pick(i)), sum], sn.tensor(0), all)[0];
    const chosen = (on: Tensor, index: Tensor): Tensor =>
      sn.cond(on, (i: Tensor) => pick(i), (i: Tensor) => i.cast('f32').sum(), index) as Tensor; // prettier-ignore
    const nested = (all: Tensor): Tensor =>
      sn.scan(
        (sum: Tensor, i: Tensor) => [sum.add(chosen(i.gt(0).reshape([]), i)), sum],
        sn.tensor(0),
        all,
      )[0];
    for (const [scan, choose, nest] of [
      [scanned, chosen, nested],
      [sn.compile(scanned), sn.compile(chosen), sn.compile(nested)],
    ] as const) {
      expect(await scan(ints(0, 1, 2)).item()).toBe(21);
      expect((await faultOf(() => scan(ints(0, 4, 2)).item())).index).toBe(4);
      expect(await choose(sn.tensor(false), ints(9)).item()).toBe(9);
      expect(await choose(sn.tensor(true), ints(2)).item()).toBe(11);
      expect((await faultOf(() => choose(sn.tensor(true), ints(9)).item())).index).toBe(9);
      expect(await nest(ints(-5, 1, 2)).item()).toBe(13);
      expect((await faultOf(() => nest(ints(1, 2, 3)).item())).index).toBe(3);
    }
  });

  test('without checks reading outside gives 0', async () => {
    sn.setChecks(false);
    expect(await sn.embedding(ints(3), table()).array()).toEqual([[0, 0]]);
    expect(await sn.embedding(computed(ints(-1)), table()).array()).toEqual([[0, 0]]);
  });

  test('a training loop that never looks holds a bounded number of facts', async () => {
    const index = ints(0, 1);
    for (let i = 0; i < 600; i++) sn.embedding(computed(index).add(i % 2), table());
    expect(await sn.tensor(1).item()).toBe(1);
    for (let i = 0; i < 600; i++) sn.embedding(computed(index).add(i === 5 ? 2 : 0), table());
    expect((await faultOf(() => sn.tensor(1).item())).index).toBe(3);
  });

  test('a classifier does not train on wrong labels', async () => {
    class Words extends Module {
      rows = new Embedding(4, 3);
      head = new Linear(3, 2);
      forward(words: Tensor): Tensor {
        return this.head.forward(this.rows.forward(words).mean([1]));
      }
    }
    const model = new Words();
    const optimizer = new AdamW(model, { lr: 0.01 });
    const losses = sn.compile((words: Tensor, labels: Tensor) => {
      optimizer.zeroGrad();
      const loss = sn.crossEntropy(model.forward(words), labels);
      loss.backward();
      return loss;
    });
    const step = (words: Tensor, labels: Tensor): Tensor => {
      const loss = losses(words, labels);
      optimizer.step();
      return loss;
    };
    const words = ints(0, 1, 2, 3).reshape([2, 2]);
    expect(Number.isFinite(await step(words, ints(0, 1)).item())).toBe(true);
    expect((await faultOf(() => step(words, ints(0, 2)).item())).index).toBe(2);
    expect((await faultOf(() => step(words.add(1), ints(0, 1)).item())).index).toBe(4);
  });
});

test('bounds of integers follow from the operations that made them', () => {
  const unknown = ints(1, 2, 3);
  const of = (x: Tensor): readonly [number, number] => {
    const { low, high } = boundsOf(nodeOf(x));
    return [low, high];
  };
  expect(of(sn.arange(5))).toEqual([0, 4]);
  expect(of(sn.argmax(sn.ones([2, 7]), 1))).toEqual([0, 6]);
  expect(of(unknown.clamp(0, 9))).toEqual([0, 9]);
  expect(of(unknown.clamp(0, 9).mul(-2).add(1))).toEqual([-17, 1]);
  expect(of(sn.where(unknown.gt(0), sn.full([3], 4, { dtype: 'i32' }), 6))).toEqual([4, 6]);
  expect(of(unknown)).toEqual([-(2 ** 31), 2 ** 31 - 1]);
  // A sum that may wrap around says nothing.
  expect(of(unknown.cast('u8').add(sn.tensor([1], { dtype: 'u8' })))).toEqual([0, 255]);
  let doubled = unknown.clamp(0, 1);
  for (let i = 0; i < 60; i++) doubled = doubled.add(doubled);
  expect(of(doubled)).toEqual([-(2 ** 31), 2 ** 31 - 1]);
});
