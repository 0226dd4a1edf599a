// Random programs and models as compiled C equal the reference interpreter, by the compiler and the flags that users have. Programs of a
// test are compiled together. `SINTER_NATIVE_RUNS=20` draws so many times as much.

import * as fc from 'fast-check';
import { expect, test, type TestContext } from 'vitest';
import { realDTypes as dtypes } from '../../../src/ir/dtype.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { expectEqual } from '../../codegen/random/models-compare.ts';
import { randomModel } from '../../codegen/random/models.ts';
import { runOnDevice } from '../../support/execute.ts';
import { seed } from '../../support/property.ts';
import { differencesOf } from '../../support/random/differential.ts';
import { expectClose, randomProgram, type Program } from '../../support/random/graph.ts';
import { isQuick } from '../../support/sample.ts';
import { withoutCompiler } from './machine.ts';
import { chooseDevice } from './waiting.ts';

const times = Number(process.env['SINTER_NATIVE_RUNS'] ?? 1);

/** f16 keeps 11 bits: two roundings apart is 2e-3. */
const tolerance = (dtype: string): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

function skipUnlessCompiled(context: TestContext): void {
  if (isQuick) context.skip('compiling takes more than the quick tier has time for');
  if (withoutCompiler !== undefined) context.skip(withoutCompiler);
  console.log(`random inputs from SINTER_SEED=${seed}`);
}

/** Checks a law of what programs compute on the device; they are compiled together, but for those that shrinking makes. */
async function check<T extends Program>(
  runs: number,
  values: fc.Arbitrary<T>,
  judge: (value: T, found: Awaited<ReturnType<typeof runOnDevice>>) => void,
): Promise<void> {
  const rehearse = await chooseDevice('native');
  const device = await openDevice('native');
  const run = ({ graph, inputs }: T): ReturnType<typeof runOnDevice> =>
    runOnDevice(device, targetOf(device.facts), graph, inputs);
  const settings = { numRuns: runs * times, seed };
  await rehearse?.(() =>
    fc.assert(
      fc.asyncProperty(values, async (value) => void (await run(value))),
      settings,
    ),
  );
  await fc.assert(
    fc.asyncProperty(values, async (value) => judge(value, await run(value))),
    settings,
  );
  expect(await device.finish()).toBeUndefined();
}

test('random programs on native', async (context) => {
  skipUnlessCompiled(context);
  await check(100, randomProgram({ dtypes, values: 'tame' }), ({ graph, inputs }, found) => {
    const expected = interpret(graph, inputs);
    found.forEach((got, i) => expectClose(got, expected[i]!, tolerance(got.dtype)));
  });
});

test('random models on native', async (context) => {
  skipUnlessCompiled(context);
  await check(20, randomModel(7), (model, found) => {
    expectEqual(model, found, interpret(model.graph, model.inputs));
  });
});

test('random programs of special values on native', async (context) => {
  skipUnlessCompiled(context);
  await chooseDevice('native');
  const device: Device = await openDevice('native');
  for (let batch = 0; batch < 3 * times; batch++)
    expect(await differencesOf(device, seed + batch, 20)).toEqual([]);
});
