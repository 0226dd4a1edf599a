// What processes would send each other for a function, before there are any: how each of them holds what goes in and out, and
// which collectives its program has, with their bytes and why they are there.

import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Split } from '../ir/mesh/split.ts';
import { communicationOf, type Communication, type PartitionedCall } from '../sharding/report.ts';
import { optionsOf } from '../tensor/compile/compiled.ts';
import { callParts, meshWithin, partitionCall, partsPlanned, valuesBy } from '../tensor/compile/parts.ts';
import { namedGraph } from '../tensor/compile/names.ts';
import { reportOf } from '../tensor/sizes/report.ts';
import { Tensor } from '../tensor/tensor.ts';
import { traceFlat } from '../tensor/tracing.ts';
import { flatten, type Flat } from '../tensor/tree.ts';
import { splitOf } from './mesh.ts';
import type { ShardPlan } from './parallel.ts';

/** How the tensors of each argument are held; undefined where every process has all of them. */
export type ArgumentPlans = readonly (ShardPlan | undefined)[];

/**
 * How the processes of a mesh share a call of `fn`, whose arguments are held as these plans say: one plan an argument; undefined
 * where every process has all of it. Runs nothing, and needs no other process. A byte that a process has to send twice counts
 * twice; bytes are those of the best known algorithms: (n − 1)/n of the value for a gather or a scattered sum, twice that for a sum.
 */
export function explainParallel(
  fn: (...args: never[]) => unknown,
  mesh: Mesh,
  plans: ArgumentPlans,
  ...args: readonly unknown[]
): Communication {
  return communicationOf(sharedProgram(fn, mesh, plans, args));
}

/** The program of one process in such a call. */
export function sharedProgram(
  fn: (...args: never[]) => unknown,
  mesh: Mesh,
  plans: ArgumentPlans,
  args: readonly unknown[],
): PartitionedCall {
  const flat = flatten(args, 'explainParallel');
  const traced = traceFlat(fn, flat);
  const graph = namedGraph(traced, flat.paths);
  const values = valuesBy(
    traced,
    partsPlanned(mesh, splitsBy('explainParallel', mesh, plans, flat), flat.leaves),
  );
  const { donate } = optionsOf(traced, traced.graph.outputs, reportOf(fn)?.donated(flat) ?? []);
  const call = callParts(traced, donate, values, [mesh, meshWithin(graph)]);
  return partitionCall(graph, traced.scalarIndices, call!);
}

/** How plans split the leaves of arguments. Throws E_VALUE or E_SHAPE where one does not fit the mesh or a shape. */
export function splitsBy(
  op: string,
  mesh: Mesh,
  plans: ArgumentPlans,
  { leaves, paths }: Pick<Flat, 'leaves' | 'paths'>,
): readonly (Split | undefined)[] {
  return leaves.map((leaf, i) => {
    const [, argument, path] = /^\[(\d+)\]\.?(.*)$/.exec(paths[i]!) ?? [];
    const spec = leaf instanceof Tensor ? plans[Number(argument)]?.(path!, leaf) : undefined;
    return spec && splitOf(op, mesh, (leaf as Tensor).shape, spec);
  });
}
