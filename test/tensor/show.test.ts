// What a tensor shows of itself in consoles and texts: dtype, shape and values where they are at hand, each number as short as it can be
// told apart, some of many; and that looking computes nothing.

import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { realDTypes as dtypes } from '../../src/ir/dtype.ts';
import { fromReal, hostArray } from '../../src/ir/value.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { elementsInLines } from '../../src/tensor/show/elements.ts';
import { showElement } from '../../src/tensor/show/number.ts';
import { offerFormatter, type Page } from '../../src/tensor/show/browser.ts';
import { handleOf } from '../../src/tensor/tensor.ts';
import { checkLaw } from '../support/property.ts';
import { spyDevice } from './support.ts';

afterAll(() => sn.setDevice(undefined));

describe('a number', () => {
  test('reads back as the element it shows, and no shorter text does', () => {
    for (const dtype of ['f32', 'f16', 'bf16'] as const) {
      const read = fromReal(dtype);
      checkLaw(500, fc.double(), (value) => {
        const element = read(value) as number;
        const text = showElement(element, dtype);
        expect(read(Number(text))).toBe(element);
        const digits = /^-?([\d.]+)/.exec(text)?.[1]?.replace('.', '').replace(/^0+/, '') ?? '';
        if (!Number.isFinite(element) || Number.isInteger(element) || digits.length < 2) return;
        expect(read(Number(element.toPrecision(digits.length - 1)))).not.toBe(element);
      });
    }
  });

  test('is written as people write it', () => {
    expect(
      [0.1, 1 / 3, 16_777_216, 1e10, -0, NaN, -Infinity].map((x) => showElement(Math.fround(x), 'f32')),
    ).toEqual(['0.1', '0.33333334', '16777216', '10000000000', '-0', 'NaN', '-Infinity']);
    expect(showElement(1 / 3, 'f64')).toBe('0.3333333333333333');
    expect(showElement(2n ** 63n, 'u64')).toBe('9223372036854775808');
    expect([0, 1].map((x) => showElement(x, 'bool'))).toEqual(['false', 'true']);
  });
});

describe('elements', () => {
  const lines = (shape: readonly number[], width: number): string =>
    elementsInLines({ dtype: 'i32', shape, at: (place) => place }, width);

  test('stand below each other, matrices apart, and the middle of long axes is left out', () => {
    expect(lines([2, 3], 80)).toBe('[[0, 1, 2], [3, 4, 5]]');
    expect(lines([2, 3], 12)).toBe('[[0, 1, 2],\n [3, 4, 5]]');
    expect(lines([2, 2, 2], 12)).toBe('[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]');
    expect(lines([50, 60], 40)).toBe(
      [
        '[[   0,    1,    2, …,   57,   58,   59],',
        ' [  60,   61,   62, …,  117,  118,  119],',
        ' [ 120,  121,  122, …,  177,  178,  179],',
        ' …,',
        ' [2820, 2821, 2822, …, 2877, 2878, 2879],',
        ' [2880, 2881, 2882, …, 2937, 2938, 2939],',
        ' [2940, 2941, 2942, …, 2997, 2998, 2999]]',
      ].join('\n'),
    );
  });

  test('of a long row are broken between numbers', () => {
    expect(
      lines([30], 40)
        .split('\n')
        .every((line) => line.length <= 40),
    ).toBe(true);
  });
});

test.each(dtypes)('elements of %s are shown as they are read', async (dtype) => {
  sn.setDevice('interpreter');
  const values = [0, 1, 2.5, 100];
  const x = sn.tensor(values, { dtype });
  const expected = hostArray(dtype, [4], values).data as ArrayLike<number | bigint>;
  const texts = Array.from(expected, (value) => showElement(value, dtype));
  expect(inspect(x)).toBe(`Tensor ${dtype}[4] [${texts.join(', ')}]`);
});

describe('a tensor', () => {
  beforeEach(() => sn.setDevice('interpreter'));

  test('shows dtype, shape and values in consoles, short among other things, in one line as text', () => {
    const x = sn.tensor([
      [0.1, 2],
      [3, 4],
    ]);
    expect(inspect(x)).toBe('Tensor f32[2,2] [[0.1, 2], [3, 4]]');
    expect(String(x)).toBe(inspect(x));
    expect(`${x}`).toBe(inspect(x));
    const deno = (x as never as Record<symbol, (inspect: unknown, options: object) => string>)[
      Symbol.for('Deno.customInspect')
    ]!;
    expect(deno.call(x, inspect, { depth: 4 })).toBe(inspect(x));
    const large = sn.tensor(Array.from({ length: 400 }, (_, i) => i)).reshape([20, 20]);
    expect(inspect({ x, large })).toBe(
      '{\n  x: Tensor f32[2,2] [[0.1, 2], [3, 4]],\n  large: Tensor f32[20,20] (pending)\n}',
    );
  });

  test('that is pending, disposed, failed or a tracer says so, and what asks for gradients does', async () => {
    const x = sn.tensor([1, 2]).requiresGrad_();
    expect(inspect(x)).toBe('Tensor f32[2] (requires grad) [1, 2]');
    expect(inspect(x.mul(2))).toBe('Tensor f32[2] (pending, requires grad)');
    const gone = sn.tensor([1]);
    gone.dispose();
    expect(inspect(gone)).toBe('Tensor f32[1] (disposed)');
    let traced = '';
    await sn
      .compile((y: sn.Tensor) => {
        traced = `${inspect(y)} ${inspect(x)}`;
        return y.mul(2);
      })(sn.ones([2]))
      .data();
    // What is only looked at is not captured.
    expect(traced).toBe('Tensor f32[2] (traced) Tensor f32[2] (requires grad) [1, 2]');
    const huge = sn
      .ones([2 ** 16, 1])
      .expand([2 ** 16, 2 ** 16])
      .add(1);
    await expect(huge.data()).rejects.toThrow();
    expect(inspect(huge)).toMatch(
      /^Tensor f32\[65536,65536\] \(failed: interpreter: the result of broadcast/,
    );
  });

  test.each(['interpreter', 'wasm:1', 'wasm:2'])(
    'that %s has computed shows its values, unread',
    async (name) => {
      sn.setDevice(name);
      const x = sn.tensor([1, 2, 3]);
      const [y, z] = [x.mul(2), x.add(0.5)];
      await y.data();
      expect(inspect(y)).toBe('Tensor f32[3] [2, 4, 6]');
      expect([inspect(z), await z.sum().item(), inspect(z)]).toEqual([
        'Tensor f32[3] (pending)',
        7.5,
        'Tensor f32[3] (pending)',
      ]);
      const step = sn.compile((a: sn.Tensor) => a.mul(3));
      const result = step(x);
      await openDevice(name);
      expect(inspect(result)).toMatch(/^Tensor f32\[3\] (?:\[3, 6, 9\]|\(pending\))$/);
      expect([...(await result.data())]).toEqual([3, 6, 9]);
      expect(inspect(result)).toBe('Tensor f32[3] [3, 6, 9]');
    },
  );

  test('on a device that must be waited for shows what was read of it, and else where it is', async () => {
    const { device } = spyDevice();
    await device;
    const x = sn.tensor([1, 2, 3]).mul(2);
    const y = sn.tensor(new Float32Array(5000)).add(1);
    await Promise.all([x.data(), y.data()]);
    expect(inspect(x)).toBe('Tensor f32[3] [2, 4, 6]');
    expect(inspect(y)).toBe('Tensor f32[5000] (on interpreter)');
  });

  test('that is looked at records, compiles, uploads and reads nothing', async () => {
    const { count, device } = spyDevice();
    await device;
    const x = sn.tensor([1, 2, 3]);
    const y = x.mul(2).add(1);
    const before = { ...count };
    for (let i = 0; i < 3; i++) for (const t of [x, y, [x, { y }]]) inspect(t);
    expect(count).toEqual(before);
    expect(inspect(y)).toContain('(pending)');
  });
});

test('the tools of browsers get a formatter where there is a page, and no page is made', () => {
  const page: Page = { document: {} };
  const x = sn.tensor([0.1, 2]);
  offerFormatter((value) => (value instanceof sn.Tensor ? handleOf(value) : undefined), page);
  const [formatter] = page.devtoolsFormatters!;
  expect(formatter!.header(x)).toEqual(['span', {}, 'Tensor f32[2] [0.1, 2]']);
  expect(formatter!.hasBody(x)).toBe(true);
  expect(formatter!.body(x)).toEqual(['pre', {}, 'Tensor f32[2] [0.1, 2]']);
  for (const other of [1, null, {}, 'x']) expect(formatter!.header(other)).toBe(null);
  const worker: Page = {};
  offerFormatter(() => undefined, worker);
  expect(worker.devtoolsFormatters).toBeUndefined();
});
