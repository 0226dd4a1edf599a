// Slices of a fixed size at places that the device knows, as JAX's `dynamic_slice` and
// `dynamic_update_slice`: a start that would leave the tensor is moved until the slice lies inside, so
// that no data makes a read or a write stray. `narrow` and `sliceWrite` are the same along one axis,
// and refuse such starts where that is watched.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  constant,
  fullLike,
  permute,
  reshape,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf, toShape } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { record } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import { alongAxis, iota, narrowIndex } from '../../formula/elementwise.ts';
import { checkInteger, show } from '../operand.ts';
import { selectRows } from '../shape/gather.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { checkSameType, scatterNode } from '../shape/scatter.ts';
import { writeAxes } from './write.ts';

/** Where a slice starts: a number or an integer tensor of one element an axis, or one tensor of them all. */
export type SliceStarts = Tensor | readonly (number | Tensor)[];

const aPlace: arg.Kind<number | Tensor> = arg.either(aTensor, arg.integer);
const places: arg.Kind<SliceStarts> = arg.either(aTensor, arg.listOf(aPlace));

/** A start of one axis: a number, or an element of the tensor `at` among those recorded. */
type Start = number | { readonly at: number; readonly element: number };

interface Starts {
  readonly axes: readonly Start[];
  readonly tensors: readonly Tensor[];
}

function startsOf(op: string, x: Tensor, starts: SliceStarts): Starts {
  if (starts instanceof Tensor) {
    checkInteger(op, 'the starts', starts);
    if (starts.rank !== 1 || starts.size !== x.rank) {
      const problem = `expects starts [${x.rank}], one an axis: ${show(x)}, starts ${show(starts)}`;
      throw new TensorError('E_SHAPE', op, problem);
    }
    return { axes: x.shape.map((_, element) => ({ at: 0, element })), tensors: [starts] };
  }
  if (starts.length !== x.rank) {
    const problem = `expects ${x.rank} starts, one an axis of ${show(x)}, got ${starts.length}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  const tensors: Tensor[] = [];
  const axes = starts.map((start): Start => {
    if (typeof start === 'number') return start;
    checkInteger(op, 'a start', start);
    if (start.size !== 1) throw new TensorError('E_SHAPE', op, `a start must be one element: ${show(start)}`);
    return { at: tensors.push(start) - 1, element: 0 };
  });
  return { axes, tensors };
}

/** Requires a slice of this shape to fit into x. */
function checkFits(op: string, x: Tensor, what: string, shape: readonly number[]): void {
  if (shape.length === x.rank && shape.every((size, axis) => size <= x.shape[axis]!)) return;
  const problem = `${what} [${shape.join(',')}] does not fit into ${show(x)}`;
  throw new TensorError('E_SHAPE', op, problem, 'one size for each axis, at most that of x');
}

/** A start below 0 counts from the end; then it is brought into [0, size − length]. */
function clampedStart(
  b: GraphBuilder,
  start: Start,
  tensors: readonly Node[],
  size: number,
  length: number,
): number | Node {
  const last = size - length;
  if (typeof start === 'number') return Math.min(Math.max(start < 0 ? start + size : start, 0), last);
  if (last === 0) return 0;
  const given = reshape(b, sliceAxis(b, flat(b, tensors[start.at]!), 0, start.element, 1), []);
  // A u32 above 2³¹ would be negative as an i32.
  const bounded = given.dtype === 'u32' ? binary(b, 'min', given, fullLike(b, given, last)) : given;
  const place = cast(b, narrowIndex(b, bounded), 'i32');
  const fromEnd = where(b, binary(b, 'lt', place, 0), add(b, place, size), place);
  return binary(b, 'min', binary(b, 'max', fromEnd, 0), last);
}

function flat(b: GraphBuilder, x: Node): Node {
  return reshape(b, x, [sizeOf(dims(x))]);
}

/** Places along an axis from a start on: i32 [length]. */
function run(b: GraphBuilder, start: number | Node, length: number): Node {
  const first = typeof start === 'number' ? constant(b, start, 'i32') : start;
  return add(b, broadcast(b, first, [length]), iota(b, [length], 0));
}

const takesDynamicSlice = arg.takes<typeof dynamicSlice>(
  ['x', aTensor],
  ['the starts', places],
  ['the sizes', arg.inside()],
);

/**
 * The slice of x of these sizes, one an axis, from starts that may be integer tensors: each counts
 * from the end below 0, and is then moved into [0, size of x − size], so that the slice lies inside.
 * Throws E_SHAPE where a size exceeds x's, or starts are not one an axis.
 *
 * @jax lax.dynamic_slice
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.dynamicSlice(x, [i.select(0, 0), 1], [1, 2]);
 */
export function dynamicSlice<D extends DType>(
  x: Tensor<D>,
  starts: SliceStarts,
  sizes: readonly number[],
): Tensor<D> {
  takesDynamicSlice('dynamicSlice', x, starts, sizes);
  const shape = toShape('dynamicSlice', sizes);
  checkFits('dynamicSlice', x, 'a slice', shape);
  const { axes, tensors } = startsOf('dynamicSlice', x, starts);
  return record([x, ...tensors], (b, [node, ...given]) =>
    shape.reduce((part, length, axis) => {
      const start = clampedStart(b, axes[axis]!, given, x.shape[axis]!, length);
      return typeof start === 'number'
        ? sliceAxis(b, part, axis, start, length)
        : selectRows(b, part, run(b, start, length), axis);
    }, node!),
  ) as Tensor<D>;
}

const takesDynamicUpdateSlice = arg.takes<typeof dynamicUpdateSlice>(
  ['x', aTensor],
  ['the update', aTensor],
  ['the starts', places],
);

/**
 * A copy of x with `update` (x's dtype and rank) in place of `dynamicSlice(x, starts, update.shape)`.
 * Where x is donated to a compiled function and one axis moves, x itself is written. Throws E_DTYPE,
 * and E_SHAPE where the update does not fit or starts are not one an axis.
 *
 * @jax lax.dynamic_update_slice
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const column = sn.tensor([[7], [8]]);
 * sn.dynamicUpdateSlice(x, column, [0, i.select(0, 1)]);
 */
export function dynamicUpdateSlice<D extends DType>(
  x: Tensor<D>,
  update: Tensor,
  starts: SliceStarts,
): Tensor<D> {
  takesDynamicUpdateSlice('dynamicUpdateSlice', x, update, starts);
  checkSameType('dynamicUpdateSlice', x, update);
  checkFits('dynamicUpdateSlice', x, 'the update', update.shape);
  const { axes, tensors } = startsOf('dynamicUpdateSlice', x, starts);
  const lengths = update.shape;
  const moving = lengths.flatMap((length, axis) => (length < x.shape[axis]! ? [axis] : []));
  return record([x, update, ...tensors], (b, [node, part, ...given]) => {
    if (update.size === 0) return node!;
    if (moving.length === 0) return part!;
    const runs = moving.map((axis) =>
      run(b, clampedStart(b, axes[axis]!, given, x.shape[axis]!, lengths[axis]!), lengths[axis]!),
    );
    const [only] = moving;
    if (moving.length === 1 && only !== undefined) {
      const along = broadcast(b, alongAxis(b, runs[0]!, x.rank, only), lengths);
      return scatterNode(b, node!, along, part!, only, 'set');
    }
    return writeBlock(b, node!, part!, moving, runs);
  }) as Tensor<D>;
}

/** x with the part at the product of these places on several axes. */
function writeBlock(
  b: GraphBuilder,
  x: Node,
  part: Node,
  moving: readonly number[],
  runs: readonly Node[],
): Node {
  const common = runs.map((places) => dims(places)[0]!);
  const spread = runs.map((places, i) => broadcast(b, alongAxis(b, places, runs.length, i), common));
  const still = dims(x).flatMap((_, axis) => (moving.includes(axis) ? [] : [axis]));
  // `writeAxes` takes what is written with the axes that move in front.
  const order = [...moving, ...still];
  const turned = order.map((_, axis) => order.indexOf(axis));
  const written = writeAxes(
    b,
    permute(b, x, order),
    moving.map((_, i) => i),
    spread,
    permute(b, part, order),
    'set',
  );
  return permute(b, written, turned);
}
