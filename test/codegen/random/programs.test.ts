// Random programs through the whole compiler: generated WGSL on the real device equals the reference interpreter, for special
// values too; on a subset, so do the Loops. Failures shrink and print as IR text; the seed is logged.

import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';

import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { parse as parseGraph } from '../../../src/ir/text/parse.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, targetOf, wasmTarget } from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, seed } from '../../support/property.ts';
import { expectClose, randomProgram } from '../../support/random/graph.ts';
import { rowTargets, smallBlocks } from '../../support/targets.ts';

const dtypes = ['f32', 'i32', 'u32', 'bool', 'f16', 'bf16'] as const;
const programs = randomProgram({ dtypes: [...dtypes], values: 'tame' });
/** f16 keeps 11 bits: two roundings apart is 2e-3. */
const tolerance = (dtype: string): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

/** Those that WebGPU has packed in memory alone, at the edges of their ranges, with what they are cast from and to. */
const small = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'bool'] as const;
const smallPrograms = randomProgram({ dtypes: [...small], values: 'special' });

let device: Device;
beforeAll(async () => {
  device = await openDevice('webgpu:software');
});

test.each([
  ['software', 200],
  ['gpu', 120],
] as const)('random programs on the device equal the interpreter, %s schedules', async (profile, runs) => {
  const target = profile === 'gpu' ? { ...gpuTarget, limits: targetOf(device.facts).limits } : softwareTarget;
  console.log(`seed ${seed}`);
  await fc.assert(
    fc.asyncProperty(programs, async ({ graph, inputs }) => {
      const expected = interpret(graph, inputs);
      const actual = await runOnDevice(device, target, graph, inputs);
      actual.forEach((got, i) => expectClose(got, expected[i]!, tolerance(got.dtype)));
    }),
    { numRuns: runs, seed },
  );
  expect(await device.finish()).toBeUndefined();
});

test('random programs of small integers on the device equal the interpreter', async () => {
  await fc.assert(
    fc.asyncProperty(smallPrograms, async ({ graph, inputs }) => {
      const expected = interpret(graph, inputs);
      const donate = new Map(
        graph.parameters.flatMap(({ dtype, shape }, i): [number, number][] =>
          dtype === graph.outputs[0]!.dtype && `${shape}` === `${graph.outputs[0]!.shape}` ? [[i, 0]] : [],
        ),
      );
      const donated = new Map([...donate].slice(0, 1));
      const actual = await runOnDevice(device, softwareTarget, graph, inputs, donated);
      actual.forEach((got, i) => expectClose(got, expected[i]!, 1e-3));
    }),
    { numRuns: 100, seed },
  );
  expect(await device.finish()).toBeUndefined();
});

test('quotients by sums that are known to be zero, as they once came out of a driver', async () => {
  const graph = parseGraph(`graph {
  %0 = parameter {index: 0, name: "x"} : i32[1,1,4]
  %1 = parameter {index: 1, name: "w"} : i32[1,1,1]
  %2 = conv(%0, %1) {strides: [2], padLow: [1], padHigh: [-1], lhsDilation: [2], rhsDilation: [1], groups: 1} : i32[1,1,4]
  %3 = constant {value: 5} : i32[]
  %4 = broadcast(%3) : i32[1,1,4]
  %5 = div(%4, %2) : i32[1,1,4]
  %6 = mod(%4, %2) : i32[1,1,4]
  return %5, %6
}`);
  const inputs = [
    { dtype: 'i32', shape: [1, 1, 4], data: Int32Array.of(1, 2, 3, 4) },
    { dtype: 'i32', shape: [1, 1, 1], data: Int32Array.of(7) },
  ] as const;
  const found = await runOnDevice(device, softwareTarget, graph, inputs);
  expect(found.map(({ data }) => [...data])).toEqual(interpret(graph, inputs).map(({ data }) => [...data]));
});

const targets = [gpuTarget, softwareTarget, wasmTarget, smallBlocks, ...Object.values(rowTargets)];

test('Loops of random programs run without races and equal the interpreter', () => {
  checkLaw(250, programs, ({ graph, inputs }) => {
    const expected = interpret(graph, inputs);
    for (const target of targets) {
      runLoops(target, graph, inputs).forEach((got, i) =>
        expectClose(got, expected[i]!, tolerance(got.dtype)),
      );
    }
  });
  checkLaw(60, smallPrograms, ({ graph, inputs }) => {
    const expected = interpret(graph, inputs);
    for (const target of [gpuTarget, softwareTarget])
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-3));
  });
});
