// Tensors and layouts: the layout that a tensor's memory has, and a tensor of the memory that some
// layout asks for.

import { TensorError, showValue } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { sameShape, showShape } from '../ir/shape.ts';
import { zeros } from '../tensor/ops/creation/creation.ts';
import { asStridedScatter } from '../tensor/ops/select/region.ts';
import { permute, reshape } from '../tensor/ops/shape/view.ts';
import { aTensor } from '../tensor/expect.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Layout } from './layout.ts';

const takesTensor = arg.takes<typeof layoutOf>(['the tensor', aTensor]);

/** How the elements of a tensor lie in the memory that `buffer()` lends: in C-order. */
export function layoutOf(x: Tensor): Layout {
  takesTensor('layoutOf', x);
  return new Layout(x.shape);
}

const aLayout: arg.Kind<Layout> = arg.kind(
  'a Layout',
  (value) => value instanceof Layout,
  () => 'new Layout(shape, strides)',
);
const takesArrange = arg.takes<typeof arrange>(['the tensor', aTensor], ['the layout', aLayout]);

/**
 * The memory in which a tensor has this layout, as a tensor of one axis: its elements at their
 * places, 0 at all others. Its buffer is what code that asks for such strides takes.
 */
export function arrange(x: Tensor, layout: Layout): Tensor {
  takesArrange('arrange', x, layout);
  if (!sameShape(x.shape, layout.shape)) {
    const problem = `the layout ${String(layout)} is not of ${showShape(x.shape, x.dtype)}`;
    throw new TensorError('E_SHAPE', 'arrange', problem);
  }
  if (layout.hasOverlap) {
    const problem = `the layout ${showValue(String(layout))} has two elements at one place`;
    throw new TensorError('E_VALUE', 'arrange', problem);
  }
  const isPlain = layout.isDense && layout.least === 0 && layout.strides.every((stride) => stride >= 0);
  if (isPlain) {
    // The slowest axis first; an axis of one index may stand anywhere.
    const order = x.shape.map((_, axis) => axis);
    order.sort((a, b) => layout.strides[b]! - layout.strides[a]!);
    const turned = order.filter((axis) => x.shape[axis] !== 1);
    const all = [...x.shape.keys()].filter((axis) => x.shape[axis] === 1).concat(turned);
    return reshape(x.rank === 0 ? x : permute(x, all), [layout.extent]);
  }
  const memory = zeros([layout.extent], { dtype: x.dtype });
  return asStridedScatter(memory, x, layout.shape, layout.strides, layout.offset);
}
