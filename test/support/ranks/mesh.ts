// Processes of a mesh in one: they run a graph node by node, all at once, and collectives take what all of them have. It
// is slow and plain, to compare with.

import { GraphBuilder, topological, type Graph, type Node } from '../../../src/ir/graph.ts';
import { evaluateNode } from '../../../src/ir/interpret/interpret.ts';
import { axesNamed, coordinatesOf, groupOf, parseMesh, type Mesh } from '../../../src/ir/mesh/mesh.ts';
import { localShape, partsOf, type Split } from '../../../src/ir/mesh/split.ts';
import { combining, facts, type Monoid } from '../../../src/ir/ops.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { emptyData, hostArray, type HostArray } from '../../../src/ir/value.ts';

const b = new GraphBuilder();
const like = ({ dtype, shape }: HostArray, index = 0): Node =>
  b.add('parameter', [], { index, name: `p${index}`, dtype, shape }) as Node;

function sliced(x: HostArray, axis: number, start: number, size: number): HostArray {
  const starts = x.shape.map((_, i) => (i === axis ? start : 0));
  const sizes = x.shape.map((whole, i) => (i === axis ? size : whole));
  const steps = x.shape.map(() => 1);
  const node = b.add('slice', [like(x)], { start: starts, size: sizes, step: steps }) as Node;
  return evaluateNode(node, [x]);
}

function joined(parts: readonly HostArray[], axis: number): HostArray {
  if (parts.length === 1) return parts[0]!;
  return evaluateNode(b.add('concat', parts.map(like), { axis }) as Node, parts);
}

function combined(parts: readonly HostArray[], monoid: Monoid): HostArray {
  return parts.reduce((x, y) =>
    evaluateNode(b.add(combining[monoid], [like(x, 0), like(y, 1)], {}) as Node, [x, y]),
  );
}

/** The place of a rank along these mesh axes, the first the slowest. */
function placeAlong(mesh: Mesh, names: readonly string[], rank: number): number {
  const at = coordinatesOf(mesh, rank);
  return names.reduce((place, name) => place * partsOf(mesh, [name]) + at.get(name)!, 0);
}

/** The part of a value that a rank has. */
export function partOf(mesh: Mesh, x: HostArray, split: Split, rank: number): HostArray {
  return split.reduce((part, names, axis) => {
    const size = x.shape[axis]! / partsOf(mesh, names);
    return names.length === 0 ? part : sliced(part, axis, placeAlong(mesh, names, rank) * size, size);
  }, x);
}

/** The value of which ranks have these parts; fails where ranks that have the same part differ in a bit. */
export function wholeOf(
  mesh: Mesh,
  shape: readonly number[],
  parts: readonly HostArray[],
  split: Split,
): HostArray {
  const [first] = parts as readonly [HostArray, ...HostArray[]];
  const { dtype } = first;
  const local = localShape(mesh, shape, split);
  const groups = new Map<string, HostArray>();
  const keyOf = (rank: number): string => split.map((names) => placeAlong(mesh, names, rank)).join();
  parts.forEach((part, rank) => {
    const key = keyOf(rank);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, part);
    else if (!known.data.every((value, i) => Object.is(value, part.data[i])))
      throw new Error(`rank ${rank} has another value than the ranks that hold the same part`);
  });
  const assemble = (axis: number, places: readonly number[]): HostArray => {
    if (axis === split.length) return groups.get(places.join())!;
    const count = partsOf(mesh, split[axis]!);
    const pieces = Array.from({ length: count }, (_, i) => assemble(axis + 1, [...places, i]));
    return joined(pieces, axis);
  };
  if (sizeOf(local) === 0) return { dtype, shape, data: emptyData(dtype, sizeOf(shape)) };
  return assemble(0, []);
}

/** The outputs of a graph on each rank, from the inputs of each rank. */
export function runOnMesh(graph: Graph, inputs: readonly (readonly HostArray[])[]): HostArray[][] {
  const values = inputs.map((own) => {
    const held = new Map<Node, HostArray>();
    graph.parameters.forEach((parameter, i) => held.set(parameter as Node, own[i]!));
    return held;
  });
  for (const node of topological(graph.outputs)) {
    if (values[0]!.has(node)) continue;
    const operands = values.map((held) => node.inputs.map((input) => held.get(input)!));
    const results =
      facts(node.op).class === 'collective' || node.op === 'rankIndex'
        ? collective(
            node,
            operands.map(([x]) => x),
            values.length,
          )
        : operands.map((own) => evaluateNode(node, own));
    results.forEach((result, rank) => values[rank]!.set(node, result));
  }
  return values.map((held) => graph.outputs.map((output) => held.get(output)!));
}

function collective(node: Node, operands: readonly (HostArray | undefined)[], size: number): HostArray[] {
  const attrs = node.attrs as { readonly mesh: string; readonly over: string };
  const mesh = parseMesh(attrs.mesh)!;
  if (mesh.size !== size) throw new Error(`${attrs.mesh} is a mesh of ${mesh.size}, not of ${size}`);
  return Array.from({ length: size }, (_, rank) => {
    const group = groupOf(mesh, axesNamed(mesh, attrs.over)!, rank);
    const place = group.indexOf(rank);
    const blocks = group.map((one) => operands[one]!);
    return taken(node, blocks, place);
  });
}

function taken(node: Node, blocks: readonly HostArray[], place: number): HostArray {
  const part = (x: HostArray, i: number): HostArray => {
    const size = x.shape[0]! / blocks.length;
    return sliced(x, 0, i * size, size);
  };
  switch (node.op) {
    case 'rankIndex':
      return hostArray('i32', [], [place]);
    case 'allReduce':
      return combined(blocks, node.attrs.monoid);
    case 'allGather':
      return joined(blocks, 0);
    case 'reduceScatter':
      return part(combined(blocks, node.attrs.monoid), place);
    case 'allToAll':
      return joined(
        blocks.map((block) => part(block, place)),
        0,
      );
    case 'permuteRanks': {
      const from = node.attrs.from[node.attrs.to.indexOf(place)];
      const [{ dtype, shape }] = blocks as readonly [HostArray];
      return from === undefined ? { dtype, shape, data: emptyData(dtype, sizeOf(shape)) } : blocks[from]!;
    }
    case 'broadcastRank':
      return blocks[node.attrs.root]!;
    default:
      throw new Error(`${node.op} is no collective`);
  }
}
