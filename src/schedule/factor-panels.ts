// Which matrix algorithms one kernel of a core does on a whole matrix, panel of columns by panel: the pass
// that splits them asks, and so does the template that is filled.

import { dtypeBytes, type DType } from '../ir/dtype.ts';
import type { FactorKind, Size } from '../ir/factor.ts';
import { packsOperands } from './machine.ts';
import type { Target } from './target.ts';

/**
 * Columns that a kernel takes at most. Of larger matrices, products are kernels of their own, which cores share;
 * reflections, of which those take more arithmetic, stay together longer.
 */
export function mostColumns(kind: FactorKind): number {
  return kind === 'householder' || kind === 'qr' ? 1024 : 512;
}

/** Columns of a matrix up to which it is one panel, which simpler kernels take. */
const fewColumns = 16;

/** Right-hand sides that a workgroup solves for at most. */
export const sidesTogether = 128;
/** Rows of a triangle that are packed at a time. */
export const packedRows = 32;

/** Columns whose reflections are applied together. */
export const reflectionsTogether = 32;

/** Elements of a panel's row. Two rows of sums fill half the registers, as in products. */
export function panelWidth(dtype: DType): number {
  return dtype === 'f64' ? 8 : 16;
}

/** Elements that the kernel keeps by the side; undefined where it has no such form. */
function elementsKept(kind: FactorKind, [matrix, sides]: readonly Size[], width: number): number | undefined {
  const [m, n] = matrix!;
  const k = Math.min(m, n);
  switch (kind) {
    case 'cholesky':
      return 2 * (n + 3) * width + width ** 2;
    case 'lowerSolve':
    case 'unitLowerSolve':
      return m * (Math.min(sides![1] + width, sidesTogether) + packedRows);
    case 'lu':
      return m * width;
    case 'householder':
    case 'qr':
      return (
        (m + 1) * (2 * reflectionsTogether + width) +
        reflectionsTogether * (2 * width + 2 * reflectionsTogether + k)
      );
    case 'schur':
    case 'exchanges':
    case 'ldlSymmetric':
    case 'ldlHermitian':
    case 'luOfPairs':
    case 'householderOfPairs':
      return undefined;
    default:
      return kind satisfies never;
  }
}

/** Whether the target has a kernel for the algorithm on whole operands of these sizes, by panels. */
export function goesByPanels(
  kind: FactorKind,
  sizes: readonly Size[],
  dtype: DType,
  target: Target,
): boolean {
  if (!packsOperands(target)) return false;
  const columns = Math.min(...sizes[0]!);
  const elements = elementsKept(kind, sizes, panelWidth(dtype));
  return (
    columns > fewColumns &&
    columns <= mostColumns(kind) &&
    elements !== undefined &&
    elements * dtypeBytes(dtype) <= target.limits.workgroupBytes
  );
}
