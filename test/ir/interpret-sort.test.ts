import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DType } from '../../src/ir/dtype.ts';
import type { Node } from '../../src/ir/graph.ts';
import type { ScatterMode } from '../../src/ir/ops.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { hostArray, type HostArray, type Scalar } from '../../src/ir/value.ts';
import { checkLaw } from '../support/property.ts';
import { specialFloats } from '../support/random/values.ts';
import { at, expectSame, run, shapeOf, tabulate } from './arrays.ts';

const orderOf = (x: HostArray, axis: number, descending: boolean): HostArray =>
  run([x], (b, p) => b.add('argSort', [p!], { axis, descending }) as Node);

const dtypes: readonly DType[] = ['f32', 'f16', 'bf16', 'f64', 'i32', 'u8', 'i64', 'bool'];

/** An array with few distinct values, so that many are equal. */
const sortable = shapeOf({ minRank: 1, maxRank: 3, min: 0 }).chain((shape) =>
  fc.constantFrom(...dtypes).chain((dtype) => {
    const special = fc.constantFrom(...specialFloats);
    const element: fc.Arbitrary<Scalar> =
      dtype === 'bool' ? fc.nat(1) : dtype.startsWith('i') || dtype === 'u8' ? fc.bigInt(0n, 3n) : special;
    return fc.record({
      x: fc
        .array(element, { minLength: sizeOf(shape), maxLength: sizeOf(shape) })
        .map((values) => hostArray(dtype, shape, values)),
      axis: fc.nat(shape.length - 1),
      descending: fc.boolean(),
    });
  }),
);

/** `a` comes strictly before `b` in ascending order: NaN after every number. */
const precedes = (a: Scalar, b: Scalar): boolean => a < b || (!Number.isNaN(a) && Number.isNaN(b));

describe('argSort', () => {
  test('gives a permutation of each line', () => {
    checkLaw(200, sortable, ({ x, axis, descending }) => {
      const order = orderOf(x, axis, descending);
      const identity = tabulate('i32', x.shape, (place) => place[axis]!);
      expectSame(orderOf(order, axis, false), inverse(order, axis, identity));
    });
  });

  test('puts neighbours in order, and equal ones as they stood, in both directions', () => {
    checkLaw(300, sortable, ({ x, axis, descending }) => {
      const order = orderOf(x, axis, descending);
      expectSame(
        tabulate('bool', x.shape, (place) => {
          if (place[axis] === 0) return 1;
          const [i, j] = [place.with(axis, place[axis]! - 1), place].map((p) => Number(at(order, p)));
          const [a, b] = [at(x, place.with(axis, i!)), at(x, place.with(axis, j!))];
          const [low, high] = descending ? [b, a] : [a, b];
          return precedes(low, high) || (!precedes(high, low) && i! < j!) ? 1 : 0;
        }),
        tabulate('bool', x.shape, () => 1),
      );
    });
  });

  test('counts −0 as 0 and every NaN as the greatest', () => {
    const x = hostArray('f32', [6], [NaN, 0, -0, -Infinity, NaN, Infinity]);
    expect([...orderOf(x, 0, false).data]).toEqual([3, 1, 2, 5, 0, 4]);
    expect([...orderOf(x, 0, true).data]).toEqual([0, 4, 5, 1, 2, 3]);
  });
});

/** Where each position stands in the order. */
function inverse(order: HostArray, axis: number, identity: HostArray): HostArray {
  return run([identity, order], (b, p, q) => b.add('permuteScatter', [p!, q!], { axis }) as Node);
}

describe('permuteScatter', () => {
  test('undoes gather along a permutation', () => {
    checkLaw(200, sortable, ({ x, axis, descending }) => {
      const back = run([x], (b, p) => {
        const order = b.add('argSort', [p!], { axis, descending }) as Node;
        const sorted = b.add('gather', [p!, order], { axis }) as Node;
        return b.add('permuteScatter', [sorted, order], { axis }) as Node;
      });
      expectSame(back, x);
    });
  });
});

describe('radixRank', () => {
  test('counts the digits of each block, and the equal digits before each key', () => {
    const lines = fc.array(fc.array(fc.nat(2 ** 16), { minLength: 7, maxLength: 7 }), {
      minLength: 1,
      maxLength: 3,
    });
    const attrs = fc.record({
      shift: fc.constantFrom(0, 3),
      digits: fc.constantFrom(1, 2, 8),
      block: fc.integer({ min: 1, max: 9 }),
    });
    checkLaw(100, fc.tuple(lines, attrs), ([keys, { shift, digits, block }]) => {
      const x = hostArray('u32', [keys.length, 7], keys.flat());
      const ranked = run([x], (b, p) => b.add('radixRank', [p!], { shift, digits, block }) as Node);
      const expected = tabulate('i32', ranked.shape, ([line, part, place]) => {
        const own = keys[line!]!.slice(part! * block, (part! + 1) * block).map(
          (key) => (key >>> shift) % digits,
        );
        if (place! < digits) return own.filter((digit) => digit === place).length;
        const i = place! - digits;
        return own.slice(0, i).filter((digit) => digit === own[i]).length;
      });
      expectSame(ranked, expected);
    });
  });
});

describe('searchSorted', () => {
  const isBefore = (a: number, b: number): boolean => a < b || (!Number.isNaN(a) && Number.isNaN(b));
  const lines = fc
    .array(fc.constantFrom(-3, -1, 0, 1, 2, 3, NaN), { maxLength: 9 })
    .map((list) => list.toSorted((a, b) => Number(isBefore(b, a)) - Number(isBefore(a, b))));
  const wanted = fc.array(fc.constantFrom(-4, -3, -0.5, -0, 0, 1, 2.5, 3, 9, NaN, Infinity), {
    maxLength: 8,
  });

  // NumPy's searchsorted.
  test('counts the boundaries below each value, or not above it; NaN is above all else', () => {
    checkLaw(300, fc.tuple(lines, wanted, fc.boolean()), ([boundaries, values, right]) => {
      const found = run(
        [hostArray('f32', [boundaries.length], boundaries), hostArray('f32', [values.length], values)],
        (b, p, q) => b.add('searchSorted', [p!, q!], { right }) as Node,
      );
      const below = (value: number): number =>
        boundaries.filter((limit) => (right ? !isBefore(value, limit) : isBefore(limit, value))).length;
      expect([...found.data]).toEqual(values.map(below));
    });
  });

  test('looks in its own line', () => {
    const found = run(
      [hostArray('i32', [2, 3], [1, 3, 5, 10, 30, 50]), hostArray('i32', [2, 2], [4, 9, 4, 30])],
      (b, p, q) => b.add('searchSorted', [p!, q!], { right: false }) as Node,
    );
    expect([...found.data]).toEqual([2, 3, 0, 1]);
  });
});

describe('segmentReduce', () => {
  test('is the scatter whose places the starts and the order stand for', () => {
    const places = fc.array(fc.integer({ min: -1, max: 6 }), { minLength: 1, maxLength: 20 });
    const modes = fc.constantFrom<ScatterMode>('set', 'add', 'mul', 'min', 'max');
    checkLaw(200, fc.tuple(places, modes), ([at, mode]) => {
      const count = at.length;
      const slots = Array.from({ length: 6 }, (_, slot) => slot);
      const inSlot = (slot: number): number[] => at.flatMap((place, i) => (place === slot ? [i] : []));
      const order = slots.flatMap(inSlot);
      const starts = [...slots, 6].map((slot) => at.filter((place) => place >= 0 && place < slot).length);
      const operand = hostArray('i32', [6], [5, 4, 3, 2, 1, 7]);
      const updates = hostArray(
        'i32',
        [count],
        at.map((_, i) => ((i * 5) % 7) - 3),
      );
      const padded = [...order, ...Array.from({ length: count - order.length }, () => 0)];
      const inputs = [operand, hostArray('i32', [7], starts), hostArray('i32', [count], padded), updates];
      const folded = run(inputs, (b, ...nodes) => b.add('segmentReduce', nodes, { axis: 0, mode }) as Node);
      const scattered = run(
        [operand, hostArray('i32', [count], at), updates],
        (b, ...nodes) => b.add('scatter', nodes, { axis: 0, mode }) as Node,
      );
      expectSame(folded, scattered);
    });
  });
});
