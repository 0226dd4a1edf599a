// Compiled programs over several processes, on every device that runs them: each rank compiles and runs the program of its own, and
// all together compute what the interpreter says of the graph over all of them.

import { afterAll, describe, expect, test } from 'vitest';
import { simulate } from '../../src/autograd/vmap/on-mesh.ts';
import { compileGraph, type CompiledGraph, type CompileOptions } from '../../src/compile.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { unpackBytes, packBytes, type HostArray } from '../../src/ir/value.ts';
import { dims, type Graph } from '../../src/ir/graph.ts';
import type { Communicator } from '../../src/runtime/communicator.ts';
import type { Device } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { inStep } from '../support/ranks/world.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../support/ranks/program.ts';
import { checkLawAsync } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';

const opened: Device[] = [await interpreterBackend.open(), await WasmDevice.open('wasm', { threads: 1 })];
afterAll(() => Promise.all(opened.map((device) => device.destroy())));

/** What a rank computes on a device. */
async function onDevice(
  device: Device,
  { program, host }: CompiledGraph,
  graph: Graph,
  inputs: readonly HostArray[],
  communicator: Communicator,
): Promise<HostArray[]> {
  device.join!(communicator);
  const loaded = device.load(program, host);
  const given = program.inputs.map((index, i) => {
    const buffer = device.allocate(program.buffers[index]!.bytes);
    device.write(buffer, packBytes(inputs[i]!));
    return buffer;
  });
  const fresh = loaded.allocateOutputs();
  const distinct = [...new Set(program.outputs)].filter((index) => program.buffers[index]!.role === 'output');
  const outputs = program.outputs.map((index) => {
    const at = distinct.indexOf(index);
    return at >= 0 ? fresh[at]! : given[program.inputs.indexOf(index)]!;
  });
  try {
    loaded.run(given, outputs, []);
    return await Promise.all(
      graph.outputs.map(async (node, i) => {
        const bytes = program.buffers[program.outputs[i]!]!.bytes;
        return unpackBytes(await device.read(outputs[i]!, bytes), node.dtype, dims(node));
      }),
    );
  } finally {
    loaded.destroy();
    for (const buffer of new Set([...given, ...outputs])) buffer.destroy();
  }
}

async function check(
  device: Device,
  { graph, mesh, inputs }: LocalProgram,
  tolerance: number,
  options: CompileOptions = {},
): Promise<void> {
  const compiled = inputs.map((_, rank) =>
    compileGraph(graph, targetOf(device.facts), { rank, check: true, ...options }),
  );
  const ranks = await inStep(mesh.size, (communicator) => {
    const { rank } = communicator;
    return onDevice(device, compiled[rank]!, graph, inputs[rank]!, communicator);
  });
  const expected = interpret(
    simulate(graph, mesh),
    graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!))),
  );
  graph.outputs.forEach((_, i) => {
    expectClose(stackedRanks(ranks.map((outputs) => outputs[i]!)), expected[i]!, tolerance);
  });
}

describe.each(opened.map((device) => [device.facts.name, device] as const))('%s', (_, device) => {
  test.each(['f32', 'f64', 'i32'] as const)('random programs of %s', async (dtype) => {
    const tolerance = { f32: 1e-3, f64: 1e-9, i32: 0 }[dtype];
    await checkLawAsync(40, localProgram({ dtype }), (program) => check(device, program, tolerance));
  });
});

test('there are devices', () => expect(opened.length).toBe(2));
