// Layouts against what they stand for: lists of places. Every change of a layout is the same change
// of the list.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { asStrided, fromBuffer, setDevice, tensor } from '../../src/index.ts';
import { arrange, Layout, layoutOf, uploadBuffer, type MemoryFormat } from '../../src/interop/index.ts';
import { checkLaw } from '../support/property.ts';

/** The places of all elements in C-order. */
function placesOf({ shape, strides, offset }: Layout): number[] {
  return shape.reduce(
    (places, size, axis) =>
      places.flatMap((place) => Array.from({ length: size }, (_, i) => place + i * strides[axis]!)),
    [offset],
  );
}

const axes = fc.array(
  fc.record({ size: fc.integer({ min: 0, max: 4 }), stride: fc.integer({ min: -7, max: 7 }) }),
  { maxLength: 4 },
);
/** Any layout at all, far enough from place 0. */
const layouts = axes.map(
  (given) =>
    new Layout(
      given.map(({ size }) => size),
      given.map(({ stride }) => stride),
      100,
    ),
);
/** What movements make of layouts in C-order. */
const views = fc
  .record({
    shape: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    order: fc.array(fc.nat(), { maxLength: 4, minLength: 4 }),
    range: fc.record({
      axis: fc.nat(3),
      start: fc.integer({ min: -4, max: 4 }),
      step: fc.constantFrom(-2, -1, 1, 2),
    }),
  })
  .map(({ shape, order, range }) => {
    const from = new Layout(shape);
    const axes = shape.map((_, i) => i).sort((a, b) => order[a]! - order[b]! || a - b);
    return from.permute(axes).slice(range.axis % shape.length, { start: range.start, step: range.step });
  });

test('permuting and exchanging axes moves the list', () => {
  checkLaw(100, views, (layout) => {
    const order = layout.shape.map((_, i) => i).reverse();
    const turned = layout.permute(order);
    expect(placesOf(turned.permute(order))).toEqual(placesOf(layout));
    expect(placesOf(turned).sort()).toEqual(placesOf(layout).sort());
    if (layout.rank > 1) expect(layout.transpose(0, -1).transpose(-1, 0).equals(layout)).toBe(true);
    const index = layout.shape.map((size) => size - 1);
    if (layout.size > 0) expect(turned.placeOf(index.toReversed())).toBe(layout.placeOf(index));
  });
});

test('slices, selections and turns are those of arrays', () => {
  const cases = fc.record({
    size: fc.integer({ min: 0, max: 6 }),
    start: fc.option(fc.integer({ min: -8, max: 8 }), { nil: undefined }),
    end: fc.option(fc.integer({ min: -8, max: 8 }), { nil: undefined }),
    step: fc.constantFrom(1, 2, 3),
  });
  checkLaw(200, cases, ({ size, start, end, step }) => {
    const layout = new Layout([size, 2], [5, 1], 3);
    const rows = Array.from({ length: size }, (_, i) => [5 * i + 3, 5 * i + 4]);
    const range = { ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) };
    const taken = rows.slice(start, end).filter((_, i) => i % step === 0);
    expect(placesOf(layout.slice(0, { ...range, step }))).toEqual(taken.flat());
    expect(placesOf(layout.flip(0))).toEqual(rows.toReversed().flat());
    if (size > 0) expect(placesOf(layout.select(0, -1))).toEqual(rows.at(-1));
  });
});

test('reshaping gives the same list, and gives up only where no strides do', () => {
  const cases = fc.tuple(views, fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }));
  checkLaw(400, cases, ([layout, wanted]) => {
    // A shape of as many elements: what is wanted as far as it divides.
    const shape: number[] = [];
    let left = layout.size;
    for (const size of wanted) if (left > 0 && left % size === 0) [left] = [left / (shape.push(size), size)];
    shape.push(left);
    const places = placesOf(layout);
    const made = layout.reshape(shape);
    if (made !== undefined) {
      expect(placesOf(made)).toEqual(places);
      return;
    }
    // The strides that the list would have, far enough from the start of the memory to run backwards.
    let period = layout.size;
    const strides = shape.map((size) => {
      period /= size;
      return size === 1 ? 1 : places[period]! - places[0]!;
    });
    const far = places.map((place) => place + 100_000);
    expect(placesOf(new Layout(shape, strides, far[0]))).not.toEqual(far);
  });
});

test('spreading repeats the list', () => {
  const layout = new Layout([2, 1], [3, 1], 1);
  expect(placesOf(layout.expand([2, 2, 3]))).toEqual([1, 1, 1, 4, 4, 4, 1, 1, 1, 4, 4, 4]);
  expect(() => layout.expand([3, 1])).toThrow(/does not spread/);
});

test('bounds, density and overlaps are those of the list', () => {
  checkLaw(500, fc.tuple(layouts, layouts), ([one, other]) => {
    const [places, others] = [placesOf(one), placesOf(other)];
    const distinct = new Set(places);
    expect(one.hasOverlap).toBe(distinct.size < places.length);
    expect(one.overlaps(other)).toBe(others.some((place) => distinct.has(place)));
    if (places.length === 0) return;
    const [low, high] = [Math.min(...places), Math.max(...places)];
    expect([one.least, one.greatest, one.extent]).toEqual([low, high, high + 1]);
    expect(one.isDense).toBe(distinct.size === places.length && high - low + 1 === places.length);
    expect(() => one.checkWithin(high + 1)).not.toThrow();
    expect(() => one.checkWithin(high)).toThrow(/reaches place/);
  });
});

test('overlaps of large layouts are found without looking at each place', () => {
  const large = new Layout([4096, 4096, 64], [4096 * 64, 64, 1]);
  expect(large.hasOverlap).toBe(false);
  expect(new Layout([4096, 4096, 65], [4096 * 64, 64, 1]).hasOverlap).toBe(true);
  const odd = new Layout([2 ** 20, 2 ** 20], [2, 2 ** 21], 1);
  const even = new Layout([2 ** 20, 2 ** 20], [2, 2 ** 21], 0);
  expect([odd.overlaps(even), odd.overlaps(odd)]).toEqual([false, true]);
});

test('contiguity is PyTorch’s: axes of one index do not count', () => {
  expect(new Layout([2, 1, 3], [3, 77, 1]).isContiguous()).toBe(true);
  expect(new Layout([2, 3], [3, 1], 5).isContiguous()).toBe(true);
  expect(new Layout([2, 3], [1, 2]).isContiguous()).toBe(false);
  expect(new Layout([]).isContiguous()).toBe(true);
  expect(new Layout([0, 3], [9, 9]).isContiguous()).toBe(true);
  const last = Layout.contiguous([2, 3, 4, 5], 'channelsLast');
  // torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
  expect(last.strides).toEqual([60, 1, 15, 3]);
  expect(last.memoryFormat).toBe('channelsLast');
  expect(last.isDense).toBe(true);
  // torch.empty(2, 3, 4, 5, 6, memory_format=torch.channels_last_3d).stride()
  expect(Layout.contiguous([2, 3, 4, 5, 6], 'channelsLast3d').strides).toEqual([360, 1, 90, 18, 3]);
  expect(Layout.contiguous([2, 3, 4, 5]).memoryFormat).toBe('contiguous');
  expect(() => Layout.contiguous([2, 3], 'channelsLast')).toThrow(/channelsLast is of 4 axes/);
});

test('what lies nowhere is refused', () => {
  expect(() => new Layout([2], [-1])).toThrow(/before the memory/);
  expect(() => new Layout([2], [1, 1])).toThrow(/each of the 1 axes/);
  expect(() => new Layout([2]).placeOf([2])).toThrow(/no element/);
  expect(() => new Layout([2, 3]).reshape([7])).toThrow(/has 6 elements/);
  expect(() => new Layout([2, 3]).transpose(0, 2)).toThrow(/axis 2 is out of range for rank 2/);
});

test('a tensor laid out in memory is the tensor again when it is read by the layout', async () => {
  setDevice('wasm:1');
  const x = tensor(
    Array.from({ length: 24 }, (_, i) => i),
    { shape: [1, 2, 3, 4] },
  );
  expect(layoutOf(x).equals(new Layout([1, 2, 3, 4]))).toBe(true);
  const formats: MemoryFormat[] = ['contiguous', 'channelsLast'];
  const all = [
    ...formats.map((format) => Layout.contiguous(x.shape, format)),
    Layout.contiguous(x.shape).flip(3),
    new Layout([1, 2, 3, 4], [0, 40, 11, 2], 3),
  ];
  for (const layout of all) {
    const memory = arrange(x, layout);
    expect(memory.shape).toEqual([layout.extent]);
    const { shape, strides, offset } = layout;
    expect(await asStrided(memory, shape, strides, offset).array()).toEqual(await x.array());
    const buffer = await uploadBuffer((await memory.data()) as Float32Array);
    expect(await fromBuffer(buffer, { shape, strides, offset }).array()).toEqual(await x.array());
    buffer.release();
  }
  expect(() => arrange(x, new Layout([1, 2, 3, 4], [0, 0, 4, 1]))).toThrow(/two elements at one place/);
  expect(() => arrange(x, new Layout([24]))).toThrow(/is not of/);
  setDevice(undefined);
});
