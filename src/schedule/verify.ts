// The verifier of kernels: invariants of every kernel, whether scheduled or parsed. Expressions are
// typed and come after their operands; indices fit 32 bits and use the kernel's own axes only;
// every read is bound, and every store lies inside its node. A violation is a CompilerBug with the
// kernel's text.

import { CompilerBug, TensorError } from '../errors.ts';
import { dims, type Node } from '../ir/graph.ts';
import { infer } from '../ir/infer.ts';
import { atomsOf, printIndex, type Guard, type IndexExpr } from '../ir/index-algebra/expr.ts';
import type { ElementwiseOp } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { printNode } from '../ir/text/print.ts';
import { argsOf, indicesOf, type Expr, type ExprPool } from './expression/expr.ts';
import type { Axis, Body, Kernel, KernelKind } from './kernel.ts';
import { bodyFields, visitFields, type OwnBody, type Schema } from './text/fields.ts';
import { printKernel } from './text/print.ts';

/** The body that kernels of each kind have. */
const bodyOf: Readonly<Record<KernelKind, Body['kind']>> = {
  'batched-dispatch': 'batched-dispatch',
  map: 'map',
  'row-reduction': 'row-reduction',
  dot: 'contract',
  conv: 'contract',
  attention: 'attention',
  scan: 'scan',
  fft: 'fft',
  scatter: 'scatter',
  sort: 'sort',
  'radix-rank': 'radix-rank',
  'permute-scatter': 'map',
  'search-sorted': 'search-sorted',
  'segment-reduce': 'segment-reduce',
  'scatter-add-atomic': 'scatter-add-atomic',
  'jacobi-rows': 'jacobi-rows',
  factor: 'factor',
  'complete-rows': 'complete-rows',
  iterate: 'iterate',
  collective: 'collective',
};

/** Throws CompilerBug, naming `pass`, when a kernel is not well-formed. */
export function verifyKernel(kernel: Kernel, pass = 'verify-kernel'): void {
  const problem = problemOf(kernel);
  if (problem !== undefined)
    throw new CompilerBug(
      pass,
      problem,
      printKernel(kernel, (node) => `%${node.id}`),
    );
}

function problemOf(kernel: Kernel): string | undefined {
  const { name, kind, body, reads, writes, nodes } = kernel;
  if (!/^\w*$/.test(name)) return `the name ${name} is no identifier`;
  if (bodyOf[kind] !== body.kind) return `a kernel of kind ${kind} has a body of kind ${body.kind}`;
  if (new Set(reads).size !== reads.length) return 'a node is bound twice to be read';
  if (new Set(nodes).size !== nodes.length) return 'a node is listed twice as computed';
  if (writes.length === 0) return 'nothing is stored';
  if (body.kind !== 'batched-dispatch') return ownProblem(kernel, body);
  const read = new Set(body.parts.flatMap((part) => part.reads));
  const isSame = read.size === reads.length && reads.every((node) => read.has(node));
  if (!isSame) return 'what is read is not what the parts read';
  const written = body.parts.flatMap((part) => part.writes);
  if (written.length !== writes.length || written.some((write, i) => write !== writes[i]))
    return 'what is stored is not what the parts store';
  for (const part of body.parts) verifyKernel(part);
  return undefined;
}

function ownProblem(kernel: Kernel, body: OwnBody): string | undefined {
  const { pool, reads, writes } = kernel;
  const schema: Schema = bodyFields[body.kind];
  const found: Found = { axes: [], exprs: [], nodes: [], indices: [], guards: [] };
  visitFields(body, schema, (value, field) => {
    if (field === 'axis') found.axes.push(value as Axis);
    if (field === 'expr') found.exprs.push(value as Expr);
    if (field === 'node') found.nodes.push(value as Node);
    if (field === 'index') found.indices.push(value as IndexExpr);
    if (field === 'guard') found.guards.push(value as Guard);
  });
  const { all } = pool;
  const used = [...found.exprs, ...writes.map(({ value }) => value), ...pool.dynamics.values()];
  const stray = used.find((expr) => all[expr.id] !== expr);
  if (stray !== undefined) return `e${stray.id} is an expression of another kernel`;
  for (const expr of all) {
    const problem = exprProblem(expr, all, new Set(found.nodes));
    if (problem !== undefined) return `e${expr.id}: ${problem}`;
  }
  const indices = [
    ...all.flatMap(indicesOf),
    ...found.indices,
    ...found.guards.flatMap((guard) => guard.map(({ expr }) => expr)),
    ...writes.map(({ index }) => index),
  ];
  return (
    indexProblem(indices, found.axes, pool) ??
    readProblem(all, reads) ??
    // What these templates store is their own; the write stands for it, with an operand as its value.
    (body.kind === 'radix-rank' ||
    body.kind === 'jacobi-rows' ||
    body.kind === 'complete-rows' ||
    body.kind === 'iterate' ||
    body.kind === 'collective' ||
    body.kind === 'factor'
      ? undefined
      : writes.map(writeProblem).find((problem) => problem !== undefined))
  );
}

/** What a body is made of. */
interface Found {
  readonly axes: Axis[];
  readonly exprs: Expr[];
  readonly nodes: Node[];
  readonly indices: IndexExpr[];
  readonly guards: Guard[];
}

function exprProblem(expr: Expr, all: readonly Expr[], computed: ReadonlySet<Node>): string | undefined {
  const args = argsOf(expr);
  if (args.some((arg) => arg.id >= expr.id || all[arg.id] !== arg))
    return 'it comes before what it is made of';
  const isTyped = (...dtypes: readonly string[]): boolean =>
    args.every(({ dtype }, i) => dtype === (dtypes[i] ?? dtypes[0]));
  switch (expr.kind) {
    case 'op':
      return opProblem(expr.op, expr);
    case 'read':
      return expr.dtype === expr.node.dtype ? undefined : `it reads ${printNode(expr.node)}`;
    case 'select':
      return isTyped(expr.dtype) ? undefined : 'both sides must have its dtype';
    case 'decode':
      return isTyped('u32') && expr.dtype === 'f32' ? undefined : 'it makes f32 of words, of u32';
    case 'random':
      return isTyped('u32') && args.length === 4 ? undefined : 'it takes four words, of u32';
    case 'result':
      return computed.has(expr.node) ? undefined : `the body computes no ${printNode(expr.node)}`;
    case 'index':
    case 'scalar':
    case 'constant':
      return undefined;
    default:
      return expr satisfies never;
  }
}

/** The dtype of an operation is the one that the graph's operation of this name has. */
function opProblem(op: ElementwiseOp, expr: Extract<Expr, { kind: 'op' }>): string | undefined {
  const inputs = expr.args.map(({ dtype }) => ({ dtype, shape: [] }));
  try {
    const { dtype } = infer(op, inputs, { dtype: expr.dtype } as never);
    return dtype === expr.dtype ? undefined : `${op} gives ${dtype}`;
  } catch (error) {
    if (error instanceof TensorError) return error.message.split('\n')[0];
    throw error;
  }
}

function indexProblem(
  indices: readonly IndexExpr[],
  axes: readonly Axis[],
  { dynamics }: ExprPool,
): string | undefined {
  const known = new Set<IndexExpr>(axes.map(({ atom }) => atom));
  for (const index of indices) {
    if (!index.fits) return `the index ${printIndex(index)} leaves 32 bits`;
    const leaf = atomsOf(index).find((atom) => !known.has(atom) && !dynamics.has(atom));
    if (leaf !== undefined) return `the kernel has no axis ${leaf.name}: ${printIndex(index)}`;
  }
  return undefined;
}

function readProblem(all: readonly Expr[], reads: readonly Node[]): string | undefined {
  const bound = new Set(reads);
  for (const expr of all)
    if (expr.kind === 'read' && !bound.has(expr.node))
      return `e${expr.id} reads what is not bound: ${printNode(expr.node)}`;
  return undefined;
}

function writeProblem({ node, index, value }: Kernel['writes'][number]): string | undefined {
  const size = sizeOf(dims(node));
  const isInside = index.lo >= 0 && index.hi < size;
  if (!isInside) return `${printIndex(index)} leaves the ${size} elements of ${printNode(node)}`;
  return value.dtype === node.dtype ? undefined : `e${value.id} is stored in ${printNode(node)}`;
}
