// Gradients of convolutions by 3 × 3 weights through Winograd's transforms: whatever their sizes and blocks, they are what the
// graph says within the bound, as WebAssembly and as Loops on registers of every width; which ones are computed so; and what
// becomes of values that are not finite.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { optimise } from '../../../../src/compile.ts';
import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import { chosenTiling, legalTilings } from '../../../../src/codegen/template/contract/choose.ts';
import { add, binary, mul, permute } from '../../../../src/ir/build.ts';
import type { Graph, Node } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import type { Device } from '../../../../src/runtime/device.ts';
import { openDevice } from '../../../../src/runtime/registry.ts';
import { scheduleGraph } from '../../../../src/schedule/schedule.ts';
import { cTarget, gpuTarget, wasmTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../../support/execute.ts';
import { seed } from '../../../support/property.ts';
import { Sketch } from '../../cases.ts';
import { distance, inputsOf, problemIn } from './winograd-cases.ts';

interface Sizes {
  readonly images: number;
  readonly inputs: number;
  readonly outputs: number;
  /** Of the results' gradient. */
  readonly lines: number;
  readonly columns: number;
  /** Paddings before the input; those behind it follow. */
  readonly low: readonly [number, number];
  readonly high: readonly [number, number];
  readonly prologue: boolean;
  readonly epilogue: boolean;
  readonly pick: number;
}

const pads = fc.tuple(fc.integer({ min: -1, max: 2 }), fc.integer({ min: -1, max: 2 }));
const sizes: fc.Arbitrary<Sizes> = fc.record({
  images: fc.integer({ min: 1, max: 3 }),
  inputs: fc.integer({ min: 8, max: 35 }),
  outputs: fc.integer({ min: 8, max: 21 }),
  lines: fc.integer({ min: 4, max: 13 }),
  columns: fc.integer({ min: 4, max: 19 }),
  low: pads,
  high: pads,
  prologue: fc.boolean(),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

/** The gradient, as the rules of derivatives record it: images are what is summed over. */
function graphOf({ images, inputs, outputs, lines, columns, low, high, prologue, epilogue }: Sizes): Graph {
  const s = new Sketch();
  const size = [lines, columns].map((count, i) => count + 2 - low[i]! - high[i]!) as [number, number];
  const x = s.input([images, inputs, ...size]);
  const given = s.input([images, outputs, lines, columns]);
  const g = prologue ? mul(s.b, given, given) : given;
  const turn = (node: Node): Node => permute(s.b, node, [1, 0, 2, 3]);
  const z = s.conv(turn(prologue ? add(s.b, x, x) : x), turn(g), { padLow: [...low], padHigh: [...high] });
  const weights = turn(z);
  return s.graph(epilogue ? [binary(s.b, 'sub', s.input([outputs, inputs, 3, 3]), weights)] : [weights]);
}

const tilingsOf = (graph: Graph, target: Target): ReturnType<typeof legalTilings> =>
  legalTilings(problemIn(optimise(graph, target), target), target).filter(
    ({ kind }) => kind === 'winograd-weights',
  );

let device: Device;
beforeAll(async () => {
  device = await openDevice('wasm');
});

function check(
  runs: number,
  target: Target,
  run: (graph: Graph, pinned: () => ReturnType<typeof chosenTiling>) => Promise<readonly HostArray[]>,
): Promise<void> {
  return fc.assert(
    fc.asyncProperty(sizes, async (one) => {
      const graph = graphOf(one);
      const pool = tilingsOf(graph, target);
      expect(pool).not.toEqual([]);
      const actual = await run(graph, () => pool[one.pick % pool.length]!);
      interpret(graph, inputsOf(graph)).forEach((want, i) =>
        expect(distance(actual[i]!, want)).toBeLessThanOrEqual(1e-5),
      );
    }),
    { numRuns: runs, seed },
  );
}

test('as WebAssembly they are what the graph says', () =>
  check(60, wasmTarget, (graph, pinned) =>
    runOnDevice(device, wasmTarget, graph, inputsOf(graph), new Map(), pinned),
  ));

test.each([
  [8, 16],
  [16, 32],
] as const)('on registers of %i lanes they are what the graph says', (lanes, registers) => {
  const target = withVectors(cTarget, { lanes, registers });
  return check(4, target, async (graph, pinned) =>
    runLoops(target, optimise(graph, target), inputsOf(graph), pinned, new Map(), (loop) =>
      widenVectors(loop, lanes),
    ),
  );
});

const usual: Sizes = {
  images: 2,
  inputs: 8,
  outputs: 16,
  lines: 8,
  columns: 8,
  low: [1, 1],
  high: [1, 1],
  prologue: false,
  epilogue: false,
  pick: 0,
};

describe('which gradients', () => {
  test('those of many channels, in one kernel', () => {
    const graph = graphOf({ ...usual, images: 8, inputs: 64, outputs: 64, lines: 56, columns: 56 });
    const { kernels } = scheduleGraph(optimise(graph, wasmTarget), wasmTarget, new Map());
    expect(kernels).toHaveLength(1);
    expect(chosenTiling(problemIn(optimise(graph, wasmTarget), wasmTarget), wasmTarget).kind).toBe(
      'winograd-weights',
    );
  });

  test('the bits are the same for any number of threads', () => {
    const graph = graphOf({ ...usual, images: 8, inputs: 64, outputs: 64, lines: 28, columns: 28 });
    const lines = [1, 2, 8].map((threads) => {
      const target = { ...wasmTarget, threads };
      const tiling = chosenTiling(problemIn(optimise(graph, target), target), target);
      return 'lines' in tiling ? tiling.lines : undefined;
    });
    expect(new Set(lines)).toEqual(new Set([7]));
  });

  test.each([
    ['few inputs', { inputs: 3 }],
    ['few outputs', { outputs: 4 }],
    ['lines that are too long', { columns: 1000 }],
    ['few lines', { lines: 3, low: [0, 0], high: [0, 0] }],
  ] as const)('not %s', (_, other) => {
    expect(tilingsOf(graphOf({ ...usual, ...other } as Sizes), wasmTarget)).toEqual([]);
  });

  test('not on other machines', () => {
    expect(tilingsOf(graphOf(usual), gpuTarget)).toEqual([]);
  });
});

test('what is not finite in a channel makes its weights NaN, and no others', async () => {
  const graph = graphOf(usual);
  const [x, g] = inputsOf(graph) as [HostArray, HostArray];
  // Image 1, channel 3, somewhere inside.
  (x.data as Float32Array)[((usual.inputs + 3) * 8 + 4) * 8 + 5] = Infinity;
  const [tiling] = tilingsOf(graph, wasmTarget);
  const [y] = await runOnDevice(device, wasmTarget, graph, [x, g], new Map(), () => tiling);
  for (let place = 0; place < y!.data.length; place++) {
    const channel = Math.floor(place / 9) % usual.inputs;
    expect(Number.isNaN(Number(y!.data[place])), `weight ${place}`).toBe(channel === 3);
  }
});
