// DataLoader: every item of an epoch once and in its order, a few batches ahead, from this thread or from workers; resumable; and
// whatever fails reaches the loop, with no worker left behind.

import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { manualSeed, setDevice, tensor, type Tensor } from '../../src/index.ts';
import * as data from '../../src/data/index.ts';
import { handleOf } from '../../src/tensor/tensor.ts';

setDevice('interpreter');

const ten = data.fromArray(Array.from({ length: 10 }, (_, i) => ({ x: Float32Array.of(i), i })));
const module = new URL('../fixtures/data/squares.mjs', import.meta.url);

async function places(loader: AsyncIterable<{ i: Tensor }>, most = Infinity): Promise<number[][]> {
  const seen: number[][] = [];
  for await (const { i } of loader) {
    seen.push((await i.array()) as number[]);
    if (seen.length >= most) break;
  }
  return seen;
}

describe('batches', () => {
  test('are of the order of the dataset, the last one shorter unless dropped', async () => {
    const loader = new data.DataLoader(ten, { batchSize: 4 });
    expect(loader.length).toBe(3);
    expect(await places(loader)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ]);
    const whole = new data.DataLoader(ten, { batchSize: 4, dropLast: true });
    expect(whole.length).toBe(2);
    expect(await places(whole)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
  });

  test('of a stream are of what comes', async () => {
    const items = data.stream(function* () {
      for (let i = 0; i < 5; i++) yield { i };
    });
    for (const prefetch of [0, 1, 7]) {
      const loader = new data.DataLoader(items, { batchSize: 2, prefetch });
      expect(loader.length).toBe(undefined);
      expect(await places(loader)).toEqual([[0, 1], [2, 3], [4]]);
    }
  });

  test('are what a collate of one’s own makes', async () => {
    const loader = new data.DataLoader(ten, { batchSize: 5, collate: (items) => items.map(({ i }) => i) });
    const seen: number[][] = [];
    for await (const batch of loader) seen.push(batch);
    expect(seen).toEqual([
      [0, 1, 2, 3, 4],
      [5, 6, 7, 8, 9],
    ]);
  });

  test('follow samplers', async () => {
    const sampler = data.subsetRandomSampler([1, 3, 5], { seed: 0 });
    expect((await places(new data.DataLoader(ten, { sampler }))).flat().sort()).toEqual([1, 3, 5]);
    const batchSampler = { length: 2, batches: () => [[9], [8, 7]] };
    expect(await places(new data.DataLoader(ten, { batchSampler }))).toEqual([[9], [8, 7]]);
  });

  test('are gathered at once where the dataset can', async () => {
    const set = new data.TensorDataset({ i: tensor([0, 1, 2, 3, 4]) });
    expect(
      (await places(new data.DataLoader(set, { batchSize: 2, shuffle: true, seed: 1 }))).flat().sort(),
    ).toEqual([0, 1, 2, 3, 4]);
  });
});

describe('shuffling', () => {
  test('is another in each epoch, and the same for the same seed', async () => {
    const make = (): data.DataLoader<{ x: Float32Array; i: number }> =>
      new data.DataLoader(ten, { batchSize: 3, shuffle: true, seed: 4 });
    const [a, b] = [make(), make()];
    const first = await places(a);
    const second = await places(a);
    expect(first.flat().sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(second).not.toEqual(first);
    b.setEpoch(1);
    expect(await places(b)).toEqual(second);
    b.setEpoch(0);
    expect(await places(b)).toEqual(first);
  });

  test('is of the generator where no seed is given', async () => {
    manualSeed(3);
    const first = await places(new data.DataLoader(ten, { shuffle: true }));
    manualSeed(3);
    expect(await places(new data.DataLoader(ten, { shuffle: true }))).toEqual(first);
    expect(await places(new data.DataLoader(ten, { shuffle: true }))).not.toEqual(first);
  });
});

describe('state', () => {
  test.each([0, 3])(
    'goes on behind the last batch given, however many are under way (prefetch %i)',
    async (prefetch) => {
      const options = { batchSize: 2, shuffle: true, seed: 7, prefetch };
      const whole = new data.DataLoader(ten, options);
      const epochs = [await places(whole), await places(whole)];
      const left = new data.DataLoader(ten, options);
      await places(left);
      await places(left, 2);
      const state = JSON.parse(JSON.stringify(left.state())) as data.LoaderState;
      expect(state).toEqual({ epoch: 1, batch: 2, seed: '7' });
      const resumed = new data.DataLoader(ten, { ...options, seed: 0 });
      resumed.load(state);
      expect(await places(resumed)).toEqual(epochs[1]!.slice(2));
      expect(resumed.state()).toEqual({ epoch: 2, batch: 0, seed: '7' });
      // The loop that was left is over: the next one is another epoch.
      expect(await places(left)).not.toEqual(epochs[1]);
    },
  );

  test('of a stream passes over the items that were given', async () => {
    const loader = new data.DataLoader([{ i: 0 }, { i: 1 }, { i: 2 }, { i: 3 }, { i: 4 }], { batchSize: 2 });
    loader.load({ epoch: 0, batch: 1, seed: '0' });
    expect(await places(loader)).toEqual([[2, 3], [4]]);
  });
});

describe('prefetching', () => {
  test('makes so many batches ahead, and no more', async () => {
    for (const prefetch of [0, 1, 4]) {
      let made = 0;
      const counting = { length: 10, get: (i: number) => ((made += 1), i) };
      let given = 0;
      for await (const _ of new data.DataLoader(counting, { prefetch })) {
        given += 1;
        await wait(1);
        expect(made).toBeLessThanOrEqual(Math.min(10, given + prefetch));
        if (prefetch > 0 && given > 1)
          expect(made).toBeGreaterThanOrEqual(Math.min(10, given + prefetch - 1));
      }
      expect(made).toBe(10);
    }
  });

  test('brings batches to the device before they are used', async () => {
    for await (const { x } of new data.DataLoader(ten, { batchSize: 5 }))
      expect(handleOf(x).storage?.place).toBe('both');
  });
});

describe('failures', () => {
  test('of a dataset reach the loop as they are, at their batch', async () => {
    const failure = new Error('no such file');
    const failing = { length: 4, get: (i: number) => (i === 2 ? Promise.reject(failure) : { i }) };
    const seen: number[][] = [];
    const loader = new data.DataLoader(failing);
    await expect(
      (async () => {
        for await (const { i } of loader) seen.push((await i.array()) as number[]);
      })(),
    ).rejects.toBe(failure);
    expect(seen).toEqual([[0], [1]]);
    expect(loader.state()).toMatchObject({ epoch: 0, batch: 2 });
  });

  test('of options that contradict each other are told', () => {
    const sampler = data.sequentialSampler(10);
    expect(() => new data.DataLoader(ten, { sampler, shuffle: true })).toThrow(
      /the sampler already sets the order: shuffle/,
    );
    expect(() => new data.DataLoader([1, 2], { shuffle: true })).toThrow(
      /the order of a stream cannot be changed: shuffle/,
    );
    const batchSampler = { length: 0, batches: () => [] };
    expect(() => new data.DataLoader(ten, { batchSampler, batchSize: 2 })).toThrow(
      /batchSampler already sets it: batchSize/,
    );
  });
});

describe('workers', () => {
  const squares = data.map(ten, ({ i }) => ({ x: Float32Array.of(i, i * i), by: i, of: i }));
  const failing = (
    broken: object,
    rest: object = {},
  ): data.DataLoader<{ x: Float32Array; by: number; of: number }> =>
    new data.DataLoader(squares, {
      batchSize: 2,
      workers: { count: 2, module, name: 'make', data: broken, ...rest },
    });
  const run = async (loader: AsyncIterable<unknown>): Promise<number> => {
    let batches = 0;
    for await (const _ of loader) batches += 1;
    return batches;
  };

  test('make the batches, in order, all of them at work', async () => {
    const loader = new data.DataLoader(squares, {
      batchSize: 2,
      workers: { count: 2, module, name: 'make' },
      prefetch: 4,
    });
    const seen: unknown[] = [];
    const by = new Set<unknown>();
    for await (const batch of loader) {
      seen.push(await batch.x.array());
      by.add(((await batch.by.array()) as number[])[0]);
    }
    expect(seen).toEqual(
      [0, 2, 4, 6, 8].map((i) => [
        [i, i * i],
        [i + 1, (i + 1) ** 2],
      ]),
    );
    expect(by).toEqual(new Set([0, 1]));
  });

  test('give what is no tensor as well, and items to a collate of one’s own', async () => {
    const named = { length: 10, get: (i: number) => ({ x: Float32Array.of(i, i), y: 1n, name: '' }) };
    for await (const { y, name } of new data.DataLoader(named, {
      batchSize: 10,
      workers: { count: 1, module },
    })) {
      expect([y.dtype, name[3]]).toEqual(['i64', 'item 3']);
    }
    const own = new data.DataLoader(named, {
      batchSize: 10,
      workers: { count: 1, module },
      collate: (items) => items.length,
    });
    for await (const count of own) expect(count).toBe(10);
  });

  test('end with the loop, when it is left as well', async () => {
    const beats = new Int32Array(new SharedArrayBuffer(4));
    for await (const _ of failing({ beats })) {
      await expect.poll(() => Atomics.load(beats, 0)).toBeGreaterThan(0);
      break;
    }
    const last = Atomics.load(beats, 0);
    await wait(30);
    expect(Atomics.load(beats, 0)).toBe(last);
  });

  test.each([
    ['an exception', { fails: 5 }, 'E_WORKER', /worker \d failed at items 4, 5: RangeError: no item 5 today/],
    ['an error of Sinter’s kind', { coded: 0 }, 'E_FORMAT', /failed at items 0, 1: the file 0 is broken/],
    ['the end of a worker', { exits: 3 }, 'E_WORKER', /worker \d has ended: it exited with 3/],
    [
      'items of different shapes',
      { uneven: 9 },
      'E_SHAPE',
      /DataLoader: items 0 and 1 have different shapes at \.x/,
    ],
    ['an item that cannot be sent', { uncloneable: true }, 'E_WORKER', /could not be cloned/],
    ['a dataset of another length', { length: 11 }, 'E_VALUE', /has 11 items, the loader's 10/],
  ])('hand on %s', async (_, broken, code, message) => {
    await expect(run(failing(broken))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
  });

  test('that end while they have nothing to do are missed at their next batch', async () => {
    const loader = failing({ leaves: 0 }, {});
    await expect(
      (async () => {
        for await (const _ of loader) await wait(400);
      })(),
    ).rejects.toMatchObject({
      code: 'E_WORKER',
      message: expect.stringMatching(/has ended: it exited with 4/) as string,
    });
  });

  test('that take longer than they may are given up', async () => {
    const patience = 1500;
    await expect(run(failing({ hangs: 4 }, { timeout: patience }))).rejects.toMatchObject({
      code: 'E_WORKER',
      message: expect.stringMatching(/took more than 1500 ms/) as string,
    });
  });

  test.each([
    ['broken', /could not start: TypeError: the folder is empty/],
    ['nothing', /'nothing' is no dataset/],
    ['absent', /the module exports no 'absent': it has broken, dataset, make, nothing/],
  ])('that cannot start with %s say so', async (name, message) => {
    const loader = new data.DataLoader(squares, { workers: { count: 1, module, name } });
    await expect(run(loader)).rejects.toMatchObject({
      code: 'E_WORKER',
      message: expect.stringMatching(message) as string,
    });
  });

  test('whose module is not there say so, and options that cannot be sent', async () => {
    const lost = new data.DataLoader(ten, { workers: { count: 1, module: new URL('lost.mjs', module) } });
    await expect(run(lost)).rejects.toMatchObject({
      message: expect.stringMatching(/could not start: [^]*lost\.mjs/) as string,
    });
    const bound = new data.DataLoader(ten, { workers: { count: 1, module, data: () => 1 } });
    await expect(run(bound)).rejects.toMatchObject({
      code: 'E_WORKER',
      message: expect.stringMatching(/a worker cannot start/) as string,
    });
  });
});
