// Bags of rows of a table, summed, averaged or folded to their maximum, without a tensor of all rows
// being part of the result.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  reduce,
  reshape,
  sub,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkInteger, checkRank, show } from '../operand.ts';
import { selectRows } from './gather.ts';

export interface EmbeddingBagOptions {
  /**
   * Where each bag begins in a vector of indices, [B], ascending from 0; by default each row of a
   * matrix is a bag.
   */
  readonly offsets?: Tensor;
  /** How the rows of a bag become one; 'mean' by default. */
  readonly mode?: 'sum' | 'mean' | 'max';
  /** A factor for each index, for 'sum'; 1 by default. */
  readonly perSampleWeights?: Tensor;
  /** Indices of this row count for nothing; none by default. */
  readonly paddingIdx?: number;
  /** The offsets have one more, the number of indices; false by default. */
  readonly includeLastOffset?: boolean;
}

const takesEmbeddingBag = arg.takes<typeof embeddingBag>(
  ['the indices', aTensor],
  ['the weight', aTensor],
  [
    'options',
    arg.options<EmbeddingBagOptions>({
      offsets: aTensor,
      mode: arg.oneOf('sum', 'mean', 'max'),
      perSampleWeights: aTensor,
      paddingIdx: arg.integer,
      includeLastOffset: arg.flag,
    }),
  ],
);

type Mode = NonNullable<EmbeddingBagOptions['mode']>;

/**
 * Bags of rows of a [V, D] table: indices [B, L] are a bag a row; a vector of indices is cut into
 * bags by `offsets`. Gives [B, D]; a bag of nothing is 0.
 *
 * @example
 * const k = sn.tensor([[1, 1], [0, 2], [3, 0]]);
 * const bags = sn.tensor([[0, 1], [2, 2]], { dtype: 'i32' });
 * sn.embeddingBag(bags, k);
 */
export function embeddingBag(indices: Tensor, weight: Tensor, options: EmbeddingBagOptions = {}): Tensor {
  takesEmbeddingBag('embeddingBag', indices, weight, options);
  const op = 'embeddingBag';
  const { offsets, mode = 'mean', perSampleWeights, paddingIdx, includeLastOffset = false } = options;
  checkInteger(op, 'the indices', indices);
  checkRank(op, 'the indices', indices, 1, 2);
  checkRank(op, 'the weight', weight, 2);
  checkFloat(op, weight, perSampleWeights);
  const [rows, width] = weight.shape as readonly [number, number];
  if (offsets !== undefined) checkInteger(op, 'the offsets', offsets);
  if ((offsets === undefined) !== (indices.rank === 2) || (offsets !== undefined && offsets.rank !== 1))
    throw new TensorError('E_SHAPE', op, `expects indices [B,L], or [n] and offsets [B]: ${show(indices)}`);
  const bags = offsets === undefined ? indices.shape[0]! : offsets.size - (includeLastOffset ? 1 : 0);
  if (bags < 0) throw new TensorError('E_SHAPE', op, 'includeLastOffset needs an offset');
  if (perSampleWeights !== undefined) {
    if (mode !== 'sum') throw new TensorError('E_VALUE', op, `perSampleWeights are for 'sum', not '${mode}'`);
    const fits =
      perSampleWeights.rank === indices.rank &&
      perSampleWeights.shape.every((dim, i) => dim === indices.shape[i]);
    if (!fits)
      throw new TensorError('E_SHAPE', op, `a weight for each index: ${show(indices, perSampleWeights)}`);
  }
  watchRange(op, 'index', indices, 0, rows, `the ${rows} rows of ${show(weight)}`);
  const padding = paddingIdx === undefined ? undefined : normalizeAxis(op, paddingIdx, rows);
  const count = indices.size;
  return apply([indices, weight, perSampleWeights, offsets], (b, places, table, factors, starts) =>
    formula.widened(b, table, (wide) => {
      const flat = reshape(b, formula.narrowIndex(b, places), [count]);
      const found = selectRows(b, wide, flat, 0);
      const shape = [count, width];
      const along = (x: Node): Node => broadcast(b, reshape(b, x, [count, 1]), shape);
      const weighted =
        factors === undefined
          ? found
          : mul(b, found, along(reshape(b, cast(b, factors, wide.dtype), [count])));
      const counts = padding === undefined ? undefined : binary(b, 'ne', flat, padding);
      const folded =
        starts === undefined
          ? rowBags(b, weighted, counts, [bags, indices.shape[1]!, width], mode)
          : runBags(b, weighted, counts, bagOf(b, starts, bags, count), bags, mode);
      return folded;
    }),
  );
}

/** The bag of each index. */
function bagOf(b: GraphBuilder, starts: Node, bags: number, count: number): Node {
  const all = cast(b, formula.narrowIndex(b, starts), 'i32');
  const own = b.add('slice', [all], { start: [0], size: [bags], step: [1] }) as Node;
  const reached = b.add('searchSorted', [own, formula.iota(b, [count], 0)], { right: true }) as Node;
  return sub(b, reached, 1);
}

/** Rows where `counts`, else a value that changes nothing. */
function masked(b: GraphBuilder, rows: Node, counts: Node | undefined, value: number): Node {
  if (counts === undefined) return rows;
  const spread = broadcast(b, reshape(b, counts, [dims(rows)[0]!, 1]), dims(rows));
  return where(b, spread, rows, fullLike(b, rows, value));
}

/** Bags of equal size, behind one another. */
function rowBags(
  b: GraphBuilder,
  rows: Node,
  counts: Node | undefined,
  shape: readonly [number, number, number],
  mode: Mode,
): Node {
  const [bags, length, width] = shape;
  const empty = full(b, [bags, width], 0, rows.dtype);
  if (length === 0) return empty;
  const held =
    counts === undefined
      ? full(b, [bags], length, rows.dtype)
      : reduce(b, 'sum', reshape(b, cast(b, counts, rows.dtype), [bags, length]), [1]);
  if (mode === 'max') {
    const most = reduce(b, 'max', reshape(b, masked(b, rows, counts, -Infinity), shape), [1]);
    return counts === undefined ? most : unlessEmpty(b, most, held);
  }
  const sums = reduce(b, 'sum', reshape(b, masked(b, rows, counts, 0), shape), [1]);
  return mode === 'mean' ? shared(b, sums, held) : sums;
}

/** Bags by number, one for each row. */
function runBags(
  b: GraphBuilder,
  rows: Node,
  counts: Node | undefined,
  bag: Node,
  bags: number,
  mode: Mode,
): Node {
  const [count, width] = dims(rows) as [number, number];
  const index = broadcast(b, reshape(b, bag, [count, 1]), [count, width]);
  const one = counts === undefined ? full(b, [count], 1, rows.dtype) : cast(b, counts, rows.dtype);
  const held = b.add('scatter', [full(b, [bags], 0, rows.dtype), bag, one], { axis: 0, mode: 'add' }) as Node;
  const into = (value: number, fold: 'add' | 'max'): Node =>
    b.add('scatter', [full(b, [bags, width], value, rows.dtype), index, masked(b, rows, counts, value)], {
      axis: 0,
      mode: fold,
    }) as Node;
  if (mode === 'max') return unlessEmpty(b, into(-Infinity, 'max'), held);
  const sums = into(0, 'add');
  return mode === 'mean' ? shared(b, sums, held) : sums;
}

function spreadBags(b: GraphBuilder, held: Node, like: Node): Node {
  return broadcast(b, reshape(b, held, [dims(held)[0]!, 1]), dims(like));
}

function shared(b: GraphBuilder, sums: Node, held: Node): Node {
  return div(b, sums, spreadBags(b, binary(b, 'max', held, 1), sums));
}

function unlessEmpty(b: GraphBuilder, most: Node, held: Node): Node {
  return where(b, spreadBags(b, binary(b, 'eq', held, 0), most), fullLike(b, most, 0), most);
}
