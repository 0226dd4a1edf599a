// Operands of dot that are rows of quantized blocks: which format they have, and where rows begin. An operand
// that is decoded along the contracted axis, from the first column on, can be multiplied without unpacking.

import {
  atomsOf,
  constantIndex,
  modIndex,
  printIndex,
  subIndex,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import type { BlockFormat } from '../../../ir/blocks/format.ts';
import { blockValues, rowWords } from '../../../ir/blocks/sizes.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import { wordPlaces } from '../../../schedule/expression/evaluate.ts';
import type { Axis } from '../../../schedule/kernel.ts';

/** Rows of blocks in memory. */
export interface BlockRows {
  readonly format: BlockFormat;
  readonly words: Node;
  /** The word at which a row begins. */
  readonly base: IndexExpr;
}

/** The rows that an operand is, if its columns are the contracted axis; undefined for any other. */
export function blockRows(operand: Expr, k: Axis): BlockRows | undefined {
  if (operand.kind !== 'decode' || operand.index !== k.atom || k.atom.kind !== 'axis') return undefined;
  const { format, args } = operand;
  const first = args[0];
  const values = blockValues(format);
  if (first?.kind !== 'read' || k.extent % values !== 0) return undefined;
  if (dims(first.node).at(-1) !== rowWords(format, k.extent)) return undefined;
  const places = wordPlaces.value(format, k.extent, k.atom);
  const base = subIndex(first.index, places[0] ?? first.index);
  const isRow = (arg: Expr, i: number): boolean => {
    const place = places[i];
    return (
      arg.kind === 'read' &&
      arg.node === first.node &&
      place !== undefined &&
      printIndex(subIndex(arg.index, place)) === printIndex(base)
    );
  };
  if (modIndex(base, 4) !== constantIndex(0)) return undefined;
  if (atomsOf(base).includes(k.atom) || !args.every(isRow)) return undefined;
  return { format, words: first.node, base };
}
