// Attention on a core, of few rows and over keys of which memory has no room for all scores: whatever the sizes, masks and
// dtypes, it is what the graph says, as Loops for registers of four, eight and sixteen lanes, as WebAssembly and as C. Nothing
// is read in place of keys that do not exist.

import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';

import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import type { Loop } from '../../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../../src/codegen/loop/print.ts';
import * as sn from '../../../../src/index.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import type { Device } from '../../../../src/runtime/device.ts';
import { openDevice } from '../../../../src/runtime/registry.ts';
import { cTarget, wasmTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import {
  attentionRun,
  expectSame,
  filled,
  maskOf,
  poisoned,
  scoresOf,
  tame,
  type AttentionRun,
  type Problem,
} from '../../../numerics/attention-cases.ts';
import { runLoops, runOnDevice } from '../../../support/execute.ts';
import { seed } from '../../../support/property.ts';
import {
  CKernels,
  compiler,
  loopsOf,
  nativeFlags,
  runCompiled,
  strictFlags,
} from '../../../support/text/c.ts';

const hidings = [
  'nothing',
  'nothing, by a sigmoid',
  'nothing, by shares of a power',
  'later keys',
  'bool',
  'infinite',
  'infinite value',
] as const;

interface Sizes {
  readonly dtype: 'f32' | 'f16' | 'bf16';
  readonly heads: number;
  readonly rows: number;
  readonly keys: number;
  readonly depth: number;
  readonly columns: number;
  /** What a row does not see; `infinite value`: one value of the last key is not finite, and all rows see it. */
  readonly hidden: (typeof hidings)[number];
}

const sizes: fc.Arbitrary<Sizes> = fc.record({
  dtype: fc.constantFrom('f32', 'f32', 'f16', 'bf16'),
  heads: fc.integer({ min: 1, max: 3 }),
  rows: fc.integer({ min: 1, max: 9 }),
  keys: fc.oneof(fc.integer({ min: 2, max: 12 }), fc.integer({ min: 13, max: 70 })),
  depth: fc.constantFrom(4, 8, 12, 16, 20, 28, 64),
  columns: fc.oneof(fc.constantFrom(16, 64), fc.integer({ min: 1, max: 30 })),
  hidden: fc.constantFrom(...hidings),
});

function runOf({ dtype, heads, rows, keys, depth, columns, hidden }: Sizes, gradient = false): AttentionRun {
  const q = filled([heads, rows, depth], tame, 1, dtype);
  const k = filled([heads, keys, depth], tame, 2, dtype);
  const v = filled([heads, keys, columns], tame, 3, dtype);
  const isOdd = hidden === 'infinite value';
  const value = isOdd ? poisoned(v, { [heads * keys * columns - 1]: Infinity }) : v;
  const mask = hidden === 'bool' || hidden === 'infinite' ? [maskOf(hidden, rows, keys)] : [];
  const attend: Problem['attend'] = (x, y, z, given) => {
    if (hidden === 'nothing, by a sigmoid') return sn.sigmoid(scoresOf(x, y)).mul(0.25).matmul(z);
    if (hidden === 'nothing, by shares of a power') {
      const weights = scoresOf(x, y).square().add(1);
      return weights
        .div(weights.sum(-1, { keepdim: true }))
        .square()
        .matmul(z);
    }
    const isCausal = hidden === 'later keys';
    return sn.scaledDotProductAttention(x, y, z, { isCausal, ...(given && { mask: given }) });
  };
  return attentionRun({ inputs: [q, k, value, ...mask], attend, gradient });
}

const wide = (lanes: 8 | 16): Target => withVectors(cTarget, { lanes, registers: lanes === 8 ? 16 : 32 });

/** One rounding of the result's dtype, and of weights where the graph rounds them. */
const close = { f32: 1e-5, f16: 2 ** -8, bf16: 2 ** -5 } as const;

let wasm: Device;
beforeAll(async () => {
  wasm = await openDevice('wasm');
});

test('attention of few rows is what the graph says', async () => {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  await fc.assert(
    fc.asyncProperty(sizes, async (given) => {
      const run = runOf(given);
      const { graph, inputs } = run;
      const expected = interpret(graph, inputs);
      const same = (actual: ReturnType<typeof interpret>): void =>
        expectSame(actual, expected, run, close[given.dtype]);
      same(runLoops(wasmTarget, graph, inputs));
      same(await runOnDevice(wasm, wasmTarget, graph, inputs));
      for (const lanes of [8, 16] as const) {
        const plain = runLoops(wide(lanes), graph, inputs);
        same(plain);
        const widen = (loop: Loop): Loop => widenVectors(loop, lanes);
        expect(runLoops(wide(lanes), graph, inputs, undefined, new Map(), widen)).toEqual(plain);
      }
    }),
    { numRuns: 25, seed },
  );
});

test.skipIf(compiler === undefined)('compiled C computes the same', () => {
  const widen = (loop: Loop): Loop => widenVectors(loop, 8);
  const all = fc.sample(sizes, { numRuns: 12, seed });
  const runs = all.map((given) => runOf(given));
  const kernels = new CKernels(loopsOf(wide(8), runs, widen), [...nativeFlags, ...strictFlags]);
  const results = runCompiled(kernels, wide(8), runs, widen);
  runs.forEach((run, i) =>
    expectSame(results[i]!, interpret(run.graph, run.inputs), run, close[all[i]!.dtype]),
  );
});

/** The text of the one kernel, widened as it is compiled. */
function textOf(rows: number, target: Target, lanes: 4 | 8 | 16): string {
  const run = runOf({
    dtype: 'f32',
    heads: 1,
    rows,
    keys: 64,
    depth: 64,
    columns: 64,
    hidden: 'nothing',
  });
  const loops = loopsOf(target, [run]);
  expect(loops).toHaveLength(1);
  return printLoop(lanes === 4 ? loops[0]! : widenVectors(loops[0]!, lanes));
}

test('up to eight rows are computed without packing, in whole registers', () => {
  for (const rows of [1, 2, 5, 8]) {
    expect(textOf(rows, wasmTarget, 4)).toContain('nothing packed');
    const text = textOf(rows, wide(16), 16);
    expect(text).toContain('nothing packed');
    for (const operand of ['in1', 'in2']) {
      expect(text).toContain(`f32x16 = ${operand}[`);
      expect(text).not.toContain(`f32 = ${operand}[`);
    }
  }
  expect(textOf(9, wasmTarget, 4)).not.toContain('nothing packed');
});

test('rows with registers for their sums read each key once', () => {
  const loads = (rows: number): number => textOf(rows, wide(16), 16).match(/f32x16 = in1\[/g)!.length;
  expect(loads(4)).toBe(loads(1));
});

const manyKeys: fc.Arbitrary<Sizes> = fc.record({
  dtype: fc.constantFrom('f32', 'f32', 'f16'),
  heads: fc.integer({ min: 1, max: 2 }),
  rows: fc.integer({ min: 9, max: 24 }),
  keys: fc.integer({ min: 220, max: 260 }),
  depth: fc.constantFrom(4, 6, 8),
  columns: fc.integer({ min: 1, max: 40 }),
  hidden: fc.constantFrom(...hidings),
});

/** A target whose workgroups have memory for blocks of 128 keys, and less for forms in passes, whose scores are computed again. */
function small(target: Target, { hidden }: Sizes): Target {
  const isInPasses = hidden === 'nothing, by shares of a power' && target.vectors === undefined;
  return { ...target, limits: { ...target.limits, workgroupBytes: 2 ** (isInPasses ? 14 : 15) } };
}

function notesOf(target: Target, run: AttentionRun): readonly string[] {
  return loopsOf(target, [run]).map((loop) => printLoop(loop).split('\n', 2).join(' '));
}

test('attention over blocks of keys is what the graph says, with gradients', async () => {
  const wasBlocked = new Set<boolean>();
  await fc.assert(
    fc.asyncProperty(manyKeys, fc.boolean(), async (given, gradient) => {
      const run = runOf(given, gradient && given.hidden !== 'infinite value');
      const { graph, inputs } = run;
      const expected = interpret(graph, inputs);
      const same = (actual: ReturnType<typeof interpret>): void =>
        expectSame(actual, expected, run, 2 * close[given.dtype]);
      const narrow = small(wasmTarget, given);
      wasBlocked.add(notesOf(narrow, run).some((note) => note.includes('by 128 keys')));
      same(runLoops(narrow, graph, inputs));
      same(await runOnDevice(wasm, narrow, graph, inputs));
      const plain = runLoops(small(wide(16), given), graph, inputs);
      same(plain);
      const widen = (loop: Loop): Loop => widenVectors(loop, 16);
      expect(runLoops(small(wide(16), given), graph, inputs, undefined, new Map(), widen)).toEqual(plain);
    }),
    { numRuns: 6, seed },
  );
  expect(wasBlocked).toContain(true);
});

test('a workgroup has as many rows as are packed at a time, however little memory it has', () => {
  // A depth of 21 is packed across rows: two rows alone would be packed with their neighbours, past the end.
  const run = runOf(
    {
      dtype: 'f32',
      heads: 1,
      rows: 9,
      keys: 220,
      depth: 4,
      columns: 21,
      hidden: 'nothing, by shares of a power',
    },
    true,
  );
  const expected = interpret(run.graph, run.inputs);
  for (const power of [13, 14, 15]) {
    const target = { ...wasmTarget, limits: { ...wasmTarget.limits, workgroupBytes: 2 ** power } };
    expectSame(runLoops(target, run.graph, run.inputs), expected, run, 2e-5);
  }
});
