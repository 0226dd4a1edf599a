// The sharding rule of every primitive, one row an op; the type makes a missing row an error. Rules of several lines
// are written by family in rules-*.ts.

import { CompilerBug } from '../errors.ts';
import { dtypeBytes, isComplex, isInexact, isInteger, partType } from '../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import { mapRows, type ElementwiseOp, type Op } from '../ir/ops.ts';
import { sameShape } from '../ir/shape.ts';
import type { ShardLinear, OwnRow, ShardPlace, ShardingRow, ShardingRule } from './rule.ts';
import { alikeRule, FactorList, one, together, wholeRule } from './row.ts';
import { foldRules } from './rules-fold.ts';
import { indexedRules } from './rules-indexed.ts';
import { loopRow } from './rules-loop.ts';
import { sourceRules } from './rules-source.ts';
import { viewRules } from './rules-view.ts';

/** One factor an axis, and linear in these operands. */
const pointwise = <K extends Op>(linear: ShardLinear): OwnRow<K> => ({
  rule: (node) => alikeRule(node as Node),
  linear: () => linear,
});

/** Integers wrap, so that sums survive where bits are cut off; floats are rounded where there are fewer bits. */
function castLinear({ inputs, dtype: to }: NodeOf<'cast'>): ShardLinear | undefined {
  const from = inputs[0]!.dtype;
  if (from === to) return one(0);
  if (isInteger(from)) return isInteger(to) && dtypeBytes(to) <= dtypeBytes(from) ? one(0) : undefined;
  if (!isInexact(from) || !isInexact(to) || (isComplex(from) && !isComplex(to))) return undefined;
  const [narrow, wide] = [partType(from), partType(to)];
  return narrow === wide || dtypeBytes(narrow) < dtypeBytes(wide) ? one(0) : undefined;
}

const elementwise: { readonly [K in ElementwiseOp]?: ShardingRow<K> } = {
  add: pointwise(together(0, 1)),
  sub: pointwise(together(0, 1)),
  neg: pointwise(one(0)),
  mul: pointwise(one(0, 1)),
  // Integers are cut off at the point.
  div: {
    rule: (node) => alikeRule(node as Node),
    linear: ({ dtype }) => (isInexact(dtype) ? one(0) : undefined),
  },
  cast: { rule: (node) => alikeRule(node as Node), linear: castLinear },
  where: {
    rule: (node) => alikeRule(node as Node),
    linear: ({ dtype }) => (dtype === 'bool' ? undefined : together(1, 2)),
  },
  // x·y + z: the parts of x and of z, with y the same everywhere.
  fma: pointwise(together(0, 2)),
};

/**
 * The first operand, whose result it is, and others that are there for what is derived or waited for: these stay as they
 * lie, each by factors of its own.
 */
const firstOfAll: OwnRow<'customVjp' | 'barrier'> = {
  rule: (node) => {
    const { factors, operands, result } = alikeRule(node as Node);
    const list = new FactorList();
    list.all.push(...factors);
    const others = node.inputs.map((operand, i) =>
      sameShape(operand.shape, node.shape) ? operands[i]! : dims(operand).map((size) => list.axis(size)),
    );
    return { factors: list.all, operands: others, result };
  },
  linear: () => one(0),
};

/** The row of each op. */
export const shardingRules: { readonly [K in Op]: ShardingRow<K> } = {
  ...mapRows(() => 'elementwise' as const),
  ...(elementwise as { readonly [K in ElementwiseOp]: ShardingRow<K> }),
  ...viewRules,
  ...foldRules,
  ...indexedRules,
  parameter: 'source',
  constant: 'source',
  ...sourceRules,
  iterate: loopRow({ ruleOf, linearOf, localOf }),
  stopGradient: pointwise(one(0)),
  customVjp: firstOfAll,
  barrier: firstOfAll,
  complex: pointwise(together(0, 1)),
  real: pointwise(one(0)),
  imag: pointwise(one(0)),
  conj: pointwise(one(0)),
  // The layouts of these are said, or they are about parts already.
  shard: 'elementwise',
  toPart: 'edge',
  toWhole: 'edge',
  allReduce: 'collective',
  allGather: 'collective',
  reduceScatter: 'collective',
  allToAll: 'collective',
  permuteRanks: 'collective',
  broadcastRank: 'collective',
  rankIndex: 'collective',
};

const rowOf = ({ op }: Node): ShardingRow => shardingRules[op] as unknown as ShardingRow;

/** How the axes of a node's operands and of its result belong together; undefined of sources, collectives and edges. */
export function ruleOf(node: Node): ShardingRule | undefined {
  const row = rowOf(node);
  switch (row) {
    case 'source':
    case 'collective':
    case 'edge':
      return undefined;
    case 'elementwise':
      return alikeRule(node);
    case 'whole':
      return wholeRule(node);
    default:
      return row.rule(node);
  }
}

/** The op on this process's parts of the operands, cut as the rule of the node says under the place's assignment. */
export function localOf(node: Node, operands: readonly Node[], place: ShardPlace): Node {
  const row = rowOf(node);
  if (row === 'source') throw new CompilerBug('sharding', `${node.op} has no operands to be split`);
  const own = typeof row === 'string' ? undefined : row.local?.(node, operands, place);
  return own ?? place.b.copy(node, operands);
}

/** Which operands may be parts of a sum that the processes have yet to add up; undefined: none. */
export function linearOf(node: Node): ShardLinear | undefined {
  const row = rowOf(node);
  return typeof row === 'string' ? undefined : row.linear?.(node);
}
