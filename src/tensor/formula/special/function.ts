// Functions of one real number: a formula for the value, and one for the derivative, which is
// itself made of such functions, so that there are derivatives of every order. Calls that make one
// are marked pure: bundlers leave out those that nothing uses.

import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { withRule } from '../elementwise.ts';
import { Real, type DerivativeOf, type RealFormula } from './real.ts';

/** The formula with this derivative in place of that of its parts. */
export function differentiable(value: RealFormula, derivative: DerivativeOf): RealFormula {
  const rule: CustomRule = (b, [x], out, g) => [
    times(b, g, derivative(new Real(b, x!), new Real(b, out)).node),
  ];
  return (x) => new Real(x.b, withRule(x.b, value(x).node, [x.node], rule));
}

/** The formula over nodes. */
export function ofNode(formula: RealFormula): (b: GraphBuilder, x: Node) => Node {
  return (b, x) => formula(new Real(b, x)).node;
}
