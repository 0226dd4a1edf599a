// Runs a graph the two ways a compiled program can be run here: its generated WGSL on a device, and
// its Loops in the Loop interpreter (which also reports races and accesses out of bounds).

import { compileGraph, lowerGraph, optimise } from '../../src/compile.ts';
import { interpretLoop } from './interpret/run.ts';
import type { Loop } from '../../src/codegen/loop/loop.ts';
import { paddedSize } from '../../src/codegen/expression/lowering.ts';
import type { PinnedTilings } from '../../src/codegen/template/contract/strategies.ts';
import { verifyLoop } from '../../src/codegen/loop/verify.ts';
import { dtypeBytes, isFloat } from '../../src/ir/dtype.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import type { TensorType } from '../../src/ir/infer.ts';
import { fixedShape, sizeOf } from '../../src/ir/shape.ts';
import { emptyData, packBytes, unpackBytes, type HostArray, type HostData } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { pairDonations } from '../../src/schedule/memory/donate.ts';
import type { Target } from '../../src/schedule/target.ts';

/** Compiles for `target` with every verifier on, runs on `device`, and reads all outputs back. */
export async function runOnDevice(
  device: Device,
  target: Target,
  graph: Graph,
  inputs: readonly HostArray[],
  donate: ReadonlyMap<number, number> = new Map(),
  pinned?: PinnedTilings,
): Promise<HostArray[]> {
  const schedules = pinned === undefined ? {} : { schedules: pinned };
  const { program } = compileGraph(graph, target, { check: true, donate, ...schedules });
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
    for (const [i, at] of program.outputs.entries()) {
      const { dtype } = graph.outputs[i]!;
      const shape = dims(graph.outputs[i]!);
      const bytes = dtypeBytes(dtype) * sizeOf(shape);
      const read = bytes === 0 ? new Uint8Array() : await device.read(buffers[at]!, bytes);
      outputs.push(unpackBytes(read.subarray(0, bytes), dtype, shape));
    }
    return outputs;
  } finally {
    buffers.forEach((buffer) => buffer?.destroy());
    loaded.destroy();
  }
}

/**
 * Runs the graph's Loops one after another on host arrays. `donate`: parameters that outputs may
 * take the place of. `instead` gives the Loop that runs in the place of each.
 */
export function runLoops(
  target: Target,
  graph: Graph,
  inputs: readonly HostArray[],
  pinned?: PinnedTilings,
  donate: ReadonlyMap<number, number> = new Map(),
  instead: (loop: Loop) => Loop = (loop) => loop,
  /** Parameters (i32, rank 0) that kernels take as scalars. */
  asScalars: readonly number[] = [],
  /** Runs a Loop on the elements of its buffers. */
  run: (loop: Loop, buffers: Map<string, HostData>, scalars: readonly number[]) => void = (
    loop,
    buffers,
    given,
  ) => interpretLoop(loop, buffers, given, subgroupsOf(target, loop)),
): HostArray[] {
  const optimised = optimise(graph, target, true);
  const slots = new Map(asScalars.map((at, slot) => [optimised.parameters[at] as Node, slot]));
  const scalars = asScalars.map((at) => Number(inputs[at]!.data[0]));
  const donations = new Map<Node, Node>();
  for (const [parameter, output] of donate) {
    const [from, to] = [optimised.parameters[parameter] as Node, optimised.outputs[output]!];
    if (!optimised.outputs.includes(from) && to.op !== 'parameter') donations.set(to, from);
  }
  const paired = pairDonations(donations);
  const { schedule, memory: plan, lowered } = lowerGraph(optimised, target, slots, paired, pinned);
  const { packs } = schedule;
  const memory = new Map<Node, HostData>();
  const store = (node: Node): HostData => {
    const host = plan.overwrites.get(node);
    const known = memory.get(node) ?? (host === undefined ? undefined : store(host));
    if (known !== undefined) return known;
    const fresh = emptyData(node.dtype, paddedSize(node));
    // What no kernel writes may be anything.
    if (asScalars.length > 0 && isFloat(node.dtype)) (fresh as Float32Array).fill(NaN);
    memory.set(node, fresh);
    return fresh;
  };
  for (const pack of packs.values()) {
    const whole = store(pack.node);
    for (const { node, offset, elements } of pack.members)
      memory.set(node, whole.subarray(offset, offset + elements) as HostData);
  }
  optimised.parameters.forEach((parameter, i) =>
    store(parameter as Node).set(asStored(inputs[i]!, parameter).data as never),
  );
  for (const one of lowered) {
    if (!('loop' in one)) throw new Error('runLoops runs kernels alone: compile for a device');
    const { loop: made, bound } = one;
    const loop = instead(made);
    verifyLoop(loop, target.limits, loop === made ? 4 : 16);
    const buffers = new Map(bound.map(({ name, nodes }) => [name, store(nodes[0]!)]));
    run(loop, buffers, scalars);
  }
  return optimised.outputs.map((node, i) => {
    const { dtype } = graph.outputs[i]!;
    const shape = dims(graph.outputs[i]!);
    const data = store(node).slice(0, sizeOf(dims(node)));
    if (dtype === node.dtype) return { dtype, shape, data };
    return unpackBytes(packBytes({ dtype: node.dtype, shape: dims(node), data }), dtype, shape);
  });
}

/**
 * On CUDA invocations that follow each other make a subgroup. Elsewhere nobody says which do: here
 * every so many-th.
 */
function subgroupsOf({ id, subgroups }: Target, { workgroup }: Loop): number | number[][] | undefined {
  if (subgroups === undefined || id === 'cuda') return subgroups?.max;
  const items = workgroup[0] * workgroup[1] * workgroup[2];
  const count = Math.ceil(items / subgroups.max);
  return Array.from({ length: count }, (_, first) =>
    Array.from({ length: Math.ceil((items - first) / count) }, (_, i) => first + i * count),
  );
}

/** A value as a compiled graph has it: small integers may be packed in words there. */
export function asStored(value: HostArray, { dtype, shape }: TensorType): HostArray {
  if (value.dtype === dtype) return value;
  return unpackBytes(wholeWords(packBytes(value)), dtype, fixedShape(shape, 'asStored'));
}

function wholeWords(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  padded.set(bytes);
  return padded;
}
