// What the templates of matrix algorithms share: a result that is updated in place, rows and columns that the
// invocations of a workgroup divide among them, and steps that wait for each other. Where one core runs all
// invocations, a matrix has one invocation, which goes along rows by vectors.

import type { Node } from '../../../ir/graph.ts';
import { dims } from '../../../ir/graph.ts';
import { addIndex, axisIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Body, MatrixOperand } from '../../../schedule/kernel.ts';
import { sharesWork } from '../../../schedule/machine.ts';
import {
  addInts,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../loop/builder.ts';
import type { Loop, LoopBuffer, RegisterType, Value, Width } from '../../loop/loop.ts';
import { laneAtom, Lowering, registerOf } from '../../expression/lowering.ts';
import { divideInts } from '../../loop/integers.ts';
import {
  bufferName,
  finish,
  foldGrid,
  groupNumber,
  openBuilder,
  type Frame,
  type Grid,
} from '../shared/frame.ts';

export type FactorBody = Extract<Body, { kind: 'factor' }>;

/** Invocations that share a matrix at most. */
const mostShared = 256;

export class Panel {
  readonly b: LoopBuilder;
  readonly type: RegisterType;
  /** Invocations that share a matrix. */
  readonly team: number;
  /** Elements of one step along a row. */
  readonly width: Width;
  readonly rows: number;
  readonly columns: number;
  readonly #frame: Frame;
  readonly #body: FactorBody;
  readonly #out: string;
  readonly #grid: Grid;
  readonly #batch: Value;
  readonly #base: Value;
  readonly #item: Value;
  readonly #shared: readonly LoopBuffer[];
  /** Which of the parts of its matrix a workgroup works on. */
  readonly part: Value;

  /**
   * `parallel`: how many of a step's units of work may be done side by side. `memory`: elements that a
   * workgroup of one invocation keeps, by name. `parts`: workgroups that a matrix is divided among.
   */
  constructor(
    frame: Frame,
    body: FactorBody,
    parallel: number,
    {
      memory = {},
      parts = 1,
    }: { readonly memory?: Readonly<Record<string, number>>; readonly parts?: number } = {},
  ) {
    const [, rows, columns] = dims(body.node as Node) as [number, number, number];
    const { target } = frame;
    const most = Math.min(mostShared, target.limits.workgroupInvocations);
    this.type = registerOf(body.node.dtype);
    this.team = sharesWork(target) ? Math.min(most, 2 ** Math.ceil(Math.log2(Math.max(1, parallel)))) : 1;
    this.width = this.team === 1 ? 4 : 1;
    const shared = (name: string, dtype: LoopBuffer['dtype'], size: number): LoopBuffer => ({
      name,
      space: 'workgroup',
      dtype,
      size,
      access: 'read_write',
    });
    this.#shared =
      this.team === 1
        ? Object.entries(memory).map(([name, size]) => shared(name, body.node.dtype, size))
        : [shared('parts', body.node.dtype, this.team), shared('places', 'i32', this.team)];
    this.b = openBuilder(
      frame,
      this.#shared.map(({ name }) => name),
    );
    [this.#frame, this.#body, this.rows, this.columns] = [frame, body, rows, columns];
    this.#out = bufferName(frame)(body.node as Node);
    const groups = body.batch.extent * parts;
    this.#grid = foldGrid(groups, target);
    this.#item = builtin('local', 0);
    const number = groupNumber(this.#grid);
    // Workgroups past the last one repeat it: they write what is there already.
    const exact = this.#grid[0] * this.#grid[1] === groups;
    const group = this.b.let(
      exact ? number : operation('min', [number, constant(groups - 1)], 'i32'),
      parts === 1 ? 'matrix' : 'group',
    );
    [this.#batch, this.part] =
      parts === 1 ? [group, constant(0)] : divideInts(this.b, group, parts, ['matrix', 'part']);
    this.#base = this.b.let(mulInts(this.#batch, constant(rows * columns)), 'base');
  }

  /** The finished Loop. */
  loop(schedule: string): Loop {
    const { batch } = this.#body;
    const note = `${batch.extent} matrices, ${this.team} invocation(s) each; ${schedule}`;
    return finish(this.#frame, this.b, this.#grid, [this.team, 1, 1], note, this.#shared);
  }

  /** A number of the matrices' dtype. */
  number(value: number): Value {
    return constant(value, this.type);
  }

  #place(row: Value, column: Value): Value {
    const line = this.b.let(addInts(this.#base, mulInts(row, constant(this.columns))), 'row');
    return addInts(line, column);
  }

  /** Elements of the result from (row, column) on. */
  at(row: Value, column: Value, width: Width = 1): Value {
    const index = this.b.let(this.#place(row, column), 'at');
    const load = { kind: 'load', buffer: this.#out, index, aligned: width === 1 } as const;
    return this.b.let({ ...load, type: this.type, width }, 'y');
  }

  /** Elements of the workgroup's own memory. */
  held(buffer: string, index: Value, width: Width = 1): Value {
    const at = this.b.let(index, 'held_at');
    const load = { kind: 'load', buffer, index: at, aligned: width === 1 } as const;
    return this.b.let({ ...load, type: this.type, width }, buffer);
  }

  keep(buffer: string, index: Value, value: Value): void {
    this.b.store(buffer, this.b.let(index, 'held_at'), value, true);
  }

  put(row: Value, column: Value, value: Value): void {
    this.b.store(this.#out, this.b.let(this.#place(row, column), 'at'), value, true);
  }

  /** Complex elements from (row, column) on: imaginary parts stand `offset` columns behind real ones. */
  pairAt(row: Value, column: Value, offset: number, width: Width = 1): readonly [re: Value, im: Value] {
    return [this.at(row, column, width), this.at(row, addInts(column, constant(offset)), width)];
  }

  putPair(row: Value, column: Value, offset: number, [re, im]: readonly [re: Value, im: Value]): void {
    this.put(row, column, re);
    this.put(row, addInts(column, constant(offset)), im);
  }

  /** Elements of an operand from (row, column) on. */
  operand(which: number, row: Value, column: Value, width: Width = 1): Value {
    const operand = this.#body.operands[which]!;
    return operandAt(this.b, this.#frame, this.#body, operand, this.#batch, row, column, width);
  }

  /** Numbers from `start` up to `end`, divided among the invocations. */
  each(hint: string, start: Value, end: Value, visit: (at: Value) => void): void {
    if (this.team === 1) this.b.for(hint, start, end, 1, visit);
    else this.b.for(hint, addInts(start, this.#item), end, this.team, visit);
  }

  /** Columns from `start` up to `end` in steps of whole vectors, then of single elements. */
  along(start: Value, end: Value, visit: (column: Value, width: Width) => void): void {
    along(this.b, this.width, start, end, visit);
  }

  /** Columns from `start` up to `end`, divided among the invocations, or in vectors of one. */
  across(start: Value, end: Value, visit: (column: Value, width: Width) => void): void {
    if (this.team > 1) this.each('c', start, end, (c) => visit(c, 1));
    else this.along(start, end, visit);
  }

  /** What one invocation does for all. */
  once(visit: () => void): void {
    if (this.team === 1) visit();
    else this.b.if(operation('eq', [this.#item, constant(0)], 'bool'), visit);
  }

  /** What was written before is seen by all after. */
  wait(): void {
    if (this.team > 1) this.b.barrier();
  }

  /** The sum, or the greatest, of what the invocations have; all wait for each other. */
  combined(op: 'add' | 'max', part: Value): Value {
    if (this.team === 1) return part;
    const { b } = this;
    const load = (i: Value): Value => ({
      kind: 'load',
      buffer: 'parts',
      index: i,
      aligned: true,
      type: this.type,
      width: 1,
    });
    b.store('parts', this.#item, part, true);
    b.barrier();
    const all = b.var('all', load(constant(0)));
    b.for('part', constant(1), constant(this.team), 1, (i) =>
      b.assign(all, operation(op, [all, load(i)], this.type)),
    );
    const result = b.let(all, 'combined');
    b.barrier();
    return result;
  }

  /** Where the greatest of what the invocations have found stands: the first of equal ones. */
  placeOfGreatest(found: Value, place: Value): Value {
    if (this.team === 1) return place;
    const { b } = this;
    const load = (buffer: string, i: Value, type: RegisterType): Value =>
      b.let({ kind: 'load', buffer, index: i, aligned: true, type, width: 1 }, buffer);
    b.store('parts', this.#item, found, true);
    b.store('places', this.#item, place, true);
    b.barrier();
    const best = b.var('best', load('parts', constant(0), this.type));
    const at = b.var('where', load('places', constant(0), 'i32'));
    b.for('part', constant(1), constant(this.team), 1, (i) => {
      const [value, here] = [load('parts', i, this.type), load('places', i, 'i32')];
      const level = operation('eq', [value, best], 'bool');
      const earlier = operation('and', [level, less(here, at)], 'bool');
      b.if(operation('or', [operation('lt', [best, value], 'bool'), earlier], 'bool'), () => {
        b.assign(best, value);
        b.assign(at, here);
      });
    });
    const result = b.let(at, 'place');
    b.barrier();
    return result;
  }

  /** The sum of a vector's lanes. */
  lanes(vector: Value): Value {
    return sumOfLanes(this.b, vector);
  }
}

/** Columns from `start` up to `end` in steps of whole vectors, then of single elements. */
export function along(
  b: LoopBuilder,
  width: Width,
  start: Value,
  end: Value,
  visit: (column: Value, width: Width) => void,
): void {
  if (width === 1) return b.for('c', start, end, 1, (c) => visit(c, 1));
  const count = operation('sub', [end, start], 'i32');
  const whole = operation('sub', [count, operation('and', [count, constant(width - 1)], 'i32')], 'i32');
  const split = b.let(operation('add', [start, whole], 'i32'), 'split');
  b.for('c', start, split, width, (c) => visit(c, width));
  b.for('c', split, end, 1, (c) => visit(c, 1));
}

/** Columns of a row that registers hold, where invocations run in turn. */
export const widest = 32;

/** The columns of a row as vectors, and single ones behind them; `places` are their numbers. */
export function piecesOf(
  columns: number,
): readonly { readonly start: number; readonly width: 1 | 4; readonly places: Value }[] {
  const vectors = Math.floor(columns / 4);
  return Array.from({ length: vectors + (columns % 4) }, (_, piece) => {
    const width = piece < vectors ? 4 : 1;
    const start = piece < vectors ? 4 * piece : 3 * vectors + piece;
    const numbers = [0, 1, 2, 3].map((lane) => constant(start + lane));
    const places: Value =
      width === 1 ? constant(start) : { kind: 'vector', args: numbers, type: 'i32', width: 4 };
    return { start, width, places };
  });
}

/** The sum of a vector's lanes. */
export function sumOfLanes(b: LoopBuilder, vector: Value): Value {
  if (vector.width === 1) return vector;
  const lane = (at: number): Value => ({ kind: 'lane', arg: vector, lane: at, type: vector.type, width: 1 });
  const pair = (x: Value, y: Value): Value => operation('add', [x, y], vector.type);
  return b.let(pair(pair(lane(0), lane(2)), pair(lane(1), lane(3))), 'sum');
}

/** Elements of an operand of a matrix algorithm from (row, column) on. */
export function operandAt(
  b: LoopBuilder,
  frame: Frame,
  body: FactorBody,
  { row, column, value }: MatrixOperand,
  batch: Value,
  i: Value,
  j: Value,
  width: Width,
): Value {
  const first = width === 1 ? column.atom : axisIndex('first', Math.max(1, column.extent - 3));
  const substitution = new Map<IndexExpr, IndexExpr>(
    width === 1 ? [] : [[column.atom, addIndex(first, laneAtom)]],
  );
  const atoms = new Map<IndexExpr, Value>([
    [body.batch.atom, batch],
    [row.atom, i],
    [first, j],
  ]);
  const lowering = new Lowering(b, frame.kernel.pool, { substitution, atoms }, bufferName(frame));
  return splat(lowering.value(value), width);
}
