// Every template, on every edge case, in both schedules (workgroup-staged for GPUs, barrier-free for the software adapter):
// the Loop interpreter finds no race and no stray access, and the real device agrees with the reference interpreter.

import { beforeAll, describe, expect, test } from 'vitest';

import { interpret } from '../../src/ir/interpret.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../support/execute.ts';
import { randomArray } from '../support/random-values.ts';
import { rowTargets, smallBlocks } from '../support/targets.ts';
import { cases, Sketch } from './cases.ts';

const targets: Readonly<Record<string, Target>> = {
  'gpu schedules': gpuTarget,
  'software schedules': softwareTarget,
  'small blocks': smallBlocks,
  ...rowTargets,
};

function prepare(name: string): { graph: ReturnType<Sketch['graph']>; inputs: HostArray[] } {
  const sketch = new Sketch();
  const graph = sketch.graph(cases[name]!(sketch));
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  return { graph, inputs };
}

/** Largest difference relative to the largest expected magnitude; 16-bit results may differ by a rounding. */
function distance(actual: HostArray, expected: HostArray): number {
  let [worst, scale] = [0, 1e-30];
  for (let i = 0; i < expected.data.length; i++) {
    const [want, got] = [Number(expected.data[i]), Number(actual.data[i])];
    if (Object.is(want, got)) continue;
    if (Number.isFinite(want)) scale = Math.max(scale, Math.abs(want));
    worst = Math.max(worst, Number.isNaN(want - got) ? Infinity : Math.abs(want - got));
  }
  return worst / scale;
}

function expectNear(actual: readonly HostArray[], expected: readonly HostArray[]): void {
  actual.forEach((got, i) => {
    const want = expected[i]!;
    expect({ dtype: got.dtype, shape: got.shape, size: got.data.length }).toEqual({
      dtype: want.dtype,
      shape: want.shape,
      size: want.data.length,
    });
    expect(distance(got, want)).toBeLessThan(want.dtype === 'f16' || want.dtype === 'bf16' ? 1e-2 : 1e-5);
  });
}

describe.each(Object.keys(targets))('%s', (profile) => {
  const target = targets[profile]!;
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('webgpu:software');
  });

  // Variants of rows have nothing to say about other kernels.
  const names = Object.keys(cases).filter(
    (name) => !(profile in rowTargets) || /softmax|reduc|sum|extreme/.test(name),
  );

  test.each(names)('Loops of %s compute the graph', (name) => {
    const { graph, inputs } = prepare(name);
    expectNear(runLoops(target, graph, inputs), interpret(graph, inputs));
  });

  test.each(names)('kernels of %s compute the graph', async (name) => {
    const { graph, inputs } = prepare(name);
    expectNear(await runOnDevice(device, target, graph, inputs), interpret(graph, inputs));
  });
});
