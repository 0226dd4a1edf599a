// Linear algebra, Fourier transforms, special functions, sparse matrices.

import { alike, type Family } from '../row.ts';

const within = (space: string, names: string, call: (name: string) => string): Record<string, string> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [`${space}.${name}`, call(name)]));

/** Bases have free signs: what is determined is their product. */
const bySvd = (vh: string): string => `[y[0].mul(y[1]).matmul(${vh}), y[1]]`;

export const linearAlgebra: Family = {
  name: 'linalg',
  title: 'Linear algebra',
  about:
    'Matrices are the last two axes; leading ones are a stack. f32, f64 and complex; halves are refused: cast first. Errors that the data ' +
    'decides (not positive definite, singular) reject the read. Signs of bases are free, as LAPACK’s are.',
  inputs: {
    a: 'sn.tensor([[4, 2], [2, 3]])',
    x: 'sn.tensor([[1, 2], [3, 4], [5, 6]])',
    r: 'sn.tensor([[2, 1], [0, 3]])',
    b: 'sn.tensor([[2], [1]])',
    b3: 'sn.tensor([[1], [0], [1]])',
    l: 'sn.tensor([[2, 0], [1, 1]])',
    v: 'sn.tensor([1, 2, 3])',
    pivots: "sn.tensor([2, 2], { dtype: 'i32' })",
    tau: 'sn.tensor([1.2, 1])',
    factors: 'sn.tensor([[4, 0], [0.5, 2]])',
    order: "sn.tensor([1, 2], { dtype: 'i32' })",
    h: 'sn.tensor([[1, 2], [0.5, 1], [0.5, 2]])',
    three: 'sn.tensor([[1, 2, 3], [4, 5, 6]])',
    other: 'sn.tensor([[1, 0, 1], [0, 1, 0]])',
  },
  rows: {
    ...alike('cholesky det logdet slogdet inverse matrixExp', (name) => `sn.${name}(a)`),
    choleskyInverse: 'sn.choleskyInverse(l)',
    choleskySolve: 'sn.choleskySolve(b, l)',
    qr: 'sn.qr(x)',
    svd: { call: 'sn.svd(a)', compared: bySvd('sn.adjoint(y[2])') },
    pinverse: 'sn.pinverse(x)',
    geqrf: 'sn.geqrf(x)',
    luUnpack: 'sn.luUnpack(r, pivots)',
    matrixPower: 'sn.matrixPower(a, 3)',
    orgqr: 'sn.orgqr(h, tau)',
    ormqr: 'sn.ormqr(h, tau, b3)',
    triangularSolve: 'sn.triangularSolve(b, l, { upper: false })',
    ...within(
      'linalg',
      'cholesky choleskyEx det logdet slogdet inv invEx matrixExp',
      (name) => `sn.linalg.${name}(a)`,
    ),
    ...within('linalg', 'eigh eigvalsh eig eigvals cond matrixRank', (name) => `sn.linalg.${name}(a)`),
    ...within('linalg', 'qr lu luFactor luFactorEx geqrf pinv svd svdvals', (name) => `sn.linalg.${name}(x)`),
    'linalg.svd': { call: 'sn.linalg.svd(x, { fullMatrices: false })', compared: bySvd('y[2]') },
    ...within('linalg', 'ldlFactor ldlFactorEx', (name) => `sn.linalg.${name}(a)`),
    'linalg.ldlSolve': 'sn.linalg.ldlSolve(factors, order, b)',
    'linalg.choleskyInverse': 'sn.linalg.choleskyInverse(l)',
    'linalg.choleskySolve': 'sn.linalg.choleskySolve(b, l)',
    'linalg.householderProduct': 'sn.linalg.householderProduct(h, tau)',
    'linalg.ormqr': 'sn.linalg.ormqr(h, tau, b3)',
    'linalg.lstsq': 'sn.linalg.lstsq(x, b3)',
    'linalg.luSolve': 'sn.linalg.luSolve(r, pivots, b)',
    'linalg.luUnpack': 'sn.linalg.luUnpack(r, pivots)',
    'linalg.solve': 'sn.linalg.solve(a, b)',
    'linalg.solveEx': 'sn.linalg.solveEx(a, b)',
    'linalg.solveTriangular': 'sn.linalg.solveTriangular(l, b, { upper: false })',
    'linalg.triangularSolve': 'sn.linalg.triangularSolve(b, l, { upper: false })',
    'linalg.matrixPower': 'sn.linalg.matrixPower(a, -1)',
    'linalg.multiDot': 'sn.linalg.multiDot([x, a, b])',
    'linalg.tensorinv': 'sn.linalg.tensorinv(a.reshape([2, 2]), { ind: 1 })',
    'linalg.tensorsolve': 'sn.linalg.tensorsolve(a, b.flatten())',
    'linalg.norm': 'sn.linalg.norm(x)',
    'linalg.matrixNorm': 'sn.linalg.matrixNorm(x)',
    'linalg.vectorNorm': 'sn.linalg.vectorNorm(x, 1)',
    'linalg.vecdot': 'sn.linalg.vecdot(three, other)',
    'linalg.cross': 'sn.linalg.cross(three, other)',
    'linalg.diagonal': 'sn.linalg.diagonal(x)',
    'linalg.vander': 'sn.linalg.vander(v)',
  },
};

export const transforms: Family = {
  name: 'fft',
  title: 'Fourier transforms',
  about:
    'Along the last axis, or the axes that `dim` names; any length, any norm. Complex in and out but where the name says real (`r`) or ' +
    'Hermitian (`h`). f32 and f64 and their complex numbers; integers count as f32.',
  inputs: {
    x: 'sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]])',
    z: 'sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]))',
    v: 'sn.tensor([1, 2, 3, 4])',
    k: 'sn.tensor([1, 0, -1])',
    signal: 'sn.linspace(0, 1.75, 8)',
  },
  rows: {
    ...within('fft', 'fft rfft ihfft fftn fft2 rfftn rfft2 ihfftn ihfft2', (name) => `sn.fft.${name}(x)`),
    ...within('fft', 'ifft irfft hfft ifftn ifft2 irfftn irfft2 hfftn hfft2', (name) => `sn.fft.${name}(z)`),
    'fft.fft/size': 'sn.fft.fft(z, { n: 4 })',
    'fft.fftn/cube': 'sn.fft.fftn(x.reshape([2, 2, 2]))',
    'fft.fftn/axes': 'sn.fft.fftn(x, { dim: [0] })',
    ...within('fft', 'fftshift ifftshift', (name) => `sn.fft.${name}(v)`),
    ...within('fft', 'fftfreq rfftfreq', (name) => `sn.fft.${name}(4, { dtype: 'f32' })`),
    ...within('fft', 'convolve correlate', (name) => `sn.fft.${name}(v, k)`),
    stft: 'sn.stft(signal, 4, { window: v })',
    istft: 'sn.istft(sn.stft(signal, 4, { window: v }), 4, { window: v })',
  },
};

const u = 'sn.tensor([0.25, 0.5, 0.75])';

export const specialFunctions: Family = {
  name: 'special',
  title: 'Special functions',
  about:
    'Any shape; two operands broadcast. f32 and f64 to a few units in the last place; f16 and bf16 through f32; integers count as f32.',
  inputs: {
    x: 'sn.tensor([0.5, 1.5, 4])',
    u,
    a: 'sn.tensor([1, 2, 3])',
  },
  rows: {
    ...alike('digamma lgamma i0 sinc', (name) => `sn.${name}(x)`),
    ...alike('erfinv logit', (name) => `sn.${name}(u)`),
    ...alike('igamma igammac xlogy', (name) => `sn.${name}(a, x)`),
    mvlgamma: 'sn.mvlgamma(a, 2)',
    polygamma: 'sn.polygamma(1, x)',
    ...within(
      'special',
      'airyAi besselJ0 besselJ1 besselY0 besselY1 digamma erf erfc erfcx exp2 expit expm1 gammaln i0 i0e i1 i1e ' +
        'log1p logNdtr modifiedBesselI0 modifiedBesselI1 modifiedBesselK0 modifiedBesselK1 ndtr psi round ' +
        'scaledModifiedBesselK0 scaledModifiedBesselK1 sinc sphericalBesselJ0',
      (name) => `sn.special.${name}(x)`,
    ),
    ...within('special', 'entr erfinv logit ndtri', (name) => `sn.special.${name}(u)`),
    ...within('special', 'gammainc gammaincc xlogy xlog1py', (name) => `sn.special.${name}(a, x)`),
    'special.zeta': 'sn.special.zeta(a.add(1), x)',
    ...within(
      'special',
      'chebyshevPolynomialT chebyshevPolynomialU chebyshevPolynomialV chebyshevPolynomialW hermitePolynomialH ' +
        'hermitePolynomialHe laguerrePolynomialL legendrePolynomialP shiftedChebyshevPolynomialT ' +
        'shiftedChebyshevPolynomialU shiftedChebyshevPolynomialV shiftedChebyshevPolynomialW',
      (name) => `sn.special.${name}(x, 3)`,
    ),
    'special.multigammaln': 'sn.special.multigammaln(a, 2)',
    'special.polygamma': 'sn.special.polygamma(1, x)',
    'special.logsumexp': 'sn.special.logsumexp(x, 0)',
    'special.softmax': 'sn.special.softmax(x, 0)',
    'special.logSoftmax': 'sn.special.logSoftmax(x, 0)',
  },
};

const csr = 'sn.sparse.csr(starts, columns, v, [2, 3])';

export const sparseMatrices: Family = {
  name: 'sparse',
  title: 'Sparse matrices',
  about:
    'Rows, columns or pointers are integers, values of any dtype; a matrix is a tree of tensors that `compile` and `grad` take. The number ' +
    'of elements that the data decides is a promise, or takes `size`.',
  inputs: {
    starts: "sn.tensor([0, 2, 3], { dtype: 'i32' })",
    columns: "sn.tensor([0, 2, 1], { dtype: 'i32' })",
    down: "sn.tensor([0, 1, 2, 3], { dtype: 'i32' })",
    below: "sn.tensor([0, 1, 0], { dtype: 'i32' })",
    rows: "sn.tensor([0, 0, 1], { dtype: 'i32' })",
    v: 'sn.tensor([1, 2, 3])',
    x: 'sn.tensor([[1, 0], [2, 1], [0, 3]])',
    dense: 'sn.tensor([[1, 0, 2], [0, 3, 0]])',
    u: 'sn.tensor([1, 2, 3])',
    w: 'sn.tensor([[1, 0], [0, 2], [3, 0], [0, 4]])',
    y: 'sn.tensor([[1, 2, 3, 4]])',
  },
  rows: {
    'sparse.csr': `sn.sparse.toDense(${csr})`,
    'sparse.csc': 'sn.sparse.toDense(sn.sparse.csc(down, below, v, [2, 3]))',
    'sparse.coo': 'sn.sparse.toDense(sn.sparse.coo(rows, columns, v, [2, 3]))',
    ...within('sparse', 'toCoo toCsc toDense', (name) => `sn.sparse.${name}(${csr})`),
    'sparse.toCsr': 'sn.sparse.toCsr(sn.sparse.coo(rows, columns, v, [2, 3]))',
    'sparse.transpose': `sn.sparse.toDense(sn.sparse.transpose(${csr}))`,
    'sparse.scale': `sn.sparse.scale(${csr}, 2)`,
    'sparse.spmm': `sn.sparse.spmm(${csr}, x)`,
    'sparse.spmv': `sn.sparse.spmv(${csr}, u)`,
    'sparse.coalesce': {
      call: 'sn.sparse.coalesce(sn.sparse.coo(rows, columns, v, [2, 3]))',
      sized: 'sn.sparse.coalesce(sn.sparse.coo(rows, columns, v, [2, 3]), { size: 3 })',
    },
    'sparse.fromDense': {
      call: 'sn.sparse.fromDense(dense)',
      sized: 'sn.sparse.fromDense(dense, { size: 3 })',
    },
    'sparse24.compress': 'sn.sparse24.compress(w)',
    'sparse24.decompress': 'sn.sparse24.decompress(sn.sparse24.compress(w))',
    'sparse24.matmul': 'sn.sparse24.matmul(y, sn.sparse24.compress(w))',
  },
};
