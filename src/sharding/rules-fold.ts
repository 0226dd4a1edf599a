// Sharding rules of products, convolutions, folds, scans, sorts, transforms and matrix algorithms.

import { isInexact, isInteger, dtypeBytes, type DType } from '../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import type { Op } from '../ir/ops.ts';
import type { FixedShape } from '../ir/shape.ts';
import type { AxisFactors, ShardLinear, ShardPlace, ShardingRow, ShardingRule } from './rule.ts';
import { alikeRule, FactorList, one, together, unsplit, wholeRule } from './row.ts';
import { areApart } from './rules-view.ts';

/** Batch axes, free axes, and contracted ones, over which the processes' products add up. */
function dotRule(node: NodeOf<'dot'>): ShardingRule {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = node.attrs;
  const [lhs, rhs] = node.inputs.map(dims) as [FixedShape, FixedShape];
  const list = new FactorList();
  const left: AxisFactors[] = lhs.map(() => unsplit);
  const right: AxisFactors[] = rhs.map(() => unsplit);
  lhsBatch.forEach((axis, i) => {
    left[axis] = list.axis(lhs[axis]!);
    right[rhsBatch[i]!] = left[axis];
  });
  // Floats whose sum becomes an integer lose a fraction, once.
  const isRounded = isInexact(node.inputs[0]!.dtype) && !isInexact(dtype);
  lhsContract.forEach((axis, i) => {
    if (isRounded) return;
    left[axis] = list.axis(lhs[axis]!, 'sum');
    right[rhsContract[i]!] = left[axis];
  });
  const free = (
    shape: FixedShape,
    axes: AxisFactors[],
    batch: readonly number[],
    contract: readonly number[],
  ): AxisFactors[] =>
    shape.flatMap((size, axis) => {
      if (batch.includes(axis) || contract.includes(axis)) return [];
      axes[axis] = list.axis(size);
      return [axes[axis]];
    });
  const result = [
    ...lhsBatch.map((axis) => left[axis]!),
    ...free(lhs, left, lhsBatch, lhsContract),
    ...free(rhs, right, rhsBatch, rhsContract),
  ];
  return { factors: list.all, operands: [left, right], result };
}

/** Whether sums of values of one dtype stay sums when they are multiplied into another. */
function keepsSums(from: DType, to: DType): boolean {
  if (isInexact(from)) return isInexact(to);
  return isInteger(to) && dtypeBytes(to) <= dtypeBytes(from);
}

/** The groups of channels are the first factor where there are several. */
const groupsOfChannels = 0;

/**
 * Examples, groups, input and output channels of a group. Along spatial axes neighbours overlap, unless each result
 * reads elements of its own.
 */
function convRule(node: NodeOf<'conv'>): ShardingRule {
  const { strides, padLow, padHigh, lhsDilation, rhsDilation, groups } = node.attrs;
  const [x, w] = node.inputs.map(dims) as [FixedShape, FixedShape];
  const list = new FactorList();
  const group = groups > 1 ? list.axis(groups) : unsplit;
  const examples = list.axis(x[0]!);
  const outputs = list.axis(w[0]! / groups);
  const channels = list.axis(w[1]!, 'sum');
  const spatial = strides.map((stride, i): AxisFactors => {
    const [dim, count, size] = [x[i + 2]!, dims(node as Node)[i + 2]!, w[i + 2]!];
    const isPlain = padLow[i] === 0 && padHigh[i] === 0 && lhsDilation[i] === 1;
    return isPlain && areApart(dim, count, size, stride, rhsDilation[i]!) ? list.axis(count) : unsplit;
  });
  return {
    factors: list.all,
    operands: [
      [examples, [...group, ...channels], ...spatial],
      [[...group, ...outputs], channels, ...spatial.map(() => unsplit)],
    ],
    result: [examples, [...group, ...outputs], ...spatial],
  };
}

function convLocal(node: NodeOf<'conv'>, operands: readonly Node[], place: ShardPlace): Node {
  const { groups } = node.attrs;
  const own = groups > 1 ? groups / place.parts(groupsOfChannels) : groups;
  return place.b.add('conv', operands, { ...node.attrs, groups: own }) as Node;
}

/** Axes that are folded away are factors that fold what the processes give in the same way. */
function reduceRule(node: NodeOf<'reduce'>): ShardingRule {
  const { monoid, axes } = node.attrs;
  const list = new FactorList();
  const operand = dims(node.inputs[0]!).map((size, axis) =>
    axes.includes(axis) ? list.axis(size, monoid) : list.axis(size),
  );
  const result = operand.filter((_, axis) => !axes.includes(axis));
  return { factors: list.all, operands: [operand], result };
}

function argReduceRule(node: NodeOf<'argReduce'>): ShardingRule {
  const { factors, result } = alikeRule(node as Node);
  return { factors, operands: [result.toSpliced(node.attrs.axis, 0, unsplit)], result };
}

/** Whole blocks of each line. */
function rankRule(node: NodeOf<'radixRank'>): ShardingRule {
  const [lines, length] = dims(node.inputs[0]!) as [number, number];
  const { block } = node.attrs;
  const list = new FactorList();
  const line = list.axis(lines);
  const blocks = length > 0 && length % block === 0 ? list.axis(length / block) : unsplit;
  return { factors: list.all, operands: [[line, blocks]], result: [line, blocks, unsplit] };
}

/** Stacks whose first axis counts lines. */
function linesRule(node: Node): ShardingRule {
  const { operands, result } = wholeRule(node);
  const list = new FactorList();
  const line = list.axis(dims(node)[0]!);
  return {
    factors: list.all,
    operands: operands.map((axes) => axes.with(0, line)),
    result: result.with(0, line),
  };
}

const isSolve = ({ attrs: { kind } }: NodeOf<'factor'>): boolean =>
  kind === 'lowerSolve' || kind === 'unitLowerSolve';

/** Each right-hand side is solved for itself. */
function factorRule(node: NodeOf<'factor'>): ShardingRule {
  const { factors, operands, result } = linesRule(node as Node);
  if (!isSolve(node)) return { factors, operands, result };
  const list = new FactorList();
  list.all.push(...factors);
  const side = list.axis(dims(node as Node)[2]!);
  return {
    factors: list.all,
    operands: [operands[0]!, operands[1]!.with(2, side)],
    result: result.with(2, side),
  };
}

type FoldOp =
  | 'dot'
  | 'conv'
  | 'reduce'
  | 'argReduce'
  | 'argSort'
  | 'radixRank'
  | 'scan'
  | 'fft'
  | 'fftPart'
  | 'jacobiRows'
  | 'factor'
  | 'completeRows';

const ofSum = ({ attrs }: NodeOf<'reduce' | 'scan'>): ShardLinear | undefined =>
  attrs.monoid === 'sum' ? one(0) : undefined;

export const foldRules: { readonly [K in FoldOp & Op]: ShardingRow<K> } = {
  dot: {
    rule: dotRule,
    linear: ({ inputs, dtype }) => (keepsSums(inputs[0]!.dtype, dtype) ? one(0, 1) : undefined),
  },
  conv: { rule: convRule, local: convLocal, linear: () => one(0, 1) },
  reduce: { rule: reduceRule, linear: ofSum },
  argReduce: { rule: argReduceRule },
  argSort: { rule: (node) => alikeRule(node as Node, [node.attrs.axis]) },
  radixRank: { rule: rankRule },
  scan: { rule: (node) => alikeRule(node as Node, [node.attrs.axis]), linear: ofSum },
  fft: {
    rule: (node) => {
      const { factors, result } = alikeRule(node as Node, [node.attrs.axis, node.shape.length - 1]);
      return { factors, operands: [result, [unsplit]], result };
    },
    linear: () => one(0),
  },
  fftPart: {
    rule: (node) => {
      const { factors, result } = alikeRule(node as Node, [node.shape.length - 1]);
      return { factors, operands: [result, result, [unsplit]], result };
    },
    linear: () => together(0, 1),
  },
  jacobiRows: { rule: linesRule },
  factor: { rule: factorRule, linear: (node) => (isSolve(node) ? one(1) : undefined) },
  completeRows: { rule: linesRule },
};
