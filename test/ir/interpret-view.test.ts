import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { realDTypes as dtypes, type DType } from '../../src/ir/dtype.ts';
import { dims, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { hostArray, type Scalar } from '../../src/ir/value.ts';
import {
  graphOf,
  run,
  list,
  counting,
  at,
  within,
  tabulate,
  shapeOf,
  filled,
  arrayOf,
  perAxis,
  expectSame,
} from './arrays.ts';

describe('views', () => {
  test('reshape keeps C-order', () => {
    const x = counting('i32', [2, 6]);
    expectSame(
      run([x], (b, p) => b.add('reshape', [p!], { shape: [3, 4] }) as Node),
      counting('i32', [3, 4]),
    );
  });

  const permuted = arrayOf('i32').chain((x) =>
    fc.tuple(
      fc.constant(x),
      fc.shuffledSubarray(
        x.shape.map((_, axis) => axis),
        { minLength: x.shape.length },
      ),
    ),
  );
  test('permute moves output index i to input axis order[i], and its inverse undoes it', () => {
    fc.assert(
      fc.property(permuted, ([x, order]) => {
        const moved = run([x], (b, p) => b.add('permute', [p!], { order }) as Node);
        expectSame(
          moved,
          tabulate(
            'i32',
            order.map((axis) => x.shape[axis]!),
            (index) =>
              at(
                x,
                x.shape.map((_, axis) => index[order.indexOf(axis)]!),
              ),
          ),
        );
        const inverse = order.map((_, axis) => order.indexOf(axis));
        expectSame(
          run([moved], (b, p) => b.add('permute', [p!], { order: inverse }) as Node),
          x,
        );
      }),
    );
  });

  const broadcasts = shapeOf({ min: 0, max: 3 }).chain((shape) =>
    fc.tuple(
      fc.constant(shape),
      fc
        .nat(shape.length)
        .chain((missing) =>
          perAxis(shape.slice(missing), (dim) => fc.constantFrom(1, dim)).chain((from) =>
            filled('i32', from),
          ),
        ),
    ),
  );
  test('broadcast reads index 0 on stretched axes', () => {
    fc.assert(
      fc.property(broadcasts, ([shape, x]) => {
        expectSame(
          run([x], (b, p) => b.add('broadcast', [p!], { shape }) as Node),
          tabulate('i32', shape, (index) =>
            at(
              x,
              index.slice(shape.length - x.shape.length).map((i, axis) => (x.shape[axis] === 1 ? 0 : i)),
            ),
          ),
        );
      }),
    );
  });

  const slices = arrayOf('i32').chain((x) =>
    fc.tuple(
      fc.constant(x),
      perAxis(x.shape, (dim) =>
        dim === 0
          ? fc.constant({ start: 0, step: 1, size: 0 })
          : fc
              .tuple(fc.nat(dim - 1), fc.constantFrom(1, 2, 3, -1, -2))
              .chain(([start, step]) =>
                fc
                  .nat(Math.floor((step > 0 ? dim - 1 - start : start) / Math.abs(step)) + 1)
                  .map((size) => ({ start, step, size })),
              ),
      ),
    ),
  );
  test('slice reads start + i·step, backwards too', () => {
    fc.assert(
      fc.property(slices, ([x, axes]) => {
        const attrs = {
          start: axes.map((axis) => axis.start),
          size: axes.map((axis) => axis.size),
          step: axes.map((axis) => axis.step),
        };
        expectSame(
          run([x], (b, p) => b.add('slice', [p!], attrs) as Node),
          tabulate('i32', attrs.size, (index) =>
            at(
              x,
              index.map((i, axis) => axes[axis]!.start + i * axes[axis]!.step),
            ),
          ),
        );
      }),
    );
  });

  const pads = arrayOf('f32').chain((x) =>
    fc.tuple(
      fc.constant(x),
      perAxis(x.shape, () => fc.record({ low: fc.nat(2), high: fc.nat(2), interior: fc.nat(2) })),
    ),
  );
  test('pad puts elements at low + i·(interior + 1) and its value everywhere else', () => {
    fc.assert(
      fc.property(pads, ([x, axes]) => {
        const attrs = {
          low: axes.map((axis) => axis.low),
          high: axes.map((axis) => axis.high),
          interior: axes.map((axis) => axis.interior),
          value: -Infinity,
        };
        const shape = x.shape.map(
          (dim, i) => axes[i]!.low + axes[i]!.high + dim + Math.max(0, dim - 1) * axes[i]!.interior,
        );
        expectSame(
          run([x], (b, p) => b.add('pad', [p!], attrs) as Node),
          tabulate('f32', shape, (index) => {
            const source = index.map((i, axis) => (i - axes[axis]!.low) / (axes[axis]!.interior + 1));
            return within(source, x.shape) ? at(x, source) : -Infinity;
          }),
        );
      }),
    );
  });

  test('the padding value is brought into the dtype', () => {
    const pad = { low: [1], high: [0], interior: [0], value: -Infinity };
    const padded = (dtype: DType): Scalar[] =>
      list(run([counting(dtype, [1])], (b, p) => b.add('pad', [p!], pad) as Node));
    expect(padded('i32')).toEqual([-(2 ** 31), 1]);
    expect(padded('i64')).toEqual([-(2n ** 63n), 1n]);
    expect(padded('bf16')).toEqual([-Infinity, 1]);
  });

  const concats = shapeOf({ minRank: 1 }).chain((shape) =>
    fc.nat(shape.length - 1).chain((axis) =>
      fc.tuple(
        fc.constant(axis),
        fc
          .array(fc.nat(3), { minLength: 1, maxLength: 4 })
          .chain((sizes) => fc.tuple(...sizes.map((size) => filled('i32', shape.with(axis, size))))),
      ),
    ),
  );
  test('slices of a concatenation are its parts', () => {
    fc.assert(
      fc.property(concats, ([axis, parts]) => {
        const whole = run(parts, (b, ...nodes) => b.add('concat', nodes, { axis }) as Node);
        let offset = 0;
        for (const part of parts) {
          const start = part.shape.map((_, i) => (i === axis ? offset : 0));
          const attrs = { start, size: part.shape, step: part.shape.map(() => 1) };
          expectSame(
            run([whole], (b, p) => b.add('slice', [p!], attrs) as Node),
            part,
          );
          offset += part.shape[axis]!;
        }
        expect(whole.shape[axis]).toBe(offset);
      }),
    );
  });

  const windows = arrayOf('i32', { minRank: 1, maxRank: 3, max: 6 }).chain((x) =>
    fc.tuple(
      fc.constant(x),
      fc.record({
        axis: fc.nat(x.shape.length - 1),
        size: fc.integer({ min: 1, max: 3 }),
        stride: fc.integer({ min: 1, max: 3 }),
        dilation: fc.integer({ min: 1, max: 2 }),
      }),
    ),
  );
  test('window element (.., i, .., k) is input i·stride + k·dilation', () => {
    fc.assert(
      fc.property(windows, ([x, attrs]) => {
        const graph = graphOf([x], (b, p) => [b.add('window', [p!], attrs) as Node]);
        expectSame(
          interpret(graph, [x])[0]!,
          tabulate('i32', dims(graph.outputs[0]!), (index) =>
            at(
              x,
              x.shape.map((_, axis) =>
                axis === attrs.axis
                  ? index[axis]! * attrs.stride + index.at(-1)! * attrs.dilation
                  : index[axis]!,
              ),
            ),
          ),
        );
      }),
    );
  });

  test('views carry every dtype', () => {
    for (const dtype of dtypes) {
      const x = hostArray(dtype, [2, 2], [0, 1, 1, 1]);
      const turned = run([x], (b, p) => b.add('permute', [p!], { order: [1, 0] }) as Node);
      const doubled = run([turned], (b, p) => b.add('concat', [p!, p!], { axis: 0 }) as Node);
      expectSame(doubled, hostArray(dtype, [4, 2], [0, 1, 1, 1, 0, 1, 1, 1]));
    }
  });
});
