// The batching rule of every primitive, one row per op; the type makes a missing row an error. Rules
// of several lines are written by family in rules-*.ts.

import { broadcast, permute, reshape } from '../../ir/build.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { mapRows, type ElementwiseOp, type Op } from '../../ir/ops.ts';
import { lead, type BatchRule, type VmapRow } from './rule.ts';
import { convRule, dotRule } from './rules-contraction.ts';
import { boundedRule, factorRule, gatherRule, searchRule } from './rules-index.ts';
import { randomRule } from './rules-random.ts';

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
  barrier: (batch, _, [x, event]) => batch.b.add('barrier', [lead(batch, x!), event!.node], {}) as Node,
  customVjp: 'custom',
  bounded: boundedRule,
  iterate: 'loop',
  complex: 'elementwise',
  real: 'elementwise',
  imag: 'elementwise',
  conj: 'elementwise',
};

/** The row of each op. */
export const batchRules: { readonly [K in Op]: VmapRow<K> } = {
  ...mapRows(() => 'elementwise' as const),
  ...others,
};
