// Calls of PyTorch's operators as ours: masked operations.

import * as sn from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Args, type Call, type Calls } from '../args.ts';

const { masked: ours } = sn;

type Fold = (x: Tensor, axes?: sn.Axes, options?: sn.masked.MaskedReduceOptions) => Tensor;
type Line = (x: Tensor, axis: number, options?: sn.masked.MaskOptions) => Tensor;
type Place = (x: Tensor, axis?: number, options?: sn.masked.MaskedReduceOptions) => Tensor;

const fold = (f: Fold): Call =>
  signature('input, dim=None, keepdim=False, dtype=None, mask=None')((a) =>
    f(a.tensor('input'), a.numbers('dim'), a.options('keepdim', 'dtype', 'mask')),
  );
/** What the call's dtype is: the operand's, unless it names another. */
const asked = (a: Args, result: Tensor): Tensor =>
  sn.cast(result, a.dtype().dtype ?? a.tensor('input').dtype);
const place = (f: Place): Call =>
  signature('input, dim=None, keepdim=False, dtype=None, mask=None')((a) =>
    asked(a, f(a.tensor('input'), a.maybeNumber('dim'), a.options('keepdim', 'mask'))),
  );
const line = (f: Line): Call =>
  signature('input, dim, dtype=None, mask=None')((a) =>
    f(a.tensor('input'), a.number('dim'), a.options('dtype', 'mask')),
  );
/** Running folds keep the operand's dtype there, unless the call names another. */
const running = (f: Line): Call =>
  signature('input, dim, dtype=None, mask=None')((a) => {
    const { dtype } = a.tensor('input');
    const kept = dtype === 'bool' ? {} : { dtype };
    return f(a.tensor('input'), a.number('dim'), { ...kept, ...a.options('dtype', 'mask') });
  });
const spread = (f: typeof ours.std): Call =>
  signature('input, dim=None, unbiased=True, keepdim=False, dtype=None, mask=None')((a) =>
    f(a.tensor('input'), a.numbers('dim'), {
      correction: a.flag('unbiased') ? 1 : 0,
      ...a.options('keepdim', 'dtype', 'mask'),
    }),
  );

export const masked: Calls = {
  'masked.amax': fold(ours.amax),
  'masked.amin': fold(ours.amin),
  'masked.argmax': place(ours.argmax),
  'masked.argmin': place(ours.argmin),
  'masked.cumprod': running(ours.cumprod),
  'masked.cumsum': running(ours.cumsum),
  'masked.log_softmax': line(ours.logSoftmax),
  'masked.logaddexp': signature('input, other, dtype=None, input_mask=None, other_mask=None')((a) =>
    ours.logaddexp(a.tensor('input'), a.tensor('other'), a.options('input_mask', 'other_mask')),
  ),
  'masked.logsumexp': signature('input, dim=None, keepdim=False, dtype=None, mask=None')((a) =>
    asked(a, ours.logsumexp(a.tensor('input'), a.numbers('dim'), a.options('keepdim', 'mask'))),
  ),
  'masked.mean': fold(ours.mean),
  'masked.median': signature('input, dim=-1, keepdim=False, dtype=None, mask=None')((a) =>
    ours.median(a.tensor('input'), a.number('dim'), a.options('keepdim', 'dtype', 'mask')),
  ),
  'masked.norm': signature('input, ord=2.0, dim=None, keepdim=False, dtype=None, mask=None')((a) =>
    ours.norm(a.tensor('input'), a.number('ord'), a.numbers('dim'), a.options('keepdim', 'dtype', 'mask')),
  ),
  'masked.normalize': signature('input, ord, dim, eps=1e-12, dtype=None, mask=None')((a) =>
    ours.normalize(a.tensor('input'), a.number('ord'), a.number('dim'), a.options('eps', 'dtype', 'mask')),
  ),
  'masked.prod': fold(ours.prod),
  'masked.softmax': line(ours.softmax),
  'masked.softmin': line(ours.softmin),
  'masked.std': spread(ours.std),
  'masked.sum': fold(ours.sum),
  'masked.var': spread(ours.var),
};
