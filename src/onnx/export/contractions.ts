// Products as ONNX nodes: MatMul, with the axes of each kind brought together, and products with
// roots of unity: DFT.

import { isFloat } from '../../ir/dtype.ts';
import { dims, type NodeOf } from '../../ir/graph.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { converted } from './elementwise.ts';
import type { ModelEmitter, Val } from './emitter.ts';
import type { ExportRows, ExportScope } from './row.ts';

/** One operand's axes by what the product does with them. */
interface Side {
  readonly batch: readonly number[];
  readonly free: readonly number[];
  readonly contract: readonly number[];
}

function sideOf(rank: number, batch: readonly number[], contract: readonly number[]): Side {
  const free = Array.from({ length: rank }, (_, axis) => axis).filter(
    (axis) => !batch.includes(axis) && !contract.includes(axis),
  );
  return { batch, free, contract };
}

const at = (shape: FixedShape, axes: readonly number[]): number[] => axes.map((axis) => shape[axis]!);

/** The operand as [batch…, rows…, columns], where one kind of axes may be many in place. */
function laidOut(
  e: ModelEmitter,
  x: Val,
  batch: readonly number[],
  rows: FixedShape,
  columns: FixedShape,
): Val {
  const turned = e.transpose(x, [...batch, ...rows, ...columns]);
  const lead = at(x.shape, batch);
  return e.reshape(turned, [...lead, sizeOf(at(x.shape, rows)), sizeOf(at(x.shape, columns))]);
}

/** MatMul over batches. */
export function product(e: ModelEmitter, x: Val, y: Val, left: Side, right: Side, shape: FixedShape): Val {
  const { dtype } = x;
  const via = e.carrier('MatMul', dtype);
  // Rows of any rank stay as they are where the other side is one matrix.
  const isMatrix = left.batch.length === 0 && left.contract.length === 1 && left.free.length > 0;
  const lhs = isMatrix
    ? e.transpose(x, [...left.free, ...left.contract])
    : laidOut(e, x, left.batch, left.free, left.contract);
  const rhs = laidOut(e, y, right.batch, right.contract, right.free);
  const lead = isMatrix
    ? at(x.shape, left.free)
    : [
        ...at(
          shape,
          left.batch.map((_, i) => i),
        ),
        lhs.shape.at(-2)!,
      ];
  const type = { dtype: via, shape: [...lead, rhs.shape.at(-1)!] };
  const found = e.node('MatMul', [e.cast(lhs, via), e.cast(rhs, via)], type);
  return e.reshape(e.cast(found, dtype), shape);
}

function dot({ e, full }: ExportScope, node: NodeOf<'dot'>): Val {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = node.attrs;
  const [lhs, rhs] = [node.inputs[0]!, node.inputs[1]!];
  if (sizeOf(dims(lhs)) === 0 || sizeOf(dims(rhs)) === 0) return e.scalar(0, dtype);
  // A wider result is summed in its own dtype; a float that becomes an integer does so in the end.
  const isWidened = isFloat(dtype) === isFloat(lhs.dtype) || isFloat(dtype);
  const operand = (x: Val): Val => (isWidened ? e.cast(x, dtype) : x);
  const found = product(
    e,
    operand(full(lhs)),
    operand(full(rhs)),
    sideOf(lhs.shape.length, lhsBatch, lhsContract),
    sideOf(rhs.shape.length, rhsBatch, rhsContract),
    dims(node),
  );
  return converted(e, found, dtype);
}

/**
 * DFT has pairs along the last axis, as here, and takes lines in batches. What goes back is spelled
 * as what goes there, with the two parts swapped before and after: an inverse DFT divides by the
 * number of points, and ONNX Runtime does so with a float of 32 bits, also for doubles.
 */
function fft({ e, full }: ExportScope, node: NodeOf<'fft'>): Val {
  const shape = dims(node.inputs[0]!);
  const { axis, inverse } = node.attrs;
  const lines = [sizeOf(shape.slice(0, axis)), shape[axis]!, sizeOf(shape.slice(axis + 1, -1)), 2];
  const sided = (x: Val): Val => (inverse ? e.slice(x, [0, 0, 0, 1], lines, [1, 1, 1, -1]) : x);
  const x = sided(e.reshape(full(node.inputs[0]!), lines));
  const found = e.node('DFT', [x, undefined, e.scalar(1, 'i64')], x, { inverse: 0, onesided: 0 });
  return e.reshape(sided(found), shape);
}

export const contractions: ExportRows<'dot' | 'fft'> = { dot, fft };
