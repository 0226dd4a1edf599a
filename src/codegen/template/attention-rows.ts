// Where an invocation of an attention kernel stands: its batch, its row, its part of the row. Evaluation at that place, the walk
// over the keys, and what the invocations of a row exchange.

import type { Node } from '../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import type { Monoid } from '../../ir/ops.ts';
import { maskOf } from '../../schedule/key-range.ts';
import type { Body, RowStage } from '../../schedule/kernel.ts';
import type { Target } from '../../schedule/target.ts';
import { addInts, both, builtin, constant, less, mulInts, operation, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { LoopBuffer, Value } from '../loop.ts';
import { bufferName, foldGrid, groupNumber, openBuilder, type Frame, type Grid } from './frame.ts';
import { combine } from './monoid.ts';

export type Attention = Extract<Body, { kind: 'attention' }>;

/** How rows are spread over invocations. */
export interface AttentionSchedule {
  /** Rows a workgroup handles. */
  readonly rows: number;
  /** Invocations that share a row; a power of two. */
  readonly parts: number;
}

/** The heuristic choice of schedule. */
export function attentionSchedule(body: Attention, target: Target): AttentionSchedule {
  if (!target.cooperative) return { rows: Math.min(8, target.workgroupSize), parts: 1 };
  const columns = Math.max(...body.outers.map(({ column }) => column.extent));
  const rows = body.batch.extent * body.row.extent;
  // Enough invocations to fill the machine, none of them idle: neither over the keys nor over the columns.
  const most = Math.min(Math.ceil(columns / 4), Math.ceil(body.key.extent / 4), 8);
  let parts = 1;
  while (parts < 4 && parts * 2 <= most) parts *= 2;
  while (parts * 2 <= most && rows * parts < target.parallelism) parts *= 2;
  return { rows: Math.max(1, Math.min(128 / parts, body.row.extent)), parts };
}

export class AttentionRows {
  readonly b: LoopBuilder;
  readonly frame: Frame;
  readonly body: Attention;
  readonly parts: number;
  readonly part: Value;
  readonly grid: Grid;
  readonly shared: readonly LoopBuffer[];
  /** What is known of the row so far, by node. */
  readonly results: Map<Node, Value> = new Map();
  /** The quad of keys that lanes run along. */
  readonly keyQuad: IndexExpr;
  /** Whether this invocation's row exists. */
  inside: Value = constant(1, 'bool');
  readonly #rows: number;
  readonly #place: Value;
  #batch: Value = constant(0);
  #row: Value = constant(0);
  /** First and last row of the workgroup, or of the invocation where rows are its own. */
  #span: readonly [Value, Value] = [constant(0), constant(0)];

  constructor(frame: Frame, body: Attention, { rows, parts }: AttentionSchedule) {
    this.frame = frame;
    this.body = body;
    this.parts = parts;
    this.#rows = rows;
    this.grid = foldGrid(body.batch.extent * Math.ceil(body.row.extent / rows), frame.target);
    this.part = parts === 1 ? constant(0) : builtin('local', 0);
    this.#place = rows === 1 ? constant(0) : builtin('local', parts === 1 ? 0 : 1);
    this.keyQuad = quadIndex('key_quad', body.key.extent);
    const share = (name: string, each: number): LoopBuffer => {
      return { name, space: 'workgroup', dtype: 'f32', size: rows * parts * each, access: 'read_write' };
    };
    this.shared =
      parts === 1
        ? []
        : [
            ...(body.stages.length > 0 ? [share('partial', 1)] : []),
            ...body.outers.map((_, i) => share(`weights_${i}`, 4)),
          ];
    this.b = openBuilder(
      frame,
      this.shared.map(({ name }) => name),
    );
  }

  get workgroup(): readonly [number, number, number] {
    return this.parts === 1 ? [this.#rows, 1, 1] : [this.parts, this.#rows, 1];
  }

  /** Runs `body` at this invocation's row. Rows past the end repeat the last: all of a workgroup must reach the barriers. */
  begin(body: () => void): void {
    const { b } = this;
    const { batch, row } = this.body;
    const rows = this.#rows;
    const tiles = Math.ceil(row.extent / rows);
    const group = b.let(groupNumber(this.grid), 'group');
    const tile = tiles === 1 ? constant(0) : b.let(operation('mod', [group, constant(tiles)], 'i32'), 'tile');
    const first = b.let(mulInts(tile, constant(rows)), 'first_row');
    const place = b.let(addInts(first, this.#place), 'row');
    const image =
      batch.extent === 1 ? constant(0) : b.let(operation('div', [group, constant(tiles)], 'i32'), 'batch');
    const exact = this.grid[0] * this.grid[1] === batch.extent * tiles;
    this.#batch = exact
      ? image
      : b.let(operation('min', [image, constant(batch.extent - 1)], 'i32'), 'batch');
    const valid = both(
      exact ? constant(1, 'bool') : less(image, constant(batch.extent)),
      row.extent % rows === 0 ? constant(1, 'bool') : less(place, constant(row.extent)),
    );
    const last = (at: Value): Value =>
      row.extent % rows === 0 ? at : b.let(operation('min', [at, constant(row.extent - 1)], 'i32'), 'row');
    if (this.parts === 1) {
      this.#row = place;
      this.#span = [place, place];
      b.if(valid, body);
      return;
    }
    this.#row = last(place);
    this.#span = [first, last(b.let(addInts(first, constant(rows - 1)), 'last_row'))];
    this.inside = b.let(valid, 'inside');
    body();
  }

  /** Evaluation at this row with further axes bound. */
  lowering(
    atoms: readonly (readonly [IndexExpr, Value])[],
    substitution: readonly (readonly [IndexExpr, IndexExpr])[] = [],
  ): Lowering {
    const { batch, row } = this.body;
    const binding = {
      atoms: new Map<IndexExpr, Value>([[batch.atom, this.#batch], [row.atom, this.#row], ...atoms]),
      substitution: new Map(substitution),
    };
    const lowering = new Lowering(this.b, this.frame.kernel.pool, binding, bufferName(this.frame));
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

  /**
   * Walks over blocks of keys that count for the workgroup's rows. `body` gets the block's first quad, this invocation's own,
   * and which of its lanes hold a key (undefined: all).
   */
  overKeys(body: (first: Value, quad: Value, inside: Value | undefined) => void): void {
    const { b, parts } = this;
    const { extent } = this.body.key;
    const quads = Math.ceil(extent / 4);
    const [start, end] = this.#bounds(quads);
    b.for('block', start, end, parts, (first) => {
      const asked = b.let(addInts(first, this.part), 'quad');
      const quad =
        quads % parts === 0 ? asked : b.let(operation('min', [asked, constant(quads - 1)], 'i32'), 'quad');
      let inside: Value | undefined;
      if (extent % (4 * parts) !== 0) {
        const args = [0, 1, 2, 3].map((lane) => constant(lane));
        const key = addInts(mulInts(asked, constant(4)), { kind: 'vector', args, type: 'i32', width: 4 });
        inside = b.let(operation('lt', [key, constant(extent)], 'bool'), 'inside_key');
      }
      body(first, quad, inside);
    });
  }

  /** The quads of keys from the first to behind the last that any row of the workgroup looks at. */
  #bounds(quads: number): [Value, Value] {
    const { b, parts } = this;
    const { range } = this.body;
    const quadOf = (row: Value, offset: number): Value =>
      operation(
        'div',
        [operation('max', [addInts(row, constant(offset)), constant(0)], 'i32'), constant(4)],
        'i32',
      );
    let [start, end]: [Value, Value] = [constant(0), constant(quads)];
    if (range.first !== undefined) {
      const block = operation('div', [quadOf(this.#span[0], range.first), constant(parts)], 'i32');
      start = b.let(mulInts(block, constant(parts)), 'first_quad');
    }
    if (range.last !== undefined) {
      const behind = addInts(quadOf(this.#span[1], range.last), constant(1));
      end = b.let(operation('min', [behind, constant(quads)], 'i32'), 'end_quad');
    }
    return [start, end];
  }

  /** What a maximum begins with: the score of the row's keys that are not visited, −∞ if all are. */
  unvisited({ value }: RowStage): Value {
    const { key, range } = this.body;
    const score = maskOf(value) ?? -Infinity;
    const cuts: Value[] = [];
    const row = this.#row;
    if (range.first !== undefined) cuts.push(less(constant(-range.first), row));
    if (range.last !== undefined) cuts.push(less(row, constant(key.extent - 1 - range.last)));
    if (score === -Infinity || cuts.length === 0) return constant(-Infinity, 'f32');
    const some = cuts.reduce((a, b) => operation('or', [a, b], 'bool'));
    return operation('where', [some, constant(score, 'f32'), constant(-Infinity, 'f32')], 'f32');
  }

  /** Combines a value over the invocations of a row, in order; all get the result. Another barrier must follow. */
  exchange(own: Value, monoid: Monoid): Value {
    const { b, parts } = this;
    if (parts === 1) return own;
    const slot = (part: Value): Value => b.let(addInts(mulInts(this.#place, constant(parts)), part), 'slot');
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

  /** Where the weights of a part's four keys stand in workgroup memory. */
  weightSlot(part: Value): Value {
    const { b, parts } = this;
    const slot = addInts(mulInts(this.#place, constant(parts)), part);
    return b.let(mulInts(slot, constant(4)), 'slot');
  }
}
