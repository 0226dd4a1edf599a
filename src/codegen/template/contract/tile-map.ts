// Operands that a device can copy by tiles: reads that lie in memory as they are multiplied, by
// constant strides along the axes of the product, one of which is 1. Anything else (a prologue, a
// convolution's window) is staged by invocations.

import { coefficientOf, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Node } from '../../../ir/graph.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Axis } from '../../../schedule/kernel.ts';
import { strideProblem } from '../../../runtime/program.ts';
import type { TileMap, Value } from '../../loop/loop.ts';
import { tileAlignment, tileLine } from '../../loop/verify-warpgroup.ts';

/** The axes of a product that both of its operands have. */
interface SharedAxes {
  readonly batch: Axis;
  readonly k: Axis;
}

/**
 * How an operand lies: `k`, `free` and `batch` are strides in elements; what stands still along an
 * axis has none (0).
 */
export interface TiledOperand {
  readonly node: Node;
  /** Elements along the free axis: behind them are zeros, as behind every tensor of a map. */
  readonly count: number;
  readonly alongK: boolean;
  readonly offset: number;
  readonly k: number;
  readonly free: number;
  readonly batch: number;
}

/** An element that is read, and how many of them there are along an axis: behind them are zeros. */
export interface CopiedRead {
  readonly read: Extract<Expr, { readonly kind: 'read' }>;
  readonly count: number;
}

/** What is only read of an operand, all of it or its first elements along an axis. */
export function copiedRead(operand: Expr, { atom, extent }: Axis): CopiedRead | undefined {
  if (operand.kind === 'read') return { read: operand, count: extent };
  if (operand.kind !== 'select' || operand.yes.kind !== 'read' || !isPositiveZero(operand.no))
    return undefined;
  const [bound, ...others] = operand.guard;
  if (bound === undefined || others.length > 0 || bound.expr !== atom || bound.lo > 0) return undefined;
  return { read: operand.yes, count: bound.hi + 1 };
}

function isPositiveZero(expr: Expr): boolean {
  return expr.kind === 'constant' && Object.is(expr.value, 0);
}

/** Undefined where the operand is none that can be copied by tiles. */
export function tiledOperand(operand: Expr, free: Axis, { batch, k }: SharedAxes): TiledOperand | undefined {
  const copied = copiedRead(operand, free);
  if (copied === undefined) return undefined;
  const { count } = copied;
  const { index, node } = copied.read;
  const [alongK, along, across] = [k, free, batch].map(({ atom }) => coefficientOf(index, atom));
  if (alongK === undefined || along === undefined || across === undefined) return undefined;
  const offset = offsetOf(index, [k, free, batch]);
  if (offset === undefined || offset % tileAlignment !== 0) return undefined;
  const lies = { node, count, offset, k: alongK, free: along, batch: across };
  // Along an axis of one index, neighbours are as good as any.
  const found =
    lies.k === 1 && isLine(lies.free, free)
      ? { ...lies, alongK: true }
      : lies.free === 1 && isLine(lies.k, k)
        ? { ...lies, alongK: false }
        : undefined;
  if (found === undefined || !(lies.batch === 0 || isStride(lies.batch))) return undefined;
  return strideProblem(layoutOf(found, free, { batch, k })) === undefined ? found : undefined;
}

/**
 * Whether lines lie apart. One that is repeated (a row that was broadcast) is no axis of memory:
 * maps have no stride of 0.
 */
function isLine(stride: number, { extent }: Axis): boolean {
  return extent === 1 || isStride(stride);
}

function isStride(stride: number): boolean {
  return stride > 0 && stride % tileAlignment === 0;
}

/** The constant of a sum of axes; undefined where there is anything else in it. */
export function offsetOf(index: IndexExpr, axes: readonly Axis[]): number | undefined {
  const atoms = axes.map(({ atom }) => atom);
  if (index.kind === 'const') return index.value;
  if (index.kind !== 'sum') return atoms.includes(index) ? 0 : undefined;
  return index.terms.every(({ atom }) => atoms.includes(atom)) ? index.offset : undefined;
}

/** An axis of a map: neighbours in a line, lines, or batches. */
type Role = 'line' | 'lines' | 'batch';

interface Layout {
  readonly roles: readonly Role[];
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
}

/**
 * The axes of a map: neighbours first, then by their strides, each of which is to be a multiple of
 * the one before.
 */
function layoutOf(operand: TiledOperand, free: Axis, { batch, k }: SharedAxes): Layout {
  const { alongK } = operand;
  const inside = { ...free, extent: operand.count };
  const [line, lines] = alongK ? [k, inside] : [inside, k];
  const apart = [
    { role: 'lines' as const, size: lines.extent, stride: alongK ? operand.free : operand.k },
    // Batches that share the operand have no axis.
    ...(batch.extent > 1 && operand.batch !== 0
      ? [{ role: 'batch' as const, size: batch.extent, stride: operand.batch }]
      : []),
  ];
  const axes = [
    { role: 'line' as Role, size: line.extent, stride: 1 },
    ...apart.filter(({ size }) => size > 1).toSorted((a, b) => a.stride - b.stride),
  ];
  // An axis with one index has no stride, but a device wants one: as if it came behind all the
  // others.
  for (const { role, size } of apart.filter((axis) => axis.size === 1)) {
    const { size: before, stride } = axes.at(-1)!;
    axes.push({ role, size, stride: tileAlignment * Math.ceil((before * stride) / tileAlignment) });
  }
  return {
    roles: axes.map(({ role }) => role),
    sizes: axes.map(({ size }) => size),
    strides: axes.map(({ stride }) => stride),
  };
}

/** A map, and what its axes are. */
export interface OperandMap {
  readonly map: TileMap;
  readonly roles: readonly Role[];
}

/** The map of an operand's buffer, for boxes of so many lines of 64 elements. */
export function tileMapOf(
  name: string,
  buffer: string,
  operand: TiledOperand,
  free: Axis,
  axes: SharedAxes,
  lines: number,
): OperandMap {
  const { roles, sizes, strides } = layoutOf(operand, free, axes);
  const box = { line: tileLine, lines, batch: 1 } as const;
  const { offset } = operand;
  return { map: { name, buffer, offset, sizes, strides, box: roles.map((role) => box[role]) }, roles };
}

/** Coordinates of a box in a map. */
export function boxAt(
  roles: OperandMap['roles'],
  alongK: boolean,
  k: Value,
  free: Value,
  group: Value,
): readonly Value[] {
  const [line, lines] = alongK ? [k, free] : [free, k];
  const place = { line, lines, batch: group } as const;
  return roles.map((role) => place[role]);
}
