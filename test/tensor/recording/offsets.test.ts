// Offsets of slices and paddings that differ from step to step become run-time scalars: a loop over batches compiles as often as one
// over the same batch, and computes what each step says, forwards and backwards.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear, Sequential } from '../../../src/nn/index.ts';
import { Adam } from '../../../src/optim/index.ts';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { device, synchronize } from '../../../src/tensor/device.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { everyDevice } from '../../support/devices.ts';
import { spyDevice } from '../support.ts';

afterAll(async () => {
  sn.setDevice('webgpu:software');
  await synchronize();
  (await device()).destroy();
});

const counted = (shape: readonly number[], dtype: sn.DType = 'f32'): sn.Tensor =>
  sn.arange(shape.reduce((a, b) => a * b, 1)).reshape(shape).cast(dtype); // prettier-ignore

/** Programs compiled by each run of `fn`. */
async function compiles(count: number, fn: (i: number) => Promise<unknown>): Promise<number[]> {
  const made: number[] = [];
  for (let i = 0; i < count; i++) {
    const before = compileCount();
    await fn(i);
    made.push(compileCount() - before);
  }
  return made;
}

describe.each(everyDevice)('on %s', (name) => {
  test('a train step over a moving batch compiles twice, and loses as one over copies does', async () => {
    clearCache();
    sn.setDevice(name);
    const [X, Y] = [sn.randn([64, 3]), sn.randint(0, 4, [64])];
    const [xs, ys] = [(await X.array()) as number[][], (await Y.array()) as number[]];
    const losses: number[][] = [];
    const made: number[][] = [];
    for (const copies of [true, false]) {
      sn.manualSeed(1);
      const model = new Sequential(new Linear(3, 8), sn.relu, new Linear(8, 4));
      const opt = new Adam(model);
      const told: number[] = [];
      const programs = await compiles(7, async (i) => {
        const [from, to] = [8 * i, 8 * i + 8];
        const x = copies ? sn.tensor(xs.slice(from, to)) : X.slice(0, from, to);
        const y = copies ? sn.tensor(ys.slice(from, to), { dtype: 'i32' }) : Y.narrow(0, from, 8);
        const loss = sn.crossEntropy(model.forward(x), y);
        loss.backward();
        opt.step();
        opt.zeroGrad();
        told.push(Number(await loss.item()));
      });
      losses.push(told);
      made.push(programs.slice(3));
    }
    losses[1]!.forEach((loss, i) => expect(loss).toBeCloseTo(losses[0]![i]!, 4));
    expect(made[1]).toEqual([0, 0, 0, 0]);
  });

  test('slices, positions, steps and their gradients are those of each call', async () => {
    clearCache();
    sn.setDevice(name);
    const xs = counted([7, 6]);
    const data = Array.from({ length: 7 }, (_, r) => Array.from({ length: 6 }, (_, c) => 6 * r + c));
    const programs = await compiles(6, async (i) => {
      const p = xs.mul(1).requiresGrad_();
      const part = p.slice(0, i, i + 2).mul(2);
      const at = p.select(1, 5 - i);
      const odd = p.at({ start: i === 5 ? 4 : 5, stop: i === 5 ? 0 : 1, step: -2 }, i);
      sn.add(part.sum(), at.sum().mul(10)).add(odd.sum().mul(100)).backward();
      expect(await part.array()).toEqual(data.slice(i, i + 2).map((row) => row.map((v) => 2 * v)));
      expect(await at.array()).toEqual(data.map((row) => row[5 - i]));
      const rows = i === 5 ? [4, 2] : [5, 3];
      expect(await odd.array()).toEqual(rows.map((r) => data[r]![i]));
      const expected = data.map((row, r) =>
        row.map(
          (_, c) =>
            (r >= i && r < i + 2 ? 2 : 0) + (c === 5 - i ? 10 : 0) + (rows.includes(r) && c === i ? 100 : 0),
        ),
      );
      expect(await p.grad!.array()).toEqual(expected);
    });
    // Gradients of strided slices pad between elements, and are compiled for each place.
    expect(programs[2]! + programs[3]!).toBeLessThanOrEqual(programs[1]! * 2);
  });

  test('of every dtype', async () => {
    clearCache();
    sn.setDevice(name);
    const wide: readonly sn.DType[] = name.startsWith('webgpu') ? [] : ['f64', 'i64', 'u64'];
    const dtypes: readonly sn.DType[] = ['f32', 'f16', 'bf16', 'i32', 'u32', 'i16', 'u8', 'bool', ...wide];
    for (const dtype of dtypes) {
      const x = counted([9], dtype);
      const all = (await x.array()) as (number | bigint | boolean)[];
      for (const i of [0, 3, 5, 1]) {
        expect([dtype, await x.slice(0, i, i + 4).array()]).toEqual([dtype, all.slice(i, i + 4)]);
        const padded = sn.pad(x, [[i, 5 - i]]);
        const gap = all[0] === 0n ? 0n : dtype === 'bool' ? false : 0;
        const fill = (n: number): (number | bigint | boolean)[] => Array.from({ length: n }, () => gap);
        expect([dtype, await padded.array()]).toEqual([dtype, [...fill(i), ...all, ...fill(5 - i)]]);
      }
    }
  });
});

describe('offsets', () => {
  test('that stay are compiled in, and one that varies leaves the others alone', async () => {
    clearCache();
    const spy = spyDevice();
    const x = counted([6, 6]);
    await x.data();
    const made = await compiles(8, async (i) => {
      const y = x.slice(1, 4, 6).add(x.slice(1, i % 4, (i % 4) + 2));
      expect(((await y.array()) as number[][])[0]).toEqual([4 + (i % 4), 6 + (i % 4)]);
    });
    expect(made).toEqual([1, 1, 0, 0, 0, 0, 0, 0]);
    expect(spy.count.load).toBeLessThanOrEqual(3);
  });

  test('that begin equal may part', async () => {
    clearCache();
    spyDevice();
    const [x, y] = [counted([8]), counted([8]).mul(10)];
    await Promise.all([x.data(), y.data()]);
    for (const [a, b] of [
      [0, 0],
      [2, 2],
      [3, 5],
      [3, 6],
      [4, 0],
    ] as const) {
      // prettier-ignore
      expect(await x.slice(0, a, a + 2).add(y.slice(0, b, b + 2)).array()).toEqual([a + 10 * b, a + 1 + 10 * b + 10]);
    }
  });

  test('other sizes, steps and values of padding are other structures', async () => {
    clearCache();
    spyDevice();
    const x = sn.tensor([1, 2, 3, 4]);
    expect(await x.slice(0, 1, 3).array()).toEqual([2, 3]);
    expect(await x.slice(0, 1, 4, 2).array()).toEqual([2, 4]);
    expect(await x.slice(0, 2, 3).array()).toEqual([3]);
    expect(await sn.pad(x, [[1, 1]]).array()).toEqual([0, 1, 2, 3, 4, 0]);
    expect(await sn.pad(x, [[2, 0]]).array()).toEqual([0, 0, 1, 2, 3, 4]);
    expect(await sn.pad(x, [[0, 2]], { value: 7 }).array()).toEqual([1, 2, 3, 4, 7, 7]);
    expect(await sn.pad(x, [[2, 0]], { value: 7 }).array()).toEqual([7, 7, 1, 2, 3, 4]);
    expect(await sn.pad(x, [[1, 1]], { value: -0 }).array()).toEqual([-0, 1, 2, 3, 4, -0]);
  });

  test('random programs of slices and paddings give the same for every place', async () => {
    spyDevice();
    const place = fc.record({ axis: fc.nat(1), start: fc.nat(3), size: fc.integer({ min: 1, max: 3 }), back: fc.boolean(), pads: fc.nat(2) }); // prettier-ignore
    await fc.assert(
      fc.asyncProperty(
        fc.array(place, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(9), { maxLength: 4 }),
        async (list, moves) => {
          clearCache();
          const run = async (by: number): Promise<unknown> => {
            const p = sn
              .tensor(
                Float32Array.from({ length: 16 }, (_, i) => i + 1),
                { shape: [4, 4] },
              )
              .requiresGrad_();
            let y: sn.Tensor = p;
            for (const { axis, start, size, back, pads } of list) {
              const n = y.shape[axis]!;
              const take = Math.min(size, n);
              const from = (start + by) % (n - take + 1);
              y =
                back && from > 0 ? y.slice(axis, from + take - 1, from - 1, -1) : y.narrow(axis, from, take);
              const pair: [number, number] = [(by + pads) % 3, 2 - ((by + pads) % 3)];
              y = sn.pad(y, axis === 0 ? [pair, [0, 0]] : [pair]).mul(2);
            }
            y.square().sum().backward();
            return [await y.array(), await p.grad!.array()];
          };
          const shared: unknown[] = [];
          for (const by of moves) shared.push(await run(by));
          for (const [i, by] of moves.entries()) {
            clearCache();
            expect(shared[i]).toEqual(await run(by));
          }
        },
      ),
      { numRuns: Number(process.env['SINTER_OFFSET_RUNS'] ?? 40) },
    );
  });
});
