// Loops of the Graph IR: what they mean, on every target, as text, and their derivatives.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { tangentGraph } from '../../src/autograd/jvp/jvp.ts';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print } from '../../src/ir/text/print.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { add, cast, constant, sub } from '../../src/ir/build.ts';
import { iterate } from '../../src/ir/control/iterate.ts';
import { regionOf } from '../../src/ir/text/region.ts';
import { Parameters } from '../../src/ir/control/parameters.ts';
import { GraphBuilder } from '../../src/ir/graph.ts';
import { verify } from '../../src/ir/verify.ts';
import { checkLaw } from '../support/property.ts';
import { writeOutLoops } from '../../src/ir/passes/write-out-loops.ts';
import { distance, randomLoop } from '../support/random/loop.ts';

const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });

describe('a loop in a graph', () => {
  test('means its iterations written out', () => {
    checkLaw(200, seeds, (seed) => {
      const { graph, inputs } = randomLoop(seed);
      verify(graph);
      expect(
        distance(
          interpret(graph, inputs),
          interpret(
            writeOutLoops(graph, () => true),
            inputs,
          ),
        ),
      ).toBeLessThan(1e-6);
    });
  });

  test('is read back from its text as it was', () => {
    checkLaw(100, seeds, (seed) => {
      const { graph, inputs } = randomLoop(seed, 2);
      const text = print(graph);
      const again = parse(text);
      expect(print(again)).toBe(text);
      expect(distance(interpret(again, inputs), interpret(graph, inputs))).toBe(0);
    });
  });

  test('has the tangents of its iterations written out', () => {
    checkLaw(150, seeds, (seed) => {
      const { graph, inputs } = randomLoop(seed);
      const wrt = [...graph.parameters.keys()].filter((i) => i % 2 === seed % 2);
      if (wrt.length === 0) return;
      const looped = tangentGraph(graph, wrt);
      verify(looped);
      const all = [...inputs, ...wrt.map((i) => inputs[i]!)];
      const expected = interpret(
        tangentGraph(
          writeOutLoops(graph, () => true),
          wrt,
        ),
        all,
      );
      expect(distance(interpret(looped, all), expected)).toBeLessThan(2e-5);
    });
  });

  test('ends before the iteration at which its guard is 0, and reads back from its text', () => {
    const inner = new GraphBuilder();
    const own = new Parameters(inner);
    const count = own.add('count', 'i32', []);
    const going = own.add('going', 'i32', []);
    const x = own.add('x', 'f32', [2]);
    const next = sub(inner, going, constant(inner, 1, 'i32'));
    const body = regionOf({
      parameters: own.list,
      outputs: [next, add(inner, x, x), cast(inner, count, 'f32')],
    });
    const b = new GraphBuilder();
    const outer = new Parameters(b);
    const inputs = [outer.add('n', 'i32', []), outer.add('x', 'f32', [2])];
    const form = { body, carries: 2, stacked: 0, trips: 4, reverse: false, recompute: false };
    const outputs = iterate(b, inputs, { ...form, guard: 0 });
    const graph = { parameters: outer.list, outputs };
    verify(graph);
    expect(print(parse(print(graph)))).toBe(print(graph));
    const run = (n: number): number[][] =>
      interpret(graph, [hostArray('i32', [], [n]), hostArray('f32', [2], [1, 3])]).map(({ data }) =>
        Array.from(data as Float32Array),
      );
    expect(run(0)).toEqual([[0], [1, 3], [0, 0, 0, 0]]);
    expect(run(3)).toEqual([[0], [8, 24], [0, 1, 2, 0]]);
    expect(run(-1)).toEqual([[-5], [16, 48], [0, 1, 2, 3]]);
    expect(() => iterate(b, inputs, { ...form, guard: 1 })).toThrow(/the guard must be a carry of i32\[\]/);
    expect(() => iterate(b, inputs, { ...form, guard: 2 })).toThrow(/the guard 2 is no carry/);
  });

  test('has the gradients of its iterations written out', () => {
    checkLaw(200, seeds, (seed) => {
      const { graph, inputs } = randomLoop(seed);
      const wrt = [...graph.parameters.keys()];
      const looped = gradientGraph(graph, wrt, { seedAll: true });
      verify(looped);
      const flat = gradientGraph(
        writeOutLoops(graph, () => true),
        wrt,
        { seedAll: true },
      );
      const seedsOf = looped.parameters.slice(inputs.length).map((parameter): HostArray => {
        const shape = parameter.shape as readonly number[];
        const size = shape.reduce((a, c) => a * c, 1);
        return { dtype: 'f32', shape, data: Float32Array.from({ length: size }, (_, i) => Math.sin(i + 1)) };
      });
      const all = [...inputs, ...seedsOf];
      expect(distance(interpret(looped, all), interpret(flat, all))).toBeLessThan(2e-5);
    });
  });
});
