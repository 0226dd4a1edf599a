// The batching rule of every primitive, one row per op; the type makes a missing row an error. Rules
// of several lines are written by family in rules-*.ts.

import { broadcast, permute, reshape } from '../../ir/build.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { mapRows, type ElementwiseOp, type Op } from '../../ir/ops.ts';
import { lead, moveAxis, unfoldFrom, type BatchRule, type VmapRow } from './rule.ts';
import { boundedRule, factorRule, gatherRule, searchRule } from './rules-index.ts';
import { randomRule } from './rules-random.ts';

// Products and convolutions of a batch. A dot takes the batch as an axis that is not contracted,
// or, where both operands have it, as a pair of batch axes. A convolution takes it among the
// examples, the output channels, or the groups, according to which operands have it.

const further = (axes: readonly number[], by: boolean): number[] => axes.map((axis) => axis + (by ? 1 : 0));

const dotRule: BatchRule<'dot'> = ({ b }, { attrs }, [lhs, rhs]) => {
  const [x, y] = [lhs!, rhs!];
  const both = x.isMapped && y.isMapped;
  const result = b.add('dot', [x.node, y.node], {
    ...attrs,
    lhsBatch: [...(both ? [0] : []), ...further(attrs.lhsBatch, x.isMapped)],
    rhsBatch: [...(both ? [0] : []), ...further(attrs.rhsBatch, y.isMapped)],
    lhsContract: further(attrs.lhsContract, x.isMapped),
    rhsContract: further(attrs.rhsContract, y.isMapped),
  });
  if (both) return result;
  // The first of the free axes of the operand that has it.
  const freeOfX = x.node.shape.length - attrs.lhsBatch.length - attrs.lhsContract.length;
  const at = attrs.lhsBatch.length + (x.isMapped ? 0 : freeOfX);
  return moveAxis(b, result, at, 0);
};

const convRule: BatchRule<'conv'> = (batch, node, [input, kernel]) => {
  const { b, size } = batch;
  const { attrs } = node;
  const [x, w] = [input!, kernel!];
  if (!w.isMapped) {
    const [, examples, ...rest] = dims(x.node) as [number, number, ...number[]];
    const folded = reshape(b, x.node, [size * examples, ...rest]);
    return unfoldFrom(b, b.add('conv', [folded, w.node], attrs), 0, size, node as Node);
  }
  const [, outputs, ...rest] = dims(w.node) as [number, number, ...number[]];
  const { groups } = attrs;
  if (!x.isMapped) {
    // Output channels of a group stand together: [groups, size, per group].
    const apart = reshape(b, w.node, [size, groups, outputs / groups, ...rest]);
    const joined = reshape(b, moveAxis(b, apart, 0, 1), [groups * size * (outputs / groups), ...rest]);
    const y = b.add('conv', [x.node, joined], attrs);
    const [examples, , ...placed] = dims(y) as [number, number, ...number[]];
    const parts = reshape(b, y, [examples, groups, size, outputs / groups, ...placed]);
    const spatial = placed.map((_, i) => i + 4);
    return reshape(b, permute(b, parts, [2, 0, 1, 3, ...spatial]), [size, examples, outputs, ...placed]);
  }
  const [, examples, channels, ...spatial] = dims(lead(batch, x)) as [number, number, number, ...number[]];
  const beside = reshape(b, moveAxis(b, x.node, 0, 1), [examples, size * channels, ...spatial]);
  const stacked = reshape(b, w.node, [size * outputs, ...rest]);
  const y = b.add('conv', [beside, stacked], { ...attrs, groups: size * groups });
  return unfoldFrom(b, y, 1, size, node as Node);
};

const fixed = (shape: unknown): readonly number[] => shape as readonly number[];
/** One 0 for the batch in front of what holds for each axis of an example. */
const behind = (list: readonly number[], first = 0): number[] => [first, ...list];

/** The view keeps the examples apart: sizes that the batch is missing from are ones. */
const broadcastRule: BatchRule<'broadcast'> = ({ b, size }, { attrs }, [x]) => {
  const shape = fixed(attrs.shape);
  const [, ...own] = dims(x!.node) as [number, ...number[]];
  const ones = shape.slice(own.length).map(() => 1);
  return broadcast(b, reshape(b, x!.node, [size, ...ones, ...own]), [size, ...shape]);
};

/** Collectives work on the leading axis, and leave a batch that is the second one alone. */
const behindLeading: BatchRule = ({ b }, node, [x]) =>
  moveAxis(b, b.copy(node as Node, [moveAxis(b, x!.node, 0, 1)]), 1, 0);

/** Every example is split alike, and the axis of examples is not. */
const eachSplit: BatchRule<'shard' | 'toPart' | 'toWhole'> = ({ b }, { op, attrs }, [x]) =>
  b.add(op, [x!.node], { ...attrs, split: x!.node.shape.length > 1 ? `|${attrs.split}` : '' }) as Node;

const others: { readonly [K in Exclude<Op, ElementwiseOp>]: VmapRow<K> } = {
  reshape: ({ b, size }, { attrs }, [x]) => reshape(b, x!.node, [size, ...fixed(attrs.shape)]),
  permute: ({ b }, { attrs }, [x]) => permute(b, x!.node, behind(attrs.order.map((axis) => axis + 1))),
  broadcast: broadcastRule,
  slice: ({ b, size }, { attrs }, [x]) =>
    b.add('slice', [x!.node], {
      start: behind(attrs.start),
      size: behind(attrs.size, size),
      step: behind(attrs.step, 1),
    }) as Node,
  pad: ({ b }, { attrs }, [x]) =>
    b.add('pad', [x!.node], {
      low: behind(attrs.low),
      high: behind(attrs.high),
      interior: behind(attrs.interior),
      value: attrs.value,
    }) as Node,
  concat: 'axis',
  window: 'axis',
  parameter: 'source',
  constant: 'source',
  iota: 'source',
  randomBits: randomRule,
  rankIndex: 'source',
  reduce: ({ b }, { attrs }, [x]) =>
    b.add('reduce', [x!.node], { ...attrs, axes: attrs.axes.map((axis) => axis + 1) }) as Node,
  argReduce: 'axis',
  argSort: 'axis',
  radixRank: 'lines',
  scan: 'axis',
  // The table of constants is the same for every example.
  fft: (batch, { attrs }, [x, table]) =>
    batch.b.add('fft', [lead(batch, x!), table!.node], { ...attrs, axis: attrs.axis + 1 }) as Node,
  fftPart: (batch, { attrs }, [re, im, table]) =>
    batch.b.add('fftPart', [lead(batch, re!), lead(batch, im!), table!.node], attrs) as Node,
  dot: dotRule,
  conv: convRule,
  gather: gatherRule,
  dequantize: (batch, { attrs }, [words]) => batch.b.add('dequantize', [lead(batch, words!)], attrs) as Node,
  scatter: 'axis',
  permuteScatter: 'axis',
  searchSorted: searchRule,
  segmentReduce: 'axis',
  scatterAddAtomic: 'axis',
  jacobiRows: 'lines',
  factor: factorRule,
  completeRows: 'lines',
  stopGradient: 'elementwise',
  shard: eachSplit,
  toPart: eachSplit,
  toWhole: eachSplit,
  barrier: (batch, _, [x, event]) => batch.b.add('barrier', [lead(batch, x!), event!.node], {}) as Node,
  customVjp: 'custom',
  bounded: boundedRule,
  iterate: 'loop',
  complex: 'elementwise',
  real: 'elementwise',
  imag: 'elementwise',
  conj: 'elementwise',
  allReduce: 'elementwise',
  allGather: behindLeading,
  reduceScatter: behindLeading,
  allToAll: behindLeading,
  permuteRanks: 'elementwise',
  broadcastRank: 'elementwise',
};

/** The row of each op. */
export const batchRules: { readonly [K in Op]: VmapRow<K> } = {
  ...mapRows(() => 'elementwise' as const),
  ...others,
};
