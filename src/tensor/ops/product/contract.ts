// Contractions of graph nodes. Batch axes that both operands have become batch axes of one `dot`;
// those that only one has become free axes of that operand, so nothing is repeated in memory and
// `x[B,M,K] @ w[K,N]` is one product of a [B·M,K] matrix.

import { TensorError } from '../../../errors.ts';
import { permute, reshape } from '../../../ir/build.ts';
import { promote, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { FixedShape } from '../../../ir/shape.ts';
import { castedType } from '../../autocast.ts';
import { expectTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';

/** The dtype that the operands of a contraction promote to. @internal */
export function productType(op: string, ...operands: readonly Tensor[]): DType {
  for (const x of operands) expectTensor(op, 'every operand', x);
  const dtype = operands.map((x) => x.dtype).reduce(promote);
  if (dtype === 'bool') {
    throw new TensorError('E_DTYPE', op, `bool has no product: ${show(...operands)}`, ".cast('f32')");
  }
  return castedType(op, dtype);
}

/** A contraction of named axes; `batch` and `contract` are pairs of axes of x and y. @internal */
export function contract(
  b: GraphBuilder,
  x: Node,
  y: Node,
  batch: readonly (readonly [number, number])[],
  summed: readonly (readonly [number, number])[],
  dtype: DType = x.dtype,
): Node {
  return b.add('dot', [x, y], {
    lhsBatch: batch.map(([left]) => left),
    rhsBatch: batch.map(([, right]) => right),
    lhsContract: summed.map(([left]) => left),
    rhsContract: summed.map(([, right]) => right),
    dtype,
  });
}

/** The broadcast of the leading axes; undefined when they do not fit. @internal */
export function leadingAxes(x: FixedShape, y: FixedShape): number[] | undefined {
  const length = Math.max(x.length, y.length);
  const out: number[] = [];
  for (let i = length; i >= 1; i--) {
    const [p, q] = [x.at(-i) ?? 1, y.at(-i) ?? 1];
    if (p !== q && p !== 1 && q !== 1) return undefined;
    out.push(p === 1 ? q : p);
  }
  return out;
}

/** [.., M, K] by [.., K, N]; leading axes broadcast. @internal */
export function matmulNodes(b: GraphBuilder, x: Node, y: Node, dtype: DType = x.dtype): Node {
  const [left, right] = [dims(x), dims(y)];
  const [leadX, leadY] = [left.slice(0, -2), right.slice(0, -2)];
  const lead = leadingAxes(leadX, leadY)!;
  // Axes of size 1 that the other operand repeats, or that both lack, are dropped; the result gets
  // them back.
  const own = (axes: FixedShape): number[] =>
    lead.flatMap((dim, i) => (dim !== 1 && (axes[i - (lead.length - axes.length)] ?? 1) !== 1 ? [i] : []));
  const [ownX, ownY] = [own(leadX), own(leadY)];
  const shared = ownX.filter((i) => ownY.includes(i));
  const dropped = (axes: FixedShape, kept: readonly number[]): number[] => [
    ...kept.map((i) => lead[i]!),
    ...axes.slice(-2),
  ];
  const product = contract(
    b,
    reshape(b, x, dropped(left, ownX)),
    reshape(b, y, dropped(right, ownY)),
    shared.map((i) => [ownX.indexOf(i), ownY.indexOf(i)]),
    [[ownX.length + 1, ownY.length]],
    dtype,
  );
  // The product's axes: shared, those of x alone, M, those of y alone, N.
  const ROWS = lead.length;
  const COLUMNS = lead.length + 1;
  const alone = (axes: readonly number[]): number[] => axes.filter((i) => !shared.includes(i));
  const order = [...shared, ...alone(ownX), ROWS, ...alone(ownY), COLUMNS];
  const wanted = order.toSorted((p, q) => p - q);
  const sorted = permute(
    b,
    product,
    wanted.map((axis) => order.indexOf(axis)),
  );
  return reshape(b, sorted, [...lead, left.at(-2)!, right.at(-1)!]);
}
