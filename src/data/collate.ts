// Collation: the items of a batch become one tree of tensors.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { stack } from '../tensor/ops/shape/join.ts';
import { fromBytes } from '../tensor/record.ts';
import { Tensor } from '../tensor/tensor.ts';
import type { Collated } from './item.ts';
import { stackItems, typedDType, type Stacked, type StackingError } from './stacking.ts';

const someItems: arg.Kind<readonly unknown[]> = arg.kind(
  'an array of one item or more',
  (value) => Array.isArray(value) && value.length > 0,
);
const takesItems = arg.takes<(items: readonly unknown[]) => unknown>(['the items', someItems]);

/**
 * The batch of items, by place in their tree: numbers give a vector of f32, bigints of i64, booleans
 * of bool; typed arrays, host tensors and tensors of one shape are stacked; of strings, null and
 * instances of classes there is an array. Lists and objects are gone into. Throws where items do not
 * fit together.
 */
export function collate<T>(items: readonly T[]): Collated<T> {
  takesItems('collate', items);
  return collated(stackedOn('collate', items)) as Collated<T>;
}

function stackedOn(op: string, items: readonly unknown[]): Stacked {
  try {
    return stackItems(items, '', (value) => value instanceof Tensor, typedDType, []);
  } catch (error) {
    throw stackingError(op, error);
  }
}

/** The error as one of ours, where stacking has thrown it. */
export function stackingError(op: string, error: unknown): unknown {
  const { stacking, message } = error as Partial<StackingError>;
  if (stacking === undefined) return error;
  const hint = 'a collate of your own, or items of one form';
  return new TensorError(stacking, op, String(message), hint);
}

/** The tree of tensors of a batch on the host. */
export function collated(stacked: Stacked): unknown {
  switch (stacked.kind) {
    case 'tensor':
      return fromBytes(stacked.data, stacked.shape, stacked.dtype as DType);
    case 'tensors':
      return stack(stacked.items as readonly Tensor[], 0);
    case 'list':
      return stacked.items;
    case 'array':
      return stacked.items.map(collated);
    case 'object':
      return Object.fromEntries(stacked.keys.map((key, i) => [key, collated(stacked.items[i] as Stacked)]));
    default:
      return stacked satisfies never;
  }
}
