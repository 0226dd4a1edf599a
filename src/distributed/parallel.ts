// How people split a model over processes, each in a few lines over `shard`. Data parallelism needs nothing of its
// own: where the batch is split and the parameters are whole, gradients are sums over the processes, and the compiler adds
// them up.

import { flatten, unflatten } from '../tensor/tree.ts';
import { Tensor } from '../tensor/tensor.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Spec } from './mesh.ts';
import { shard } from './shard.ts';

/** How the tensors of a tree are split: for the tensor at a path, such as `blocks[0].up.weight`, its spec; undefined for those that are whole. */
export type ShardPlan = (path: string, tensor: Tensor) => Spec | undefined;

/**
 * The tree with its tensors held as a plan says, with the values of rank 0; all processes call it. Tensors that the plan leaves out are
 * whole on every process. Throws what `shard` throws.
 */
export function shardTree<T>(tree: T, mesh: Mesh, plan: ShardPlan): T {
  const { structure, leaves, paths } = flatten(tree, 'shardTree');
  const placed = leaves.map((leaf, i) => {
    if (!(leaf instanceof Tensor)) return leaf;
    const spec = plan(paths[i]!.replace(/^\./, ''), leaf);
    const placed = shard(leaf, mesh, spec ?? leaf.shape.map(() => null));
    return leaf.requiresGrad ? placed.requiresGrad_() : placed;
  });
  return unflatten(structure, placed) as T;
}

/**
 * Splits every tensor along one axis by this mesh axis, as FSDP and ZeRO-3 do with parameters, gradients and moments (Rajbhandari et al., 2020): its
 * longest axis that the processes divide, the first of equals. Whole stay tensors that no axis of fits, and those of fewer elements
 * than `least`, 1 by default.
 */
export function fullySharded(mesh: Mesh, axis: string, least = 1): ShardPlan {
  const count = mesh.axes.find(({ name }) => name === axis)?.size ?? 1;
  return (_, { shape, size }) => {
    if (size < least) return undefined;
    const fits = shape.map((length) => (length % count === 0 ? length : 0));
    const longest = Math.max(0, ...fits);
    if (longest === 0) return undefined;
    const at = fits.indexOf(longest);
    return shape.map((_length, i) => (i === at ? axis : null));
  };
}

/** Splits the tensors whose path ends as a key says, whatever stands before it: `{ 'up.weight': ['model', null] }`. */
export function byName(specs: Readonly<Record<string, Spec>>): ShardPlan {
  const entries = Object.entries(specs);
  return (path) => entries.find(([end]) => path === end || path.endsWith(`.${end}`))?.[1];
}

/** The first plan that says something of a tensor. */
export function firstOf(...plans: readonly ShardPlan[]): ShardPlan {
  return (path, tensor) => {
    for (const plan of plans) {
      const spec = plan(path, tensor);
      if (spec !== undefined) return spec;
    }
    return undefined;
  };
}

/** The plan of an optimizer's state, whose moments are held as a plan says of the parameters that they belong to. */
export function statePlan(plan: ShardPlan, params: unknown): ShardPlan {
  const { leaves, paths } = flatten(params, 'statePlan');
  const tensors = leaves.flatMap((leaf, i) =>
    leaf instanceof Tensor ? [{ path: paths[i]!.replace(/^\./, ''), tensor: leaf }] : [],
  );
  return (path, slot) => {
    const param = tensors[Number(/^slots\[(\d+)\]/.exec(path)?.[1] ?? -1)];
    const isAlike = param !== undefined && param.tensor.shape.join() === slot.shape.join();
    return isAlike ? plan(param.path, param.tensor) : undefined;
  };
}
