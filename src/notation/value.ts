// Values of index notation: a number, or a tensor with an index for each of its axes.

import { permute, reshape } from '../tensor/ops/shape/view.ts';
import type { Tensor, TensorLike } from '../tensor/tensor.ts';
import type { Variable } from './resolve.ts';

export type NotationValue =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'tensor'; readonly tensor: Tensor; readonly over: readonly Variable[] };

export function overOf(value: NotationValue): readonly Variable[] {
  return value.kind === 'number' ? [] : value.over;
}

/** All indices of the values, in the order in which they come. */
export function allOver(values: readonly NotationValue[]): readonly Variable[] {
  return [...new Set(values.flatMap(overOf))];
}

/** The value with an axis for each of these indices, of size 1 where it does not depend on one. */
export function aligned(value: NotationValue, over: readonly Variable[]): TensorLike {
  if (value.kind === 'number') return value.value;
  const { tensor } = value;
  const held = over.filter((variable) => value.over.includes(variable));
  const turned = permute(
    tensor,
    held.map((variable) => value.over.indexOf(variable)),
  );
  let next = 0;
  return reshape(
    turned,
    over.map((variable) => (value.over.includes(variable) ? turned.shape[next++]! : 1)),
  );
}
