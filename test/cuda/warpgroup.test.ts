// Products of warp groups as CUDA C: tensor maps encoded by the stand-in's driver, copies,
// mbarriers and wgmma by its models, which decode what the kernel says by the manual's rules. Equal
// to the reference in every order of threads; and mistakes planted in the source are found.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emitCuda } from '../../src/codegen/emit/cuda/emit.ts';
import { lowerKernel } from '../../src/codegen/lower/kernel.ts';
import type { Loop } from '../../src/codegen/loop/loop.ts';
import type { PinnedTilings, ContractTiling } from '../../src/codegen/template/contract/strategies.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { packBytes, unpackBytes, type HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { deviceBytes } from '../../src/runtime/program.ts';
import { unsharedMemory } from '../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import { cudaTarget, targetOf, type Target } from '../../src/schedule/target.ts';
import '../../src/compile/all.ts';
import { optimise, scheduleKernels } from '../../src/compile.ts';
import { scaledDotProductAttention } from '../../src/index.ts';
import { attentionRun, expectSame, filled, tame, type Attend } from '../numerics/attention-cases.ts';
import { Sketch } from '../codegen/cases.ts';
import { inputsOf } from '../codegen/template/mma-cases.ts';
import { graphOf } from '../codegen/template/product-graph.ts';
import {
  convolution,
  convolutionGraph,
  laidInputs,
  prepared,
  product,
  warpgroupSchedules,
  type PickedConvolution,
  type PickedProduct,
} from '../codegen/template/wgmma-cases.ts';
import { runOnDevice } from '../support/execute.ts';
import {
  foldingTilings,
  graphOf as losses,
  inputsOf as lossInputs,
  pinnedTo,
  sizes,
  type Sizes,
} from '../schedule/folds/column-cases.ts';
import { seed } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { Driver } from './standin/driver.ts';
import { Machine } from './machine.ts';
import { onStandIn } from './standin/on-standin.ts';
import { orders, type Order } from './standin/standin.ts';
import { strictDevice, tensorMapOf } from './standin/strict.ts';

/** Few multiprocessors, so that each has several tiles. */
const target: Target = { ...cudaTarget, warpgroups: true, cores: { count: 3, invocations: 2048 } };

/** On which small weights are laid out for convolutions. */
const withoutCosts: Target = { ...target, launch: 0, bandwidth: Infinity };

const small: ContractTiling = {
  kind: 'wgmma',
  flip: false,
  rows: 64,
  columns: 64,
  tileM: 128,
  tileN: 64,
  tileK: 64,
  stages: 3,
};

/** Results in one order of threads, after those in the others were found equal. */
async function inEveryOrder(
  graph: Graph,
  inputs: readonly HostArray[],
  pinned: PinnedTilings,
  on: Target = target,
): Promise<HostArray[]> {
  let first: HostArray[] | undefined;
  for (const order of Object.keys(orders) as Order[]) {
    const found = await runOnDevice(strictDevice({ order }), on, graph, inputs, new Map(), pinned);
    first ??= found;
    expect(
      found.map(({ data }) => data),
      order,
    ).toEqual(first.map(({ data }) => data));
  }
  return first!;
}

onStandIn('warp groups on the stand-in', () => {
  test('attention and its gradients', async () => {
    const cases = [
      { dtype: 'bf16', heads: 1, rows: 200, keys: 200, depth: 64, columns: 128, isCausal: true },
      { dtype: 'f16', heads: 2, rows: 72, keys: 136, depth: 128, columns: 56, isCausal: false },
    ] as const;
    for (const { dtype, heads, rows, keys, depth, columns, isCausal } of cases) {
      const input = (count: number, features: number, from: number): HostArray =>
        filled([1, heads, count, features], tame, from, dtype);
      const inputs = [input(rows, depth, 1), input(keys, depth, 2), input(keys, columns, 3)];
      const attend: Attend = (q, k, v) => scaledDotProductAttention(q, k, v, { isCausal });
      const run = attentionRun({ inputs, attend });
      const { kernels } = scheduleKernels(optimise(run.graph, target), target, new Map(), new Map());
      const sources = kernels.map(
        (kernel) => emitCuda(lowerKernel(kernel, target, unsharedMemory, new Map()).loop).source,
      );
      expect(sources.some((source) => source.includes('wgmma_words_n'))).toBe(true);
      const found = await inEveryOrder(run.graph, run.inputs, () => undefined);
      expectSame(found, interpret(run.graph, run.inputs), run, dtype === 'f16' ? 5e-3 : 4e-2);
    }
  });

  test('every schedule of a product computes it', async () => {
    console.log(`seed ${seed}`);
    const law = async (sizes: PickedProduct): Promise<void> => {
      const graph = graphOf(sizes);
      const inputs = inputsOf(graph);
      const schedules = warpgroupSchedules(graph, target);
      if (schedules.length === 0) return;
      const schedule = schedules[sizes.pick % schedules.length]!;
      const found = await inEveryOrder(graph, inputs, () => schedule);
      interpret(graph, inputs).forEach((want, i) => expectClose(found[i]!, want, 1e-2));
    };
    await fc.assert(fc.asyncProperty(product, law), { numRuns: 14, seed });
  });

  test('every schedule of a convolution computes it, whatever stands at the ends of lines', async () => {
    console.log(`seed ${seed}`);
    const law = async (picked: PickedConvolution): Promise<void> => {
      const graph = convolutionGraph(picked);
      const inputs = inputsOf(graph);
      const data = inputs[0]!.data as unknown as { [index: number]: number };
      const width = picked.axes.at(-1)!.size;
      data[2 * width - 1] = Number.NaN;
      data[(picked.pick % 4) * width] = Infinity;
      const schedules = warpgroupSchedules(prepared(graph, withoutCosts), withoutCosts);
      expect(schedules.length).toBeGreaterThan(5);
      const schedule = schedules[picked.pick % schedules.length]!;
      const found = await inEveryOrder(graph, inputs, () => schedule, withoutCosts);
      interpret(graph, inputs).forEach((want, i) => expectClose(found[i]!, want, 1e-2));
    };
    await fc.assert(fc.asyncProperty(convolution, law), { numRuns: 8, seed });
  });

  test('every schedule folds the columns of a product', async () => {
    const law = async (size: Sizes): Promise<void> => {
      const of: Sizes = { ...size, dtype: size.turnRhs ? 'bf16' : 'f16', k: 8 * size.k };
      const graph = losses(of);
      const inputs = lossInputs(graph, of);
      const schedules = foldingTilings(graph, target, ['wgmma']);
      if (schedules.length === 0) return;
      const pinned = pinnedTo(schedules[of.pick % schedules.length]!);
      const found = await inEveryOrder(graph, inputs, pinned);
      interpret(graph, inputs).forEach((want, i) => expectClose(found[i]!, want, 2e-2));
    };
    await fc.assert(fc.asyncProperty(sizes, law), { numRuns: 8, seed });
  });

  describe('a device of sm_90a', () => {
    let machine: Machine;
    let device: Device;
    beforeAll(async () => {
      machine = new Machine();
      device = await machine.open();
    });
    afterAll(() => {
      device.destroy();
      machine.close();
    });

    test('multiplies by warp groups, at first and from a graph, wherever operands lie', async () => {
      const own = targetOf(device.facts);
      expect(own.warpgroups).toBe(true);
      expect(own.cores.count).toBeGreaterThan(0);
      const s = new Sketch();
      const [x, y, z] = [
        s.input([192, 320], 'bf16'),
        s.input([320, 128], 'bf16'),
        s.input([128, 64], 'bf16'),
      ];
      const graph = s.graph([s.matmul(s.matmul(x, y), z)]);
      const inputs = inputsOf(graph);
      const [want] = interpret(graph, inputs);
      for (let turn = 0; turn < 3; turn++) {
        const [found] = await runOnDevice(device, own, graph, inputs, new Map(), () => small);
        expectClose(found!, want!, 1e-2);
      }
    });
  });

  describe('a mistake is found', () => {
    let driver: Driver;
    beforeAll(() => {
      driver = new Driver();
    });

    /** A kernel whose source is changed, by what it reads, and what it should compute. */
    const mistakesIn = (loop: Loop, read: readonly HostArray[], want: HostArray) => {
      const { source, sharedBytes = 0, tileMaps = [] } = emitCuda(loop);
      const bytes = deviceBytes(2, want.data.length);

      /** The result, or what the launch failed with. */
      const run = (text: string, order: Order): HostArray | string => {
        driver.open();
        driver.set('check', 0);
        driver.set('order', orders[order]);
        driver.set('seed', 7);
        const handle = driver.kernels(text, loop.name)[loop.name]!;
        driver.call('cuFuncSetAttribute', ['uintptr_t', 'int', 'int'], handle, 8, sharedBytes);
        const addresses = read.map((input) => driver.upload(packBytes(input)));
        const out = driver.upload(new Uint8Array(bytes).fill(0xff));
        const maps = tileMaps.map((map) => tensorMapOf(driver, map, addresses[map.binding]!));
        const { grid, workgroup: block } = loop;
        try {
          driver.launch(handle, { grid, block, dynamic: sharedBytes }, ...addresses, out, ...maps);
        } catch (error) {
          return (error as Error).message;
        }
        return unpackBytes(driver.download(out, new Uint8Array(bytes)), 'bf16', want.shape);
      };
      /** Whether some order of threads shows it: by failing, or by a wrong result. */
      const shows = (text: string): boolean =>
        (Object.keys(orders) as Order[]).some((order) => {
          const found = run(text, order);
          if (typeof found === 'string') return true;
          try {
            expectClose(found, want, 1e-2);
            return false;
          } catch {
            return true;
          }
        });
      const plant = (piece: string | RegExp, by: string): string => {
        expect(source).toMatch(piece);
        return source.replace(piece, by);
      };
      return { source, shows, plant };
    };

    const kernelOf = (graph: Graph, on: Target, pinned: ContractTiling): Loop => {
      const { kernels } = scheduleGraph(prepared(graph, on), on, new Map());
      const kernel = kernels.find(({ body }) => body.kind === 'contract')!;
      return lowerKernel(kernel, on, unsharedMemory, new Map(), () => pinned).loop;
    };
    const s = new Sketch();
    const graph = s.graph([s.matmul(s.input([192, 320], 'bf16'), s.input([320, 128], 'bf16'))]);
    const inputs = inputsOf(graph);
    const { source, shows, plant } = mistakesIn(
      kernelOf(graph, target, small),
      inputs,
      interpret(graph, inputs)[0]!,
    );

    test('where there is none, nothing is', () => {
      expect(shows(source)).toBe(false);
    });

    test.each([
      ['no wait for copies', /mbarrier_wait\(full [^;]*;/, ''],
      ['no wait for an empty slot', /mbarrier_wait\(empty [^;]*;/, ''],
      ['the wrong phase', /(mbarrier_wait\(full \+ \w+), parity\w*/, '$1, 0'],
      ['too few bytes', /mbarrier_arrive_with\((.*), 24576\)/, 'mbarrier_arrive_with($1, 16384)'],
      ['too many bytes', /mbarrier_arrive_with\((.*), 24576\)/, 'mbarrier_arrive_with($1, 24592)'],
      ['too many arrivals', /mbarrier_init\(empty \+ slot, 8\)/, 'mbarrier_init(empty + slot, 9)'],
      ['too few arrivals', /mbarrier_init\(empty \+ slot, 8\)/, 'mbarrier_init(empty + slot, 4)'],
      ['no fence', /wgmma_fence\(\);/, ''],
      ['no wait for products', /wgmma_wait<0>\(\);/, ''],
      ['memory that begins between tiles', /__align__\(1024\) unsigned char/, '__align__(512) unsigned char'],
      ['an operand turned', /wgmma_n64_bf16<0, 1>/, 'wgmma_n64_bf16<0, 0>'],
      ['a descriptor without swizzle', /64ull << 32 \| 1ull << 62/, '64ull << 32'],
      ['lines further apart', /64ull << 32/, '32ull << 32'],
    ])('%s', (_, piece, by) => {
      expect(shows(plant(piece, by))).toBe(true);
    });

    describe('of convolutions', () => {
      const picture = convolutionGraph({
        dtype: 'bf16',
        images: 1,
        channels: 64,
        outputs: 128,
        axes: [
          { size: 9, taps: 3, dilation: 1 },
          { size: 16, taps: 3, dilation: 1 },
        ],
        above: 1,
        left: 1,
        epilogue: false,
        pick: 0,
      });
      const given = inputsOf(picture);
      const conv = mistakesIn(
        kernelOf(picture, withoutCosts, small),
        laidInputs(given),
        interpret(picture, given)[0]!,
      );

      test('where there is none, nothing is', () => {
        expect(conv.shows(conv.source)).toBe(false);
      });

      test.each([
        ['ends of lines are not cleared', /clear_tile\(tile_rhs[^;]*;/, ''],
        ['too few are cleared', /place < end/, 'place < end - 1'],
        ['what is cleared is not published', /publish_tiles\(\);/, ''],
        ['nothing is waited for before', /mbarrier_wait\(full [^;]*;(?=[^]*clear_tile)/g, ''],
        ['products do not wait for it', /mbarrier_wait\(ready [^;]*;/, ''],
        [
          'one warp of two says when',
          /mbarrier_init\(ready \+ slot, 64\)/,
          'mbarrier_init(ready + slot, 32)',
        ],
      ])('%s', (_, piece, by) => {
        expect(conv.shows(conv.plant(piece, by))).toBe(true);
      });
    });
  });
});
