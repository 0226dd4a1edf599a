// The functions of `sinter/ir` as users call them: each checks what it is given, as every public
// function does (arguments.ts), and hands it to the one that the compiler calls. Nodes and graphs
// are looked at whole, but each node once: it never changes.

import { TensorError, showValue } from '../errors.ts';
import * as arg from './arguments.ts';
import { attrProblem } from './attrs.ts';
import { isDType, type DType } from './dtype.ts';
import {
  GraphBuilder as Builder,
  rewrite as rewriteGraph,
  topological as inOrder,
  type Graph,
} from './graph.ts';
import { infer as inferType, showType as textOfType, type TensorType } from './infer.ts';
import { evaluateNode as valueOfNode, interpret as run } from './interpret/interpret.ts';
import { facts as rowOf, isOp as namesOp, opNames, ops, type Attrs, type Op, type OpFacts } from './ops.ts';
import { parse as graphOf } from './text/parse.ts';
import { print as textOf, printNode as lineOf } from './text/print.ts';
import { checkShape, sameShape, type Dim, type FixedShape } from './shape.ts';
import type { Node, NodeOf } from './node.ts';
import { emptyData, hostArray as arrayOf, type HostArray, type Scalar } from './value.ts';
import { isRepresentable, verify as verifyGraph } from './verify.ts';
import { transforms } from './fft/types.ts';
import { meshRules } from './typing/collective.ts';
import { factors } from './typing/factor.ts';
import { factorTypes, meshTypes, transformTypes } from './typing/slots.ts';

factorTypes.fill(factors);
meshTypes.fill(meshRules);
transformTypes.fill(transforms);

const op: arg.Kind<Op> = {
  accepts: (value) => typeof value === 'string' && namesOp(value),
  refuse(name, _, value): never {
    const near = typeof value === 'string' ? arg.nearest(value, opNames) : undefined;
    throw new TensorError(
      'E_VALUE',
      name,
      `no operation is called ${showValue(value)}`,
      near ?? 'one of opNames',
    );
  },
};

function isDim(value: unknown): value is Dim {
  if (typeof value !== 'object' || value === null) return Number.isSafeInteger(value) && Number(value) >= 0;
  const { name, min, max } = value as Readonly<Record<string, unknown>>;
  return typeof name === 'string' && Number.isSafeInteger(min) && Number.isSafeInteger(max);
}

function isType(value: unknown): value is TensorType {
  if (typeof value !== 'object' || value === null) return false;
  const { dtype, shape } = value as Readonly<Record<string, unknown>>;
  return (
    typeof dtype === 'string' && isDType(dtype) && Array.isArray(shape) && Array.from(shape).every(isDim)
  );
}

const type = arg.kind<TensorType>('a type { dtype, shape }', isType);

/** Values that were checked to be nodes, with everything that they are computed from. */
const known = new WeakSet<object>();

/**
 * Whether this and everything that it is computed from has the form of a node; `verify` checks the
 * values.
 */
function isNode(root: unknown): root is Node {
  const stack: unknown[] = [root];
  const visited = new Set<object>();
  while (stack.length > 0) {
    const at = stack.pop();
    if (typeof at !== 'object' || at === null) return false;
    if (visited.has(at) || known.has(at)) continue;
    visited.add(at);
    const { op: name, inputs, attrs, id } = at as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string' || !Number.isSafeInteger(id) || !isType(at)) return false;
    if (typeof attrs !== 'object' || attrs === null || !Array.isArray(inputs)) return false;
    stack.push(...Array.from<unknown>(inputs));
  }
  for (const node of visited) if (Object.isFrozen(node)) known.add(node);
  return true;
}

const node = arg.kind<Node>('a node, as GraphBuilder.add gives', isNode);
const nodes = arg.listOf(node);

const graph = arg.kind<Graph>('a graph { parameters, outputs } of nodes', (value) => {
  if (typeof value !== 'object' || value === null) return false;
  const { parameters, outputs } = value as Readonly<Record<string, unknown>>;
  return nodes.accepts(parameters) && nodes.accepts(outputs);
});

const data = arg.kind<HostArray>('a host array { dtype, shape, data }, as hostArray gives', (value) => {
  if (!isType(value) || !value.shape.every((dim) => typeof dim === 'number')) return false;
  const tag = (list: unknown): string => Object.prototype.toString.call(list);
  return tag((value as { readonly data?: unknown }).data) === tag(emptyData(value.dtype, 0));
});

/** Numbers and bigints, in an array or one of their typed arrays. */
const scalars = arg.kind<ArrayLike<Scalar>>(
  'an array of numbers or bigints',
  (value) =>
    arg.isNumberList(value) &&
    Array.from<unknown>(value).every((at) => typeof at === 'number' || typeof at === 'bigint'),
);

const takesOp = arg.takes<(op: Op) => unknown>(['the operation', op]);

/** The row of an op. */
export function facts(op: Op): OpFacts {
  takesOp('facts', op);
  return rowOf(op);
}

/** Throws E_VALUE where the attributes are not those of the op. */
function checkAttrs(name: string, op: Op, attrs: unknown): void {
  if (!arg.isPlainObject(attrs))
    throw new TensorError('E_VALUE', name, `attributes must be an object, got ${showValue(attrs)}`);
  const wrong = attrProblem(op, attrs);
  if (wrong !== undefined)
    throw new TensorError('E_VALUE', name, `${op}: ${wrong.problem}, got ${showValue(attrs)}`, attrsHint(op));
  if (op !== 'constant') return;
  const { value, dtype } = attrs as unknown as Attrs<'constant'>;
  // Narrow floats are rounded by the builder.
  if (dtype === 'f16' || dtype === 'bf16' ? typeof value === 'number' : isRepresentable({ value, dtype }))
    return;
  throw new TensorError('E_VALUE', name, `${dtype} cannot hold ${showValue(value)}`);
}

function attrsHint(op: Op): string {
  const { attrs } = ops[op];
  return attrs.length === 0 ? '{}' : `{ ${attrs.join(', ')} }`;
}

const takesInfer = arg.takes<(op: Op, inputs: readonly TensorType[], attrs: unknown) => unknown>(
  ['the operation', op],
  ['the inputs', arg.listOf(type)],
  ['the attributes', arg.anything()],
);

/** The type of a node. Throws E_DTYPE, E_SHAPE, E_AXIS or E_VALUE naming the op. */
export function infer<K extends Op>(op: K, inputs: readonly TensorType[], attrs: Attrs<K>): TensorType {
  takesInfer('infer', op, inputs, attrs);
  checkAttrs('infer', op, attrs);
  return inferType(op, inputs, attrs);
}

const takesType = arg.takes<typeof showType>(['the type', type]);

/** `f32[8,3]`. */
export function showType(type: TensorType): string {
  takesType('showType', type);
  return textOfType(type);
}

const takesAdd = arg.takes<(op: Op, inputs: readonly Node[], attrs: unknown) => unknown>(
  ['the operation', op],
  ['the inputs', nodes],
  ['the attributes', arg.anything()],
);
const takesCopy = arg.takes<(node: Node, inputs: readonly Node[]) => unknown>(
  ['the node', node],
  ['the inputs', nodes],
);

/** Makes nodes, giving back an existing one where op, inputs and attributes are equal. */
export class GraphBuilder extends Builder {
  /** The node of this op, checked by its type rule. Throws TensorError on a misfit. */
  override add<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): NodeOf<K> {
    const name = 'GraphBuilder.add';
    takesAdd(name, op, inputs, attrs);
    checkAttrs(name, op, attrs);
    return super.add(op, inputs, attrs);
  }

  /**
   * The same op and attributes over other inputs; over inputs of the same types its type is known.
   */
  override copy(node: Node, inputs: readonly Node[]): Node {
    takesCopy('GraphBuilder.copy', node, inputs);
    return super.copy(node, inputs);
  }
}

type Change = (node: Node, inputs: readonly Node[], builder: Builder) => Node | undefined;
const builder = arg.kind<Builder>('a GraphBuilder', (value) => value instanceof Builder);
const takesRewrite = arg.takes<(graph: Graph, change: Change, builder?: Builder) => Graph>(
  ['the graph', graph],
  ['the function', arg.callable<Change>()],
  ['the builder', arg.optional(builder)],
);

/**
 * Rebuilds a graph bottom-up. `change` sees each node with its already rewritten inputs and gives
 * its replacement, or undefined to keep it. Parameters survive unless `change` replaces them.
 */
export function rewrite(
  graph: Graph,
  change: (node: Node, inputs: readonly Node[], builder: GraphBuilder) => Node | undefined,
  builder: GraphBuilder = new GraphBuilder(),
): Graph {
  takesRewrite('rewrite', graph, change as Change, builder);
  const checked: Change = (at, inputs) => {
    const made = change(at, inputs, builder);
    if (made === undefined || node.accepts(made)) return made;
    return node.refuse('rewrite', 'what the function gives', made);
  };
  return rewriteGraph(graph, checked, builder);
}

const takesTopological = arg.takes<typeof topological>(
  ['the roots', nodes],
  ['stop', arg.optional(arg.callable<(node: Node) => boolean>())],
);

/** Nodes reachable from `roots`, inputs before users, in ascending id (recording) order. */
export function topological(roots: readonly Node[], stop?: (node: Node) => boolean): Node[] {
  takesTopological('topological', roots, stop);
  return inOrder(roots, stop);
}

const takesInterpret = arg.takes<typeof interpret>(['the graph', graph], ['the inputs', arg.listOf(data)]);

/**
 * Runs a graph on host arrays given in parameter order. Throws E_VALUE, E_DTYPE or E_SHAPE when
 * they do not fit the parameters. Results may share memory with inputs and with each other.
 */
export function interpret(graph: Graph, inputs: readonly HostArray[]): HostArray[] {
  takesInterpret('interpret', graph, inputs);
  // The interpreter relies on the types of nodes, so they are verified first.
  verifyGraph(graph, 'interpret');
  return run(graph, inputs);
}

const takesEvaluate = arg.takes<typeof evaluateNode>(['the node', node], ['the inputs', arg.listOf(data)]);

/** The value of one node from its inputs' values, as constant folding needs it. */
export function evaluateNode(node: Node, inputs: readonly HostArray[]): HostArray {
  const name = 'evaluateNode';
  takesEvaluate(name, node, inputs);
  if (!namesOp(node.op)) op.refuse(name, 'the operation', node.op);
  if (node.op === 'parameter')
    throw new TensorError('E_VALUE', name, `the parameter ${node.attrs.name} has no value of its own`);
  const fits = (
    { dtype, shape }: TensorType,
    { dtype: given, shape: sizes, data: held }: HostArray,
  ): boolean =>
    dtype === given && sameShape(shape, sizes) && held.length === sizes.reduce((size, dim) => size * dim, 1);
  if (inputs.length !== node.inputs.length || !inputs.every((at, i) => fits(node.inputs[i]!, at))) {
    const [wanted, got] = [node.inputs, inputs].map((list) => list.map(textOfType).join(', '));
    throw new TensorError('E_SHAPE', name, `${node.op} is of (${wanted}), given (${got})`);
  }
  return valueOfNode(node, inputs);
}

const takesParse = arg.takes<typeof parse>(['the text', arg.text]);

/**
 * The graph that IR text describes. Throws ParseError (E_PARSE) with the line and column of the
 * first mistake.
 */
export function parse(text: string): Graph {
  takesParse('parse', text);
  return graphOf(text);
}

const takesPrint = arg.takes<typeof print>(['the graph', graph]);

/** The text of a graph; `parse` gives an equal graph back. */
export function print(graph: Graph): string {
  takesPrint('print', graph);
  return textOf(graph);
}

const takesPrintNode = arg.takes<typeof printNode>(
  ['the node', node],
  ['name', arg.optional(arg.callable<(node: Node) => string>())],
);

/** One node on one line, for messages; without `name`, nodes are called by their id. */
export function printNode(node: Node, name?: (node: Node) => string): string {
  takesPrintNode('printNode', node, name);
  return lineOf(node, name);
}

const takesVerify = arg.takes<typeof verify>(['the graph', graph], ['pass', arg.optional(arg.text)]);

/** Throws CompilerBug, naming `pass`, when the graph breaks an invariant of the IR. */
export function verify(graph: Graph, pass: string = 'verify'): void {
  takesVerify('verify', graph, pass);
  verifyGraph(graph, pass);
}

const takesHostArray = arg.takes<typeof hostArray>(
  ['the dtype', arg.dtype],
  ['the shape', arg.inside<FixedShape>()],
  ['the values', scalars],
);

/**
 * An array of `shape` with `values` brought into `dtype`: numbers as a cast from f64 (integers
 * truncate and saturate), bigints as a cast from i64 (integers wrap). Throws E_SHAPE when the
 * counts differ.
 */
export function hostArray(dtype: DType, shape: FixedShape, values: ArrayLike<Scalar>): HostArray {
  takesHostArray('hostArray', dtype, shape, values);
  checkShape('hostArray', shape);
  return arrayOf(dtype, shape, values);
}
