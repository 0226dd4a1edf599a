// Which layouts the values of a graph would have, from those that are known. Axes that rules walk together are one class: the batch is a
// class of all activations, the features of a layer are one of its weights and of what it computes. Where a known split asks for
// a class, all values of the class would be split so. Where two classes of one value are asked for by the same mesh axis, the
// class of more bytes has it: weights that are split for storage alone are gathered where they meet a batch that is split.
// Nothing is decided here: partition.ts weighs what follows from this against the bytes that it costs.

import { dims, nodeBytes, topological, type Graph, type Node } from '../ir/graph.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { isWhole, partsOf, type Split } from '../ir/mesh/split.ts';
import { sizeOf } from '../ir/shape.ts';
import type { AxisFactors, ShardingRule } from './rule.ts';

/** The split that each node would have; nodes that nothing asks to be split are left out. */
export function expectedSplits(
  mesh: Mesh,
  graph: Graph,
  known: readonly (readonly [node: Node, split: Split])[],
  ruleOf: (node: Node) => ShardingRule | undefined,
): ReadonlyMap<Node, Split> {
  const asked = known.filter(([, split]) => !isWhole(split));
  if (asked.length === 0) return new Map();
  const order = topological([...graph.outputs, ...(graph.parameters as readonly Node[])]);
  const classes = new AxisClasses();
  for (const node of order) {
    classes.add(node);
    const rule = ruleOf(node);
    if (rule !== undefined) classes.join(node, rule);
  }
  const wishes = classes.wishes(asked);
  // Values whose axes are all walked together, as a weight with its gradient and its moments, lie alike.
  const alike = new Map(asked.map(([node, split]) => [classes.key(node), split]));
  for (const node of order) if (!alike.has(classes.key(node))) classes.weigh(node);
  const found = new Map<Node, Split>();
  for (const node of order) {
    const split = alike.get(classes.key(node)) ?? splitOf(mesh, node, classes, wishes);
    if (split !== undefined) found.set(node, split);
  }
  for (const [node, split] of asked) found.set(node, split);
  return found;
}

/** What the classes of a node's axes ask for, heavier ones first. */
function splitOf(
  mesh: Mesh,
  node: Node,
  classes: AxisClasses,
  wishes: ReadonlyMap<number, readonly string[]>,
): Split | undefined {
  const shape = dims(node);
  const used = new Set<string>();
  const split: (readonly string[])[] = shape.map(() => []);
  const byWeight = [...shape.keys()]
    .map((axis) => ({ axis, of: classes.of(node, axis) }))
    .sort((a, b) => classes.weight(b.of) - classes.weight(a.of));
  for (const { axis, of } of byWeight) {
    const names = wishes.get(of);
    if (names === undefined || names.some((name) => used.has(name))) continue;
    if (shape[axis]! % partsOf(mesh, names) !== 0) continue;
    split[axis] = names;
    names.forEach((name) => used.add(name));
  }
  return isWhole(split) ? undefined : split;
}

/**
 * Axes of nodes that rules walk together (union-find). Hollow are axes along which values only repeat, or count, such as that of a number
 * spread over a shape: one such value may meet many that have nothing in common, so it joins none of them. Hollow axes that meet
 * are one class, which is as the first that it meets of another kind.
 */
class AxisClasses {
  readonly #first = new Map<Node, number>();
  readonly #parent: number[] = [];
  /** Bytes of the values that have an axis of a class, by root. */
  readonly #weights = new Map<number, number>();
  readonly #isHollow: boolean[] = [];
  readonly #meetings: (readonly [hollow: number, other: number])[] = [];
  #lent: Map<number, number> | undefined;

  add(node: Node): void {
    if (this.#first.has(node)) return;
    this.#first.set(node, this.#parent.length);
    node.shape.forEach(() => {
      this.#parent.push(this.#parent.length);
      this.#isHollow.push(node.op === 'constant' || node.op === 'iota');
    });
  }

  /** Axes that begin with the same factor are walked together. */
  join(node: Node, rule: ShardingRule): void {
    const solid = new Map<number, number>();
    const hollow = new Map<number, number>();
    for (const [i, axes] of rule.operands.entries()) {
      for (const [axis, factors] of axes.entries()) {
        const factor = leading(rule, factors);
        if (factor === undefined) continue;
        const place = this.#first.get(node.inputs[i]!)! + axis;
        const places = this.#isHollow[place]! ? hollow : solid;
        const other = places.get(factor);
        places.set(factor, other === undefined ? place : this.#union(other, place));
      }
    }
    for (const [axis, factors] of rule.result.entries()) {
      const factor = leading(rule, factors);
      if (factor === undefined) continue;
      const place = this.#first.get(node)! + axis;
      const met = solid.get(factor);
      this.#isHollow[place] = met === undefined;
      const other = met ?? hollow.get(factor);
      if (other !== undefined) this.#union(other, place);
    }
    for (const [factor, place] of hollow) {
      const met = solid.get(factor);
      if (met !== undefined) this.#meetings.push([place, met]);
    }
  }

  of(node: Node, axis: number): number {
    const root = this.#rootOf(this.#first.get(node)! + axis);
    const lender = this.#lenders().get(root);
    return lender === undefined ? root : this.#rootOf(lender);
  }

  #lenders(): ReadonlyMap<number, number> {
    if (this.#lent !== undefined) return this.#lent;
    const lent = new Map<number, number>();
    for (const [hollow, other] of this.#meetings) {
      const root = this.#rootOf(hollow);
      if (!lent.has(root)) lent.set(root, other);
    }
    return (this.#lent = lent);
  }

  #rootOf(place: number): number {
    let at = place;
    while (this.#parent[at] !== at) {
      this.#parent[at] = this.#parent[this.#parent[at]!]!;
      at = this.#parent[at]!;
    }
    return at;
  }

  /** Equal for values whose axes are of the same classes. */
  key(node: Node): string {
    return node.shape.map((_, axis) => this.of(node, axis)).join();
  }

  weight(root: number): number {
    return this.#weights.get(root) ?? 0;
  }

  /** A value whose layout is not known counts for the classes of its axes. */
  weigh(node: Node): void {
    const bytes = nodeBytes(node);
    for (const root of new Set(node.shape.map((_, axis) => this.of(node, axis))))
      this.#weights.set(root, this.weight(root) + bytes);
  }

  #union(a: number, b: number): number {
    const [x, y] = [this.#rootOf(a), this.#rootOf(b)];
    if (x === y) return x;
    this.#parent[y] = x;
    return x;
  }

  /** What known splits ask classes for; where they disagree, what the larger value asks. */
  wishes(asked: readonly (readonly [Node, Split])[]): ReadonlyMap<number, readonly string[]> {
    const found = new Map<number, readonly string[]>();
    const bySize = asked.toSorted(([a], [b]) => sizeOf(dims(b)) - sizeOf(dims(a)));
    for (const [node, split] of bySize) {
      for (const [axis, names] of split.entries()) {
        const root = this.of(node, axis);
        if (names.length > 0 && !found.has(root)) found.set(root, names);
      }
    }
    return found;
  }
}

/** The factor that mesh axes split first. */
function leading({ factors }: ShardingRule, axis: AxisFactors): number | undefined {
  return axis.find((factor) => factors[factor]!.size > 1);
}
