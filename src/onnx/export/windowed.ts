// Several nodes of the graph, recognised by their structure, as one ONNX node: reductions of
// windows (pooling), convolutions with a bias, matrix products with what is added to them, and
// means.

import { isFloat } from '../../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { constantOf } from '../../ir/passes/pattern.ts';
import { sameShape, sizeOf, type FixedShape } from '../../ir/shape.ts';
import { convolved } from './convolutions.ts';
import type { Val } from './emitter.ts';
import type { ExportScope } from './row.ts';

/** Windows of a padded image. */
interface Pool {
  readonly image: Node;
  readonly kernel: number[];
  readonly strides: number[];
  readonly dilations: number[];
  readonly pads: readonly number[];
}

/** The image and windows that a node's last axes are; `filler` is what padding must be. */
function poolOf(node: Node, axes: readonly number[], filler: number): Pool | undefined {
  let at = node;
  const windows: NodeOf<'window'>['attrs'][] = [];
  // Windows of several axes may be one axis by now.
  if (at.op === 'reshape' && at.inputs[0]!.op === 'window') {
    const [from, to] = [dims(at.inputs[0]!), dims(at)];
    const kept = to.length - 1;
    if (axes.length !== 1 || axes[0] !== kept || !sameShape(from.slice(0, kept), to.slice(0, kept)))
      return undefined;
    at = at.inputs[0]!;
  } else if (!axes.every((axis, i) => axis === dims(node).length - axes.length + i)) return undefined;
  for (; at.op === 'window'; at = at.inputs[0]!) windows.push(at.attrs);
  const rank = dims(at).length;
  const isMerged = axes.length === 1 && dims(node).length === rank + 1;
  if (windows.length === 0 || !(isMerged || axes.length === windows.length)) return undefined;
  const spatial = rank - 2;
  const used = new Set(windows.map(({ axis }) => axis));
  if (
    spatial < 1 ||
    spatial > 3 ||
    used.size !== windows.length ||
    [...used].some((axis) => axis < 2 || axis >= rank)
  )
    return undefined;
  const each = (pick: 'size' | 'stride' | 'dilation'): number[] =>
    Array.from({ length: spatial }, (_, i) => windows.find(({ axis }) => axis === i + 2)?.[pick] ?? 1);
  const pool = { kernel: each('size'), strides: each('stride'), dilations: each('dilation') };
  const none = Array.from({ length: 2 * spatial }, () => 0);
  if (at.op !== 'pad') return { image: at, ...pool, pads: none };
  const { low, high, interior, value } = at.attrs;
  const pads = [...low.slice(2), ...high.slice(2)];
  const isInside = pads.every((n, i) => n < pool.kernel[i % spatial]!);
  const isPlain = [...low.slice(0, 2), ...high.slice(0, 2), ...interior].every((n) => n === 0);
  return isInside && isPlain && Object.is(value, filler)
    ? { image: at.inputs[0]!, ...pool, pads }
    : { image: at, ...pool, pads: none };
}

function pooled(
  { e, full }: ExportScope,
  op: 'MaxPool' | 'AveragePool',
  { image, kernel, strides, dilations, pads }: Pool,
  shape: FixedShape,
): Val {
  const own = op === 'AveragePool' ? { count_include_pad: 1 } : {};
  const attributes = { kernel_shape: kernel, strides, dilations, pads, ...own };
  return e.node(op, [full(image)], { dtype: 'f32', shape }, attributes);
}

/** A fold of windows. */
function foldOf(scope: ExportScope, node: NodeOf<'reduce'>): Val | undefined {
  const { monoid, axes } = node.attrs;
  const from = node.inputs[0]!;
  if (node.dtype !== 'f32' || sizeOf(dims(from)) === 0 || (monoid !== 'max' && monoid !== 'sum'))
    return undefined;
  const pool = poolOf(from, axes, monoid === 'max' ? -Infinity : 0);
  if (pool === undefined) return undefined;
  if (monoid === 'max') return pooled(scope, 'MaxPool', pool, dims(node));
  const mean = pooled(scope, 'AveragePool', pool, dims(node));
  return scope.e.map('Mul', [mean, scope.e.scalar(sizeOf(pool.kernel), 'f32')]);
}

/** A sum over its count, or times one over it. */
function meanOf(scope: ExportScope, node: NodeOf<'mul' | 'div'>): Val | undefined {
  const known = constantOf(node.inputs[1]!);
  const factor = typeof known === 'number' && node.op === 'div' ? 1 / known : known;
  const kept = node.inputs[0]!;
  const sum = kept.op === 'reshape' ? kept.inputs[0]! : kept;
  if (sum.op !== 'reduce' || sum.attrs.monoid !== 'sum' || !isFloat(node.dtype)) return undefined;
  const from = sum.inputs[0]!;
  const { axes } = sum.attrs;
  const count = sizeOf(axes.map((axis) => dims(from)[axis]!));
  if (typeof factor !== 'number' || axes.length === 0 || count === 0 || Math.abs(factor * count - 1) > 1e-7)
    return undefined;
  const pool = node.dtype === 'f32' && sum === kept ? poolOf(from, axes, 0) : undefined;
  if (pool !== undefined) return pooled(scope, 'AveragePool', pool, dims(node));
  const keptShape = dims(from).map((dim, axis) => (axes.includes(axis) ? 1 : dim));
  const isKept = sum !== kept && sameShape(dims(kept), keptShape);
  if (sum !== kept && !isKept) return undefined;
  const inputs = [scope.full(from), scope.e.ints(axes)] as const;
  return scope.e.move('ReduceMean', inputs, dims(node), { keepdims: Number(isKept) });
}

/** One value per channel of an image, as it is added to one. */
function biasOf({ e, full }: ExportScope, node: Node, channels: number, rank: number): Val | undefined {
  if (node.op !== 'broadcast') return undefined;
  const from = node.inputs[0]!;
  const shape = dims(from);
  const aligned = [...Array.from({ length: rank - shape.length }, () => 1), ...shape];
  if (sizeOf(shape) !== channels || aligned[1] !== channels) return undefined;
  const list = from.op === 'reshape' ? from.inputs[0]! : from;
  return e.reshape(full(list), [channels]);
}

/** A convolution, or a product of two matrices, with what is added to it. */
function biased(scope: ExportScope, node: NodeOf<'add'>): Val | undefined {
  for (const [of, other] of [node.inputs, node.inputs.toReversed()]) {
    // What an extremum is picked by its place for, −0 aside: which zero it gives is the runtime's.
    if (of!.op === 'reduce' && of!.attrs.monoid === 'max' && constantOf(other!) === 0)
      return scope.compact(of!);
    if (
      of!.op === 'conv' &&
      isFloat(node.dtype) &&
      sizeOf(dims(of!.inputs[0]!)) > 0 &&
      dims(node).length > 2
    ) {
      const shape = dims(node);
      const bias = biasOf(scope, other!, shape[1]!, shape.length);
      if (bias === undefined) continue;
      return convolved(scope, of!, bias);
    }
    if (of!.op === 'dot') {
      const found = matrices(scope, of!, scope.compact(other!));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The product of two matrices of floats, either turned over or not, and what is added. */
function matrices({ e, full }: ExportScope, node: NodeOf<'dot'>, sum: Val): Val | undefined {
  const { lhsContract, rhsContract, lhsBatch, dtype } = node.attrs;
  const [lhs, rhs] = [node.inputs[0]!, node.inputs[1]!];
  const isProduct = lhs.shape.length === 2 && rhs.shape.length === 2 && lhsContract.length === 1;
  const isPlain = lhsBatch.length === 0 && dtype === lhs.dtype && sizeOf(dims(lhs)) * sizeOf(dims(rhs)) > 0;
  if (!isProduct || !isPlain || (dtype !== 'f32' && dtype !== 'f64')) return undefined;
  const attributes = { transA: Number(lhsContract[0] === 0), transB: Number(rhsContract[0] === 1) };
  return e.node('Gemm', [full(lhs), full(rhs), sum], { dtype, shape: dims(node) }, attributes);
}

/** The one node for several of the graph, by their structure; undefined where there is none. */
export function joinedOf(scope: ExportScope, node: Node): Val | undefined {
  switch (node.op) {
    case 'reduce':
      return foldOf(scope, node);
    case 'mul':
    case 'div':
      return meanOf(scope, node);
    case 'add':
      return biased(scope, node);
    default:
      return undefined;
  }
}
