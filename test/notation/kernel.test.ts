// Index notation against loops over all indices, and what the programs written in it become.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { kernel } from '../../src/notation/index.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { everyDevice } from '../support/devices.ts';
import {
  build,
  element,
  holds,
  plain,
  positions,
  read,
  toTensor,
  type Plain,
} from '../tensor/ops/support.ts';

/** Small whole numbers, so that sums are exact in any order. */
const noise = (shape: readonly number[], from = 1): Plain =>
  build(shape, (place) => (place.reduce((sum, i, axis) => sum * 5 + i * (axis + 2) + from, 3) % 7) - 3);

const sumOver = (sizes: readonly number[], f: (at: readonly number[]) => number): number =>
  positions(sizes).reduce((sum, at) => sum + f(at), 0);

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));

  test('products, windows, steps, gathers and guards are loops over their indices', async () => {
    const sizes = fc.record({
      m: fc.integer({ min: 1, max: 5 }),
      k: fc.integer({ min: 1, max: 5 }),
      n: fc.integer({ min: 1, max: 5 }),
      r: fc.integer({ min: 1, max: 3 }),
      step: fc.integer({ min: 1, max: 3 }),
    });
    await holds(
      device === 'interpreter' ? 60 : device === 'wasm' ? 20 : 4,
      sizes,
      async ({ m, k, n, r, step }) => {
        const [x, w, b] = [noise([m, k]), noise([k, n], 2), noise([n], 4)];
        const long = noise([n, (m - 1) * step + r], 5);
        const taps = noise([r], 6);
        const ids = build([r], ([i]) => (i! * 3 + 1) % m);
        const tensors = {
          x: toTensor(x),
          w: toTensor(w),
          b: toTensor(b),
          long: toTensor(long),
          taps: toTensor(taps),
          ids: toTensor(ids, 'i32'),
        };
        const cases: readonly [string, readonly (keyof typeof tensors)[], Plain][] = [
          [
            'y[i,j] = sum(k: x[i,k] * w[k,j]) + b[j]',
            ['x', 'w', 'b'],
            build(
              [m, n],
              ([i, j]) => sumOver([k], ([a]) => element(x, [i!, a!]) * element(w, [a!, j!])) + b.data[j!]!,
            ),
          ],
          [
            'y[j,i] = max(k: x[i,k] + w[k,j])',
            ['x', 'w'],
            build([n, m], ([j, i]) =>
              Math.max(...positions([k]).map(([a]) => element(x, [i!, a!]) + element(w, [a!, j!]))),
            ),
          ],
          [
            `y[c, i] = sum(q: long[c, ${step}*i + q] * taps[q])`,
            ['long', 'taps'],
            build([n, m], ([c, i]) =>
              sumOver([r], ([q]) => element(long, [c!, step * i! + q!]) * taps.data[q!]!),
            ),
          ],
          [
            'y[i, k] = x[ids[i], k] * 2',
            ['x', 'ids'],
            build([r, k], ([i, a]) => 2 * element(x, [ids.data[i!]!, a!])),
          ],
          [
            'y[i, k] = i >= 1 ? x[i - 1, k] - x[i, k] : x[i, k]',
            ['x'],
            build([m, k], ([i, a]) =>
              i! >= 1 ? element(x, [i! - 1, a!]) - element(x, [i!, a!]) : element(x, [i!, a!]),
            ),
          ],
          [
            `y[i < ${m}] = x[${m - 1} - i, 0] + i`,
            ['x'],
            build([m], ([i]) => element(x, [m - 1 - i!, 0]) + i!),
          ],
        ];
        for (const [text, names, expected] of cases) {
          const given = Object.fromEntries(names.map((name) => [name, tensors[name]]));
          expect([text, await plain(kernel(text)(given))]).toEqual([text, expected]);
        }
      },
    );
  });

  test('attention, a normalised row and a histogram in a few lines', async () => {
    const [q, k, v] = [sn.randn([5, 4]), sn.randn([6, 4]), sn.randn([6, 3])];
    const attend = kernel`
      s[i,j] = sum(d: q[i,d] * k[j,d]) / 2       # √4
      p[i,j] = exp(s[i,j] - max(m: s[i,m]))
      y[i,c] = sum(j: p[i,j] * v[j,c]) / sum(j: p[i,j])
    `;
    expect(attend.inputs).toEqual(['q', 'k', 'v']);
    const found = await read(attend({ q, k, v }));
    const expected = await read(sn.scaledDotProductAttention(q, k, v));
    found.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
    const bins = kernel`h[b < 4] = sum(i: i32(x[i]) == b ? 1 : 0)`;
    expect(await read(bins({ x: sn.tensor([0, 3, 3, 1, 2.5, 9]) }))).toEqual([1, 1, 1, 2]);
  });
});

describe('what it becomes', () => {
  beforeAll(() => sn.setDevice('wasm'));
  afterAll(() => sn.setDevice('interpreter'));

  test('a product with its bias is one kernel, as a convolution is', () => {
    const dense = kernel`y[i,j] = relu(sum(k: x[i,k] * w[k,j]) + b[j])`;
    const x = sn.ones([32, 64]);
    expect(sn.explain(dense({ x, w: sn.ones([64, 16]), b: sn.ones([16]) })).kernels.length).toBe(1);
    const conv = kernel`y[n,o,i,j] = sum(c, p, q: x[n,c,i+p,j+q] * w[o,c,p,q])`;
    const convolved = conv({ x: sn.ones([1, 3, 8, 8]), w: sn.ones([4, 3, 3, 3]) });
    expect(convolved.shape).toEqual([1, 4, 6, 6]);
    expect(sn.explain(convolved).kernels.length).toBeLessThanOrEqual(2);
  });

  test('derivatives and compiled programs are those of the operations', async () => {
    const loss = kernel`l[] = sum(i, j: square(sum(k: x[i,k] * w[k,j])))`;
    const [x, w] = [sn.randn([3, 4]), sn.randn([4, 2])];
    const gradient = sn.compile(sn.grad((at: Tensor) => loss({ x, w: at })));
    const expected = sn.grad((at: Tensor) => x.matmul(at).square().sum())(w);
    const found = await read(gradient(w));
    (await read(expected)).forEach((value, i) => expect(found[i]).toBeCloseTo(value, 4));
  });

  test('numbers and tensors can be written into it', async () => {
    const x = sn.tensor([1, 2, 3]);
    expect(await read(kernel`y[i] = ${x}[i] * ${-2} + s`({ s: 1 }))).toEqual([-1, -3, -5]);
    expect(await read(kernel('y[i] = x[i] ** 2 % 3')({ x }))).toEqual([1, 1, 0]);
    expect(await kernel`y[i] = argmax(k: x[i,k])`({ x: sn.tensor([[1, 5, 2]]) }).array()).toEqual([1]);
    expect(await read(kernel`y[i] = !(x[i] > 1 && x[i] < 3) ? f16(x[i]) : 0`({ x }))).toEqual([1, 0, 3]);
    expect(await read(kernel`y[i] = x[i,i]`({ x: sn.eye(3).mul(4) }))).toEqual([4, 4, 4]);
    const table = kernel`y[i < 2, j < 3] = i * 10 + j; z[j] = sum(i: y[i,j])`;
    expect(await table().array()).toEqual([10, 12, 14]);
  });
});

describe('what is refused points at its place', () => {
  const x = sn.ones([2, 3]);
  test.each([
    [
      'a missing bracket',
      () => kernel`y[i = x[i]`,
      /^kernel: line 1, column 5: expected .*\n {2}y\[i = x\[i\]\n {6}\^/s,
    ],
    [
      'two lengths of an index',
      () => kernel`y[i,j] = sum(k: x[i,k] * w[k,j])`({ x, w: x }),
      /column 28: k has two lengths: axis 1 of x has 3, axis 0 of w has 2\n.*\n {29}\^/,
    ],
    ['axes that are not there', () => kernel`y[i] = x[i]`({ x }), /x has 2 axes, \[2,3\], and is read at 1/],
    [
      'places outside',
      () => kernel`y[i,j] = x[i,j] + x[i,j+1]`({ x }),
      /column 23: reads 1 to 3 of axis 1 of x, which has 3[^]*a condition/,
    ],
    ['an index of nothing', () => kernel`y[i,j] = x[i,0]`({ x }), /column 5: the range of j is not known/],
    ['an unknown function', () => kernel`y[i,j] = sinc(x[i,j])`({ x }), /there is no function sinc/],
    ['an unknown reduction', () => kernel`y[i] = median(j: x[i,j])`({ x }), /there is no reduction median/],
    [
      'an index that is no integer',
      () => kernel`y[i] = x[x[i,0], 0]`({ x }),
      /a whole number, and this is f32/,
    ],
    [
      'a condition that is none',
      () => kernel`y[i] = x[i,0] ? 1 : 0`({ x }),
      /a condition is bool, and this is f32/,
    ],
    ['a missing tensor', () => kernel`y[i] = x[i,0] + b`({ x }), /no tensor b is given/],
    ['a tensor too many', () => kernel`y[i] = x[i,0]`({ x, w: x }), /w is given, and nothing reads it/],
    ['a name twice', () => kernel`y[i] = x[i,0]; y[i] = x[i,1]`, /y is defined already/],
    ['an index twice', () => kernel`y[i,i] = x[i,i]`, /the index i is there twice/],
    [
      'what is no number',
      () => kernel`y[i] = x[i,0] + ${NaN}`,
      /must be a finite number or a tensor, got NaN/,
    ],
  ] as const)('%s', (_, call, message) => expect(call).toThrow(message));
});
