// Relaxed SIMD, where the engine has it: products and sums in one instruction, near what two of them give. Node 20 has it behind a flag,
// which this process sets before it compiles anything.

import { setFlagsFromString } from 'node:v8';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf, wasmTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runOnDevice } from '../support/execute.ts';
import { seed } from '../support/property.ts';
import { expectClose, randomProgram } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

test('kernels use it where the engine has it, and compute the same', async () => {
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  const device = await WasmDevice.open('wasm', { threads: 1 });
  expect(device.facts.features).toEqual(['simd128', 'relaxed-simd']);
  const target = targetOf(device.facts);
  for (const [m, k, n] of [
    [64, 64, 64],
    [1, 128, 96],
    [33, 70, 5],
  ] as const) {
    const s = new Sketch();
    const graph = s.graph([s.matmul(s.input([m, k]), s.input([k, n]))]);
    const [kernel] = compileGraph(graph, target).kernels;
    expect(kernel!.source).toContain('f32x4.relaxed_madd');
    expect(compileGraph(graph, wasmTarget).kernels[0]!.source).not.toContain('relaxed');
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 1, 'tame'),
    );
    const [found] = await runOnDevice(device, target, graph, inputs);
    expectClose(found!, interpret(graph, inputs)[0]!, 1e-4);
  }
  await fc.assert(
    fc.asyncProperty(
      randomProgram({ dtypes: ['f32', 'i32', 'bool'], values: 'tame' }),
      async ({ graph, inputs }) => {
        const expected = interpret(graph, inputs);
        const actual = await runOnDevice(device, target, graph, inputs);
        actual.forEach((got, i) => expectClose(got, expected[i]!, 1e-3));
      },
    ),
    { numRuns: 60, seed },
  );
  device.destroy();
});
