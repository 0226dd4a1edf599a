// Row kernels by their laws, in every schedule: wherever a row's elements wait and however its invocations come together, the
// Loop computes what the reference interpreter does, for NaN, infinities and rows of −∞ too; and fewer sweeps are not less exact.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { Loop } from '../../../src/codegen/loop/loop.ts';
import { compileGraph } from '../../../src/compile.ts';
import {
  add,
  binary,
  broadcast,
  div,
  mul,
  reduce,
  reduceKeep,
  sub,
  unary,
  where,
} from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import {
  cTarget,
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  withVectors,
  type Target,
} from '../../../src/schedule/target.ts';
import { logSumExp } from '../../../src/tensor/formula/elementwise.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { describeProgram, expectClose } from '../../support/random/graph.ts';
import { randomArray, wordsFrom } from '../../support/random/values.ts';
import { rowTargets, smallBlocks } from '../../support/targets.ts';
import { Sketch } from '../cases.ts';

type Recipe = (s: Sketch, x: Node, axis: number) => readonly Node[];

const keep = (s: Sketch, monoid: 'sum' | 'max', x: Node, axis: number): Node =>
  broadcast(s.b, reduceKeep(s.b, monoid, x, [axis]), dims(x));
const mean = (s: Sketch, x: Node, axis: number): Node =>
  mul(s.b, keep(s, 'sum', x, axis), 1 / dims(x)[axis]!);
const iota = (s: Sketch, x: Node, axis: number): Node =>
  s.b.add('iota', [], { shape: dims(x), axis, dtype: 'i32' }) as Node;
const logSoftmax = (s: Sketch, x: Node, axis: number): Node => {
  const shifted = sub(s.b, x, keep(s, 'max', x, axis));
  return sub(s.b, shifted, unary(s.b, 'log', keep(s, 'sum', unary(s.b, 'exp', shifted), axis)));
};
const standard = (s: Sketch, x: Node, axis: number): Node => {
  const off = sub(s.b, x, mean(s, x, axis));
  return mul(s.b, off, unary(s.b, 'rsqrt', add(s.b, mean(s, mul(s.b, off, off), axis), 1e-3)));
};

/** Programs over rows; most are one kernel of two or three sweeps. */
const recipes: Readonly<Record<string, Recipe>> = {
  softmax: (s, x, axis) => [s.softmax(x, axis)],
  'log softmax': (s, x, axis) => [logSoftmax(s, x, axis)],
  'softmax of a scaled, masked input': (s, x, axis) => {
    const far = binary(s.b, 'lt', iota(s, x, axis), 5);
    return [
      s.softmax(where(s.b, far, mul(s.b, x, 0.25), broadcast(s.b, s.constant(-Infinity), dims(x))), axis),
    ];
  },
  'log of the sum of exponentials': (s, x, axis) => [logSumExp(s.b, x, [axis])],
  standardised: (s, x, axis) => [standard(s, x, axis)],
  'mean and variance': (s, x, axis) => {
    const off = sub(s.b, x, mean(s, x, axis));
    return [reduce(s.b, 'sum', x, [axis]), reduce(s.b, 'sum', mul(s.b, off, off), [axis])];
  },
  'mean distance from the mean': (s, x, axis) => [
    reduce(s.b, 'sum', unary(s.b, 'abs', sub(s.b, x, mean(s, x, axis))), [axis]),
  ],
  'entropy of one class': (s, x, axis) => {
    const target = s.b.add('constant', [], { value: 2, dtype: 'i32' }) as Node;
    const hit = binary(s.b, 'eq', iota(s, x, axis), broadcast(s.b, target, dims(x)));
    return [
      reduce(s.b, 'sum', where(s.b, hit, logSoftmax(s, x, axis), broadcast(s.b, s.constant(0), dims(x))), [
        axis,
      ]),
    ];
  },
  'places of both extremes': (s, x, axis) =>
    (['max', 'min'] as const).map((monoid) => s.b.add('argReduce', [x], { monoid, axis }) as Node),
  'what softmax passes back': (s, x, axis) => {
    const y = s.softmax(x, axis);
    const g = mul(s.b, x, 0.5);
    return [mul(s.b, y, sub(s.b, g, keep(s, 'sum', mul(s.b, y, g), axis)))];
  },
  'many at once': (s, x, axis) => [
    reduce(s.b, 'sum', x, [axis]),
    reduce(s.b, 'max', x, [axis]),
    reduce(s.b, 'min', x, [axis]),
    reduce(s.b, 'or', binary(s.b, 'lt', x, 0), [axis]),
    div(s.b, x, keep(s, 'max', x, axis)),
  ],
};

interface Case {
  readonly recipe: string;
  readonly rows: number;
  readonly columns: number;
  readonly axis: 0 | 1;
  readonly dtype: 'f32' | 'f16';
  readonly values: 'tame' | 'far from 0' | 'special';
  readonly seed: number;
}

const sometimes = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20, 33, 36, 64, 67, 100, 300];
const randomCase: fc.Arbitrary<Case> = fc.record({
  recipe: fc.constantFrom(...Object.keys(recipes)),
  rows: fc.constantFrom(1, 2, 3, 4, 5, 8, 9, 13),
  columns: fc.constantFrom(...sometimes),
  axis: fc.constantFrom(0 as const, 1 as const),
  dtype: fc.constantFrom('f32' as const, 'f32' as const, 'f16' as const),
  values: fc.constantFrom('tame' as const, 'far from 0' as const, 'special' as const),
  seed: fc.nat({ max: 2 ** 20 }),
});

/** Elements for a row program: rows of −∞, and a few NaN and infinities among others. */
function elements({ rows, columns, values, seed }: Case): number[] {
  const next = wordsFrom(seed);
  const real = (): number => (next() / 2 ** 32) * 8 - 4;
  return Array.from({ length: rows * columns }, () => {
    if (values === 'far from 0') return 100 + real() / 8;
    if (values === 'tame') return real();
    const die = next() % 40;
    if (die < 20) return -Infinity;
    return die === 20 ? NaN : die === 21 ? Infinity : real() * (die === 22 ? 20 : 1);
  });
}

function program(given: Case): { graph: Graph; inputs: HostArray[] } {
  const s = new Sketch();
  const { rows, columns, axis, dtype, recipe } = given;
  const shape = axis === 1 ? [rows, columns] : [columns, rows];
  const x = s.input(shape, dtype);
  const wide = dtype === 'f32' ? x : (s.b.add('cast', [x], { dtype: 'f32' }) as Node);
  const graph = s.graph(recipes[recipe]!(s, wide, axis));
  return { graph, inputs: [hostArray(dtype, shape, elements(given))] };
}

const targets: readonly Target[] = [gpuTarget, softwareTarget, smallBlocks, ...Object.values(rowTargets)];

test('row programs mean the same in every schedule', () => {
  checkLaw(150, randomCase, (given) => {
    const { graph, inputs } = program(given);
    const expected = interpret(graph, inputs);
    for (const target of targets) {
      try {
        runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 3e-4));
      } catch (error) {
        throw new Error(`${target.name}: ${JSON.stringify(given)}${describeProgram({ graph, inputs })}`, {
          cause: error,
        });
      }
    }
  });
});

test.each([
  ['cuda', cudaTarget, 'exp2'],
  ['wgsl', gpuTarget, 'exp2'],
  ['wgsl:software', softwareTarget, 'exp'],
  ['wasm', wasmTarget, 'exp'],
] as const)('exponentials of logsumexp, %s', (_, target, expected) => {
  const s = new Sketch();
  const graph = s.graph([logSumExp(s.b, s.input([8, 64]), [1])]);
  const text: string[] = [];
  const keep = (loop: Loop): Loop => {
    text.push(JSON.stringify(loop));
    return loop;
  };
  runLoops(target, graph, [randomArray('f32', [8, 64], 1, 'tame')], undefined, new Map(), keep);
  expect(new Set(text.join().match(/"op":"exp2?"/g))).toEqual(new Set([`"op":"${expected}"`]));
});

/** Cores with registers of 4, 8 and 16 lanes. */
const cores: readonly Target[] = [
  rowTargets['rows on a core']!,
  ...(
    [
      { lanes: 8, registers: 16 },
      { lanes: 16, registers: 32 },
    ] as const
  ).map((vectors) => withVectors({ ...cTarget, rows: rowTargets['rows on a core']!.rows }, vectors)),
];

/** A norm of each channel over a batch of images, with what the rows of a kernel share, and a flag of each element. */
function channelNorm(shape: readonly number[], monoid: 'sum' | 'max', kept: boolean): Graph {
  const s = new Sketch();
  const x = s.input(shape);
  const [gain, shift] = [s.input([1, shape[1]!, 1, 1]), s.input([1, shape[1]!, 1, 1])];
  const wide = (node: Node): Node => broadcast(s.b, node, shape);
  const over = (of: Node, by: 'sum' | 'max' = 'sum'): Node => reduceKeep(s.b, by, of, [0, 2, 3]);
  const count = shape[0]! * shape[2]! * shape[3]!;
  const off = sub(s.b, x, wide(mul(s.b, over(x), 1 / count)));
  const variance = mul(s.b, over(mul(s.b, off, off)), 1 / count);
  const scale = mul(s.b, unary(s.b, 'rsqrt', add(s.b, variance, 1e-3)), gain);
  const y = add(s.b, mul(s.b, off, wide(scale)), wide(shift));
  // Exponentials are worth keeping for the sweep that divides by their sum.
  const after = kept ? unary(s.b, 'exp', mul(s.b, y, 0.5)) : y;
  const shared = wide(over(after, monoid));
  return s.graph([sub(s.b, after, shared), binary(s.b, 'lt', x, wide(gain)), over(after, monoid)]);
}

test('channels of images, whose rows are pieces of memory, mean the same in every schedule', () => {
  const randomImages = fc.record({
    shape: fc.tuple(
      fc.constantFrom(1, 2, 3, 5, 70),
      fc.constantFrom(1, 3, 4, 5, 8),
      fc.constantFrom(1, 3, 4, 7),
      fc.constantFrom(4, 5, 7, 8, 11),
    ),
    monoid: fc.constantFrom('sum' as const, 'max' as const),
    kept: fc.boolean(),
    seed: fc.nat({ max: 2 ** 20 }),
  });
  checkLaw(40, randomImages, ({ shape, monoid, kept, seed }) => {
    const next = wordsFrom(seed);
    const values = (sizes: readonly number[]): HostArray => {
      const length = sizes.reduce((a, b) => a * b);
      return hostArray(
        'f32',
        sizes,
        Array.from({ length }, () => (next() / 2 ** 32) * 4 - 2),
      );
    };
    const channels = [1, shape[1], 1, 1];
    const graph = channelNorm(shape, monoid, kept);
    const inputs = [values(shape), values(channels), values(channels)];
    const expected = interpret(graph, inputs);
    for (const target of cores)
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 3e-4));
  });
});

test('lanes on a core run along elements, whatever is read once a row', () => {
  const graph = channelNorm([8, 16, 7, 7], 'sum', false);
  for (const { kind, schedule } of compileGraph(graph, wasmTarget, { check: true }).kernels)
    if (kind === 'row-reduction') expect(schedule).toContain('16 rows of 392, lanes along column');
});

test('a channel over many images is summed no less exactly than in one piece', () => {
  const errorOf = (shape: readonly number[]): number => {
    const s = new Sketch();
    const graph = s.graph([reduce(s.b, 'sum', s.input(shape), [0, 2, 3])]);
    const next = wordsFrom(11);
    const length = shape.reduce((a, b) => a * b);
    const values = Float32Array.from({ length }, () => 1 + next() / 2 ** 32);
    const exact = values.reduce((sum, value) => sum + value, 0);
    const [sum] = runLoops(wasmTarget, graph, [hostArray('f32', shape, [...values])]);
    return Math.abs(Number(sum!.data[0]) - exact) / exact;
  };
  // Single elements behind the groups of 2048 images are summed in blocks as well.
  expect(errorOf([2048, 1, 1, 19])).toBeLessThan(3e-7);
  expect(errorOf([1, 1, 2048, 19])).toBeLessThan(3e-7);
});

/** What the one kernel of a recipe says of its schedule. */
function scheduleOf(recipe: string, rows: number, columns: number, target: Target): string {
  const { graph } = program({ recipe, rows, columns, axis: 1, dtype: 'f32', values: 'tame', seed: 1 });
  const { kernels } = compileGraph(graph, target, { check: true });
  expect(kernels.length).toBe(1);
  return kernels[0]!.schedule;
}

/** How often a text stands in the one kernel of a recipe. */
function countIn(text: RegExp, recipe: string, rows: number, columns: number, target: Target): number {
  const { graph } = program({ recipe, rows, columns, axis: 1, dtype: 'f32', values: 'tame', seed: 1 });
  const [kernel] = compileGraph(graph, target, { check: true }).kernels;
  return kernel!.source.match(text)?.length ?? 0;
}

const loadsOf = countIn.bind(undefined, /= in0\[/g);
const sweepsOf = countIn.bind(undefined, /for \(var step/g);

describe('a GPU reads a row', () => {
  test('once where registers hold it', () => {
    expect(scheduleOf('softmax', 512, 1024, gpuTarget)).toContain('kept in registers');
    // One load a step: 1024 elements are 256 groups, four for each of 64 invocations.
    expect(loadsOf('softmax', 2048, 1024, gpuTarget)).toBe(4);
    expect(scheduleOf('standardised', 64, 8192, gpuTarget)).toContain('kept in registers');
  });

  test('in smaller shares where it computes much with what it reads', () => {
    const small = { ...gpuTarget, rows: { ...gpuTarget.rows, registers: 2 } };
    expect(scheduleOf('softmax', 4096, 1024, gpuTarget)).toContain('64 invocations a row, kept in registers');
    expect(scheduleOf('softmax', 4096, 1024, small)).toContain('128 invocations a row, kept in registers');
  });

  test('twice, not three times, where it is too long', () => {
    for (const recipe of ['softmax', 'standardised']) expect(sweepsOf(recipe, 64, 65_536, gpuTarget)).toBe(2);
  });

  test('alone where it is short', () => {
    expect(scheduleOf('softmax', 4096, 32, gpuTarget)).toContain('1 invocation a row');
  });
});

test('the class of a row is looked up, not searched', () => {
  // Two sweeps: the maximum and the sum of exponentials.
  expect(sweepsOf('entropy of one class', 64, 64, softwareTarget)).toBe(2);
});

test('running moments are as exact as two sweeps, far from 0', () => {
  const s = new Sketch();
  const x = s.input([1, 4096]);
  const graph = s.graph(recipes['mean and variance']!(s, x, 1));
  const next = wordsFrom(7);
  const values = Float32Array.from({ length: 4096 }, () => 1e4 + next() / 2 ** 32);
  const exactMean = values.reduce((sum, value) => sum + value, 0) / 4096;
  const exact = values.reduce((sum, value) => sum + (value - exactMean) ** 2, 0);
  const errorOn = (target: Target): number => {
    const squares = runLoops(target, graph, [hostArray('f32', [1, 4096], [...values])])[1]!;
    return Math.abs(Number(squares.data[0]) - exact) / exact;
  };
  expect(errorOn(rowTargets['rows streamed in fewer sweeps']!)).toBeLessThan(
    errorOn(rowTargets['rows streamed']!) + 1e-7,
  );
});

test('of equal extremes the first is found, however a row is shared', () => {
  const s = new Sketch();
  const graph = s.graph(recipes['places of both extremes']!(s, s.input([2, 67]), 1));
  const equal = Array.from({ length: 67 }, (_, i) => (i % 5 === 3 ? 1 : 0));
  const input = hostArray('f32', [2, 67], [...equal, ...equal.map((value) => -value)]);
  for (const target of [gpuTarget, softwareTarget, ...Object.values(rowTargets)]) {
    const [largest, least] = runLoops(target, graph, [input]);
    expect([target.name, [...largest!.data], [...least!.data]]).toEqual([target.name, [3, 0], [0, 3]]);
  }
});

test('a running sum goes on through all rounds of a workgroup', () => {
  const s = new Sketch();
  const graph = s.graph([s.scan(s.input([1, 64], 'i32'), 1, 'sum')]);
  // Four invocations take four elements each: four rounds.
  const limits = { ...gpuTarget.limits, workgroupInvocations: 4 };
  const target = { ...gpuTarget, workgroupSize: 4, limits };
  const [sums] = runLoops(target, graph, [hostArray('i32', [1, 64], new Array<number>(64).fill(1))]);
  expect([...sums!.data]).toEqual(Array.from({ length: 64 }, (_, i) => i + 1));
});
