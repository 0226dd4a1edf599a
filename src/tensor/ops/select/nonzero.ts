// Elements and positions that a mask selects. How many there are only the data knows: without a
// `size` these functions are asynchronous (see count.ts).

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, full, reduce, reshape, where } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { watch } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { truth } from '../../formula/elementwise.ts';
import { apply, checkMaskType, commonShape, show } from '../operand.ts';
import { concat } from '../../formula/layout.ts';
import { selectRows } from '../shape/gather.ts';
import { checkSameType } from '../shape/scatter.ts';
import {
  compacted,
  countTrue,
  flattened,
  runningCount,
  sizeOption,
  spreadBack,
  truePlaces,
  unraveled,
  type Sized,
  type Unsized,
} from './count.ts';
import { checkReadable, readCount } from '../readable.ts';

/** A result of a fixed size, and how many elements there are: an i32 of rank 0. */
export type Counted = [result: Tensor, count: Tensor];

const sized = arg.options<Sized | Unsized>({ size: sizeOption });
const takesNonzero = arg.takes<(x: Tensor, options?: Sized | Unsized) => unknown>(
  ['the operand', aTensor],
  ['options', sized],
);

function positionsOf(b: GraphBuilder, x: Node, size: number): Node {
  const shape = dims(x);
  const places = truePlaces(b, runningCount(b, flattened(b, truth(b, x))), size);
  if (shape.length === 0) return full(b, [size, 0], 0, 'i32');
  const columns = unraveled(b, places, shape).map((column) => reshape(b, column, [size, 1]));
  const inside = b.add('lt', [places, full(b, [size], sizeOf(shape), 'i32')], {}) as Node;
  const found = concat(b, columns, 1);
  const kept = broadcast(b, reshape(b, inside, [size, 1]), [size, shape.length]);
  return where(b, kept, found, full(b, [size, shape.length], 0, 'i32'));
}

function nonzeroOf(op: string, x: Tensor, options: Sized | Unsized): Promise<Tensor> | Counted {
  const { size } = options;
  if (size !== undefined) {
    const [places, count] = recordMany([x], (b, [node]) => [
      positionsOf(b, node!, size),
      countTrue(b, truth(b, node!)),
    ]);
    return [places!, count!];
  }
  checkReadable(op);
  const count = apply([x], (b, node) => countTrue(b, truth(b, node)));
  return readCount(count).then((size) => apply([x], (b, node) => positionsOf(b, node, size)));
}

/**
 * The positions of the elements that are not 0, in C-order: i32 [count, rank]. With `size` the rows
 * beyond the count are 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.nonzero(x);
 */
export function nonzero(x: Tensor, options: Sized): Counted;
export function nonzero(x: Tensor, options?: Unsized): Promise<Tensor<'i32'>>;
export function nonzero(x: Tensor, options: Sized | Unsized = {}): Promise<Tensor> | Counted {
  takesNonzero('nonzero', x, options);
  return nonzeroOf('nonzero', x, options);
}

/**
 * As `nonzero` (NumPy's name).
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.argwhere(x);
 */
export function argwhere(x: Tensor, options: Sized): Counted;
export function argwhere(x: Tensor, options?: Unsized): Promise<Tensor<'i32'>>;
export function argwhere(x: Tensor, options: Sized | Unsized = {}): Promise<Tensor> | Counted {
  takesNonzero('argwhere', x, options);
  return nonzeroOf('argwhere', x, options);
}

const takesMaskedSelect = arg.takes<(x: Tensor, mask: Tensor, options?: Sized | Unsized) => unknown>(
  ['the operand', aTensor],
  ['the mask', aTensor],
  ['options', sized],
);

/**
 * The elements of x where the mask is true, in C-order; x and the mask broadcast.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.maskedSelect(x, mask);
 */
export function maskedSelect(x: Tensor, mask: Tensor, options: Sized): Counted;
export function maskedSelect(x: Tensor, mask: Tensor, options?: Unsized): Promise<Tensor>;
export function maskedSelect(
  x: Tensor,
  mask: Tensor,
  options: Sized | Unsized = {},
): Promise<Tensor> | Counted {
  takesMaskedSelect('maskedSelect', x, mask, options);
  checkMaskType('maskedSelect', mask);
  const shape = commonShape('maskedSelect', [x, mask]);
  const spread = (b: GraphBuilder, node: Node): Node => flattened(b, broadcast(b, node, shape));
  const chosen = (b: GraphBuilder, node: Node, kept: Node, size: number): Node =>
    compacted(b, spread(b, node), spread(b, kept), size);
  const { size } = options;
  if (size !== undefined) {
    const [values, count] = recordMany([x, mask], (b, [node, kept]) => [
      chosen(b, node!, kept!, size),
      countTrue(b, spread(b, kept!)),
    ]);
    return [values!, count!];
  }
  checkReadable('maskedSelect');
  const count = apply([mask], (b, kept) => countTrue(b, spread(b, kept)));
  return readCount(count).then((size) => apply([x, mask], (b, node, kept) => chosen(b, node, kept, size)));
}

/**
 * `x[mask]`: the parts of x where a mask over its leading axes is true, along one axis in place of
 * them.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.maskedAt(x, mask);
 */
export function maskedAt(x: Tensor, mask: Tensor, options: Sized): Counted;
export function maskedAt(x: Tensor, mask: Tensor, options?: Unsized): Promise<Tensor>;
export function maskedAt(x: Tensor, mask: Tensor, options: Sized | Unsized = {}): Promise<Tensor> | Counted {
  takesMaskedSelect('maskedAt', x, mask, options);
  checkMaskType('maskedAt', mask);
  if (mask.rank > x.rank || mask.shape.some((dim, axis) => dim !== x.shape[axis])) {
    throw new TensorError('E_SHAPE', 'maskedAt', `the mask must cover x's leading axes: ${show(x, mask)}`);
  }
  const rest = x.shape.slice(mask.rank);
  const chosen = (b: GraphBuilder, node: Node, kept: Node, size: number): Node => {
    if (rest.length === 0) return compacted(b, flattened(b, node), flattened(b, kept), size);
    const places = truePlaces(b, runningCount(b, flattened(b, kept)), size);
    return selectRows(b, reshape(b, node, [mask.size, ...rest]), places, 0);
  };
  const { size } = options;
  if (size !== undefined) {
    const [values, count] = recordMany([x, mask], (b, [node, kept]) => [
      chosen(b, node!, kept!, size),
      countTrue(b, kept!),
    ]);
    return [values!, count!];
  }
  checkReadable('maskedAt');
  const count = apply([mask], countTrue);
  return readCount(count).then((size) => apply([x, mask], (b, node, kept) => chosen(b, node, kept, size)));
}

const takesExpandByMask = arg.takes<typeof expandByMask>(['the values', aTensor], ['the mask', aTensor]);

/**
 * What `maskedSelect` takes apart put together: the r-th value where the mask is true for the r-th
 * time in C-order, 0 elsewhere.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.expandByMask(v, mask);
 */
export function expandByMask(values: Tensor, mask: Tensor): Tensor {
  takesExpandByMask('expandByMask', values, mask);
  checkMaskType('expandByMask', mask);
  if (values.rank !== 1)
    throw new TensorError('E_SHAPE', 'expandByMask', `the values must have rank 1: ${show(values)}`);
  watchCount('expandByMask', values, mask);
  return apply([values, mask], (b, node, kept) => {
    const flat = flattened(b, kept);
    if (values.size === 0) return full(b, mask.shape, 0, values.dtype);
    return reshape(b, spreadBack(b, node, flat), mask.shape);
  });
}

const takesMaskedScatter = arg.takes<typeof maskedScatter>(
  ['the operand', aTensor],
  ['the mask', aTensor],
  ['the source', aTensor],
);

/**
 * Elements of the source, in C-order, one after another where the mask is true; x elsewhere. x and
 * the mask broadcast.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.maskedScatter(x, mask, v);
 */
export function maskedScatter<D extends DType>(x: Tensor<D>, mask: Tensor, source: Tensor): Tensor<D> {
  takesMaskedScatter('maskedScatter', x, mask, source);
  checkMaskType('maskedScatter', mask);
  checkSameType('maskedScatter', x, source);
  const shape = commonShape('maskedScatter', [x, mask]);
  watchCount('maskedScatter', source, mask, mask.size === 0 ? 0 : sizeOf(shape) / mask.size);
  return record([x, mask, source], (b, [node, kept, values]) => {
    const flat = flattened(b, broadcast(b, kept!, shape));
    const own = flattened(b, broadcast(b, node!, shape));
    if (source.size === 0) return reshape(b, own, shape);
    return reshape(b, where(b, flat, spreadBack(b, flattened(b, values!), flat), own), shape);
  });
}

/** Watches that a source has an element for every true one of a mask. */
function watchCount(op: string, source: Tensor, mask: Tensor, times = 1): void {
  watch(
    op,
    'E_SHAPE',
    [mask],
    (b, [kept]) => [
      reduce(
        b,
        'sum',
        cast(b, kept!, 'i32'),
        mask.shape.map((_, axis) => axis),
      ),
    ],
    ([held]) => {
      const count = Number(held) * times;
      if (count <= source.size) return undefined;
      return `the mask is true ${count} times, but ${show(source)} has ${source.size} elements`;
    },
  );
}
