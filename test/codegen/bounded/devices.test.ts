// Programs with a bound on devices: one compiled program for every number that a run brings, and NaN in what is beyond.

import { beforeAll, describe, test } from 'vitest';
import { compileGraph } from '../../../src/compile.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { packBytes, unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import { dims } from '../../../src/ir/graph.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { useStandIn } from '../../cuda/standin/standin.ts';
import { expectClose } from '../../support/random/graph.ts';
import { folds, grids, inputsOf, specified, type Bounded } from './programs.ts';

const all = { ...folds, ...grids };
const sizes = { rows: 5, capacity: 140, columns: 12 };
const bounds = [0, 1, 37, 139, 140, 141, -3];

/** Runs one compiled program with each of the bounds. */
async function checkBounds(device: Device, { graph, along, open }: Bounded): Promise<void> {
  const { program } = compileGraph(graph, targetOf(device.facts), { check: true });
  const loaded = device.load(program);
  const buffers = program.buffers.map(({ role, bytes }) =>
    role === 'scratch' ? undefined : device.allocate(bytes),
  );
  for (const n of bounds) {
    const inputs = inputsOf({ graph, along }, n);
    program.inputs.forEach((at, i) => device.write(buffers[at]!, packBytes(inputs[i]!)));
    const handles = (list: readonly number[]): NonNullable<(typeof buffers)[number]>[] =>
      list.map((at) => buffers[at]!);
    loaded.run(handles(program.inputs), handles(program.outputs), []);
    const expected = interpret(graph, inputs);
    for (const [i, at] of program.outputs.entries()) {
      const node = graph.outputs[i]!;
      const bytes = await device.read(buffers[at]!, packBytes(expected[i]!).byteLength);
      const got: HostArray = unpackBytes(bytes, node.dtype, dims(node));
      expectClose(specified(got, open, n), specified(expected[i]!, open, n), 1e-4);
    }
  }
  buffers.forEach((buffer) => buffer?.destroy());
  loaded.destroy();
}

describe.each(['wasm', 'webgpu:software', ...(useStandIn() ? ['cuda'] : [])])('%s', (name) => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice(name);
  });

  test.each(Object.keys(all))('%s', async (program) => {
    await checkBounds(device, all[program]!(sizes));
  });
});
