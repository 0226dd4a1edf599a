// Products of few rows by lines of 16-bit floats and of f32: whatever the sizes, and however lines lie, they are what the graph says,
// as Loops for registers of four, eight and sixteen lanes, as WebAssembly and as C; also with weights that are not finite or subnormal.

import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';

import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import type { Loop } from '../../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../../src/codegen/loop/print.ts';
import { statementsIn } from '../../../../src/codegen/loop/walk.ts';
import { chosenTiling, legalTilings } from '../../../../src/codegen/template/contract/choose.ts';
import { contractProblem, type ContractProblem } from '../../../../src/codegen/template/contract/problem.ts';
import type { ContractTiling, PinnedTilings } from '../../../../src/codegen/template/contract/strategies.ts';
import { add, broadcast, cast, permute, slice } from '../../../../src/ir/build.ts';
import { dims, type Graph } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../../src/ir/value.ts';
import type { Device } from '../../../../src/runtime/device.ts';
import { openDevice } from '../../../../src/runtime/registry.ts';
import { scheduleGraph } from '../../../../src/schedule/schedule.ts';
import { cTarget, wasmTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../../support/execute.ts';
import { seed } from '../../../support/property.ts';
import { expectClose } from '../../../support/random/graph.ts';
import { wordsFrom } from '../../../support/random/values.ts';
import {
  CKernels,
  compiler,
  loopsOf,
  nativeFlags,
  runCompiled,
  strictFlags,
} from '../../../support/text/c.ts';
import { Sketch } from '../../cases.ts';

interface Product {
  readonly dtype: 'f16' | 'bf16' | 'f32';
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Columns of the matrix that lines are a part of, before and behind them. */
  readonly around: readonly [before: number, behind: number];
  readonly bias: boolean;
  readonly rows: 1 | 2;
  readonly parts: 1 | 2;
  /** Multiples of 2⁻²⁴ alone, which are subnormal halves; or one weight that is not finite. */
  readonly weights: 'tame' | 'tiny' | 'infinite' | 'none';
  readonly pick: number;
}

const product: fc.Arbitrary<Product> = fc.record({
  dtype: fc.constantFrom('f16', 'f16', 'bf16', 'f32'),
  batch: fc.integer({ min: 1, max: 2 }),
  m: fc.integer({ min: 1, max: 5 }),
  n: fc.integer({ min: 4, max: 21 }),
  k: fc.oneof(
    fc.integer({ min: 2, max: 40 }),
    fc.integer({ min: 41, max: 150 }),
    fc.constantFrom(64, 96, 128),
  ),
  around: fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 5 })),
  bias: fc.boolean(),
  rows: fc.constantFrom(1, 2),
  parts: fc.constantFrom(1, 2),
  weights: fc.constantFrom('tame', 'tame', 'tiny', 'infinite', 'none'),
  pick: fc.nat(),
});

function graphOf({ dtype, batch, m, n, k, around, bias }: Product): Graph {
  const s = new Sketch();
  const [before, behind] = around;
  const x = s.input([batch, m, k]);
  const whole = s.input([batch, n, before + k + behind], dtype);
  const lines = slice(s.b, whole, [0, 0, before], [batch, n, k], [1, 1, 1]);
  const weights = dtype === 'f32' ? lines : cast(s.b, lines, 'f32');
  const z = s.dot(x, permute(s.b, weights, [0, 2, 1]), [0], [0], [2], [1]);
  return s.graph([bias ? add(s.b, z, broadcast(s.b, s.input([n]), dims(z))) : z]);
}

function inputsOf(graph: Graph, { weights, pick }: Product): HostArray[] {
  const words = wordsFrom(pick + 1);
  const tame = (): number => ((words() >>> 8) % 33) / 8 - 2;
  const tiny = (): number => (((words() >>> 8) % 2047) - 1023) * 2 ** -24;
  return graph.parameters.map(({ dtype, shape }, i) => {
    const sizes = shape as number[];
    const count = sizes.reduce((size, extent) => size * extent, 1);
    // Rows are as large as weights are small, so that it is seen if these are lost.
    const large = i === 0 && weights === 'tiny' ? 2 ** 14 : 1;
    const values = Array.from({ length: count }, () =>
      i === 1 && weights === 'tiny' ? tiny() : large * tame(),
    );
    if (i === 1 && weights === 'infinite') values[pick % count] = pick % 2 === 0 ? Infinity : -Infinity;
    if (i === 1 && weights === 'none') values[pick % count] = NaN;
    return hostArray(dtype, sizes, values);
  });
}

function pinnedOf({ rows, parts, m, n }: Product): PinnedTilings {
  const columns = parts === 1 ? 4 * Math.ceil(n / 4) : 4 * Math.ceil(n / 8);
  return (): ContractTiling => {
    return { kind: 'gemv', flip: false, rows: Math.min(rows, m), columns, along: 'k' };
  };
}

const wide = (lanes: 8 | 16): Target => withVectors(cTarget, { lanes, registers: lanes === 8 ? 16 : 32 });

let wasm: Device;
beforeAll(async () => {
  wasm = await openDevice('wasm');
});

function expectResults(actual: readonly HostArray[], expected: readonly HostArray[]): void {
  expected.forEach((want, i) => expectClose(actual[i]!, want, 1e-5));
}

test('products of few rows by lines are what the graph says', async () => {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  await fc.assert(
    fc.asyncProperty(product, async (sizes) => {
      const graph = graphOf(sizes);
      const inputs = inputsOf(graph, sizes);
      const pinned = pinnedOf(sizes);
      const expected = interpret(graph, inputs);
      expectResults(runLoops(wasmTarget, graph, inputs, pinned), expected);
      expectResults(await runOnDevice(wasm, wasmTarget, graph, inputs, new Map(), pinned), expected);
      for (const lanes of [8, 16] as const) {
        const widen = (loop: Loop): Loop => widenVectors(loop, lanes);
        const plain = runLoops(wide(lanes), graph, inputs, pinned);
        expectResults(plain, expected);
        expect(runLoops(wide(lanes), graph, inputs, pinned, new Map(), widen)).toEqual(plain);
      }
    }),
    { numRuns: 60, seed },
  );
});

test.skipIf(compiler === undefined)('compiled C computes the same products', () => {
  const products = fc.sample(product, { numRuns: 40, seed });
  const widen = (loop: Loop): Loop => widenVectors(loop, 8);
  const programs = products.map((sizes) => {
    const graph = graphOf(sizes);
    return { graph, inputs: inputsOf(graph, sizes), pinned: pinnedOf(sizes) };
  });
  const kernels = new CKernels(loopsOf(wide(8), programs, widen), [...nativeFlags, ...strictFlags]);
  const results = runCompiled(kernels, wide(8), programs, widen);
  programs.forEach(({ graph, inputs }, i) => expectResults(results[i]!, interpret(graph, inputs)));
});

/** The Loop of a product of 16-bit lines of 576, and what it is chosen by. */
function loopOf(m: number, target: Target): { readonly loop: Loop; readonly problem: ContractProblem } {
  const s = new Sketch();
  const weights = cast(s.b, s.input([64, 576], 'f16'), 'f32');
  const graph = s.graph([s.dot(s.input([m, 576]), permute(s.b, weights, [1, 0]), [], [], [1], [0])]);
  const { kernels } = scheduleGraph(graph, target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract');
  if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
  const inputs = inputsOf(graph, { weights: 'tame', pick: 1 } as Product);
  const loops = loopsOf(target, [{ graph, inputs }]);
  expect(loops).toHaveLength(1);
  return { loop: loops[0]!, problem: contractProblem(kernel, kernel.body) };
}

test('registers of eight lanes take eight weights at once, and a line of a cache is asked for once', () => {
  const loop = widenVectors(loopOf(1, wide(8)).loop, 8);
  const text = printLoop(loop);
  expect(text.match(/: f32x8 = in1\[/g)).toHaveLength(16);
  expect(text).not.toMatch(/: f32x4 = in1\[/);
  expect([...statementsIn(loop.body)].filter(({ kind }) => kind === 'prefetch')).toHaveLength(4);
  expect(printLoop(loopOf(1, wasmTarget).loop)).not.toContain('prefetch');
});

test('two rows are multiplied by weights that are read once, in every column', () => {
  const loads = (m: number): number =>
    printLoop(loopOf(m, wasmTarget).loop).match(/f32x4 = in1\[/g)?.length ?? 0;
  expect(loads(2)).toBe(loads(1));
});

test('one row and two are streamed, more are packed', () => {
  for (const target of [wasmTarget, wide(8)])
    for (const m of [1, 2, 3, 4, 8]) {
      const { problem } = loopOf(m, target);
      expect(legalTilings(problem, target).some(({ kind }) => kind === 'gemv')).toBe(true);
      expect(chosenTiling(problem, target).kind).toBe(m <= 2 ? 'gemv' : 'packed');
    }
});
