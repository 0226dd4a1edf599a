// Calls of PyTorch's operators as ours: arithmetic and functions of single elements.

import * as sn from '../../../../src/tensor/ops/all.ts';
import { binary, signature, unary, type Calls } from '../args.ts';

export const elementwise: Calls = {
  abs: unary(sn.abs),
  add: signature('input, other, alpha=1')((a) =>
    sn.add(a.operand('input'), a.operand('other'), a.options('alpha')),
  ),
  pow: binary(sn.pow),
};
