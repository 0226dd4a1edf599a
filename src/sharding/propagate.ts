// Which layouts the values of a graph would have, from those that are known. Axes that rules walk together are one class: the batch is a
// class of all activations, the features of a layer are one of its weights and of what it computes. Where a known split asks for
// a class, all values of the class would be split so. Where two classes of one value are asked for by the same mesh axis, the
// class of more bytes has it: weights that are split for storage alone are gathered where they meet a batch that is split.
// Nothing is decided here: partition.ts weighs what follows from this against the bytes that it costs.

import { dtypeBytes } from '../ir/dtype.ts';
import { dims, topological, type Graph, type Node } from '../ir/graph.ts';
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

/** Axes of nodes that rules walk together (union-find). */
class AxisClasses {
  readonly #first = new Map<Node, number>();
  readonly #parent: number[] = [];
  /** Bytes of the values that have an axis of a class; of roots. */
  readonly #weights: number[] = [];

  add(node: Node): void {
    if (this.#first.has(node)) return;
    this.#first.set(node, this.#parent.length);
    const bytes = sizeOf(dims(node)) * dtypeBytes(node.dtype);
    node.shape.forEach(() => {
      this.#parent.push(this.#parent.length);
      this.#weights.push(bytes);
    });
  }

  of(node: Node, axis: number): number {
    let at = this.#first.get(node)! + axis;
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
    return this.#weights[root]!;
  }

  /** Axes that begin with the same factor are walked together. */
  join(node: Node, rule: ShardingRule): void {
    const places = new Map<number, number>();
    const values = [node, ...node.inputs];
    for (const [i, axes] of [rule.result, ...rule.operands].entries()) {
      for (const [axis, factors] of axes.entries()) {
        const factor = leading(rule, factors);
        if (factor === undefined) continue;
        const place = this.of(values[i]!, axis);
        const other = places.get(factor);
        places.set(factor, other === undefined ? place : this.#union(other, place));
      }
    }
  }

  #union(a: number, b: number): number {
    let [x, y] = [a, b];
    while (this.#parent[x] !== x) x = this.#parent[x]!;
    while (this.#parent[y] !== y) y = this.#parent[y]!;
    if (x === y) return x;
    this.#parent[y] = x;
    this.#weights[x]! += this.#weights[y]!;
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
