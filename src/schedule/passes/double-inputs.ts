// Inputs of f64 on targets without doubles. Files have weights and tables as f64, and often they are
// only moved and cast to one other dtype. If that holds for all of a graph's inputs of f64, the
// program takes what they are cast to: the host casts them when it uploads them, with the results
// that the cast would have. Any other use of doubles is left for `legalise` to refuse.

import type { DType } from '../../ir/dtype.ts';
import { dims, rewrite, topological, usersOf, type Graph, type Node } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import type { Target } from '../target.ts';

export interface CastInputs {
  readonly graph: Graph;
  /** What the host casts to, by the index of the graph's parameter. */
  readonly casts: ReadonlyMap<number, DType>;
}

/** Ops that only move elements. */
const moves: ReadonlySet<Op> = new Set<Op>(['reshape', 'permute', 'broadcast', 'slice', 'stopGradient']);

/**
 * The graph over inputs that the host has cast; undefined where there are none, or where something
 * needs doubles.
 */
export function castDoubleInputs(graph: Graph, target: Target): CastInputs | undefined {
  const isDouble = ({ dtype }: { readonly dtype: DType }): boolean => dtype === 'f64';
  if (target.dtypes.includes('f64') || !graph.parameters.some(isDouble)) return undefined;
  if (graph.outputs.some(isDouble)) return undefined;
  const order = topological(graph.outputs);
  const users = usersOf(order);
  const casts = new Map<number, DType>();
  for (const [i, parameter] of graph.parameters.entries()) {
    if (!isDouble(parameter) || !users.has(parameter as Node)) continue;
    const only = onlyCast(parameter as Node, users);
    if (only === undefined || !target.dtypes.includes(only)) return undefined;
    casts.set(i, only);
  }
  const isGone = (node: Node): boolean =>
    isDouble(node)
      ? node.op === 'parameter' || moves.has(node.op)
      : node.op === 'cast' || !node.inputs.some(isDouble);
  if (!order.every(isGone)) return undefined;
  const cast = rewrite(graph, (node, inputs, b) => {
    if (node.op === 'cast' && isDouble(node.inputs[0]!)) return inputs[0]!;
    if (node.op !== 'parameter') return undefined;
    const dtype = casts.get(node.attrs.index);
    return dtype && (b.add('parameter', [], { ...node.attrs, dtype, shape: dims(node) }) as Node);
  });
  return { graph: cast, casts };
}

/** The one dtype that the input is cast to everywhere, if it is only moved before. */
function onlyCast(parameter: Node, users: ReadonlyMap<Node, readonly Node[]>): DType | undefined {
  const found = new Set<DType | undefined>();
  const open = [parameter];
  const seen = new Set(open);
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const user of users.get(node) ?? []) {
      if (user.op === 'cast') found.add(user.dtype);
      else if (!moves.has(user.op)) found.add(undefined);
      else if (!seen.has(user)) {
        seen.add(user);
        open.push(user);
      }
    }
  const [only] = found;
  return found.size === 1 ? only : undefined;
}
