// Calls of PyTorch's operators as ours: reading and writing at positions, and selection.

import * as sn from '../../../../src/operations/index.ts';
import { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Args, type Calls } from '../args.ts';
import { Slice, type Value } from '../value.ts';

/** An entry of an index as `at` takes it. */
function entry(value: Value): sn.Index {
  if (value === undefined || value === '...') return value ?? null;
  if (value instanceof Slice) return { start: value.start, stop: value.stop, step: value.step };
  return value as sn.Index;
}

/**
 * What stands between Python's brackets: a tuple of entries (kept as a list in samples), or a list
 * of positions.
 */
function entries(value: Value): sn.Index[] {
  if (!Array.isArray(value)) return [entry(value)];
  const list = value as readonly Value[];
  const isTuple = list.some((item) => typeof item !== 'number');
  return isTuple ? list.map(entry) : [value as readonly number[]];
}

const along = 'input, dim, index';
const start = (a: Args): number | Tensor => {
  const value = a.raw('start');
  return value instanceof Tensor ? value : a.number('start');
};
const value = (a: Args): Tensor | number | boolean => a.operand('value');

export const index: Calls = {
  __getitem__: signature('input, index')((a) => sn.at(a.tensor('input'), ...entries(a.raw('index')))),
  argwhere: signature('input')((a) => sn.argwhere(a.tensor('input'))),
  diagonal_scatter: signature('input, src, offset=0, dim1=0, dim2=1')((a) =>
    sn.diagonalScatter(a.tensor('input'), a.tensor('src'), a.options('offset', 'dim1=axis1', 'dim2=axis2')),
  ),
  gather: signature(along)((a) => sn.gather(a.tensor('input'), a.number('dim'), a.tensor('index'))),
  index_fill: signature('input, dim, index, value')((a) =>
    sn.indexFill(a.tensor('input'), a.number('dim'), a.tensor('index'), value(a)),
  ),
  index_put: signature('input, indices, values, accumulate=False')((a) =>
    sn.indexPut(a.tensor('input'), a.tensors('indices'), a.tensor('values'), a.options('accumulate')),
  ),
  index_select: signature(along)((a) =>
    sn.indexSelect(a.tensor('input'), a.number('dim'), a.tensor('index')),
  ),
  masked_fill: signature('input, mask, value')((a) =>
    sn.maskedFill(a.tensor('input'), a.tensor('mask'), value(a)),
  ),
  masked_scatter: signature('input, mask, source')((a) =>
    sn.maskedScatter(a.tensor('input'), a.tensor('mask'), a.tensor('source')),
  ),
  masked_select: signature('input, mask')((a) => sn.maskedSelect(a.tensor('input'), a.tensor('mask'))),
  narrow: signature('input, dim, start, length')((a) =>
    sn.narrow(a.tensor('input'), a.number('dim'), start(a), a.number('length')),
  ),
  nonzero: signature('input, as_tuple=False')(async (a) => {
    const found = await sn.nonzero(a.tensor('input'));
    if (!a.flag('as_tuple')) return found;
    // A tuple has one entry at least: rank 0 counts as rank 1.
    const line = a.tensor('input').rank > 0 ? found : await sn.nonzero(sn.reshape(a.tensor('input'), [1]));
    return sn.unbind(line, 1);
  }),
  put: signature('input, index, source, accumulate=False')((a) =>
    sn.put(a.tensor('input'), a.tensor('index'), a.tensor('source'), a.options('accumulate')),
  ),
  repeat_interleave: signature('input, repeats, dim=None')((a) => {
    const repeats = a.raw('repeats');
    return repeats instanceof Tensor
      ? sn.repeatInterleave(a.tensor('input'), repeats, a.maybeNumber('dim'))
      : sn.repeatInterleave(a.tensor('input'), a.number('repeats'), a.maybeNumber('dim'));
  }),
  select: signature('input, dim, index')((a) =>
    sn.select(a.tensor('input'), a.number('dim'), a.number('index')),
  ),
  select_scatter: signature('input, src, dim, index')((a) =>
    sn.selectScatter(a.tensor('input'), a.tensor('src'), a.number('dim'), a.number('index')),
  ),
  slice: signature('input, dim=0, start=None, end=None, step=1')((a) =>
    sn.slice(
      a.tensor('input'),
      a.number('dim'),
      a.maybeNumber('start'),
      a.maybeNumber('end'),
      a.number('step'),
    ),
  ),
  slice_scatter: signature('input, src, dim=0, start=None, end=None, step=1')((a) =>
    sn.sliceScatter(
      a.tensor('input'),
      a.tensor('src'),
      a.number('dim'),
      a.maybeNumber('start'),
      a.maybeNumber('end'),
      a.number('step'),
    ),
  ),
  take: signature('input, index')((a) => sn.take(a.tensor('input'), a.tensor('index'))),
  take_along_dim: signature('input, indices, dim=None')((a) =>
    sn.takeAlongDim(a.tensor('input'), a.tensor('indices'), a.maybeNumber('dim')),
  ),
  where: signature('input, condition, other')((a) =>
    sn.where(a.tensor('condition'), a.tensor('input'), a.tensor('other')),
  ),
};
