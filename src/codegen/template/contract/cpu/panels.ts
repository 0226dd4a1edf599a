// Operands of a packed product: panels of a few rows (or columns) in which every step of k lies
// together, so that the tiles that are multiplied read neighbours only. Operands are expressions,
// so packing is where casts, scalings and views happen; each element is computed along the axis on
// which it lies in memory, four at a time, and turned where that is k.

import { addInts, constant, mulInts, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Value } from '../../../loop/loop.ts';
import { flipped, type Contract, type ContractProblem } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Frame } from '../../shared/frame.ts';
import { TileLowering, type TilePoint } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { place } from '../../../loop/integers.ts';

/** Steps of k that a panel has room for. */
export const depthRoom = (blockK: number, k: number): number => roundedUp(Math.min(blockK, k), 4);

/**
 * Steps of k that are packed: from `first` (a multiple of four) up to `end`, `room` of them at
 * most.
 */
export interface Depth {
  readonly first: Value;
  readonly end: Value;
  readonly room: number;
}

/** One side of a product. */
export interface ProductSide {
  readonly operand: Expr;
  /** Elements of the free axis. */
  readonly extent: number;
  /** Neighbours in memory run along k, not along the free axis. */
  readonly alongK: boolean;
  /** Evaluates the operand where the free axis has an index, and where it has four. */
  readonly at: (free: Pick<TilePoint, 'quad' | 'column'>, k: Pick<TilePoint, 'step' | 'stepQuad'>) => Value;
}

/** The left side, whose free axis is m; and the right one's, n. */
export function sidesOf(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  group: Value,
  { lhs, rhs, blocks }: Pick<ContractProblem, 'lhs' | 'rhs' | 'blocks'>,
): { readonly left: ProductSide; readonly right: ProductSide } {
  const side = (of: Contract, alongK: boolean): ProductSide => {
    const points = new TileLowering(b, frame, of, group);
    return {
      operand: of.rhs,
      extent: of.n.extent,
      alongK,
      at: (free, k) => splat(points.at({ ...free, ...k }).value(of.rhs), k.step && !free.quad ? 1 : 4),
    };
  };
  // The codes of a block share words and a scale, which are read once for four neighbours.
  const alongK = (name: 'lhs' | 'rhs', along: string): boolean => along === 'k' || blocks?.side === name;
  return { left: side(flipped(body), alongK('lhs', lhs)), right: side(body, alongK('rhs', rhs)) };
}

/**
 * Packs `panels` panels, of `width` (2 or a multiple of four) neighbours on the free axis each, the
 * first of which is `first` (a multiple of four). What lies past the end of the axis is packed from
 * its last elements, and means nothing.
 */
export function packPanels(
  b: LoopBuilder,
  buffer: string,
  side: ProductSide,
  width: number,
  first: Value,
  panels: Value,
  depth: Depth,
  /** No panel has anything past the end of the axis. */
  isWhole = false,
): void {
  const { alongK } = side;
  const within = (index: Value, extent: number): Value => (isWhole ? index : inside(b, index, extent));
  const at = (panel: Value, step: Value, inPanel: number): Value =>
    addInts(mulInts(addInts(mulInts(panel, constant(depth.room)), step), constant(width)), constant(inPanel));
  const local = (step: Value): Value => difference(step, depth.first);
  const store = (index: Value, value: Value): void => b.store(buffer, index, value, true);
  if (alongK) {
    // Tiles of a few neighbours by four steps of k.
    const group = Math.min(4, width);
    const groups = width / group;
    turns(b, mulInts(panels, constant(groups)), (line) => {
      const panel = groups === 1 ? line : b.let(operation('div', [line, constant(groups)], 'i32'), 'panel');
      const inPanel =
        groups === 1
          ? constant(0)
          : b.let(mulInts(operation('mod', [line, constant(groups)], 'i32'), constant(group)), 'in_panel');
      const free = Array.from({ length: group }, (_, i) =>
        within(place(line, group, addInts(first, constant(i))), side.extent),
      );
      const quads = (step: Value): Value =>
        operation('div', [addInts(step, constant(3)), constant(4)], 'i32');
      b.for(
        'kquad',
        b.let(quads(depth.first), 'first_quad'),
        b.let(quads(depth.end), 'end_quad'),
        1,
        (stepQuad) => {
          const rows = free.map((column) => b.let(side.at({ column }, { stepQuad }), 'row'));
          turned(b, rows).forEach((value, i) => {
            const step = local(addInts(mulInts(stepQuad, constant(4)), constant((i * value.width) / group)));
            store(addInts(at(panel, step, 0), inPanel), value);
          });
        },
      );
    });
    return;
  }
  const lines = width < 4 ? 4 / width : 1;
  const quadsEach = Math.max(1, width / 4);
  const quadsAll = Math.ceil(side.extent / 4);
  const firstQuad = b.let(operation('div', [first, constant(4)], 'i32'), 'first_quad');
  const rounds = lines === 1 ? panels : ceilDiv(b, panels, lines, 'rounds');
  turns(b, rounds, (line) => {
    const quads = Array.from({ length: quadsEach }, (_, j) =>
      within(place(line, quadsEach, addInts(firstQuad, constant(j))), quadsAll),
    );
    b.for('k', depth.first, depth.end, 1, (step) => {
      quads.forEach((quad, j) => {
        const value = b.let(side.at({ quad }, { step }), 'packed');
        if (lines === 1) return store(at(line, local(step), 4 * j), value);
        for (let i = 0; i < lines; i++) {
          const panel = b.let(place(line, lines, constant(i)), 'panel');
          store(
            at(panel, local(step), 0),
            lanesOf(
              value,
              [0, 1].map((lane) => i * width + lane),
            ),
          );
        }
      });
    });
  });
}

/** How many groups of `size` hold so many. */
function ceilDiv(b: LoopBuilder, value: Value, size: number, hint: string): Value {
  if (value.kind === 'constant') return constant(Math.ceil(value.value / size));
  return b.let(operation('div', [addInts(value, constant(size - 1)), constant(size)], 'i32'), hint);
}

/** i32 difference, with the trivial cases folded. */
export function difference(a: Value, b: Value): Value {
  if (b.kind !== 'constant') return operation('sub', [a, b], 'i32');
  return addInts(a, constant(-b.value));
}

/** A loop, but where there is one turn only. */
function turns(b: LoopBuilder, count: Value, body: (line: Value) => void): void {
  if (count.kind === 'constant' && count.value === 1) body(constant(0));
  else b.for('line', constant(0), count, 1, body);
}

/** An index that stays in its axis. */
function inside(b: LoopBuilder, index: Value, extent: number): Value {
  return b.let(operation('min', [index, constant(extent - 1)], 'i32'), 'at');
}

/** Two or four vectors along k → vectors along the other axis, in the order of k. */
export function turned(b: LoopBuilder, rows: readonly Value[]): readonly Value[] {
  const [p, q, r, s] = rows as readonly [Value, Value, Value?, Value?];
  const mixed = (x: Value, y: Value, lanes: readonly number[]): Value =>
    b.let(
      {
        kind: 'vector',
        args: lanes.map((lane, i) => laneOf(i % 2 === 0 ? x : y, lane)),
        type: x.type,
        width: 4,
      },
      'mixed',
    );
  const [low, high] = [mixed(p, q, [0, 0, 1, 1]), mixed(p, q, [2, 2, 3, 3])];
  if (r === undefined || s === undefined) return [low, high];
  const [lower, higher] = [mixed(r, s, [0, 0, 1, 1]), mixed(r, s, [2, 2, 3, 3])];
  const joined = (x: Value, y: Value, from: number): Value =>
    b.let(
      {
        kind: 'vector',
        args: [laneOf(x, from), laneOf(x, from + 1), laneOf(y, from), laneOf(y, from + 1)],
        type: x.type,
        width: 4,
      },
      'turned',
    );
  return [joined(low, lower, 0), joined(low, lower, 2), joined(high, higher, 0), joined(high, higher, 2)];
}

/** Two lanes of a vector. */
function lanesOf(value: Value, lanes: readonly number[]): Value {
  return { kind: 'vector', args: lanes.map((lane) => laneOf(value, lane)), type: value.type, width: 2 };
}
