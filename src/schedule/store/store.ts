// Takes the fusion groups of a graph, gives the values that are written to memory. Members that other
// kernels read are stored, unless those kernels can compute them again from values that are stored
// anyway for less than the traffic costs (rematerialisation). Free nodes are computed inline by
// default and stored where the cost model finds that cheaper (heavy work evaluated at many points,
// or by several kernels). A stored free node is computed by a kernel that evaluates it at every
// point anyway, else by a map kernel, grouped with its siblings.

import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, nodeBytes, type Graph, type Node } from '../../ir/graph.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Indices } from '../expression/evaluate.ts';
import type { Fusion } from '../fusion/fusion.ts';
import { isOfBlocks } from '../fusion/inline.ts';
import {
  isThroughView,
  keyOf,
  type FusionGroup,
  type ConcatPiece,
  type PartOfWhole,
  type ComputeLocation,
} from '../fusion/place.ts';
import type { StorageReason } from '../fusion/rejection.ts';
import { masks } from '../body/masks.ts';
import type { Target } from '../target.ts';
import { boundaryOf } from '../fusion/boundary.ts';
import { Escapes } from './escape.ts';
import { sourcesOf, type Sources } from '../fusion/rematerialise.ts';
import { storingCost } from './storing-cost.ts';
import { laidOutFor } from './turned.ts';
import { addUse, evaluatedAt, pointsOf, type Reader, type Uses } from './uses.ts';

/**
 * Operations that an operand of a product or a convolution may take. A kernel has them once for every place
 * of a tile: with normally distributed weights, which take 88, the C of a small convolution had 390 kB.
 */
const operandLimit = 64;

export interface StoragePlan {
  /** Members and hosted free nodes that each fusion group writes. */
  readonly fusionGroupWrites: ReadonlyMap<FusionGroup, ReadonlyMap<Node, Indices>>;
  /** Parts of concatenations that a fusion group's kernel writes into the buffer of the whole. */
  readonly pieces: ReadonlyMap<FusionGroup, readonly ConcatPiece[]>;
  /** Free nodes that map kernels compute. */
  readonly mapped: readonly Node[];
  /** Those of them that are written into the buffer of a concatenation. */
  readonly mappedParts: ReadonlyMap<Node, PartOfWhole>;
  /** Every node in memory that a kernel computes. */
  readonly stored: ReadonlySet<Node>;
  /** Why each of them is stored rather than computed by its readers. */
  readonly kept: ReadonlyMap<Node, StorageReason>;
}

/**
 * Decides what is stored and by which kernel. The fusion groups of `strict` fusion roots must not store more
 * than they have room for.
 */
export function chooseStorage(
  graph: Graph,
  fusion: Fusion,
  target: Target,
  strict: ReadonlySet<Node> = new Set(),
): StoragePlan {
  const choice = new StorageChoice(graph, fusion, target, strict);
  for (const node of fusion.order.toReversed()) choice.visit(node);
  return choice.storage();
}

/**
 * A fusion group that computes a stored free node: where it evaluates the node, and what it reads then.
 */
interface Host {
  readonly fusionGroup: FusionGroup;
  readonly at: Indices;
  readonly reads: ReadonlySet<Node>;
}

/**
 * The decisions made so far, from the outputs backwards: a node is visited after everything that
 * reads it.
 */
class StorageChoice {
  readonly #fusion: Fusion;
  readonly #target: Target;
  readonly #strict: ReadonlySet<Node>;
  /** The graph's outputs, and what loops read. */
  readonly #outputs: ReadonlySet<Node>;
  /** What loops read and is no output of the graph. */
  readonly #readByLoops: ReadonlySet<Node>;
  readonly #escapes: Escapes;

  readonly #fusionGroupWrites: Map<FusionGroup, Map<Node, Indices>>;
  readonly #pieces = new Map<FusionGroup, ConcatPiece[]>();
  readonly #mapped: Node[] = [];
  readonly #mappedParts = new Map<Node, PartOfWhole>();
  readonly #stored = new Set<Node>();
  readonly #kept = new Map<Node, StorageReason>();
  /** Concatenations whose parts are written directly into their buffer. */
  readonly #assembled = new Set<Node>();

  /** Which kernels evaluate each node visited. */
  readonly #uses = new Map<Node, Uses>();
  /** Members that a dropped value is computed from again, and the kernels that do so. */
  readonly #inherited = new Map<Node, Uses>();
  /** The fusion groups that compute stored free nodes. */
  readonly #hosts = new Map<Node, FusionGroup>();
  /** What map kernels read, by the node they compute. */
  readonly #mapReads = new Map<Node, Set<Node>>();
  /** The most values that each fusion group's kernel may write. */
  readonly #writeBound: Map<FusionGroup, number>;

  constructor(graph: Graph, fusion: Fusion, target: Target, strict: ReadonlySet<Node>) {
    this.#fusion = fusion;
    this.#target = target;
    this.#strict = strict;
    this.#outputs = boundaryOf(graph, fusion.order);
    const results = new Set(graph.outputs);
    this.#readByLoops = new Set([...this.#outputs].filter((node) => !results.has(node)));
    this.#escapes = new Escapes(fusion, this.#outputs, this.#assembled);
    const { fusionGroups } = fusion;
    this.#fusionGroupWrites = new Map(fusionGroups.map((fusionGroup) => [fusionGroup, new Map()]));
    this.#writeBound = new Map(
      fusionGroups.map((fusionGroup) => {
        const leaving = [...fusionGroup.members.keys()].filter((node) =>
          this.#escapes.leaves(node, fusionGroup),
        );
        return [fusionGroup, leaving.length];
      }),
    );
  }

  storage(): StoragePlan {
    return {
      fusionGroupWrites: this.#fusionGroupWrites,
      pieces: this.#pieces,
      mapped: this.#mapped.toReversed(),
      mappedParts: this.#mappedParts,
      stored: this.#stored,
      kept: this.#kept,
    };
  }

  /** Decides for one node, after all of its readers. */
  visit(node: Node): void {
    const place = this.#placeOf(node);
    if (place.kind === 'leaf') return;
    if (this.#mappedParts.has(node)) {
      this.#uses.set(node, new Map([[node, sizeOf(dims(node))]]));
      this.#mapped.push(node);
      return;
    }
    const uses = this.#collectUses(node);
    this.#uses.set(node, uses);
    if (place.kind === 'member') this.#visitMember(node, place.fusionGroup, uses);
    else if (place.kind === 'stored' && place.pieces !== undefined) this.#assemble(node, place.pieces);
    else this.#visitFree(node, place, uses);
  }

  /** A member is written by its fusion group if others read it and do not compute it again. */
  #visitMember(node: Node, fusionGroup: FusionGroup, uses: Uses): void {
    if (!this.#escapes.leaves(node, fusionGroup) && !this.#inherited.has(node)) return;
    if (this.#rematerialise(node, fusionGroup, uses)) return;
    this.#fusionGroupWrites.get(fusionGroup)!.set(node, fusionGroup.members.get(node)!);
    this.#stored.add(node);
  }

  /** The kernels of a concatenation's parts write into the whole. */
  #assemble(node: Node, pieces: readonly ConcatPiece[]): void {
    this.#stored.add(node);
    this.#assembled.add(node);
    this.#keep(node, { rule: 'loops' });
    for (const piece of pieces)
      this.#pieces.set(piece.fusionGroup, [...(this.#pieces.get(piece.fusionGroup) ?? []), piece]);
  }

  /** A free node is computed inline, by a fusion group that evaluates it anyway, or by a map kernel. */
  #visitFree(node: Node, place: ComputeLocation, uses: Uses): void {
    const keeping = this.#keepingOfFree(node, place, uses);
    if (keeping === undefined) return this.#storeParts(node, uses);
    this.#keep(node, keeping);
    this.#stored.add(node);
    const isOnlyOutput = this.#outputs.has(node) && uses.size === 0;
    const host = isOnlyOutput ? undefined : this.#hostFor(node, uses);
    if (host === undefined) this.#mapped.push(node);
    else this.#hostIn(node, host);
  }

  /**
   * Has map kernels write the parts of a concatenation into its buffer, if each part would be stored for the concatenation's
   * readers anyway.
   */
  #storeParts(node: Node, uses: Uses): void {
    if (node.op !== 'concat' || new Set(node.inputs).size !== node.inputs.length) return;
    const parts: PartOfWhole[] = [];
    let start = 0;
    for (const part of node.inputs) {
      const keeping = this.#isOnlyPart(part)
        ? this.#keepingOfFree(part, this.#placeOf(part), uses)
        : undefined;
      if (keeping === undefined) return;
      this.#keep(node, keeping);
      parts.push({ part, whole: node, start });
      start += dims(part)[node.attrs.axis]!;
    }
    this.#stored.add(node);
    for (const part of parts) this.#mappedParts.set(part.part, part);
  }

  /** Whether nothing but a concatenation reads the value, which shares no word of memory with others. */
  #isOnlyPart(node: Node): boolean {
    const place = this.#placeOf(node);
    const isMapped = place.kind === 'free' || (place.kind === 'stored' && place.pieces === undefined);
    const isRead = this.#usersOf(node).length > 1 || this.#outputs.has(node);
    return isMapped && isElementwise(node.op) && dtypeBytes(node.dtype) >= 4 && !isRead;
  }

  #hostIn(node: Node, { fusionGroup, at, reads }: Host): void {
    this.#fusionGroupWrites.get(fusionGroup)!.set(node, at);
    this.#writeBound.set(fusionGroup, this.#writeBound.get(fusionGroup)! + 1);
    fusionGroup.members.set(node, at);
    fusionGroup.hosted.add(node);
    fusionGroup.reads.delete(node);
    for (const read of reads) fusionGroup.reads.add(read);
    this.#hosts.set(node, fusionGroup);
  }

  /**
   * Drops a member that its readers compute again, when that is cheaper than storing it and all it
   * needs is in memory anyway (or is small, as a row's statistics are). The readers then depend on
   * what it is computed from.
   */
  #rematerialise(node: Node, fusionGroup: FusionGroup, uses: Uses): boolean {
    if (!isElementwise(node.op))
      return this.#keep(node, isThroughView(node) ? this.#boundaryReason(node) : { rule: 'loops' });
    if (this.#outputs.has(node)) return this.#keep(node, this.#boundaryReason(node));
    const leaves = (member: Node): boolean => this.#escapes.leaves(member, fusionGroup);
    const { places } = this.#fusion;
    const sources = sourcesOf(node, fusionGroup, places, this.#outputs, leaves, (why) =>
      this.#keep(node, why),
    );
    if (sources === undefined) return false;
    // The values that it is computed from are stored instead of it.
    const instead = [...sources.nodes].filter(
      (source) => fusionGroup.members.has(source) && !leaves(source) && !this.#inherited.has(source),
    );
    const writes = this.#writeBound.get(fusionGroup)! + instead.length - 1;
    const isStrict = this.#strict.has(keyOf(fusionGroup));
    const limit = this.#target.limits.storageBuffers;
    const count = fusionGroup.reads.size + writes;
    if (isStrict && count > limit) return this.#keep(node, { rule: 'bindings', count, limit });
    const rejection = this.#whyNotRecomputed(node, sources, uses);
    if (rejection !== undefined) return this.#keep(node, rejection);
    if (isStrict) this.#writeBound.set(fusionGroup, writes);
    this.#inherit(node, sources, uses);
    return true;
  }

  /** Why the readers of a member do not compute it again; undefined when they do. */
  #whyNotRecomputed(node: Node, sources: Sources, uses: Uses): StorageReason | undefined {
    const { limits, bandwidth, arithmetic, matrixUnits = [] } = this.#target;
    const isOfAttention = [...uses.keys()].some((reader) => !('op' in reader) && reader.group !== undefined);
    const isCopied = dtypeBytes(node.dtype) === 2 && matrixUnits.some((dtype) => dtype === node.dtype);
    if (isCopied && isOfAttention && this.#isOperand(node)) return { rule: 'copies' };
    const bytes = nodeBytes(node);
    const size = Math.max(1, sizeOf(dims(node)));
    let extra = 0;
    let saved = bytes / bandwidth;
    for (const [reader, points] of uses) {
      const reads = this.#readsOf(reader);
      const added = [...sources.nodes].filter((source) => !reads.has(source));
      const bound = 'op' in reader ? 1 : this.#writeBound.get(reader)!;
      const count = reads.size - (reads.has(node) ? 1 : 0) + added.length + bound;
      if (count > limits.storageBuffers) return { rule: 'bindings', count, limit: limits.storageBuffers };
      // A contraction reads its operands once a tile.
      const repeats = Math.max(1, points / size);
      if (repeats > 1 && added.length > 1)
        return { rule: 'tiles', tiles: Math.ceil(repeats), values: added.length };
      extra += (repeats * added.reduce((sum, source) => sum + nodeBytes(source), 0)) / bandwidth;
      extra += (points * sources.work) / arithmetic;
      saved += (repeats * bytes) / bandwidth;
    }
    return extra >= saved ? { rule: 'cost', again: extra, stored: saved, kernels: uses.size } : undefined;
  }

  /** The readers of a dropped member read what it is computed from. */
  #inherit(node: Node, sources: Sources, uses: Uses): void {
    for (const [reader, points] of uses) {
      const reads = this.#readsOf(reader);
      reads.delete(node);
      for (const source of sources.nodes) {
        reads.add(source);
        const into = this.#inherited.get(source) ?? new Map<Reader, number>();
        this.#inherited.set(source, into);
        addUse(into, reader, points);
      }
    }
  }

  /** Notes why a value stays in memory. */
  #keep(node: Node, keeping: StorageReason): false {
    this.#kept.set(node, keeping);
    return false;
  }

  #boundaryReason(node: Node): StorageReason {
    return { rule: this.#readByLoops.has(node) ? 'read-by-loop' : 'output' };
  }

  /** Why a free node is stored; undefined when its readers compute it inline. */
  #keepingOfFree(node: Node, place: ComputeLocation, uses: Uses): StorageReason | undefined {
    if (place.kind !== 'free') return this.#fusion.overflows.get(node) ?? this.#boundaryReason(node);
    if (this.#outputs.has(node)) return this.#boundaryReason(node);
    // What products repeat for their rows, and what is made of it, no other kernel computes.
    for (const inner of place.closure) if (this.#fusion.repeated.has(inner)) return undefined;
    const rule = laidOutFor(node, this.#usersOf(node), this.#target);
    if (rule !== undefined) return { rule };
    if (
      place.work > operandLimit &&
      !isOfBlocks(node) &&
      masks.filled?.isCutOff(node) !== true &&
      this.#isOperand(node)
    )
      return { rule: 'expressions', count: place.work, limit: operandLimit };
    const { inline, store } = storingCost(node, place, uses, this.#target);
    return store < inline ? { rule: 'cost', again: inline, stored: store, kernels: uses.size } : undefined;
  }

  /** Whether a product or a convolution reads it, or a view of it that is not in memory. */
  #isOperand(node: Node): boolean {
    if (facts(node.op).class === 'view') return false;
    const isRead = (value: Node): boolean =>
      this.#usersOf(value).some(
        (user) =>
          user.op === 'dot' ||
          user.op === 'conv' ||
          (facts(user.op).class === 'view' && !this.#stored.has(user) && isRead(user)),
      );
    return isRead(node);
  }

  #collectUses(node: Node): Uses {
    const { recomputedIn } = this.#fusion;
    const uses: Uses = new Map(this.#inherited.get(node));
    const home = this.#placeOf(node);
    const size = sizeOf(dims(node));
    for (const user of this.#usersOf(node)) {
      const place = this.#placeOf(user);
      for (const other of recomputedIn.get(user) ?? [])
        if (!other.members.has(node)) addUse(uses, other, pointsOf(user, node, other, this.#target));
      if (place.kind === 'member' && home.kind === 'member' && place.fusionGroup === home.fusionGroup) {
        // Readers outside look through views; what the readers of a dropped member need is
        // inherited.
        if (isThroughView(user))
          for (const [kernel, points] of this.#uses.get(user)!) addUse(uses, kernel, points);
      } else if (place.kind === 'member')
        addUse(uses, place.fusionGroup, pointsOf(user, node, place.fusionGroup, this.#target));
      else if (this.#stored.has(user)) addUse(uses, this.#hosts.get(user) ?? user, sizeOf(dims(user)));
      else
        for (const [kernel, points] of this.#uses.get(user) ?? [])
          addUse(uses, kernel, size === 1 ? 1 : points);
    }
    return uses;
  }

  /**
   * A fusion group that evaluates the node at every one of its elements and runs before all its other
   * readers.
   */
  #hostFor(node: Node, uses: Uses): Host | undefined {
    const overflow = this.#fusion.overflows.get(node);
    if (overflow !== undefined && overflow.rule !== 'bindings') return undefined;
    const own = this.#readsOf(node);
    for (const user of this.#usersOf(node)) {
      const place = this.#placeOf(user);
      if (place.kind !== 'member') continue;
      const { fusionGroup } = place;
      // Weights are evaluated at (row, key), where an attention kernel stores nothing.
      if (fusionGroup.group?.members.has(user) === true) continue;
      const at = evaluatedAt(user, node, fusionGroup);
      const isFirst = [...uses.keys()].every(
        (other) => other === fusionGroup || this.#levelOf(other) > fusionGroup.level,
      );
      const reads = new Set([...fusionGroup.reads, ...own]);
      reads.delete(node);
      const hasRoom =
        reads.size + this.#writeBound.get(fusionGroup)! + 1 < this.#target.limits.storageBuffers;
      if (at !== undefined && isFirst && hasRoom) return { fusionGroup, at, reads };
    }
    return undefined;
  }

  /**
   * The stored nodes that a fusion group or the map kernel of a free node reads; updated when values are
   * dropped.
   */
  #readsOf(reader: Reader): Set<Node> {
    if (!('op' in reader)) return reader.reads;
    const known = this.#mapReads.get(reader);
    if (known !== undefined) return known;
    const place = this.#placeOf(reader);
    const reads = new Set(place.kind === 'free' || place.kind === 'stored' ? place.reads : []);
    this.#mapReads.set(reader, reads);
    return reads;
  }

  #levelOf(reader: Reader): number {
    if (!('op' in reader)) return reader.level;
    const place = this.#placeOf(reader);
    return place.kind === 'free' || place.kind === 'stored' ? place.level : 0;
  }

  #placeOf(node: Node): ComputeLocation {
    return this.#fusion.places.get(node)!;
  }

  #usersOf(node: Node): readonly Node[] {
    return this.#fusion.users.get(node) ?? [];
  }
}
