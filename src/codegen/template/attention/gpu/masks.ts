// What is known of the expressions of an attention kernel before it runs: blocks of keys in which all masks that compare
// the row with the key hold, and which expressions are those of a softmax.

import type { Node } from '../../../../ir/graph.ts';
import { isElementwise } from '../../../../ir/ops.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import { diagonalOf } from '../../../../schedule/fusion/key-range.ts';
import type { Attention } from '../rows.ts';

/**
 * Conditions that hold at all keys of blocks on one side of a diagonal: up to row + offset (`before`), or from there on
 * (`behind`). Blocks before it are whole, too.
 */
export interface Certain {
  readonly side: 'before' | 'behind';
  readonly offset: number;
  readonly conditions: ReadonlySet<Expr>;
}

export function certainOf({ row, key, stages, outers, online }: Attention): Certain {
  const [before, behind] = [new Map<Expr, number>(), new Map<Expr, number>()];
  const seen = new Set<Expr>();
  const search = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    const { first, last } = diagonalOf(expr, row, key) ?? {};
    if (last !== undefined) before.set(expr, last);
    if (first !== undefined) behind.set(expr, first);
    argsOf(expr).forEach(search);
  };
  for (const { value } of stages) search(value);
  for (const { weight } of outers) search(weight);
  if (online !== undefined)
    for (const { core, guard } of [...online.stages, ...online.outers]) {
      search(core);
      if (guard !== undefined) search(guard);
    }
  if (behind.size > 0 && before.size === 0)
    return { side: 'behind', offset: Math.max(...behind.values()), conditions: new Set(behind.keys()) };
  return {
    side: 'before',
    offset: Math.min(Infinity, ...before.values()),
    conditions: new Set(before.keys()),
  };
}

/** Whether a value of the row or of the key is the maximum of what is made of the kernel's scores. */
export function isMaximum(expr: Expr, { inners }: Attention): boolean {
  if (expr.kind !== 'result' && expr.kind !== 'read') return false;
  const seen = new Set<Node>();
  const isOfScores = (of: Node): boolean => {
    if (inners.some(({ node }) => node === of)) return true;
    if (seen.has(of) || !(isElementwise(of.op) || isPlaced(of))) return false;
    seen.add(of);
    return of.inputs.some((input) => isOfScores(input as Node));
  };
  const of = maximised(expr.node);
  return of !== undefined && isOfScores(of);
}

/** What a node is the maximum of, along an axis; undefined where it is none. */
function maximised(node: Node): Node | undefined {
  const [x] = node.inputs as readonly Node[];
  if (node.op === 'reduce') return node.attrs.monoid === 'max' ? x : undefined;
  return isPlaced(node) ? maximised(x!) : undefined;
}

/** Whether a node has the elements of its input, placed otherwise. */
function isPlaced({ op }: Node): boolean {
  return op === 'reshape' || op === 'broadcast' || op === 'permute';
}

/**
 * Whether a value of the row or of the key is the sum of e^(x − max x), perhaps with a 1 where that is 0: at least 1, or NaN.
 * The sum and the maximum are of the same keys: one over fewer may be as small as it likes, one over more may overflow.
 */
export function isWeightSum(expr: Expr): boolean {
  if (expr.kind === 'result' || expr.kind === 'read') return isWeightSumNode(expr.node);
  return expr.kind === 'op' && expr.op === 'add' && expr.args.some(isWeightSum) && expr.args.some(isFlag);
}

const isFlag = (expr: Expr): boolean =>
  expr.kind === 'op' && expr.op === 'cast' && expr.args[0]!.dtype === 'bool';

function isWeightSumNode(node: Node): boolean {
  const [x, y] = node.inputs as readonly Node[];
  if (isPlaced(node)) return isWeightSumNode(x!);
  if (node.op === 'add')
    return (
      [x!, y!].some(isWeightSumNode) &&
      [x!, y!].some(({ op, inputs }) => op === 'cast' && inputs[0]!.dtype === 'bool')
    );
  return node.op === 'reduce' && node.attrs.monoid === 'sum' && isWeightNode(x!);
}

function isWeightNode(node: Node): boolean {
  const [seen, terms] = node.op === 'where' ? (node.inputs as readonly Node[]) : [undefined, node];
  const [power] = terms!.inputs as readonly Node[];
  if (terms!.op !== 'exp' || power!.op !== 'sub') return false;
  const [x, max] = power!.inputs as readonly [Node, Node];
  const of = maximised(max);
  if (seen === undefined) return of === x;
  return of?.op === 'where' && of.inputs[0] === seen && of.inputs[1] === x;
}
