// Loops on every target: random ones give what the interpreter gives, forward and backward, and what
// they hand on lies where it may.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { gradientGraph } from '../../src/autograd/vjp.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { everyDevice } from '../support/devices.ts';
import { runOnDevice } from '../support/execute.ts';
import { checkLawAsync } from '../support/property.ts';
import { distance, randomLoop } from '../support/random/loop.ts';

const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
/** How many random loops; `SINTER_LOOP_RUNS` looks further. */
const runs = Number(process.env['SINTER_LOOP_RUNS'] ?? 15);

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('loops on %s', (name) => {
  const opened = openDevice(name);

  test('give what the interpreter gives', async () => {
    const device = await opened;
    await checkLawAsync(runs, seeds, async (seed) => {
      const { graph, inputs } = randomLoop(seed);
      const found = await runOnDevice(device, targetOf(device.facts), graph, inputs);
      expect(distance(found, interpret(graph, inputs))).toBeLessThan(2e-5);
    });
  });

  test('have the gradients that the interpreter has', async () => {
    const device = await opened;
    await checkLawAsync(runs, seeds, async (seed) => {
      const { graph, inputs } = randomLoop(seed);
      const outputs = graph.outputs.flatMap((node, i) => (node.shape.length === 0 ? [i] : []));
      if (outputs.length === 0) return;
      const looped = gradientGraph(graph, [...graph.parameters.keys()], { of: outputs });
      const found = await runOnDevice(device, targetOf(device.facts), looped, inputs);
      expect(distance(found, interpret(looped, inputs))).toBeLessThan(1e-4);
    });
  });
});
