// Fusion: which nodes share a kernel. Nodes are visited in recording order. A fusion root (dot,
// conv, reduce, scan, scatter) opens a fusion group with an iteration domain; an elementwise node or
// bijective view of a member joins it when its own indices are known at every point of that domain
// (its *alignment*), which makes it an epilogue, or, after a reduction is broadcast back over its
// row, a later stage of the same row kernel. Everything else stays free: computed inline where it
// is read.
//
// Acyclicity by levels: fusion groups are numbered as they open, and a node joins only the highest
// fusion group among all it depends on, so a fusion group reads from lower levels only. A free node depending
// on a member of level r has level r + ½.

import { topological, usersOf, type Graph, type Node } from '../../ir/graph.ts';
import { boundaryOf } from './boundary.ts';
import { FusionGroupPass } from './walk.ts';
import { recomputingKernels, giveUp, groupNodes, type GroupOrder } from './group-order.ts';
import { repeatedReductions } from './few-rows.ts';
import { shortFolds } from './inline.ts';
import { overflowCut, type FusionGroupCut, type Donations } from './overflow.ts';
import { keyOf, readsWhole, type AttentionGroup, type FusionGroup, type ComputeLocation } from './place.ts';
import type { Overflow, Refused } from './rejection.ts';
import { fixpoint } from '../fixpoint.ts';
import type { Target } from '../target.ts';

export interface Fusion {
  readonly order: readonly Node[];
  readonly users: ReadonlyMap<Node, readonly Node[]>;
  readonly places: ReadonlyMap<Node, ComputeLocation>;
  readonly fusionGroups: readonly FusionGroup[];
  /** Fusion groups that a node could have joined, and why it did not. */
  readonly refused: ReadonlyMap<Node, readonly Refused[]>;
  /** Free nodes that are stored because inlining them would exceed a kernel's limits. */
  readonly overflows: ReadonlyMap<Node, Overflow>;
  /** Attention kernels that compute a node again which belongs to an earlier one. */
  readonly recomputedIn: ReadonlyMap<Node, readonly FusionGroup[]>;
  /** Reductions without a kernel: every product repeats them for its few rows. */
  readonly repeated: ReadonlySet<Node>;
}

/**
 * Reductions whose results update parameters: with more, one kernel for all updates is cheaper than
 * one in each.
 */
const separateUpdates = 2;

/**
 * Assigns every node reachable from the outputs a place. At first nodes join without a bound; where
 * a kernel then writes more buffers than it may bind, the last nodes to join are excluded and the
 * pass runs again. Values that readers can probably rematerialise do not count as written, except
 * in the fusion groups of `strict` fusion roots.
 */
export function fusionGroupNodes(
  graph: Graph,
  target: Target,
  scalars: ReadonlySet<Node>,
  strict: ReadonlySet<Node> = new Set(),
  donations: Donations = new Map(),
): Fusion {
  const order = topological(graph.outputs);
  const users = usersOf(order);
  const outputs = boundaryOf(graph, order);
  const folds = shortFolds(order, users, outputs);
  const none: Assumptions = {
    cuts: new Map(),
    split: new Map(),
    grouped: groupNodes(order, users, outputs, new Map(), target),
    unshared: new Set(),
    alone: new Set(),
    apart: new Set(),
  };
  return fixpoint('fusionGroups', none, (assumed) => {
    const { cuts, split, grouped, unshared, alone, apart } = assumed;
    const { home } = grouped;
    const repeats = repeatedReductions({ order: grouped.order, users, outputs, home, alone }, target);
    const short = new Set([...folds].filter((node) => !home.has(node) && !repeats.has(node)));
    const pass = new FusionGroupPass(
      outputs,
      target,
      scalars,
      cuts,
      home,
      users,
      unshared,
      repeats,
      short,
      apart,
    );
    for (const node of grouped.order) pass.visit(node);
    if (pass.unrepeatable.size > 0)
      return { revised: { ...assumed, alone: new Set([...alone, ...pass.unrepeatable]) } };
    if (unshared.size === 0 && pass.updates.size > separateUpdates)
      return { revised: { ...assumed, unshared: pass.updates } };
    const recomputedIn = recomputingKernels(pass.fusionGroups, pass.places);
    const tooLarge: AttentionGroup[] = [];
    const parted = new Set(apart);
    const more = new Map(cuts);
    for (const fusionGroup of pass.fusionGroups) {
      if (readsWhole(fusionGroup.kind)) continue;
      const cut = overflowCut(
        fusionGroup,
        users,
        outputs,
        target.limits.storageBuffers,
        pass.places,
        (node) => pass.readsOf(node),
        strict,
        recomputedIn,
        donations,
      );
      if (cut === undefined) continue;
      // Rather than what is made of its products, the kernel gives the last one away.
      const last = fusionGroup.fusionRoots.at(-1)!;
      if (fusionGroup.kind === 'dot' && last.op === 'dot' && fusionGroup.fusionRoots.length > 1) {
        parted.add(last);
        continue;
      }
      const isStuck = cuts.get(keyOf(fusionGroup))?.last === cut.last;
      more.set(keyOf(fusionGroup), cut);
      if (fusionGroup.group !== undefined && isStuck) tooLarge.push(fusionGroup.group);
    }
    if (tooLarge.length > 0) {
      const divided = new Map(split);
      tooLarge.forEach((group) => giveUp(group, divided));
      const regrouped = groupNodes(order, users, outputs, divided, target);
      return { revised: { ...assumed, cuts: new Map(), split: divided, grouped: regrouped } };
    }
    if (parted.size > apart.size) return { revised: { ...assumed, apart: parted } };
    if (!sameCuts(cuts, more)) return { revised: { ...assumed, cuts: more } };
    const { places, fusionGroups, refused, overflows } = pass;
    return {
      settled: {
        order: grouped.order,
        users,
        places,
        fusionGroups,
        refused,
        overflows,
        recomputedIn,
        repeated: new Set(repeats.keys()),
      },
    };
  });
}

/** Assumptions of a walk over the nodes, from the results of earlier walks. */
interface Assumptions {
  /** Where fusion groups end whose kernels would bind too many buffers. */
  readonly cuts: ReadonlyMap<Node, FusionGroupCut>;
  /** Products of attention that are computed by kernels of their own. */
  readonly split: ReadonlyMap<Node, number>;
  /** The attention groups under these assumptions, and the order of nodes for them. */
  readonly grouped: GroupOrder;
  /** Reductions whose updates of parameters are computed by one kernel for all updates. */
  readonly unshared: ReadonlySet<Node>;
  /** Reductions that have a kernel, though products could repeat them. */
  readonly alone: ReadonlySet<Node>;
  /** Products that do not join an earlier one of the same left operand. */
  readonly apart: ReadonlySet<Node>;
}

/** Whether no fusion group ends elsewhere than before. */
function sameCuts(
  before: ReadonlyMap<Node, FusionGroupCut>,
  after: ReadonlyMap<Node, FusionGroupCut>,
): boolean {
  const sumOf = (cuts: ReadonlyMap<Node, FusionGroupCut>): number =>
    cuts.size === 0 ? -1 : [...cuts.values()].reduce((sum, { last }) => sum + last, 0);
  return sumOf(before) === sumOf(after);
}
