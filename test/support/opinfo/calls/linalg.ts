// Calls of PyTorch's operators as ours: linalg.

import * as sn from '../../../../src/operations/linalg.ts';
import { signature, type Args, type Call, type Calls } from '../args.ts';

const cholesky = signature('input, upper=False')((a) => sn.cholesky(a.tensor('input'), a.options('upper')));
const qr: Call = signature('input, mode=reduced, some=True')((a) => {
  const mode = a.flag('some') ? a.text<'reduced' | 'complete' | 'r'>('mode') : 'complete';
  return sn.qr(a.tensor('input'), { mode });
});
const luFactorEx = signature('input, pivot=True')((a) => sn.luFactorEx(a.tensor('input')));
/** What LAPACK's drivers by singular values do is one thing here. */
const lstsq = (a: Args): sn.LeastSquares =>
  sn.lstsq(a.tensor('input'), a.tensor('b'), {
    driver: a.maybeText('driver') === 'gels' ? 'gels' : 'gelsd',
  });
const takesLstsq = signature('input, b, rcond=None, driver=None');

export const linalg: Calls = {
  cholesky,
  'linalg.cholesky': cholesky,
  'linalg.cholesky_ex': signature('input, upper=False, check_errors=False')((a) =>
    sn.choleskyEx(a.tensor('input'), a.options('upper')),
  ),
  cholesky_inverse: signature('input, upper=False')((a) =>
    sn.choleskyInverse(a.tensor('input'), a.options('upper')),
  ),
  cholesky_solve: signature('input, input2, upper=False')((a) =>
    sn.choleskySolve(a.tensor('input'), a.tensor('input2'), a.options('upper')),
  ),
  geqrf: signature('input')((a) => sn.geqrf(a.tensor('input'))),
  'linalg.det': signature('input')((a) => sn.det(a.tensor('input'))),
  'linalg.det.singular': signature('input')((a) => sn.det(a.tensor('input'))),
  'linalg.slogdet': signature('input')((a) => sn.slogdet(a.tensor('input'))),
  logdet: signature('input')((a) => sn.logdet(a.tensor('input'))),
  'linalg.householder_product': signature('input, tau')((a) =>
    sn.householderProduct(a.tensor('input'), a.tensor('tau')),
  ),
  ormqr: signature('input, tau, other, left=True, transpose=False')((a) =>
    sn.ormqr(a.tensor('input'), a.tensor('tau'), a.tensor('other'), a.options('left', 'transpose')),
  ),
  'linalg.ldl_factor': signature('input, hermitian=False')((a) =>
    sn.ldlFactor(a.tensor('input'), a.options('hermitian')),
  ),
  'linalg.ldl_factor_ex': signature('input, hermitian=False, check_errors=False')((a) =>
    sn.ldlFactorEx(a.tensor('input'), a.options('hermitian')),
  ),
  'linalg.ldl_solve': signature('LD, pivots, B, hermitian=False')((a) =>
    sn.ldlSolve(a.tensor('LD'), a.tensor('pivots'), a.tensor('B'), a.options('hermitian')),
  ),
  'linalg.inv': signature('input')((a) => sn.inv(a.tensor('input'))),
  'linalg.inv_ex': signature('input, check_errors=False')((a) => sn.invEx(a.tensor('input'))),
  'linalg.lstsq': takesLstsq((a) => {
    const { solution, residuals, rank, singularValues } = lstsq(a);
    return [solution, residuals, rank, singularValues];
  }),
  'linalg.lstsq.grad_oriented': takesLstsq((a) => lstsq(a).solution),
  lu: signature('input, pivot=True, get_infos=False')((a) =>
    a.flag('get_infos') ? sn.luFactorEx(a.tensor('input')) : sn.luFactor(a.tensor('input')),
  ),
  'linalg.lu_factor_ex': luFactorEx,
  'linalg.lu_factor': signature('input, pivot=True')((a) => sn.luFactor(a.tensor('input'))),
  'linalg.lu': signature('input, pivot=True')((a) => sn.lu(a.tensor('input'))),
  'linalg.lu_solve': signature('LU, pivots, B, left=True, adjoint=False')((a) =>
    sn.luSolve(a.tensor('LU'), a.tensor('pivots'), a.tensor('B'), a.options('left', 'adjoint')),
  ),
  lu_solve: signature('input, LU_data, LU_pivots')((a) =>
    sn.luSolve(a.tensor('LU_data'), a.tensor('LU_pivots'), a.tensor('input')),
  ),
  lu_unpack: signature('input, LU_pivots, unpack_data=True, unpack_pivots=True')((a) =>
    sn.luUnpack(a.tensor('input'), a.tensor('LU_pivots')),
  ),
  'linalg.matrix_power': signature('input, n')((a) => sn.matrixPower(a.tensor('input'), a.number('n'))),
  'linalg.multi_dot': signature('tensors')((a) => sn.multiDot(a.tensors('tensors'))),
  'linalg.qr': qr,
  qr,
  'linalg.solve': signature('A, B, left=True')((a) =>
    sn.solve(a.tensor('A'), a.tensor('B'), a.options('left')),
  ),
  'linalg.solve_ex': signature('A, B, left=True, check_errors=False')((a) =>
    sn.solveEx(a.tensor('A'), a.tensor('B'), a.options('left')),
  ),
  'linalg.solve_triangular': signature('input, B, upper, left=True, unitriangular=False')((a) =>
    sn.solveTriangular(a.tensor('input'), a.tensor('B'), a.options('upper', 'left', 'unitriangular')),
  ),
  triangular_solve: signature('input, A, upper=True, transpose=False, unitriangular=False')((a) =>
    sn.triangularSolve(a.tensor('input'), a.tensor('A'), a.options('upper', 'transpose', 'unitriangular')),
  ),
  'linalg.tensorinv': signature('input, ind=2')((a) => sn.tensorinv(a.tensor('input'), a.options('ind'))),
  'linalg.tensorsolve': signature('input, B, dims=None')((a) =>
    sn.tensorsolve(a.tensor('input'), a.tensor('B'), a.has('dims') ? { axes: a.list('dims') } : {}),
  ),
};
