// What could be computed again: the way up to the peak is cut into segments, where few bytes cross
// from one to the next. What crosses is kept; the rest of a segment is computed again from it when
// something behind the peak needs it (Chen et al., Training Deep Nets with Sublinear Memory Cost,
// 2016). The first segments lie in memory for longest, so they are taken first.

import { nodeBytes, readInputs, type Node } from '../../ir/graph.ts';
import { facts, hasLoops } from '../../ir/ops.ts';
import { nodeFlops } from '../cost.ts';
import type { MemoryTimeline } from './timeline.ts';

/** What may be computed again: products as well, or only what is cheap next to them. */
export type Effort = 'cheap' | 'products';

/** A choice of what to compute again. */
export interface RecomputeChoice {
  readonly effort: Effort;
  /** The last kernel of each segment that is computed again, in order. */
  readonly ends: readonly number[];
}

/** What a choice comes to, before it is planned. */
export interface Estimate extends RecomputeChoice {
  /** Bytes of intermediates at the worst moment. */
  readonly bytes: number;
  /** Arithmetic that is repeated. */
  readonly flops: number;
}

/** Whether the result of a node may be computed again at all. */
export function isRepeatable({ op }: Node, effort: Effort): boolean {
  switch (facts(op).class) {
    case 'unary':
    case 'binary':
    case 'ternary':
    case 'view':
    case 'marker':
      return true;
    case 'source':
      return op === 'randomBits';
    case 'fusionRoot':
      if (op === 'dot' || op === 'conv') return effort === 'products';
      return (
        op === 'reduce' || op === 'argReduce' || !hasLoops(op) || (op === 'scan' && effort === 'products')
      );
    // All processes meet in a collective once.
    case 'collective':
    case 'complex':
      return false;
  }
}

/** What a choice does to a graph: which nodes are computed again, for which segment. */
export class Segments {
  readonly timeline: MemoryTimeline;
  readonly choice: RecomputeChoice;
  readonly #outputs: ReadonlySet<Node>;
  readonly #needed = new Map<Node, boolean>();

  constructor(timeline: MemoryTimeline, choice: RecomputeChoice, outputs: ReadonlySet<Node>) {
    this.timeline = timeline;
    this.choice = choice;
    this.#outputs = outputs;
    for (const node of timeline.order) this.#needed.set(node, this.#isCopied(node));
  }

  /** The segment that computes a node first; undefined behind the last that is computed again. */
  segmentOf(node: Node): number | undefined {
    return this.#segmentAt(this.timeline.timeOf(node));
  }

  /** Whether readers behind the peak compute the node again instead of reading it. */
  isCopied(node: Node): boolean {
    return this.#needed.get(node) === true;
  }

  isLate(node: Node): boolean {
    return this.timeline.timeOf(node) > this.timeline.peak;
  }

  #segmentAt(time: number): number | undefined {
    const at = this.choice.ends.findIndex((end) => time <= end);
    return at < 0 ? undefined : at;
  }

  #isCopied(node: Node): boolean {
    if (node.inputs.length === 0 || this.#outputs.has(node) || this.isLate(node)) return false;
    if (this.segmentOf(node) === undefined || !isRepeatable(node, this.choice.effort)) return false;
    const stored = this.timeline.stored.get(node);
    if (stored === undefined) return readInputs(node).some((input) => this.isCopied(input));
    // What a later segment reads is where that begins.
    const last = this.#segmentAt(stored.lastEarly);
    return last !== undefined && last === this.#segmentAt(stored.from) && stored.to > this.timeline.peak;
  }
}

/** Most segments that are tried. */
const mostSegments = 32;

/** Choices of what to compute again, those that repeat least arithmetic first. */
export function estimates(timeline: MemoryTimeline, outputs: ReadonlySet<Node>): Estimate[] {
  const { peak, stored } = timeline;
  const crossing = [...stored.values()].filter(({ from, to }) => from <= peak && to > peak);
  const total = crossing.reduce((sum, { bytes }) => sum + bytes, 0);
  const atPeak = [...stored.values()]
    .filter(({ from, to }) => from <= peak && to >= peak)
    .reduce((sum, { bytes }) => sum + bytes, 0);
  const found: Estimate[] = [];
  const counts = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, mostSegments].filter((count) => count <= peak + 1);
  for (const count of counts) {
    const ends = cutsOf(timeline, crossing, count);
    for (const effort of ['cheap', 'products'] as const) {
      for (let many = 1; many <= ends.length; many++) {
        const choice = { effort, ends: ends.slice(0, many) };
        const segments = new Segments(timeline, choice, outputs);
        found.push({ ...choice, ...estimateOf(segments, crossing, atPeak - total, many) });
      }
    }
  }
  return found.filter(({ bytes }) => bytes < atPeak).sort((a, b) => a.flops - b.flops || a.bytes - b.bytes);
}

function estimateOf(
  segments: Segments,
  crossing: Iterable<{ readonly node: Node; readonly bytes: number; readonly from: number }>,
  rest: number,
  many: number,
): { readonly bytes: number; readonly flops: number } {
  const dropped = new Array<number>(many).fill(0);
  const keptUpTo = new Array<number>(many + 1).fill(0);
  for (const { node, bytes } of crossing) {
    const at = segments.segmentOf(node);
    if (at !== undefined && segments.isCopied(node)) dropped[at]! += bytes;
    else keptUpTo[at ?? many]! += bytes;
  }
  let flops = 0;
  const seen = new Set<Node>();
  const stack = [...crossing].map(({ node }) => node).filter((node) => segments.isCopied(node));
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    flops += nodeFlops(node);
    for (const input of readInputs(node)) {
      if (segments.isCopied(input)) stack.push(input);
      else if (input.inputs.length > 0 && !segments.timeline.stored.has(input)) {
        if (isRepeatable(input, segments.choice.effort)) stack.push(input);
        else if (!seen.has(input)) {
          // It was a step within a kernel, and is kept from now on.
          seen.add(input);
          keptUpTo[segments.segmentOf(input) ?? many]! += nodeBytes(input);
        }
      }
    }
  }
  let [kept, most] = [0, 0];
  for (let at = 0; at < many; at++) {
    kept += keptUpTo[at]!;
    most = Math.max(most, kept + dropped[at]!);
  }
  const bytes = rest + Math.max(most, kept + keptUpTo[many]!);
  return { bytes, flops };
}

/** Where the way to the peak is cut into so many segments: evenly, where little crosses. */
function cutsOf(
  { peak, stored }: MemoryTimeline,
  crossing: readonly { readonly bytes: number; readonly from: number }[],
  count: number,
): number[] {
  const weights = new Array<number>(peak + 1).fill(0);
  for (const { bytes, from } of crossing) weights[from]! += bytes;
  const across = new Array<number>(peak + 2).fill(0);
  for (const { bytes, from, lastEarly } of stored.values()) {
    if (from > peak || lastEarly <= from) continue;
    across[from]! += bytes;
    across[lastEarly]! -= bytes;
  }
  for (let i = 1; i <= peak; i++) across[i]! += across[i - 1]!;
  const total = weights.reduce((sum, bytes) => sum + bytes, 0);
  const upTo: number[] = [];
  let sum = 0;
  for (const bytes of weights) upTo.push((sum += bytes));
  const ends: number[] = [];
  for (let j = 1; j < count; j++) {
    const ideal = (total * j) / count;
    const room = (0.45 * total) / count;
    let best: number | undefined;
    for (let i = (ends.at(-1) ?? -1) + 1; i < peak; i++) {
      if (Math.abs(upTo[i]! - ideal) > room) continue;
      const isBetter =
        best === undefined ||
        across[i]! < across[best]! ||
        (across[i] === across[best] && Math.abs(upTo[i]! - ideal) < Math.abs(upTo[best]! - ideal));
      if (isBetter) best = i;
    }
    if (best !== undefined) ends.push(best);
  }
  return [...ends, peak];
}
