// From a program over whole tensors to the program of one process of a mesh. Each node gets a layout, in the order of the graph: of
// the ways in which the rule of its op can be split, the one whose changes of layout and whose arithmetic take the least
// modelled time. Operands that lie otherwise are moved by collectives. Gradients need nothing of their own: the graph has them
// already, as ordinary nodes. After GSPMD (Xu et al., 2021) and the DTensor strategies of PyTorch.

import { CompilerBug, TensorError } from '../errors.ts';
import {
  countUses,
  dims,
  GraphBuilder,
  nodeBytes,
  topological,
  type Graph,
  type Node,
  type NodeOf,
} from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { isCollective, isElementwise, isView } from '../ir/ops.ts';
import { onBehalf } from '../ir/origin/origin.ts';
import { sizeOf } from '../ir/shape.ts';
import { extended, foldedBy, splitBy, unassigned } from './assign.ts';
import {
  localShape,
  partsOf,
  sameSplit,
  showSplit,
  splitOfKey,
  whole,
  type Split,
} from '../ir/mesh/split.ts';
import { rankIndex } from '../ir/collectives.ts';
import { bucketCollectives, bucketedUses, isOfWeights, type NodeUse } from './buckets.ts';
import type { ShardLayout, ShardPending } from './layout.ts';
import { meetingBehind, meetingsOf } from './meetings.ts';
import { inFrontLayout, layoutAfter, moved, movesBetween, plannedMove, type PlannedMove } from './reshard.ts';
import { expectedSplits } from './propagate.ts';
import { linearOf, localOf, ruleOf } from './rules.ts';
import type { ShardAssignment, ShardPlace, ShardingRule } from './rule.ts';
import type { CollectiveUse } from './use.ts';
import { timeOfMoves, timeOfNode } from './time.ts';

/** How the values that a program gets and gives are laid out. */
export interface Layouts {
  /** By parameter; left out where every process has the whole. */
  readonly inputs: readonly (Split | undefined)[];
  /** By output; left out where the program may choose. */
  readonly outputs: readonly (Split | undefined)[];
}

/** The program of one process. */
export interface Partitioned {
  readonly graph: Graph;
  /** The same with each collective by itself, as it was found to be needed. */
  readonly apart: Graph;
  /** How each output is laid out. */
  readonly outputs: readonly Split[];
  readonly collectives: readonly CollectiveUse[];
  /** How the values of the graph are laid out, but for those that ops take apart and those that `shardMap` has written. */
  readonly layouts: ReadonlyMap<Node, ShardLayout>;
  /** Which of `collectives` a node of the graph is, or a loop has. */
  readonly useOf: ReadonlyMap<Node, number>;
}

/** A value on this process, in one of the layouts that it was brought into. */
interface Version {
  readonly node: Node;
  readonly layout: ShardLayout;
}

/** How a value gets to a split. */
type Way =
  | { readonly version: Version; readonly moves: readonly PlannedMove[] }
  /** Its op is applied once more, split so. */
  | { readonly assignment: ShardAssignment };

/** Ops behind one another that are applied once more rather than sent. */
const mostAgain = 4;

export function partition(graph: Graph, mesh: Mesh, layouts: Layouts): Partitioned {
  return new Partitioning(graph, mesh, layouts).run();
}

class Partitioning {
  readonly #graph: Graph;
  readonly #mesh: Mesh;
  readonly #layouts: Layouts;
  readonly #b = new GraphBuilder();
  readonly #versions = new Map<Node, Version[]>();
  readonly #expected: ReadonlyMap<Node, Split>;
  readonly #uses: ReadonlyMap<Node, number>;
  readonly #collectives: NodeUse[] = [];
  /** Collectives that moves have made: axes of one process lead to the same ones again. */
  readonly #met = new Set<Node>();
  /** By node of the graph that is made. */
  readonly #madeLayouts = new Map<Node, ShardLayout>();
  readonly #rules = new Map<Node, ShardingRule | undefined>();
  /** What is written for one process (`toPart`): each process computes it from its parts as it stands. */
  readonly #ofParts = new Set<Node>();
  /** Loops among it whose collectives are known. */
  readonly #loops = new Set<string>();

  constructor(graph: Graph, mesh: Mesh, layouts: Layouts) {
    this.#graph = graph;
    this.#mesh = mesh;
    this.#layouts = layouts;
    this.#uses = countUses(graph);
    const known: (readonly [Node, Split])[] = [];
    for (const node of topological(graph.outputs)) {
      if (node.op === 'shard' || node.op === 'toWhole') known.push([node, splitNamed(node)]);
      if (node.op === 'toPart') known.unshift([node.inputs[0]!, splitNamed(node)]);
      if (isOfParts(node, this.#ofParts)) this.#ofParts.add(node);
    }
    graph.outputs.forEach((node, i) => {
      const split = layouts.outputs[i];
      if (split !== undefined) known.push([node, split]);
    });
    graph.parameters.forEach((node, i) => {
      const split = layouts.inputs[i];
      if (split !== undefined) known.push([node as Node, split]);
    });
    this.#expected = expectedSplits(mesh, graph, known, (node) => this.#ruleOf(node));
  }

  run(): Partitioned {
    const { parameters, outputs } = this.#graph;
    const locals = parameters.map((node, i) =>
      onBehalf('rewrite', node as Node, () => this.#parameter(node, this.#layouts.inputs[i])),
    );
    for (const node of topological(outputs))
      if (!this.#versions.has(node)) onBehalf('rewrite', node, () => this.#place(node));
    const results = outputs.map((node, i) => {
      if (this.#ofParts.has(node)) refuseParts(node);
      const { layout } = this.#versions.get(node)![0]!;
      const split = this.#layouts.outputs[i] ?? layout.split;
      const made = onBehalf('rewrite', node, () => this.#in(node, split, 'the result is laid out so'));
      return { node: made, split };
    });
    const made = { parameters: locals, outputs: results.map(({ node }) => node) };
    const bucketed = bucketCollectives(made);
    // A value that was brought into a layout may be computed again in another one: then nothing needs the first.
    const needed = new Set(
      topological([...bucketed.graph.parameters, ...bucketed.graph.outputs] as readonly Node[]),
    );
    const uses = bucketedUses(this.#collectives, bucketed).filter(({ node }) => needed.has(node));
    return {
      graph: bucketed.graph,
      apart: made,
      outputs: results.map(({ split }) => split),
      collectives: uses.map(({ use }) => use),
      layouts: new Map(
        [...this.#madeLayouts]
          .map(([node, layout]) => [bucketed.made.get(node) ?? node, layout] as const)
          .filter(([node]) => needed.has(node)),
      ),
      useOf: new Map(uses.map(({ node }, i) => [node, i])),
    };
  }

  #parameter(node: NodeOf<'parameter'>, split: Split = whole(node.shape.length)): NodeOf<'parameter'> {
    const shape = localShape(this.#mesh, dims(node), split);
    const local = this.#b.add('parameter', [], { ...node.attrs, shape });
    this.#keep(node as Node, local as Node, { split, pending: undefined });
    return local;
  }

  #ruleOf(node: Node): ShardingRule | undefined {
    if (this.#ofParts.has(node)) return undefined;
    if (!this.#rules.has(node)) this.#rules.set(node, ruleOf(node));
    return this.#rules.get(node);
  }

  #keep(node: Node, local: Node, layout: ShardLayout): void {
    if (!this.#ofParts.has(node)) this.#note(local, layout);
    const versions = this.#versions.get(node) ?? [];
    this.#versions.set(node, [...versions, { node: local, layout }]);
  }

  /** The first layout of a node counts: others come from axes of the mesh with one process. */
  #note(local: Node, layout: ShardLayout): void {
    if (!this.#madeLayouts.has(local)) this.#madeLayouts.set(local, layout);
  }

  /** Lays one node out, and records what this process does for it. */
  #place(node: Node): void {
    if (node.op === 'shard') {
      const split = splitNamed(node);
      const value = this.#in(node.inputs[0]!, split, 'a shard says so');
      return this.#keep(node, value, { split, pending: undefined });
    }
    if (node.op === 'toWhole' || this.#ofParts.has(node)) return this.#placeOfParts(node);
    const rule = this.#ruleOf(node);
    if (rule === undefined) {
      const seeds = node.inputs.map((input) =>
        this.#in(input, whole(input.shape.length), `seed of ${node.op}`),
      );
      const layout = { split: whole(node.shape.length), pending: undefined };
      return this.#keep(node, this.#b.copy(node, seeds), layout);
    }
    const carried = this.#carried(node);
    if (node.op === 'barrier' && carried === undefined) return this.#placeBarrier(node);
    const choice = carried ?? this.#choose(node, rule);
    const { assignment } = choice;
    const why = `operand of ${node.op} ${showType(node)}`;
    const local = this.#apply(node, assignment, (input, own, i) =>
      carried?.operands.includes(i) === true
        ? this.#versions.get(input)![0]!.node
        : this.#in(input, own, `${why}, place ${i}`),
    );
    const split = splitBy(assignment, rule.result);
    let [value, pending] = [local, carried?.pending];
    const folds = foldedBy(rule, assignment);
    for (const [i, { over, monoid }] of folds.entries()) {
      if (monoid === 'sum' && pending === undefined) {
        pending = { over, monoid };
      } else if (monoid === 'sum' && pending?.monoid === 'sum') {
        pending = { over: [...pending.over, ...over], monoid };
      } else {
        const move = { kind: 'allReduce', over, monoid } as const;
        const left = folds.slice(i).flatMap((fold) => (fold.monoid === monoid ? fold.over : []));
        value = this.#move(
          { node: value, layout: { split, pending: { over: left, monoid } } },
          [plannedMove(this.#mesh, node, split, move)],
          `${node.op} ${showType(node)}`,
        );
      }
    }
    this.#keep(node, value, { split, pending });
  }

  /**
   * A barrier is there so that what follows it is computed again instead of being kept. So it begins with the layout that takes the least
   * memory: a weight that processes share is gathered again, too. What it waits for is not read, so any layout of it will do. Such a
   * weight waits for itself alone, as its gather has a time of its own (buckets.ts).
   */
  #placeBarrier(node: Node): void {
    const [x, event] = node.inputs as readonly [Node, Node];
    const versions = this.#versions.get(x)!.filter(({ layout }) => layout.pending === undefined);
    const [least] = versions.toSorted((a, b) => nodeBytes(a.node) - nodeBytes(b.node));
    const { split } = (least ?? this.#versions.get(x)![0]!).layout;
    const value = least?.node ?? this.#in(x, split, 'operand of barrier');
    const isShared = isOfWeights(value) && nodeBytes(value) < nodeBytes(x);
    const waitedFor = isShared ? value : this.#versions.get(event)![0]!.node;
    const local = this.#b.add('barrier', [value, waitedFor], {}) as Node;
    this.#keep(node, local, { split, pending: undefined });
  }

  /** What is written for one process, and the value that its results are parts of. */
  #placeOfParts(node: Node): void {
    const none = { split: whole(node.shape.length), pending: undefined };
    const why = `operand of ${node.op} ${showType(node)} in shardMap`;
    if (node.op === 'toPart' && this.#ofParts.has(node.inputs[0]!)) refuseNested(node);
    if (node.op === 'toPart')
      return this.#keep(node, this.#in(node.inputs[0]!, splitNamed(node), 'shardMap takes it so'), none);
    // Values that do not come from an argument of shardMap, such as constants, are the same on all processes.
    const operands = node.inputs.map((input) => this.#in(input, whole(input.shape.length), why));
    if (node.op === 'toWhole')
      this.#keep(node, operands[0]!, { split: splitNamed(node), pending: undefined });
    else {
      const local = this.#b.copy(node, operands);
      this.#keep(node, local, none);
      for (const use of meetingsOf(node, this.#loops, 'written in shardMap'))
        this.#collectives.push({ node: local, use });
    }
  }

  /**
   * Where an operand is a sum that the processes have yet to add up, and the op is linear in it: the op on what each has, so that
   * fewer or smaller sums are added up, later. Not where something else reads the operand, which would then be added up twice.
   */
  #carried(node: Node):
    | {
        readonly assignment: ShardAssignment;
        readonly pending: ShardPending;
        readonly operands: readonly number[];
      }
    | undefined {
    const linear = linearOf(node);
    if (linear === undefined) return undefined;
    const pendings = node.inputs.map((input) => this.#onlyPending(input));
    const open = linear.operands.filter((i) => pendings[i] !== undefined);
    const [first] = open;
    if (first === undefined) return undefined;
    const isAll = linear.kind === 'together' ? open.length === linear.operands.length : open.length === 1;
    const pending = pendings[first]!;
    const isSame = open.every((i) => pendings[i]!.over.join() === pending.over.join());
    const isGrowing = nodeBytes(node) > nodeBytes(node.inputs[first]!);
    if (!isAll || !isSame || isGrowing) return undefined;
    const rule = this.#ruleOf(node)!;
    const wishes = open.map(
      (i) => [rule.operands[i]!, this.#versions.get(node.inputs[i]!)![0]!.layout.split] as const,
    );
    const assignment = extended(this.#mesh, rule, unassigned(rule), wishes);
    const fits = open.every((i) =>
      sameSplit(
        splitBy(assignment, rule.operands[i]!),
        this.#versions.get(node.inputs[i]!)![0]!.layout.split,
      ),
    );
    // What is not carried must be the same on the processes whose sums are open.
    const isFree = !assignment.some((axes) => axes.some((name) => pending.over.includes(name)));
    return fits && isFree ? { assignment, pending, operands: open } : undefined;
  }

  #onlyPending(input: Node): ShardPending | undefined {
    if (this.#uses.get(input) !== 1) return undefined;
    const versions = this.#versions.get(input)!;
    const pending = versions[0]!.layout.pending;
    return versions.length === 1 && pending?.monoid === 'sum' ? pending : undefined;
  }

  /** The way to split an op that takes the least time. */
  #choose(node: Node, rule: ShardingRule): { readonly assignment: ShardAssignment } {
    let best: { readonly assignment: ShardAssignment; readonly time: number } | undefined;
    for (const assignment of this.#candidates(node, rule)) {
      const time = this.#timeOf(node, rule, assignment);
      if (best === undefined || time < best.time) best = { assignment, time };
    }
    return best!;
  }

  #candidates(node: Node, rule: ShardingRule): ShardAssignment[] {
    const none = unassigned(rule);
    const expected = this.#expected.get(node);
    const result = expected === undefined ? [] : [[rule.result, expected] as const];
    const operands = node.inputs
      .map((input, i) => {
        const split = this.#expected.get(input) ?? this.#versions.get(input)![0]!.layout.split;
        const own = this.#versions.get(input)![0]!.layout.split;
        return {
          bytes: sizeOf(dims(input)),
          wishes: [own, split].map((one) => [rule.operands[i]!, one] as const),
        };
      })
      .sort((a, b) => b.bytes - a.bytes)
      .map(({ wishes }) => wishes);
    const all = operands.flat();
    const asked = [
      [...result, ...all],
      [...all, ...result],
      ...operands.map((first) => [...first, ...result, ...all]),
      ...operands,
      result,
    ];
    const made = asked.map((wishes) => extended(this.#mesh, rule, none, wishes));
    const keys = new Set<string>();
    return [...made, none].filter((assignment) => {
      const key = assignment.map((axes) => axes.join()).join('|');
      return !keys.has(key) && keys.add(key);
    });
  }

  /** Modelled time of an op in this way: its arithmetic, the moves of its operands, and those of its result to where it is expected. */
  #timeOf(node: Node, rule: ShardingRule, assignment: ShardAssignment): number {
    const mesh = this.#mesh;
    const moves = node.inputs.flatMap((input, i) => {
      const split = splitBy(assignment, rule.operands[i]!);
      const way = this.#way(input, split);
      return 'moves' in way ? way.moves : [];
    });
    const split = splitBy(assignment, rule.result);
    const folds = foldedBy(rule, assignment);
    const sums = folds.filter(({ monoid }) => monoid === 'sum').flatMap(({ over }) => over);
    const pending: ShardPending | undefined = sums.length === 0 ? undefined : { over: sums, monoid: 'sum' };
    const goal = this.#expected.get(node) ?? whole(node.shape.length).map((_, axis) => split[axis]!);
    const after = movesBetween(mesh, typed(node), { split, pending }, { split: goal, pending: undefined });
    const others = folds
      .filter(({ monoid }) => monoid !== 'sum')
      .map(({ over, monoid }) => plannedMove(mesh, node, split, { kind: 'allReduce', over, monoid }));
    const parts = assignment.reduce((product, axes) => product * partsOf(mesh, axes), 1);
    return timeOfMoves([...moves, ...after, ...others]) + timeOfNode(node) / parts;
  }

  /** How a value gets to a split: from which of its versions soonest, or by being computed again where nothing has to be sent for it. */
  #way(node: Node, split: Split, depth: number = mostAgain): Way {
    const to = { split, pending: undefined };
    let best: (Extract<Way, { readonly moves: unknown }> & { readonly time: number }) | undefined;
    for (const version of this.#versions.get(node)!) {
      const moves = movesBetween(this.#mesh, typed(node), version.layout, to);
      const time = timeOfMoves(moves);
      if (best === undefined || time < best.time) best = { version, moves, time };
    }
    if (best!.time === 0) return best!;
    return this.#again(node, split, depth) ?? best!;
  }

  /** How a view or an elementwise op is split, whose operands get there without a message. */
  #again(
    node: Node,
    split: Split,
    depth: number,
  ): Extract<Way, { readonly assignment: unknown }> | undefined {
    if (depth === 0 || !(isView(node.op) || isElementwise(node.op))) return undefined;
    const rule = this.#ruleOf(node)!;
    const assignment = extended(this.#mesh, rule, unassigned(rule), [[rule.result, split]]);
    if (!sameSplit(splitBy(assignment, rule.result), split)) return undefined;
    const isFree = node.inputs.every((input, i) => {
      const way = this.#way(input, splitBy(assignment, rule.operands[i]!), depth - 1);
      return 'assignment' in way || timeOfMoves(way.moves) === 0;
    });
    return isFree ? { assignment } : undefined;
  }

  /** The part of a value that this process has in a split of its own, moved there where it must be. */
  #in(node: Node, split: Split, why: string): Node {
    const way = this.#way(node, split);
    if ('moves' in way && way.moves.length === 0) return way.version.node;
    const value =
      'moves' in way
        ? this.#move(way.version, way.moves, why)
        : this.#apply(node, way.assignment, (input, own) => this.#in(input, own, why));
    this.#keep(node, value, { split, pending: undefined });
    return value;
  }

  #move(from: Version, moves: readonly PlannedMove[], why: string): Node {
    let { node: value, layout } = from;
    this.#note(value, layout);
    for (const { move, ranks, whole, bytes } of moves) {
      const [kind, { over }] = [move.kind, move];
      const from = showType(value);
      const before = layout;
      value = moved(this.#b, this.#mesh, value, move);
      layout = layoutAfter(layout, move);
      this.#note(value, layout);
      const node = meetingBehind(value);
      if (move.kind === 'allGather' || move.kind === 'reduceScatter') {
        this.#note(node, inFrontLayout(layout, move.axis));
        this.#note(node.inputs[0]!, inFrontLayout(before, move.axis));
      }
      if (kind === 'slice' || this.#met.has(node)) continue;
      this.#met.add(node);
      this.#collectives.push({ node, use: { kind, over, ranks, value: from, whole, bytes, why } });
    }
    return value;
  }

  #placeOf(assignment: ShardAssignment): ShardPlace {
    const [b, mesh] = [this.#b, this.#mesh];
    return {
      b,
      mesh,
      assignment,
      parts: (factor) => partsOf(mesh, assignment[factor]!),
      part: (factor) => rankIndex(b, mesh, assignment[factor]!),
    };
  }

  /** The op on this process's parts of its operands. */
  #apply(
    node: Node,
    assignment: ShardAssignment,
    operand: (input: Node, split: Split, place: number) => Node,
  ): Node {
    const rule = this.#ruleOf(node)!;
    const operands = node.inputs.map((input, i) => operand(input, splitBy(assignment, rule.operands[i]!), i));
    const local = localOf(node, operands, this.#placeOf(assignment));
    this.#check(node, local, splitBy(assignment, rule.result));
    return local;
  }

  #check(node: Node, local: Node, split: Split): void {
    const shape = localShape(this.#mesh, dims(node), split);
    if (local.dtype === node.dtype && dims(local).join() === shape.join()) return;
    const problem = `${node.op} ${showType(node)}, split ${showSplit(split)}, became ${showType(local)} on a process`;
    throw new CompilerBug('partition', problem);
  }
}

function refuseNested({ op }: Node): never {
  const problem = 'shardMap cannot be called in a function that is written for one process';
  throw new TensorError('E_UNSUPPORTED', op, problem, 'one shardMap over all axes of the mesh');
}

function refuseParts(node: Node): never {
  const problem = `a result is ${showType(node)} of one process, which other processes do not have`;
  throw new TensorError('E_STATE', node.op, problem, 'shardMap, whose results say how processes hold them');
}

function splitNamed({ attrs, shape }: NodeOf<'shard'> | NodeOf<'toPart'> | NodeOf<'toWhole'>): Split {
  return splitOfKey(attrs.split, shape.length);
}

/** Whether a node is what is written for one process, given those before it that are. */
function isOfParts(node: Node, before: ReadonlySet<Node>): boolean {
  if (node.op === 'toPart' || node.op === 'rankIndex' || isCollective(node.op)) return true;
  return node.op !== 'toWhole' && node.inputs.some((input) => before.has(input));
}

function typed(node: Node): { readonly shape: readonly number[]; readonly dtype: Node['dtype'] } {
  return { shape: dims(node), dtype: node.dtype };
}
