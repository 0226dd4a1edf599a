// Running combinations by any associative function, in about 2·log₂ n calls of it on whole tensors
// (Blelloch, Prefix Sums and Their Applications, 1990): pairs are combined, the scan of these is
// taken, and the elements between them are combined with what is before them.

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { reshape } from '../../../ir/build.ts';
import { dims } from '../../../ir/graph.ts';
import { normalizeAxis, sameShape } from '../../../ir/shape.ts';
import { expectSynchronous } from '../../expect.ts';
import { record } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import { checkSameStructure, flatten, unflatten, type Flat } from '../../tree.ts';
import { show } from '../operand.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';
import { flip } from '../shape/movement.ts';

export interface AssociativeScanOptions {
  /** The axis along which elements follow each other; default 0. */
  readonly axis?: number;
  /** From the last element to the first. Default false. */
  readonly reverse?: boolean;
}

const takesAssociativeScan = arg.takes<
  (fn: unknown, xs: unknown, options?: AssociativeScanOptions) => unknown
>(
  ['the function', arg.callable<unknown>()],
  ['the elements', arg.inside()],
  ['options', arg.options<AssociativeScanOptions>({ axis: arg.inside(), reverse: arg.flag })],
);

/**
 * The running combination of elements along an axis: element i becomes fn(… fn(x₀, x₁) …, xᵢ). `fn`
 * takes two trees like `xs`, of as many elements each along the axis, and combines them element by
 * element; it must be associative, and is called some 2·log₂ n times. Throws E_SHAPE where leaves
 * differ in length, or `fn` gives other shapes.
 *
 * @jax lax.associative_scan
 */
export function associativeScan<T>(
  fn: (before: T, after: T) => T,
  xs: T,
  options: AssociativeScanOptions = {},
): T {
  takesAssociativeScan('associativeScan', fn, xs, options);
  const flat = flatten(xs, 'associativeScan');
  const tensors = flat.leaves.map((leaf, i): Tensor => {
    if (leaf instanceof Tensor) return leaf;
    const at = flat.paths[i] === '' ? '' : ` at ${flat.paths[i]}`;
    const problem = `the elements${at} must be a tensor, got ${showValue(leaf)}`;
    throw new TensorError('E_VALUE', 'associativeScan', problem);
  });
  const axes = tensors.map((tensor) => normalizeAxis('associativeScan', options.axis ?? 0, tensor.rank));
  const lengths = tensors.map((tensor, i) => tensor.shape[axes[i]!]!);
  if (new Set(lengths).size > 1)
    throw new TensorError(
      'E_SHAPE',
      'associativeScan',
      `the elements are of different lengths along the axis: ${show(...tensors)}`,
      'leaves of one length',
    );
  const turned = (list: readonly Tensor[]): Tensor[] =>
    options.reverse === true ? list.map((tensor, i) => flip(tensor, axes[i]!)) : [...list];
  const combine = combiner(fn as (before: unknown, after: unknown) => unknown, flat);
  return unflatten(flat.structure, turned(running(turned(tensors), axes, combine))) as T;
}

type Combine = (before: readonly Tensor[], after: readonly Tensor[]) => Tensor[];

function combiner(fn: (before: unknown, after: unknown) => unknown, flat: Flat): Combine {
  return (before, after) => {
    const result = fn(unflatten(flat.structure, before), unflatten(flat.structure, after));
    expectSynchronous('associativeScan', result);
    const found = flatten(result, 'associativeScan');
    checkSameStructure('associativeScan', 'an element', flat, 'what the function gives', found);
    return found.leaves.map((leaf, i) => {
      const like = before[i]!;
      if (leaf instanceof Tensor && leaf.dtype === like.dtype && sameShape(leaf.shape, like.shape))
        return leaf;
      const given = leaf instanceof Tensor ? show(leaf) : showValue(leaf);
      throw new TensorError(
        'E_SHAPE',
        'associativeScan',
        `the function must combine ${show(like)} with ${show(like)} to one like them, got ${given}`,
      );
    });
  };
}

function running(xs: readonly Tensor[], axes: readonly number[], combine: Combine): Tensor[] {
  const n = xs[0]?.shape[axes[0]!] ?? 0;
  if (n < 2) return [...xs];
  const every = (list: readonly Tensor[], start: number, count: number, step: number): Tensor[] =>
    list.map((x, i) => record([x], (b, [node]) => sliceAxis(b, node!, axes[i]!, start, count, step)));
  const half = Math.floor(n / 2);
  const odd = running(combine(every(xs, 0, half, 2), every(xs, 1, half, 2)), axes, combine);
  const rest = Math.ceil(n / 2) - 1;
  const first = every(xs, 0, 1, 1);
  const later = rest === 0 ? [] : combine(every(odd, 0, rest, 1), every(xs, 2, rest, 2));
  return odd.map((high, i) => {
    const parts = rest === 0 ? [first[i]!] : [first[i]!, later[i]!];
    return record([high, ...parts], (b, [odds, ...evens]) => {
      const axis = axes[i]!;
      const low = concat(b, evens, axis);
      const shape = dims(odds!);
      const pair = [...shape.slice(0, axis + 1), 1, ...shape.slice(axis + 1)];
      const wide = [...shape.slice(0, axis), 2 * half, ...shape.slice(axis + 1)];
      const paired = [sliceAxis(b, low, axis, 0, half), odds!].map((x) => reshape(b, x, pair));
      const joined = reshape(b, concat(b, paired, axis + 1), wide);
      return n === 2 * half ? joined : concat(b, [joined, sliceAxis(b, low, axis, half, 1)], axis);
    });
  });
}
