// The verifier: every invariant of a graph, checked after each pass in tests and on request. A
// violation is a mistake of the compiler, never of the user, so it throws CompilerBug with the
// pass's name and the graph's text.

import { CompilerBug, TensorError } from '../errors.ts';
import { attrProblem } from './attrs.ts';
import { Region } from './region.ts';
import { integerRange, isFloat, isWide } from './dtype.ts';
import { topological, type Graph, type Node } from './graph.ts';
import { infer, showType } from './infer.ts';
import { isOp, type Attrs } from './ops.ts';
import { print, printNode } from './text/print.ts';
import { sameShape } from './shape.ts';
import { fromReal } from './value.ts';

/** Throws CompilerBug, naming `pass`, when the graph breaks an invariant of the IR. */
export function verify(graph: Graph, pass = 'verify'): void {
  const problem = graphProblem(graph);
  if (problem !== undefined) throw new CompilerBug(pass, problem, print(graph));
}

function graphProblem(graph: Graph): string | undefined {
  return parametersProblem(graph) ?? nodesProblem(graph);
}

function parametersProblem(graph: Graph): string | undefined {
  for (const [index, parameter] of graph.parameters.entries()) {
    if (parameter.op !== 'parameter') return `${printNode(parameter)} stands among the parameters`;
    if (parameter.attrs.index !== index) {
      return `parameter ${parameter.attrs.name} has index ${parameter.attrs.index} but stands at ${index}`;
    }
  }
  return undefined;
}

function nodesProblem(graph: Graph): string | undefined {
  const own: ReadonlySet<Node> = new Set<Node>(graph.parameters);
  for (const node of topological([...graph.parameters, ...graph.outputs])) {
    const problem = nodeProblem(node, own);
    if (problem !== undefined) return `${problem}: ${printNode(node)}`;
  }
  return undefined;
}

function nodeProblem(node: Node, own: ReadonlySet<Node>): string | undefined {
  if (!isOp(node.op)) return 'unknown op';
  if (node.op === 'parameter' && !own.has(node)) return 'an output needs a parameter that is not listed';
  for (const input of node.inputs) if (input.id >= node.id) return `input %${input.id} was made later`;
  const wrong = attrProblem(node.op, node.attrs);
  if (wrong !== undefined) return wrong.problem;
  if (node.op === 'constant' && !isRepresentable(node.attrs)) return `${node.dtype} cannot hold the value`;
  for (const value of Object.values(node.attrs)) {
    const inside = value instanceof Region ? graphProblem(value.graph as Graph) : undefined;
    if (inside !== undefined) return `in its body: ${inside}`;
  }
  return typeProblem(node);
}

/**
 * f32 and f64 take any number (its nearest value is meant: every target rounds literals to them);
 * narrower floats, integers and bool only what they can hold.
 */
export function isRepresentable({ dtype, value }: Attrs<'constant'>): boolean {
  if ((typeof value === 'bigint') !== isWide(dtype)) return false;
  if (dtype === 'f16' || dtype === 'bf16') return Object.is(fromReal(dtype)(Number(value)), value);
  if (isFloat(dtype)) return true;
  const [low, high] = integerRange(dtype);
  return (isWide(dtype) || Number.isInteger(value)) && value >= low && value <= high;
}

function typeProblem(node: Node): string | undefined {
  try {
    const inferred = infer(node.op, node.inputs, node.attrs as Attrs);
    if (inferred.dtype === node.dtype && sameShape(inferred.shape, node.shape)) return undefined;
    return `the type must be ${showType(inferred)}`;
  } catch (error) {
    if (error instanceof TensorError) return error.message.split('\n')[0];
    throw error;
  }
}
