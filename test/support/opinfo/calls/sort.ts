// Calls of PyTorch's operators as ours: order along an axis, running folds, and searches.

import * as sn from '../../../../src/operations/index.ts';
import { signature, unary, type Calls } from '../args.ts';
import { picking } from '../picks.ts';

export const sort: Calls = {
  argsort: picking('input, dim=-1, descending=False, stable=False', (a) =>
    sn.argsort(a.tensor('input'), a.number('dim'), a.options('descending', 'stable')),
  ),
  bucketize: signature('input, boundaries, out_int32=False, right=False')((a) =>
    sn.bucketize(a.operand('input'), a.tensor('boundaries'), a.options('right')),
  ),
  cummax: signature('input, dim')((a) => sn.cummax(a.tensor('input'), a.number('dim'))),
  cummin: signature('input, dim')((a) => sn.cummin(a.tensor('input'), a.number('dim'))),
  isin: signature('elements, test_elements, assume_unique=False, invert=False')((a) =>
    sn.isin(a.operand('elements'), a.operand('test_elements'), a.options('assume_unique', 'invert')),
  ),
  kthvalue: picking('input, k, dim=-1, keepdim=False', (a) =>
    sn.kthvalue(a.tensor('input'), a.number('k'), a.number('dim'), a.options('keepdim')),
  ),
  logcumsumexp: signature('input, dim')((a) => sn.logcumsumexp(a.tensor('input'), a.number('dim'))),
  msort: unary(sn.msort),
  searchsorted: signature('sorted_sequence, input, out_int32=False, right=False, side=None, sorter=None')(
    (a) => sn.searchsorted(a.tensor('sorted_sequence'), a.operand('input'), a.options('right', 'sorter')),
  ),
  sort: picking('input, dim=-1, descending=False, stable=False', (a) =>
    sn.sort(a.tensor('input'), a.number('dim'), a.options('descending', 'stable')),
  ),
  topk: picking('input, k, dim=-1, largest=True, sorted=True', (a) =>
    sn.topk(a.tensor('input'), a.number('k'), a.number('dim'), a.options('largest', 'sorted')),
  ),
};
