// Small independent kernels in one dispatch, parts of concatenations written in place, rank-0 inputs as scalars: what saves
// launches, copies and bindings beyond fusion. Counted without a device, computed by the Loop interpreter and on the device.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, broadcast, cast, mul, permute, reduce, reshape, unary } from '../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runLoops, runOnDevice } from '../support/execute.ts';
import { checkLaw } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

function graphOf(make: (s: Sketch) => readonly Node[]): Graph {
  const sketch = new Sketch();
  return sketch.graph(make(sketch));
}

const kinds = (graph: Graph): string[] =>
  compileGraph(graph, gpuTarget, { check: true }).kernels.map(({ kind }) => kind);

function expectEqual(graph: Graph): void {
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  const expected = interpret(graph, inputs);
  for (const target of [gpuTarget, softwareTarget, wasmTarget]) {
    runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-4));
  }
}

const sumOf = (s: Sketch, shape: readonly number[], axes: readonly number[]): Node =>
  reduce(s.b, 'sum', s.input(shape), axes);

describe('together', () => {
  test('reductions of different tensors share a dispatch', () => {
    const graph = graphOf((s) => [sumOf(s, [64, 40], [0]), sumOf(s, [64, 72], [0]), sumOf(s, [64, 56], [0])]);
    expect(kinds(graph)).toEqual(['batched-dispatch']);
    expectEqual(graph);
  });

  test('what waits for another does not', () => {
    const graph = graphOf((s) => {
      const sum = sumOf(s, [64, 40], [0]);
      return [sum, reduce(s.b, 'max', mul(s.b, broadcast(s.b, sum, [8, 40]), s.input([8, 40])), [1])];
    });
    expect(kinds(graph)).toEqual(['row-reduction', 'row-reduction']);
    expectEqual(graph);
  });

  test('no more buffers are bound than a kernel may', () => {
    const graph = graphOf((s) => Array.from({ length: 6 }, (_, i) => sumOf(s, [64, 40 + 4 * i], [0])));
    const { program } = compileGraph(graph, gpuTarget);
    expect(program.steps).toHaveLength(2);
    for (const { bindings } of program.kernels) expect(bindings.length).toBeLessThanOrEqual(8);
    expectEqual(graph);
  });

  test('large kernels stay alone', () => {
    const graph = graphOf((s) => [sumOf(s, [4096, 1024], [1]), sumOf(s, [4096, 1024], [1])]);
    expect(kinds(graph)).toEqual(['row-reduction', 'row-reduction']);
  });

  test('any mixture computes what its parts compute', () => {
    const part = fc.record({
      rows: fc.integer({ min: 1, max: 40 }),
      columns: fc.integer({ min: 1, max: 40 }),
      form: fc.constantFrom('rows', 'columns', 'all', 'map'),
    });
    checkLaw(40, fc.array(part, { minLength: 2, maxLength: 6 }), (parts) => {
      const graph = graphOf((s) =>
        parts.map(({ rows, columns, form }) => {
          const x = s.input([rows, columns]);
          if (form === 'map') return unary(s.b, 'exp', x);
          return reduce(s.b, 'sum', x, form === 'rows' ? [1] : form === 'columns' ? [0] : [0, 1]);
        }),
      );
      expectEqual(graph);
    });
  });
});

describe('concatenations', () => {
  const joined = (s: Sketch, axis: number, sizes: readonly number[]): Node => {
    const x = s.input([24, 16]);
    const parts = sizes.map((size) => s.matmul(x, s.input([16, size])));
    return s.b.add('concat', parts, { axis }) as Node;
  };

  test('products are written where the whole lies', () => {
    const graph = graphOf((s) => [joined(s, 1, [20, 7, 32])]);
    expect(kinds(graph)).toEqual(['dot', 'dot', 'dot']);
    expectEqual(graph);
  });

  test('readers bind the whole once', () => {
    const graph = graphOf((s) => [s.matmul(joined(s, 1, [8, 5, 11]), s.input([24, 9]))]);
    const { program } = compileGraph(graph, gpuTarget);
    expect(program.steps).toHaveLength(4);
    const last = program.steps.at(-1)!;
    expect(last.kind === 'dispatch' ? last.buffers.length : 0).toBe(3);
    expectEqual(graph);
  });

  test('what is computed of the whole is an epilogue of each part, and rows are parts too', () => {
    const graph = graphOf((s) => {
      const x = s.input([12, 16]);
      const sums = s.b.add('reshape', [reduce(s.b, 'sum', s.input([12, 5, 9]), [2])], { shape: [12, 5] });
      const whole = s.b.add('concat', [s.matmul(x, s.input([16, 7])), sums as Node], { axis: 1 }) as Node;
      const gated = mul(s.b, whole, unary(s.b, 'tanh', whole));
      return [s.matmul(gated, s.input([12, 4])), s.matmul(gated, s.input([12, 8]))];
    });
    expect(kinds(graph)).toEqual(['row-reduction', 'dot', 'dot', 'dot']);
    expectEqual(graph);
  });

  test('a whole that is read for itself too is stored once', () => {
    const graph = graphOf((s) => {
      const whole = joined(s, 1, [8, 5]);
      return [whole, unary(s.b, 'tanh', whole)];
    });
    expect(kinds(graph)).toEqual(['dot', 'dot', 'map']);
    expectEqual(graph);
  });

  test('a part that is read elsewhere is stored for itself', () => {
    const graph = graphOf((s) => {
      const x = s.input([12, 16]);
      const [p, q] = [s.matmul(x, s.input([16, 4])), s.matmul(x, s.input([16, 6]))];
      return [s.b.add('concat', [p, q], { axis: 1 }) as Node, p];
    });
    expect(kinds(graph)).toEqual(['dot', 'dot', 'map']);
    expectEqual(graph);
  });

  test('sums of padded products are concatenations', () => {
    const graph = graphOf((s) => {
      const x = s.input([6, 16]);
      const [p, q] = [s.matmul(x, s.input([16, 4])), s.matmul(x, s.input([16, 4]))];
      const pad = (node: Node, low: number): Node =>
        s.b.add('pad', [node], { low: [low, 0], high: [6 - low, 0], interior: [0, 0], value: 0 }) as Node;
      return [add(s.b, pad(p, 6), pad(q, 0))];
    });
    expect(kinds(graph)).toEqual(['dot', 'dot']);
    expectEqual(graph);
  });

  /** The sum of what is made of slices of one tensor, each padded to where its slice was: a gradient. */
  function gradientOfSlices(s: Sketch, rows: number, sizes: readonly number[], work: number): Node {
    const width = sizes.reduce((a, b) => a + b);
    const [x, shared] = [s.input([rows, width]), unary(s.b, 'tanh', s.input([rows, 1]))];
    const pieces: Node[] = [];
    let low = 0;
    for (const size of sizes) {
      let value = s.b.add('slice', [x], { start: [0, low], size: [rows, size], step: [1, 1] }) as Node;
      const gate = broadcast(s.b, shared, [rows, size]);
      for (let i = 0; i < work; i++) value = mul(s.b, unary(s.b, i % 2 === 0 ? 'exp' : 'sin', value), gate);
      const high = width - low - size;
      pieces.push(
        s.b.add('pad', [value], { low: [0, low], high: [0, high], interior: [0, 0], value: 0 }) as Node,
      );
      low += size;
    }
    // Neighbours are not always added one after the other.
    return pieces
      .toSorted((one, other) => (one.id % 3) - (other.id % 3))
      .reduce((sum, piece) => add(s.b, sum, piece));
  }

  test('gradients of slices are written where the whole lies, by maps', () => {
    const graph = graphOf((s) => {
      const whole = gradientOfSlices(s, 24, [16, 16, 16, 16], 12);
      return [s.matmul(whole, s.input([64, 9])), s.matmul(s.input([5, 24]), whole)];
    });
    expect(kinds(graph)).toEqual(['map', 'dot', 'dot']);
    expectEqual(graph);
  });

  test('whatever reads gradients of slices sees all parts', () => {
    const cases = fc.record({
      rows: fc.integer({ min: 1, max: 9 }),
      sizes: fc.array(fc.constantFrom(1, 3, 4, 8), { minLength: 2, maxLength: 4 }),
      work: fc.integer({ min: 0, max: 14 }),
      readers: fc.uniqueArray(fc.constantFrom('dot', 'sum', 'part', 'whole', 'turned'), { minLength: 1 }),
    });
    checkLaw(20, cases, ({ rows, sizes, work, readers }) => {
      const graph = graphOf((s) => {
        const whole = gradientOfSlices(s, rows, sizes, work);
        const width = dims(whole)[1]!;
        return readers.map((reader): Node => {
          switch (reader) {
            case 'dot':
              return s.matmul(whole, s.input([width, 5]));
            case 'sum':
              return reduce(s.b, 'sum', whole, [0]);
            case 'part': {
              const attrs = { start: [0, 0], size: [rows, sizes[0]!], step: [1, 1] };
              return unary(s.b, 'tanh', s.b.add('slice', [whole], attrs) as Node);
            }
            case 'whole':
              return unary(s.b, 'exp', whole);
            case 'turned':
              return s.b.add('permute', [unary(s.b, 'tanh', whole)], { order: [1, 0] }) as Node;
            default:
              return reader satisfies never;
          }
        });
      });
      for (const target of [gpuTarget, wasmTarget]) compileGraph(graph, target, { check: true });
      expectEqual(graph);
    });
  });
});

describe('rank-0 inputs', () => {
  const stepped = (): Graph =>
    graphOf((s) => {
      const [x, rate, step] = [s.input([30]), s.input([]), s.input([], 'i32')];
      const next = add(s.b, step, 1);
      const spread = (node: Node): Node => broadcast(s.b, node, dims(x));
      return [mul(s.b, x, spread(mul(s.b, rate, cast(s.b, next, 'f32')))), next];
    });
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('webgpu:software');
  });

  test('take no binding', () => {
    const { program } = compileGraph(stepped(), gpuTarget);
    expect(program.scalars.map(({ dtype, input }) => [dtype, input])).toEqual([
      ['f32', 1],
      ['i32', 2],
    ]);
    expect(program.kernels[0]!.bindings.length).toBeLessThanOrEqual(3);
  });

  test('are below views of views whose divisions are counted', () => {
    const graph = graphOf((s) => {
      const step = s.input([], 'i32');
      const line = s.b.add('iota', [], { shape: [120], axis: 0, dtype: 'i32' }) as Node;
      let at = add(s.b, line, broadcast(s.b, step, [120]));
      for (const shape of [
        [2, 60],
        [3, 40],
        [5, 24],
        [6, 20],
        [8, 15],
        [4, 30],
        [10, 12],
        [2, 60],
      ])
        at = permute(s.b, reshape(s.b, at, shape), [1, 0]);
      return [mul(s.b, s.input([60, 2], 'i32'), at)];
    });
    expect(compileGraph(graph, gpuTarget).program.scalars).toHaveLength(1);
    expectEqual(graph);
  });

  test('are read as they are when the run starts', async () => {
    const graph = stepped();
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 5, 'tame'),
    );
    const expected = interpret(graph, inputs);
    const got = await runOnDevice(device, targetOf(device.facts), graph, inputs);
    got.forEach((array, i) => expectClose(array, expected[i]!, 1e-5));
  });
});
