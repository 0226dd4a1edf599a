// Tensors that processes hold together. Each process has a part and knows the whole shape; compiled functions compute with
// them as with any tensor, and every process of the mesh makes the same calls.

import { collectiveDerivatives } from '../autograd/rules-collective.ts';
import { collectiveDerivative } from '../autograd/slots.ts';
import type { Node } from '../ir/graph.ts';
import { broadcastRank } from '../ir/collectives.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { splitKey, whole, type Split } from '../ir/mesh/split.ts';
import { partIn } from '../sharding/part.ts';
import { fill } from '../slot.ts';
import { aTensor } from '../tensor/expect.ts';
import { compile } from '../tensor/compile/compile.ts';
import * as parts from '../tensor/compile/parts.ts';
import { partPrograms } from '../tensor/compile/slots.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import { record } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { isTracing } from '../tensor/tracing.ts';
import { hasHistory, localPartOf, partOf, tensorOfPart } from '../tensor/values.ts';
import { specOf, splitOf, type Spec } from './mesh.ts';

fill([partPrograms, parts], [collectiveDerivative, collectiveDerivatives]);

/**
 * The tensor, held so by the processes of a mesh: `shard(w, mesh, [null, 'model'])` splits the second axis. Inside a compiled function
 * it says how a value is to be held, and so is its gradient. Outside, all processes call it, the values are those of rank 0, and each
 * keeps its part. Throws E_VALUE or E_SHAPE where the spec does not fit the mesh or the shape.
 */
export function shard(x: Tensor, mesh: Mesh, spec: Spec): Tensor {
  if (!aTensor.accepts(x)) aTensor.refuse('shard', 'x', x);
  const split = splitOf('shard', mesh, x.shape, spec);
  if (isTracing()) return marked(x, mesh, split);
  checkNoHistory(x);
  return placed(mesh, split, partOf(x) === undefined)(x);
}

/**
 * The whole tensor, on every process of its mesh; they all call it. A tensor that is not split is given back.
 */
export function gather(x: Tensor): Tensor {
  const part = partOf(x);
  if (part === undefined) return x;
  checkNoHistory(x);
  return placed(part.mesh, whole(x.shape.length), false)(x);
}

/** How a tensor is split; undefined where this process has all of it. */
export function layoutOf(x: Tensor): { readonly mesh: Mesh; readonly spec: Spec } | undefined {
  const part = partOf(x);
  return part && { mesh: part.mesh, spec: specOf(part.split) };
}

/**
 * A tensor of which each process brings its own part, as a loader of data that reads other rows on each process does: `fromPart(rows,
 * mesh, ['data', null])` has as many rows as all of them together. The values of `part` have to be on the host.
 */
export function fromPart(part: Tensor, mesh: Mesh, spec: Spec): Tensor {
  const sizes = spec.map((entry) => (entry === null ? [] : typeof entry === 'string' ? [entry] : entry));
  const shape = part.shape.map((size, axis) =>
    (sizes[axis] ?? []).reduce(
      (product, name) => product * (mesh.axes.find((one) => one.name === name)?.size ?? 1),
      size,
    ),
  );
  const split = splitOf('fromPart', mesh, shape, spec);
  checkNoHistory(part);
  return tensorOfPart(part, shape, partIn(mesh, split));
}

/** The part of a tensor that this process has, as a tensor of its own. */
export function localPart(x: Tensor): Tensor {
  if (partOf(x) !== undefined) checkNoHistory(x);
  return localPartOf(x);
}

/** What is laid out outside of a compiled function has no history: gradients would silently end here. */
function checkNoHistory(x: Tensor): void {
  if (hasHistory(x)) parts.noHistory();
}

function marked(x: Tensor, mesh: Mesh, split: Split): Tensor {
  const attrs = { mesh: mesh.text, split: splitKey(split) };
  return record([x], (b, [node]) => b.add('shard', [node!], attrs) as Node);
}

const known = new Map<string, (x: Tensor) => Tensor>();

/**
 * A compiled function that only lays a tensor out. Of one that every process has, the values of rank 0 count: processes whose
 * values differ would go on with parts that do not belong together.
 */
function placed(mesh: Mesh, split: Split, isEverywhere: boolean): (x: Tensor) => Tensor {
  const key = [mesh.text, splitKey(split), split.length, isEverywhere].join(';');
  const found = known.get(key);
  if (found !== undefined) return found;
  const compiled = compile((x: Tensor) => marked(isEverywhere ? ofFirst(x, mesh) : x, mesh, split));
  const place = (x: Tensor): Tensor => noGrad(() => compiled(x));
  known.set(key, place);
  return place;
}

/** The values of rank 0. */
function ofFirst(x: Tensor, mesh: Mesh): Tensor {
  const over = mesh.axes.map(({ name }) => name);
  const attrs = { mesh: mesh.text, split: splitKey(whole(x.shape.length)) };
  return record([x], (b, [node]) => {
    const own = b.add('toPart', [node!], attrs) as Node;
    return b.add('toWhole', [broadcastRank(b, own, mesh, over, 0)], attrs) as Node;
  });
}
