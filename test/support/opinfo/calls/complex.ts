// Calls of PyTorch's operators as ours: complex numbers, their parts and what is told of them.

import * as sn from '../../../../src/operations/index.ts';
import { binary, unary, type Calls } from '../args.ts';

export const complex: Calls = {
  H: unary((x) => (x.rank < 2 ? sn.conj(x) : sn.adjoint(x))),
  angle: unary(sn.angle),
  complex: binary(sn.complex),
  conj: unary(sn.conj),
  imag: unary(sn.imag),
  isreal: unary(sn.isReal),
  mH: unary((x) => (x.rank < 2 ? sn.conj(x) : sn.adjoint(x))),
  polar: binary(sn.polar),
  real: unary(sn.real),
  sgn: unary(sn.sgn),
  view_as_real: unary(sn.viewAsReal),
};
