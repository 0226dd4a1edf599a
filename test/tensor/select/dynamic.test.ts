// Slices at places that are data: against a walk over the elements, on every device, with starts that leave the tensor.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';
import { holds, read } from '../ops/support.ts';

const runs = (device: string): number => ({ interpreter: 60, wasm: 10 })[device] ?? 2;

/** How the starts of a case are given. */
const forms = ['numbers', 'tensors', 'mixed', 'together'] as const;
const trial = fc
  .array(fc.tuple(fc.nat(4), fc.nat(4), fc.integer({ min: -9, max: 9 })), { minLength: 1, maxLength: 3 })
  .chain((axes) =>
    fc.record({
      shape: fc.constant(axes.map(([length, more]) => length + more)),
      sizes: fc.constant(axes.map(([length]) => length)),
      starts: fc.constant(axes.map(([, , start]) => start)),
      form: fc.constantFrom(...forms),
    }),
  );

function given(starts: readonly number[], form: (typeof forms)[number]): sn.SliceStarts {
  const place = (start: number): sn.Tensor => sn.tensor(start, { dtype: 'i32' });
  switch (form) {
    case 'numbers':
      return starts;
    case 'tensors':
      return starts.map(place);
    case 'mixed':
      return starts.map((start, axis) => (axis % 2 === 0 ? place(start) : start));
    case 'together':
      return sn.tensor([...starts], { dtype: 'i64', shape: [starts.length] });
  }
}

const clamped = (shape: readonly number[], sizes: readonly number[], starts: readonly number[]): number[] =>
  starts.map((start, axis) => {
    const from = start < 0 ? start + shape[axis]! : start;
    return Math.min(Math.max(from, 0), shape[axis]! - sizes[axis]!);
  });

/** For each element of the shape whether it lies in the slice. */
function inside(shape: readonly number[], sizes: readonly number[], first: readonly number[]): boolean[] {
  const count = shape.reduce((product, size) => product * size, 1);
  return Array.from({ length: count }, (_, flat) => {
    let rest = flat;
    let isIn = true;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const place = rest % shape[axis]!;
      rest = (rest - place) / shape[axis]!;
      isIn &&= place >= first[axis]! && place < first[axis]! + sizes[axis]!;
    }
    return isIn;
  });
}

const numbered = (shape: readonly number[]): sn.Tensor =>
  sn
    .arange(
      shape.reduce((product, size) => product * size, 1),
      undefined,
      undefined,
      { dtype: 'f32' },
    )
    .reshape(shape);

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('what is read and what is written is the slice moved inside', async () => {
    await holds(runs(device), trial, async ({ shape, sizes, starts, form }) => {
      const x = numbered(shape);
      const isIn = inside(shape, sizes, clamped(shape, sizes, starts));
      const part = sn.dynamicSlice(x, given(starts, form), sizes);
      expect(part.shape).toEqual(sizes);
      expect(await read(part)).toEqual(isIn.flatMap((hit, at) => (hit ? [at] : [])));
      const written = sn.dynamicUpdateSlice(x, part.neg().sub(1), given(starts, form));
      expect(await read(written)).toEqual(isIn.map((hit, at) => (hit ? -at - 1 : at)));
    });
  });

  test('derivatives go where elements went, also at a place for each example of a batch', async () => {
    const x = sn.tensor([1, 2, 3, 4, 5, 6]).reshape([2, 3]);
    const at = sn.tensor([5, -2], { dtype: 'i32' });
    const cube = (y: sn.Tensor): sn.Tensor => y.mul(y).mul(y).sum();
    expect(await read(sn.grad((y: sn.Tensor) => cube(sn.dynamicSlice(y, at, [1, 2])))(x))).toEqual([
      0, 0, 0, 0, 75, 108,
    ]);
    const v = sn.tensor([[2, 3]]);
    const write = (y: sn.Tensor, u: sn.Tensor): sn.Tensor => cube(sn.dynamicUpdateSlice(y, u, at));
    const [dx, dv] = sn.grad((both: [sn.Tensor, sn.Tensor]) => write(...both))([x, v]);
    expect(await read(dx)).toEqual([3, 12, 27, 48, 0, 0]);
    expect(await read(dv)).toEqual([12, 27]);
    const rows = sn.vmap((start: sn.Tensor) => sn.dynamicSlice(x, [0, start], [2, 1]))(
      sn.tensor([0, 2], { dtype: 'i32' }),
    );
    expect(await read(rows)).toEqual([1, 4, 3, 6]);
  });

  test('a donated cache is written in a compiled function, step by step', async () => {
    const step = sn.compile(
      (cache: sn.Tensor, row: sn.Tensor, at: sn.Tensor) => sn.dynamicUpdateSlice(cache, row, [at, 0]),
      { donate: [0] },
    );
    let cache = sn.zeros([4, 2]);
    for (let i = 0; i < 4; i++) cache = step(cache, sn.full([1, 2], i + 1), sn.tensor(i, { dtype: 'i32' }));
    expect(await read(cache)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });
});

test('starts of any integer type are brought inside', async () => {
  sn.setDevice('interpreter');
  const x = sn.tensor([1, 2, 3, 4]);
  const from = (start: sn.Tensor): Promise<number[]> => read(sn.dynamicSlice(x, [start], [2]));
  expect(await from(sn.tensor(2 ** 31 + 1, { dtype: 'u32' }))).toEqual([3, 4]);
  expect(await from(sn.tensor(1n << 40n, { dtype: 'i64' }))).toEqual([3, 4]);
  expect(await from(sn.tensor(-(1n << 40n), { dtype: 'i64' }))).toEqual([1, 2]);
});

test('what does not fit is refused by name', () => {
  const x = sn.zeros([2, 3]);
  expect(() => sn.dynamicSlice(x, [0, 0], [3, 1])).toThrow(/dynamicSlice.*\[3,1\] does not fit.*f32\[2,3\]/s);
  expect(() => sn.dynamicSlice(x, [0], [1, 1])).toThrow(/expects 2 starts.*got 1/);
  expect(() => sn.dynamicSlice(x, sn.tensor([0, 1]), [1, 1])).toThrow(/dynamicSlice.*integer/);
  expect(() => sn.dynamicSlice(x, [0, sn.tensor([0, 1], { dtype: 'i32' })], [1, 1])).toThrow(/one element/);
  expect(() => sn.dynamicUpdateSlice(x, sn.zeros([1, 4]), [0, 0])).toThrow(/the update \[1,4\] does not fit/);
  expect(() => sn.dynamicUpdateSlice(x, sn.zeros([1, 1], { dtype: 'f64' }), [0, 0])).toThrow(/E_DTYPE|dtype/);
});
