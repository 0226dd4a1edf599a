// Windows with ends of their own, in 1 to 3 axes, against loops that say what a window is; and images read between their elements.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { checkLaw } from '../../support/property.ts';

beforeAll(() => sn.setDevice('interpreter'));

interface Line {
  readonly size: number;
  readonly kernel: number;
  readonly stride: number;
  readonly dilation: number;
  readonly low: number;
  readonly high: number;
  readonly ceilMode: boolean;
}

const lines: fc.Arbitrary<Line> = fc
  .record({
    size: fc.integer({ min: 1, max: 9 }),
    kernel: fc.integer({ min: 1, max: 4 }),
    stride: fc.integer({ min: 1, max: 3 }),
    dilation: fc.integer({ min: 1, max: 2 }),
    low: fc.integer({ min: 0, max: 2 }),
    high: fc.integer({ min: 0, max: 2 }),
    ceilMode: fc.boolean(),
  })
  .filter(({ size, kernel, dilation, low, high }) => size + low + high >= dilation * (kernel - 1) + 1)
  .filter(({ kernel, low, high, dilation }) => low + high < dilation * (kernel - 1) + 1)
  // Between the taps of a dilated window a short line may lie unseen: what then is largest stands nowhere.
  .filter((line) => windowsOf(line).every(({ inside }) => inside.length > 0));

/** The places of each window of a line: those in the axis, and how many more lie in the padding. */
function windowsOf(line: Line): { inside: number[]; padded: number }[] {
  const { size, kernel, stride, dilation, low, high, ceilMode } = line;
  const free = size + low + high - (dilation * (kernel - 1) + 1);
  let count = (ceilMode ? Math.ceil(free / stride) : Math.floor(free / stride)) + 1;
  if (ceilMode && (count - 1) * stride >= size + low) count -= 1;
  return Array.from({ length: count }, (_, i) => {
    const places = Array.from({ length: kernel }, (__, k) => i * stride - low + k * dilation);
    const inside = places.filter((place) => place >= 0 && place < size);
    return { inside, padded: places.filter((place) => place >= -low && place < size + high).length };
  });
}

const valueAt = (i: number): number => Math.sin(3 * i + 1);

function optionsOf({ stride, dilation, low, high, ceilMode }: Line): sn.PoolOptions {
  return { stride, dilation, padding: [[low, high]], ceilMode };
}

/** The law of one pool, elementwise to the last bits of f32. */
async function compare(actual: sn.Tensor, expected: readonly number[]): Promise<void> {
  const data = (await actual.data()) as Float32Array;
  expect(data.length).toBe(expected.length);
  expected.forEach((value, i) => expect(data[i]).toBeCloseTo(value, 5));
}

describe('a pool', () => {
  test('of one axis is what loops over its windows give', async () => {
    const seen: Line[] = [];
    checkLaw(60, lines, (line) => void seen.push(line));
    for (const line of seen) {
      const x = sn.tensor(
        Float32Array.from({ length: line.size }, (_, i) => valueAt(i)),
        { shape: [1, 1, line.size] },
      );
      const windows = windowsOf(line);
      const values = windows.map(({ inside }) => inside.map(valueAt));
      const sum = (list: readonly number[]): number => list.reduce((p, q) => p + q, 0);
      const options = optionsOf(line);
      await compare(
        sn.maxPool1d(x, line.kernel, options),
        values.map((list) => Math.max(...list)),
      );
      await compare(
        sn.maxPool1dWithIndices(x, line.kernel, options)[1],
        windows.map(({ inside }) =>
          inside.find((place) => valueAt(place) === Math.max(...inside.map(valueAt)))!,
        ),
      );
      await compare(
        sn.avgPool1d(x, line.kernel, { ...options, countIncludePad: false }),
        values.map((list) => sum(list) / list.length),
      );
      await compare(
        sn.avgPool1d(x, line.kernel, options),
        values.map((list, i) => sum(list) / windows[i]!.padded),
      );
      await compare(
        sn.lpPool1d(x, line.kernel, { ...options, p: 4 }),
        values.map((list) => sum(list.map((value) => value ** 4)) ** (1 / 4)),
      );
      await compare(
        sn.lpPool1d(x, line.kernel, { ...options, p: 3 }),
        values.map((list) => Math.cbrt(sum(list.map((value) => Math.abs(value) ** 3)))),
      );
    }
  });

  test('of three axes is one of two, then one of the third', async () => {
    const x = sn.tensor(
      Float32Array.from({ length: 2 * 4 * 5 * 6 }, (_, i) => valueAt(i)),
      { shape: [1, 2, 4, 5, 6] },
    );
    const whole = sn.maxPool3d(x, [2, 3, 2], { stride: [1, 2, 2] });
    const planes = sn.maxPool2d(x.reshape([8, 5, 6]), [3, 2], { stride: 2 });
    const lines2 = planes.reshape([2, 4, planes.shape[1]! * planes.shape[2]!]).transpose(1, 2);
    const last = sn.maxPool1d(lines2, 2, { stride: 1 }).transpose(1, 2);
    await compare(whole, [...((await last.data()) as Float32Array)]);
    const [values, places] = sn.maxPool3dWithIndices(x, [2, 3, 2], { stride: [1, 2, 2] });
    await compare(sn.gather(x.reshape([2, 120]), 1, places.reshape([2, places.size / 2])), [
      ...((await values.data()) as Float32Array),
    ]);
  });

  test('of integers keeps them', async () => {
    const x = sn.tensor(Int32Array.of(-5, -7, -6, -9), { shape: [1, 1, 4] });
    const out = sn.maxPool1d(x, 2, { padding: [[1, 0]], stride: 1 });
    expect(out.dtype).toBe('i32');
    expect([...(await out.data())]).toEqual([-5, -5, -6, -6]);
  });
});

describe('padding of two ends', () => {
  const x = sn.tensor(
    Float32Array.from({ length: 2 * 5 * 4 }, (_, i) => valueAt(i)),
    { shape: [1, 2, 5, 4] },
  );
  const weight = sn.tensor(
    Float32Array.from({ length: 2 * 3 * 3 * 2 }, (_, i) => valueAt(i + 7)),
    { shape: [3, 2, 3, 2] },
  );

  test('of a convolution is that of its input', async () => {
    const padding = [
      [2, 0],
      [0, 1],
    ] as const;
    const padded = sn.conv2d(sn.pad(x, padding), weight, undefined, { stride: 2 });
    const data = (await padded.data()) as Float32Array;
    await compare(sn.conv2d(x, weight, undefined, { stride: 2, padding }), [...data]);
  });

  test('of a transposed convolution is cut off', async () => {
    const turned = weight.permute([1, 0, 2, 3]);
    const whole = sn.convTranspose2d(x, turned, undefined, { stride: 2 });
    const cut = whole.narrow(2, 2, whole.shape[2]! - 2).narrow(3, 0, whole.shape[3]! - 1);
    const data = (await cut.data()) as Float32Array;
    await compare(
      sn.convTranspose2d(x, turned, undefined, {
        stride: 2,
        padding: [
          [2, 0],
          [0, 1],
        ],
      }),
      [...data],
    );
  });
});

describe('an image read at the places of a grid', () => {
  const image = sn.tensor(
    Float32Array.from({ length: 12 }, (_, i) => valueAt(i)),
    { shape: [1, 1, 3, 4] },
  );
  const identity = sn.tensor([
    [
      [1, 0, 0],
      [0, 1, 0],
    ],
  ]);

  test.each(['linear', 'nearest', 'cubic'] as const)('that is its own is itself (%s)', async (mode) => {
    for (const alignCorners of [true, false]) {
      const grid = sn.affineGrid(identity, [1, 1, 3, 4], { alignCorners });
      const data = (await image.data()) as Float32Array;
      await compare(sn.gridSample(image, grid, { mode, alignCorners }), [...data]);
    }
  });

  test('between two elements is their mean', async () => {
    const half = sn.tensor([[[[0, 0]]]]);
    const data = (await image.data()) as Float32Array;
    await compare(sn.gridSample(image, half, { alignCorners: true }), [(data[5]! + data[6]!) / 2]);
  });

  test.each([
    ['zeros', 0],
    ['border', 11],
    ['reflection', 7],
  ] as const)('beyond its last corner follows the padding mode (%s)', async (paddingMode, place) => {
    // One row below the image, at its last column.
    const below = sn.tensor([[[[1, 2]]]]);
    const data = (await image.data()) as Float32Array;
    const expected = paddingMode === 'zeros' ? 0 : data[place]!;
    await compare(sn.gridSample(image, below, { paddingMode, alignCorners: true, mode: 'nearest' }), [
      expected,
    ]);
  });

  test.each(['border', 'reflection'] as const)(
    'takes as PyTorch what is no number for −1, and the edges for outside (%s)',
    async (paddingMode) => {
      const row = sn.tensor([[[[1, 2, 3, 4]]]]);
      for (const alignCorners of [true, false]) {
        const f = (grid: sn.Tensor): sn.Tensor => sn.gridSample(row, grid, { paddingMode, alignCorners });
        const edges = alignCorners ? [-1, 1] : [-0.75, 0.75];
        const grid = sn.tensor([[[...edges.map((x) => [x, 0]), [0.5, 0], [NaN, 0]]]]);
        await compare(f(grid), alignCorners ? [1, 4, 3.25, 1] : [1, 4, 3.5, 1]);
        const slopes = (await sn
          .grad((g: sn.Tensor) => f(g).sum())(grid)
          .data()) as Float32Array;
        expect([...slopes]).toEqual([0, 0, 0, 0, alignCorners ? 1.5 : 2, 0, 0, 0]);
        const nearest = sn.gridSample(row, grid, { paddingMode, alignCorners, mode: 'nearest' });
        expect([...(await nearest.data())].map(Number)[3]).toBe(1);
      }
    },
  );

  test('is computed in f64 where the image is of doubles', async () => {
    const f64 = { dtype: 'f64' } as const;
    const ramp = sn.arange(7, undefined, 1, f64).reshape([1, 1, 1, 7]);
    for (const alignCorners of [true, false]) {
      // A third of the way from −1 to 1, which is no number of f32.
      const theta = sn.tensor(
        [
          [
            [1, 0, -1 / 3],
            [0, 1, 0],
          ],
        ],
        f64,
      );
      const grid = sn.affineGrid(theta, [1, 1, 1, 1], { alignCorners });
      const read = Number(await sn.gridSample(ramp, grid, { alignCorners }).item());
      expect(Math.abs(read - (alignCorners ? 2 : 3 - 7 / 6))).toBeLessThan(1e-14);
    }
  });

  test('has gradients in the places', async () => {
    const f = (grid: sn.Tensor): sn.Tensor => sn.gridSample(image, grid, { alignCorners: true }).sum();
    const at = (p: number, q: number): sn.Tensor => sn.tensor([[[[p, q]]]]);
    const slope = (await sn.grad(f)(at(0.3, -0.4)).data()) as Float32Array;
    const step = 1e-2;
    const rise = async (p: number, q: number): Promise<number> =>
      (Number(await f(at(0.3 + p, -0.4 + q)).item()) - Number(await f(at(0.3 - p, -0.4 - q)).item())) /
      (2 * step);
    expect(slope[0]).toBeCloseTo(await rise(step, 0), 3);
    expect(slope[1]).toBeCloseTo(await rise(0, step), 3);
  });
});

describe('ctcLoss of no steps', () => {
  const steps = sn.linspace(0, 11, 12).reshape([2, 2, 3]).logSoftmax(2);
  const words = sn.tensor([[1], [2]], { dtype: 'i32' });

  test('is 0 of no labels and infinite of labels, without gradients', async () => {
    const loss = (x: sn.Tensor, lengths: number[]): sn.Tensor =>
      sn.ctcLoss(x, words, [0, 2], lengths, { reduction: 'none' });
    const [none, some] = (await loss(steps, [0, 1]).data()) as Float32Array;
    expect(none).toBe(0);
    expect(some).toBeGreaterThan(0);
    expect((await loss(steps, [1, 1]).data())[0]).toBe(Infinity);
    const slopes = (await sn
      .grad((x: sn.Tensor) => loss(x, [0, 1]).sum())(steps)
      .data()) as Float32Array;
    expect([...slopes].filter((_, i) => i % 6 < 3)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('of labels is 0 where infinite losses are', async () => {
    const loss = sn.ctcLoss(steps, words, [0, 2], [1, 1], { reduction: 'none', zeroInfinity: true });
    expect((await loss.data())[0]).toBe(0);
  });
});

test('a compiled function may give back what it captured', async () => {
  const captured = sn.tensor([1, 2]);
  const both = sn.compile((x: sn.Tensor) => [captured, x.add(1)] as const);
  const [same, more] = both(sn.tensor([5]));
  expect([...(await same.data()), ...(await more.data())]).toEqual([1, 2, 6]);
});
