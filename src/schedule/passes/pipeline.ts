// The passes, in order, each with what it guarantees. Those that only some graphs need, because of a rare operation or dtype,
// are loaded when they meet one, and leave other graphs as they are.

import { isComplex, isSmallInteger } from '../../ir/dtype.ts';
import { topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import { canonicalise } from '../../ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../ir/passes/cse.ts';
import { removeDeadCode } from '../../ir/passes/dead-code.ts';
import { dropMarkers } from '../../ir/passes/drop-markers.ts';
import { isFoldable } from '../../ir/passes/foldable.ts';
import { simplify } from '../../ir/passes/simplify.ts';
import { Lazy } from '../../lazy.ts';
import type { Target } from '../target.ts';
import { legalise } from './legalise.ts';

type Run = (graph: Graph, target: Target) => Graph;

/** A step of the pipeline from recorded graph to schedulable graph. */
export interface Pass {
  readonly name: string;
  /** What the pass guarantees of its result, in words. */
  readonly guarantees: string;
  readonly run: Run;
}

/** Passes for some graphs only. */
type RareName =
  | 'lowerComplex'
  | 'foldConstants'
  | 'packSmallIntegers'
  | 'narrowDoubles'
  | 'splitTransforms'
  | 'settleLoops'
  | 'splitFactors'
  | 'splitScatters'
  | 'splitSorts'
  | 'splitFolds'
  | 'spreadOverParts'
  | 'takeBounds';

function lazy(name: RareName, importing: () => Promise<Run>): Lazy<Run> {
  return new Lazy(`the pass ${name}`, importing);
}

export const rarePasses: Readonly<Record<RareName, Lazy<Run>>> = {
  lowerComplex: lazy('lowerComplex', async () => {
    return (await import('../../ir/passes/lower-complex.ts')).lowerComplex;
  }),
  foldConstants: lazy('foldConstants', async () => (await import('../../ir/passes/fold.ts')).foldConstants),
  packSmallIntegers: lazy('packSmallIntegers', async () => {
    return (await import('./small-integers.ts')).packSmallIntegers;
  }),
  narrowDoubles: lazy('narrowDoubles', async () => (await import('./narrow-doubles.ts')).narrowDoubles),
  splitTransforms: lazy('splitTransforms', async () => (await import('./fft.ts')).splitTransforms),
  settleLoops: lazy('settleLoops', async () => (await import('./loops.ts')).settleLoops),
  splitFactors: lazy('splitFactors', async () => (await import('./factor.ts')).splitFactors),
  splitScatters: lazy('splitScatters', async () => (await import('./scatter.ts')).splitScatters),
  splitSorts: lazy('splitSorts', async () => (await import('./sort.ts')).splitSorts),
  splitFolds: lazy('splitFolds', async () => (await import('./split.ts')).splitFolds),
  takeBounds: lazy('takeBounds', async () => (await import('../../ir/passes/take-bounds.ts')).takeBounds),
  spreadOverParts: lazy('spreadOverParts', async () => (await import('./concat.ts')).spreadOverParts),
};

/** A pass that leaves a graph as it is where no node asks for it. */
function rare(name: RareName, guarantees: string, isMeant: (node: Node, target: Target) => boolean): Pass {
  return {
    name,
    guarantees,
    run: (graph, target) => {
      const nodes = [...graph.parameters, ...topological(graph.outputs)] as readonly Node[];
      return nodes.some((node) => isMeant(node, target)) ? rarePasses[name].value(graph, target) : graph;
    },
  };
}

/** Whether a node is one of these operations. */
function isOneOf(...ops: readonly Op[]): (node: Node) => boolean {
  return ({ op }) => ops.includes(op);
}

/** Every pass, in order. Each is pure and keeps the meaning of the graph. */
export const passes: readonly Pass[] = [
  rare('settleLoops', 'loops of equal turns are one', isOneOf('iterate')),
  rare('lowerComplex', 'no complex numbers: pairs of their parts', ({ dtype }) => isComplex(dtype)),
  { name: 'dropMarkers', guarantees: 'no markers, but bounds of outputs', run: dropMarkers },
  rare(
    'packSmallIntegers',
    'no integers of 8 or 16 bits where the target has none',
    ({ dtype }, { dtypes }) => isSmallInteger(dtype) && !dtypes.includes(dtype),
  ),
  rare(
    'narrowDoubles',
    'no doubles that make no difference where the target has none',
    ({ dtype }, { dtypes }) => dtype === 'f64' && !dtypes.includes(dtype),
  ),
  { name: 'canonicalise', guarantees: 'constants on the right, views merged', run: canonicalise },
  rare('foldConstants', 'no operation on constants alone', isFoldable),
  { name: 'simplify', guarantees: 'no operation that is exactly its operand', run: simplify },
  rare('splitTransforms', 'no transform but parts that one kernel computes', isOneOf('fft')),
  { name: 'shareSubexpressions', guarantees: 'equal nodes are one node', run: shareSubexpressions },
  rare('splitFactors', 'no matrix algorithm on more than a panel', isOneOf('factor')),
  { name: 'legalise', guarantees: 'dtypes the target has, no empty fold', run: legalise },
  rare('splitScatters', 'no scatter of many updates to many slots', isOneOf('scatter', 'scatterAddAtomic')),
  rare('splitSorts', 'no sort but of short lines of u32 keys', isOneOf('argSort')),
  rare('splitFolds', 'no fold longer than a kernel should run', isOneOf('reduce', 'scan', 'dot', 'conv')),
  rare('spreadOverParts', 'nothing alone reads a whole of joined results', isOneOf('concat')),
  { name: 'removeDeadCode', guarantees: 'only what outputs need', run: removeDeadCode },
  rare('takeBounds', 'no bounded outputs: the graph says what of them is needed', isOneOf('bounded')),
];
