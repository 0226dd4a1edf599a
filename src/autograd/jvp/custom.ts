// The tangent of a function with a rule of the user's: by the rule for tangents, where there is one, or else by the
// transpose of the rule for cotangents. A loop that ends by its condition has no transpose. A rule that contains one
// (the usual rule of a fixed point) says nothing forwards, so the tangent is that of what the function computes.

import type { GraphBuilder, Node, NodeOf } from '../../ir/graph.ts';
import { argumentCount, customOf, siblings } from '../custom.ts';
import { OpenEnd } from '../rules-loop.ts';
import type { Tangents } from './rule.ts';
import { transposed } from './transpose.ts';

/**
 * The tangent of a value from those of arguments, and of what else changes: in the body of a loop, parameters may stand
 * for values between the arguments and the result.
 */
export type TangentThrough = (value: Node, args: readonly Node[], given: readonly Node[]) => Node | undefined;

/** The tangent of one result of the function. */
export function customTangent(
  b: GraphBuilder,
  node: NodeOf<'customVjp'>,
  tangents: Tangents,
  through: TangentThrough,
): Node | undefined {
  const { custom, result } = customOf(node.attrs.rule);
  const count = argumentCount(node);
  const given = tangents.slice(1, 1 + count);
  if (given.every((tangent) => tangent === undefined)) return undefined;
  const args = node.inputs.slice(1, 1 + count);
  if (custom.push !== undefined) return custom.push(b, args, siblings(b, node), given)[result];
  const along = node.inputs.map((_, i) => given[i - 1]);
  try {
    return transposed(b, node as Node, along);
  } catch (error) {
    if (!(error instanceof OpenEnd)) throw error;
    const moving = [...args.keys()].filter((place) => given[place] !== undefined);
    return through(
      node.inputs[0]!,
      moving.map((place) => args[place]!),
      moving.map((place) => given[place]!),
    );
  }
}
