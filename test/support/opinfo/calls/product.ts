// Calls of PyTorch's operators as ours: products of vectors, matrices and tensors.

import * as sn from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, unary, type Call, type Calls } from '../args.ts';

const pair = (f: (x: Tensor, y: Tensor) => Tensor): Call =>
  signature('input, other')((a) => f(a.tensor('input'), a.tensor('other')));
const affine = (f: typeof sn.addmm): Call =>
  signature('input, mat1, mat2, beta=1, alpha=1')((a) =>
    f(a.tensor('input'), a.tensor('mat1'), a.tensor('mat2'), {
      beta: a.operand('beta'),
      alpha: a.operand('alpha'),
    }),
  );

export const product: Calls = {
  __rmatmul__: pair((x, y) => sn.matmul(y, x)),
  addbmm: affine(sn.addbmm),
  addmm: affine(sn.addmm),
  'addmm.decomposed': affine(sn.addmm),
  addmv: affine(sn.addmv),
  addr: affine(sn.addr),
  baddbmm: affine(sn.baddbmm),
  bmm: pair(sn.bmm),
  dot: pair(sn.dot),
  // The samples have the operands first.
  einsum: signature('operands, equation')((a) => sn.einsum(a.text('equation'), ...a.tensors('operands'))),
  inner: pair(sn.inner),
  kron: pair(sn.kron),
  matmul: pair(sn.matmul),
  mm: pair(sn.mm),
  mv: pair(sn.mv),
  outer: pair(sn.outer),
  tensordot: signature('input, other, dims=2')((a) => {
    const dims = a.raw('dims');
    const axes = Array.isArray(dims) ? (dims as [number[], number[]]) : a.number('dims');
    return sn.tensordot(a.tensor('input'), a.tensor('other'), axes);
  }),
  trace: unary(sn.trace),
  vdot: pair(sn.vdot),
};
