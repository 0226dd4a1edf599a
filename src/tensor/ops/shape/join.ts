// Joining and splitting tensors along an axis, and repeating their elements.

import type { DType } from '../../../ir/dtype.ts';
import type { Each, Joined } from '../../inferred.ts';
import { showValue, TensorError } from '../../../errors.ts';
import { broadcast, cast, reduce, reshape } from '../../../ir/build.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { dims } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor, tensors as someTensors } from '../../expect.ts';
import { fromHost, record, recordMany } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import { iota, narrowIndex } from '../../formula/elementwise.ts';
import { apply, checkCount, checkInteger, checkRank, resultType, show } from '../operand.ts';
import { checkReadable, readCount } from '../readable.ts';
import { selectRows } from './gather.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';

const takesCat = arg.takes<typeof cat>(['tensors', someTensors], ['axis', arg.inside()]);

/**
 * Joined along an axis they have; all other sizes agree, dtypes promote.
 *
 * @jax jnp.concatenate, jnp.concat
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.cat([x, y], 1);
 */
export function cat<D extends DType>(tensors: readonly Tensor<D>[], axis: number = 0): Tensor<Joined<D>> {
  takesCat('cat', tensors, axis);
  const first = tensors[0];
  if (first === undefined) throw new TensorError('E_VALUE', 'cat', 'expects at least one tensor');
  const at = normalizeAxis('cat', axis, first.rank);
  const fits = tensors.every(
    (x) => x.rank === first.rank && x.shape.every((dim, i) => i === at || dim === first.shape[i]),
  );
  if (!fits)
    throw new TensorError('E_SHAPE', 'cat', `sizes must agree but for axis ${at}: ${show(...tensors)}`);
  const dtype = resultType(tensors);
  return record(tensors, (b, nodes) =>
    concat(
      b,
      nodes.map((node) => cast(b, node, dtype)),
      at,
    ),
  );
}

/**
 * Joined along a new axis; all shapes agree, dtypes promote.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.stack([x, y]);
 */
export function stack<D extends DType>(tensors: readonly Tensor<D>[], axis: number = 0): Tensor<Joined<D>> {
  takesCat('stack', tensors, axis);
  const first = tensors[0];
  if (first === undefined) throw new TensorError('E_VALUE', 'stack', 'expects at least one tensor');
  const at = normalizeAxis('stack', axis, first.rank + 1);
  if (!tensors.every((x) => x.rank === first.rank && x.shape.every((dim, i) => dim === first.shape[i]))) {
    throw new TensorError('E_SHAPE', 'stack', `shapes must agree: ${show(...tensors)}`);
  }
  const dtype = resultType(tensors);
  const shape = [...first.shape.slice(0, at), 1, ...first.shape.slice(at)];
  return record(tensors, (b, nodes) =>
    b.add(
      'concat',
      nodes.map((node) => reshape(b, cast(b, node, dtype), shape)),
      { axis: at },
    ),
  );
}

function parts(x: Tensor, axis: number, sizes: readonly number[]): Tensor[] {
  return recordMany([x], (b, [node]) => {
    let start = 0;
    return sizes.map((size) => {
      const part = sliceAxis(b, node!, axis, start, size);
      start += size;
      return part;
    });
  });
}

const takesSplit = arg.takes<typeof split>(['x', aTensor], ['sizes', arg.inside()], ['axis', arg.inside()]);

/**
 * Consecutive parts along an axis: of `size` each (the last may be smaller), or of the listed
 * sizes.
 *
 * @method
 * @jax none
 * @torch torch.split, torch.split_with_sizes
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.split(x, [1, 2], 1);
 */
export function split<D extends DType, const S extends readonly number[]>(
  x: Tensor<D>,
  sizes: S,
  axis?: number,
): Each<Tensor<D>, S>;
export function split<D extends DType>(
  x: Tensor<D>,
  size: number | readonly number[],
  axis?: number,
): Tensor<D>[];
export function split(x: Tensor, size: number | readonly number[], axis = 0): Tensor[] {
  takesSplit('split', x, size, axis);
  const at = normalizeAxis('split', axis, x.rank);
  const total = x.shape[at]!;
  if (typeof size === 'number') {
    checkCount('split', 'the size of a part', size, 1);
    const count = Math.max(1, Math.ceil(total / size));
    return parts(
      x,
      at,
      Array.from({ length: count }, (_, i) => Math.min(size, total - i * size)),
    );
  }
  checkList('split', 'sizes', size);
  const sizes = [...size];
  const areSizes = sizes.every((part) => Number.isInteger(part) && part >= 0);
  if (!areSizes || sizes.reduce((whole, part) => whole + part, 0) !== total) {
    throw new TensorError(
      'E_SHAPE',
      'split',
      `sizes ${showValue(sizes)} do not add up to axis ${axis} of ${show(x)}`,
    );
  }
  return parts(x, at, sizes);
}

const takesChunk = arg.takes<typeof chunk>(
  ['x', aTensor],
  ['the number of chunks', arg.count(1)],
  ['axis', arg.inside()],
);

/**
 * At most `chunks` parts of equal size (the last may be smaller).
 *
 * @method
 * @jax jnp.array_split
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.chunk(x, 2, 1);
 */
export function chunk<D extends DType>(x: Tensor<D>, chunks: number, axis = 0): Tensor<D>[] {
  takesChunk('chunk', x, chunks, axis);
  const at = normalizeAxis('chunk', axis, x.rank);
  return split(x, Math.max(1, Math.ceil(x.shape[at]! / chunks)), at);
}

const takesUnbind = arg.takes<typeof unbind>(['x', aTensor], ['axis', arg.inside()]);

/**
 * The slices along an axis, without that axis.
 *
 * @method
 * @jax jnp.unstack
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.unbind(x);
 */
export function unbind<D extends DType>(x: Tensor<D>, axis = 0): Tensor<D>[] {
  takesUnbind('unbind', x, axis);
  const at = normalizeAxis('unbind', axis, x.rank);
  const left = x.shape.filter((_, i) => i !== at);
  return recordMany([x], (b, [node]) =>
    Array.from({ length: x.shape[at]! }, (_, i) => reshape(b, sliceAxis(b, node!, at, i, 1), left)),
  );
}

function interleaved(b: GraphBuilder, x: Node, count: number, axis: number): Node {
  const shape = dims(x);
  const around = (...middle: number[]): number[] => [
    ...shape.slice(0, axis),
    ...middle,
    ...shape.slice(axis + 1),
  ];
  const size = shape[axis]!;
  const repeated = broadcast(b, reshape(b, x, around(size, 1)), around(size, count));
  return reshape(b, repeated, around(size * count));
}

export interface RepeatOptions {
  /**
   * The sum of the repeats, where they are a tensor: then nothing has to be read; by default it is
   * read.
   */
  readonly outputSize?: number;
}

const takesRepeatInterleave = arg.takes<
  (x: Tensor, repeats: number | readonly number[] | Tensor, axis?: number, options?: RepeatOptions) => unknown
>(
  ['x', aTensor],
  ['repeats', arg.inside()],
  ['axis', arg.inside()],
  ['options', arg.options<RepeatOptions>({ outputSize: arg.count(0) })],
);

/**
 * Each element `repeats` times (or as often as listed) next to itself along an axis; without one,
 * in C-order. Repeats in a tensor are read first, unless their sum is given.
 *
 * @method
 * @family Views and movement
 * @jax jnp.repeat
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.repeatInterleave(v, 2);
 */
export function repeatInterleave(x: Tensor, repeats: number | readonly number[], axis?: number): Tensor;
export function repeatInterleave(
  x: Tensor,
  repeats: Tensor,
  axis: number | undefined,
  options: { readonly outputSize: number },
): Tensor;
export function repeatInterleave(x: Tensor, repeats: Tensor, axis?: number): Promise<Tensor>;
export function repeatInterleave(
  x: Tensor,
  repeats: number | readonly number[] | Tensor,
  axis?: number,
  options: RepeatOptions = {},
): Tensor | Promise<Tensor> {
  takesRepeatInterleave('repeatInterleave', x, repeats, axis, options);
  const at = axis === undefined ? 0 : normalizeAxis('repeatInterleave', axis, Math.max(1, x.rank));
  const shape = axis === undefined || x.rank === 0 ? [x.size] : x.shape;
  if (typeof repeats === 'number') {
    checkCount('repeatInterleave', 'the number of repeats', repeats);
    return apply([x], (b, node) => interleaved(b, reshape(b, node, shape), repeats, at));
  }
  if (repeats instanceof Tensor) return repeatedBy(x, repeats, shape, at, options.outputSize);
  checkList('repeatInterleave', 'repeats', repeats);
  [...repeats].forEach((count) => checkCount('repeatInterleave', 'a number of repeats', count));
  checkRepeats(x, repeats.length, shape[at]!);
  const places = Int32Array.from([...repeats].flatMap((count, i) => new Array<number>(count).fill(i)));
  return apply([x, fromHost(places, [places.length], 'i32')], (b, node, index) =>
    selectRows(b, reshape(b, node, shape), index, at),
  );
}

function checkRepeats(x: Tensor, given: number, size: number): void {
  if (given === size) return;
  throw new TensorError('E_SHAPE', 'repeatInterleave', `expects ${size} counts, got ${given}: ${show(x)}`);
}

/** Element j comes from the first place whose running sum of repeats is above j. */
function repeatedBy(
  x: Tensor,
  repeats: Tensor,
  shape: readonly number[],
  axis: number,
  outputSize: number | undefined,
): Tensor | Promise<Tensor> {
  checkInteger('repeatInterleave', 'the repeats', repeats);
  checkRank('repeatInterleave', 'the repeats', repeats, 0, 1);
  const size = shape[axis]!;
  if (repeats.size !== 1) checkRepeats(x, repeats.size, size);
  const counted = (b: GraphBuilder, counts: Node): Node =>
    broadcast(b, reshape(b, cast(b, narrowIndex(b, counts), 'i32'), [repeats.size]), [size]);
  const repeated = (length: number): Tensor =>
    apply([x, repeats], (b, node, counts) => {
      const attrs = { monoid: 'sum', axis: 0, reverse: false, exclusive: false } as const;
      const ends = b.add('scan', [counted(b, counts)], attrs) as Node;
      const places = b.add('searchSorted', [ends, iota(b, [length], 0)], { right: true }) as Node;
      return selectRows(b, reshape(b, node, shape), places, axis);
    });
  if (outputSize !== undefined) return repeated(outputSize);
  checkReadable('repeatInterleave', 'outputSize');
  if (size === 0) return Promise.resolve(repeated(0));
  return readCount(apply([repeats], (b, counts) => reduce(b, 'sum', counted(b, counts), [0]))).then(repeated);
}

export interface MeshgridOptions {
  /** `ij` (default): the first vector runs along the first axis. `xy`: along the second. */
  readonly indexing?: 'ij' | 'xy';
}

const takesMeshgrid = arg.takes<typeof meshgrid>(
  ['vectors', someTensors],
  ['options', arg.options<MeshgridOptions>({ indexing: arg.oneOf('ij', 'xy') })],
);

/**
 * Coordinates of a grid: each vector spread over the axes of all others.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const w = sn.tensor([4, 5]);
 * sn.meshgrid([v, w], { indexing: 'ij' });
 */
export function meshgrid(vectors: readonly Tensor[], options: MeshgridOptions = {}): Tensor[] {
  takesMeshgrid('meshgrid', vectors, options);
  const { indexing = 'ij' } = options;
  if (!vectors.every((x) => x.rank <= 1))
    throw new TensorError('E_SHAPE', 'meshgrid', `expects vectors: ${show(...vectors)}`);
  const place = (i: number): number => (indexing === 'xy' && i < 2 && vectors.length > 1 ? 1 - i : i);
  const shape = vectors.map((_, i) => vectors[place(i)]!.size);
  return recordMany(vectors, (b, nodes) =>
    nodes.map((node, i) => {
      const along = shape.map((dim, axis) => (axis === place(i) ? dim : 1));
      return broadcast(b, reshape(b, node, along), shape);
    }),
  );
}
