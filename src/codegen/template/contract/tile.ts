// What the forms of dot and conv share: accumulators, the multiply-add, and the evaluation of
// operands and epilogues at points of a tile.

import type { Node } from '../../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import {
  addInts,
  arithmetic,
  both,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../expression/lowering.ts';
import type { Value } from '../../loop/loop.ts';
import type { Axis, Write } from '../../../schedule/kernel.ts';
import type { Contract } from './problem.ts';
import { bufferName, type Frame } from '../shared/frame.ts';
import { neededOf, pointNeeded } from '../shared/needed.ts';
import { storeAt } from '../shared/store-value.ts';
import { packsOperands } from '../../../schedule/machine.ts';

/** Rows of which an invocation joins what it folded with others at a time. */
export const rowsAtOnce = 4;

/** A place along an axis, and whether it is one: what lies past the end repeats the last, and is not stored. */
export interface TilePlace {
  readonly index: Value;
  readonly inside: Value;
}

/** A register of four sums for every row and quad of columns. */
export function accumulators(b: LoopBuilder, body: Contract, rows: number, quads: number): Value[][] {
  const type = registerOf(body.node.dtype);
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: quads }, (_, j) => b.var(`sum_${i}_${j}`, constant(0, type, 4))),
  );
}

/** a·c + sum over the lanes of the sum. */
export function multiplyAdd(a: Value, c: Value, sum: Value): Value {
  const [left, right] = [splat(a, sum.width), splat(c, sum.width)];
  if (sum.type === 'f32' || sum.type === 'f64') return operation('fma', [left, right, sum], sum.type);
  return arithmetic('add', [arithmetic('mul', [left, right], sum.type), sum], sum.type);
}

/** The sums of the lanes of four vectors. */
export function lanesAdded(b: LoopBuilder, sums: readonly Value[]): Value {
  const [p, q, r, s] = sums as [Value, Value, Value, Value];
  const { type } = p;
  const pick = (x: Value, y: Value, at: readonly [number, number], turn: boolean): Value => {
    const places = at.flatMap((lane) => [[x, lane] as const, [y, lane] as const]);
    const order = turn ? [0, 2, 1, 3] : [0, 1, 2, 3];
    const args = order.map((i): Value => {
      const [arg, lane] = places[i]!;
      return { kind: 'lane', arg, lane, type, width: 1 };
    });
    return b.let({ kind: 'vector', args, type, width: 4 }, 'turned');
  };
  const add = (x: Value, y: Value): Value => b.let(arithmetic('add', [x, y], type), 'sums');
  const halves = [
    [p, q],
    [r, s],
  ].map(([x, y]) => add(pick(x!, y!, [0, 1], false), pick(x!, y!, [2, 3], false)));
  const [low, high] = halves as [Value, Value];
  return add(pick(low, high, [0, 1], true), pick(low, high, [2, 3], true));
}

/** Visits the groups from `first` to `end`, `count` at a time, and those that are left one at a time. */
export function eachOf(
  b: LoopBuilder,
  first: Value,
  end: Value,
  count: number,
): (visit: (groups: readonly Value[]) => void) => void {
  if (count === 1) return (visit) => b.for('quad', first, end, 1, (quad) => visit([quad]));
  const groups = b.let(operation('sub', [end, first], 'i32'), 'groups');
  const left = b.let(operation('mod', [groups, constant(count)], 'i32'), 'left');
  const whole = b.let(operation('sub', [end, left], 'i32'), 'whole_end');
  return (visit) => {
    b.for('quad', first, whole, count, (quad) =>
      visit(Array.from({ length: count }, (_, i) => b.let(addInts(quad, constant(i)), 'quad'))),
    );
    b.for('quad', whole, end, 1, (quad) => visit([quad]));
  };
}

/** Positions along an axis, and whether they are inside it. */
export type AxisSpan = readonly { readonly index: Value; readonly inside: Value }[];

/** Whether anything of a tile is needed that begins at a row and a group of four columns of a batch. */
export function tileNeeded(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  group: Value,
  row: Value,
  quad: Value,
): Value {
  const { batch, m, n } = body;
  const within = (first: Value, needed: Value | undefined): Value =>
    needed === undefined ? constant(1, 'bool') : less(first, needed);
  const lowering = (): Lowering =>
    new Lowering(
      b,
      frame.kernel.pool,
      { substitution: new Map(), atoms: new Map([[batch.atom, group]]) },
      bufferName(frame),
    );
  const inRows = within(row, neededOf(b, frame, m));
  const inColumns = within(mulInts(quad, constant(4)), neededOf(b, frame, n));
  const all = both(both(inRows, inColumns), pointNeeded(b, frame, batch, lowering));
  return all.kind === 'constant' ? all : b.let(all, 'is_needed');
}

/**
 * `count` positions that start at `first`; those past the end of the axis repeat the last one and
 * are not stored.
 */
export function span(
  b: LoopBuilder,
  first: Value,
  count: number,
  extent: number,
  exact: boolean,
  hint: string,
): { index: Value; inside: Value }[] {
  return Array.from({ length: count }, (_, i) => {
    const place = b.let(addInts(first, constant(i)), hint);
    if (exact) return { index: place, inside: constant(1, 'bool') };
    return {
      index: b.let(operation('min', [place, constant(extent - 1)], 'i32'), hint),
      inside: less(place, constant(extent)),
    };
  });
}

/** Where a value is asked for. Absent axes do not occur in it. */
export interface TilePoint {
  readonly row?: Value;
  /** n as a vector, n = 4·quad + lane, or one column. */
  readonly quad?: Value;
  readonly column?: Value;
  /** k, or four neighbouring steps of it: k = 4·stepQuad + lane. */
  readonly step?: Value;
  readonly stepQuad?: Value;
  /** What has been computed of the row. */
  readonly results?: ReadonlyMap<Node, Value> | undefined;
}

/** Evaluates operands and epilogues at points of a tile. */
export class TileLowering {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly #quad: IndexExpr;
  readonly #stepQuad: IndexExpr;

  constructor(b: LoopBuilder, frame: Frame, body: Contract, group: Value) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = group;
    this.#quad = quadIndex('quad', body.n.extent);
    this.#stepQuad = quadIndex('kquad', body.k.extent);
  }

  at({ row, quad, column, step, stepQuad, results }: TilePoint): Lowering {
    const { batch, m, n, k } = this.#body;
    const atoms = new Map<IndexExpr, Value>([[batch.atom, this.#group]]);
    const substitution = new Map<IndexExpr, IndexExpr>();
    if (row !== undefined) atoms.set(m.atom, row);
    if (column !== undefined) atoms.set(n.atom, column);
    if (step !== undefined) atoms.set(k.atom, step);
    const spread = (axis: IndexExpr, by: IndexExpr, value: Value): void => {
      atoms.set(by, value);
      substitution.set(axis, addIndex(scaleIndex(by, 4), laneAtom));
    };
    if (quad !== undefined) spread(n.atom, this.#quad, quad);
    if (stepQuad !== undefined) spread(k.atom, this.#stepQuad, stepQuad);
    const binding = { substitution, atoms };
    const lowering = new Lowering(this.#b, this.#frame.kernel.pool, binding, bufferName(this.#frame));
    for (const [node, value] of results ?? []) lowering.results.set(node, value);
    return lowering;
  }

  /**
   * The epilogue for one row and quad: every write of the kernel with the finished sum as its
   * result, and those of the siblings as theirs. `isFull`: no lane of the quad lies past the end of the axis.
   */
  write(row: Value, quad: Value, sum: Value, others: readonly Value[] = [], isFull = false): void {
    const { kernel } = this.#frame;
    this.store(this.summed(row, quad, sum, others), kernel.writes, this.#body.n, isFull);
  }

  /** One row and quad, with the finished sum and those of the siblings as results. */
  summed(row: Value, quad: Value, sum: Value, others: readonly Value[] = []): Lowering {
    const { node, siblings = [] } = this.#body;
    const lowering = this.at({ row, quad });
    const keep = (product: Node, value: Value): void => {
      lowering.results.set(product, this.#b.let(rounded(value, product.dtype), 'result'));
    };
    keep(node, sum);
    siblings.forEach((sibling, i) => keep(sibling.node as Node, others[i]!));
    return lowering;
  }

  /** Writes what is computed at a point; `lanes`: the axis that its quad runs along, and whether all of its lanes lie in it. */
  store(lowering: Lowering, writes: readonly Write[], lanes: Axis | undefined, isFull = false): void {
    const values = writes.map((write) => lowering.value(write.value));
    writes.forEach((write, i) => {
      const buffer = bufferName(this.#frame)(write.node);
      storeAt(this.#b, lowering, buffer, write, values[i]!, lanes, {
        unaligned: packsOperands(this.#frame.target),
        anywhere: isFull,
      });
    });
  }
}

/** Four elements of workgroup memory from an index that is a multiple of four. */
export function sharedQuad(buffer: string, index: Value, sum: Value): Value {
  return { kind: 'load', buffer, index, aligned: true, type: sum.type, width: 4 };
}
