// Distinct elements, or distinct slices along an axis. Slices are named by the rank of their content:
// ranks of single elements come from a sort, and ranks of pairs of neighbours from two stable sorts
// by the ranks of their parts, so that a slice of n elements has its own after log n rounds (Karp,
// Miller and Rosenberg, 1972). A NaN equals nothing, and stands after all else.

import * as arg from '../../../ir/arguments.ts';
import { binary, cast, full, permute, reduce, reshape, slice, sub } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { iota, orderOf } from '../../formula/elementwise.ts';
import { checkNotComplex } from '../operand.ts';
import { selectRows } from '../shape/gather.ts';
import { concat, padConstant, sliceAxis } from '../../formula/layout.ts';
import { runningCount, sizeOption, truePlaces } from './count.ts';
import { checkReadable, readCount } from '../readable.ts';

/** What distinct elements are taken of. */
export interface UniqueOptions {
  /** Distinct slices along this axis; by default none, and distinct elements. */
  readonly axis?: number;
  /** Gives `inverse` as well; false by default. */
  readonly returnInverse?: boolean;
  /** Gives `counts` as well; false by default. */
  readonly returnCounts?: boolean;
  /**
   * How many distinct ones the result has room for, for a result without a read; by default as many
   * as there are, which is read.
   */
  readonly size?: number;
}

/** Distinct elements or slices. */
export interface Unique {
  readonly values: Tensor;
  /** For each element or slice the place of its like in `values`, in i32. */
  readonly inverse?: Tensor;
  /** How often each of the values is there, in i32. */
  readonly counts?: Tensor;
  /** With `size`: how many distinct ones there are, an i32 of rank 0. */
  readonly count?: Tensor;
}

/** What `unique` gives for these options. */
export type UniqueOf<O extends UniqueOptions> = Unique &
  (O extends { readonly returnInverse: true } ? { readonly inverse: Tensor } : unknown) &
  (O extends { readonly returnCounts: true } ? { readonly counts: Tensor } : unknown) &
  (O extends { readonly size: number } ? { readonly count: Tensor } : unknown);

/** Directly, or after one count was read where no `size` is given. */
export type UniqueResult<O extends UniqueOptions> = O extends { readonly size: number }
  ? UniqueOf<O>
  : Promise<UniqueOf<O>>;

const takesUnique = arg.takes<(x: Tensor, options?: UniqueOptions) => unknown>(
  ['the operand', aTensor],
  [
    'options',
    arg.options<UniqueOptions>({
      axis: arg.integer,
      returnInverse: arg.flag,
      returnCounts: arg.flag,
      size: sizeOption,
    }),
  ],
);

/** Slices in an order where equal ones are neighbours. */
interface Runs {
  /** i32 [n]: which slice stands at each place. */
  readonly order: Node;
  /** bool [n]: whether another run begins at each place. */
  readonly begins: Node;
}

type Arrange = (b: GraphBuilder, rows: Node) => Runs;

/** Whether each row differs from the one before it; the first does. */
function beginnings(b: GraphBuilder, parts: readonly Node[]): Node {
  const [count] = dims(parts[0]!) as [number, ...number[]];
  const differs = parts.map((part) => {
    const later = sliceAxis(b, part, 0, 1, count - 1);
    const unlike = binary(b, 'ne', later, sliceAxis(b, part, 0, 0, count - 1));
    return unlike;
  });
  const either = differs.reduce((one, other) => binary(b, 'or', one, other));
  return concat(b, [full(b, [1, ...dims(either).slice(1)], 1, 'bool'), either], 0);
}

/** For the runs of each column of [n, k], the number of the run that each element is in. */
function ranksOf(b: GraphBuilder, order: Node, begins: Node): Node {
  const attrs = { monoid: 'sum', axis: 0, reverse: false, exclusive: false } as const;
  const numbers = sub(b, b.add('scan', [cast(b, begins, 'i32')], attrs) as Node, 1);
  return b.add('permuteScatter', [numbers, order], { axis: 0 }) as Node;
}

const gather = (b: GraphBuilder, x: Node, places: Node): Node =>
  b.add('gather', [x, places], { axis: 0 }) as Node;

/** Equal rows of [n, k] brought together, in lexicographic order. */
const sortedRuns: Arrange = (b, rows) => {
  const keys = rows.dtype === 'bool' ? cast(b, rows, 'u8') : rows;
  let order = orderOf(b, keys, 0, false);
  let begins = beginnings(b, [gather(b, keys, order)]);
  for (let width = dims(rows)[1]!; width > 1; width = dims(order)[1]!) {
    const ranks = ranksOf(b, order, begins);
    const count = dims(rows)[0]!;
    const even = padConstant(b, ranks, [0, 0], [0, width % 2], 0);
    const half = Math.ceil(width / 2);
    const pairs = reshape(b, even, [count, half, 2]);
    const [left, right] = [0, 1].map((i) => reshape(b, sliceAxis(b, pairs, 2, i, 1), [count, half]));
    const byRight = orderOf(b, right!, 0, false);
    const byLeft = orderOf(b, gather(b, left!, byRight), 0, false);
    order = gather(b, byRight, byLeft);
    begins = beginnings(b, [gather(b, left!, order), gather(b, right!, order)]);
  }
  const [count] = dims(rows) as [number, number];
  return { order: reshape(b, order, [count]), begins: reshape(b, begins, [count]) };
};

/** Equal neighbours among the rows of [n, k], which stay where they are. */
const neighbours: Arrange = (b, rows) => {
  const count = dims(rows)[0]!;
  return { order: iota(b, [count], 0), begins: reduce(b, 'or', beginnings(b, [rows]), [1]) };
};

/** x as rows of the slices along an axis, or of single elements. */
function rowsOf(b: GraphBuilder, x: Node, axis: number | undefined): Node {
  const shape = dims(x);
  if (axis === undefined) return reshape(b, x, [sizeOf(shape), 1]);
  const others = shape.flatMap((_, i) => (i === axis ? [] : [i]));
  return reshape(b, permute(b, x, [axis, ...others]), [shape[axis]!, sizeOf(others.map((i) => shape[i]!))]);
}

type Recorded = readonly [values: Node, inverse: Node, counts: Node];

function distinctNodes(
  b: GraphBuilder,
  x: Node,
  axis: number | undefined,
  size: number,
  { order, begins }: Runs,
): Recorded {
  const total = dims(order)[0]!;
  const running = runningCount(b, begins);
  const starts = truePlaces(b, running, size + 1);
  const firsts = gather(b, order, sliceAxis(b, starts, 0, 0, size));
  const inside = binary(b, 'lt', sliceAxis(b, starts, 0, 0, size), total);
  const places = b.add('where', [inside, firsts, full(b, [size], total, 'i32')], {}) as Node;
  const line = axis === undefined ? reshape(b, x, [total]) : x;
  const values = selectRows(b, line, places, axis ?? 0);
  const numbers = sub(b, running, 1);
  const inverse = b.add('permuteScatter', [numbers, order], { axis: 0 }) as Node;
  const counts = sub(b, slice(b, starts, [1], [size]), slice(b, starts, [0], [size]));
  return [values, axis === undefined ? reshape(b, inverse, dims(x)) : inverse, counts];
}

/** Nothing along the axis: nothing is distinct. */
function emptyNodes(b: GraphBuilder, x: Node, axis: number | undefined, size: number): Recorded {
  const shape = axis === undefined ? [size] : dims(x).with(axis, size);
  const counted = axis === undefined ? dims(x) : [0];
  return [full(b, shape, 0, x.dtype), full(b, counted, 0, 'i32'), full(b, [size], 0, 'i32')];
}

function distinct(op: string, x: Tensor, options: UniqueOptions, arrange: Arrange): Unique | Promise<Unique> {
  const { size, returnInverse = false, returnCounts = false } = options;
  const axis = options.axis === undefined ? undefined : normalizeAxis(op, options.axis, x.rank);
  const total = axis === undefined ? x.size : x.shape[axis]!;
  const width = axis === undefined || total === 0 ? 1 : x.size / total;
  const isEmpty = total === 0 || width === 0;
  const runs = (b: GraphBuilder, node: Node): Runs => {
    // Slices of no elements are equal.
    const rows = width === 0 ? full(b, [total, 1], 0, 'i32') : rowsOf(b, node, axis);
    return arrange(b, rows);
  };
  const told = (wanted: number, sized: boolean): Unique => {
    const results = recordMany([x], (b, [node]) => {
      const known = total === 0 ? undefined : runs(b, node!);
      const [values, inverse, counts] =
        known === undefined
          ? emptyNodes(b, node!, axis, wanted)
          : distinctNodes(b, node!, axis, wanted, known);
      const number =
        known === undefined ? full(b, [], 0, 'i32') : reduce(b, 'sum', cast(b, known.begins, 'i32'), [0]);
      return [
        values,
        ...(returnInverse ? [inverse] : []),
        ...(returnCounts ? [counts] : []),
        ...(sized ? [number] : []),
      ];
    });
    const [values] = results;
    const rest = results.slice(1);
    return {
      values: values!,
      ...(returnInverse ? { inverse: rest.shift()! } : {}),
      ...(returnCounts ? { counts: rest.shift()! } : {}),
      ...(sized ? { count: rest.shift()! } : {}),
    };
  };
  if (size !== undefined) return told(size, true);
  checkReadable(op);
  if (isEmpty && total === 0) return Promise.resolve(told(0, false));
  const [count] = recordMany([x], (b, [node]) => [
    reduce(b, 'sum', cast(b, runs(b, node!).begins, 'i32'), [0]),
  ]);
  return readCount(count!).then((found) => told(found, false));
}

/**
 * The distinct elements in ascending order, or the distinct slices along an axis in lexicographic
 * order; `inverse` and `counts` where asked for. Asynchronous unless a `size` is given.
 *
 * @example
 * const v = sn.tensor([3, 1, 1, 2, 2]);
 * sn.unique(v, { returnCounts: true });
 */
export function unique<const O extends UniqueOptions = UniqueOptions>(
  x: Tensor,
  options?: O,
): UniqueResult<O> {
  takesUnique('unique', x, options);
  checkNotComplex('unique', x);
  return distinct('unique', x, options ?? {}, sortedRuns) as UniqueResult<O>;
}

/**
 * As `unique`, of runs of equal neighbours: each run counts as one, and their order stays.
 *
 * @example
 * const v = sn.tensor([3, 1, 1, 2, 2]);
 * sn.uniqueConsecutive(v);
 */
export function uniqueConsecutive<const O extends UniqueOptions = UniqueOptions>(
  x: Tensor,
  options?: O,
): UniqueResult<O> {
  takesUnique('uniqueConsecutive', x, options);
  return distinct('uniqueConsecutive', x, options ?? {}, neighbours) as UniqueResult<O>;
}
