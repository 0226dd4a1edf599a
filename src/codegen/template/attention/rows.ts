// The rows of an attention kernel on a GPU: which batch, which row and which part of the row an
// invocation has, expressions evaluated there, the walk over the keys, and the exchange between the
// invocations of a row.

import type { Node } from '../../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Monoid } from '../../../ir/ops.ts';
import { maskOf } from '../../../schedule/fusion/key-range.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Body, RowProduct, RowStage } from '../../../schedule/kernel.ts';
import {
  addInts,
  both,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../loop/builder.ts';
import type { LoweringOptions } from '../../expression/binding.ts';
import { laneAtom, Lowering, quadIndex } from '../../expression/lowering.ts';
import type { LoopBuffer, Value, Width } from '../../loop/loop.ts';
import {
  bufferName,
  foldGrid,
  groupNumber,
  inGroups,
  openBuilder,
  type Frame,
  type Grid,
} from '../shared/frame.ts';
import { fewParts, type Feed, type KeyBlock, type Seats } from './seats.ts';
import { filledSubgroup, Join, joinNames } from '../shared/join.ts';
import { combine, combineLanes } from '../shared/monoid.ts';
import { neededOf, pointNeeded } from '../shared/needed.ts';
import { powerOfTwo } from '../row-reduction/softmax.ts';

export type Attention = Extract<Body, { kind: 'attention' }>;

export class AttentionRows {
  readonly b: LoopBuilder;
  readonly frame: Frame;
  readonly body: Attention;
  readonly parts: number;
  readonly part: Value;
  /** Invocations among which columns are dealt; how many invocations have the same columns. */
  readonly columnParts: number;
  readonly keyGroups: number;
  /** Lanes of what is known of the row while keys are walked over. */
  readonly rowWidth: Width = 1;
  readonly grid: Grid;
  readonly workgroup: readonly [number, number, number];
  feed: Feed | undefined;
  /** What is known of the row so far, by node. */
  readonly results: Map<Node, Value> = new Map();
  /** The quad of keys that lanes run along. */
  readonly keyQuad: IndexExpr;
  /** Whether this invocation's row exists. */
  inside: Value = constant(1, 'bool');
  protected readonly seats: Seats;
  /** Combines values of many invocations. */
  readonly #join: Join;
  #batch: Value = constant(0);
  #row: Value = constant(0);
  /** First and last row of the workgroup, or of the invocation where rows are its own. */
  #span: readonly [Value, Value] = [constant(0), constant(0)];

  readonly #options: LoweringOptions;

  /** `shared` names the workgroup memory of the kernel. */
  constructor(frame: Frame, body: Attention, seats: Seats, shared: readonly string[]) {
    this.frame = frame;
    this.body = body;
    this.parts = seats.parts;
    this.part = seats.part;
    this.columnParts = seats.columnParts ?? seats.parts;
    this.keyGroups = seats.parts / this.columnParts;
    this.workgroup = seats.workgroup;
    this.seats = seats;
    this.grid = foldGrid(body.batch.extent * Math.ceil(body.row.extent / seats.rows), frame.target);
    this.keyQuad = quadIndex('key_quad', body.key.extent);
    this.b = openBuilder(frame, [...shared, ...joinNames]);
    this.#options = { instead: (expr, value) => this.instead(expr, value) };
    const { parts, rows, part, place } = seats;
    // Invocations that meet have barriers between them, which readers of other memory count on.
    const filled = rows === 1 ? filledSubgroup(frame.target, body) : undefined;
    const subgroup = filled !== undefined && filled < parts ? filled : undefined;
    this.#join = new Join(this.b, {
      parts,
      rows,
      part,
      place,
      together: true,
      width: 1,
      atOnce: 1,
      subgroup,
    });
  }

  get batch(): Value {
    return this.#batch;
  }

  /** First row of the workgroup. */
  get firstRow(): Value {
    return this.#span[0];
  }

  /** Last row of the workgroup. */
  get lastRow(): Value {
    return this.#span[1];
  }

  /** Which of the shares of columns this invocation has. */
  get columnPart(): Value {
    const { columnParts, keyGroups, part } = this;
    return keyGroups === 1 ? part : operation('mod', [part, constant(columnParts)], 'i32');
  }

  /** Which of the invocations with the same columns this is. */
  get keyGroup(): Value {
    const { columnParts, keyGroups, part } = this;
    return keyGroups === 1 ? constant(0) : operation('div', [part, constant(columnParts)], 'i32');
  }

  /** Workgroup memory that values of many invocations were combined in. */
  get joined(): readonly LoopBuffer[] {
    return this.#join.buffers;
  }

  /** Quads of keys in a block. */
  get blockQuads(): number {
    return this.seats.quads * this.parts;
  }

  /**
   * Runs `body` at this invocation's row. Rows past the end repeat the last: all of a workgroup
   * must reach the barriers.
   */
  begin(body: (first: Value) => void): void {
    const { b } = this;
    const { batch, row } = this.body;
    const { rows } = this.seats;
    const tiles = Math.ceil(row.extent / rows);
    const group = b.let(groupNumber(this.grid), 'group');
    const inOrder = operation('mod', [group, constant(tiles)], 'i32');
    const tile = tiles === 1 ? constant(0) : b.let(this.tileOf(inOrder), 'tile');
    const first = b.let(mulInts(tile, constant(rows)), 'first_row');
    const place = b.let(addInts(first, this.seats.place), 'row');
    const image =
      batch.extent === 1 ? constant(0) : b.let(operation('div', [group, constant(tiles)], 'i32'), 'batch');
    const exact = this.grid[0] * this.grid[1] === batch.extent * tiles;
    this.#batch = exact
      ? image
      : b.let(operation('min', [image, constant(batch.extent - 1)], 'i32'), 'batch');
    const needed = this.#neededFrom(first);
    const valid = both(
      exact ? constant(1, 'bool') : less(image, constant(batch.extent)),
      row.extent % rows === 0 ? constant(1, 'bool') : less(place, constant(row.extent)),
    );
    const last = (at: Value): Value =>
      row.extent % rows === 0 ? at : b.let(operation('min', [at, constant(row.extent - 1)], 'i32'), 'row');
    if (this.parts === 1) {
      this.#row = place;
      this.#span = [place, place];
      b.if(both(valid, needed), () => body(first));
      return;
    }
    this.#row = last(place);
    this.#span = [first, last(b.let(addInts(first, constant(rows - 1)), 'last_row'))];
    this.inside = b.let(valid, 'inside');
    b.if(needed, () => body(first));
  }

  /** Which rows the workgroup at this place of its batch has. */
  protected tileOf(inOrder: Value): Value {
    return inOrder;
  }

  /** Whether any row of the workgroup is needed, which begins at `first`. */
  #neededFrom(first: Value): Value {
    const { b, frame } = this;
    const { batch, row } = this.body;
    const rows = neededOf(b, frame, row);
    const within = rows === undefined ? constant(1, 'bool') : less(first, rows);
    return both(
      within,
      pointNeeded(b, frame, batch, () => this.lowering([])),
    );
  }

  /** Moves to another row of the workgroup, where an invocation has several. */
  stand(row: Value): void {
    this.#row = row;
  }

  /** The quads of keys from the first to behind the last that any of these rows looks at. */
  bounds(first: Value, last: Value): [Value, Value] {
    this.#span = [first, last];
    return this.#bounds(Math.ceil(this.body.key.extent / 4));
  }

  /** Which lanes of a quad hold a key; undefined where all do. */
  insideKey(quad: Value): Value | undefined {
    return this.body.key.extent % 4 === 0 ? undefined : this.#lanesInside(quad);
  }

  /** Evaluation at this row with further axes bound. */
  lowering(
    atoms: readonly (readonly [IndexExpr, Value])[],
    substitution: readonly (readonly [IndexExpr, IndexExpr])[] = [],
    certain: ReadonlySet<Expr> = new Set(),
  ): Lowering {
    const { batch, row } = this.body;
    const binding = {
      atoms: new Map<IndexExpr, Value>([[batch.atom, this.#batch], [row.atom, this.#row], ...atoms]),
      substitution: new Map(substitution),
    };
    const lowering = new Lowering(this.b, this.frame.kernel.pool, binding, bufferName(this.frame), {
      ...this.#options,
      certain,
    });
    for (const [node, value] of this.results) lowering.results.set(node, value);
    return lowering;
  }

  /** Evaluation at this row and the four keys of a quad. */
  atKeys(quad: Value): Lowering {
    return this.lowering(
      [[this.keyQuad, quad]],
      [[this.body.key.atom, addIndex(scaleIndex(this.keyQuad, 4), laneAtom)]],
    );
  }

  /** The key at one lane of a quad; past the end it is the last. */
  keyAt(quad: Value, lane: Value): { readonly key: Value; readonly inside: Value } {
    const { extent } = this.body.key;
    const asked = this.b.let(addInts(mulInts(quad, constant(4)), lane), 'key');
    if (extent % 4 === 0) return { key: asked, inside: constant(1, 'bool') };
    const key = this.b.let(operation('min', [asked, constant(extent - 1)], 'i32'), 'key');
    return { key, inside: less(asked, constant(extent)) };
  }

  /** The quads of keys from the first to behind the last that count for any of the workgroup's rows. */
  keySpan(): readonly [start: Value, end: Value] {
    return this.#bounds(Math.ceil(this.body.key.extent / 4));
  }

  /** Walks over blocks of keys that count for the workgroup's rows. */
  overKeys(body: (block: KeyBlock) => void): void {
    const { b, blockQuads, feed } = this;
    const [start, end] = this.keySpan();
    feed?.open(start, end);
    b.for('block', start, end, blockQuads, (first) => {
      feed?.each(first, end);
      body({ first, quads: this.quadsOf(first) });
    });
  }

  /** This invocation's quads of the block that begins with the quad `first`. */
  protected quadsOf(first: Value): KeyBlock['quads'] {
    const { b, parts, blockQuads, part } = this;
    const quads = Math.ceil(this.body.key.extent / 4);
    return Array.from({ length: this.seats.quads }, (_, i) => {
      const asked = b.let(addInts(first, addInts(part, constant(i * parts))), 'quad');
      const quad =
        quads % blockQuads === 0
          ? asked
          : b.let(operation('min', [asked, constant(quads - 1)], 'i32'), 'quad');
      return { quad, inside: this.#inside(asked) };
    });
  }

  /** Which lanes of a quad hold a key; undefined where all do. */
  #inside(quad: Value): Value | undefined {
    return this.body.key.extent % (4 * this.blockQuads) === 0 ? undefined : this.#lanesInside(quad);
  }

  #lanesInside(quad: Value): Value {
    const { extent } = this.body.key;
    const args = [0, 1, 2, 3].map((lane) => constant(lane));
    const key = addInts(mulInts(quad, constant(4)), { kind: 'vector', args, type: 'i32', width: 4 });
    return this.b.let(operation('lt', [key, constant(extent)], 'bool'), 'inside_key');
  }

  /** The quads of keys from the first to behind the last that any row of the workgroup looks at. */
  #bounds(quads: number): [Value, Value] {
    const { b, blockQuads } = this;
    const { range } = this.body;
    const quadOf = (row: Value, offset: number): Value =>
      operation(
        'div',
        [operation('max', [addInts(row, constant(offset)), constant(0)], 'i32'), constant(4)],
        'i32',
      );
    let [start, end]: [Value, Value] = [constant(0), constant(quads)];
    if (range.first !== undefined) {
      const block = operation('div', [quadOf(this.#span[0], range.first), constant(blockQuads)], 'i32');
      start = b.let(mulInts(block, constant(blockQuads)), 'first_quad');
    }
    if (range.last !== undefined) {
      const behind = addInts(quadOf(this.#span[1], range.last), constant(1));
      end = b.let(operation('min', [behind, constant(quads)], 'i32'), 'end_quad');
    }
    if (range.end !== undefined) {
      const counting = inGroups(b, this.#endOf(range.end), 4, quads, 'end_quad');
      end = b.let(operation('min', [counting, end], 'i32'), 'end_quad');
    }
    return [start, end];
  }

  /** How many keys count for any row of the span. */
  #endOf(end: Expr): Value {
    const own = this.#row;
    const [first, last] = this.#span.map((row) => {
      this.#row = row;
      return this.lowering([]).value(end);
    }) as [Value, Value];
    this.#row = own;
    // What does not decrease from row to row may still wrap around between them, beyond all keys.
    return first === last ? first : operation('max', [first, last], 'i32');
  }

  /**
   * What a maximum begins with: the score of the row's keys that are not visited, −∞ if all are.
   */
  unvisited({ value }: RowStage): Value {
    const { key, range } = this.body;
    const score = maskOf(value) ?? -Infinity;
    const cuts: Value[] = [];
    const row = this.sweptRow;
    if (range.first !== undefined) cuts.push(less(constant(-range.first), row));
    if (range.last !== undefined) cuts.push(less(row, constant(key.extent - 1 - range.last)));
    if (score === -Infinity || cuts.length === 0) return constant(-Infinity, 'f32');
    const some = cuts.reduce((a, b) => operation('or', [a, b], 'bool'));
    return operation('where', [some, constant(score, 'f32'), constant(-Infinity, 'f32')], 'f32');
  }

  /**
   * Combines a value over the invocations of a row, in order; all get the result. `meet` must
   * follow.
   */
  exchange(own: Value, monoid: Monoid): Value {
    const { b, parts } = this;
    const { place } = this.seats;
    if (parts === 1) return own;
    if (parts > fewParts) return this.#join.all([{ monoid, value: own }])[0]!;
    const slot = (part: Value): Value => b.let(addInts(mulInts(place, constant(parts)), part), 'slot');
    b.store('partial', slot(this.part), own, true);
    b.barrier();
    const one = (part: number): Value => {
      const index = slot(constant(part));
      return b.let(
        { kind: 'load', buffer: 'partial', index, aligned: true, type: 'f32', width: 1 },
        'partial',
      );
    };
    let total = one(0);
    for (let part = 1; part < parts; part++) total = combine(monoid, total, one(part));
    return b.let(total, monoid);
  }

  /** A product of rows for this invocation's, at every invocation of the row. `meet` must follow. */
  product(product: RowProduct): Value {
    const { b, parts, part } = this;
    const { depth } = product;
    const sum = b.var('product', constant(0, 'f32', 4));
    const steps = constant(Math.ceil(depth.extent / 4));
    b.for('d', part, steps, parts, (d) => this.addProduct(product, d, [], sum));
    return b.let(this.exchange(combineLanes(b, 'sum', sum, 'product'), 'sum'), 'row_product');
  }

  /** Adds four steps of the depth to four lanes of a sum, at a row that `at` may say. */
  protected addProduct(
    { depth, lhs, rhs }: RowProduct,
    quad: Value,
    at: readonly (readonly [IndexExpr, Value])[],
    sum: Value,
  ): void {
    const { b } = this;
    const step = quadIndex('depth_quad', depth.extent);
    const add = (lowering: Lowering, four: (value: Value) => Value): void => {
      const factors = [lhs, rhs].map((side) => four(lowering.value(side)));
      b.assign(sum, operation('fma', [...factors, sum], 'f32'));
    };
    if (depth.extent % 4 === 0) {
      const along: [IndexExpr, IndexExpr] = [depth.atom, addIndex(scaleIndex(step, 4), laneAtom)];
      add(this.lowering([...at, [step, quad]], [along]), (value) => splat(value, 4));
      return;
    }
    for (const lane of [0, 1, 2, 3]) {
      const place = b.let(addInts(mulInts(quad, constant(4)), constant(lane)), 'depth');
      b.if(less(place, constant(depth.extent)), () =>
        add(this.lowering([...at, [depth.atom, place]]), (value) => {
          const args = [0, 1, 2, 3].map((other) => (other === lane ? value : constant(0, 'f32')));
          return { kind: 'vector', args, type: 'f32', width: 4 };
        }),
      );
    }
  }

  /** A value of this invocation's four keys combined over all keys of the row, at every invocation. `meet` must follow. */
  total(own: Value, monoid: Monoid, hint: string): Value {
    return this.exchange(combineLanes(this.b, monoid, own, hint), monoid);
  }

  /** The row, as wide as what is known of it while keys are walked over. */
  protected get sweptRow(): Value {
    return this.#row;
  }

  /** Of such a value, that of the row which this invocation writes. */
  own(value: Value): Value {
    return value;
  }

  /** Ends the use of what was exchanged through workgroup memory. */
  meet(): void {
    if (this.parts > 1) this.b.barrier();
  }

  /** Where the weights of a part's four keys stand in workgroup memory. */
  weightSlot(part: Value): Value {
    const { b, parts } = this;
    const slot = addInts(mulInts(this.seats.place, constant(parts)), part);
    return b.let(mulInts(slot, constant(4)), 'slot');
  }

  /** exp(x − max), whose error may grow with the exponent, by a power of two. */
  protected instead(expr: Expr, value: (arg: Expr) => Value): Value | undefined {
    if (expr.kind !== 'op' || expr.op !== 'exp' || expr.dtype !== 'f32') return undefined;
    const [power] = expr.args as readonly [Expr];
    const shift = power.kind === 'op' && power.op === 'sub' ? power.args[1] : undefined;
    const isShifted = shift?.kind === 'result' && shift.node === this.body.online?.max.node;
    return isShifted ? powerOfTwo(this.b, value(power)) : undefined;
  }

  /** A sum by a factor or a divisor of the row. */
  scaled(sum: Value, op: 'mul' | 'div', _: Expr, by: Value): Value {
    return operation(op, [sum, by], 'f32');
  }

  /** By what sums shrink when the maximum grows: e^(max − next). */
  shrinking(max: Value, next: Value): Value {
    return powerOfTwo(this.b, this.b.let(operation('sub', [max, next], 'f32'), 'fall'));
  }
}
