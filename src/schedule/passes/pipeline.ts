// The passes, in order, each with what it guarantees. Those that only some graphs need, because of a rare operation or dtype,
// leave other graphs as they are, and chunks bring some of them.

import { isComplex, isSmallInteger } from '../../ir/dtype.ts';
import { topological, type Graph, type Node, type NodeOf } from '../../ir/graph.ts';
import { isCollective, type Op } from '../../ir/ops.ts';
import { canonicalise } from '../../ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../ir/passes/cse.ts';
import { removeDeadCode } from '../../ir/passes/dead-code.ts';
import { dropMarkers } from '../../ir/passes/drop-markers.ts';
import { foldConstants } from '../../ir/passes/fold.ts';
import { isFoldable } from '../../ir/passes/foldable.ts';
import { simplify } from '../../ir/passes/simplify.ts';
import { Slot } from '../../slot.ts';
import { sharesWork } from '../machine.ts';
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

/** Passes that chunks bring. */
type SlotName =
  | 'lowerComplex'
  | 'packSmallIntegers'
  | 'narrowDoubles'
  | 'splitTransforms'
  | 'mergeLoops'
  | 'hoistInvariants'
  | 'splitFactors'
  | 'splitScatters'
  | 'splitSorts'
  | 'foldColumns'
  | 'splitSoftmaxes'
  | 'splitFolds'
  | 'splitKeys'
  | 'takeRowSums'
  | 'spreadOverParts'
  | 'takeBounds'
  | 'combineInKernels'
  | 'orderCollectives'
  | 'placeRank';

const slot = (name: SlotName): Slot<Run> => new Slot(`the pass ${name}`);

export const rarePasses: Readonly<Record<SlotName, Slot<Run>>> = {
  lowerComplex: slot('lowerComplex'),
  packSmallIntegers: slot('packSmallIntegers'),
  narrowDoubles: slot('narrowDoubles'),
  splitTransforms: slot('splitTransforms'),
  mergeLoops: slot('mergeLoops'),
  hoistInvariants: slot('hoistInvariants'),
  splitFactors: slot('splitFactors'),
  splitScatters: slot('splitScatters'),
  splitSorts: slot('splitSorts'),
  foldColumns: slot('foldColumns'),
  splitSoftmaxes: slot('splitSoftmaxes'),
  splitFolds: slot('splitFolds'),
  splitKeys: slot('splitKeys'),
  takeRowSums: slot('takeRowSums'),
  spreadOverParts: slot('spreadOverParts'),
  takeBounds: slot('takeBounds'),
  combineInKernels: slot('combineInKernels'),
  orderCollectives: slot('orderCollectives'),
  placeRank: slot('placeRank'),
};

/** The nodes of graphs that a pass has looked at: most passes leave a graph to the next as it is. */
const lists = new WeakMap<Graph, readonly Node[]>();

/** A pass that leaves a graph as it is where no node asks for it. */
function rare(
  name: string,
  guarantees: string,
  isMeant: (node: Node, target: Target) => boolean,
  pass: Run = (graph, target) => rarePasses[name as SlotName].value(graph, target),
): Pass {
  return {
    name,
    guarantees,
    run: (graph, target) => {
      const nodes = lists.get(graph) ?? [
        ...(graph.parameters as readonly Node[]),
        ...topological(graph.outputs),
      ];
      lists.set(graph, nodes);
      return nodes.some((node) => isMeant(node, target)) ? pass(graph, target) : graph;
    },
  };
}

/** Whether a node is one of these operations. */
function isOneOf(...ops: readonly Op[]): (node: Node) => boolean {
  return ({ op }) => ops.includes(op);
}

/** Whether a collective may be one whose elements kernels have to combine. */
function isCollectiveOnStream({ op }: Node, { combining }: Target): boolean {
  return combining === 'stream' && isCollective(op);
}

/** Whether a node may be the maximum of a softmax whose rows workgroups share. */
function isMaximumOnGpu(node: Node, { machine }: Target): boolean {
  return machine === 'gpu' && node.op === 'reduce' && (node as NodeOf<'reduce'>).attrs.monoid === 'max';
}

/** Whether processes may meet in a node: in a loop its iterations may. */
function mayMeet({ op }: Node): boolean {
  return isCollective(op) || op === 'iterate';
}

/** Every pass, in order. Each is pure and keeps the meaning of the graph. */
export const passes: readonly Pass[] = [
  rare('mergeLoops', 'loops of equal iterations are one', isOneOf('iterate')),
  rare('hoistInvariants', 'no iteration computes what all have in common', isOneOf('iterate')),
  rare('lowerComplex', 'no complex numbers: pairs of their parts', ({ dtype }) => isComplex(dtype)),
  { name: 'dropMarkers', guarantees: 'no markers, but bounds of outputs', run: dropMarkers },
  rare('combineInKernels', 'collectives combine what the target does', isCollectiveOnStream),
  rare('orderCollectives', 'collectives wait for each other in the recorded order', mayMeet),
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
  rare('foldConstants', 'no operation on constants alone', isFoldable, foldConstants),
  { name: 'simplify', guarantees: 'no operation that is exactly its operand', run: simplify },
  rare('splitTransforms', 'no transform but parts that one kernel computes', isOneOf('fft')),
  { name: 'shareSubexpressions', guarantees: 'equal nodes are one node', run: shareSubexpressions },
  rare('splitFactors', 'no matrix algorithm on more than a panel', isOneOf('factor')),
  { name: 'legalise', guarantees: 'dtypes the target has, no empty fold', run: legalise },
  rare('splitScatters', 'no scatter of many updates to many slots', isOneOf('scatter', 'scatterAddAtomic')),
  rare('splitSorts', 'no sort but of short lines of u32 keys', isOneOf('argSort')),
  {
    name: 'splitKeys',
    guarantees: 'no attention that leaves a GPU idle',
    // Where no chunk of attention is loaded, there is none.
    run: (graph, target) =>
      sharesWork(target) ? (rarePasses.splitKeys.filled?.(graph, target) ?? graph) : graph,
  },
  {
    name: 'takeRowSums',
    guarantees: 'no sum over keys that the results of attention give',
    run: (graph, target) => rarePasses.takeRowSums.filled?.(graph, target) ?? graph,
  },
  {
    name: 'foldColumns',
    guarantees: 'rows of products that are only folded are folded a few columns at a time',
    // A page loads the chunk of it where rows are long.
    run: (graph, target) => rarePasses.foldColumns.filled?.(graph, target) ?? graph,
  },
  rare('splitSoftmaxes', 'no softmax of rows that would leave a GPU idle', isMaximumOnGpu),
  rare('splitFolds', 'no fold longer than a kernel should run', isOneOf('reduce', 'scan', 'dot', 'conv')),
  rare('spreadOverParts', 'nothing alone reads a whole of joined results', isOneOf('concat')),
  { name: 'removeDeadCode', guarantees: 'only what outputs need', run: removeDeadCode },
  rare('takeBounds', 'no bounded outputs: the graph says what of them is needed', isOneOf('bounded')),
  rare('placeRank', 'no place of a process but its number', isOneOf('rankIndex')),
];
