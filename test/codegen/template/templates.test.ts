// Every template, on every edge case, in the schedules of every kind of machine (workgroup-staged for GPUs, barrier-free for the
// software adapter, those of WebAssembly): the Loop interpreter finds no race and no stray access, and a real device agrees with the
// reference interpreter.

import { beforeAll, describe, test } from 'vitest';

import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { gpuTarget, softwareTarget, wasmTarget, type Target } from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { rowTargets, smallBlocks } from '../../support/targets.ts';
import { cases } from '../cases.ts';
import { expectNear, prepare } from './template-cases.ts';

const targets: Readonly<Record<string, Target>> = {
  'gpu schedules': gpuTarget,
  'software schedules': softwareTarget,
  'small blocks': smallBlocks,
  'WebAssembly schedules': wasmTarget,
  ...rowTargets,
};

describe.each(Object.keys(targets))('%s', (profile) => {
  const target = targets[profile]!;
  let device: Device;
  beforeAll(async () => {
    device = await openDevice(target.id === 'wasm' ? 'wasm' : 'webgpu:software');
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
