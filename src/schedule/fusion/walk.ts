// The walk of fusion (see fusion/fusion.ts): takes nodes in topological order and gives each
// a place, which depends on the places of its inputs.

import { siblingKey } from '../../ir/control/iterate.ts';
import { collectiveOf, dims, type CollectiveNode, type Node, type NodeOf } from '../../ir/graph.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { align, sameIndices } from './align.ts';
import { foldedAt } from './column-folds.ts';
import {
  permuteScatterDomain,
  ownLoops,
  reducedAxes,
  rowDomain,
  rowKey,
  siblings,
  type IterationDomain,
} from './domain.ts';
import type { Indices } from '../expression/evaluate.ts';
import { readsOfCollective, readsOfLoop } from './boundary.ts';
import { mayHaveSiblings, mostSiblings, siblingsKey } from './few-rows.ts';
import { isExact } from './exact.ts';
import {
  divisionLimit,
  divisionsOfMember,
  inlineOf,
  isNeverStored,
  kernelNodeLimit,
  nothing,
  overflowOf,
  withExactDivisions,
  type Placed,
} from './inline.ts';
import type { FusionGroupCut } from './overflow.ts';
import type { piecesOf } from './pieces.ts';
import {
  companionKey,
  isThroughView,
  keyOf,
  movesElements,
  type FusionRootKind,
  type AttentionGroup,
  type FusionGroup,
  type Companion,
  type Inline,
  type ComputeLocation,
} from './place.ts';
import type { Limit, Overflow, Rejection, Refused } from './rejection.ts';
import type { Target } from '../target.ts';
import { Slot } from '../../slot.ts';

/** The parts of a concatenation that are written into it. */
export const piecesInPlace: Slot<typeof piecesOf> = new Slot('parts of concatenations');

/** One walk over the nodes; `cuts` forbid what overflowed a kernel in an earlier walk. */
export class FusionGroupPass {
  readonly places: Map<Node, ComputeLocation> = new Map();
  readonly fusionGroups: FusionGroup[] = [];
  readonly refused: Map<Node, Refused[]> = new Map();
  readonly overflows: Map<Node, Overflow> = new Map();
  /** Reductions that an update of parameters could follow. */
  readonly updates: Set<Node> = new Set();
  /** Reductions that were to be repeated by products, which cannot do so or would take too long. */
  readonly unrepeatable: Set<Node> = new Set();
  readonly #target: Target;
  readonly #scalars: ReadonlySet<Node>;
  readonly #outputs: ReadonlySet<Node>;
  /**
   * The last node that may join a fusion root's fusion group, where later ones would overflow its kernel.
   */
  readonly #cuts: ReadonlyMap<Node, FusionGroupCut>;
  /** The attention group that a node is computed in first, and the fusion groups opened so far. */
  readonly #home: ReadonlyMap<Node, AttentionGroup>;
  readonly #users: ReadonlyMap<Node, readonly Node[]>;
  /** Reductions whose results are updated by a separate kernel, which does all updates. */
  readonly #updatedLater: ReadonlySet<Node>;
  /** Reductions that products repeat, and at how many points they evaluate what is reduced. */
  readonly #repeated: ReadonlyMap<Node, number>;
  /** Folds that all their readers compute. */
  readonly #short: ReadonlySet<Node>;
  /** Products that do not join their siblings. */
  readonly #apart: ReadonlySet<Node>;
  readonly #groups = new Map<AttentionGroup, FusionGroup>();
  /** Row fusion groups by the shape and axes they reduce. */
  readonly #rows = new Map<string, FusionGroup[]>();
  /** Fusion groups that companions of their fusion roots may join. */
  readonly #companions = new Map<string, FusionGroup>();
  /** The newest fusion groups that siblings of their products may join. */
  readonly #products = new Map<string, FusionGroup>();
  readonly #placed: Placed;

  constructor(
    outputs: ReadonlySet<Node>,
    target: Target,
    scalars: ReadonlySet<Node>,
    cuts: ReadonlyMap<Node, FusionGroupCut>,
    home: ReadonlyMap<Node, AttentionGroup>,
    users: ReadonlyMap<Node, readonly Node[]>,
    updatedLater: ReadonlySet<Node>,
    repeated: ReadonlyMap<Node, number>,
    short: ReadonlySet<Node>,
    apart: ReadonlySet<Node>,
  ) {
    this.#target = target;
    this.#scalars = scalars;
    this.#outputs = outputs;
    this.#cuts = cuts;
    this.#home = home;
    this.#users = users;
    this.#updatedLater = updatedLater;
    this.#repeated = repeated;
    this.#short = short;
    this.#apart = apart;
    this.#placed = {
      places: this.places,
      outputs: this.#outputs,
      levelOf: (node) => this.levelOf(node),
      readsOf: (node) => this.readsOf(node),
    };
  }

  visit(node: Node): void {
    this.places.set(node, this.#place(node));
  }

  #place(node: Node): ComputeLocation {
    // Nothing is computed for an empty tensor, and nothing can read from it.
    if (sizeOf(dims(node)) === 0) return nothing;
    const group = this.#home.get(node);
    if (group !== undefined)
      return { kind: 'member', fusionGroup: this.#groups.get(group) ?? this.#openGroup(group) };
    if (node.op === 'radixRank') this.#storeInexact(node.inputs[0]!);
    if (node.op === 'permuteScatter' || node.op === 'fftPart')
      return this.#joinCompanion(node) ?? this.#openCompanion(node);
    if (node.op === 'iterate') return this.#placeLoop(node);
    const collective = collectiveOf(node);
    if (collective !== undefined) return this.#placeCollective(collective);
    if (node.op === 'dot') return this.#joinSibling(node) ?? this.#openProduct(node);
    const own = ownLoops(node);
    if (own !== undefined) return this.#open(node, own.kind, own.domain);
    switch (node.op) {
      case 'parameter':
        return this.#scalars.has(node) ? nothing : { kind: 'leaf' };
      case 'reduce':
      case 'argReduce':
        if (this.#short.has(node)) return this.#free(node);
        return this.#repeat(node) ?? this.#joinProduct(node) ?? this.#joinRow(node) ?? this.#openRow(node);
      case 'concat':
        return this.#assemble(node) ?? this.#free(node);
      case 'barrier':
        // What lies behind it is kept apart from the kernel that computes what lies before it.
        return this.#inline(node);
      default:
        return this.#join(node) ?? this.#free(node);
    }
  }

  /** A concatenation whose parts are written directly into the buffer of the whole. */
  #assemble(node: NodeOf<'concat'>): ComputeLocation | undefined {
    const pieces = piecesInPlace.value(node, {
      places: this.places,
      users: this.#users,
      outputs: this.#outputs,
    });
    if (pieces === undefined) return undefined;
    const level = Math.max(0, ...pieces.map(({ fusionGroup }) => fusionGroup.level + 0.5));
    return { kind: 'stored', level, reads: new Set(), pieces };
  }

  /** The level of the fusion group that a reader of `node` depends on. */
  levelOf(node: Node): number {
    const place = this.places.get(node)!;
    switch (place.kind) {
      case 'leaf':
        return 0;
      case 'member':
        return place.fusionGroup.level;
      case 'free':
      case 'stored':
        return place.level;
      default:
        return place satisfies never;
    }
  }

  /** The stored nodes that are read where `node` is inlined, looking through views of members. */
  readsOf(node: Node): ReadonlySet<Node> {
    const place = this.places.get(node)!;
    if (place.kind === 'free') return place.reads;
    if (place.kind === 'member' && isThroughView(node) && !this.#outputs.has(node))
      return this.readsOf(node.inputs[0]!);
    return new Set([node]);
  }

  #free(node: Node): ComputeLocation {
    let place = this.#inline(node);
    const overflow = this.#overflow(place);
    if (overflow !== undefined) {
      // Too much for one kernel: the heaviest free inputs are stored until the rest fits.
      const weight = (input: Node): number => {
        const at = this.places.get(input)!;
        if (at.kind !== 'free') return 0;
        if (overflow.rule === 'expressions') return at.work;
        if (overflow.rule === 'divisions') return at.divisions;
        return at.closure.size + at.contexts + 64 * at.reads.size;
      };
      for (const input of [...new Set(node.inputs)].sort((x, y) => weight(y) - weight(x))) {
        this.#store(input, overflow);
        place = this.#inline(node);
        if (this.#overflow(place) === undefined) break;
      }
    }
    return place;
  }

  /** Everything that is computed where the node is inlined. */
  #inline(node: Node): Inline {
    return withExactDivisions(node, inlineOf(node, this.#placed), this.#placed);
  }

  #overflow(inline: Inline): Overflow | undefined {
    return overflowOf(inline, this.#target.limits.storageBuffers);
  }

  /** Has a free node stored, unless reading it computes nothing. */
  #store(node: Node, overflow: Overflow): void {
    const place = this.places.get(node)!;
    if (place.kind !== 'free' || place.closure.size === 0 || isNeverStored(node)) return;
    // A kernel of its own could not compute it.
    this.#keepReductions(place.closure);
    this.overflows.set(node, overflow);
    this.places.set(node, { kind: 'stored', level: place.level, reads: place.reads });
  }

  /**
   * Stores the results of float arithmetic below a free node. Several kernels will compute the node
   * and must agree on every bit; compilers may contract or reorder float arithmetic in each.
   */
  #storeInexact(root: Node): void {
    const exact: Node[] = [];
    const stack = [root];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (this.places.get(node)!.kind !== 'free' || exact.includes(node)) continue;
      if (!isExact(node)) {
        this.#store(node, { rule: 'agreement' });
        continue;
      }
      exact.push(node);
      stack.push(...node.inputs);
    }
    for (const node of exact.sort((x, y) => x.id - y.id)) this.places.set(node, this.#inline(node));
  }

  /** Tries to make an elementwise node or view a member of the latest fusion group that it needs. */
  #join(node: Node): ComputeLocation | undefined {
    let best: FusionGroup | undefined;
    for (const input of node.inputs) {
      const place = this.places.get(input)!;
      if (place.kind === 'member' && (best === undefined || place.fusionGroup.level > best.level))
        best = place.fusionGroup;
    }
    if (best === undefined) return undefined;
    const later = node.inputs.find((input) => this.levelOf(input) > best.level);
    if (later !== undefined) return this.#refuse(node, best, { rule: 'order', needs: later });
    if (movesElements(best.kind)) return this.#refuse(node, best, { rule: 'scatter' });
    const at = align(node, best);
    if (at === undefined) return this.#refuse(node, best, { rule: 'alignment' });
    const divisions = divisionsOfMember(node, at, this.#placed);
    if (divisions > divisionLimit)
      return this.#refuse(node, best, { rule: 'divisions', count: divisions, limit: divisionLimit });
    const isUpdatedLater = best.fusionRoots.some((fusionRoot) => this.#updatedLater.has(fusionRoot));
    if (isUpdatedLater && isElementwise(node.op)) return this.#refuse(node, best, { rule: 'update' });
    if (this.#updatesRows(node, best)) this.updates.add(best.fusionRoots[0]!);
    const limit = this.#admit(node, best);
    if (limit !== undefined) return this.#refuse(node, best, limit);
    best.members.set(node, at);
    if (divisions > 0 && isThroughView(node)) best.divisions.set(node, divisions);
    // Products repeat reductions for their left operands, and not for what is made of other products.
    for (const input of node.inputs) {
      const place = this.places.get(input)!;
      if (place.kind === 'free') this.#keepReductions(place.closure);
    }
    return { kind: 'member', fusionGroup: best };
  }

  /** Reductions among these nodes must have a kernel: something else than a product asks for them. */
  #keepReductions(nodes: Iterable<Node>): void {
    for (const node of nodes) if (this.#repeated.has(node)) this.unrepeatable.add(node);
  }

  /** Whether it combines row results with parameters of that size, as optimizers do for a bias. */
  #updatesRows(node: Node, fusionGroup: FusionGroup): boolean {
    const rows = fusionGroup.axes['row']?.extent ?? 1;
    if (fusionGroup.kind !== 'row-reduction' || rows === 1 || sizeOf(dims(node)) !== rows) return false;
    const isParameter = (read: Node): boolean =>
      this.places.get(read)!.kind === 'leaf' && sizeOf(dims(read)) === rows && !fusionGroup.reads.has(read);
    return node.inputs.some(
      (input) => !fusionGroup.members.has(input) && [...this.readsOf(input)].some(isParameter),
    );
  }

  #refuse(node: Node, fusionGroup: FusionGroup, rejection: Rejection): undefined {
    const list = this.refused.get(node);
    if (list === undefined) this.refused.set(node, [{ fusionGroup, rejection }]);
    else list.push({ fusionGroup, rejection });
  }

  /** The limit that the kernel would exceed with `node`; if none, the node's reads are entered. */
  #admit(node: Node, fusionGroup: FusionGroup): Limit | undefined {
    const reads = new Set(fusionGroup.reads);
    let size = fusionGroup.members.size + 1;
    for (const input of node.inputs) {
      const place = this.places.get(input)!;
      if (place.kind === 'member' && place.fusionGroup === fusionGroup) continue;
      for (const read of this.readsOf(input)) reads.add(read);
      if (place.kind === 'free') size += place.closure.size;
    }
    const limit = this.#target.limits.storageBuffers;
    const cut = this.#cuts.get(keyOf(fusionGroup));
    if (cut !== undefined && node.id > cut.last) return { rule: 'bindings', count: cut.bindings, limit };
    if (size > kernelNodeLimit) return { rule: 'size', count: size, limit: kernelNodeLimit };
    if (reads.size >= limit) return { rule: 'bindings', count: reads.size + 1, limit };
    for (const read of reads) fusionGroup.reads.add(read);
    return undefined;
  }

  #open(
    node: Node,
    kind: FusionRootKind,
    { axes, at }: IterationDomain,
    full?: FusionGroup['full'],
  ): ComputeLocation & { kind: 'member' } {
    const members = new Map([[node, at]]);
    const parts = { kind, fusionRoots: [node], axes, members, ...(full === undefined ? {} : { full }) };
    return { kind: 'member', fusionGroup: this.#newFusionGroup(parts, node.inputs) };
  }

  /** All of a chain at once: what it reads from outside has been visited. */
  #openGroup(group: AttentionGroup): FusionGroup {
    const { batch, row, key, inners, stages, rowProducts, outers } = group;
    const fusionRoots = [...inners, ...stages, ...rowProducts, ...outers.map(({ node }) => node)] as Node[];
    const members = new Map(group.members);
    const outside = [...members.keys()].flatMap((node) => node.inputs.filter((input) => !members.has(input)));
    const parts = { kind: 'attention', fusionRoots, axes: { batch, row, key }, members, group } as const;
    const fusionGroup = this.#newFusionGroup(parts, outside);
    this.#groups.set(group, fusionGroup);
    return fusionGroup;
  }

  /** A fusion group of the next level. Inputs are stored if inlining them takes too many bindings. */
  #newFusionGroup(
    parts: Pick<FusionGroup, 'kind' | 'fusionRoots' | 'axes' | 'members' | 'full' | 'group'>,
    inputs: readonly Node[],
  ): FusionGroup {
    const level = this.fusionGroups.length + 1;
    const limit = this.#target.limits.storageBuffers;
    const wanted = new Set(inputs.flatMap((input) => [...this.readsOf(input)]));
    const overflow: Limit = { rule: 'bindings', count: wanted.size + 1, limit };
    if (wanted.size > limit - 1) inputs.forEach((input) => this.#store(input, overflow));
    const reads = new Set(inputs.flatMap((input) => [...this.readsOf(input)]));
    const fusionGroup: FusionGroup = { level, ...parts, hosted: new Set(), reads, divisions: new Map() };
    this.fusionGroups.push(fusionGroup);
    return fusionGroup;
  }

  /** A result of a loop: siblings are one fusion group, which reads whole buffers. */
  #placeLoop(node: NodeOf<'iterate'>): ComputeLocation {
    const key = siblingKey(node);
    const known = this.#companions.get(key);
    if (known !== undefined) {
      known.fusionRoots.push(node as Node);
      known.members.set(node as Node, []);
      return { kind: 'member', fusionGroup: known };
    }
    const place = this.#open(node as Node, 'iterate', { axes: {}, at: [] });
    place.fusionGroup.reads.clear();
    for (const read of readsOfLoop(node)) place.fusionGroup.reads.add(read);
    this.#companions.set(key, place.fusionGroup);
    return place;
  }

  /** A collective reads whole buffers, once what it waits for is there. */
  #placeCollective(node: CollectiveNode): ComputeLocation {
    const place = this.#open(node as Node, 'collective', { axes: {}, at: [] });
    place.fusionGroup.reads.clear();
    for (const read of readsOfCollective(node)) place.fusionGroup.reads.add(read);
    return place;
  }

  /** A reduction that every product repeats which reads it, where that takes less than a kernel. */
  #repeat(node: Node): ComputeLocation | undefined {
    const points = this.#repeated.get(node);
    if (points === undefined) return undefined;
    const place = this.#inline(node);
    if (
      this.#overflow(place) === undefined &&
      (points * place.work) / this.#target.arithmetic < this.#target.launch
    )
      return place;
    this.unrepeatable.add(node);
    return undefined;
  }

  #openRow(node: Node): ComputeLocation {
    const domain = rowDomain(node);
    const place = this.#open(node, 'row-reduction', domain, domain.full);
    const key = rowKey(domain.full.shape, domain.full.axes);
    this.#rows.set(key, [...(this.#rows.get(key) ?? []), place.fusionGroup].slice(-siblings));
    return place;
  }

  #openProduct(node: NodeOf<'dot'>): ComputeLocation {
    const { kind, domain } = ownLoops(node as Node)!;
    const place = this.#open(node as Node, kind, domain);
    if (mayHaveSiblings(node, this.#target)) this.#products.set(siblingsKey(node), place.fusionGroup);
    return place;
  }

  /** Joins a product of the same left operand, whose kernel reads that once for both. */
  #joinSibling(node: NodeOf<'dot'>): ComputeLocation | undefined {
    const fusionGroup = this.#products.get(siblingsKey(node));
    if (fusionGroup === undefined || this.#apart.has(node as Node)) return undefined;
    if (fusionGroup.fusionRoots.length >= mostSiblings) return undefined;
    if (node.inputs.some((input) => this.levelOf(input) >= fusionGroup.level)) return undefined;
    if (this.#admit(node as Node, fusionGroup) !== undefined) return undefined;
    fusionGroup.members.set(node as Node, fusionGroup.members.get(fusionGroup.fusionRoots[0]!)!);
    fusionGroup.fusionRoots.push(node as Node);
    return { kind: 'member', fusionGroup };
  }

  /** A reduction over neighbouring columns of a product, which the workgroup folds that has them. */
  #joinProduct(node: Node): ComputeLocation | undefined {
    const place = this.places.get(node.inputs[0]!)!;
    if (node.op !== 'reduce' || place.kind !== 'member') return undefined;
    const { fusionGroup } = place;
    const at = foldedAt(node, fusionGroup, this.#target);
    if (at === undefined || this.#admit(node as Node, fusionGroup) !== undefined) return undefined;
    fusionGroup.members.set(node as Node, at);
    fusionGroup.fusionRoots.push(node as Node);
    return place;
  }

  #openCompanion(node: Companion): ComputeLocation {
    const own = ownLoops(node as Node);
    const place =
      own === undefined
        ? this.#open(node as Node, 'permute-scatter', permuteScatterDomain(node as Node))
        : this.#open(node as Node, own.kind, own.domain);
    this.#companions.set(companionKey(node), place.fusionGroup);
    return place;
  }

  /** Joins a fusion group that moves other values to the same places, or computes the other part. */
  #joinCompanion(node: Companion): ComputeLocation | undefined {
    const fusionGroup = this.#companions.get(companionKey(node));
    if (fusionGroup === undefined) return undefined;
    if (node.inputs.some((input) => this.levelOf(input) >= fusionGroup.level)) return undefined;
    if (this.#admit(node as Node, fusionGroup) !== undefined) return undefined;
    fusionGroup.members.set(node as Node, fusionGroup.members.get(fusionGroup.fusionRoots[0]!)!);
    fusionGroup.fusionRoots.push(node as Node);
    return { kind: 'member', fusionGroup };
  }

  /** Joins a row fusion group over the same shape and axes that has the input or shares its reads. */
  #joinRow(node: Node): ComputeLocation | undefined {
    const input = node.inputs[0]!;
    const place = this.places.get(input)!;
    const shape = dims(input);
    const axes = reducedAxes(node);
    for (const fusionGroup of (this.#rows.get(rowKey(shape, axes)) ?? []).toReversed()) {
      const full = fusionGroup.full!;
      const isMember = place.kind === 'member' && place.fusionGroup === fusionGroup;
      const rejection =
        this.#otherRow(input, fusionGroup, isMember ? full.at : undefined) ?? this.#admit(node, fusionGroup);
      if (rejection !== undefined) {
        this.#refuse(node, fusionGroup, rejection);
        continue;
      }
      const kept = full.at.filter((_, axis) => !axes.includes(axis));
      fusionGroup.members.set(node, kept);
      fusionGroup.fusionRoots.push(node);
      return { kind: 'member', fusionGroup };
    }
    return undefined;
  }

  /** Why a reduction of `input` cannot join; `row`: the indices that a member input must have. */
  #otherRow(input: Node, fusionGroup: FusionGroup, row: Indices | undefined): Rejection | undefined {
    if (row !== undefined)
      return sameIndices(fusionGroup.members.get(input)!, row) ? undefined : { rule: 'position' };
    if (this.levelOf(input) >= fusionGroup.level) return { rule: 'order', needs: input };
    const shared = [...this.readsOf(input)].some(
      (read) => fusionGroup.reads.has(read) && sizeOf(dims(read)) > 1,
    );
    return shared ? undefined : { rule: 'unshared' };
  }
}
