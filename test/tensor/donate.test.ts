import { describe, expect, test } from 'vitest';
import { compile } from '../../src/tensor/compile-fn.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { add, fill, spyDevice, vec } from './support.ts';
import { record } from '../../src/tensor/record.ts';
import { reshape } from '../../src/ir/build.ts';

describe('memory that something else stands on is not written over', () => {
  test('two donated arguments that are one value', async () => {
    spyDevice();
    const step = compile((a: Tensor, b: Tensor) => [add(a, 1), add(b, 2)], { donate: [0, 1] });
    const [a, b] = step(fill(2, 5), fill(2, 5));
    expect(await a!.array()).toEqual([6, 6]);
    expect(await b!.array()).toEqual([7, 7]);
  });

  test('a donated argument that is given twice, once to keep', async () => {
    spyDevice();
    const x = vec(1, 2);
    const step = compile((a: Tensor, b: Tensor) => [add(a, 1), add(b, 10)], { donate: [0] });
    const [a, b] = step(x, x);
    expect(await a!.array()).toEqual([2, 3]);
    expect(await b!.array()).toEqual([11, 12]);
  });

  test('an argument that an earlier result is a view of', async () => {
    spyDevice();
    const x = vec(1, 2);
    const column = compile((a: Tensor) => record([a], (b, [node]) => reshape(b, node!, [2, 1])))(x);
    const moved = compile((a: Tensor) => add(a, 1), { donate: [0] })(x);
    expect(await moved.array()).toEqual([2, 3]);
    expect(await column.array()).toEqual([[1], [2]]);
  });

  test('and later calls donate again', async () => {
    const spy = spyDevice();
    const step = compile((a: Tensor, n: number, b: Tensor) => [add(a, n), add(b, 2)] as const, {
      donate: [0, 2],
    });
    let [a, b] = step(fill(2, 5), 1, fill(2, 5));
    await a.data();
    const before = spy.count.allocate;
    for (let i = 0; i < 5; i++) [a, b] = step(a, 1, b);
    expect(await a.array()).toEqual([11, 11]);
    expect(await b.array()).toEqual([17, 17]);
    expect(spy.count.allocate).toBe(before);
  });
});
