// Random programs and models as WebAssembly equal the reference interpreter.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { realDTypes as dtypes } from '../../src/ir/dtype.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { expectEqual } from '../codegen/random/models-compare.ts';
import { randomModel } from '../codegen/random/models.ts';
import { runOnDevice } from '../support/execute.ts';
import { seed } from '../support/property.ts';
import { expectClose, randomProgram } from '../support/random/graph.ts';

/** f16 keeps 11 bits: two roundings apart is 2e-3. */
const tolerance = (dtype: string): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

test('random programs', async () => {
  console.log(`seed ${seed}`);
  const device = await openDevice('wasm');
  await fc.assert(
    fc.asyncProperty(randomProgram({ dtypes, values: 'tame' }), async ({ graph, inputs }) => {
      const expected = interpret(graph, inputs);
      const actual = await runOnDevice(device, targetOf(device.facts), graph, inputs);
      actual.forEach((got, i) => expectClose(got, expected[i]!, tolerance(got.dtype)));
    }),
    { numRuns: 300, seed },
  );
  expect(await device.finish()).toBeUndefined();
});

test('random models', async () => {
  const device = await openDevice('wasm');
  await fc.assert(
    fc.asyncProperty(randomModel(7), async (model) => {
      const expected = interpret(model.graph, model.inputs);
      const actual = await runOnDevice(device, targetOf(device.facts), model.graph, model.inputs);
      expectEqual(model, actual, expected);
    }),
    { numRuns: 60, seed },
  );
});
