// What is told of the program of one process: how it holds what goes in and out, and what it sends the others. Explanations and
// explainParallel tell the same.

import { dims, type Graph, type Node } from '../ir/graph.ts';
import { showShape } from '../ir/shape.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { localShape, showSplit, whole, wholeShape, type Split } from '../ir/mesh/split.ts';
import { clusters } from './cost.ts';
import type { ShardLayout } from './layout.ts';
import type { Layouts, Partitioned } from './partition.ts';
import { timedUses, type TimedCollective } from './time.ts';

/** The graph of one process, with what it was made of. */
export interface PartitionedCall extends Partitioned {
  readonly mesh: Mesh;
  /** The graph over whole tensors. */
  readonly whole: Graph;
  /** How its parameters are split; undefined where every process has all of one. */
  readonly inputs: Layouts['inputs'];
  /** Parameters that are run-time scalars. */
  readonly scalars: ReadonlySet<number>;
}

/** How the processes of a mesh hold a value. */
export interface Sharding {
  /** For each axis the mesh axes that split it, as `shard` takes them: `[data, null]`, `[[data, model], null]`. */
  readonly split: string;
  /** The type of the whole value: `f32[64,32]`. */
  readonly whole: string;
  /** What each process has is one part of a fold that has not been done yet: `sum over model`. Absent of complete values. */
  readonly partial?: string;
}

/** An argument or a result of a program that processes share. */
export interface HeldValue extends Sharding {
  /** Of an argument its path: `arg0.layers[1].w`; of a result its place: `result 0`. */
  readonly name: string;
  /** The type of what one process has. */
  readonly part: string;
}

/** How the processes of a mesh share a call: what each of them holds, and what it sends the others. */
export interface Communication {
  /** The processes as a grid: `data=2,model=4`. */
  readonly mesh: string;
  /** Tensors that the call reads, captured ones among them, and those that it gives or assigns. */
  readonly inputs: readonly HeldValue[];
  readonly outputs: readonly HeldValue[];
  /** In the order of the program. */
  readonly collectives: readonly TimedCollective[];
  /** Bytes that each process sends in one call, in all. */
  readonly bytes: number;
  /** Modelled seconds of the collectives one after the other, on H100 GPUs: NVLink 4 in nodes of 8, 400 Gb/s between. */
  readonly time: number;
  /** Bytes by kind and mesh axes: `allReduce data`. */
  readonly bytesByCollective: Readonly<Record<string, number>>;
}

/** How processes share a call. */
export function communicationOf(call: PartitionedCall): Communication {
  const { mesh, whole: graph, scalars } = call;
  const collectives = timedUses(mesh, call.collectives, clusters.h100);
  const bytesByCollective: Record<string, number> = {};
  for (const { kind, over, bytes } of collectives) {
    const name = `${kind} ${over.join()}`;
    bytesByCollective[name] = (bytesByCollective[name] ?? 0) + bytes;
  }
  return {
    mesh: mesh.text,
    inputs: graph.parameters.flatMap((node, i) =>
      scalars.has(i) ? [] : [heldValue(mesh, node.attrs.name, node as Node, call.inputs[i])],
    ),
    outputs: graph.outputs.map((node, i) => heldValue(mesh, `result ${i}`, node, call.outputs[i])),
    collectives,
    bytes: collectives.reduce((sum, use) => sum + use.bytes, 0),
    time: collectives.reduce((sum, use) => sum + use.time, 0),
    bytesByCollective,
  };
}

function heldValue(mesh: Mesh, name: string, node: Node, split: Split = whole(node.shape.length)): HeldValue {
  const { dtype } = node;
  return {
    name,
    split: showSplit(split),
    whole: showShape(dims(node), dtype),
    part: showShape(localShape(mesh, dims(node), split), dtype),
  };
}

/** How processes hold a value of which one has this node. */
export function shardingOf(mesh: Mesh, node: Node, { split, pending }: ShardLayout): Sharding {
  return {
    split: showSplit(split),
    whole: showShape(wholeShape(mesh, dims(node), split), node.dtype),
    ...(pending && { partial: `${pending.monoid} over ${pending.over.join()}` }),
  };
}
