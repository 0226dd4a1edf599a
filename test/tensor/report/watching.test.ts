// What is told of compilations and runs: a line each where SINTER_LOG asks for it, counts, and profiles with kernels, times, reasons and
// a trace, on every device.

import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import * as sn from '../../../src/index.ts';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { settledAt } from '../../support/collector.ts';
import { everyDevice } from '../../support/devices.ts';

afterAll(() => sn.setDevice(undefined));

describe('SINTER_LOG=compiles', () => {
  const said: string[] = [];
  beforeEach(() => {
    clearCache();
    said.length = 0;
    sn.setDevice('wasm:1');
    vi.spyOn(console, 'warn').mockImplementation((line: string) => void said.push(line));
    vi.stubEnv('SINTER_LOG', 'other, compiles');
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });
  const reasons = (): string[] =>
    said.map((line) => line.replace(/^sinter: compiled (.*?) for wasm:1: \d+ kernels?, \d+ ms/, '$1'));
  const rows = (n: number): sn.Tensor =>
    sn.tensor(
      Float32Array.from({ length: 3 * n }, (_, i) => i),
      { shape: [n, 3] },
    );

  test('says of each compiled function what, where, how large, how long and why', async () => {
    const step = sn.compile(function step(x: sn.Tensor, options: { mode: string; rate: sn.Tensor }) {
      const y = x.softmax(-1).mul(options.rate);
      return options.mode === 'a' ? y : y.neg();
    });
    const call = (x: sn.Tensor, mode = 'a', rate = 1): Promise<unknown> => step(x, { mode, rate }).data();
    await call(rows(4));
    expect(said).toEqual([
      expect.stringMatching(/^sinter: compiled step for wasm:1: 1 kernel, \d+ ms: first call$/),
    ]);
    for (const n of [8, 16, 8, 4]) await call(rows(n));
    await call(rows(4), 'a', 0.5);
    await call(rows(4), 'b');
    expect(reasons()).toEqual([
      'step: first call',
      'step: second size of axis 0 of x: 8 after 4',
      'step: third size of axis 0 of x: 16 after 8, 4',
      "step: second value of options.mode: 'b' after 'a'",
    ]);
  });

  test('says of recorded operations what is new about them', async () => {
    const compute = async (n: number, rate: number): Promise<void> =>
      void (await rows(n).mul(rate).exp().data());
    await compute(4, 1);
    await compute(4, 1);
    await compute(4, 2);
    await compute(4, 3);
    await compute(5, 3);
    await rows(6).slice(0, 0, 2).add(1).data();
    const x = rows(4);
    const y = x.exp();
    await y.sum().data();
    await y.data();
    expect(reasons().slice(0, 4)).toEqual([
      '3 recorded operations: first time that exp f32[4,3] is computed like this',
      '3 recorded operations: a number that was compiled in varies: 2 after 1',
      '3 recorded operations: second size of axis 0 of input 0: 5 after 4',
      expect.stringMatching(/first time that add f32\[2,3\]/),
    ]);
  });

  test('is silent where it is not asked for', async () => {
    vi.stubEnv('SINTER_LOG', 'compilesome');
    await rows(7).neg().data();
    expect(said).toEqual([]);
  });
});

test('stats counts what was traced, compiled, run and moved', async () => {
  sn.setDevice('wasm:1');
  clearCache();
  const before = sn.stats();
  const twice = sn.compile((x: sn.Tensor) => x.mul(2));
  const x = sn.tensor([1, 2, 3, 4]);
  for (let i = 0; i < 3; i++) await twice(x).data();
  const after = sn.stats();
  const grown = (key: 'traces' | 'programs' | 'kernels' | 'runs' | 'dispatches'): number =>
    after[key] - before[key];
  expect([grown('traces'), grown('programs'), grown('kernels'), grown('runs'), grown('dispatches')]).toEqual([
    1, 1, 1, 3, 3,
  ]);
  expect(after.compileMilliseconds).toBeGreaterThan(before.compileMilliseconds);
  expect(after.bytes.uploaded - before.bytes.uploaded).toBe(16);
  expect(after.bytes.downloaded - before.bytes.downloaded).toBe(48);
  expect(after.bytes.moved - before.bytes.moved).toBe(3 * 32);
});

test.each(everyDevice)('stats counts what tensors have in the memory of %s', async (name) => {
  sn.setDevice(name);
  const live = (): sn.Stats['live'] => sn.stats().live;
  const x = sn.arange(1024).cast('f32').sin();
  await settledAt(() => live().buffers);
  const before = live();
  await x.data();
  const y = x.mul(2);
  await y.data();
  const during = live();
  // Memory may be given out in larger pieces than were asked for.
  expect(during.buffers - before.buffers).toBe(2);
  expect(during.bytes - before.bytes).toBeGreaterThanOrEqual(2 * 4096);
  x.dispose();
  y.dispose();
  expect(live().buffers).toBe(before.buffers);
  await (async () => void (await sn.arange(1024).cast('f32').cos().data()))();
  expect(await settledAt(() => live().buffers)).toBeLessThanOrEqual(before.buffers);
});

describe.each(everyDevice)('a profile on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('has what the function gave, each kernel, each compilation with its reason, and bytes', async () => {
    clearCache();
    const w = sn.tensor(
      Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i)),
      { shape: [64, 64] },
    );
    const layer = sn.compile(function layer(x: sn.Tensor) {
      return x.matmul(w).softmax(-1);
    });
    const x = sn.tensor(
      Float32Array.from({ length: 512 }, (_, i) => i / 512),
      { shape: [8, 64] },
    );
    const wanted = [...(await layer(x).data())];
    const first = await sn.profile(async () =>
      layer(x.narrow(0, 0, 4))
        .sum()
        .item(),
    );
    expect(first.value).toBeCloseTo(4, 4);
    expect(first.compiles.map(({ why }) => why)).toContain('second size of axis 0 of x: 4 after 8');
    const again = await sn.profile(() => layer(x).data());
    expect([...again.value]).toEqual(wanted);
    expect(again.compiles).toEqual([]);
    expect([again.counts.runs, again.counts.programs]).toEqual([1, 0]);
    expect(again.counts.bytes.downloaded).toBe(2048);
    expect(again.kernels.length).toBeGreaterThan(0);
    expect(again.kernels.length).toBe(device === 'interpreter' ? 1 : again.counts.dispatches);
    for (const { name, microseconds, bytes, kind } of again.kernels) {
      expect(name).not.toBe('');
      if (microseconds !== undefined) expect(microseconds).toBeGreaterThanOrEqual(0);
      if (kind !== 'host') expect(bytes).toBeGreaterThan(0);
    }
    const text = String(again);
    expect(text).toMatch(new RegExp(`^[\\d.]+ ms on ${again.device}`));
    for (const { name } of again.kernels) expect(text).toContain(name);
    expect(inspect(again)).toBe(text);

    const { traceEvents } = JSON.parse(JSON.stringify(first.trace())) as {
      traceEvents: {
        name: string;
        ph: string;
        ts: number;
        dur: number;
        tid: number;
        args?: { why?: string };
      }[];
    };
    const spans = traceEvents.filter(({ ph }) => ph === 'X');
    expect(spans.filter(({ tid }) => tid === 2).map(({ name }) => name)).toEqual(
      first.kernels.map(({ name }) => name),
    );
    expect(
      spans.some(
        ({ name, args }) => name === 'compile layer' && args?.why?.startsWith('second size') === true,
      ),
    ).toBe(true);
    // Perfetto draws what does not overlap in a row.
    const row = spans.filter(({ tid }) => tid === 2);
    row.forEach(({ ts }, i) =>
      expect(ts).toBeGreaterThanOrEqual(i === 0 ? 0 : row[i - 1]!.ts + row[i - 1]!.dur - 1e-6),
    );
  });

  test('of what fails rejects, and the next computation works; one is taken at a time', async () => {
    await expect(sn.profile(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(sn.profile(() => sn.profile(() => 1))).rejects.toMatchObject({ code: 'E_STATE' });
    await expect(sn.profile(5 as never)).rejects.toMatchObject({ code: 'E_VALUE' });
    expect(await sn.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
  });
});
