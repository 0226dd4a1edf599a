// Sorted elements and their places along an axis: an argSort, and a gather by it; and where values
// stand among sorted ones.

import { TensorError } from '../../../errors.ts';
import { reshape } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../recording/record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../elementwise/formula.ts';
import { apply, checkRank, show } from '../operand.ts';
import { sliceAxis } from '../shape/layout.ts';

export interface SortOptions {
  /** From the largest to the smallest; false by default. */
  readonly descending?: boolean;
}

/** Rank 0 sorts as one element. */
function row(x: Tensor): readonly number[] {
  return x.rank === 0 ? [1] : x.shape;
}

const takesSort = arg.takes<typeof sort>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<SortOptions>({ descending: arg.flag })],
);

/**
 * The elements along an axis in order, and their i32 positions; equal ones keep their order, NaN
 * counts as the greatest.
 */
export function sort(x: Tensor, axis = -1, options: SortOptions = {}): [values: Tensor, indices: Tensor] {
  takesSort('sort', x, axis, options);
  return sorted('sort', x, axis, options.descending === true, undefined);
}

/** The i32 positions of the elements along an axis in order. */
export function argsort(x: Tensor, axis = -1, options: SortOptions = {}): Tensor {
  takesSort('argsort', x, axis, options);
  const at = normalizeAxis('argsort', axis, Math.max(1, x.rank));
  return apply([x], (b, node) => {
    const order = formula.orderOf(b, reshape(b, node, row(x)), at, options.descending === true);
    return reshape(b, order, x.shape);
  });
}

export interface TopkOptions {
  /** The largest (default) or the smallest. */
  readonly largest?: boolean;
}

const takesTopk = arg.takes<typeof topk>(
  ['x', aTensor],
  ['k', arg.count(0)],
  ['axis', arg.inside()],
  ['options', arg.options<TopkOptions>({ largest: arg.flag })],
);

/** The k largest (or smallest) elements along an axis, best first, and their i32 positions. */
export function topk(
  x: Tensor,
  k: number,
  axis = -1,
  options: TopkOptions = {},
): [values: Tensor, indices: Tensor] {
  takesTopk('topk', x, k, axis, options);
  const size = x.shape[normalizeAxis('topk', axis, Math.max(1, x.rank))] ?? 1;
  if (k > size) {
    throw new TensorError('E_VALUE', 'topk', `cannot choose ${k} of ${size} elements: ${show(x)}`);
  }
  return sorted('topk', x, axis, options.largest !== false, k);
}

function sorted(
  op: string,
  x: Tensor,
  axis: number,
  descending: boolean,
  count: number | undefined,
): [values: Tensor, indices: Tensor] {
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = reshape(b, node!, row(x));
    const order = formula.orderOf(b, line, at, descending);
    const places = count === undefined ? order : sliceAxis(b, order, at, 0, count);
    const chosen = b.add('gather', [line, places], { axis: at }) as Node;
    return x.rank === 0 && count !== 0
      ? [chosen, places].map((result) => reshape(b, result, []))
      : [chosen, places];
  });
  return [values!, indices!];
}

export interface SearchsortedOptions {
  /** Counts boundaries that equal the value as well; false by default. */
  readonly right?: boolean;
}

const takesSearchsorted = arg.takes<typeof searchsorted>(
  ['the boundaries', aTensor],
  ['the values', aTensor],
  ['options', arg.options<SearchsortedOptions>({ right: arg.flag })],
);

/**
 * For each value, how many of the ascending boundaries lie below it (i32), by a binary search:
 * where it would be inserted. NaN is last.
 */
export function searchsorted(boundaries: Tensor, values: Tensor, options: SearchsortedOptions = {}): Tensor {
  takesSearchsorted('searchsorted', boundaries, values, options);
  checkRank('searchsorted', 'the boundaries', boundaries, 1);
  if (boundaries.dtype !== values.dtype) {
    throw new TensorError('E_DTYPE', 'searchsorted', `both must have one dtype: ${show(boundaries, values)}`);
  }
  return apply([boundaries, values], (b, table, node) => {
    const line = reshape(b, node, [values.size]);
    const found = b.add('searchSorted', [table, line], { right: options.right === true }) as Node;
    return reshape(b, found, values.shape);
  });
}
