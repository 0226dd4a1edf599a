// Constructors of collectives (typing/collective.ts). A group along no axis of the mesh is one process alone, of which a
// collective asks nothing: it gives its input back.

import { constant } from './build.ts';
import type { GraphBuilder, Node } from './graph.ts';
import type { Mesh } from './mesh/mesh.ts';
import type { Monoid } from './ops.ts';
import { meshRules } from './typing/collective.ts';
import { meshTypes } from './typing/slots.ts';

meshTypes.fill(meshRules);

/** Axes of a mesh, by name: the group of a process goes along them. */
type Over = readonly string[];

/** The values of the group, combined element by element. */
export function allReduce(b: GraphBuilder, x: Node, mesh: Mesh, over: Over, monoid: Monoid): Node {
  return over.length === 0 ? x : (b.add('allReduce', [x], { ...group(mesh, over), monoid }) as Node);
}

/** [d, ..] → [n·d, ..]: the values of the group, one behind the other. */
export function allGather(b: GraphBuilder, x: Node, mesh: Mesh, over: Over): Node {
  return over.length === 0 ? x : (b.add('allGather', [x], group(mesh, over)) as Node);
}

/** [n·d, ..] → [d, ..]: the part at this process's place of all values, combined element by element. */
export function reduceScatter(b: GraphBuilder, x: Node, mesh: Mesh, over: Over, monoid: Monoid): Node {
  return over.length === 0 ? x : (b.add('reduceScatter', [x], { ...group(mesh, over), monoid }) as Node);
}

/** [n·d, ..] in n parts: part j at place i becomes part i at place j. */
export function allToAll(b: GraphBuilder, x: Node, mesh: Mesh, over: Over): Node {
  return over.length === 0 ? x : (b.add('allToAll', [x], group(mesh, over)) as Node);
}

/** For each pair of places the first one's value at the second; zeros at places that nothing goes to. */
export function permuteRanks(
  b: GraphBuilder,
  x: Node,
  mesh: Mesh,
  over: Over,
  pairs: readonly (readonly [from: number, to: number])[],
): Node {
  if (over.length === 0) return x;
  const [from, to] = [pairs.map((pair) => pair[0]), pairs.map((pair) => pair[1])];
  return b.add('permuteRanks', [x], { ...group(mesh, over), from, to }) as Node;
}

/** The value at the place `root`. */
export function broadcastRank(b: GraphBuilder, x: Node, mesh: Mesh, over: Over, root: number): Node {
  return over.length === 0 ? x : (b.add('broadcastRank', [x], { ...group(mesh, over), root }) as Node);
}

/** Which place of its group this process has: i32, rank 0; 0 along no axes. */
export function rankIndex(b: GraphBuilder, mesh: Mesh, over: Over): Node {
  return over.length === 0 ? constant(b, 0, 'i32') : (b.add('rankIndex', [], group(mesh, over)) as Node);
}

function group({ text }: Mesh, over: Over): { readonly mesh: string; readonly over: string } {
  return { mesh: text, over: over.join() };
}
