import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Node } from '../../src/ir/graph.ts';
import type { Attrs, Monoid } from '../../src/ir/ops.ts';
import { combineMonoid } from '../../src/ir/interpret/scalar.ts';
import { hostArray, type HostArray, type Scalar } from '../../src/ir/value.ts';
import { run, list, at, indices, tabulate, arrayOf, expectSame } from './arrays.ts';

const reduceOf = (x: HostArray, monoid: Monoid, axes: readonly number[]): HostArray =>
  run([x], (b, p) => b.add('reduce', [p!], { monoid, axes }) as Node);
const allAxes = (x: HostArray): number[] => x.shape.map((_, axis) => axis);
const numeric: readonly Monoid[] = ['sum', 'prod', 'min', 'max'];

const argReduceOf = (x: HostArray, monoid: 'min' | 'max', axis: number): HostArray =>
  run([x], (b, p) => b.add('argReduce', [p!], { monoid, axis }) as Node);
const flip = (x: HostArray, axis: number): HostArray =>
  tabulate(x.dtype, x.shape, (index) => at(x, index.with(axis, x.shape[axis]! - 1 - index[axis]!)));

describe('reduce', () => {
  test('over all axes it is the fold from the identity, empty arrays included', () => {
    for (const dtype of ['i8', 'u16', 'i32', 'u32', 'i64', 'bool', 'f64'] as const) {
      for (const monoid of dtype === 'bool' ? (['and', 'or'] as const) : numeric) {
        const { identity, combine } = combineMonoid(monoid, dtype);
        fc.assert(
          fc.property(arrayOf(dtype), (x) => {
            const folded = list(x).reduce((sum, value) => combine(sum, value), identity);
            expect(list(reduceOf(x, monoid, allAxes(x)))).toEqual([folded]);
          }),
          { numRuns: 40 },
        );
      }
    }
  });

  const axesOf = arrayOf('i32', { minRank: 1 }).chain((x) =>
    fc.tuple(fc.constant(x), fc.subarray(allAxes(x))),
  );
  test('one step per axis, last first, equals all axes at once', () => {
    fc.assert(
      fc.property(axesOf, fc.constantFrom(...numeric), ([x, axes], monoid) => {
        const stepwise = axes.toReversed().reduce((part, axis) => reduceOf(part, monoid, [axis]), x);
        expectSame(reduceOf(x, monoid, axes), stepwise);
      }),
    );
  });

  test('float sums are exact to one rounding', () => {
    expect(list(reduceOf(hostArray('f32', [4], [1e8, 1, -1e8, 0.5]), 'sum', [0]))).toEqual([1.5]);
    // Sequential f16 addition would stop at 2048.
    expect(list(reduceOf(hostArray('f16', [4096], new Array(4096).fill(1)), 'sum', [0]))).toEqual([4096]);
    // The exact 1 + 2⁻⁸ + 2⁻³⁰ is 1 + 2⁻⁸ in f32, which kernels accumulate in, and that is a tie of bf16.
    expect(list(reduceOf(hostArray('bf16', [3], [1, 2 ** -8, 2 ** -30]), 'sum', [0]))).toEqual([1]);
    expect(list(reduceOf(hostArray('f16', [2], [60000, 60000]), 'sum', [0]))).toEqual([Infinity]);
  });

  test('NaN wins in min and max, and empty folds give the identity', () => {
    for (const dtype of ['f16', 'bf16', 'f32', 'f64'] as const) {
      for (const monoid of ['min', 'max'] as const) {
        expect(list(reduceOf(hostArray(dtype, [3], [1, NaN, 2]), monoid, [0]))).toEqual([NaN]);
      }
      const empty = hostArray(dtype, [2, 0], []);
      expect(numeric.map((monoid) => list(reduceOf(empty, monoid, [1])))).toEqual([
        [0, 0],
        [1, 1],
        [Infinity, Infinity],
        [-Infinity, -Infinity],
      ]);
    }
  });

  test('integers wrap at their own width', () => {
    expect(list(reduceOf(hostArray('i8', [2], [100, 100]), 'sum', [0]))).toEqual([-56]);
    expect(list(reduceOf(hostArray('u32', [2], [0x80000001, 0x80000001]), 'prod', [0]))).toEqual([1]);
    expect(list(reduceOf(hostArray('i64', [2], [2n ** 63n - 1n, 1n]), 'sum', [0]))).toEqual([-(2n ** 63n)]);
  });
});

describe('argReduce', () => {
  test('the first extremum wins, and the first NaN above all', () => {
    expect(list(argReduceOf(hostArray('f32', [5], [1, 7, 3, 7, 1]), 'max', 0))).toEqual([1]);
    expect(list(argReduceOf(hostArray('f32', [5], [1, 7, 3, 7, 1]), 'min', 0))).toEqual([0]);
    // torch.argmax and torch.argmin of [1, nan, 5, nan] are both 1.
    expect(list(argReduceOf(hostArray('f32', [4], [1, NaN, 5, NaN]), 'max', 0))).toEqual([1]);
    expect(list(argReduceOf(hostArray('f32', [4], [1, NaN, 5, NaN]), 'min', 0))).toEqual([1]);
    expect(list(argReduceOf(hostArray('f32', [2], [-Infinity, -Infinity]), 'max', 0))).toEqual([0]);
    expect(list(argReduceOf(hostArray('u64', [3], [1n, 2n ** 64n - 1n, 2n]), 'max', 0))).toEqual([1]);
  });

  const picked = arrayOf('i32', { minRank: 1, min: 1 }).chain((x) =>
    fc.tuple(fc.constant(x), fc.nat(x.shape.length - 1)),
  );
  test('the element it names is the extremum, and none before it is', () => {
    fc.assert(
      fc.property(picked, fc.constantFrom('min' as const, 'max' as const), ([x, axis], monoid) => {
        const [best, extremum] = [argReduceOf(x, monoid, axis), reduceOf(x, monoid, [axis])];
        expect(best.dtype).toBe('i32');
        for (const index of indices(best.shape)) {
          const line = Array.from({ length: x.shape[axis]! }, (_, i) => at(x, index.toSpliced(axis, 0, i)));
          expect(at(best, index)).toBe(line.indexOf(at(extremum, index)));
        }
      }),
    );
  });
});

describe('scan', () => {
  type ScanAttrs = Attrs<'scan'>;
  const scanOf = (x: HostArray, attrs: ScanAttrs): HostArray =>
    run([x], (b, p) => b.add('scan', [p!], attrs) as Node);
  const scanned = arrayOf('i32', { minRank: 1 }).chain((x) =>
    fc.tuple(fc.constant(x), fc.nat(x.shape.length - 1), fc.constantFrom(...numeric)),
  );

  test('each element is the reduction of those up to it; exclusive leaves itself out', () => {
    fc.assert(
      fc.property(scanned, ([x, axis, monoid]) => {
        const { identity, combine } = combineMonoid(monoid, 'i32');
        const upTo = (index: number[], count: number): Scalar =>
          Array.from({ length: count }, (_, i) => at(x, index.with(axis, i))).reduce(
            (a, b) => combine(a, b),
            identity,
          );
        for (const exclusive of [false, true]) {
          expectSame(
            scanOf(x, { monoid, axis, reverse: false, exclusive }),
            tabulate('i32', x.shape, (index) => upTo(index, index[axis]! + (exclusive ? 0 : 1))),
          );
        }
      }),
    );
  });

  test('a reverse scan is the flipped scan of the flipped array', () => {
    fc.assert(
      fc.property(scanned, fc.boolean(), ([x, axis, monoid], exclusive) => {
        expectSame(
          scanOf(x, { monoid, axis, reverse: true, exclusive }),
          flip(scanOf(flip(x, axis), { monoid, axis, reverse: false, exclusive }), axis),
        );
      }),
    );
  });

  test('floats round once per element, NaN sticks, bool folds', () => {
    const cumsum = { monoid: 'sum', axis: 0, reverse: false, exclusive: false } as const;
    expect(list(scanOf(hostArray('f32', [3], [1e8, 1, -1e8]), cumsum))).toEqual([1e8, 1e8, 1]);
    const cummax = { ...cumsum, monoid: 'max' } as const;
    expect(list(scanOf(hostArray('f16', [4], [1, NaN, 2, 3]), cummax))).toEqual([1, NaN, NaN, NaN]);
    expect(list(scanOf(hostArray('bool', [3], [1, 0, 1]), { ...cumsum, monoid: 'and' }))).toEqual([1, 0, 0]);
    expect(list(scanOf(hostArray('i64', [2], [1n, 2n]), cumsum))).toEqual([1n, 3n]);
  });
});
