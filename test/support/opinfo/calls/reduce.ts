// Calls of PyTorch's operators as ours: reductions, scans, softmax, differences and areas.

import * as sn from '../../../../src/operations/index.ts';
import { variance } from '../../../../src/tensor/ops/reduce/reduce.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Call, type Calls, type Result } from '../args.ts';

type Fold = (x: Tensor, axes?: number | readonly number[], options?: { keepdim?: boolean }) => Result;

const fold = (f: Fold): Call =>
  signature('input, dim=None, keepdim=False')((a) =>
    f(a.tensor('input'), a.numbers('dim'), a.options('keepdim')),
  );
const place = (f: typeof sn.argmax): Call =>
  signature('input, dim=None, keepdim=False')((a) =>
    f(a.tensor('input'), a.maybeNumber('dim'), a.options('keepdim')),
  );
const extremum = (whole: Fold, withPlaces: typeof sn.maxWithIndices): Call =>
  signature('input, dim=None, keepdim=False')((a) =>
    a.has('dim')
      ? withPlaces(a.tensor('input'), a.number('dim'), a.options('keepdim'))
      : whole(a.tensor('input')),
  );
/** `std(True)` says whether it is unbiased, `std(dim, True)` too. */
const spread = (f: (x: Tensor, axes?: number | readonly number[], options?: object) => Result): Call => {
  const row = signature('input, dim=None, unbiased=True, keepdim=False, correction=None')((a) => {
    const unbiased = { correction: a.flag('unbiased') ? 1 : 0 };
    return f(a.tensor('input'), a.numbers('dim'), { ...unbiased, ...a.options('correction', 'keepdim') });
  });
  return (positional, keywords) =>
    typeof positional[1] === 'boolean'
      ? row([positional[0], undefined, positional[1]], keywords)
      : row(positional, keywords);
};
const cumulative = (f: typeof sn.cumsum): Call =>
  signature('input, dim, dtype=None')((a) => f(a.tensor('input'), a.number('dim'), a.dtype()));
const normalised = (f: typeof sn.softmax): Call =>
  signature('input, dim, dtype=None')((a) => f(a.tensor('input'), a.number('dim'), a.dtype()));
const area = (f: typeof sn.trapezoid): Call =>
  signature('y, x=None, dx=None, dim=-1')((a) =>
    f(a.tensor('y'), a.number('dim'), {
      ...(a.has('x') ? { x: a.tensor('x') } : {}),
      ...a.options('dx'),
    }),
  );
export const reduce: Calls = {
  all: fold(sn.all),
  amax: fold(sn.amax),
  amin: fold(sn.amin),
  any: fold(sn.any),
  argmax: place(sn.argmax),
  argmin: place(sn.argmin),
  count_nonzero: fold(sn.countNonzero),
  cumprod: cumulative(sn.cumprod),
  cumsum: cumulative(sn.cumsum),
  cumulative_trapezoid: area(sn.cumulativeTrapezoid),
  diff: signature('input, n=1, dim=-1, prepend=None, append=None')((a) =>
    sn.diff(a.tensor('input'), a.number('n'), a.number('dim'), a.options('prepend', 'append')),
  ),
  gradient: signature('input, spacing=None, dim=None, edge_order=1')((a) =>
    sn.gradient(a.tensor('input'), a.numbers('dim'), a.options('spacing', 'edge_order')),
  ),
  log_softmax: normalised(sn.logSoftmax),
  'log_softmax.dtype': normalised(sn.logSoftmax),
  logsumexp: fold(sn.logsumexp),
  'max.reduction_no_dim': extremum(sn.max, sn.maxWithIndices),
  'max.reduction_with_dim': extremum(sn.max, sn.maxWithIndices),
  mean: fold(sn.mean),
  'min.reduction_no_dim': extremum(sn.min, sn.minWithIndices),
  'min.reduction_with_dim': extremum(sn.min, sn.minWithIndices),
  prod: fold(sn.prod),
  renorm: signature('input, p, dim, maxnorm')((a) =>
    sn.renorm(a.tensor('input'), a.number('p'), a.number('dim'), a.number('maxnorm')),
  ),
  softmax: normalised(sn.softmax),
  'softmax.with_dtype': normalised(sn.softmax),
  std: spread(sn.std),
  std_mean: spread(sn.stdMean),
  sum: fold(sn.sum),
  sum_to_size: signature('input, *size')((a) => sn.sumToSize(a.tensor('input'), a.list('size'))),
  trapezoid: area(sn.trapezoid),
  trapz: area(sn.trapezoid),
  var: spread(variance),
  var_mean: spread(sn.varMean),
};
