// Questions that rules ask about a node: whether it is one scalar broadcast over a shape, which
// constant it is, and which values it may have.

import { constant } from '../build.ts';
import { isFloat, isWide, type DType } from '../dtype.ts';
import type { GraphBuilder, Node } from '../graph.ts';
import { sameShape, type FixedShape, type Shape } from '../shape.ts';
import { fromInteger, fromReal, type Scalar } from '../value.ts';

/** The operands of a node, for destructuring. */
export const operandsOf = ({ inputs }: Node): [Node, Node, Node] => inputs as unknown as [Node, Node, Node];

/** The rank-0 node whose value every element of `node` has, if there is one. */
export function scalarOf(node: Node): Node | undefined {
  if (node.shape.length === 0) return node;
  const from = node.op === 'broadcast' ? node.inputs[0]! : undefined;
  return from?.shape.length === 0 ? from : undefined;
}

/** A scalar node spread over a shape; the inverse of `scalarOf`. */
export function spread(b: GraphBuilder, scalar: Node, shape: Shape): Node {
  return sameShape(scalar.shape, shape) ? scalar : (b.add('broadcast', [scalar], { shape }) as Node);
}

/** A constant spread over a shape. */
export function spreadConstant(b: GraphBuilder, value: Scalar, dtype: DType, shape: Shape): Node {
  return spread(b, constant(b, value, dtype), shape);
}

/** A number or bigint as the dtype holds it: rounded, or wrapped. */
export function held(value: Scalar, dtype: DType): Scalar {
  return typeof value === 'bigint' ? fromInteger(dtype)(value) : fromReal(dtype)(value);
}

/** The one value that all elements of `node` have, as its dtype holds it, when that is known. */
export function constantOf(node: Node): Scalar | undefined {
  const scalar = scalarOf(node);
  return scalar?.op === 'constant' ? held(scalar.attrs.value, scalar.dtype) : undefined;
}

/** True when all elements are known to be `value`; 0 and −0 differ, and 1 is also the bigint 1n. */
export function isConstant(node: Node, value: number): boolean {
  const known = constantOf(node);
  return Object.is(known, value) || (typeof known === 'bigint' && known === BigInt(value));
}

/** True when all bits of the integer or bool are known to be ones. */
export function isAllOnes(node: Node): boolean {
  const known = constantOf(node);
  if (known === undefined || isFloat(node.dtype)) return false;
  return known === (node.dtype === 'bool' ? 1 : fromInteger(node.dtype)(isWide(node.dtype) ? -1n : -1));
}

/** True when no element can be −0, so that adding 0 changes nothing. */
export function isNeverMinusZero(node: Node): boolean {
  if (!isFloat(node.dtype)) return true;
  switch (node.op) {
    case 'exp':
    case 'exp2':
    case 'abs':
    case 'iota':
      return true;
    case 'add':
      return node.inputs.some((input) => isConstant(input, 0));
    case 'reduce':
      // A sum starts from 0, and sums of floats of one width do not underflow.
      return node.attrs.monoid === 'sum';
    case 'dot':
    case 'conv':
      return true;
    case 'concat':
      return node.inputs.every(isNeverMinusZero);
    case 'reshape':
    case 'permute':
    case 'slice':
    case 'broadcast':
      return node.inputs.length === 1 && isNeverMinusZero(node.inputs[0]!);
    case 'cast':
      return !isFloat(node.inputs[0]!.dtype);
    default: {
      const known = constantOf(node);
      return known !== undefined && !Object.is(known, -0);
    }
  }
}

/** The shape when no size is symbolic. */
export function knownShape(node: Node): FixedShape | undefined {
  return node.shape.every((dim) => typeof dim === 'number') ? (node.shape as FixedShape) : undefined;
}
