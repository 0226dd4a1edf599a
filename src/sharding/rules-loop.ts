// The sharding rule of loops. It follows from the rules of the ops in the body: axes of values that have to be split in
// the same way are one strand, and a strand that no op stands against is a factor of the loop. An op of the body that
// folds a strand away, as the gradient of a weight folds the examples, gives a part of a sum: what reads it has to be
// linear in it, and a result of the loop that is such a part is added up once, behind the loop.

import { TensorError } from '../errors.ts';
import { binary, broadcast, constant, fullLike, isZero, where } from '../ir/build.ts';
import { Parameters } from '../ir/control/parameters.ts';
import { dims, GraphBuilder, rewrite, topological, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import { isMarker } from '../ir/passes/drop-markers.ts';
import { sameShape } from '../ir/shape.ts';
import { graphOf, regionOf } from '../ir/text/region.ts';
import { unsplit } from './row.ts';
import type {
  ShardAssignment,
  AxisFactors,
  ShardFactor,
  ShardLinear,
  OwnRow,
  ShardPlace,
  ShardingRule,
} from './rule.ts';

/** The rules of the ops of a body. */
interface Rules {
  ruleOf(node: Node): ShardingRule | undefined;
  linearOf(node: Node): ShardLinear | undefined;
  localOf(node: Node, operands: readonly Node[], place: ShardPlace): Node;
}

/** Axes that are split together, in the body of a loop. */
interface Strand {
  /** Into how many parts at most: every part count divides it. */
  readonly size: number;
  /** Values that are parts of a sum where the strand is split. */
  readonly sums: ReadonlySet<Node>;
}

/** What is known of a body. */
interface Body {
  readonly graph: Graph;
  readonly strands: readonly Strand[];
  /** For each axis of a value the strand that it belongs to, by its number. */
  strandOf(node: Node, axis: number): number | undefined;
}

/** Sets of axes that grow together. */
class AxisSets {
  readonly #first = new Map<Node, number>();
  readonly #parent: number[] = [];
  readonly #size: number[] = [];
  readonly #stuck: boolean[] = [];

  #find(slot: number): number {
    let root = slot;
    while (this.#parent[root] !== root) root = this.#parent[root]!;
    this.#parent[slot] = root;
    return root;
  }

  /** The set of an axis. */
  of(node: Node, axis: number): number {
    let first = this.#first.get(node);
    if (first === undefined) {
      first = this.#parent.length;
      this.#first.set(node, first);
      for (const size of dims(node)) {
        this.#parent.push(this.#parent.length);
        this.#size.push(size);
        this.#stuck.push(false);
      }
    }
    return this.#find(first + axis);
  }

  join(a: number, b: number): void {
    const [root, other] = [this.#find(a), this.#find(b)];
    if (root === other) return;
    this.#parent[other] = root;
    this.narrow(root, this.#size[other]!);
    if (this.#stuck[other] === true) this.#stuck[root] = true;
  }

  /** Steps of so many others: a set is split into parts that divide both. */
  narrow(set: number, size: number): void {
    const root = this.#find(set);
    this.#size[root] = greatestDivisor(this.#size[root]!, size);
  }

  /** No axis of the set can be split. */
  stick(set: number): void {
    this.#stuck[this.#find(set)] = true;
  }

  /** Into how many parts at most; 1 where there is one part only. */
  parts(set: number): number {
    const root = this.#find(set);
    return this.#stuck[root] === true ? 1 : this.#size[root]!;
  }
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** Where a factor stands: an axis of an operand or of the result, and whether it is the major factor there. */
interface Spot {
  readonly node: Node;
  readonly axis: number;
  readonly leads: boolean;
}

/** The result and the operands of a node, with the factors of their axes. */
function valuesOf(node: Node, rule: ShardingRule): readonly (readonly [Node, readonly AxisFactors[]])[] {
  return [[node, rule.result], ...node.inputs.map((input, i) => [input, rule.operands[i]!] as const)];
}

/** For each factor where it stands. */
function spotsOf(node: Node, rule: ShardingRule): readonly (readonly Spot[])[] {
  const spots: Spot[][] = rule.factors.map(() => []);
  for (const [value, axes] of valuesOf(node, rule))
    axes.forEach((factors, axis) =>
      factors.forEach((factor, i) => spots[factor]!.push({ node: value, axis, leads: i === 0 })),
    );
  return spots;
}

/** The axes of a body joined as the rules of its ops, and the way that carries go, demand. */
function joined(graph: Graph, order: readonly Node[], carries: number, rules: Rules): AxisSets {
  const sets = new AxisSets();
  const stickAll = (node: Node): void => node.shape.forEach((_, axis) => sets.stick(sets.of(node, axis)));
  for (const node of order) {
    const rule = rules.ruleOf(node);
    if (rule === undefined) {
      if (node.op !== 'parameter' && node.op !== 'constant') [node, ...node.inputs].forEach(stickAll);
      continue;
    }
    spotsOf(node, rule).forEach((spots, factor) => {
      const { size, fold } = rule.factors[factor]!;
      const isSplit = spots.every(({ leads }) => leads) && (fold === undefined || fold === 'sum');
      const own = spots.flatMap(({ node: value, axis, leads }) => (leads ? [sets.of(value, axis)] : []));
      for (const set of own) {
        if (!isSplit) sets.stick(set);
        else sets.join(own[0]!, set);
        sets.narrow(set, size);
      }
    });
    for (const [value, axes] of valuesOf(node, rule))
      axes.forEach((factors, axis) => {
        if (factors.length === 0) sets.stick(sets.of(value, axis));
      });
  }
  for (let i = 0; i < carries; i++) {
    const [before, after] = [graph.parameters[i + 1] as Node, graph.outputs[i]!];
    before.shape.forEach((_, axis) => sets.join(sets.of(before, axis), sets.of(after, axis)));
  }
  // What nothing reads may lie in any way: it lies as a value of its shape does, so that both can be left where they are.
  const read = new Set(topological(graph.outputs));
  const parameters = graph.parameters as readonly Node[];
  for (const unread of parameters) {
    const like = parameters.find((other) => read.has(other) && sameShape(other.shape, unread.shape));
    if (read.has(unread) || like === undefined) continue;
    unread.shape.forEach((_, axis) => sets.join(sets.of(like, axis), sets.of(unread, axis)));
  }
  return sets;
}

/**
 * The values that are parts of a sum where a set of axes is split; undefined where an op would need the whole sum, or
 * has both a part of a sum and a split axis.
 */
function sumsOf(
  { parameters, outputs }: Graph,
  order: readonly Node[],
  carries: number,
  isIn: (node: Node, axis: number) => boolean,
  rules: Rules,
): ReadonlySet<Node> | undefined {
  const sums = new Set<Node>();
  const has = (node: Node): boolean => node.shape.some((_, axis) => isIn(node, axis));
  // An op may have an operand with the axes and not depend on its values, as a barrier on its event: then it folds nothing.
  const folds = (node: Node): boolean => {
    const rule = node.inputs.some(has) ? rules.ruleOf(node) : undefined;
    if (rule === undefined) return false;
    return spotsOf(node, rule).some(
      (spots, factor) =>
        rule.factors[factor]!.fold !== undefined && spots.some(({ node: value, axis }) => isIn(value, axis)),
    );
  };
  for (let before = -1; before !== sums.size;) {
    before = sums.size;
    for (const node of order) {
      const open = node.inputs.flatMap((input, i) => (sums.has(input) ? [i] : []));
      const isTouched = has(node) || node.inputs.some(has);
      if (open.length > 0) {
        const linear = rules.linearOf(node);
        const isLinear =
          linear !== undefined &&
          open.every((i) => linear.operands.includes(i)) &&
          (linear.kind === 'together' || open.length === 1);
        if (!isLinear || isTouched) return undefined;
        sums.add(node);
      } else if (!has(node) && folds(node)) sums.add(node);
    }
    outputs.slice(0, carries).forEach((output, i) => {
      if (sums.has(output)) sums.add(parameters[i + 1] as Node);
    });
  }
  return [...sums].some(has) ? undefined : sums;
}

/** What is written for one process has loops inside, and is in none: iterations would meet in an order that nobody chose. */
function refuseEdge({ op }: Node): never {
  const problem = 'shardMap cannot be called in the body of a loop';
  throw new TensorError('E_UNSUPPORTED', op, problem, 'shardMap around the loop');
}

function bodyOf(node: NodeOf<'iterate'>, rules: Rules): Body {
  const { body, carries, guard } = node.attrs;
  const marked = graphOf(body);
  // Derivatives are made by now.
  const graph = rewrite(marked, (each, inputs) => {
    if (each.op === 'toPart') refuseEdge(each);
    return isMarker(each) && each.op !== 'bounded' ? inputs[0] : undefined;
  });
  const order = topological([...graph.outputs, ...(graph.parameters as readonly Node[])]);
  const sets = joined(graph, order, carries, rules);
  const strands: Strand[] = [];
  const numbers = new Map<number, number>();
  for (const set of new Set(order.flatMap((value) => value.shape.map((_, axis) => sets.of(value, axis))))) {
    const size = sets.parts(set);
    if (size === 1) continue;
    const isIn = (value: Node, axis: number): boolean => sets.of(value, axis) === set;
    const isTwice = order.some((value) => value.shape.filter((_, axis) => isIn(value, axis)).length > 1);
    if (isTwice) continue;
    const sums = sumsOf(graph, order, carries, isIn, rules);
    if (sums === undefined || (guard >= 0 && sums.has(graph.outputs[guard]!))) continue;
    numbers.set(set, strands.length);
    strands.push({ size, sums });
  }
  return { graph, strands, strandOf: (value, axis) => numbers.get(sets.of(value, axis)) };
}

/** A strand is a factor where an operand of the loop or this result of it has it. */
interface LoopRule extends ShardingRule {
  /** The factor of each strand. */
  readonly factorOf: ReadonlyMap<number, number>;
}

function loopRule(node: NodeOf<'iterate'>, { graph, strands, strandOf }: Body): LoopRule {
  const { carries, stacked, result } = node.attrs;
  const strandsOf = (value: Node): (number | undefined)[] =>
    value.shape.map((_, axis) => strandOf(value, axis));
  const operands = node.inputs.map((_, i) => {
    const own = strandsOf(graph.parameters[i + 1] as Node);
    return i >= carries && i < carries + stacked ? [undefined, ...own] : own;
  });
  const output = graph.outputs[result]!;
  const results = result < carries ? strandsOf(output) : [undefined, ...strandsOf(output)];
  const given = new Set(results);
  const factors: ShardFactor[] = [];
  const factorOf = new Map<number, number>();
  strands.forEach(({ size, sums }, strand) => {
    if (!given.has(strand) && !operands.flat().includes(strand)) return;
    factorOf.set(strand, factors.length);
    // Other results do not depend on how the strand is split.
    const isFolded = !given.has(strand) && sums.has(output);
    factors.push(isFolded ? { size, fold: 'sum' } : { size });
  });
  const factorsOf = (list: readonly (number | undefined)[]): AxisFactors[] =>
    list.map((strand) => (strand === undefined ? unsplit : [factorOf.get(strand)!]));
  return { factors, operands: operands.map(factorsOf), result: factorsOf(results), factorOf };
}

/** A value where the part of the process is the first, and zeros on all others. */
function onFirst(b: GraphBuilder, value: Node, part: Node): Node {
  const isFirst = broadcast(b, binary(b, 'eq', part, constant(b, 0, 'i32')), dims(value));
  return where(b, isFirst, value, fullLike(b, value, 0));
}

function loopLocal(
  node: NodeOf<'iterate'>,
  operands: readonly Node[],
  place: ShardPlace,
  known: Body,
  rules: Rules,
): Node {
  const { graph, strands, strandOf } = known;
  const { carries, stacked } = node.attrs;
  const { factorOf } = loopRule(node, known);
  const isCut = (strand: number): boolean => {
    const factor = factorOf.get(strand);
    return factor !== undefined && place.parts(factor) > 1;
  };
  const cut = [...strands.keys()].filter(isCut);
  if (cut.length === 0) return place.b.copy(node as Node, operands);
  const b = new GraphBuilder();
  const parameters = new Parameters(b);
  const made = new Map<Node, Node>();
  for (const [i, parameter] of graph.parameters.entries()) {
    const operand = operands[i - 1];
    const shape = operand === undefined ? [] : dims(operand);
    const isStack = i > carries && i <= carries + stacked;
    const own = parameters.add(parameter.attrs.name, parameter.attrs.dtype, isStack ? shape.slice(1) : shape);
    made.set(parameter as Node, own);
  }
  // Which parts are this process's comes into the body from outside of it.
  const given = new Map<number, Node>();
  const partOf = (strand: number): Node => {
    const part = given.get(strand) ?? parameters.add(`part${strand}`, 'i32', []);
    given.set(strand, part);
    return part;
  };
  /** A value as a part of the sums of these strands. */
  const summed = (value: Node, own: Node, over: readonly number[]): Node =>
    over.reduce(
      (at, strand) => (strands[strand]!.sums.has(value) ? at : onFirst(b, at, partOf(strand))),
      own,
    );
  for (const each of topological(graph.outputs)) {
    if (made.has(each)) continue;
    // What is added to a part of a sum is added by one process.
    const linear = rules.linearOf(each);
    const open = cut.filter((strand) => each.inputs.some((input) => strands[strand]!.sums.has(input)));
    const inputs = each.inputs.map((input, i) => {
      const isAdded = linear?.kind === 'together' && linear.operands.includes(i);
      return isAdded ? summed(input, made.get(input)!, open) : made.get(input)!;
    });
    const rule = rules.ruleOf(each);
    if (rule === undefined) {
      made.set(each, b.copy(each, inputs));
      continue;
    }
    const strandsOf = spotsOf(each, rule).map((spots) => {
      const [spot] = spots;
      const strand = spot === undefined ? undefined : strandOf(spot.node, spot.axis);
      return spots.every(({ leads }) => leads) && strand !== undefined && isCut(strand) ? strand : undefined;
    });
    const assignment: ShardAssignment = strandsOf.map((strand) =>
      strand === undefined ? [] : place.assignment[factorOf.get(strand)!]!,
    );
    const inner: ShardPlace = {
      b,
      mesh: place.mesh,
      assignment,
      parts: (factor) =>
        strandsOf[factor] === undefined ? 1 : place.parts(factorOf.get(strandsOf[factor])!),
      part: (factor) => partOf(strandsOf[factor]!),
    };
    made.set(each, rules.localOf(each, inputs, inner));
  }
  const outputs = graph.outputs.map((output, i) => {
    const own = made.get(output)!;
    const carry = graph.parameters[i + 1] as Node;
    const open = i < carries ? cut.filter((strand) => strands[strand]!.sums.has(carry)) : [];
    return summed(output, own, open);
  });
  const first = operands.map((operand, i) => {
    if (i >= carries || isZero(node.inputs[i]!)) return operand;
    const carry = graph.parameters[i + 1] as Node;
    return cut.reduce(
      (at, strand) =>
        strands[strand]!.sums.has(carry) ? onFirst(place.b, at, place.part(factorOf.get(strand)!)) : at,
      operand,
    );
  });
  const parts = [...given.keys()].map((strand) => place.part(factorOf.get(strand)!));
  const body = regionOf({ parameters: parameters.list, outputs });
  return place.b.add('iterate', [...first, ...parts], { ...node.attrs, body }) as Node;
}

/** The row of loops, by the rules of the ops in their bodies. */
export function loopRow(rules: Rules): OwnRow<'iterate'> {
  // All results of a loop have one body.
  const known = new WeakMap<object, Map<string, Body>>();
  const body = (node: NodeOf<'iterate'>): Body => {
    const { carries, guard } = node.attrs;
    const key = `${carries},${guard}`;
    const found = known.get(node.attrs.body)?.get(key) ?? bodyOf(node, rules);
    known.set(node.attrs.body, new Map(known.get(node.attrs.body)).set(key, found));
    return found;
  };
  return {
    rule: (node) => loopRule(node, body(node)),
    local: (node, operands, place) => loopLocal(node, operands, place, body(node), rules),
  };
}
