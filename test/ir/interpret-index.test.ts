import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Node } from '../../src/ir/graph.ts';
import type { ScatterMode } from '../../src/ir/ops.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { castArray, hostArray, type HostArray } from '../../src/ir/value.ts';
import {
  run,
  list,
  counting,
  flatten,
  at,
  within,
  indices,
  tabulate,
  shapeOf,
  filled,
  perAxis,
  expectSame,
} from './arrays.ts';

const gatherOf = (x: HostArray, index: HostArray, axis: number): HostArray =>
  run([x, index], (b, p, q) => b.add('gather', [p!, q!], { axis }) as Node);
const scatterOf = (
  x: HostArray,
  index: HostArray,
  u: HostArray,
  axis: number,
  mode: ScatterMode,
): HostArray => run([x, index, u], (b, p, q, r) => b.add('scatter', [p!, q!, r!], { axis, mode }) as Node);

const inner = (x: HostArray, y: HostArray): number =>
  list(x).reduce<number>((sum, value, i) => sum + Number(value) * Number(y.data[i]), 0);

describe('gather and scatter', () => {
  /** An operand, and indices of its rank from −1 to one past the axis. */
  const indexed = shapeOf({ minRank: 1, maxRank: 3, min: 1 }).chain((shape) =>
    fc.nat(shape.length - 1).chain((axis) =>
      perAxis(shape, (dim, i) => (i === axis ? fc.nat(5) : fc.nat(dim))).chain((small) => {
        const lengths = { minLength: sizeOf(small), maxLength: sizeOf(small) };
        return fc.record({
          axis: fc.constant(axis),
          x: filled('i32', shape),
          updates: filled('i32', small),
          index: fc
            .array(fc.integer({ min: -1, max: shape[axis]! }), lengths)
            .map((values) => hostArray('i32', small, values)),
        });
      }),
    ),
  );

  test('gather reads operand[.., index, ..] and 0 outside the axis', () => {
    fc.assert(
      fc.property(indexed, ({ axis, x, index }) => {
        const expected = tabulate('i32', index.shape, (place) => {
          const source = place.with(axis, Number(at(index, place)));
          return within(source, x.shape) ? at(x, source) : 0;
        });
        expectSame(gatherOf(x, index, axis), expected);
      }),
    );
  });

  test('scatter folds updates in C-order and drops those outside', () => {
    const folds: Readonly<Record<ScatterMode, (old: number, update: number) => number>> = {
      set: (_, update) => update,
      add: (old, update) => old + update,
      mul: (old, update) => old * update,
      min: Math.min,
      max: Math.max,
    };
    for (const mode of ['set', 'add', 'mul', 'min', 'max'] as const) {
      fc.assert(
        fc.property(indexed, ({ axis, x, index, updates }) => {
          const expected = list(x).map(Number);
          for (const place of indices(index.shape)) {
            const target = place.with(axis, Number(at(index, place)));
            if (!within(target, x.shape)) continue;
            const flat = flatten(target, x.shape);
            expected[flat] = folds[mode](expected[flat]!, Number(at(updates, place)));
          }
          expectSame(
            scatterOf(x, index, updates, axis, mode),
            castArray(hostArray('f64', x.shape, expected), 'i32'),
          );
        }),
        { numRuns: 60 },
      );
    }
  });

  test('scatter-add is the adjoint of gather: ⟨gather x, u⟩ = ⟨x, scatter-add u⟩', () => {
    fc.assert(
      fc.property(indexed, ({ axis, x, index, updates }) => {
        const zeros = hostArray('i32', x.shape, new Array(sizeOf(x.shape)).fill(0));
        const scattered = scatterOf(zeros, index, updates, axis, 'add');
        expect(inner(gatherOf(x, index, axis), updates)).toBe(inner(x, scattered));
      }),
    );
  });

  test('u32 indices reach the axis and no further', () => {
    const index = hostArray('u32', [3], [1, 0xffffffff, 2]);
    expectSame(gatherOf(counting('f64', [2]), index, 0), hostArray('f64', [3], [2, 0, 0]));
  });

  test('float updates fold wide and round once; NaN wins in min and max', () => {
    const zeros = new Array<number>(4096).fill(0);
    const ones = hostArray(
      'f16',
      [4096],
      zeros.map(() => 1),
    );
    expect(
      list(scatterOf(hostArray('f16', [1], [0]), hostArray('i32', [4096], zeros), ones, 0, 'add')),
    ).toEqual([4096]);
    const [index, updates] = [hostArray('i32', [2], [0, 0]), hostArray('f32', [2], [NaN, 1])];
    expect(list(scatterOf(hostArray('f32', [1], [0]), index, updates, 0, 'max'))).toEqual([NaN]);
    expect(
      list(scatterOf(hostArray('i64', [1], [5n]), index, hostArray('i64', [2], [1n, 2n]), 0, 'set')),
    ).toEqual([2n]);
    expect(
      list(scatterOf(hostArray('bool', [1], [0]), index, hostArray('bool', [2], [0, 1]), 0, 'set')),
    ).toEqual([1]);
  });
});
