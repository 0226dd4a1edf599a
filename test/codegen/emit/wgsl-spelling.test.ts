// Every operation on every register type at every width, on a real adapter, against the interpreter's meaning of it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Width } from '../../../src/codegen/loop/loop.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { mapLoop, runLoop, type Arrays } from '../run-loop.ts';
import { argumentsOf, disagreements, longCases, nameOf, spellingCases } from './spelling-cases.ts';

const cases = [
  ...spellingCases,
  ...longCases.filter(({ args, result }) => ![...args, result].includes('f64')),
];

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

describe.each([1, 2, 4] as const)('width %i', (width: Width) => {
  test.each(cases.map((row) => [nameOf(row), row] as const))('%s', async (name, row) => {
    const inputs = argumentsOf(row);
    const size = inputs[0]!.length;
    const arrays: Arrays = new Map(inputs.map((data, k) => [`x${k}`, data]));
    await runLoop(device, mapLoop(row, width, size), arrays);
    const wrong = disagreements(row, width, inputs, arrays.get('out')!);
    expect(wrong.slice(0, 8), `${name}: ${wrong.length} of ${size} wrong`).toEqual([]);
  });
});
