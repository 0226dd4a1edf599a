// What the tiling of a dot or conv kernel is chosen by: sizes, how the operands lie in memory, and
// how much the kernel computes around the products. Plain data, so that equal problems have equal
// tilings and measurements can be kept.

import {
  addIndex,
  atomsOf,
  coefficientOf,
  dynamicIndex,
  scaleIndex,
  substitute,
} from '../../../ir/index-algebra/expr.ts';
import type { BlockFormat } from '../../../ir/blocks/format.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { argsOf, type Expr } from '../../../schedule/expression/expr.ts';
import type { Axis, Body, ColumnFolds, Kernel, Write } from '../../../schedule/kernel.ts';
import type { MatrixType } from '../../loop/loop.ts';
import { isWeightGradient } from '../../../schedule/weight-gradient.ts';
import { laneAtom, quadIndex } from '../../expression/lowering.ts';
import { blockProducts } from './blocks.ts';
import { Slot } from '../../../slot.ts';

export type Contract = Extract<Body, { kind: 'contract' }>;

/** How the positions of a convolution overlap. */
export interface Window {
  /** Output positions of a line (the last spatial axis), and lines. */
  readonly width: number;
  readonly lines: number;
  /**
   * Taps along a line; lines of taps that lie together; and how far apart neighbouring outputs and
   * taps look.
   */
  readonly taps: number;
  readonly tapLines: number;
  readonly stride: number;
  readonly dilation: number;
  /** Elements of the input stand so far apart along a line: other positions hold nothing. */
  readonly spread: number;
  /** Of one group, by 3 × 3 taps that are neighbours, at every position. */
  readonly isPlain?: true;
  /** Of one group, with 3 × 3 results that are neighbours: the gradient by the weights of a plain one. */
  readonly isGradient?: true;
  /** Of convolutions with one or two spatial axes. */
  readonly plane?: Plane;
}

/**
 * Lines of a padded input: how far apart neighbouring lines of outputs look, over how many lines of
 * inputs a window reaches beyond its first, and how many elements a padded line has.
 */
export interface Plane {
  readonly stride: number;
  readonly reach: number;
  readonly line: number;
}

export interface ContractProblem {
  readonly kind: 'dot' | 'conv';
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /**
   * The axis along which neighbouring elements of an operand are neighbours in memory, if there is
   * one.
   */
  readonly lhs: 'm' | 'k' | 'none';
  readonly rhs: 'n' | 'k' | 'none';
  readonly dtype: DType;
  /** What matrix units would multiply. */
  readonly matrix?: MatrixType;
  /** Both operands, of 16 bits, can be copied by tiles. */
  readonly tiled?: true;
  readonly window?: Window;
  /** One operand is rows of blocks, of which the contracted axis has the columns. */
  readonly blocks?: { readonly side: 'lhs' | 'rhs'; readonly format: BlockFormat };
  /** Products that the kernel computes of its left operand, where it is more than one. */
  readonly products?: number;
  /** Reductions of rows of the left operand that every workgroup repeats, if there are any. */
  readonly stages?: number;
  /** Columns that are folded together, where folds of the result leave instead of it. */
  readonly folds?: number;
  /** What every unrolled result adds to the kernel, in statements. */
  readonly epilogue: number;
}

export function contractProblem(kernel: Kernel, body: Contract): ContractProblem {
  const { batch, m, n, k, lhs, rhs } = body;
  const window = windowOf(body);
  const matrix = matrixOperands(body);
  const blocks = blocksOf(body);
  const isTiled = (matrix === 'f16' || matrix === 'bf16') && copiedNodes.filled?.(body) !== undefined;
  return {
    kind: body.node.op === 'conv' ? 'conv' : 'dot',
    batch: batch.extent,
    m: m.extent,
    n: n.extent,
    k: k.extent,
    lhs: directionOf(lhs, [
      ['m', m],
      ['k', k],
    ]),
    rhs: directionOf(rhs, [
      ['n', n],
      ['k', k],
    ]),
    dtype: body.node.dtype,
    ...(matrix === undefined ? {} : { matrix }),
    ...(isTiled && { tiled: true }),
    ...(window === undefined ? {} : { window }),
    ...(blocks !== undefined && { blocks }),
    ...(body.siblings !== undefined && { products: 1 + body.siblings.length }),
    ...(body.stages !== undefined && { stages: body.stages.length }),
    ...(body.folds !== undefined && { folds: body.folds.width }),
    epilogue: epilogueSize(kernel, body),
  };
}

/**
 * The 16-bit type of both operands, if they are of one; tf32 for other products of f32, where that
 * is asked for.
 */
export function matrixOperands({ node, lhs, rhs }: Contract): MatrixType | undefined {
  const dtype = matrixType(lhs);
  if (dtype !== undefined && dtype === matrixType(rhs)) return dtype;
  return node.dtype === 'f32' && lhs.dtype === 'f32' && rhs.dtype === 'f32' ? 'tf32' : undefined;
}

/**
 * The 16-bit type that holds every value of an expression exactly: its own, or that of what is only
 * widened.
 */
export function matrixType(expr: Expr): MatrixType | undefined {
  const { dtype } = expr;
  if (dtype === 'f16' || dtype === 'bf16') return dtype;
  if (dtype !== 'f32' || expr.kind !== 'op' || expr.op !== 'cast') return undefined;
  return matrixType(expr.args[0]!);
}

/** The expression without widening casts: what is staged. */
export function narrowed(expr: Expr): Expr {
  const isWide = expr.dtype === 'f32' && expr.kind === 'op' && expr.op === 'cast';
  return isWide && matrixType(expr) !== undefined ? narrowed(expr.args[0]!) : expr;
}

/** What both operands are copied from, where both can be copied by tiles. Devices with warp groups have it. */
export const copiedNodes: Slot<(body: Contract) => readonly [lhs: Node, rhs: Node] | undefined> = new Slot(
  'products of tiles',
);

/**
 * Expressions of the writes; those that reach memory for every single result weigh as much as they
 * take to compile.
 */
function epilogueSize(kernel: Kernel, { m, n, folds }: Contract): number {
  const access = 3;
  const seen = new Set<Expr>();
  // What is written once for many columns is nothing beside what they are folded from.
  const writes = kernel.writes.filter((write) => folds === undefined || !isOfFold(write, n, folds));
  let accesses = writes.length;
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === 'read') {
      const atoms = atomsOf(expr.index);
      if ([m, n].every(({ atom }) => atom.kind !== 'axis' || atoms.includes(atom))) accesses += 1;
    }
    argsOf(expr).forEach(visit);
  };
  folds?.stages.forEach(({ value }) => visit(value));
  writes.forEach(({ value }) => visit(value));
  return seen.size + access * accesses;
}

/** Whether a write is of what is folded: it stands once for all columns that are folded together. */
export function isOfFold({ index }: Write, { atom }: Axis, { width }: ColumnFolds): boolean {
  const part = dynamicIndex('part', 0, 1);
  const column = dynamicIndex('column', 0, width - 1);
  const at = addIndex(scaleIndex(part, width), column);
  return !atomsOf(substitute(index, new Map([[atom, at]]))).includes(column as never);
}

/** Which operand of a dot is rows of blocks; none where a run says how many columns count. */
function blocksOf({ node, k, lhs, rhs, bound, needed }: Contract): ContractProblem['blocks'] {
  if (node.op !== 'dot' || bound !== undefined || needed !== undefined) return undefined;
  for (const [side, operand] of [
    ['rhs', rhs],
    ['lhs', lhs],
  ] as const) {
    const rows = blockProducts.filled?.rows(operand, k);
    if (rows !== undefined) return { side, format: rows.format };
  }
  return undefined;
}

/** The overlap of a convolution's positions; undefined for other contractions. */
export function windowOf({ node, image }: Contract): Window | undefined {
  if (node.op !== 'conv' || node.shape.length < 3) return undefined;
  const [spatial, kernel] = [dims(node).slice(2), dims(node.inputs[1]!).slice(2)];
  const { strides, rhsDilation, lhsDilation } = node.attrs;
  const width = spatial.at(-1)!;
  const isDense = [strides, rhsDilation, lhsDilation].every((each) => each.every((one) => one === 1));
  const isPlain = isDense && node.attrs.groups === 1 && kernel.length === 2 && kernel.every((n) => n === 3);
  return {
    width,
    lines: sizeOf(spatial) / width,
    taps: kernel.at(-1)!,
    tapLines: kernel.at(-2) ?? 1,
    stride: strides.at(-1)!,
    dilation: rhsDilation.at(-1)!,
    spread: lhsDilation.at(-1)!,
    ...(isPlain && image !== undefined && { isPlain }),
    ...(isWeightGradient(node) && image !== undefined && { isGradient: true }),
    ...(image !== undefined &&
      image.spatial.length <= 2 && {
        plane: {
          stride: spatial.length === 1 ? 1 : strides[0]!,
          reach: spatial.length === 1 ? 0 : (kernel[0]! - 1) * rhsDilation[0]!,
          line: image.spatial.at(-1)!.extent,
        },
      }),
  };
}

/** The axis along which most reads of an operand are contiguous; the first of equals. */
function directionOf<Name extends string>(
  operand: Expr,
  axes: readonly (readonly [Name, Axis])[],
): Name | 'none' {
  let best: Name | 'none' = 'none';
  let most = 0;
  for (const [name, axis] of axes) {
    const reads = axis.extent === 1 ? 0 : contiguousReads(operand, axis);
    if (reads > most) [best, most] = [name, reads];
  }
  return best;
}

/** Reads of an operand that are contiguous along an axis. */
export function contiguousReads(operand: Expr, axis: Axis): number {
  const quad = quadIndex('probe', axis.extent);
  const lane = new Map([[axis.atom, addIndex(scaleIndex(quad, 4), laneAtom)]]);
  const seen = new Set<Expr>();
  const visit = (expr: Expr): number => {
    if (seen.has(expr)) return 0;
    seen.add(expr);
    const own = expr.kind === 'read' && coefficientOf(substitute(expr.index, lane), laneAtom) === 1 ? 1 : 0;
    return argsOf(expr).reduce((sum, arg) => sum + visit(arg), own);
  };
  return visit(operand);
}

/** The same products with the sides exchanged: what ran along m runs along n. */
export function flipped(body: Contract): Contract {
  return { ...body, m: body.n, n: body.m, lhs: body.rhs, rhs: body.lhs };
}

export function flippedProblem(problem: ContractProblem): ContractProblem {
  const turn = { m: 'n', n: 'm', k: 'k', none: 'none' } as const;
  return {
    ...problem,
    m: problem.n,
    n: problem.m,
    lhs: turn[problem.rhs] as 'm' | 'k' | 'none',
    rhs: turn[problem.lhs] as 'n' | 'k' | 'none',
    ...(problem.blocks !== undefined && {
      blocks: { ...problem.blocks, side: problem.blocks.side === 'lhs' ? 'rhs' : 'lhs' },
    }),
  };
}

/**
 * The vector axis follows memory: the sides change places where the right one is a column, or only
 * the left contiguous.
 */
export function flipsOf({ m, n, lhs, rhs }: ContractProblem): readonly boolean[] {
  if (n < 4 && m > n) return [true];
  return lhs === 'm' && rhs !== 'n' && m >= 4 ? [true, false] : [false];
}

/** Whether elements of a convolution's input are searched for tap by tap. */
export function isSearched({ window }: ContractProblem): boolean {
  return window !== undefined && window.taps * window.tapLines > 1;
}
