// Memory as a budget: which values to compute again so that the plan fits it. Choices are taken by
// the arithmetic that they repeat, the least first, as far as their estimate is near the budget, and
// planned; what the plans come to corrects the estimates. The choice is between cuts of the way to
// the peak, as in Chen et al. (2016) and Checkmate (Jain et al., 2020), not an optimal one.

import { SinterError } from '../../errors.ts';
import type { Graph, Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { showBytes } from '../../table.ts';
import type { Fitted, Fitting, Recomputed } from './fitting.ts';
import { recomputed } from './rewrite.ts';
import { estimates, Segments, type Estimate } from './segments.ts';
import { timelineOf, type Planned, type Timeline } from './timeline.ts';

/** Plans that are tried at most. */
const mostTrials = 24;

/**
 * The graph, or one that computes the same and fits. Throws E_LIMIT where none is found, with the
 * least that was reached.
 */
export function fitMemory(graph: Graph, budget: number, plan: (graph: Graph) => Planned): Fitted {
  const plain = plan(graph);
  const told = (planned: Planned, values: readonly Recomputed[]): Fitting => ({
    budget,
    plain: plain.bytes,
    bytes: planned.bytes,
    flops: planned.flops - plain.flops,
    values,
  });
  if (plain.bytes <= budget) return { graph, fitting: told(plain, []) };
  const timeline = timelineOf(plain);
  const outputs = new Set(graph.outputs);
  const open = estimates(timeline, outputs);
  /** Inputs, outputs, and what the plan takes above what is live. */
  const atPeak = bytesAtPeak(timeline);
  const fixed = plain.bytes - atPeak;
  let least: { readonly planned: Planned; readonly chosen: Estimate } | undefined;
  let ratio = 1;
  for (let trial = 0; trial < mostTrials && open.length > 0; trial++) {
    const fits = open.findIndex(({ bytes }) => fixed + ratio * bytes <= budget);
    // Where nothing promises to fit, what takes least is tried: estimates are no more than that.
    const at =
      fits >= 0 ? fits : open.reduce((best, { bytes }, i) => (bytes < open[best]!.bytes ? i : best), 0);
    const [chosen] = open.splice(at, 1) as [Estimate];
    const segments = new Segments(timeline, chosen, outputs);
    const planned = plan(recomputed(graph, segments));
    if (planned.bytes <= budget)
      return { graph: planned.graph, fitting: told(planned, valuesOf(timeline, segments)) };
    ratio = Math.max(ratio, (planned.bytes - fixed) / chosen.bytes);
    if (least === undefined || planned.bytes < least.planned.bytes) least = { planned, chosen };
    if (fits < 0 && trial >= 6) break;
  }
  throw tooSmall(budget, plain, least?.planned ?? plain);
}

function bytesAtPeak({ stored, peak }: Timeline): number {
  let sum = 0;
  for (const { bytes, from, to } of stored.values()) if (from <= peak && to >= peak) sum += bytes;
  return sum;
}

function valuesOf(timeline: Timeline, segments: Segments): Recomputed[] {
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
    .map(({ node, bytes }): string => `${node.op} ${showType(node)} (${showBytes(bytes)})`);
  const ends = [...least.graph.parameters, ...least.graph.outputs] as readonly Node[];
  const fixed = [...new Set(ends)].reduce((sum, node) => sum + least.bytesOf(node), 0);
  const problem =
    `compile: memory ${showBytes(budget)} is too little: a run takes ${showBytes(plain.bytes)}, and at least ` +
    `${showBytes(least.bytes)} with values computed again, ${showBytes(fixed)} of it inputs and outputs`;
  const most = held.length === 0 ? '' : `\n  at its peak: ${held.join(', ')}`;
  const hint = `\n  try: memory: ${least.bytes}, a smaller batch, or donate for inputs that are replaced`;
  return new SinterError('E_LIMIT', `${problem}${most}${hint}`);
}
