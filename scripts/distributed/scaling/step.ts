// The modelled time of a step: the longest path through the program of one GPU. It computes in one order, and each group of GPUs
// runs its collectives one after the other, as they become ready. Without overlap there is one queue for everything.

import { collectiveOf, dims, topological, type Node } from '../../../src/ir/graph.ts';
import { dtypeBytes } from '../../../src/ir/dtype.ts';
import type { Mesh } from '../../../src/ir/mesh/mesh.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { bytesSent, spreadOver, timeOverAxes, type ClusterModel } from '../../../src/sharding/cost.ts';
import { flopsOf } from '../../../src/sharding/time.ts';
import type { Partitioned } from '../../../src/sharding/partition.ts';

/** A GPU, and how it is joined to others. */
export interface GpuModel {
  /** Operations a second that products reach. */
  readonly arithmetic: number;
  /** Bytes of memory. */
  readonly memory: number;
  readonly cluster: ClusterModel;
}

/** A node of a program with its modelled time. */
export interface StepTask {
  /** Tasks by place, all of them before this one. */
  readonly after: readonly number[];
  /** Seconds. */
  readonly time: number;
  /** Mesh axes, of a collective. */
  readonly over?: string;
  /** Bytes that the GPU sends. */
  readonly sent: number;
}

/** Tasks of a program whose processes stand on `mesh`; products count by their arithmetic, other ops as nothing. */
export function tasksOf(
  { graph }: Pick<Partitioned, 'graph'>,
  mesh: Mesh,
  gpu: GpuModel,
): readonly StepTask[] {
  // From the last gradient to the first, which is the order in which they can be computed.
  const order = topological(graph.outputs.toReversed());
  const places = new Map(order.map((node, place) => [node, place]));
  return order.map((node): StepTask => {
    const after = node.inputs.map((input) => places.get(input)!);
    const collective = collectiveOf(node);
    if (collective === undefined) {
      const isProduct = node.op === 'dot';
      return { after, time: isProduct ? flopsOf(node) / gpu.arithmetic : 0, sent: 0 };
    }
    const { over } = collective.attrs;
    const whole = Math.max(bytesOf(node), bytesOf(node.inputs[0]!));
    // A gather of parts that were cut for another number of GPUs moves what it has moved there: the whole.
    const { local, nodes } = spreadOver(mesh, over.split(','), gpu.cluster.node);
    const sent = bytesSent(collective.op, local * nodes, whole);
    return {
      after,
      over,
      sent,
      time: timeOverAxes(collective.op, mesh, over.split(','), whole, gpu.cluster),
    };
  });
}

function bytesOf(node: Node): number {
  return sizeOf(dims(node)) * dtypeBytes(node.dtype);
}

/** Seconds of one step, with all tasks one after the other. */
export function serialTime(tasks: readonly StepTask[]): number {
  return tasks.reduce((sum, { time }) => sum + time, 0);
}

/** Seconds of one step in which collectives run beside the arithmetic. */
export function overlappedTime(tasks: readonly StepTask[]): number {
  const ends: number[] = [];
  const free = new Map<string, number>();
  /** Collectives that are ready and have not begun, by their groups. */
  const waiting = new Map<string, { readonly place: number; readonly ready: number }[]>();
  const ready = (place: number): number =>
    tasks[place]!.after.reduce((last, at) => Math.max(last, ends[at]!), 0);

  /** Runs the collectives of a group that became ready before this one, and this one. */
  const run = (place: number): void => {
    const { over } = tasks[place]!;
    const queue = waiting.get(over!)!;
    queue.sort((a, b) => a.ready - b.ready || a.place - b.place);
    while (ends[place] === undefined) {
      const first = queue.shift()!;
      const start = Math.max(first.ready, free.get(over!) ?? 0);
      ends[first.place] = start + tasks[first.place]!.time;
      free.set(over!, ends[first.place]!);
    }
  };

  let computed = 0;
  for (const [place, { after, over, time }] of tasks.entries()) {
    for (const at of after) if (ends[at] === undefined) run(at);
    if (over !== undefined) {
      waiting.set(over, [...(waiting.get(over) ?? []), { place, ready: ready(place) }]);
    } else if (time === 0) {
      // What takes no time holds up nothing that does not read it.
      ends[place] = ready(place);
    } else {
      computed = ends[place] = Math.max(ready(place), computed) + time;
    }
  }
  for (const [place, { over }] of tasks.entries())
    if (over !== undefined && ends[place] === undefined) run(place);
  return Math.max(0, ...ends);
}
