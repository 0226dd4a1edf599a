// Attention of few rows over many keys: on a GPU that one workgroup a row would leave idle, parts of the keys are
// computed at the same time and combined. What comes out is what the interpreter computes of the recorded graph.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { optimise } from '../../../src/compile.ts';
import { add, below, binary, broadcast, cast, reduceKeep, sub, unary, where } from '../../../src/ir/build.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { verify } from '../../../src/ir/verify.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray } from '../../../src/ir/value.ts';
import type { Kernel } from '../../../src/schedule/kernel.ts';
import { passes } from '../../../src/schedule/passes/pipeline.ts';
import { splitKeys } from '../../../src/schedule/passes/split-keys.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../../codegen/cases.ts';

/** GPUs that start kernels for nothing, so that a few thousand keys are worth more of them. */
const quick = (target: Target): Target => ({
  ...target,
  launch: 0,
  bandwidth: 1e9,
  cores: { count: 4, invocations: 1024 },
});
const gpus: readonly Target[] = [quick(gpuTarget), quick(cudaTarget)];

type Mask = 'none' | 'length' | 'length by number' | 'keys' | 'added' | 'causal';

interface Case {
  readonly heads: number;
  readonly rows: number;
  readonly keys: number;
  readonly features: number;
  readonly dtype: DType;
  readonly mask: Mask;
  /** Whether the row's statistics are results as well. */
  readonly tells: boolean;
  readonly seed: number;
}

const cases: fc.Arbitrary<Case> = fc.record({
  heads: fc.integer({ min: 1, max: 2 }),
  rows: fc.integer({ min: 1, max: 2 }),
  keys: fc.constantFrom(2048, 2176, 2560),
  features: fc.constantFrom(4, 6, 16),
  dtype: fc.constantFrom<DType>('f32', 'f32', 'f16'),
  mask: fc.constantFrom<Mask>('none', 'length', 'length by number', 'keys', 'added', 'causal'),
  tells: fc.boolean(),
  seed: fc.integer({ min: 1, max: 1000 }),
});

/** Attention as it is recorded: weights of masked keys are 0, or e^−∞. The last parameter is how many keys there are. */
function graphOf({ heads, rows, keys, features, dtype, mask, tells }: Case): Graph {
  const s = new Sketch();
  const { b } = s;
  const q = s.input([heads, rows, features], dtype);
  const k = s.input([heads, keys, features], dtype);
  const v = s.input([heads, keys, features], dtype);
  const allowed = s.input([keys], 'bool');
  const length = s.input([], 'i32');
  const shape = [heads, rows, keys];
  const product = s.matmul(q, b.add('permute', [k], { order: [0, 2, 1] }) as Node, 1);
  const scores = binary(b, 'mul', product, 1 / Math.sqrt(features));
  const spread = (x: Node, size = 1): Node =>
    broadcast(b, b.add('reshape', [x], { shape: [...dims(x).slice(0, 2), size] }) as Node, shape);
  const fill = (value: number): Node => broadcast(b, b.add('constant', [], { value, dtype }) as Node, shape);
  const place = (axis: number): Node => b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  const last = broadcast(b, length, shape);
  const conditions: Partial<Record<Mask, () => Node>> = {
    'length by number': () => b.add('lt', [place(2), last], {}) as Node,
    keys: () => broadcast(b, allowed, shape),
    causal: () => b.add('le', [place(2), add(b, place(1), last)], {}) as Node,
  };
  const kept = conditions[mask]?.();
  let x = scores;
  if (kept !== undefined) x = where(b, kept, scores, fill(-30_000));
  if (mask === 'length') x = below(b, scores, 2, length, -Infinity);
  if (mask === 'added') x = add(b, scores, where(b, broadcast(b, allowed, shape), fill(0), fill(-Infinity)));
  const max = reduceKeep(b, 'max', x, [2]);
  const shifted = unary(b, 'exp', sub(b, kept === undefined ? x : scores, spread(max)));
  const e = kept === undefined ? shifted : where(b, kept, shifted, fill(0));
  const sum = reduceKeep(b, 'sum', e, [2]);
  const none = cast(
    b,
    b.add(
      'eq',
      [sum, broadcast(b, s.b.add('constant', [], { value: 0, dtype }) as Node, dims(sum))],
      {},
    ) as Node,
    dtype,
  );
  const weights = binary(b, 'div', e, spread(kept === undefined ? sum : add(b, sum, none)));
  const out = s.matmul(weights, v, 1);
  return s.graph(tells ? [out, max, sum] : [out]);
}

function inputsOf(graph: Graph, { keys, seed }: Case): ReturnType<typeof randomArray>[] {
  return graph.parameters.map(({ dtype, shape }, i) =>
    dtype === 'i32'
      ? hostArray('i32', [], [(seed * 7919) % keys])
      : randomArray(dtype, shape as number[], seed + i, 'tame'),
  );
}

function kernelsOf(graph: Graph, target: Target): readonly Kernel[] {
  return scheduleGraph(optimise(graph, target, true), target, new Map()).kernels;
}

const kindsOf = (graph: Graph, target: Target): readonly string[] =>
  kernelsOf(graph, target).map(({ kind }) => kind);

const tolerance = (dtype: DType): number => (dtype === 'f32' ? 1e-4 : 4e-3);

test('the split graph means what the recorded one does', () => {
  checkLaw(40, cases, (given) => {
    const graph = graphOf(given);
    const inputs = inputsOf(graph, given);
    const split = splitKeys(graph, gpus[0]!);
    expect(split).not.toBe(graph);
    verify(split, 'splitKeys');
    const results = interpret(split, inputs);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, tolerance(given.dtype)));
  });
});

test.each(gpus)('parts of the keys and their combination are two kernels on $name, and right', (target) => {
  checkLaw(12, cases, (given) => {
    const graph = graphOf(given);
    if (!given.tells) expect(kindsOf(graph, target)).toEqual(['attention', 'row-reduction']);
    const inputs = inputsOf(graph, given);
    const asScalars = [4];
    const results = runLoops(target, graph, inputs, undefined, undefined, undefined, asScalars);
    interpret(graph, inputs).forEach((want, i) => expectClose(results[i]!, want, tolerance(given.dtype)));
  });
});

describe('special values', () => {
  const given: Case = {
    heads: 2,
    rows: 1,
    keys: 2048,
    features: 4,
    dtype: 'f32',
    mask: 'added',
    tells: false,
    seed: 3,
  };
  /** What the kernels make of inputs that `change` has changed. */
  function expectSame(mask: Mask, change: (inputs: ReturnType<typeof inputsOf>) => void): readonly number[] {
    const graph = graphOf({ ...given, mask });
    const inputs = inputsOf(graph, given);
    change(inputs);
    const [result] = runLoops(gpus[0]!, graph, inputs);
    const [want] = interpret(graph, inputs);
    expectClose(result!, want!, 1e-4);
    return [...result!.data].map(Number);
  }
  const allow = (inputs: ReturnType<typeof inputsOf>, keys: readonly number[]): void => {
    const allowed = inputs[3]!.data as unknown as Uint8Array;
    allowed.fill(0);
    for (const key of keys) allowed[key] = 1;
  };

  test('one key counts, and every other part of the keys has none', () => {
    for (const mask of ['added', 'keys'] as const) {
      const result = expectSame(mask, (inputs) => allow(inputs, [77]));
      expect(result.every(Number.isFinite)).toBe(true);
    }
  });

  test('without a key the row is 0 or not a number, as it was recorded', () => {
    expect(expectSame('added', (inputs) => allow(inputs, [])).every(Number.isNaN)).toBe(true);
    expect(expectSame('keys', (inputs) => allow(inputs, [])).every((x) => x === 0)).toBe(true);
  });

  test('a score that is not a number makes its row so, and no other', () => {
    const result = expectSame('none', (inputs) => void (inputs[1]!.data[4 * 100] = NaN));
    expect(result.slice(0, 4).every(Number.isNaN)).toBe(true);
    expect(result.slice(4).every(Number.isFinite)).toBe(true);
  });

  test('an infinite score, and scores far above those of other parts', () => {
    const result = expectSame('none', (inputs) => {
      (inputs[0]!.data as Float32Array).fill(1);
      inputs[1]!.data[4 * 100] = Infinity;
      inputs[1]!.data[4 * (2048 + 5)] = 1e30;
    });
    expect(result.slice(0, 4).every(Number.isNaN)).toBe(true);
    expect(result.slice(4).every(Number.isFinite)).toBe(true);
  });
});

describe('what is split', () => {
  const plain: Case = {
    heads: 1,
    rows: 1,
    keys: 2048,
    features: 16,
    dtype: 'f32',
    mask: 'length by number',
    tells: false,
    seed: 1,
  };
  const partsOf = (target: Target, more: Partial<Case> = {}): number => {
    const graph = graphOf({ ...plain, ...more });
    const [kernel] = kernelsOf(graph, target);
    if (kernel!.body.kind !== 'attention') throw new Error(`a ${kernel!.body.kind} kernel`);
    return (more.keys ?? plain.keys) / kernel!.body.key.extent;
  };

  test('rows that leave most of the machine idle, and no others', () => {
    expect(partsOf(gpus[0]!)).toBe(8);
    expect(partsOf(gpus[0]!, { heads: 8, features: 64 })).toBe(1);
    // A launch costs more than is won.
    expect(partsOf(gpuTarget)).toBe(1);
    expect(partsOf(cudaTarget, { heads: 32, keys: 8192, features: 128 })).toBe(16);
    // Processors have no idle multiprocessors.
    const pass = passes.find(({ name }) => name === 'splitKeys')!;
    const long = graphOf({ ...plain, keys: 65_536 });
    for (const target of [softwareTarget, wasmTarget]) expect(pass.run(long, quick(target))).toBe(long);
    expect(pass.run(long, gpus[0]!)).not.toBe(long);
    // No number of parts divides the keys.
    expect(partsOf(gpus[0]!, { heads: 4, features: 64, keys: 2053 })).toBe(1);
  });

  test('of a cache with room for more keys, every part visits those that exist', () => {
    const graph = optimise(graphOf(plain), gpus[0]!, true);
    const [kernel] = scheduleGraph(graph, gpus[0]!, new Map([[graph.parameters[4] as Node, 0]])).kernels;
    if (kernel!.body.kind !== 'attention') throw new Error(`a ${kernel!.body.kind} kernel`);
    expect(kernel!.body.range.end).toBeDefined();
    const inputs = inputsOf(graph, plain);
    // Part s has the keys s, s + 8, …: whatever the number is, it is right.
    for (const length of [0, 1, 7, 8, 9, 1000, 2047, 2048, 9999, -5, -(2 ** 31), 2 ** 31 - 1]) {
      inputs[4] = hostArray('i32', [], [length]);
      const [result] = runLoops(gpus[0]!, graphOf(plain), inputs, undefined, undefined, undefined, [4]);
      const [want] = interpret(graphOf(plain), inputs);
      expectClose(result!, want!, 1e-4);
    }
  });
});
