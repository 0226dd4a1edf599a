// Convolutions by Winograd's F(4,3): whatever their sizes and blocks, they are what the graph says within the bound, as a Loop and as
// WebAssembly; which ones are computed so; and what becomes of values that are not finite.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { flip } from '../../../../src/autograd/rules-view.ts';
import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import { chosenTiling, isLegal, legalTilings } from '../../../../src/codegen/template/contract/choose.ts';
import type { ContractProblem } from '../../../../src/codegen/template/contract/problem.ts';
import type { ContractTiling } from '../../../../src/codegen/template/contract/strategies.ts';
import { add, binary, permute } from '../../../../src/ir/build.ts';
import type { Graph } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import type { Device } from '../../../../src/runtime/device.ts';
import { openDevice } from '../../../../src/runtime/registry.ts';
import {
  cTarget,
  softwareTarget,
  wasmTarget,
  withVectors,
  type Target,
} from '../../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../../support/execute.ts';
import { seed } from '../../../support/property.ts';
import { Sketch } from '../../cases.ts';
import { distance, inputsOf, problemIn } from './winograd-cases.ts';

interface Sizes {
  readonly images: number;
  readonly inputs: number;
  readonly outputs: number;
  readonly lines: number;
  readonly columns: number;
  readonly pads: readonly number[];
  /** Weights as the gradient by the input takes them: turned, and backwards. */
  readonly turned: boolean;
  readonly prologue: boolean;
  readonly epilogue: boolean;
  readonly pick: number;
}

const pad = fc.integer({ min: -1, max: 3 });
const sizes: fc.Arbitrary<Sizes> = fc.record({
  images: fc.integer({ min: 1, max: 3 }),
  inputs: fc.integer({ min: 8, max: 11 }),
  outputs: fc.integer({ min: 8, max: 13 }),
  lines: fc.integer({ min: 6, max: 21 }),
  columns: fc.integer({ min: 6, max: 36 }),
  pads: fc.tuple(pad, pad, pad, pad),
  turned: fc.boolean(),
  prologue: fc.boolean(),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

function graphOf({ images, inputs, outputs, lines, columns, pads, ...rest }: Sizes): Graph {
  const s = new Sketch();
  const x = s.input([images, inputs, lines, columns]);
  const turned = (): ReturnType<Sketch['input']> => {
    const given = s.input([inputs, outputs, 3, 3]);
    return flip(s.b, permute(s.b, given, [1, 0, 2, 3]), [2, 3]);
  };
  const weight = rest.turned ? turned() : s.input([outputs, inputs, 3, 3]);
  const [top, left, bottom, right] = pads as [number, number, number, number];
  const options = { padLow: [top, left], padHigh: [bottom, right] };
  const z = s.conv(rest.prologue ? add(s.b, x, x) : x, weight, options);
  return s.graph(rest.epilogue ? [z, binary(s.b, 'max', z, 0)] : [z]);
}

let device: Device;
beforeAll(async () => {
  device = await openDevice('wasm');
});

function check(
  runs: number,
  run: (graph: Graph, pinned: () => ContractTiling) => Promise<HostArray[]>,
  target: Target = wasmTarget,
): Promise<void> {
  return fc.assert(
    fc.asyncProperty(sizes, async (one) => {
      const graph = graphOf(one);
      const pool = legalTilings(problemIn(graph, target), target).filter(({ kind }) => kind === 'winograd');
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
  check(60, (graph, pinned) => runOnDevice(device, wasmTarget, graph, inputsOf(graph), new Map(), pinned)));

test('as Loops they are what the graph says, and read nothing that nobody wrote', () =>
  check(4, async (graph, pinned) => runLoops(wasmTarget, graph, inputsOf(graph), pinned)));

test.each([
  [8, 16, 4],
  [16, 32, 8],
] as const)('on registers of %i lanes they are what the graph says', (lanes, registers, rows) => {
  const target = withVectors(cTarget, { lanes, registers });
  const run = async (graph: Graph, pinned: () => ContractTiling): Promise<HostArray[]> => {
    expect(pinned().rows).toBe(rows);
    return runLoops(target, graph, inputsOf(graph), pinned, new Map(), (loop) => widenVectors(loop, lanes));
  };
  return check(4, run, target);
});

function problemOf(input: number[], weight: number[], options: object = {}): ContractProblem {
  const s = new Sketch();
  return problemIn(s.graph([s.conv(s.input(input), s.input(weight), options)]), wasmTarget);
}

describe('which convolutions', () => {
  test('many channels at every position, on targets that pack', () => {
    const problem = problemOf([8, 64, 58, 58], [64, 64, 3, 3]);
    const tiling = chosenTiling(problem, wasmTarget);
    expect(tiling.kind).toBe('winograd');
    expect(isLegal(tiling, problem, softwareTarget)).toBe(false);
    const small = { ...wasmTarget, limits: { ...wasmTarget.limits, workgroupBytes: 65_536 } };
    expect(isLegal(tiling, problem, small)).toBe(false);
  });

  test.each([
    ['other taps', [1, 64, 58, 58], [64, 64, 5, 5], {}],
    ['strides', [1, 64, 58, 58], [64, 64, 3, 3], { strides: [2, 2] }],
    ['dilations', [1, 64, 58, 58], [64, 64, 3, 3], { rhsDilation: [2, 2] }],
    ['groups', [1, 64, 58, 58], [64, 32, 3, 3], { groups: 2 }],
    ['few channels', [1, 3, 58, 58], [64, 3, 3, 3], {}],
  ] as const)('not %s', (_, input, weight, options) => {
    const legal = legalTilings(problemOf([...input], [...weight], options), wasmTarget);
    expect(legal.filter(({ kind }) => kind === 'winograd')).toEqual([]);
  });
});

test('what is not finite in the input stays in the tiles that see it, as NaN', async () => {
  const graph = graphOf({
    images: 1,
    inputs: 8,
    outputs: 8,
    lines: 16,
    columns: 16,
    pads: [1, 1, 1, 1],
    turned: false,
    prologue: false,
    epilogue: false,
    pick: 0,
  });
  const [x, weight] = inputsOf(graph) as [HostArray, HostArray];
  (x.data as Float32Array)[5 * 16 + 5] = Infinity;
  const winograd = legalTilings(problemIn(graph, wasmTarget), wasmTarget).find(
    ({ kind }) => kind === 'winograd',
  )!;
  const [y] = await runOnDevice(device, wasmTarget, graph, [x, weight], new Map(), () => winograd);
  for (let place = 0; place < 256; place++) {
    const [line, column] = [Math.floor(place / 16), place % 16];
    // Results 4 to 7 of both axes are the one tile that sees place 5: it looks at inputs 3 to 8.
    const isSeen = [line, column].every((at) => at >= 4 && at < 8);
    expect(Number.isFinite(Number(y!.data[place])), `${line}, ${column}`).toBe(!isSeen);
  }
});
