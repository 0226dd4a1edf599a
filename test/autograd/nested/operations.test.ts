// The operations that PyTorch's figures call, at special points: nested derivatives of what is composed of primitives. CI tries a part
// of the calls; `SINTER_NESTED_RUNS=1000` tries each twice.

import { expect, test } from 'vitest';
import { torchCases } from '../../support/torch/figures.ts';
import { seed } from '../../support/property.ts';
import { needsWholeFile } from '../../support/sample.ts';
import { calledFamilies } from '../../tensor/ops/torch-check.ts';
import { randomNumbers } from '../differences.ts';
import { checkNested } from './check.ts';
import { callSample } from './samples.ts';

const rounds = Number(process.env['SINTER_NESTED_RUNS'] ?? 40) / 500;

/** Calls with gradients, of few elements: those of casts are rounded to other floats, which differences cannot see. */
const families = calledFamilies()
  .filter((family) => family !== 'cast')
  .map((family) =>
    torchCases(family).filter(
      ({ grads, inputs }) => grads !== undefined && inputs.every(({ data }) => data.length <= 150),
    ),
  )
  .filter((cases) => cases.length > 0);

let compared = 0;

for (const cases of families) {
  const family = cases[0]!.name.split('/')[0]!;
  test(family, () => {
    for (const [i, one] of cases.entries()) {
      const random = randomNumbers(seed + i);
      const times = Math.floor(rounds) + (random() < rounds % 1 ? 1 : 0);
      for (let round = 0; round < times; round++) compared += tried(one, random);
    }
  });
}

test('most calls were compared with differences', (context) => {
  needsWholeFile(context);
  console.log(`seed ${seed}: ${compared} derivatives of calls compared with differences`);
  expect(compared).toBeGreaterThan(rounds * 500);
});

function tried(one: Parameters<typeof callSample>[0], random: () => number): number {
  const { sample } = callSample(one, random);
  if (sample === undefined) return 0;
  try {
    return checkNested(sample, random)?.compared ?? 0;
  } catch (error) {
    const inputs = sample.inputs.map(({ shape, data }) => `[${shape.join()}] ${[...data].join(' ')}`);
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${sample.name}, with respect to ${sample.wrt.join()}: ${text}\n${inputs.join('\n')}`, {
      cause: error,
    });
  }
}
