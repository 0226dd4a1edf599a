// The matrix algorithms that the primitive `factor` stands for, one row a kind: what goes in, what
// comes out, and how much arithmetic that is. Operands and results are stacks of matrices
// [lines, rows, columns]; a kind with several results packs them into one matrix.

/** Rows and columns of a matrix. */
export type Size = readonly [rows: number, columns: number];

export interface FactorRow {
  /** What each operand is, for messages. */
  readonly takes: readonly string[];
  /** What must hold of the operands' sizes, in words. */
  readonly needs: string;
  fits(...operands: readonly Size[]): boolean;
  /** The size of the packed result. */
  result(...operands: readonly Size[]): Size;
  /** Whether elements may be complex. */
  readonly takesComplex: boolean;
  /** Arithmetic for one matrix. */
  flops(...operands: readonly Size[]): number;
}

const squareSystem = {
  takesComplex: true,
  takes: ['the triangle', 'the right-hand sides'],
  needs: 'expects a square matrix, and right-hand sides with as many rows',
  fits: ([m, n]: Size, [rows]: Size): boolean => m === n && rows === m,
  result: (_triangle: Size, sides: Size): Size => sides,
  flops: ([n]: Size, [, sides]: Size): number => n * n * sides,
} as const;

const whole = {
  takesComplex: true,
  takes: ['the matrix'],
  needs: 'expects a matrix with elements',
  fits: ([m, n]: Size): boolean => m > 0 && n > 0,
} as const;

/** Of a complex matrix, its real parts before its imaginary ones. */
const pairs = {
  takesComplex: false,
  takes: ['the matrix'],
  needs: 'expects the two parts of a matrix with elements',
  fits: ([m, n]: Size): boolean => m > 0 && n > 0 && n % 2 === 0,
} as const;

const ldl = {
  takesComplex: false,
  takes: ['the matrix'],
  needs: 'expects the two parts of a square matrix with elements',
  fits: ([m, n]: Size): boolean => m > 0 && n === 2 * m,
  result: ([m]: Size): Size => [m, 2 * m + 1],
  flops: ([m]: Size): number => (4 * m ** 3) / 3,
} as const;

const luFlops = ([m, n]: Size): number => {
  const k = Math.min(m, n);
  return k * k * (Math.max(m, n) - k / 3);
};

const householderFlops = ([m, n]: Size): number => {
  const k = Math.min(m, n);
  return 2 * k * k * (Math.max(m, n) - k / 3);
};

/** The name of a matrix algorithm. */
export type FactorKind =
  | 'cholesky'
  | 'lowerSolve'
  | 'unitLowerSolve'
  | 'lu'
  | 'householder'
  | 'qr'
  | 'exchanges'
  | 'schur'
  | 'luOfPairs'
  | 'householderOfPairs'
  | 'ldlSymmetric'
  | 'ldlHermitian';

/** Every kind. */
export const factorKinds: { readonly [K in FactorKind]: FactorRow } = {
  /**
   * Of a complex A, its real parts before its imaginary ones [n, 2n]: T of A = Q·T·Qᴴ beside Qᴴ,
   * each with real parts first. On the diagonal of T stand the eigenvalues, above it the
   * eigenvectors of T without what stands on their own diagonal: that stands in the first column
   * (1 at its top is left out). NaN on the diagonal where the steps do not come to an end.
   */
  schur: {
    takesComplex: false,
    takes: ['the matrix'],
    needs: 'expects the two parts of a square matrix with elements',
    fits: ([m, n]: Size): boolean => m > 0 && n === 2 * m,
    result: ([m]: Size): Size => [m, 4 * m],
    flops: ([m]: Size): number => 100 * m ** 3,
  },
  /**
   * The lower triangle L of A = L·Lᴴ, from the lower triangle of A; zeros above. From the first
   * column on whose pivot is not positive, NaN.
   */
  cholesky: {
    takesComplex: true,
    takes: ['the matrix'],
    needs: 'expects a square matrix',
    fits: ([m, n]: Size): boolean => m === n,
    result: (size: Size): Size => size,
    flops: ([n]: Size): number => n ** 3 / 3,
  },
  /** X of L·X = B, from the lower triangle of L. */
  lowerSolve: squareSystem,
  /** X of L·X = B, from what stands below the diagonal of L: ones are taken to stand on it. */
  unitLowerSolve: squareSystem,
  /**
   * A = P·L·U with partial pivoting. Columns: those of U, and below its diagonal of L, whose own
   * diagonal is ones; then the row of A that stands in this row of L·U; then the row that this one
   * was exchanged with when its turn came (0 where none was). Both count from 0. A complex pivot is
   * great by |re| + |im|, as in LAPACK.
   */
  lu: {
    ...whole,
    result: ([m, n]: Size): Size => [m, n + 2],
    flops: luFlops,
  },
  /**
   * A = H₁·H₂⋯·R with reflectors Hⱼ = I − τⱼ·vⱼ·vⱼᴴ. R stands on and above the diagonal, vⱼ below
   * it in column j (its leading 1 is left out); a last row has the τⱼ, and zeros where there are
   * none. R has a real diagonal.
   */
  householder: {
    ...whole,
    result: ([m, n]: Size): Size => [m + 1, n],
    flops: householderFlops,
  },
  /** A = Q·R with k = min(m, n) orthonormal columns: Q, and beside it R above zeros. */
  qr: {
    ...whole,
    result: ([m, n]: Size): Size => [m, Math.min(m, n) + n],
    flops: (size: Size): number => 2 * householderFlops(size),
  },
  /**
   * The order of rows after the exchanges that `lu` tells, from a column of them: which row of what
   * was factored stands in each row.
   */
  exchanges: {
    takesComplex: false,
    takes: ['the exchanges'],
    needs: 'expects one column',
    fits: ([, n]: Size): boolean => n === 1,
    result: (size: Size): Size => size,
    flops: ([m]: Size): number => 2 * m,
  },
  /**
   * P·L·D·Lᵀ·Pᵀ = A by pivots of one row or two, from the lower triangle of a symmetric matrix, real
   * parts before imaginary ones: L below the diagonal (its own is ones), D on it and, of a pivot of
   * two rows, below it, zeros above. A last column has the pivots: the row, counted from 1, that was
   * brought here; its negative, twice, where the second of two rows was. As LAPACK's sytf2.
   */
  ldlSymmetric: ldl,
  /** P·L·D·Lᴴ·Pᵀ = A likewise, of a Hermitian matrix. As LAPACK's hetf2. */
  ldlHermitian: ldl,
  /** What `lu` gives: real parts of its columns, imaginary ones, then the two columns of whole numbers. */
  luOfPairs: {
    ...pairs,
    result: ([m, n]: Size): Size => [m, n + 2],
    flops: ([m, n]: Size): number => 4 * luFlops([m, n / 2]),
  },
  /** What `householder` gives, real parts before imaginary ones. */
  householderOfPairs: {
    ...pairs,
    result: ([m, n]: Size): Size => [m + 1, n],
    flops: ([m, n]: Size): number => 4 * householderFlops([m, n / 2]),
  },
};

/** Every name. */
export const factorNames: readonly FactorKind[] = Object.keys(factorKinds) as FactorKind[];

/** The row of a kind. */
export function factorRow(kind: FactorKind): FactorRow {
  return factorKinds[kind];
}
