// Functions that are written for one process of a mesh: they get its parts of tensors, speak with the other processes by
// collectives that they call themselves, and give parts of what all processes compute together. In the recording such a function is
// what stands between the markers `toPart` and `toWhole`; derivatives of programs over whole tensors pass through it.

import { TensorError } from '../errors.ts';
import * as collectives from '../ir/collectives.ts';
import { isInexact } from '../ir/dtype.ts';
import { topological, type GraphBuilder, type Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { splitKey, splitProblem, showSplit, whole, type Split } from '../ir/mesh/split.ts';
import type { Monoid } from '../ir/ops.ts';
import { compile } from '../tensor/compile/compile.ts';
import { aTensor } from '../tensor/expect.ts';
import { nodeOf, record } from '../tensor/record.ts';
import { inRegion } from '../tensor/region.ts';
import { Tensor } from '../tensor/tensor.ts';
import { isTracing } from '../tensor/tracing.ts';
import { flatten, unflatten } from '../tensor/tree.ts';
import { namesOf, splitOf, type Spec } from './mesh.ts';
import type { ShardPlan } from './parallel.ts';

/** How the tensors of a tree are split: one spec for all of them, or a plan that says it of each; what it leaves out is whole. */
export type TreeSpec = Spec | ShardPlan;

/**
 * `fn`, written for one process of a mesh, as a function of whole tensors: each process calls it with its parts of the arguments, which
 * `ins` splits, one entry an argument, and its results are parts of the whole results, which `outs` splits. Processes whose parts are the
 * same must come to equal values. Inside, collectives such as `allReduce` join the processes, and each tensor has the shape of a
 * part. Differentiable; gradients of results that several processes have equally are shared among them.
 *
 * Throws E_SHAPE where a spec does not fit, and E_VALUE where `fn` reads a tensor of numbers that is no argument: pass it with a spec of nulls.
 */
export function shardMap<A extends readonly unknown[], R>(
  fn: (...parts: A) => R,
  mesh: Mesh,
  ins: readonly TreeSpec[],
  outs: TreeSpec,
): (...args: A) => R {
  const mapped = (...args: A): R => {
    if (args.length !== ins.length) {
      const problem = `${ins.length} specs say how ${args.length} arguments are split`;
      throw new TensorError('E_VALUE', 'shardMap', problem, 'one spec, or plan, for each argument');
    }
    const edges: Node[] = [];
    const parts = args.map((arg, i) => {
      const { structure, leaves, paths } = flatten(arg, 'shardMap');
      const split = leaves.map((leaf, j) => {
        if (!(leaf instanceof Tensor)) return leaf;
        const part = partOf(
          leaf,
          mesh,
          splitOf('shardMap', mesh, leaf.shape, specAt(ins[i]!, paths[j]!, leaf)),
        );
        edges.push(nodeOf(part));
        return part;
      });
      return unflatten(structure, split);
    }) as unknown as A;
    const result = inRegion(
      () => fn(...parts),
      (b, fact) => ofAll(b, fact, mesh),
    );
    const { structure, leaves, paths } = flatten(result, 'shardMap');
    checkClosed(leaves, edges);
    const wholes = leaves.map((leaf, i) =>
      leaf instanceof Tensor ? wholeOf(leaf, mesh, specAt(outs, paths[i]!, leaf)) : leaf,
    );
    return unflatten(structure, wholes) as R;
  };
  const compiled = compile(mapped as (...args: never[]) => unknown) as unknown as (...args: A) => R;
  return (...args) => (isTracing() ? mapped : compiled)(...args);
}

/** What a check finds out on any process: facts are greatest distances, or flags. */
function ofAll(b: GraphBuilder, fact: Node, mesh: Mesh): Node {
  const over = mesh.axes.map(({ name }) => name);
  const attrs = { mesh: mesh.text, split: splitKey(whole(fact.shape.length)) };
  const greatest = collectives.allReduce(b, fact, mesh, over, fact.dtype === 'bool' ? 'or' : 'max');
  return b.add('toWhole', [greatest], attrs) as Node;
}

function specAt(spec: TreeSpec, path: string, tensor: Tensor): Spec {
  if (typeof spec !== 'function') return spec;
  return spec(path.replace(/^\./, ''), tensor) ?? tensor.shape.map(() => null);
}

function partOf(x: Tensor, mesh: Mesh, split: Split): Tensor {
  const attrs = { mesh: mesh.text, split: splitKey(split) };
  return record([x], (b, [node]) => b.add('toPart', [node!], attrs) as Node);
}

function wholeOf(x: Tensor, mesh: Mesh, spec: Spec): Tensor {
  const split = namesOf('shardMap', mesh, spec);
  const problem = splitProblem(
    mesh,
    x.shape.map(() => 0),
    split,
  );
  if (problem !== undefined) {
    const what = `a result of shape [${x.shape.join(', ')}] is no part of a tensor that is split ${showSplit(split)}: ${problem}`;
    throw new TensorError('E_SHAPE', 'shardMap', what, 'one entry for each axis of the result');
  }
  const attrs = { mesh: mesh.text, split: splitKey(split) };
  return record([x], (b, [node]) => b.add('toWhole', [node!], attrs) as Node);
}

/**
 * Throws E_VALUE where results depend on numbers that are no argument: nothing would say which process they are of, and their gradients would
 * not be added up over the processes.
 */
function checkClosed(results: readonly unknown[], edges: readonly Node[]): void {
  const nodes = results.flatMap((one) => (one instanceof Tensor ? [nodeOf(one)] : []));
  const inside = new Set(edges);
  const stops = (node: Node): boolean => inside.has(node) || node.op === 'stopGradient';
  const outside = topological(nodes, stops).find((node) => node.op === 'parameter' && isInexact(node.dtype));
  if (outside === undefined) return;
  const problem = `the function reads a tensor that is no argument: ${showType(outside)}`;
  throw new TensorError('E_VALUE', 'shardMap', problem, 'an argument more, whose spec is null for each axis');
}

/** Names of axes of the mesh that a collective goes over. */
export type MeshAxes = string | readonly string[];

/**
 * The tensors of the processes along these axes of the mesh, combined element by element: their sum by default. For functions that are
 * written for one process: inside `shardMap`, or in programs whose tensors are not split. Throws E_AXIS where the mesh has no such axis.
 */
export function allReduce(x: Tensor, mesh: Mesh, over: MeshAxes, monoid: Monoid = 'sum'): Tensor {
  return joined('allReduce', x, (b, node) => collectives.allReduce(b, node, mesh, names(over), monoid));
}

/** The tensors of the processes along these axes, [d, ..], one behind the other: [n·d, ..]. */
export function allGather(x: Tensor, mesh: Mesh, over: MeshAxes): Tensor {
  return joined('allGather', x, (b, node) => collectives.allGather(b, node, mesh, names(over)));
}

/** Of the combined tensors of n processes, [n·d, ..], the part at this one's place: [d, ..]. */
export function reduceScatter(x: Tensor, mesh: Mesh, over: MeshAxes, monoid: Monoid = 'sum'): Tensor {
  return joined('reduceScatter', x, (b, node) =>
    collectives.reduceScatter(b, node, mesh, names(over), monoid),
  );
}

/** [n·d, ..] in n parts: part j of the process at place i becomes part i of the one at place j. */
export function allToAll(x: Tensor, mesh: Mesh, over: MeshAxes): Tensor {
  return joined('allToAll', x, (b, node) => collectives.allToAll(b, node, mesh, names(over)));
}

/** The tensor of the process at the place `root`, on all. */
export function broadcastRank(x: Tensor, mesh: Mesh, over: MeshAxes, root = 0): Tensor {
  return joined('broadcastRank', x, (b, node) => collectives.broadcastRank(b, node, mesh, names(over), root));
}

/** For each pair of places the tensor of the first at the second; zeros where nothing is sent to. */
export function permuteRanks(
  x: Tensor,
  mesh: Mesh,
  over: MeshAxes,
  pairs: readonly (readonly [from: number, to: number])[],
): Tensor {
  return joined('permuteRanks', x, (b, node) => collectives.permuteRanks(b, node, mesh, names(over), pairs));
}

/** The place of this process along these axes, from 0: i32, rank 0. */
export function rankIndex(mesh: Mesh, over: MeshAxes): Tensor {
  return record([], (b) => collectives.rankIndex(b, mesh, names(over)));
}

function names(over: MeshAxes): readonly string[] {
  return typeof over === 'string' ? [over] : over;
}

function joined(op: string, x: Tensor, make: (b: GraphBuilder, node: Node) => Node): Tensor {
  if (!aTensor.accepts(x)) aTensor.refuse(op, 'x', x);
  return record([x], (b, [node]) => make(b, node!));
}
