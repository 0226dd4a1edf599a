// How kernels are laid out for a processor core: maps row by row where rows are odd, in pieces within which no condition changes;
// rows whose dear values wait, and neighbouring lines of a scan together. What they compute is the interpreter's.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../../src/compile.ts';
import { explain } from '../../../src/explain/explain.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { parse } from '../../../src/ir/text/parse.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { cTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { casesOf } from '../../support/sample.ts';
import { rowTargets } from '../../support/targets.ts';

function graphOf(fn: (...args: never[]) => unknown, ...shapes: readonly (readonly number[])[]): Graph {
  return parse(explain(fn, ...shapes.map((shape) => sn.zeros(shape))).graph);
}

function scheduleOf(fn: (...args: never[]) => unknown, ...shapes: readonly (readonly number[])[]): string {
  const { kernels } = compileGraph(graphOf(fn, ...shapes), wasmTarget, { check: true });
  expect(kernels).toHaveLength(1);
  return kernels[0]!.schedule;
}

function numbers(graph: Graph): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, p) => {
    const size = sizeOf(shape as number[]);
    return hostArray(
      dtype,
      shape as readonly number[],
      Array.from({ length: size }, (_, i) => Math.sin(7 * i + p)),
    );
  });
}

/** Maps that read rows at some distance from where they write, by the width of what they read. */
const maps: Readonly<Record<string, (x: Tensor, row: Tensor) => Tensor>> = {
  'a vector on every row': (x, row) => x.add(row),
  'a frame of zeros': (x) =>
    sn
      .pad(x, [
        [1, 2],
        [2, 1],
      ])
      .mul(2),
  'two joined': (x, row) => sn.cat([x.exp(), x.add(row)], 1),
  'without the ends': (x) => x.slice(1, 1, -1).mul(3),
  'from the right to the left': (x, row) => x.flip([1]).sub(row),
  'softmax of rows with a vector': (x, row) => x.add(row).softmax(),
  'running sums of columns': (x) => x.cumsum(0),
};

test('maps and rows of any width equal the interpreter', () => {
  const drawn = fc.record({
    name: fc.constantFrom(...Object.keys(maps)),
    rows: fc.integer({ min: 1, max: 9 }),
    width: fc.integer({ min: 3, max: 41 }),
  });
  checkLaw(casesOf(60, 20), drawn, ({ name, rows, width }) => {
    const graph = graphOf(maps[name]!, [rows, width], [width]);
    const inputs = numbers(graph);
    const expected = interpret(graph, inputs);
    for (const target of [wasmTarget, rowTargets['rows on a core']!])
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-5));
  });
});

test('joined tensors along any axis equal the interpreter, however many', () => {
  const drawn = fc.record({
    axis: fc.integer({ min: 0, max: 2 }),
    others: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 6 })),
    width: fc.integer({ min: 3, max: 21 }),
    parts: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 12 }),
    isPadded: fc.boolean(),
  });
  checkLaw(casesOf(40, 10), drawn, ({ axis, others, width, parts, isPadded }) => {
    const at = (size: number): number[] => [...others, width].with(axis, axis === 2 ? size + 2 : size);
    const total = parts.reduce((sum, part) => sum + (axis === 2 ? part + 2 : part), 0);
    const graph = graphOf(
      (factors: Tensor, ...joined: Tensor[]) => {
        const x = sn.cat(joined, axis).mul(factors).relu();
        return isPadded ? sn.pad(x, [[0, 0], [1, 2], [0, 1]]).add(1) : x; // prettier-ignore
      },
      [total, ...(axis === 2 ? [] : Array.from({ length: 2 - axis }, () => 1))],
      ...parts.map(at),
    );
    const inputs = numbers(graph);
    const expected = interpret(graph, inputs);
    for (const target of [wasmTarget, cTarget, rowTargets['rows on a core']!])
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-5));
  });
});

test.each(Object.keys(maps))('%s: rows that four does not divide are folded to their end', (name) => {
  const graph = graphOf(maps[name]!, [2, 15], [15]);
  const inputs = numbers(graph);
  const expected = interpret(graph, inputs);
  for (const target of [wasmTarget, rowTargets['rows on a core']!])
    runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-5));
});

test('pools of any window equal the interpreter', () => {
  const drawn = fc.record({
    kind: fc.constantFrom('max', 'mean', 'both'),
    size: fc.tuple(fc.integer({ min: 5, max: 23 }), fc.integer({ min: 5, max: 23 })),
    kernelSize: fc.integer({ min: 2, max: 4 }),
    stride: fc.integer({ min: 1, max: 3 }),
    padding: fc.integer({ min: 0, max: 1 }),
  });
  checkLaw(casesOf(40, 12), drawn, ({ kind, size, kernelSize, stride, padding }) => {
    const graph = graphOf(
      (x: Tensor) => {
        const [most, mean] = [sn.maxPool2d, sn.avgPool2d].map((pool) =>
          pool(x, kernelSize, { stride, padding }),
        ) as [Tensor, Tensor];
        return kind === 'max' ? most : kind === 'mean' ? mean : sn.cat([most, mean.relu()], 1);
      },
      [1, 3, ...size],
    );
    const inputs = numbers(graph);
    const expected = interpret(graph, inputs);
    runLoops(wasmTarget, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-5));
  });
});

test('maxima are NaN where a term is, and of zeros 0', () => {
  const odd = [NaN, -0, 0, Infinity, -Infinity, -1];
  const size = 27;
  for (const padding of [0, 1]) {
    const graph = graphOf((x: Tensor) => sn.maxPool2d(x, 3, { stride: 2, padding }), [1, 2, size, size]);
    // Mostly the least, so that every other comes out on top somewhere, from every place of a window.
    const place = (i: number): number => (Math.imul(i, 0x9e3779b1) >>> 8) % 40;
    const values = Array.from({ length: 2 * size * size }, (_, i) => odd[place(i)] ?? -Infinity);
    const inputs = [hostArray('f32', [1, 2, size, size], values)];
    const [expected] = interpret(graph, inputs);
    expect(new Set([...expected!.data].map(String)).size).toBe(5);
    const [got] = runLoops(wasmTarget, graph, inputs);
    expectClose(got!, expected!, 0);
  }
});

describe('a core', () => {
  test('walks a map in its flat order where groups of four stay in a row', () => {
    expect(scheduleOf(maps['a vector on every row']!, [64, 128], [128])).toContain('16 elements');
  });

  test('goes row by row where they would not', () => {
    expect(scheduleOf(maps['a vector on every row']!, [64, 127], [127])).toContain('127 elements');
  });

  test('cuts rows where what they are made of changes', () => {
    expect(
      scheduleOf(
        (x: Tensor) =>
          sn
            .pad(x, [
              [0, 0],
              [1, 1],
            ])
            .mul(2),
        [64, 129],
      ),
    ).toContain('131 elements in 3 pieces');
  });

  test('goes by rows where a flat index would be divided for every element', () => {
    expect(scheduleOf((x: Tensor) => sn.flip(x, 1).add(1), [64, 129])).toContain('129 elements per');
    expect(scheduleOf((x: Tensor) => sn.tril(x), [64, 129])).toContain('129 elements per');
  });

  test('tells rows apart where other tensors begin, and loads from one tensor in each', () => {
    const join = (...parts: Tensor[]): Tensor => sn.cat(parts, 1).relu();
    const parts = [8, 4, 4, 4].map((channels) => [2, channels, 8, 8]);
    expect(scheduleOf(join, ...parts)).toContain('64 elements of 4 kinds of rows');
    const { source } = compileGraph(graphOf(join, ...parts), cTarget, { check: true }).kernels[0]!;
    expect(source).not.toContain(' ? ');
  });

  test('takes a frame of zeros as rows of its own', () => {
    const frame = (x: Tensor): Tensor =>
      sn.pad(x, [
        [0, 0],
        [2, 1],
        [1, 2],
      ]);
    expect(scheduleOf(frame, [8, 60, 61])).toContain('64 elements in 3 pieces of 3 kinds of rows');
  });

  test('multiplies by a number for each row in the flat order', () => {
    expect(scheduleOf((x: Tensor, w: Tensor) => x.mul(w).relu(), [1, 64, 16, 16], [64, 1, 1])).toContain(
      'x 16',
    );
  });

  test('keeps exponentials, but not what is only read', () => {
    expect(scheduleOf((x: Tensor) => x.softmax(), [64, 128])).toContain('1 values kept');
    expect(scheduleOf((x: Tensor) => sn.layerNorm(x, 128), [64, 128])).not.toContain('kept');
  });

  test('visits windows line by line, without asking for padding where there is none', () => {
    const pool = (x: Tensor): Tensor => sn.maxPool2d(x, 3, { stride: 2, padding: 1 });
    expect(scheduleOf(pool, [1, 8, 41, 41])).toContain('21 elements in 3 pieces');
    expect(scheduleOf((x: Tensor) => sn.avgPool2d(x, 2), [1, 8, 42, 42])).toContain('21 elements');
  });

  test('reads columns by lines of a cache', () => {
    expect(scheduleOf((x: Tensor) => x.sum(0), [64, 128])).toContain('8 x 4 at once');
  });
});
