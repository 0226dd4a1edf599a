// Packed products, and streamed ones of few rows: whatever the blocks, and however operands lie,
// they are what the graph says, as a Loop and as WebAssembly.

import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';

import { contractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { chosenTiling, isLegal, legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { add, binary, broadcast, cast, unary } from '../../../src/ir/build.ts';
import { dims, type Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { softwareTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { seed } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { Sketch } from '../cases.ts';
import { convolution, convolutionOf } from './convolutions.ts';

interface Product {
  readonly dtype: 'f32' | 'f16' | 'bf16' | 'i32' | 'u32';
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly turnLhs: boolean;
  readonly turnRhs: boolean;
  readonly prologue: boolean;
  readonly epilogue: 'none' | 'bias' | 'activation' | 'transposed';
  readonly flip: boolean;
  readonly blockM: number;
  readonly blockN: number;
  readonly blockK: number;
}

const size = fc.oneof(fc.constantFrom(1, 2, 3, 4, 16, 17, 32), fc.integer({ min: 1, max: 40 }));
const product: fc.Arbitrary<Product> = fc.record({
  dtype: fc.constantFrom('f32', 'f32', 'f32', 'f16', 'bf16', 'i32', 'u32'),
  batch: fc.integer({ min: 1, max: 3 }),
  m: size,
  n: size,
  k: size,
  turnLhs: fc.boolean(),
  turnRhs: fc.boolean(),
  prologue: fc.boolean(),
  epilogue: fc.constantFrom('none', 'bias', 'activation', 'transposed'),
  flip: fc.boolean(),
  blockM: fc.integer({ min: 1, max: 5 }).map((quads) => 4 * quads),
  blockN: fc.integer({ min: 1, max: 3 }).map((panels) => 16 * panels),
  blockK: fc.integer({ min: 1, max: 6 }).map((quads) => 4 * quads),
});

function graphOf({ dtype, batch, m, n, k, turnLhs, turnRhs, prologue, epilogue }: Product): Graph {
  const s = new Sketch();
  const x = s.input([batch, ...(turnLhs ? [k, m] : [m, k])], dtype);
  const y = s.input([batch, ...(turnRhs ? [n, k] : [k, n])], dtype);
  const scaled = prologue ? add(s.b, x, x) : x;
  const z = s.dot(scaled, y, [0], [0], [turnLhs ? 1 : 2], [turnRhs ? 2 : 1]);
  if (epilogue === 'none') return s.graph([z]);
  const biased = add(s.b, cast(s.b, z, 'f32'), broadcast(s.b, s.input([n]), dims(z)));
  if (epilogue === 'bias') return s.graph([biased, binary(s.b, 'max', biased, 0)]);
  if (epilogue === 'activation') return s.graph([unary(s.b, 'tanh', biased)]);
  return s.graph([s.b.add('permute', [biased], { order: [0, 2, 1] })]);
}

let device: Device;
beforeAll(async () => {
  device = await openDevice('wasm');
});

const tolerance = { f32: 1e-5, f16: 4e-3, bf16: 2e-2, i32: 0, u32: 0 } as const;

function checkProducts(
  products: fc.Arbitrary<Product>,
  scheduleOf: (sizes: Product, graph: Graph) => ContractTiling,
): Promise<void> {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  return fc.assert(
    fc.asyncProperty(products, async (sizes) => {
      const graph = graphOf(sizes);
      const inputs = graph.parameters.map(({ dtype, shape }, i) =>
        randomArray(dtype, shape as number[], i + 1, 'tame'),
      );
      const schedule = scheduleOf(sizes, graph);
      const pinned = (): ContractTiling => schedule;
      const expected = interpret(graph, inputs);
      const close = Math.max(tolerance[sizes.dtype], sizes.epilogue === 'none' ? 0 : 1e-5);
      for (const actual of [
        runLoops(wasmTarget, graph, inputs, pinned),
        await runOnDevice(device, wasmTarget, graph, inputs, new Map(), pinned),
      ])
        expected.forEach((want, i) => expectClose(actual[i]!, want, close));
    }),
    { numRuns: 100, seed },
  );
}

test('packed products are what the graph says', () =>
  checkProducts(product, ({ flip, blockM, blockN, blockK }) => {
    return { kind: 'packed', flip, rows: 2, columns: 16, blockM, blockN, blockK };
  }));

const few = product.map((sizes) =>
  sizes.flip ? { ...sizes, n: Math.min(sizes.n, 8) } : { ...sizes, m: Math.min(sizes.m, 8) },
);

test('products of few rows, read as they lie, are what the graph says', () =>
  checkProducts(few, ({ flip, m, n, turnLhs, turnRhs, blockN }) => {
    const rows = (flip ? n : m) % 2 === 0 ? 2 : 1;
    // Along k where the right side lies so; else the other way, too.
    const along = (flip ? !turnLhs : turnRhs) ? 'k' : 'n';
    return {
      kind: 'gemv',
      flip,
      rows,
      columns: Math.min(blockN, 4 * Math.ceil((flip ? m : n) / 4)),
      along,
    };
  }));

test('convolutions from a part of the padded input are what the graph says', () =>
  fc.assert(
    fc.asyncProperty(convolution, async (sizes) => {
      const graph = convolutionOf(sizes);
      const inputs = graph.parameters.map(({ dtype, shape }, i) =>
        randomArray(dtype, shape as number[], i + 1, 'tame'),
      );
      const legal = legalTilings(problemIn(graph), wasmTarget);
      const images = legal.filter(({ kind }) => kind === 'image' || kind === 'direct');
      const pool = sizes.pick % 3 === 0 ? legal : images;
      const schedule = pool[sizes.pick % pool.length]!;
      const pinned = (): ContractTiling => schedule;
      const actual = await runOnDevice(device, wasmTarget, graph, inputs, new Map(), pinned);
      interpret(graph, inputs).forEach((want, i) => expectClose(actual[i]!, want, 1e-5));
    }),
    { numRuns: 150, seed },
  ));

function problemIn(graph: Graph): ReturnType<typeof contractProblem> {
  const { kernels } = scheduleGraph(graph, wasmTarget, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract');
  if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}

function problemOf(m: number, k: number, n: number): ReturnType<typeof contractProblem> {
  const s = new Sketch();
  return problemIn(s.graph([s.matmul(s.input([m, k]), s.input([k, n]))]));
}

test('large products are packed, in blocks that a few threads can share', () => {
  const schedule = chosenTiling(problemOf(1024, 1024, 1024), wasmTarget);
  expect(schedule).toMatchObject({ kind: 'packed', blockK: 256 });
  if (schedule.kind === 'packed')
    expect((1024 / schedule.blockM) * (1024 / schedule.blockN)).toBeGreaterThanOrEqual(4);
});

test('the threads decide about blocks, but not about the strategy', () => {
  for (const [m, k, n] of [
    [1024, 1024, 1024],
    [512, 4096, 128],
    [4096, 128, 512],
    [3, 2048, 2048],
    [64, 64, 64],
  ] as const) {
    const problem = problemOf(m, k, n);
    const { kind } = chosenTiling(problem, wasmTarget);
    const tilings = [1, 2, 4].map((threads) => chosenTiling(problem, { ...wasmTarget, threads }));
    expect(tilings.map((tiling) => tiling.kind)).toEqual([kind, kind, kind]);
  }
  // One thread packs either side once.
  const alone = chosenTiling(problemOf(512, 4096, 128), { ...wasmTarget, threads: 1 });
  expect(alone).toMatchObject({ kind: 'packed', blockM: 512, blockN: 128 });
});

test('a row is not packed', () => {
  expect(chosenTiling(problemOf(1, 1024, 4096), wasmTarget)).toMatchObject({
    kind: 'gemv',
    along: 'n',
  });
  expect(chosenTiling(problemOf(4096, 1024, 1), wasmTarget)).toMatchObject({
    kind: 'gemv',
    along: 'k',
    flip: true,
  });
});

test('a convolution looks at its input once', () => {
  const s = new Sketch();
  const graph = s.graph([s.conv(s.input([1, 32, 56, 56]), s.input([64, 32, 5, 5]))]);
  expect(chosenTiling(problemIn(graph), wasmTarget)).toMatchObject({ kind: 'image', blockK: 200 });
  const t = new Sketch();
  const depthwise = t.conv(t.input([1, 32, 56, 56]), t.input([32, 1, 3, 3]), { groups: 32 });
  expect(chosenTiling(problemIn(t.graph([depthwise])), wasmTarget)).toMatchObject({ kind: 'direct' });
});

test('panels need a target that packs, and room for them', () => {
  const problem = problemOf(64, 64, 64);
  const packed = {
    kind: 'packed',
    flip: false,
    rows: 2,
    columns: 16,
    blockM: 64,
    blockN: 64,
    blockK: 64,
  } as const;
  expect(isLegal(packed, problem, wasmTarget)).toBe(true);
  expect(isLegal(packed, problem, softwareTarget)).toBe(false);
  const small = { ...wasmTarget, limits: { ...wasmTarget.limits, workgroupBytes: 4096 } };
  expect(isLegal(packed, problem, small)).toBe(false);
  expect(isLegal({ ...packed, blockM: 6 }, problem, wasmTarget)).toBe(false);
});
