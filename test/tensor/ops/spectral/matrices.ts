// Matrices that decompositions are tried on, and by how much results miss what they must be, in units of the rounding of a
// dtype times the size of the matrix.

import * as sn from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';

export type Float = 'f32' | 'f64';

/** Numbers of a fixed sequence around 0. */
export function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

export function matrix(shape: readonly number[], seed: number, dtype: Float): Tensor {
  const draw = sequence(seed);
  const size = shape.reduce((product, dim) => product * dim, 1);
  return sn.reshape(sn.tensor(Float64Array.from({ length: size }, draw), { dtype }), shape);
}

/** An orthogonal matrix: a product of reflections. */
function orthogonal(n: number, seed: number): number[][] {
  const draw = sequence(seed);
  let q = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => Number(i === j)));
  for (let turn = 0; turn < 3; turn++) {
    const v = Array.from({ length: n }, draw);
    const square = v.reduce((sum, x) => sum + x * x, 0);
    q = q.map((row) => {
      const along = (2 * row.reduce((sum, x, j) => sum + x * v[j]!, 0)) / square;
      return row.map((x, j) => x - along * v[j]!);
    });
  }
  return q;
}

/** U·diag(values)·Vᵀ of such matrices, or of one and itself. */
export function withValues(values: readonly number[], dtype: Float, symmetric: boolean): Tensor {
  const n = values.length;
  const [u, v] = [orthogonal(n, 5), orthogonal(n, symmetric ? 5 : 11)];
  const data = u.flatMap((row) =>
    v.map((other) => row.reduce((sum, x, k) => sum + x * values[k]! * other[k]!, 0)),
  );
  return sn.reshape(sn.tensor(Float64Array.from(data), { dtype }), [n, n]);
}

/** Values of matrices that are easy to get wrong. */
export const spectra: Readonly<Record<string, readonly number[]>> = {
  clustered: [3, 1 + 1e-6, 1, 1, 1, 1 - 1e-6, 0.5, 0.5],
  'rank-deficient': [4, 2, 1, 0, 0, 0, 0],
  graded: [1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10],
  equal: [2, 2, 2, 2, 2],
  'far beyond one': [3e15, 2e15, 1e14, 1],
  'far below one': [3e-15, 2e-15, 1e-16, 0],
};

/** The conjugate transpose. */
export const transposed = (x: Tensor): Tensor => sn.adjoint(x);

/** A complex matrix of two real ones. */
export function complexMatrix(shape: readonly number[], seed: number, dtype: Float): Tensor {
  return sn.complex(matrix(shape, seed, dtype), matrix(shape, seed + 1, dtype));
}

async function greatest(x: Tensor): Promise<number> {
  return x.size === 0 ? 0 : Number(await sn.max(sn.abs(x)).item());
}

/** What ε is multiplied with: how far a − b is from 0, by the greatest element of `size`. */
export async function miss(a: Tensor, b: Tensor, size: Tensor, n: number): Promise<number> {
  const scale = (await greatest(size)) || 1;
  const epsilon = a.dtype === 'f64' || a.dtype === 'c128' ? 2 ** -52 : 2 ** -23;
  return (await greatest(sn.sub(a, b))) / (scale * epsilon * Math.max(1, n));
}

/** How far from orthonormal the columns of q are. */
export async function tilt(q: Tensor): Promise<number> {
  const k = q.shape.at(-1)!;
  const one = sn.eye(k, k, { dtype: q.dtype });
  return await miss(
    sn.matmul(transposed(q), q),
    sn.expand(one, [...q.shape.slice(0, -2), k, k]),
    one,
    q.shape.at(-2)!,
  );
}
