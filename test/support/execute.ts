// Runs a graph the two ways a compiled program can be run here: its generated WGSL on a device, and its Loops in the Loop
// interpreter (which also reports races and accesses out of bounds).

import { compileGraph, optimise } from '../../src/compile.ts';
import { lowerKernel } from '../../src/codegen/kernel.ts';
import { interpretLoop } from '../../src/codegen/interpret-loop.ts';
import { paddedSize } from '../../src/codegen/lower.ts';
import type { PinnedSchedules } from '../../src/codegen/template/contract-schedule.ts';
import { verifyLoop } from '../../src/codegen/verify-loop.ts';
import { dtypeBytes, type DType } from '../../src/ir/dtype.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { emptyData, packBytes, unpackBytes, type HostArray, type HostData } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import type { Target } from '../../src/schedule/target.ts';

/** Compiles for `target` with every verifier on, runs on `device`, and reads all outputs back. */
export async function runOnDevice(
  device: Device,
  target: Target,
  graph: Graph,
  inputs: readonly HostArray[],
): Promise<HostArray[]> {
  const { program } = compileGraph(graph, target, { check: true });
  const loaded = device.load(program);
  const buffers = program.buffers.map((buffer) =>
    buffer.role === 'scratch' ? undefined : device.allocate(buffer.bytes),
  );
  try {
    program.inputs.forEach((at, i) => device.write(buffers[at]!, wholeWords(packBytes(inputs[i]!))));
    loaded.run(
      program.inputs.map((at) => buffers[at]!),
      program.outputs.map((at) => buffers[at]!),
      [],
    );
    const outputs: HostArray[] = [];
    for (const at of program.outputs) {
      const { dtype, shape } = program.buffers[at]!;
      const bytes = dtypeBytes(dtype as DType) * sizeOf(shape);
      const read = bytes === 0 ? new Uint8Array() : await device.read(buffers[at]!, bytes);
      outputs.push(unpackBytes(read.subarray(0, bytes), dtype as DType, shape));
    }
    return outputs;
  } finally {
    buffers.forEach((buffer) => buffer?.destroy());
    loaded.destroy();
  }
}

/** Runs the graph's Loops one after another on host arrays. */
export function runLoops(
  target: Target,
  graph: Graph,
  inputs: readonly HostArray[],
  pinned?: PinnedSchedules,
): HostArray[] {
  const optimised = optimise(graph, target, true);
  const { kernels } = scheduleGraph(optimised, target, new Map());
  const memory = new Map<Node, HostData>();
  const store = (node: Node): HostData => {
    const known = memory.get(node);
    if (known !== undefined) return known;
    const fresh = emptyData(node.dtype, paddedSize(node));
    memory.set(node, fresh);
    return fresh;
  };
  optimised.parameters.forEach((parameter, i) => store(parameter as Node).set(inputs[i]!.data as never));
  for (const kernel of kernels) {
    const { loop, bound } = lowerKernel(kernel, target, new Map(), new Map(), pinned);
    verifyLoop(loop);
    interpretLoop(loop, new Map(bound.map(({ name, nodes }) => [name, store(nodes[0]!)])), []);
  }
  return optimised.outputs.map((node) => {
    const shape = dims(node);
    return { dtype: node.dtype, shape, data: store(node).slice(0, sizeOf(shape)) };
  });
}

function wholeWords(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  padded.set(bytes);
  return padded;
}
