// Scatters as kernels: which way sizes and target choose, and that every way folds in the order it promises.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Stmt } from '../../src/codegen/loop/loop.ts';
import { bodiesOf } from '../../src/codegen/loop/walk.ts';
import { optimise } from '../../src/compile.ts';
import { broadcast, full, reshape } from '../../src/ir/build.ts';
import { isFloat, type DType } from '../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { ScatterMode } from '../../src/ir/ops.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import { splitScatters } from '../../src/schedule/passes/scatter.ts';
import {
  cTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  withVectors,
  type Target,
} from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runLoops } from '../support/execute.ts';
import { checkLaw } from '../support/property.ts';
import { randomArray, randomIndices } from '../support/random/values.ts';

/** Launches cost nothing, so that even small scatters are taken apart. */
const eager: readonly Target[] = [gpuTarget, softwareTarget].map((target) => ({ ...target, launch: 0 }));

interface Case {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
}

/** A scatter along `axis`; where `shared` says so, indices are the same all along another axis. */
function scatterOf(
  operand: readonly number[],
  updates: readonly number[],
  shared: readonly boolean[],
  { axis, mode, dtype, seed }: { axis: number; mode: ScatterMode; dtype: DType; seed: number },
): Case {
  const s = new Sketch();
  const own = updates.map((dim, i) => (i !== axis && shared[i] === true ? 1 : dim));
  const [x, at, u] = [s.input(operand, dtype), s.input(own, 'i32'), s.input(updates, dtype)];
  const out = s.b.add('scatter', [x, broadcast(s.b, at, updates), u], { axis, mode }) as Node;
  const inputs = [
    randomArray(dtype, operand, seed, 'tame'),
    randomIndices('i32', own, operand[axis]!, seed + 1),
    randomArray(dtype, updates, seed + 2, 'tame'),
  ];
  return { graph: s.graph([out]), inputs };
}

const shapes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 }).chain((operand) =>
  fc.record({
    operand: fc.constant(operand),
    axis: fc.nat(operand.length - 1),
    count: fc.integer({ min: 1, max: 40 }),
    less: fc.array(fc.nat(1), { minLength: operand.length, maxLength: operand.length }),
    shared: fc.array(fc.boolean(), { minLength: operand.length, maxLength: operand.length }),
  }),
);
const cases = fc
  .record({
    place: shapes,
    dtype: fc.constantFrom<DType>('f32', 'i32', 'u32', 'bool'),
    mode: fc.constantFrom<ScatterMode>('set', 'add', 'mul', 'min', 'max'),
    seed: fc.integer({ min: 1, max: 2 ** 20 }),
    target: fc.constantFrom(...eager),
  })
  .map(({ place: { operand, axis, count, less, shared }, dtype, mode, seed, target }) => {
    const updates = operand.map((dim, i) => (i === axis ? count : Math.max(1, dim - less[i]!)));
    const one = { axis, mode: dtype === 'bool' ? 'set' : mode, dtype, seed } as const;
    return { ...scatterOf(operand, updates, shared, one), target };
  });

/** Equal but for rounding: chunks round their own sums. */
function expectNear(found: HostArray, wanted: HostArray): void {
  expect({ dtype: found.dtype, shape: found.shape }).toEqual({ dtype: wanted.dtype, shape: wanted.shape });
  for (const [i, want] of Array.from(wanted.data, Number).entries()) {
    const got = Number(found.data[i]);
    const allowed = isFloat(wanted.dtype) ? 1e-5 * Math.max(1, Math.abs(want)) : 0;
    if (!(Math.abs(got - want) <= allowed) && !Object.is(got, want)) expect(got, `element ${i}`).toBe(want);
  }
}

describe('splitting a scatter', () => {
  test('keeps its meaning for every mode, axis, shared and missing index', () => {
    checkLaw(400, cases, ({ graph, inputs, target }) => {
      const split = splitScatters(graph, target);
      verify(split, 'splitScatters');
      expectNear(interpret(split, inputs)[0]!, interpret(graph, inputs)[0]!);
    });
  });

  test('gives Loops without races', () => {
    checkLaw(120, cases, ({ graph, inputs, target }) => {
      const [expected] = interpret(graph, inputs);
      expectNear(runLoops(target, graph, inputs)[0]!, expected!);
      // Over the operand itself.
      expectNear(runLoops(target, graph, inputs, undefined, new Map([[0, 0]]))[0]!, expected!);
    });
  });

  test.each([
    ['one kernel', 20, 16, 30],
    ['sorted', 3000, 8, 3000],
  ] as const)(
    'folds in the order of updates, %s: bit for bit a loop over them in f32',
    (_, slots, width, count) => {
      const s = new Sketch();
      const at = s.input([count, 1], 'i32');
      const x = s.input([slots, width]);
      const u = s.input([count, width]);
      const index = broadcast(s.b, at, [count, width]);
      const graph = s.graph([s.b.add('scatter', [x, index, u], { axis: 0, mode: 'add' }) as Node]);
      const values = (size: number, seed: number): Float32Array =>
        Float32Array.from({ length: size }, (_unused, i) => Math.sin(i * 12.9898 + seed) * 1000);
      const [start, updates] = [values(slots * width, 1), values(count * width, 2)];
      // Few places, so that many updates meet.
      const places = Int32Array.from({ length: count }, (_unused, i) => (i * i * 7) % 11);
      const expected = start.slice();
      for (let i = 0; i < count; i++)
        for (let c = 0; c < width; c++) expected[places[i]! * width + c]! += updates[i * width + c]!;
      const inputs = [
        hostArray('i32', [count, 1], [...places]),
        hostArray('f32', [slots, width], [...start]),
        hostArray('f32', [count, width], [...updates]),
      ];
      for (const target of [gpuTarget, softwareTarget, ...eager])
        expect(runLoops(target, graph, inputs)[0]!.data).toEqual(expected);
    },
  );
});

/** Cores that take several lines at a time, and so few invocations that one has several turns. */
const cores: readonly Target[] = [
  wasmTarget,
  withVectors(cTarget, { lanes: 16, registers: 32 }),
  { ...wasmTarget, cores: { count: 2, invocations: 1 } },
];
const lined = fc.record({
  operand: fc.tuple(
    fc.integer({ min: 1, max: 5 }),
    fc.integer({ min: 1, max: 6 }),
    fc.integer({ min: 1, max: 150 }),
  ),
  axis: fc.nat(1),
  count: fc.integer({ min: 1, max: 7 }),
  less: fc.tuple(fc.nat(1), fc.nat(1), fc.nat(1)),
  /** Whether each line has slots of its own, along the axis before the slots or behind them. */
  own: fc.constantFrom<readonly boolean[]>([true, true, true], [false, false, true], [true, true, false]),
  dtype: fc.constantFrom<DType>('f32', 'i32', 'f16', 'u8', 'i64', 'bool'),
  mode: fc.constantFrom<ScatterMode>('set', 'set', 'add', 'mul', 'min', 'max'),
  seed: fc.integer({ min: 1, max: 2 ** 20 }),
  target: fc.constantFrom(...cores),
});

describe('on a core', () => {
  test('lines that are taken together get what each would get alone', () => {
    checkLaw(80, lined, ({ operand, axis, count, less, own, dtype, mode, seed, target }) => {
      const updates = operand.map((dim, i) => (i === axis ? count : Math.max(1, dim - less[i]!)));
      const one = { axis, mode: dtype === 'bool' ? 'set' : mode, dtype, seed } as const;
      const { graph, inputs } = scatterOf(operand, updates, own, one);
      const [expected] = interpret(graph, inputs);
      expectNear(runLoops(target, graph, inputs)[0]!, expected!);
      expectNear(runLoops(target, graph, inputs, undefined, new Map([[0, 0]]))[0]!, expected!);
    });
  });

  test('a row that is written over others is copied in vectors, and rows with places of their own are not', () => {
    const widths = (own: boolean): number[] => {
      const operand = [128, 32, 128];
      const one = { axis: 0, mode: 'set', dtype: 'f32', seed: 1 } as const;
      const { graph, inputs } = scatterOf(operand, [1, 32, 128], [true, !own, true], one);
      const seen = new Set<number>();
      const visit = (statements: readonly Stmt[]): void => {
        for (const statement of statements) {
          if (statement.kind === 'store') seen.add(statement.value.width);
          bodiesOf(statement).forEach(visit);
        }
      };
      runLoops(
        wasmTarget,
        graph,
        inputs,
        undefined,
        new Map([[0, 0]]),
        undefined,
        [],
        ({ body }) => void visit(body),
      );
      return [...seen];
    };
    expect(widths(false)).toEqual([4]);
    expect(widths(true)).toEqual([1]);
  });
});

describe.each([
  ['gpu', gpuTarget],
  ['software', softwareTarget],
] as const)('on the %s profile', (_, target) => {
  const kinds = (slots: number, width: number, count: number, mode: ScatterMode = 'add'): string[] => {
    const s = new Sketch();
    const at = broadcast(s.b, reshape(s.b, s.input([count], 'i32'), [count, 1]), [count, width]);
    const none = full(s.b, [slots, width], 0, 'f32');
    const out = s.b.add('scatter', [none, at, s.input([count, width])], { axis: 0, mode }) as Node;
    const graph = optimise(s.graph([out]), target, true);
    return scheduleGraph(graph, target, new Map()).kernels.map(({ kind }) => kind);
  };

  test('few updates take one kernel', () => {
    expect(kinds(50, 8, 40)).toEqual(['scatter']);
    expect(kinds(3, 1, 12, 'set')).toEqual(['scatter']);
  });

  test("an embedding's gradient sorts the tokens once, and folds rows", () => {
    const found = kinds(50_257, 768, 8192);
    expect(found.at(-1)).toBe('segment-reduce');
    expect(found).not.toContain('scatter');
    expect(found.length).toBeLessThanOrEqual(14);
  });

  test('many updates of few slots are scattered in chunks, then folded', () => {
    expect(kinds(64, 1, 1 << 20)).toEqual(['scatter', 'row-reduction']);
  });

  test('where chunks do not combine, the updates are sorted', () => {
    expect(kinds(64, 1, 1 << 20, 'set')).toContain('segment-reduce');
  });

  test('additions in no fixed order take one kernel, or the ordered one where that is no slower', () => {
    const added = (size: number, count: number): string[] => {
      const s = new Sketch();
      const sums = s.b.add('scatterAddAtomic', [s.input([count], 'i32'), s.input([count])], {
        axis: 0,
        size,
      }) as Node;
      const graph = optimise(s.graph([sums]), target, true);
      return scheduleGraph(graph, target, new Map()).kernels.map(({ kind }) => kind);
    };
    expect(added(100_000, 100_000)).toEqual(['scatter-add-atomic']);
    expect(added(16, 10)).toEqual(['scatter']);
  });

  test('what follows is computed with the fold', () => {
    const s = new Sketch();
    const count = 8192;
    const at = broadcast(s.b, s.input([count, 1], 'i32'), [count, 256]);
    const none = full(s.b, [30_000, 256], 0, 'f32');
    const sum = s.b.add('scatter', [none, at, s.input([count, 256])], { axis: 0, mode: 'add' }) as Node;
    const next = s.b.add('fma', [sum, s.input([30_000, 256]), s.input([30_000, 256])], {}) as Node;
    const graph = optimise(s.graph([next]), target, true);
    const { kernels } = scheduleGraph(graph, target, new Map());
    expect(kernels.at(-1)!.kind).toBe('segment-reduce');
    expect(topological(graph.outputs)).toContain(kernels.at(-1)!.writes[0]!.node);
    expect(kernels.at(-1)!.writes.map(({ node }) => node.op)).toEqual(['fma']);
  });
});
