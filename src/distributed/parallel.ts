// How people split a model over processes, each in a few lines over `shard`. Data parallelism needs nothing of its
// own: where the batch is split and the parameters are whole, gradients are sums over the processes, and the compiler adds
// them up.

import { isWhole } from '../ir/mesh/split.ts';
import { flatten, unflatten } from '../tensor/tree.ts';
import { Tensor } from '../tensor/tensor.ts';
import { partOf } from '../tensor/values.ts';
import { specOf, type Mesh, type Spec } from './mesh.ts';
import { shard } from './shard.ts';

/** How the tensors of a tree are split: for the tensor at a path, such as `blocks[0].up.weight`, its spec; undefined for those that are whole. */
export type Plan = (path: string, tensor: Tensor) => Spec | undefined;

/**
 * The tree with its tensors held as a plan says. Tensors that the plan leaves out stay whole on every process, which have to
 * have the same values there. Throws what `shard` throws, with the path.
 */
export function shardTree<T>(tree: T, mesh: Mesh, plan: Plan): T {
  const { structure, leaves, paths } = flatten(tree, 'shardTree');
  const placed = leaves.map((leaf, i) => {
    if (!(leaf instanceof Tensor)) return leaf;
    const spec = plan(paths[i]!.replace(/^\./, ''), leaf);
    return spec === undefined ? leaf : shard(leaf, mesh, spec);
  });
  return unflatten(structure, placed) as T;
}

/**
 * Splits every tensor along one axis by this mesh axis, as FSDP and ZeRO-3 do with parameters, gradients and moments (Rajbhandari et al., 2020): its
 * longest axis that the processes divide, the first of equals. Whole stay tensors that no axis of fits, and those of fewer elements
 * than `least`, 1 by default.
 */
export function fullySharded(mesh: Mesh, axis: string, least = 1): Plan {
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
export function byName(specs: Readonly<Record<string, Spec>>): Plan {
  const entries = Object.entries(specs);
  return (path) => entries.find(([end]) => path === end || path.endsWith(`.${end}`))?.[1];
}

/** The first plan that says something of a tensor. */
export function firstOf(...plans: readonly Plan[]): Plan {
  return (path, tensor) => {
    for (const plan of plans) {
      const spec = plan(path, tensor);
      if (spec !== undefined) return spec;
    }
    return undefined;
  };
}

/** What `optimizer.init` gives. */
interface StateOf {
  readonly slots: readonly Readonly<Record<string, Tensor>>[];
}

/**
 * The state of an optimizer, whose moments are held as the parameters that they belong to: `shardState(optimizer.init(params), params)`.
 */
export function shardState<S extends StateOf>(state: S, params: unknown): S {
  const tensors = flatten(params, 'shardState').leaves.filter((leaf) => leaf instanceof Tensor);
  const slots = state.slots.map((of, i) => {
    const param = tensors[i];
    const part = param === undefined ? undefined : partOf(param);
    if (param === undefined || part === undefined || isWhole(part.split)) return of;
    const place = (slot: Tensor): Tensor =>
      slot.shape.join() === param.shape.join() ? shard(slot, part.mesh, specOf(part.split)) : slot;
    return Object.fromEntries(Object.entries(of).map(([name, slot]) => [name, place(slot)]));
  });
  return { ...state, slots };
}
