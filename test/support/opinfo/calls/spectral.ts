// Calls of PyTorch's operators as ours: singular values, eigenvalues, norms and distances.

import * as sn from '../../../../src/operations/index.ts';
import { linalg } from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, unary, type Args, type Calls } from '../args.ts';

/** A number, a word, or nothing. */
function order(a: Args, name: string): number | 'fro' | 'nuc' | undefined {
  if (!a.has(name)) return undefined;
  return typeof a.raw(name) === 'string' ? wordOf(a.text(name)) : a.number(name);
}

/** Some of PyTorch's words are numbers of ours. */
function wordOf(text: string): number | 'fro' | 'nuc' {
  if (text === 'inf') return Infinity;
  if (text === '-inf') return -Infinity;
  return text as 'fro' | 'nuc';
}

/** A bound that is a number or a tensor. */
function bounds(a: Args, ...names: readonly string[]): Record<string, number | Tensor> {
  const found = names.flatMap((name) => (a.has(name) ? [[name, a.operand(name) as number | Tensor]] : []));
  return Object.fromEntries(found) as Record<string, number | Tensor>;
}

const pair = (a: Args): [number, number] => a.list('dim') as [number, number];

const matrixRank = signature('A, tol=None, hermitian=False, atol=None, rtol=None')((a) => {
  const options = { ...bounds(a, 'atol', 'rtol'), hermitian: a.flag('hermitian') };
  const tolerance = a.has('tol') ? { atol: a.operand('tol') as number | Tensor, rtol: 0 } : {};
  return linalg.matrixRank(a.tensor('A'), { ...options, ...tolerance });
});

const pinv = signature('A, rcond=None, hermitian=False, atol=None, rtol=None')((a) => {
  const options = { ...bounds(a, 'atol', 'rtol'), hermitian: a.flag('hermitian') };
  const relative = a.has('rcond') ? { rtol: a.operand('rcond') as number | Tensor } : {};
  return linalg.pinv(a.tensor('A'), { ...options, ...relative });
});

const linalgNorm = signature('A, ord=None, dim=None, keepdim=False, dtype=None')((a) =>
  linalg.norm(a.tensor('A'), order(a, 'ord'), a.numbers('dim'), {
    keepdim: a.flag('keepdim'),
    ...a.dtype(),
  }),
);

const norm = signature('input, p=fro, dim=None, keepdim=False, dtype=None')((a) =>
  sn.norm(a.tensor('input'), order(a, 'p') ?? 2, a.numbers('dim'), {
    keepdim: a.flag('keepdim'),
    ...a.dtype(),
  }),
);

export const spectral: Calls = {
  'linalg.svd': signature('A, full_matrices=True')((a) =>
    linalg.svd(a.tensor('A'), { fullMatrices: a.flag('full_matrices') }),
  ),
  'linalg.svdvals': unary(linalg.svdvals),
  svd: signature('input, some=True, compute_uv=True')((a) =>
    sn.svd(a.tensor('input'), { some: a.flag('some'), computeUv: a.flag('compute_uv') }),
  ),
  'linalg.eig': unary(linalg.eig),
  'linalg.eigvals': unary(linalg.eigvals),
  'linalg.eigh': signature('A, UPLO=L')((a) => linalg.eigh(a.tensor('A'), { uplo: a.text('UPLO') })),
  'linalg.eigvalsh': signature('A, UPLO=L')((a) => linalg.eigvalsh(a.tensor('A'), { uplo: a.text('UPLO') })),
  'linalg.pinv': pinv,
  'linalg.pinv.hermitian': pinv,
  'linalg.pinv.singular': signature('a, b')((a) => {
    const factors = [a.tensor('a'), a.tensor('b')] as const;
    return linalg.pinv(sn.matmul(factors[0], sn.transpose(factors[1], -1, -2)));
  }),
  pinverse: signature('input, rcond=1e-15')((a) => sn.pinverse(a.tensor('input'), a.number('rcond'))),
  'linalg.matrix_rank': matrixRank,
  'linalg.matrix_rank.hermitian': matrixRank,
  matrix_exp: unary(sn.matrixExp),
  'linalg.matrix_norm': signature('A, ord=fro, dim=None, keepdim=False, dtype=None')((a) =>
    linalg.matrixNorm(a.tensor('A'), order(a, 'ord'), a.has('dim') ? pair(a) : undefined, {
      keepdim: a.flag('keepdim'),
      ...a.dtype(),
    }),
  ),
  'linalg.vector_norm': signature('x, ord=2, dim=None, keepdim=False, dtype=None')((a) =>
    linalg.vectorNorm(a.tensor('x'), a.number('ord'), a.numbers('dim'), {
      keepdim: a.flag('keepdim'),
      ...a.dtype(),
    }),
  ),
  'linalg.norm': linalgNorm,
  'linalg.norm.subgradients_at_zero': linalgNorm,
  norm,
  'norm.fro': norm,
  'norm.inf': norm,
  'norm.nuc': norm,
  'linalg.cond': signature('A, p=None')((a) => linalg.cond(a.tensor('A'), order(a, 'p'))),
  'linalg.cross': signature('input, other, dim=-1')((a) =>
    linalg.cross(a.tensor('input'), a.tensor('other'), a.number('dim')),
  ),
  cross: signature('input, other, dim=None')((a) =>
    sn.cross(a.tensor('input'), a.tensor('other'), a.maybeNumber('dim')),
  ),
  'linalg.vander': signature('x, N=None')((a) => linalg.vander(a.tensor('x'), a.options('N=n'))),
  'linalg.vecdot': signature('x, y, dim=-1')((a) =>
    linalg.vecdot(a.tensor('x'), a.tensor('y'), a.number('dim')),
  ),
  cdist: signature('x1, x2, p=2, compute_mode=None')((a) =>
    sn.cdist(a.tensor('x1'), a.tensor('x2'), a.number('p')),
  ),
  'nn.functional.pdist': signature('input, p=2')((a) => sn.pdist(a.tensor('input'), a.number('p'))),
  'nn.functional.pairwise_distance': signature('x1, x2, p=2, eps=1e-6, keepdim=False')((a) =>
    sn.pairwiseDistance(a.tensor('x1'), a.tensor('x2'), a.options('p', 'eps', 'keepdim')),
  ),
  dist: signature('input, other, p=2')((a) => sn.dist(a.tensor('input'), a.tensor('other'), a.number('p'))),
};
