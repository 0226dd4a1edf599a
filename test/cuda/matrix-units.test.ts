// Products, convolutions and attention on matrix units as CUDA C: mma, ldmatrix and cp.async by the
// stand-in's models of them, in checked builds on the strict device, equal the reference; in every
// order of threads bit for bit.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { PinnedTilings } from '../../src/codegen/template/contract/strategies.ts';
import { cudaTarget, withPrecision } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { graphOf, inputsOf, product, tensorSchedules, type Product } from '../codegen/template/mma-cases.ts';
import { attentionRun, expectSame, filled, maskOf, tame, type Attend } from '../numerics/attention-cases.ts';
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
import { onStandIn } from './standin/on-standin.ts';
import { orders, type Order } from './standin/standin.ts';
import { strictDevice } from './standin/strict.ts';

/** With products of f32 as tf32. */
const target = withPrecision(cudaTarget, 'tf32');

/** Results in one order of threads, after those in the others were found equal. */
async function inEveryOrder(
  graph: Graph,
  inputs: readonly HostArray[],
  pinned?: PinnedTilings,
): Promise<HostArray[]> {
  let first: HostArray[] | undefined;
  for (const order of Object.keys(orders) as Order[]) {
    const found = await runOnDevice(strictDevice({ order }), target, graph, inputs, new Map(), pinned);
    first ??= found;
    expect(
      found.map(({ data }) => data),
      order,
    ).toEqual(first.map(({ data }) => data));
  }
  return first!;
}

const plain: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v);
const causal: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true });
const masked: Attend = (q, k, v, mask) => sn.scaledDotProductAttention(q, k, v, { mask: mask! });

onStandIn('matrix units on the stand-in', () => {
  test('every schedule of a product computes it', async () => {
    console.log(`seed ${seed}`);
    const law = async (sizes: Product): Promise<void> => {
      const graph = graphOf(sizes);
      const inputs = inputsOf(graph);
      const schedules = tensorSchedules(graph, target);
      const schedule = schedules[sizes.pick % schedules.length]!;
      const found = await inEveryOrder(graph, inputs, () => schedule);
      interpret(graph, inputs).forEach((want, i) => expectClose(found[i]!, want, 1e-2));
    };
    await fc.assert(fc.asyncProperty(product, law), { numRuns: 25, seed });
  });

  test('every schedule folds the columns of a product', async () => {
    const law = async (of: Sizes): Promise<void> => {
      const graph = losses(of);
      const inputs = lossInputs(graph, of);
      const schedules = foldingTilings(graph, target, ['mma']);
      const pinned = pinnedTo(schedules[of.pick % schedules.length]!);
      const found = await inEveryOrder(graph, inputs, pinned);
      interpret(graph, inputs).forEach((want, i) => expectClose(found[i]!, want, 2e-2));
    };
    await fc.assert(fc.asyncProperty(sizes, law), { numRuns: 4, seed });
  });

  test('every schedule of a convolution computes it', async () => {
    const s = new Sketch();
    const [x, w] = [s.input([2, 8, 9, 7], 'bf16'), s.input([24, 8, 3, 3], 'bf16')];
    const graph = s.graph([s.conv(x, w)]);
    const inputs = inputsOf(graph);
    const [want] = interpret(graph, inputs);
    const schedules = tensorSchedules(graph, target);
    expect(schedules.length).toBeGreaterThan(5);
    for (const schedule of schedules) {
      const device = strictDevice({ order: 'warpPriority' });
      const [found] = await runOnDevice(device, target, graph, inputs, new Map(), () => schedule);
      expectClose(found!, want!, 1e-2);
    }
  });

  test('take f32 as tf32 where that is chosen, and only there', async () => {
    sn.setDevice('cuda');
    const a = sn
      .tensor([1 + 2 ** -12, 2])
      .reshape([1, 2])
      .broadcastTo([256, 2])
      .tile([1, 128]);
    const first = sn.compile((x: sn.Tensor, y: sn.Tensor) =>
      sn.slice(sn.slice(x.matmul(y), 0, 0, 1), 1, 0, 1),
    );
    const exact = 128 * (3 + 2 ** -12);
    const result = async (): Promise<number> => Number(await first(a, sn.ones([256, 256])).item());
    expect(await result()).toBeCloseTo(exact, 4);
    sn.setMatmulPrecision('tf32');
    expect(await result()).toBe(128 * 3);
    sn.setMatmulPrecision('f32');
    expect(await result()).toBeCloseTo(exact, 4);
  });

  describe.each(['f16', 'bf16'] as const)('attention in %s', (dtype) => {
    test.each([
      ['no mask', plain, 16, 16, 16, 16],
      ['no mask', plain, 40, 70, 24, 40],
      ['no mask', plain, 130, 33, 8, 64],
      ['causal', causal, 70, 70, 32, 16],
      ['causal', causal, 33, 65, 40, 9],
      ['bool', masked, 24, 40, 16, 16],
    ] as const)('%s, case %#', async (_, attend, queries, keys, depth, columns) => {
      const input = (shape: number[], from: number): HostArray => filled(shape, tame, from, dtype);
      const run = attentionRun({
        inputs: [
          input([1, 2, queries, depth], 1),
          input([1, 2, keys, depth], 2),
          input([1, 2, keys, columns], 3),
          ...(attend === masked ? [maskOf('bool', queries, keys)] : []),
        ],
        attend,
      });
      const found = await inEveryOrder(run.graph, run.inputs);
      expectSame(found, interpret(run.graph, run.inputs), run, dtype === 'f16' ? 5e-3 : 4e-2);
    });
  });
});

test('the precision of products is one of two', () => {
  expect(() => sn.setMatmulPrecision('bf16' as 'f32')).toThrow(
    /setMatmulPrecision: expects 'f32' or 'tf32': .bf16./,
  );
});
