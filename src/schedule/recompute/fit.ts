// Memory as a budget: which values to compute again so that the plan fits it. Choices are taken by
// the arithmetic that they repeat, the least first, as far as their estimate is near the budget, and
// planned; what the plans come to corrects the estimates. The choice is between cuts of the way to
// the peak, as in Chen et al. (2016) and Checkmate (Jain et al., 2020), not an optimal one.

import { SinterError } from '../../errors.ts';
import type { Graph } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import type { FittedGraph, Recomputed } from './report.ts';
import { orderKernels } from '../memory/order.ts';
import { recomputed } from './rewrite.ts';
import { estimates, Segments, type Estimate } from './segments.ts';
import { timelineOf, type Planned, type MemoryTimeline } from './timeline.ts';

/** Plans that are tried because of their estimates at most, and those that are tried at last. */
const mostTrials = 12;
const lastTrials = 4;
/** How often what was computed again is cut again. */
const mostRounds = 3;
/** What is estimated to take that much of another takes about the same. */
const nearly = 0.97;

/**
 * The graph, or one that computes the same and fits. Throws E_LIMIT where none is found, with the
 * least that was reached; that budget is kept when it is asked for.
 */
export function fitMemory(graph: Graph, budget: number, plan: (graph: Graph) => Planned): FittedGraph {
  const plain = plan(graph);
  const told = ({ planned, values }: Found): FittedGraph => ({
    graph: planned.graph,
    fitting: {
      budget,
      plain: plain.bytes,
      bytes: planned.bytes,
      flops: planned.flops - plain.flops,
      values,
    },
  });
  if (plain.bytes <= budget) return { ...told({ planned: plain, values: [] }), graph };
  const found = rounds(plain, budget, plan);
  if (found.planned.bytes <= budget) return told(found);
  // Which plans were tried depends on the budget. What the error names must not: it is the least
  // of the plans for no bytes, which every budget that fails comes to.
  const least = rounds(plain, 0, plan);
  if (least.planned.bytes <= budget) return told(least);
  throw tooSmall(budget, plain, least.planned);
}

/** The first plan that fits, or the least that was reached, in rounds that each cut the last one's peak. */
function rounds(plain: Planned, budget: number, plan: (graph: Graph) => Planned): Found {
  let least: Found = { planned: plain, values: [] };
  for (let round = 0; round < mostRounds; round++) {
    const { planned: before, values } = least;
    // Also in the order that programs with barriers have: what reads a value late comes late there.
    const frugal = orderKernels(before.kernels, new Map(), before.packs, true);
    const orders = round === 0 ? [before.kernels, frugal] : [before.kernels];
    for (const kernels of orders) {
      const { planned, values: more } = search(before, timelineOf({ ...before, kernels }), budget, plan);
      const found = { planned, values: [...values, ...more] };
      if (planned.bytes <= budget) return found;
      if (planned.bytes < least.planned.bytes) least = found;
    }
    if (least.planned.bytes > nearly * before.bytes) break;
  }
  return least;
}

/** A plan with values computed again. */
interface Found {
  readonly planned: Planned;
  readonly values: readonly Recomputed[];
}

/** The first plan that fits, or the least of those that were tried. */
function search(
  before: Planned,
  timeline: MemoryTimeline,
  budget: number,
  plan: (graph: Graph) => Planned,
): Found {
  const outputs = new Set(before.graph.outputs);
  const all = estimates(timeline, outputs);
  const tried = new Set<Estimate>();
  let least: Found = { planned: before, values: [] };
  const fits = (chosen: Estimate): boolean => {
    tried.add(chosen);
    const segments = new Segments(timeline, chosen, outputs);
    const planned = plan(recomputed(before.graph, segments));
    if (planned.bytes < least.planned.bytes) least = { planned, values: valuesOf(timeline, segments) };
    return planned.bytes <= budget;
  };
  // What is estimated to take as much as something that was planned and did not fit is left out.
  const bounds = { cheap: Infinity, products: Infinity };
  for (const chosen of all) {
    const isHopeful = before.ends + chosen.bytes <= budget && chosen.bytes < nearly * bounds[chosen.effort];
    if (!isHopeful || tried.size === mostTrials) continue;
    if (fits(chosen)) return least;
    bounds[chosen.effort] = chosen.bytes;
  }
  // Estimates may be off: those that should take least come last.
  for (const chosen of all.toSorted((a, b) => a.bytes - b.bytes).slice(0, lastTrials))
    if (!tried.has(chosen) && fits(chosen)) return least;
  return least;
}

function valuesOf(timeline: MemoryTimeline, segments: Segments): Recomputed[] {
  return timeline.order.flatMap((node): Recomputed[] => {
    const stored = timeline.stored.get(node);
    if (stored === undefined || !segments.isCopied(node)) return [];
    return [{ type: showType(node), op: node.op, bytes: stored.bytes }];
  });
}

function tooSmall(budget: number, plain: Planned, least: Planned): SinterError {
  const timeline = timelineOf(least);
  const held = [...timeline.stored.values()]
    .filter(({ from, to }) => from <= timeline.peak && to >= timeline.peak)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 4)
    .map(({ node, bytes }): string => `${node.op} ${showType(node)} (${inBytes(bytes)})`);
  const problem =
    `compile: memory ${inBytes(budget)} is too little: a run takes ${inBytes(plain.bytes)}, and at least ` +
    `${inBytes(least.bytes)} with values computed again, ${inBytes(least.ends)} of it inputs and outputs`;
  const most = held.length === 0 ? '' : `\n  at its peak: ${held.join(', ')}`;
  const hint = `\n  try: memory: ${least.bytes}, a smaller batch, or donate for inputs that are replaced`;
  return new SinterError('E_LIMIT', `${problem}${most}${hint}`);
}

function inBytes(count: number): string {
  return `${count} bytes`;
}
