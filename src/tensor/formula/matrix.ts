// Matrix algorithms as operations record them: each comes with its derivative, which other programs do without.

import { factorRule } from '../../autograd/rules-factor.ts';
import { factorDerivative } from '../../autograd/slots.ts';
import type { FactorKind } from '../../ir/factor.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import * as matrix from '../../ir/matrix.ts';

/** A matrix algorithm. */
export function factor(b: GraphBuilder, kind: FactorKind, ...operands: readonly Node[]): Node {
  factorDerivative.fill(factorRule);
  return matrix.factor(b, kind, ...operands);
}

/** X of L·X = B, from the lower triangle of L. */
export function solveLower(b: GraphBuilder, l: Node, rhs: Node, unit = false): Node {
  factorDerivative.fill(factorRule);
  return matrix.solveLower(b, l, rhs, unit);
}

/** X of U·X = B, from the upper triangle of U. */
export function solveUpper(b: GraphBuilder, u: Node, rhs: Node, unit = false): Node {
  factorDerivative.fill(factorRule);
  return matrix.solveUpper(b, u, rhs, unit);
}
