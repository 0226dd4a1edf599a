// Statistics against models that sort and count, on every device, and their corners: NaN, ties, nothing.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';
import { holds, read } from '../ops/support.ts';

const runs = (device: string): number => ({ interpreter: 30, wasm: 6 })[device] ?? 2;
const values = fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 1, maxLength: 30 });
const ascending = (data: readonly number[]): number[] => [...data].sort((a, b) => a - b);

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('order statistics read from the sorted line', async () => {
    await holds(runs(device), values, async (data) => {
      const x = sn.tensor(data, { dtype: 'f32' });
      const sorted = ascending(data);
      expect(await sn.median(x).item()).toBe(sorted[Math.floor((data.length - 1) / 2)]);
      const [kth, place] = sn.kthvalue(x, data.length);
      expect([await kth.item(), data[Number(await place.item())]]).toEqual([sorted.at(-1), sorted.at(-1)]);
      const [most, last] = sn.mode(x);
      const counts = sorted.map((at) => data.filter((x) => x === at).length);
      const expected = sorted[counts.indexOf(Math.max(...counts))]!;
      expect([await most.item(), await last.item()]).toEqual([expected, data.lastIndexOf(expected)]);
      const rank = 0.3 * (data.length - 1);
      const [low, high] = [sorted[Math.floor(rank)]!, sorted[Math.ceil(rank)]!];
      expect(await sn.quantile(x, 0.3).item()).toBeCloseTo(low + (rank - Math.floor(rank)) * (high - low), 4);
    });
  });

  test('NaN spoils a median and a quantile, but not those that pass it by', async () => {
    const x = sn.tensor([3, NaN, 1, 2]);
    expect(await sn.median(x).item()).toBeNaN();
    expect((await read(sn.medianWithIndices(x, 0)[1]))[0]).toBe(1);
    expect(await sn.nanmedian(x).item()).toBe(2);
    expect(await read(sn.quantile(x, sn.tensor([0, 1])))).toEqual([NaN, NaN]);
    expect(await read(sn.nanquantile(x, sn.tensor([0, 0.25, 1])))).toEqual([1, 1.5, 3]);
    expect(await sn.nanmean(x).item()).toBe(2);
    expect(await sn.nansum(x).item()).toBe(6);
  });

  test('equal elements share the gradient of the median of all, and one has that of a line', async () => {
    const x = sn.tensor([2, 1, 2, 3]).requiresGrad_();
    expect(await read(sn.gradients(sn.median(x), [x])[0]!)).toEqual([0.5, 0, 0.5, 0]);
    expect(await read(sn.gradients(sn.median(x, 0), [x])[0]!)).toEqual([1, 0, 0, 0]);
  });

  test('bins hold what lies between their edges, the last edge too', async () => {
    await holds(runs(device), values, async (data) => {
      const x = sn.tensor(data, { dtype: 'f32' });
      const bins = [0, 1, 2, 3].map(
        (i) => data.filter((v) => v >= 2 * i - 4 && (v < 2 * i - 2 || (i === 3 && v === 4))).length,
      );
      expect(await read(sn.histc(x, { bins: 4, min: -4, max: 4 }))).toEqual(bins);
      const [hist, edges] = sn.histogram(x, 4, { range: [-4, 4] });
      expect([await read(hist), await read(edges)]).toEqual([bins, [-4, -2, 0, 2, 4]]);
      expect(await read(sn.histogram(x, sn.tensor([-4, 0, 4], { dtype: 'f32' }))[0])).toEqual([
        bins[0]! + bins[1]!,
        bins[2]! + bins[3]!,
      ]);
      const up = sn.tensor(
        data.map((v) => v + 4),
        { dtype: 'i32' },
      );
      const counts = Array.from(
        { length: Math.max(...data) + 5 },
        (_, i) => data.filter((v) => v + 4 === i).length,
      );
      expect(await read(await sn.bincount(up))).toEqual(counts);
      expect(await read(sn.bincount(up, { size: 3 }))).toEqual([0, 1, 2].map((i) => counts[i] ?? 0));
    });
  });

  test('covariances are means of products of deviations', async () => {
    const rows = [
      [1, 2, 4, 7],
      [3, 1, 0, -2],
    ];
    const covariance = (i: number, j: number): number => {
      const mean = (row: readonly number[]): number => row.reduce((a, b) => a + b, 0) / row.length;
      const [p, q] = [rows[i]!, rows[j]!];
      return p.reduce((sum, at, k) => sum + (at - mean(p)) * (q[k]! - mean(q)), 0) / 3;
    };
    const found = await read(sn.cov(sn.tensor(rows)));
    [0, 1, 2, 3].forEach((k) => expect(found[k]).toBeCloseTo(covariance(k >> 1, k & 1), 5));
    const shares = await read(sn.corrcoef(sn.tensor(rows)));
    expect(shares[1]).toBeCloseTo(covariance(0, 1) / Math.sqrt(covariance(0, 0) * covariance(1, 1)), 5);
    // Counts of observations are as the observations themselves.
    const weighted = sn.cov(sn.tensor([[1, 5]]), { fweights: sn.tensor([2, 1], { dtype: 'i32' }) });
    expect(await weighted.item()).toBeCloseTo(Number(await sn.cov(sn.tensor([[1, 1, 5]])).item()), 5);
  });
});

describe('masked operations', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test('are those of the elements that count', async () => {
    const lines = fc.array(fc.tuple(fc.integer({ min: -4, max: 4 }), fc.boolean()), {
      minLength: 1,
      maxLength: 12,
    });
    await holds(25, lines, async (list) => {
      const x = sn.tensor(
        list.map(([v]) => v),
        { dtype: 'f32' },
      );
      const mask = sn.tensor(list.map(([, is]) => is));
      const kept = list.flatMap(([v, is]) => (is ? [v] : []));
      const sum = kept.reduce((a, b) => a + b, 0);
      expect(await sn.masked.sum(x, 0, { mask }).item()).toBe(sum);
      expect(await sn.masked.amax(x, 0, { mask }).item()).toBe(Math.max(...kept));
      expect(await sn.masked.mean(x, 0, { mask }).item()).toBe(Math.fround(sum / kept.length));
      const middle = kept.length === 0 ? NaN : ascending(kept)[Math.floor((kept.length - 1) / 2)]!;
      expect(await sn.masked.median(x, 0, { mask }).item()).toBe(middle);
      const total = kept.reduce((a, b) => a + Math.exp(b), 0);
      const shares = await read(sn.masked.softmax(x, 0, { mask }));
      list.forEach(([v, is], i) => {
        if (kept.length === 0) expect(shares[i]).toBeNaN();
        else expect(shares[i]).toBeCloseTo(is ? Math.exp(v) / total : 0, 5);
      });
      let running = 0;
      expect(await read(sn.masked.cumsum(x, 0, { mask }))).toEqual(
        list.map(([v, is]) => (running += is ? v : 0)),
      );
    });
  });

  test('pass nothing on to what is masked, be it NaN', async () => {
    const x = sn.tensor([1, NaN, 3]).requiresGrad_();
    const mask = sn.tensor([true, false, true]);
    const [g] = sn.gradients(sn.masked.var(x, 0, { mask }), [x]);
    expect(await read(g!)).toEqual([-2, 0, 2]);
  });

  test('refuse masks that are none or larger than the operand', () => {
    expect(() => sn.masked.sum(sn.ones([2]), 0, { mask: sn.ones([2]) })).toThrow(/must be bool/);
    expect(() => sn.masked.sum(sn.ones([2]), 0, { mask: sn.ones([3, 2]).toBool() })).toThrow(
      /broadcast to x/,
    );
  });
});
