// Real numbers as nodes, f32 or f64, with arithmetic as methods: long formulas read from left to
// right.

import { binary, fullLike, unary, where } from '../../../ir/build.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import type { BinaryOp, UnaryOp } from '../../../ir/ops.ts';
import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { withRule } from '../elementwise.ts';

type Function1 = Exclude<UnaryOp, 'cast' | 'bitcast' | 'isNan' | 'not'>;
/** What stands for a number beside another one. */
type RealLike = Real | number;

export class Real {
  readonly b: GraphBuilder;
  readonly node: Node;

  constructor(b: GraphBuilder, node: Node) {
    this.b = b;
    this.node = node;
  }

  get isDouble(): boolean {
    return this.node.dtype === 'f64';
  }

  /** A number in this shape and dtype. */
  like(value: number): Real {
    return this.#of(fullLike(this.b, this.node, value));
  }

  add(y: RealLike): Real {
    return this.#with('add', y);
  }

  sub(y: RealLike): Real {
    return this.#with('sub', y);
  }

  /** y − this. */
  from(y: number): Real {
    return this.like(y).sub(this);
  }

  mul(y: RealLike): Real {
    return this.#with('mul', y);
  }

  div(y: RealLike): Real {
    return this.#with('div', y);
  }

  pow(y: RealLike): Real {
    return this.#with('pow', y);
  }

  min(y: RealLike): Real {
    return this.#with('min', y);
  }

  max(y: RealLike): Real {
    return this.#with('max', y);
  }

  /** this·y + z. */
  fma(y: RealLike, z: RealLike): Real {
    const [second, third] = [this.#term(y).node, this.#term(z).node];
    return this.#of(this.b.add('fma', [this.node, second, third], {}) as Node);
  }

  /** A function of one number. */
  to(op: Function1): Real {
    return this.#of(unary(this.b, op, this.node));
  }

  neg(): Real {
    return this.to('neg');
  }

  abs(): Real {
    return this.to('abs');
  }

  recip(): Real {
    return this.to('recip');
  }

  square(): Real {
    return this.mul(this);
  }

  lt(y: RealLike): Truth {
    return new Truth(this.b, binary(this.b, 'lt', this.node, this.#term(y).node));
  }

  gt(y: RealLike): Truth {
    return new Truth(this.b, binary(this.b, 'lt', this.#term(y).node, this.node));
  }

  le(y: RealLike): Truth {
    return new Truth(this.b, binary(this.b, 'le', this.node, this.#term(y).node));
  }

  eq(y: RealLike): Truth {
    return new Truth(this.b, binary(this.b, 'eq', this.node, this.#term(y).node));
  }

  /** Whether it is a whole number; infinities are. */
  isWhole(): Truth {
    return this.eq(this.to('floor'));
  }

  #with(op: BinaryOp, y: RealLike): Real {
    return this.#of(binary(this.b, op, this.node, typeof y === 'number' ? y : y.node));
  }

  #term(y: RealLike): Real {
    return typeof y === 'number' ? this.like(y) : y;
  }

  #of(node: Node): Real {
    return new Real(this.b, node);
  }
}

/** A condition on each element. */
export class Truth {
  readonly b: GraphBuilder;
  readonly node: Node;

  constructor(b: GraphBuilder, node: Node) {
    this.b = b;
    this.node = node;
  }

  /** yes where it holds, no elsewhere; one of them is no bare number. */
  choose(yes: RealLike, no: RealLike): Real {
    const like = yes instanceof Real ? yes : (no as Real);
    const [first, second] = [yes, no].map((term) => (typeof term === 'number' ? like.like(term) : term));
    return new Real(this.b, where(this.b, this.node, first!.node, second!.node));
  }

  and(other: Truth): Truth {
    return new Truth(this.b, binary(this.b, 'and', this.node, other.node));
  }

  or(other: Truth): Truth {
    return new Truth(this.b, binary(this.b, 'or', this.node, other.node));
  }

  not(): Truth {
    return new Truth(this.b, unary(this.b, 'not', this.node));
  }
}

/** A formula over reals as one over nodes. */
export type RealFormula = (x: Real) => Real;

/** A function whose derivative is given by a formula of the argument and the value. */
type DerivativeOf = (x: Real, value: Real) => Real;

// Factorials, for coefficients of series.

/** n! of a whole n. */
export function factorial(n: number): number {
  return n < 2 ? 1 : n * factorial(n - 1);
}

// Polynomials that stand for a function on an interval.

/** A polynomial in the distance from `center`, highest power first, with the terms that a dtype needs. */
export interface Fit {
  readonly center: number;
  readonly f32: readonly number[];
  readonly f64: readonly number[];
}

/** The fit at u. */
export function fitted(fit: Fit, u: Real): Real {
  return fittedFrom(fit, fit.center === 0 ? u : u.sub(fit.center));
}

/** The fit at a distance from its centre. */
export function fittedFrom(fit: Fit, distance: Real): Real {
  return polynomial(distance.isDouble ? fit.f64 : fit.f32, distance);
}

/** The polynomial with these coefficients, highest power first, by Horner's rule. */
export function polynomial(coefficients: readonly number[], x: Real): Real {
  const [first = 0, ...rest] = coefficients;
  return rest.reduce<Real>((sum, c) => sum.fma(x, c), x.like(first));
}

// Functions of one real number: a formula for the value, and one for the derivative, which is
// itself made of such functions, so that there are derivatives of every order. Calls that make one
// are marked pure: bundlers leave out those that nothing uses.

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
