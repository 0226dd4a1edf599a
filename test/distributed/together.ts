// What the processes of a mesh make of a traced function together, and what one process computes.

import { splitOf, type Spec } from '../../src/distributed/mesh.ts';
import * as sn from '../../src/index.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Mesh } from '../../src/ir/mesh/mesh.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { CollectiveUse } from '../../src/sharding/use.ts';
import { partition } from '../../src/sharding/partition.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';
import { partOf, wholeOf } from '../support/ranks/mesh.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { stackedRanks } from '../support/ranks/program.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

export type Fn = (...args: sn.Tensor[]) => sn.Tensor | readonly sn.Tensor[];
export type Shape = readonly number[];

/** What the processes of a mesh compute together, of random arguments that are held so. */
export function onMesh(
  fn: Fn,
  grid: Mesh,
  shapes: readonly Shape[],
  specs: readonly Spec[] = [],
): {
  readonly results: readonly HostArray[];
  readonly inputs: readonly HostArray[];
  readonly collectives: readonly CollectiveUse[];
  /** What each of them runs. */
  readonly graph: Graph;
} {
  const { graph, order } = traced(fn, shapes);
  const inputs = shapes.map((shape, i) => randomArray('f64', shape, i + 1, 'tame'));
  const splits = order.map((i) => splitOf('test', grid, shapes[i]!, specs[i] ?? shapes[i]!.map(() => null)));
  const made = partition(graph, grid, { inputs: splits, outputs: graph.outputs.map(() => undefined) });
  const stacks = order.map((i, j) =>
    stackedRanks(Array.from({ length: grid.size }, (_, rank) => partOf(grid, inputs[i]!, splits[j]!, rank))),
  );
  const all = interpret(simulate(made.graph, grid), stacks);
  const results = graph.outputs.map((node: Node, i) =>
    wholeOf(grid, dims(node), partsOfStack(all[i]!), made.outputs[i]!),
  );
  return { results, inputs, collectives: made.collectives, graph: made.graph };
}

/** The graph of a function, and which argument each of its parameters is. */
function traced(
  fn: Fn,
  shapes: readonly Shape[],
): { readonly graph: Graph; readonly order: readonly number[] } {
  const given = shapes.map((shape) => sn.zeros(shape, { dtype: 'f64' }));
  const { graph, inputs } = traceFunction(fn as (...args: never[]) => unknown, given);
  const order = inputs.map(({ origin }) => (origin.kind === 'argument' ? origin.leaf : -1));
  return { graph, order };
}

function partsOfStack({ dtype, shape: [count, ...shape], data }: HostArray): HostArray[] {
  const size = sizeOf(shape);
  return Array.from({ length: count! }, (_, i) => ({
    dtype,
    shape,
    data: data.slice(i * size, (i + 1) * size),
  }));
}

/** What one process computes. */
function alone(fn: Fn, inputs: readonly HostArray[]): readonly HostArray[] {
  const { graph, order } = traced(
    fn,
    inputs.map(({ shape }) => shape),
  );
  return interpret(
    graph,
    order.map((i) => inputs[i]!),
  );
}

/** The gradients by all three arguments. */
export const gradientOf =
  (of: Fn): Fn =>
  (...args) =>
    sn.grad((...at: sn.Tensor[]) => (of(...at) as sn.Tensor).square().sum(), { argnums: [0, 1, 2] })(...args);

export function expectSame(
  fn: Fn,
  plain: Fn,
  grid: Mesh,
  shapes: readonly Shape[],
  specs: readonly Spec[] = [],
): readonly CollectiveUse[] {
  const { results, inputs, collectives } = onMesh(fn, grid, shapes, specs);
  alone(plain, inputs).forEach((value, i) => expectClose(results[i]!, value, 1e-9));
  return collectives;
}
