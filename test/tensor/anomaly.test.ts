// The first NaN or infinity is found: the operation and the line that made it, forwards and backwards, in compiled functions, in modules
// and optimizers, on every device; and nothing is said of infinities that are meant.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';
import { everyDevice } from '../support/devices.ts';

afterAll(() => {
  sn.detectAnomaly(false);
  sn.setDevice(undefined);
});

/** What reading a value rejects with. */
async function complaint(value: sn.Tensor): Promise<string> {
  const error: unknown = await value.data().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error === undefined) return 'nothing';
  expect(error).toMatchObject({ name: 'SinterError', code: 'E_VALUE' });
  return (error as Error).message;
}
const line = String.raw`\n {2}at .*anomaly\.test\.ts:\d+:\d+$`;

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('the operation is named, with where it was called and what it was made of', async () => {
    await sn.detectAnomaly(async () => {
      const x = sn.tensor([1, 0, -1]);
      expect(await complaint(x.log().mul(2).sum())).toMatch(
        new RegExp(String.raw`^detectAnomaly: log made NaN at \[2\] of f32\[3\] from -1${line}`),
      );
      const w = sn.tensor([1, 0, 4]).requiresGrad_();
      w.sqrt().sum().backward();
      expect(await complaint(w.grad!)).toMatch(
        new RegExp(
          String.raw`^detectAnomaly: the gradient of sqrt made Infinity at \[1\] of f32\[3\].*${line}`,
        ),
      );
    });
    expect([...(await sn.tensor([1, 0]).log().data())]).toEqual([0, -Infinity]);
  });
});

describe('while anomalies are looked for', () => {
  beforeEach(() => {
    sn.setDevice('wasm:1');
    sn.detectAnomaly(true);
  });
  afterEach(() => sn.detectAnomaly(false));

  test('the line is the one that called', async () => {
    const here = new Error('here').stack!.split('\n')[1]!;
    const row = Number(/:(\d+):\d+\)?$/.exec(here)![1]);
    const x = sn.tensor([0]).log();
    expect(await complaint(x)).toContain(`anomaly.test.ts:${row + 2}:`);
  });

  test('what follows from one is told the first', async () => {
    const bad = sn.tensor([0, 1]).log();
    await complaint(bad);
    const later = bad.mul(0).add(1);
    expect(await complaint(later)).toContain('log made -Infinity at [0]');
    await expect(later.add(1).sum().item()).rejects.toThrow('log made -Infinity');
  });

  test('functions given to compile are looked into, with and without donations, and afterwards compiled again', async () => {
    const step = sn.compile((x: sn.Tensor) => x.div(x.sum()), { donate: [0] });
    expect(await complaint(step(sn.tensor([0, 0])))).toContain('div made NaN at [0] of f32[2] from 0');
    sn.detectAnomaly(false);
    expect([...(await step(sn.tensor([1, 3])).data())]).toEqual([0.25, 0.75]);
    const before = sn.stats();
    await step(sn.tensor([1, 1])).data();
    expect(sn.stats().traces).toBe(before.traces);
    await sn.detectAnomaly(async () => {
      expect(await complaint(step(sn.tensor([0, 0])))).toContain('div made NaN');
    });
  });

  test('grad, vjp and modules are followed, and an optimizer may step', async () => {
    const slope = sn.grad((x: sn.Tensor) => x.pow(0.5).sum());
    expect(await complaint(slope(sn.tensor([0, 1])))).toContain('the gradient of pow made Infinity at [0]');
    const net = new nn.Linear(2, 2);
    const adam = new optim.Adam(net, { lr: 0.1 });
    for (let i = 0; i < 3; i++) {
      const loss = net
        .forward(sn.ones([1, 2]))
        .square()
        .sum();
      loss.backward();
      adam.step();
      adam.zeroGrad();
      expect(Number.isFinite(await loss.item())).toBe(true);
    }
    const found = await complaint(net.forward(sn.full([1, 2], 3e38)).mul(1e30));
    expect(found).toMatch(/(?:in Linear\.forward |mul )made (?:-?Infinity|NaN)/);
  });

  test('a NaN of softmax is one of softmax, by the operation that it is made of', async () => {
    expect(await complaint(sn.full([2], -Infinity).softmax(0))).toMatch(
      /^detectAnomaly: softmax made NaN at \[0\] of f32\[2\] by sub from -Infinity and -Infinity/,
    );
  });

  test('a NaN that came in is said to have come in', async () => {
    expect(await complaint(sn.tensor([1, NaN]).mul(2))).toBe(
      'detectAnomaly: NaN came in with an input, f32[2], at [1]',
    );
  });

  test('infinities that are meant are none: masks, constants, and what a where leaves out', async () => {
    const mask = sn.where(sn.tensor([true, false]), 0, -Infinity);
    expect([...(await mask.data())]).toEqual([0, -Infinity]);
    expect([...(await sn.tensor([1, 2]).add(mask).softmax(0).data())]).toEqual([1, 0]);
    const x = sn.tensor([0, 2]);
    expect([...(await sn.where(x.gt(0), x.log(), 5).data())]).toEqual([5, Math.fround(Math.LN2)]);
    expect([...(await sn.full([2], Infinity).data())]).toEqual([Infinity, Infinity]);
    expect([...(await sn.tensor([1, 2]).argmax(0).data())]).toEqual([1]);
  });
});

describe('the scope', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  test('is a call, a promise, or from one statement to another; what was recorded in it is looked at later too', async () => {
    const inside = sn.detectAnomaly(() => sn.tensor([0]).log());
    expect(await complaint(inside)).toContain('log made -Infinity');
    const outside = sn.tensor([0]).log();
    expect(await complaint(outside)).toBe('nothing');
    await expect(sn.detectAnomaly(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(() =>
      sn.detectAnomaly(() => {
        throw new Error('own');
      }),
    ).toThrow('own');
    expect(await complaint(sn.tensor([0]).log())).toBe('nothing');
    expect(() => sn.detectAnomaly('on' as never)).toThrow('expects true, false or a function');
  });

  test('of a value that nobody reads ends in no unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    await sn.detectAnomaly(async () => {
      const bad = sn.tensor([0, 1]).log();
      const good = sn.tensor([1]).add(1);
      await good.data();
      await bad
        .sum()
        .add(1)
        .item()
        .catch(() => undefined);
    });
    await sn.synchronize();
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});
