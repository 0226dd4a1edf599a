// Forward-mode differentiation as a graph transform: from nodes and their tangents, nodes for the
// tangents of whatever is computed from them. One walk up the ids (a topological order), one rule
// per node. The result is ordinary IR over the values of the function: it fuses with them, and can
// be differentiated again, forwards and backwards.

import { CompilerBug, TensorError } from '../../errors.ts';
import { fullLike } from '../../ir/build.ts';
import { isComplex, isInexact } from '../../ir/dtype.ts';
import { GraphBuilder, rewrite, topological, type Graph, type Node, type NodeOf } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { onBehalf } from '../../ir/origin/origin.ts';
import { sameShape } from '../../ir/shape.ts';
import { foldUniform, plus, type VjpRule } from '../cotangent.ts';
import { derivedInputs } from '../custom.ts';
import { rules } from '../rules.ts';
import { customTangent, type TangentThrough } from './custom.ts';
import { loopTangent } from './loop.ts';
import type { JvpRule, JvpRow, Tangents } from './rule.ts';
import { bilinear, jvpRules } from './rules.ts';
import { transposed } from './transpose.ts';

/**
 * For each output the tangent Σ ∂output/∂wrt·direction, of its dtype and shape; undefined where it
 * does not depend on `wrt`, or is no float. Directions have the dtypes and shapes of `wrt`. Throws
 * E_GRAD where they do not, or a node of `wrt` is no float.
 */
export function tangents(
  builder: GraphBuilder,
  outputs: readonly Node[],
  wrt: readonly Node[],
  directions: readonly Node[],
): (Node | undefined)[] {
  checkDirections(wrt, directions);
  const found = new Map<Node, Node>();
  wrt.forEach((node, i) => found.set(node, foldUniform(builder, directions[i]!)));
  // Ids grow from inputs to users: nothing older than the oldest of `wrt` can depend on it.
  const oldest = wrt.reduce((lowest, node) => Math.min(lowest, node.id), Infinity);
  const through: TangentThrough = (value, args, given) =>
    tangents(builder, [value], [...wrt, ...args], [...directions, ...given])[0];
  const ends = (node: Node): boolean => node.id <= oldest || node.op === 'stopGradient';
  for (const node of topological(outputs, ends, derivedInputs)) {
    if (node.id < oldest || found.has(node) || !isInexact(node.dtype)) continue;
    const given = node.inputs.map((input) => found.get(input));
    if (given.every((tangent) => tangent === undefined)) continue;
    const tangent = onBehalf('gradient', node, () => tangentOf(builder, node, given, through));
    if (tangent === undefined) continue;
    if (tangent.dtype !== node.dtype || !sameShape(tangent.shape, node.shape)) {
      const problem = `${node.op} gave its result, ${showType(node)}, a tangent ${showType(tangent)}`;
      throw new CompilerBug('jvp', problem);
    }
    found.set(node, foldUniform(builder, tangent));
  }
  return outputs.map((output) => found.get(output));
}

/** The tangent of one node from those of its inputs. */
function tangentOf(b: GraphBuilder, node: Node, given: Tangents, through: TangentThrough): Node | undefined {
  const row = jvpRules[node.op] as JvpRow;
  switch (row) {
    case 'flat':
      return undefined;
    case 'linear':
      return given[0] && b.copy(node, [given[0], ...node.inputs.slice(1)]);
    case 'bilinear':
      return bilinear(b, node, given);
    case 'transposed':
      return transposed(b, node, given);
    case 'loop':
      return loopTangent(b, node as NodeOf<'iterate'>, given, tangents);
    case 'ruled':
      return customTangent(b, node as NodeOf<'customVjp'>, given, through);
    case 'partials': {
      const isReal = !isComplex(node.dtype) && !node.inputs.some(({ dtype }) => isComplex(dtype));
      return isReal ? byPartials(b, node, given) : transposed(b, node, given);
    }
    default:
      return (row satisfies JvpRule)(b, node as never, given);
  }
}

/** Σ ∂node/∂input·tangent, each term by the reverse rule of its input. */
function byPartials(b: GraphBuilder, node: Node, given: Tangents): Node | undefined {
  const rule = rules[node.op] as unknown as VjpRule | 'flat';
  if (rule === 'flat') return undefined;
  let sum: Node | undefined;
  given.forEach((tangent, i) => {
    if (tangent === undefined) return;
    const term = rule(
      b,
      node as never,
      tangent,
      given.map((_, k) => k === i),
    )[i];
    if (term !== undefined) sum = sum === undefined ? term : plus(b, sum, term);
  });
  return sum;
}

function checkDirections(wrt: readonly Node[], directions: readonly Node[]): void {
  if (wrt.length !== directions.length) {
    const problem = `${wrt.length} value(s) need as many tangents, got ${directions.length}`;
    throw new TensorError('E_GRAD', 'jvp', problem);
  }
  wrt.forEach((node, i) => {
    const tangent = directions[i]!;
    if (!isInexact(node.dtype)) {
      const problem = `what tangents are given for must be of a float dtype, or a complex one, got ${showType(node)}`;
      throw new TensorError('E_GRAD', 'jvp', problem);
    }
    if (tangent.dtype === node.dtype && sameShape(tangent.shape, node.shape)) return;
    const problem = `a tangent must be like its value: ${showType(tangent)} for ${showType(node)}`;
    throw new TensorError('E_GRAD', 'jvp', problem);
  });
}

/**
 * The joint graph of values and tangents: the outputs of `graph`, then the tangent of each float
 * among them (zeros where it does not depend on what changes). A tangent of each parameter that
 * `wrt` names by index becomes a parameter `d` + its name, after those of `graph`. Throws E_GRAD
 * where one of them is no float.
 */
export function tangentGraph(graph: Graph, wrt: readonly number[]): Graph {
  const builder = new GraphBuilder();
  const forward = rewrite(graph, () => undefined, builder);
  const parameters: NodeOf<'parameter'>[] = [...forward.parameters];
  const changing = wrt.map((index): Node => {
    const parameter = forward.parameters[index];
    if (parameter !== undefined) return parameter as Node;
    const problem = `there is no parameter ${index}: the graph has ${forward.parameters.length}`;
    throw new TensorError('E_GRAD', 'jvp', problem);
  });
  const directions = changing.map((node): Node => {
    const { dtype, shape } = node;
    const name = `d${(node as NodeOf<'parameter'>).attrs.name}`;
    const direction = builder.add('parameter', [], { index: parameters.length, name, dtype, shape });
    parameters.push(direction);
    return direction as Node;
  });
  const outputs = forward.outputs.filter(({ dtype }) => isInexact(dtype));
  const found = tangents(builder, outputs, changing, directions);
  return {
    parameters,
    outputs: [...forward.outputs, ...outputs.map((y, i) => found[i] ?? fullLike(builder, y, 0))],
  };
}
