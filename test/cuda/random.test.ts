// Random programs and models as CUDA C, in checked builds on the strict device: equal to the interpreter in every order in which
// the threads of a block may run; and on the product's device.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { realDTypes as dtypes } from '../../src/ir/dtype.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { expectEqual } from '../codegen/random/models-compare.ts';
import { randomModel } from '../codegen/random/models.ts';
import { runOnDevice } from '../support/execute.ts';
import { seed } from '../support/property.ts';
import { expectClose, randomProgram } from '../support/random/graph.ts';
import { onStandIn } from './standin/on-standin.ts';
import { strictDevice } from './standin/strict.ts';

const programs = randomProgram({ dtypes, values: 'tame' });
/** f16 keeps 11 bits: two roundings apart is 2e-3. */
const tolerance = (dtype: string): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

const devices: readonly (readonly [
  name: string,
  open: () => Promise<Device>,
  programs: number,
  models: number,
])[] = [
  ['forward, strictly', async () => strictDevice({ order: 'forward' }), 40, 4],
  ['backward, strictly', async () => strictDevice({ order: 'reverse' }), 40, 4],
  ['shuffled, strictly', async () => strictDevice({ order: 'random' }), 40, 4],
  ['warp by warp, strictly', async () => strictDevice({ order: 'warpPriority' }), 80, 12],
  ['forward, through the runtime', () => openDevice('cuda'), 40, 8],
];

onStandIn('CUDA C on the stand-in', () => {
  describe.each(devices)('%s', (_, open, programRuns, modelRuns) => {
    test('random programs equal the interpreter', async () => {
      console.log(`seed ${seed}`);
      const device = await open();
      const target = targetOf(device.facts);
      await fc.assert(
        fc.asyncProperty(programs, async ({ graph, inputs }) => {
          const expected = interpret(graph, inputs);
          const actual = await runOnDevice(device, target, graph, inputs);
          actual.forEach((got, i) => expectClose(got, expected[i]!, tolerance(got.dtype)));
        }),
        { numRuns: programRuns, seed },
      );
      expect(await device.finish()).toBeUndefined();
    });

    test('random models equal the unfused form', async () => {
      const device = await open();
      const target = targetOf(device.facts);
      await fc.assert(
        fc.asyncProperty(randomModel(7), async (model) => {
          const expected = interpret(model.graph, model.inputs);
          expectEqual(model, await runOnDevice(device, target, model.graph, model.inputs), expected);
        }),
        { numRuns: modelRuns, seed },
      );
      expect(await device.finish()).toBeUndefined();
    });
  });
});
