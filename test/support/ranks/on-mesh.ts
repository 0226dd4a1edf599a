// What a graph of one process means, where all processes of a mesh run it: one graph over the values of all of them,
// stacked along a leading axis of the mesh's size, process by process. What each process computes by itself is batched along it
// (src/autograd/vmap/vmap.ts), and a collective is a few ordinary primitives. This is how programs over several processes are checked
// without any, on every device.

import { TensorError } from '../../../src/errors.ts';
import { broadcast, fullLike, permute, reduce, reshape, slice } from '../../../src/ir/build.ts';
import {
  collectiveOf,
  dims,
  GraphBuilder,
  type CollectiveNode,
  type Graph,
  type Node,
  type NodeOf,
} from '../../../src/ir/graph.ts';
import { axesNamed, groupSize, type Mesh } from '../../../src/ir/mesh/mesh.ts';
import type { FixedShape } from '../../../src/ir/shape.ts';
import { lead, moveAxis, type Batch, type Together } from '../../../src/autograd/vmap/rule.ts';
import { batched } from '../../../src/autograd/vmap/vmap.ts';

/**
 * The graph of all processes: each parameter and each output has a leading axis of the mesh's size, with the value of
 * each process. Throws E_VALUE where the graph is one over another mesh.
 */
export function simulate(graph: Graph, mesh: Mesh): Graph {
  const b = new GraphBuilder();
  const tracers = new Map<Node, Node>();
  const parameters = graph.parameters.map((one) => {
    const shape = [mesh.size, ...dims(one as Node)];
    const all = b.add('parameter', [], { ...one.attrs, shape });
    tracers.set(one as Node, all as Node);
    return all;
  });
  const batch: Batch = { b, size: mesh.size };
  const found = batched(b, graph.outputs, tracers, mesh.size, undefined, processesOf(mesh));
  const outputs = graph.outputs.map((one, i) => {
    const all = found[i];
    return lead(batch, { node: all ?? one, isMapped: all !== undefined });
  });
  return { parameters, outputs };
}

/** What the processes of a mesh do together, as operations on a stack of their values. */
function processesOf(mesh: Mesh): Together {
  return {
    key: mesh.text,
    onAll: (batch, node, [x]) => {
      if (node.op === 'rankIndex') return new Groups(mesh, node).places(batch.b);
      const of = collectiveOf(node);
      if (of === undefined) return undefined;
      const groups = new Groups(mesh, of);
      return groups.apart(batch.b, onGroups(batch.b, of, groups.together(batch.b, lead(batch, x!))));
    },
  };
}

/** A stack of processes as groups of processes, [groups, places in a group, ..], and the other way round. */
class Groups {
  readonly #mesh: Mesh;
  /** The axes of the mesh, those of a group behind all others, in its order. */
  readonly #order: readonly number[];
  readonly #count: number;
  readonly #places: number;

  constructor(mesh: Mesh, { op, attrs }: CollectiveNode | NodeOf<'rankIndex'>) {
    const over = attrs.mesh === mesh.text ? axesNamed(mesh, attrs.over) : undefined;
    if (over === undefined)
      throw new TensorError(
        'E_VALUE',
        op,
        `is of the mesh ${attrs.mesh}: the processes stand on ${mesh.text}`,
      );
    const others = mesh.axes.filter((axis) => !over.includes(axis));
    this.#mesh = mesh;
    this.#order = [...others, ...over].map((axis) => mesh.axes.indexOf(axis));
    this.#places = groupSize(over);
    this.#count = mesh.size / this.#places;
  }

  together(b: GraphBuilder, x: Node): Node {
    const [, ...own] = dims(x);
    const grid = reshape(b, x, [...this.#mesh.axes.map(({ size }) => size), ...own]);
    const behind = own.map((_, i) => this.#order.length + i);
    return reshape(b, permute(b, grid, [...this.#order, ...behind]), [this.#count, this.#places, ...own]);
  }

  apart(b: GraphBuilder, x: Node): Node {
    const [, , ...own] = dims(x);
    const sizes = this.#order.map((axis) => this.#mesh.axes[axis]!.size);
    const grid = reshape(b, x, [...sizes, ...own]);
    const back = this.#order.map((_, axis) => this.#order.indexOf(axis));
    const behind = own.map((_, i) => this.#order.length + i);
    return reshape(b, permute(b, grid, [...back, ...behind]), [this.#mesh.size, ...own]);
  }

  /** Which place of its group each process has. */
  places(b: GraphBuilder): Node {
    const shape = [this.#count, this.#places];
    return this.apart(b, b.add('iota', [], { shape, axis: 1, dtype: 'i32' }) as Node);
  }
}

/** A collective of stacks of groups. */
function onGroups(b: GraphBuilder, node: CollectiveNode, x: Node): Node {
  const [groups, places, ...own] = dims(x) as [number, number, ...number[]];
  const [first = 1, ...rest] = own;
  /** The same value at all places. */
  const everywhere = (value: Node, shape: FixedShape): Node =>
    broadcast(b, reshape(b, value, [groups, 1, ...shape]), [groups, places, ...shape]);
  const at = (place: number): Node => slice(b, x, [0, place, ...own.map(() => 0)], [groups, 1, ...own]);
  switch (node.op) {
    case 'allReduce':
      return everywhere(reduce(b, node.attrs.monoid, x, [1]), own);
    case 'allGather':
      return everywhere(x, [places * first, ...rest]);
    case 'reduceScatter':
      return reshape(b, reduce(b, node.attrs.monoid, x, [1]), [groups, places, first / places, ...rest]);
    case 'allToAll': {
      const parts = reshape(b, x, [groups, places, places, first / places, ...rest]);
      return reshape(b, moveAxis(b, parts, 1, 2), [groups, places, ...own]);
    }
    case 'permuteRanks': {
      const { from, to } = node.attrs;
      const taken = Array.from({ length: places }, (_, place) => {
        const pair = to.indexOf(place);
        return pair < 0 ? fullLike(b, at(0), 0) : at(from[pair]!);
      });
      return b.add('concat', taken, { axis: 1 }) as Node;
    }
    case 'broadcastRank':
      return everywhere(at(node.attrs.root), own);
  }
}
