// map over blocks of 4 × 4 elements, where some input is contiguous along another axis than the
// result (a transpose): rows of a block are vectors of the result, columns vectors of that input,
// so both are loaded and stored whole. A workgroup takes squares of blocks: whole cache lines on
// both sides.

import {
  addIndex,
  axisIndex,
  coefficientOf,
  constantIndex,
  delinearize,
  linearize,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import { dims } from '../../../ir/graph.ts';
import { sameShape, sizeOf } from '../../../ir/shape.ts';
import { makeAxis } from '../../../schedule/fusion/domain.ts';
import { argsOf, type Expr } from '../../../schedule/expression/expr.ts';
import type { Axis, Kernel, Write } from '../../../schedule/kernel.ts';
import { invocationsToFill } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { addInts, constant, mulInts, type LoopBuilder } from '../../loop/builder.ts';
import { laneAtom, Lowering, quadIndex } from '../../expression/lowering.ts';
import type { Value } from '../../loop/loop.ts';
import { bufferName, type Frame } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';
import { divideInts } from '../../loop/integers.ts';

/** A map cut into blocks: four by four along two axes of its result, the last and another one. */
export interface MapBlocks {
  /** Groups of four along the two axes. */
  readonly height: number;
  readonly width: number;
  /** Blocks along each side of the square that a workgroup takes. */
  readonly side: number;
  readonly count: number;
  /** The other axes as one; the block's place along the two. */
  readonly rest: IndexExpr;
  readonly down: IndexExpr;
  readonly right: IndexExpr;
  /** The flat index of (row, lane) in the block. */
  readonly flat: IndexExpr;
}

/** Operations that are worth writing out four times. */
const mostWork = 80;
/** Blocks along a square that one thread walks: its rows and columns stay in the nearest cache. */
const serialSide = 4;
/** The row of a block. */
const rowAtom = axisIndex('row', 4);

/**
 * The blocks that make most reads of a map contiguous, if it has reads that its own order scatters.
 */
export function blocksOf(
  kernel: Kernel,
  axis: Axis,
  writes: readonly Write[],
  target: Target,
): MapBlocks | undefined {
  const shape = writes.length === 0 ? [] : dims(writes[0]!.node);
  const fits = writes.every(({ node, index }) => index === axis.atom && sameShape(node.shape, shape));
  if (!fits || sizeOf(shape) < invocationsToFill(target)) return undefined;
  const reads = readsOf(kernel, writes);
  if (reads === undefined) return undefined;
  let best: MapBlocks | undefined;
  let mostTurned = 0;
  for (let across = 0; across < shape.length - 1; across++) {
    const blocks = cut(shape, across, target);
    if (blocks === undefined) continue;
    const turned = reads.filter((index) => {
      const here = substitute(index, new Map([[axis.atom, blocks.flat]]));
      const step = coefficientOf(here, laneAtom);
      return coefficientOf(here, rowAtom) === 1 && step !== 0 && step !== 1;
    }).length;
    if (turned > mostTurned) [best, mostTurned] = [blocks, turned];
  }
  return best;
}

/**
 * Cuts a shape along its last axis and another one; undefined where four does not divide them or
 * they are short.
 */
function cut(shape: readonly number[], across: number, target: Target): MapBlocks | undefined {
  const last = shape.length - 1;
  const [tall, wide] = [shape[across]!, shape[last]!];
  if (tall % 4 !== 0 || wide % 4 !== 0 || tall < 8 || wide < 8) return undefined;
  const others = shape.filter((_, axis) => axis !== across && axis !== last);
  const rest = makeAxis('rest', sizeOf(others)).atom;
  const [down, right] = [quadIndex('down', tall), quadIndex('right', wide)];
  const outer = delinearize(rest, others);
  let o = 0;
  const at = shape.map((_, axis) => {
    if (axis === last) return addIndex(scaleIndex(right, 4), laneAtom);
    return axis === across ? addIndex(scaleIndex(down, 4), rowAtom) : outer[o++]!;
  });
  const side = target.serial === undefined ? Math.floor(Math.sqrt(target.workgroupSize)) : serialSide;
  const square = tall % (4 * side) === 0 && wide % (4 * side) === 0;
  return {
    height: tall / 4,
    width: wide / 4,
    side: square ? side : 1,
    count: sizeOf(shape) / 16,
    rest,
    down,
    right,
    flat: linearize(at, shape),
  };
}

/**
 * Indices of everything the writes read; undefined when they compute too much to be written out
 * four times.
 */
function readsOf(kernel: Kernel, writes: readonly Write[]): readonly IndexExpr[] | undefined {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    argsOf(expr).forEach(visit);
  };
  for (const write of writes) visit(write.value);
  for (const expr of kernel.pool.dynamics.values()) visit(expr);
  if (seen.size > mostWork) return undefined;
  return [...seen].flatMap((expr) => (expr.kind === 'read' ? [expr.index] : []));
}

/** Computes and stores the block of this number. */
export function computeBlock(
  b: LoopBuilder,
  frame: Frame,
  axis: Axis,
  writes: readonly Write[],
  blocks: MapBlocks,
  number: Value,
): void {
  const bufferOf = bufferName(frame);
  const atoms = placesOf(b, blocks, number);
  // All rows are computed before any is stored, so that the columns they share are loaded once.
  const rows = [0, 1, 2, 3].map((row) => {
    const flat = substitute(blocks.flat, new Map([[rowAtom, constantIndex(row)]]));
    const binding = { substitution: new Map([[axis.atom, flat]]), atoms };
    const lowering = new Lowering(b, frame.kernel.pool, binding, bufferOf, { shareGroups: true });
    return { lowering, values: writes.map((write) => lowering.value(write.value)) };
  });
  for (const { lowering, values } of rows)
    writes.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, axis));
}

/** Where a block lies. Squares of blocks are numbered first, then the blocks in a square. */
function placesOf(b: LoopBuilder, blocks: MapBlocks, number: Value): ReadonlyMap<IndexExpr, Value> {
  const { height, width, side } = blocks;
  const [square, inner] =
    side === 1 ? [number, undefined] : divideInts(b, number, side * side, ['square', 'inner']);
  const [above, squareRight] = divideInts(b, square, width / side, ['above', 'right']);
  const [rest, squareDown] = divideInts(b, above, height / side, ['rest', 'down']);
  let [down, right] = [squareDown, squareRight];
  if (inner !== undefined) {
    const [innerDown, innerRight] = divideInts(b, inner, side, ['inner_down', 'inner_right']);
    down = b.let(addInts(mulInts(squareDown, constant(side)), innerDown), 'down');
    right = b.let(addInts(mulInts(squareRight, constant(side)), innerRight), 'right');
  }
  return new Map([
    [blocks.rest, rest],
    [blocks.down, down],
    [blocks.right, right],
  ]);
}
