// Calls of PyTorch's operators as ours: scatters, and folds of segments.

import * as sn from '../../../../src/operations/index.ts';
import { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Args, type Call, type Calls } from '../args.ts';

const along = 'input, dim, index, src';
const source = (a: Args): Tensor | number => {
  const value = a.raw('src');
  return value instanceof Tensor ? value : a.number('src');
};

const reduced: Call = signature(`${along}, reduce, include_self=True`)((a) =>
  sn.scatterReduce(
    a.tensor('input'),
    a.number('dim'),
    a.tensor('index'),
    source(a),
    a.text<sn.ScatterReduce>('reduce'),
    a.options('include_self'),
  ),
);

const segmented: Call = signature(
  'input, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None',
)((a) => {
  const { lengths, offsets } = { lengths: a.maybeTensor('lengths'), offsets: a.maybeTensor('offsets') };
  return sn.segmentReduce(a.tensor('input'), a.text<sn.SegmentReduce>('reduce'), {
    ...(lengths === undefined ? {} : { lengths }),
    ...(offsets === undefined ? {} : { offsets }),
    ...a.options('axis', 'initial'),
  });
});

export const scatter: Calls = {
  index_add: signature('input, dim, index, source, alpha=1')((a) =>
    sn.indexAdd(a.tensor('input'), a.number('dim'), a.tensor('index'), a.tensor('source'), {
      alpha: a.number('alpha'),
    }),
  ),
  index_copy: signature('input, dim, index, source')((a) =>
    sn.indexCopy(a.tensor('input'), a.number('dim'), a.tensor('index'), a.tensor('source')),
  ),
  index_reduce: signature('input, dim, index, source, reduce, include_self=True')((a) =>
    sn.indexReduce(
      a.tensor('input'),
      a.number('dim'),
      a.tensor('index'),
      a.tensor('source'),
      a.text<'prod' | 'mean' | 'amax' | 'amin'>('reduce'),
      a.options('include_self'),
    ),
  ),
  scatter: signature(along)((a) =>
    sn.scatter(a.tensor('input'), a.number('dim'), a.tensor('index'), source(a)),
  ),
  scatter_add: signature(along)((a) =>
    sn.scatterAdd(a.tensor('input'), a.number('dim'), a.tensor('index'), source(a)),
  ),
  'scatter_reduce.amax': reduced,
  'scatter_reduce.amin': reduced,
  'scatter_reduce.mean': reduced,
  'scatter_reduce.prod': reduced,
  'scatter_reduce.sum': reduced,
  'segment_reduce.lengths': segmented,
  'segment_reduce.offsets': segmented,
};
