import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DType } from '../../src/ir/dtype.ts';
import { dims, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Attrs } from '../../src/ir/ops.ts';
import { sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { graphOf, run, list, counting, at, within, indices, tabulate, filled, expectSame } from './arrays.ts';

const matmul = (dtype: DType): Attrs<'dot'> => ({
  lhsBatch: [],
  rhsBatch: [],
  lhsContract: [1],
  rhsContract: [0],
  dtype,
});
const convOf = (x: HostArray, w: HostArray, attrs: Attrs<'conv'>): HostArray =>
  run([x, w], (b, p, q) => b.add('conv', [p!, q!], attrs) as Node);
const dotOf = (x: HostArray, y: HostArray, attrs: Attrs<'dot'>): HostArray =>
  run([x, y], (b, p, q) => b.add('dot', [p!, q!], attrs) as Node);
const ones = (dtype: DType, shape: FixedShape): HostArray =>
  hostArray(dtype, shape, new Array(sizeOf(shape)).fill(1));

describe('dot', () => {
  test('a matrix product is rows times columns', () => {
    const [x, y] = [counting('f32', [2, 3]), counting('f32', [3, 2])];
    expectSame(dotOf(x, y, matmul('f32')), hostArray('f32', [2, 2], [22, 28, 49, 64]));
  });

  // Axes b (batch), c and d (contracted), m and n (free) in any order on both sides.
  const sizes = fc.record({
    b: fc.nat(2),
    c: fc.nat(3),
    d: fc.integer({ min: 1, max: 3 }),
    m: fc.nat(3),
    n: fc.nat(2),
  });
  const general = fc
    .tuple(
      sizes,
      fc.shuffledSubarray(['b', 'c', 'd', 'm'] as const, { minLength: 4 }),
      fc.shuffledSubarray(['b', 'c', 'd', 'n'] as const, { minLength: 4 }),
    )
    .chain(([size, left, right]) =>
      fc.record({
        size: fc.constant(size),
        left: fc.constant(left),
        right: fc.constant(right),
        x: filled(
          'i32',
          left.map((name) => size[name]),
        ),
        y: filled(
          'i32',
          right.map((name) => size[name]),
        ),
      }),
    );
  test('any order of axes sums over the paired ones, batch first, then left, then right', () => {
    fc.assert(
      fc.property(general, ({ size, left, right, x, y }) => {
        const result = dotOf(x, y, {
          lhsBatch: [left.indexOf('b')],
          rhsBatch: [right.indexOf('b')],
          lhsContract: [left.indexOf('c'), left.indexOf('d')],
          rhsContract: [right.indexOf('c'), right.indexOf('d')],
          dtype: 'i32',
        });
        const expected = tabulate('i32', [size.b, size.m, size.n], ([b, m, n]) => {
          let sum = 0;
          for (const [c, d] of indices([size.c, size.d])) {
            const place: Record<string, number> = { b: b!, c: c!, d: d!, m: m!, n: n! };
            sum +=
              Number(
                at(
                  x,
                  left.map((name) => place[name]!),
                ),
              ) *
              Number(
                at(
                  y,
                  right.map((name) => place[name]!),
                ),
              );
          }
          return sum;
        });
        expectSame(result, expected);
      }),
    );
  });

  test('integers wrap exactly, into the dtype asked for', () => {
    const big = hostArray('i32', [1, 2], [0x7fffffff, 0x7fffffff]);
    const column = hostArray('i32', [2, 1], [0x7fffffff, 0x7fffffff]);
    expect(list(dotOf(big, column, matmul('i32')))).toEqual([2]);
    expect(list(dotOf(big, column, matmul('i64')))).toEqual([2n * 0x7fffffffn ** 2n]);
    const bytes = [hostArray('i8', [1, 2], [100, 100]), hostArray('i8', [2, 1], [100, 100])] as const;
    expect(list(dotOf(...bytes, matmul('i32')))).toEqual([20000]);
    expect(list(dotOf(...bytes, matmul('i8')))).toEqual([32]);
    const unsigned = [hostArray('u32', [1, 1], [0xffffffff]), hostArray('u32', [1, 1], [1])] as const;
    expect(list(dotOf(...unsigned, matmul('u32')))).toEqual([0xffffffff]);
    expect(list(dotOf(...unsigned, matmul('u64')))).toEqual([0xffffffffn]);
    expect(list(dotOf(...unsigned, matmul('f32')))).toEqual([4294967296]);
  });

  test('16-bit floats sum wide and round once', () => {
    for (const dtype of ['f16', 'bf16'] as const) {
      expect(list(dotOf(ones(dtype, [1, 4096]), ones(dtype, [4096, 1]), matmul(dtype)))).toEqual([4096]);
    }
    const third = hostArray('f16', [1, 1], [1 / 3]);
    const square = Number(third.data[0]) ** 2;
    expect(list(dotOf(third, third, matmul('f32')))).toEqual([Math.fround(square)]);
  });

  test('no terms give zeros', () => {
    const zeros = dotOf(hostArray('f32', [2, 0], []), hostArray('f32', [0, 3], []), matmul('f32'));
    expectSame(zeros, hostArray('f32', [2, 3], [0, 0, 0, 0, 0, 0]));
  });
});

describe('conv', () => {
  const axis = fc.record({
    size: fc.nat(5),
    kernel: fc.integer({ min: 1, max: 3 }),
    stride: fc.integer({ min: 1, max: 3 }),
    padLow: fc.integer({ min: -1, max: 2 }),
    padHigh: fc.integer({ min: -1, max: 2 }),
    lhsDilation: fc.integer({ min: 1, max: 3 }),
    rhsDilation: fc.integer({ min: 1, max: 2 }),
  });
  const cases = fc
    .record({
      batches: fc.integer({ min: 1, max: 2 }),
      channels: fc.nat(2),
      groups: fc.integer({ min: 1, max: 2 }),
      outputs: fc.integer({ min: 1, max: 2 }),
      axes: fc.array(axis, { maxLength: 2 }),
    })
    .chain((sizes) => {
      const { batches, channels, groups, outputs, axes } = sizes;
      return fc.record({
        sizes: fc.constant(sizes),
        x: filled('i32', [batches, channels * groups, ...axes.map((a) => a.size)]),
        w: filled('i32', [outputs * groups, channels, ...axes.map((a) => a.kernel)]),
      });
    });

  test('with any stride, padding, dilation and groups it is the direct sum', () => {
    fc.assert(
      fc.property(cases, ({ sizes: { groups, channels, outputs, axes }, x, w }) => {
        const graph = graphOf([x, w], (b, p, q) => [
          b.add('conv', [p!, q!], {
            strides: axes.map((a) => a.stride),
            padLow: axes.map((a) => a.padLow),
            padHigh: axes.map((a) => a.padHigh),
            lhsDilation: axes.map((a) => a.lhsDilation),
            rhsDilation: axes.map((a) => a.rhsDilation),
            groups,
          }) as Node,
        ]);
        const expected = tabulate('i32', dims(graph.outputs[0]!), ([n, o, ...place]) => {
          let sum = 0;
          for (const [c, ...tap] of indices([channels, ...axes.map((a) => a.kernel)])) {
            const source = place.map((at, i) => {
              const { stride, rhsDilation, padLow, lhsDilation } = axes[i]!;
              return (at * stride + tap[i]! * rhsDilation - padLow) / lhsDilation;
            });
            const input = [n!, Math.floor(o! / outputs) * channels + c!, ...source];
            if (within(input, x.shape)) sum += Number(at(x, input)) * Number(at(w, [o!, c!, ...tap]));
          }
          return sum;
        });
        expectSame(interpret(graph, [x, w])[0]!, expected);
      }),
      { numRuns: 300 },
    );
  });

  const plain = {
    strides: [1, 1],
    padLow: [0, 0],
    padHigh: [0, 0],
    lhsDilation: [1, 1],
    rhsDilation: [1, 1],
    groups: 1,
  };
  test('a 1×1 kernel is a matrix product over channels', () => {
    const [x, w] = [counting('f32', [1, 2, 2, 2]), counting('f32', [1, 2, 1, 1])];
    expectSame(convOf(x, w, plain), hostArray('f32', [1, 1, 2, 2], [11, 14, 17, 20]));
  });

  test('it agrees with PyTorch on a strided, padded and grouped 2-d case', () => {
    // F.conv2d(arange(32).view(1,2,4,4) / 8, arange(12).view(2,1,2,3) / 4, stride=(2,1), padding=(1,0), groups=2)
    const x = hostArray(
      'f32',
      [1, 2, 4, 4],
      Array.from({ length: 32 }, (_, i) => i / 8),
    );
    const w = hostArray(
      'f32',
      [2, 1, 2, 3],
      Array.from({ length: 12 }, (_, i) => i / 4),
    );
    const y = convOf(x, w, { ...plain, strides: [2, 1], padLow: [1, 0], padHigh: [1, 0], groups: 2 });
    expectSame(
      y,
      hostArray(
        'f32',
        [1, 2, 3, 2],
        [0.4375, 0.8125, 3.96875, 4.4375, 1.28125, 1.375, 16.0, 16.9375, 37.34375, 38.9375, 19.09375, 19.75],
      ),
    );
  });

  test('16-bit floats sum wide and round once; integers wrap', () => {
    const image = [1, 1, 64, 64];
    expect(list(convOf(ones('f16', image), ones('f16', image), plain))).toEqual([4096]);
    expect(list(convOf(ones('u8', image), ones('u8', image), plain))).toEqual([0]);
    expect(list(convOf(ones('i64', image), ones('i64', image), plain))).toEqual([4096n]);
  });
});
