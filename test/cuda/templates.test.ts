// Every template on every edge case as CUDA C, checked and on the strict device: what a GPU would run, and schedules that real
// sizes choose, at sizes that fit a test. Threads run in the orders that show most.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { cudaTarget, type Target } from '../../src/schedule/target.ts';
import { cases, Sketch } from '../codegen/cases.ts';
import { expectNear, prepare } from '../codegen/template/template-cases.ts';
import { runOnDevice } from '../support/execute.ts';
import { randomArray } from '../support/random/values.ts';
import { rowTargets, smallBlocks } from '../support/targets.ts';
import { onStandIn } from './standin/on-standin.ts';
import { strictDevice } from './standin/strict.ts';

const { id, limits, subgroups } = cudaTarget;
const asCuda = (target: Target): Target => ({ ...target, id, limits, subgroups: subgroups! });
const variants = Object.entries({ smallBlocks, ...rowTargets }).map(
  ([name, target]) => [name, asCuda(target)] as const,
);

onStandIn('CUDA C on the stand-in', () => {
  describe.each([['as on a GPU', cudaTarget] as const, ...variants])('%s', (profile, target) => {
    // Variants of rows have nothing to say about other kernels.
    const names = Object.keys(cases).filter(
      (name) => !(profile in rowTargets) || /softmax|reduc|sum|extreme/.test(name),
    );
    const orders =
      target === cudaTarget ? (['random', 'warpPriority'] as const) : (['warpPriority'] as const);

    test.each(names)('%s', async (name) => {
      const { graph, inputs } = prepare(name);
      const expected = interpret(graph, inputs);
      const results = [];
      for (const order of orders) {
        const found = await runOnDevice(strictDevice({ order }), target, graph, inputs);
        expectNear(found, expected);
        results.push(found.map(({ data }) => data));
      }
      for (const result of results) expect(result).toEqual(results[0]);
    });
  });

  // 128,256 is the vocabulary of a language model. The other rows have no chunks of one length, and start at odd places.
  test.each([
    [1, 128_256],
    [2, 131_075],
  ])('softmax of %i x %i, whose rows become chunks', async (rows, columns) => {
    const s = new Sketch();
    const graph = s.graph([s.softmax(s.input([rows, columns]), 1)]);
    const inputs = [randomArray('f32', [rows, columns], 5, 'tame')];
    const expected = interpret(graph, inputs);
    expect(compileGraph(graph, cudaTarget).program.steps.length).toBe(3);
    const found = await runOnDevice(strictDevice({ order: 'warpPriority' }), cudaTarget, graph, inputs);
    expectNear(found, expected);
  });
});
