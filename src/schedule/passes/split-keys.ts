// Attention of few rows over many keys leaves most of a GPU idle, because a row is computed by one workgroup.
// Here it becomes attention over parts of the keys, which are one more batch axis, and the combination of the
// parts' results (Dao et al., Flash-Decoding, 2023). Sums of e^(x − max) of a part are multiplied by
// e^(max of the part − max of the row) before they are added. Part s of S has the keys s, s + S, s + 2S, …: while
// a cache is half empty, every part has half of its keys.

import {
  broadcast,
  cast,
  div,
  full,
  isZero,
  mul,
  permute,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../ir/build.ts';
import { dtypeBytes, isFloat } from '../../ir/dtype.ts';
import { dims, GraphBuilder, rebuild, rewrite, topological, usersOf } from '../../ir/graph.ts';
import type { Graph, Node, NodeOf } from '../../ir/graph.ts';
import { atomsOf, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { sameIndices } from '../fusion/align.ts';
import { findAttention } from '../fusion/attention.ts';
import { boundaryOf } from '../fusion/boundary.ts';
import { isThroughView, type AttentionGroup, type OuterDot } from '../fusion/place.ts';
import { weighsScores } from '../fusion/scores.ts';
import type { Indices } from '../expression/evaluate.ts';
import { workgroupBandwidth } from '../machine.ts';
import type { Target } from '../target.ts';
import { mayBeCut } from './split-contraction.ts';

/** Keys that a part has at least. */
const leastKeys = 256;
/** How many times faster two kernels must be. */
const gain = 1.5;
/** Workgroups for each multiprocessor that there should be: while one waits at a barrier, the other loads. */
const perCore = 2;

/** Workgroups that there should be. */
const wanted = ({ cores }: Target): number => perCore * cores.count;

/** Whether a product may be the end of an attention that is worth splitting: it has many terms and few rows. */
function mayEnd(node: Node, target: Target): boolean {
  if (node.op !== 'dot') return false;
  const shape = dims(node.inputs[0]!);
  const terms = sizeOf(node.attrs.lhsContract.map((axis) => shape[axis]!));
  const rows = Math.min(...node.inputs.map((input) => sizeOf(dims(input)) / terms));
  return terms >= 2 * leastKeys && rows < wanted(target);
}

/** Splits attention that leaves most of the machine idle. */
export function splitKeys(graph: Graph, target: Target): Graph {
  const order = topological(graph.outputs);
  if (!order.some((node) => mayEnd(node, target)) || !weighsScores(order)) return graph;
  const found = findAttention(order, usersOf(order), boundaryOf(graph, order), new Map(), target.matrixUnits);
  const made = new Map<Node, Node>();
  const builder = new GraphBuilder();
  const owners = new Map<Node, SplitGroup>();
  for (const group of found) {
    const parts = partsOf(group, target);
    if (parts === undefined) continue;
    const form = new SoftmaxForm(group);
    if (form.terms === undefined) continue;
    const split = new SplitGroup(form, form.terms, parts, made, builder);
    for (const node of [...group.stages, ...group.outers.map((outer) => outer.node)])
      owners.set(node as Node, split);
  }
  if (owners.size === 0) return graph;
  const change = (node: Node, inputs: readonly Node[]): Node => {
    const next = owners.get(node)?.result(node) ?? rebuild(node, inputs, builder);
    made.set(node, next);
    return next;
  };
  return rewrite(graph, change, builder);
}

/** Into how many parts the keys of a group are split; undefined where one kernel is about as fast. */
function partsOf({ batch, row, key, inners, outers }: AttentionGroup, target: Target): number | undefined {
  const rows = batch.extent * row.extent;
  const workgroups = wanted(target);
  if (rows >= workgroups) return undefined;
  const operands = [
    ...inners.flatMap(({ inputs }) => inputs.filter((input) => sizeOf(dims(input)) >= key.extent)),
    ...outers.map(({ node, side }) => node.inputs[1 - side]!),
  ];
  const bytes = operands.reduce((sum, operand) => sum + sizeOf(dims(operand)) * storedBytes(operand), 0);
  const columns = outers.reduce((sum, { column }) => sum + column.extent, 0);
  const time = (parts: number): number => {
    const invocations = Math.min(256, key.extent / parts / 4);
    const each = bytes / batch.extent / parts / workgroupBandwidth(invocations);
    const partial = parts === 1 ? 0 : target.launch + (8 * rows * parts * (columns + 2)) / target.bandwidth;
    return Math.max(bytes / target.bandwidth, each) + partial;
  };
  const possible: number[] = [];
  for (let parts = 2; key.extent / parts >= leastKeys; parts++)
    if (key.extent % (4 * parts) === 0) possible.push(parts);
  // Products of parts that are cut again are no attention.
  const isEnough = (count: number): boolean =>
    rows * count >= workgroups && !mayBeCut(key.extent / count, rows * count * columns, target);
  const parts = possible.find(isEnough) ?? possible.at(-1);
  return parts !== undefined && time(parts) * gain < time(1) ? parts : undefined;
}

/** Bytes of an element where the operand is in memory, if only views and casts stand between. */
function storedBytes(operand: Node): number {
  let at = operand;
  while (at.op === 'cast' || at.op === 'slice' || isThroughView(at)) at = at.inputs[0]!;
  return Math.min(dtypeBytes(operand.dtype), dtypeBytes(at.dtype));
}

/** A number of a row that a sum over the keys is multiplied or divided by. */
interface Scale {
  readonly op: 'mul' | 'div';
  /** Without the key's axis. */
  readonly by: Node;
}

/** Terms of a sum over the keys: what they have in common, and whether they have the factor e^−max. */
interface Term {
  readonly scales: readonly Scale[];
  readonly shifts: boolean;
}

const plain: Term = { scales: [], shifts: false };

/** What a group is if its keys can be split: sums of terms that have e^−max as a factor, or no maximum in them. */
class SoftmaxForm {
  readonly group: AttentionGroup;
  readonly max: NodeOf<'reduce'> | undefined;
  /** The terms of sums and products, by the node that sums them; undefined where a sum has another form. */
  readonly terms: ReadonlyMap<Node, Term> | undefined;
  /** Nodes with a scale: what is left without it. */
  readonly unscaled: Map<Node, Node> = new Map();
  /** Nodes that are made of the row's statistics. */
  readonly #ofStages: ReadonlySet<Node>;

  constructor(group: AttentionGroup) {
    this.group = group;
    this.max = group.stages.find(({ attrs }) => attrs.monoid === 'max');
    const ofStages = new Set<Node>(group.stages as readonly Node[]);
    for (const node of [...group.members.keys()].sort((a, b) => a.id - b.id))
      if (node.inputs.some((input) => ofStages.has(input))) ofStages.add(node);
    this.#ofStages = ofStages;
    this.terms = [...group.members].every(([node, at]) => this.#isPlain(node, at)) ? this.#sums() : undefined;
  }

  /** Which axis of a member is the keys'; undefined where it has none. */
  keyAxis(node: Node): number | undefined {
    const axis = this.group.members.get(node)!.indexOf(this.group.key.atom);
    return axis < 0 ? undefined : axis;
  }

  /** The indices of a member along axes of more than one element, without the key's. */
  rowIndices(node: Node): Indices {
    const at = this.group.members.get(node)!;
    return at.filter((index, axis) => dims(node)[axis]! > 1 && index !== this.group.key.atom);
  }

  /** Whether the keys are one axis of the member, and stay one from its input to it. */
  #isPlain(node: Node, at: Indices): boolean {
    const { key } = this.group;
    const follows = (index: IndexExpr): boolean =>
      index === key.atom || !atomsOf(index).includes(key.atom as never);
    if (!at.every(follows) || at.filter((index) => index === key.atom).length > 1) return false;
    const axis = this.keyAxis(node);
    if (node.op === 'dot') {
      const { lhsBatch, lhsContract, rhsContract } = node.attrs;
      // The keys of scores are no batch of products; those of a product of weights are all that it sums over.
      if (axis !== undefined) return axis >= lhsBatch.length;
      return lhsContract.length === 1 && rhsContract.length === 1;
    }
    if (node.op === 'reduce') {
      const axes = node.attrs.axes;
      return axes.length === 1 && this.keyAxis(node.inputs[0]!) === axes[0];
    }
    if (node.op === 'reshape' && axis !== undefined) {
      const input = node.inputs[0]!;
      const from = this.keyAxis(input);
      const before = (of: Node, to: number): number => sizeOf(dims(of).slice(0, to));
      return from !== undefined && before(input, from) === before(node, axis);
    }
    return isElementwise(node.op) || isThroughView(node);
  }

  #sums(): ReadonlyMap<Node, Term> | undefined {
    const { stages, outers } = this.group;
    const terms = new Map<Node, Term>();
    for (const stage of stages) {
      if (stage === this.max) continue;
      const term = stage.attrs.monoid === 'sum' ? this.#term(stage.inputs[0]!) : undefined;
      const sameRow =
        this.max === undefined || sameIndices(this.#at(stage as Node), this.#at(this.max as Node));
      if (term === undefined || term.scales.length > 0 || !sameRow) return undefined;
      terms.set(stage as Node, term);
    }
    for (const outer of outers) {
      const term = this.#term(outer.node.inputs[outer.side]!);
      const node = outer.node as Node;
      const rows = rowAxes(outer).flatMap((axis) => (dims(node)[axis]! > 1 ? [this.#at(node)[axis]!] : []));
      const fits = (of: Node): boolean => sameIndices(this.rowIndices(of), rows);
      if (term === undefined || (term.shifts && !fits(this.max as Node))) return undefined;
      if (!term.scales.every(({ by }) => this.#isOfRows(by, fits))) return undefined;
      terms.set(node, term);
    }
    return terms;
  }

  #at(node: Node): Indices {
    return this.group.members.get(node)!;
  }

  /** Whether a number of a row is made element by element of statistics of exactly this row. */
  #isOfRows(by: Node, fits: (of: Node) => boolean): boolean {
    if (!this.#ofStages.has(by)) return true;
    if (!fits(by)) return false;
    if (by.op === 'reduce') return true;
    return (
      (isElementwise(by.op) || isThroughView(by)) && by.inputs.every((input) => this.#isOfRows(input, fits))
    );
  }

  /** What a term has in common with those of other keys, if all that is `given` holds where it counts. */
  #term(node: Node, given: readonly Node[] = []): Term | undefined {
    if (!this.#ofStages.has(node)) return plain;
    if (this.keyAxis(node) === undefined) return undefined;
    const [x, y, z] = node.inputs;
    switch (node.op) {
      case 'exp':
        return this.#isShifted(x!, given) ? { scales: [], shifts: true } : undefined;
      case 'reshape':
      case 'permute':
        return this.#term(x!);
      case 'neg':
        return this.#term(x!, given);
      case 'cast':
        return isFloat(node.dtype) ? this.#term(x!, given) : undefined;
      case 'where':
        return this.#ofStages.has(x!) || !isZero(z!) ? undefined : this.#term(y!, [...given, x!]);
      case 'div':
        return (
          this.#scaled(node, 'div', x!, y!, given) ??
          (this.#ofStages.has(y!) ? undefined : this.#term(x!, given))
        );
      case 'mul':
        return (
          this.#scaled(node, 'mul', x!, y!, given) ??
          this.#scaled(node, 'mul', y!, x!, given) ??
          this.#product(this.#term(x!, given), this.#term(y!, given))
        );
      default:
        return undefined;
    }
  }

  #product(x: Term | undefined, y: Term | undefined): Term | undefined {
    if (x === undefined || y === undefined || (x.shifts && y.shifts)) return undefined;
    return { scales: [...x.scales, ...y.scales], shifts: x.shifts || y.shifts };
  }

  /** A term with a scale; undefined where `scale` is not a number of the row. */
  #scaled(node: Node, op: Scale['op'], rest: Node, scale: Node, given: readonly Node[]): Term | undefined {
    const by = rowOf(scale);
    if (!this.#ofStages.has(by) || this.keyAxis(by) !== undefined) return undefined;
    const term = this.#term(rest, given);
    if (term === undefined) return undefined;
    this.unscaled.set(node, rest);
    return { scales: [...term.scales, { op, by }], shifts: term.shifts };
  }

  /** x − max, where the maximum is over x, or over x where conditions hold that are all given. */
  #isShifted(power: Node, given: readonly Node[]): boolean {
    const { max } = this;
    if (power.op !== 'sub' || max === undefined || rowOf(power.inputs[1]!) !== (max as Node)) return false;
    let highest = max.inputs[0]!;
    while (highest !== power.inputs[0] && highest.op === 'where' && given.includes(highest.inputs[0]!))
      highest = highest.inputs[1]!;
    return highest === power.inputs[0];
  }
}

/** What a view repeats for every key. */
function rowOf(node: Node): Node {
  let at = node;
  while (at.op === 'broadcast' || at.op === 'reshape') at = at.inputs[0]!;
  return at;
}

/** The axes of an outer product that are no columns. */
function rowAxes({ node, side }: OuterDot): readonly number[] {
  const batch = node.attrs.lhsBatch.length;
  const rank = dims(node as Node).length;
  const columns = dims(node.inputs[1 - side]!).length - batch - 1;
  const first = side === 0 ? rank - columns : batch;
  return Array.from({ length: rank }, (_, axis) => axis).filter(
    (axis) => axis < first || axis >= first + columns,
  );
}

/** Makes the nodes of a group whose keys are split. */
class SplitGroup {
  readonly #form: SoftmaxForm;
  readonly #parts: number;
  readonly #terms: ReadonlyMap<Node, Term>;
  /** What became of the graph's nodes. */
  readonly #made: ReadonlyMap<Node, Node>;
  readonly #b: GraphBuilder;
  /** Members with a first axis for the parts. */
  readonly #split = new Map<Node, Node>();

  constructor(
    form: SoftmaxForm,
    terms: ReadonlyMap<Node, Term>,
    parts: number,
    made: ReadonlyMap<Node, Node>,
    b: GraphBuilder,
  ) {
    this.#form = form;
    this.#terms = terms;
    this.#parts = parts;
    this.#made = made;
    this.#b = b;
  }

  /** A statistic of the row or a product, of all parts together. */
  result(node: Node): Node {
    const b = this.#b;
    const { max, group } = this.#form;
    if (node === max) return reduce(b, 'max', this.#of(node), [0]);
    const { shifts, scales } = this.#terms.get(node)!;
    const outer = group.outers.find((each) => (each.node as Node) === node);
    if (outer === undefined)
      return cast(b, this.#sum(this.#of(node), shifts ? this.#maxima(node) : undefined), node.dtype);
    const shape = dims(node);
    const rows = shape.map((size, axis) => (rowAxes(outer).includes(axis) ? size : 1));
    const spread = (x: Node): Node =>
      broadcast(b, reshape(b, x, [this.#parts, ...rows]), [this.#parts, ...shape]);
    const maxima = max === undefined ? undefined : cast(b, spread(this.#of(max as Node)), 'f32');
    const product = this.#sum(this.#of(node), shifts ? maxima : undefined);
    /** A number of the row, at each of the product's elements. */
    const atProduct = (by: Node): Node => {
      if (by === max) return cast(b, reduce(b, 'max', maxima!, [0]), by.dtype);
      const term = this.#terms.get(by);
      if (term !== undefined)
        return cast(b, this.#sum(spread(this.#of(by)), term.shifts ? maxima : undefined), by.dtype);
      if (!group.members.has(by))
        return broadcast(b, reshape(b, this.#made.get(by)!, sizeOf(dims(by)) === 1 ? [] : rows), shape);
      const inputs = by.inputs.map(atProduct);
      return isElementwise(by.op) ? rebuild(by, inputs, b) : inputs[0]!;
    };
    const scaled = scales.reduce((x, { op, by }) => {
      const scale = cast(b, atProduct(by), 'f32');
      return op === 'mul' ? mul(b, x, scale) : div(b, x, scale);
    }, product);
    return cast(b, scaled, node.dtype);
  }

  /** The maxima of a statistic's rows in each part. */
  #maxima(stage: Node): Node {
    return reshape(this.#b, cast(this.#b, this.#of(this.#form.max as Node), 'f32'), [
      this.#parts,
      ...dims(stage),
    ]);
  }

  /**
   * The sum over the parts, whose terms have the factor e^−max of their part. A part whose maximum is the row's
   * counts as it is, even if that is −∞; else one of nothing but −∞ counts nothing, though its own sum is NaN.
   */
  #sum(values: Node, maxima: Node | undefined): Node {
    const b = this.#b;
    if (maxima === undefined) return reduce(b, 'sum', values, [0]);
    const shape = dims(values);
    const highest = broadcast(b, reshape(b, reduce(b, 'max', maxima, [0]), [1, ...shape.slice(1)]), shape);
    const least = full(b, shape, -Infinity, 'f32');
    const shrunk = mul(b, values, unary(b, 'exp', sub(b, maxima, highest)));
    const nothing = b.add('eq', [maxima, least], {}) as Node;
    const isHighest = b.add('eq', [maxima, highest], {}) as Node;
    const zero = full(b, shape, 0, 'f32');
    return reduce(b, 'sum', where(b, isHighest, values, where(b, nothing, zero, shrunk)), [0]);
  }

  /** A member for each part of the keys; without its scale, where it has one. */
  #of(node: Node): Node {
    const unscaled = this.#form.unscaled.get(node);
    if (unscaled !== undefined) return this.#of(unscaled);
    const known = this.#split.get(node);
    if (known !== undefined) return known;
    const made = this.#make(node);
    this.#split.set(node, made);
    return made;
  }

  #make(node: Node): Node {
    const b = this.#b;
    const { group } = this.#form;
    const axis = this.#form.keyAxis(node);
    const shape = [this.#parts, ...dims(node).map((size, at) => (at === axis ? size / this.#parts : size))];
    const [x] = node.inputs;
    switch (node.op) {
      case 'dot':
        return axis === undefined ? this.#outer(node) : this.#inner(node, axis);
      case 'reduce': {
        const { monoid, axes } = node.attrs;
        const input = this.#of(x!);
        // Sums of parts are added in f32, as those of keys are.
        return reduce(b, monoid, monoid === 'sum' ? cast(b, input, 'f32') : input, [axes[0]! + 1]);
      }
      case 'reshape':
        return reshape(b, this.#of(x!), shape);
      case 'permute':
        return permute(b, this.#of(x!), [0, ...node.attrs.order.map((from) => from + 1)]);
      case 'broadcast': {
        const input = this.#of(x!);
        const [parts, ...rest] = dims(input);
        const missing = shape.length - 1 - rest.length;
        return broadcast(b, reshape(b, input, [parts!, ...Array<number>(missing).fill(1), ...rest]), shape);
      }
      default:
        return rebuild(
          node,
          node.inputs.map((input) => (group.members.has(input) ? this.#of(input) : this.#leaf(input, axis))),
          b,
        );
    }
  }

  /** What is no member, for each part of the keys along `axis`. */
  #leaf(node: Node, axis: number | undefined): Node {
    const b = this.#b;
    const x = this.#made.get(node)!;
    const shape = dims(x);
    if (axis === undefined) return broadcast(b, reshape(b, x, [1, ...shape]), [this.#parts, ...shape]);
    const cut = reshape(b, x, shape.toSpliced(axis, 1, shape[axis]! / this.#parts, this.#parts));
    const rest = dims(cut).flatMap((_, at) => (at === axis + 1 ? [] : [at]));
    return permute(b, cut, [axis + 1, ...rest]);
  }

  #inner(node: NodeOf<'dot'>, axis: number): Node {
    const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
    const free = (side: 0 | 1): number[] => {
      const [batch, contract] = side === 0 ? [lhsBatch, lhsContract] : [rhsBatch, rhsContract];
      return dims(node.inputs[side]!).flatMap((_, at) =>
        batch.includes(at) || contract.includes(at) ? [] : [at],
      );
    };
    const ofResult = [...free(0).map((at) => [0, at] as const), ...free(1).map((at) => [1, at] as const)];
    const [side, at] = ofResult[axis - lhsBatch.length]!;
    return this.#product(
      node,
      this.#leaf(node.inputs[0]!, side === 0 ? at : undefined),
      this.#leaf(node.inputs[1]!, side === 1 ? at : undefined),
      node.attrs.dtype,
    );
  }

  #outer(node: NodeOf<'dot'>): Node {
    const { side } = this.#form.group.outers.find((outer) => outer.node === node)!;
    const { lhsContract, rhsContract } = node.attrs;
    const weights = this.#of(node.inputs[side]!);
    const values = this.#leaf(node.inputs[1 - side]!, (side === 0 ? rhsContract : lhsContract)[0]);
    return side === 0
      ? this.#product(node, weights, values, 'f32')
      : this.#product(node, values, weights, 'f32');
  }

  /** The product of each part. */
  #product(node: NodeOf<'dot'>, left: Node, right: Node, dtype: NodeOf<'dot'>['attrs']['dtype']): Node {
    const moved = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);
    const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
    return this.#b.add('dot', [left, right], {
      lhsBatch: [0, ...moved(lhsBatch)],
      rhsBatch: [0, ...moved(rhsBatch)],
      lhsContract: moved(lhsContract),
      rhsContract: moved(rhsContract),
      dtype,
    }) as Node;
  }
}
