// Operands that a device can copy by tiles: reads that lie in memory as they are multiplied, by
// constant strides along the axes of the product, one of which is 1. Anything else (a prologue, a
// convolution's window) is staged by invocations.

import { atomsOf, coefficientOf, interval, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Node } from '../../../ir/graph.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Axis } from '../../../schedule/kernel.ts';
import { strideProblem } from '../../../runtime/program.ts';
import type { TileMap, Value } from '../../loop/loop.ts';
import { tileAlignment, tileLine } from '../../loop/verify-warpgroup.ts';

/** Parts of the batch that a map has axes for, beside those of lines. */
const mostParts = 3;

/** The axes of a product that both of its operands have. */
interface SharedAxes {
  readonly batch: Axis;
  readonly k: Axis;
}

/** A part of the batch, such as its heads, along which an operand has a stride of its own. */
export interface BatchPart {
  /** Of the batch's atom alone. */
  readonly index: IndexExpr;
  readonly extent: number;
  readonly stride: number;
}

/** How an operand lies: `k` and `free` are strides in elements; what stands still along an axis has none (0). */
export interface TiledOperand {
  readonly node: Node;
  /** Elements along the free axis: behind them are zeros, as behind every tensor of a map. */
  readonly count: number;
  readonly alongK: boolean;
  readonly offset: number;
  readonly k: number;
  readonly free: number;
  /** None of what shares the operand. */
  readonly batches: readonly BatchPart[];
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
  const [alongK, along] = [k, free].map(({ atom }) => coefficientOf(index, atom));
  const batches = batchParts(index, [k, free], batch);
  if (alongK === undefined || along === undefined || batches === undefined) return undefined;
  const offset = index.kind === 'const' ? index.value : index.kind === 'sum' ? index.offset : 0;
  if (offset % tileAlignment !== 0) return undefined;
  const lies = { node, count, offset, k: alongK, free: along, batches };
  // Along an axis of one index, neighbours are as good as any.
  const found =
    lies.k === 1 && isLine(lies.free, free)
      ? { ...lies, alongK: true }
      : lies.free === 1 && isLine(lies.k, k)
        ? { ...lies, alongK: false }
        : undefined;
  if (found === undefined || !batches.every(({ stride }) => isStride(stride))) return undefined;
  return strideProblem(layoutOf(found, free, k)) === undefined ? found : undefined;
}

/** The terms of an index besides those of some axes; undefined where one is of more than the batch. */
function batchParts(
  index: IndexExpr,
  axes: readonly Axis[],
  { atom: batch }: Axis,
): readonly BatchPart[] | undefined {
  const terms =
    index.kind === 'sum' ? index.terms : index.kind === 'const' ? [] : [{ atom: index, factor: 1 }];
  const parts = terms
    .filter(({ atom }) => axes.every((axis) => axis.atom !== atom))
    .map(({ atom, factor }): BatchPart => ({ index: atom, extent: interval(atom).hi + 1, stride: factor }));
  const isOfBatch = parts.every(({ index: part }) => atomsOf(part).every((atom) => atom === batch));
  return isOfBatch && parts.length <= mostParts ? parts : undefined;
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

/** An axis of a map: neighbours in a line, lines, or so manieth part of the batch. */
type Role = 'line' | 'lines' | number;

interface Layout {
  readonly roles: readonly Role[];
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
}

/**
 * The axes of a map: neighbours first, then by their strides, each of which is to be a multiple of
 * the one before.
 */
function layoutOf(operand: TiledOperand, free: Axis, k: Axis): Layout {
  const { alongK } = operand;
  const inside = { ...free, extent: operand.count };
  const [line, lines] = alongK ? [k, inside] : [inside, k];
  const apart = [
    { role: 'lines' as Role, size: lines.extent, stride: alongK ? operand.free : operand.k },
    ...operand.batches.map(({ extent, stride }, role) => ({ role, size: extent, stride })),
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
  k: Axis,
  lines: number,
): OperandMap {
  const { roles, sizes, strides } = layoutOf(operand, free, k);
  const box = roles.map((role) => (role === 'line' ? tileLine : role === 'lines' ? lines : 1));
  return { map: { name, buffer, offset: operand.offset, sizes, strides, box }, roles };
}

/** Coordinates of a box in a map: along its lines, across them, and of each part of the batch. */
export function boxAt(
  roles: OperandMap['roles'],
  line: Value,
  lines: Value,
  batches: readonly Value[],
): readonly Value[] {
  return roles.map((role) => (role === 'line' ? line : role === 'lines' ? lines : batches[role]!));
}
