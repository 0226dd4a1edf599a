// Sorts as kernels: what splitting keeps, and how many kernels a sort takes.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { optimise } from '../../src/compile.ts';
import { mul, unary } from '../../src/ir/build.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { verify } from '../../src/ir/verify.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import { splitSorts } from '../../src/schedule/passes/sort.ts';
import { gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { checkLaw } from '../support/property.ts';
import { randomArray } from '../support/random/values.ts';

const profiles = { gpu: gpuTarget, software: softwareTarget } as const;
/** Sorts nothing in one kernel: every step of the radix sort, on a few keys. */
const always: Target = {
  ...gpuTarget,
  limits: { ...gpuTarget.limits, workgroupBytes: 8 },
};

function sorted(s: Sketch, x: Node, axis: number, descending = false): Node[] {
  const order = s.argSort(x, axis, descending);
  return [order, s.b.add('gather', [x, order], { axis }) as Node];
}

describe('splitting a sort', () => {
  const cases = fc.record({
    dtype: fc.constantFrom<DType>('f32', 'f16', 'bf16', 'i32', 'u32', 'bool'),
    shape: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
    place: fc.nat(2),
    descending: fc.boolean(),
    seed: fc.integer({ min: 1, max: 2 ** 20 }),
    target: fc.constantFrom(always, gpuTarget, softwareTarget),
  });

  test('keeps its meaning, for every dtype, axis, direction and special value', () => {
    checkLaw(300, cases, ({ dtype, shape, place, descending, seed, target }) => {
      const s = new Sketch();
      const axis = place % shape.length;
      const graph = s.graph(sorted(s, s.input(shape, dtype), axis, descending));
      const inputs = [randomArray(dtype, shape, seed, 'special')];
      const split = splitSorts(graph, target);
      verify(split, 'splitSorts');
      expect(interpret(split, inputs)).toEqual(interpret(graph, inputs));
    });
  });

  test('leaves short lines of u32 keys to one kernel, and takes long ones apart', () => {
    const ops = (length: number, target: Target): ReadonlySet<string> => {
      const s = new Sketch();
      const split = splitSorts(s.graph([s.argSort(s.input([40, length]), 1)]), target);
      const keys = topological(split.outputs).flatMap((node) => (node.op === 'argSort' ? node.inputs : []));
      expect(keys.every(({ dtype }) => dtype === 'u32')).toBe(true);
      return new Set(topological(split.outputs).map(({ op }) => op));
    };
    expect(ops(2048, gpuTarget)).toContain('argSort');
    expect(ops(2049, gpuTarget)).not.toContain('argSort');
    expect(ops(128, softwareTarget)).toContain('argSort');
    expect(ops(129, softwareTarget)).not.toContain('argSort');
  });

  test('inverts a permutation without sorting it', () => {
    const s = new Sketch();
    const order = s.argSort(s.input([30, 9]), 1);
    const split = splitSorts(s.graph([s.argSort(order, 1)]), gpuTarget);
    expect(topological(split.outputs).filter(({ op }) => op === 'argSort')).toHaveLength(1);
  });
});

describe.each(Object.keys(profiles) as (keyof typeof profiles)[])('on the %s profile', (profile) => {
  const target = profiles[profile];
  const kernels = (make: (s: Sketch) => readonly Node[]): string[] => {
    const s = new Sketch();
    const graph: Graph = optimise(s.graph(make(s)), target, true);
    return scheduleGraph(graph, target, new Map()).kernels.map(({ kind }) => kind);
  };
  const count = (kinds: readonly string[], kind: string): number =>
    kinds.filter((each) => each === kind).length;

  test('1 Mi keys with their values take at most 25 kernels', () => {
    const kinds = kernels((s) => sorted(s, s.input([1 << 20]), 0));
    console.log(`${profile}: ${kinds.length} kernels`);
    expect(kinds.length).toBeLessThanOrEqual(25);
    // Four digits of 8 bits.
    expect([count(kinds, 'radix-rank'), count(kinds, 'permute-scatter')]).toEqual([4, 4]);
  });

  test('16 Mi keys take as many, and shorter keys fewer digits', () => {
    expect(kernels((s) => sorted(s, s.input([1 << 24]), 0)).length).toBeLessThanOrEqual(25);
    const digits = (dtype: DType): number =>
      count(
        kernels((s) => [s.argSort(s.input([1 << 14], dtype), 0)]),
        'radix-rank',
      );
    expect((['f32', 'f16', 'bf16', 'bool'] as const).map(digits)).toEqual([4, 3, 2, 1]);
  });

  test('many short lines take one kernel, and one for the values', () => {
    const kinds = kernels((s) => sorted(s, s.input([512, 100], 'u32'), 1));
    expect([count(kinds, 'sort'), kinds.length]).toEqual([1, 2]);
  });

  test('keys that float arithmetic gives are stored before the kernels of a sort read them', () => {
    const s = new Sketch();
    const computed = unary(s.b, 'exp', mul(s.b, s.input([5000]), 3));
    const graph = optimise(s.graph([s.argSort(computed, 0)]), target);
    const { kernels: all } = scheduleGraph(graph, target, new Map());
    const parameter = graph.parameters[0] as Node;
    expect(all.filter(({ reads }) => reads.includes(parameter)).map(({ kind }) => kind)).toEqual(['map']);
  });
});
