// What processes would send each other for a function, before there are any: which collectives its program has, with
// their bytes and why they are there.

import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Split } from '../ir/mesh/split.ts';
import { clusters } from '../sharding/cost.ts';
import { partition, type Partitioned } from '../sharding/partition.ts';
import { timedUses, type TimedCollective } from '../sharding/time.ts';
import { Tensor } from '../tensor/tensor.ts';
import { traceFunction } from '../tensor/tracing.ts';
import { flatten } from '../tensor/tree.ts';
import { splitOf } from './mesh.ts';
import type { ShardPlan } from './parallel.ts';

/** What the processes of a mesh send each other in one call. */
export interface Communication {
  /** In the order of the program. */
  readonly collectives: readonly TimedCollective[];
  /** Bytes that each process sends in one call, in all. */
  readonly bytes: number;
  /** Modelled seconds of the collectives one after the other, on H100 GPUs: NVLink 4 in nodes of 8, 400 Gb/s between. */
  readonly time: number;
  /** Bytes by kind and mesh axes: `allReduce data`. */
  readonly bytesByCollective: Readonly<Record<string, number>>;
}

/**
 * What the processes of a mesh send each other in a call of `fn`, whose arguments are held as these plans say: one plan an argument; undefined
 * where every process has all of it. Runs nothing, and needs no other process. A byte that a process has to send twice counts
 * twice; bytes are those of the best known algorithms: (n − 1)/n of the value for a gather or a scattered sum, twice that for a sum.
 */
export function explainParallel(
  fn: (...args: never[]) => unknown,
  mesh: Mesh,
  plans: readonly (ShardPlan | undefined)[],
  ...args: readonly unknown[]
): Communication {
  const { collectives: uses } = sharedProgram(fn, mesh, plans, args);
  const collectives = timedUses(mesh, uses, clusters.h100);
  const bytesByCollective: Record<string, number> = {};
  for (const { kind, over, bytes } of collectives) {
    const name = `${kind} ${over.join()}`;
    bytesByCollective[name] = (bytesByCollective[name] ?? 0) + bytes;
  }
  const bytes = collectives.reduce((sum, use) => sum + use.bytes, 0);
  const time = collectives.reduce((sum, use) => sum + use.time, 0);
  return { collectives, bytes, time, bytesByCollective };
}

/** The program of one process in such a call. */
export function sharedProgram(
  fn: (...args: never[]) => unknown,
  mesh: Mesh,
  plans: readonly (ShardPlan | undefined)[],
  args: readonly unknown[],
): Partitioned {
  const { leaves, paths } = flatten(args, 'explainParallel');
  const splits = leaves.map((leaf, i): Split | undefined => {
    const [, argument, path] = /^\[(\d+)\]\.?(.*)$/.exec(paths[i]!) ?? [];
    const spec = leaf instanceof Tensor ? plans[Number(argument)]?.(path!, leaf) : undefined;
    return spec && splitOf('explainParallel', mesh, (leaf as Tensor).shape, spec);
  });
  const { graph, inputs, scalarIndices } = traceFunction(fn, args);
  let tensor = 0;
  const given = graph.parameters.map((_, i) => {
    const origin = scalarIndices.has(i) ? undefined : inputs[tensor++]!.origin;
    return origin?.kind === 'argument' ? splits[origin.leaf] : undefined;
  });
  return partition(graph, mesh, { inputs: given, outputs: graph.outputs.map(() => undefined) });
}
