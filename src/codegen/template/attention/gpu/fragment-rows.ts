// Rows of an attention kernel on matrix units. What lies between its two products is computed on the sums of
// a fragment where they are: of four values, two are those of neighbouring keys of one row, and two
// those of the same keys of the row 8 below. Four invocations share the two rows. When all keys are added, each
// writes for one of them.

import {
  addIndex,
  axisIndex,
  divIndex,
  modIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Monoid } from '../../../../ir/ops.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { RowProduct } from '../../../../schedule/kernel.ts';
import { laneAtom, type Lowering } from '../../../expression/lowering.ts';
import { addInts, builtin, constant, less, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import { laneOf } from '../../../loop/register.ts';
import { fragment, isOddLane } from '../../shared/fragment.ts';
import type { Frame } from '../../shared/frame.ts';
import { combine, combineLanes } from '../../shared/monoid.ts';
import { certainOf, isMaximum, isWeightSum, type Certain } from './masks.ts';
import { AttentionRows, type Attention } from '../rows.ts';
import type { KeyBlock, Seats } from '../seats.ts';

/** Rows from the upper one of an invocation to the lower one. */
const apart = fragment.m / 2;
/** Pairs of neighbouring columns in a row of a fragment. */
const pairsOfFragment = fragment.n / 2;

/** Seats of invocations whose place in their subgroup is `local.x` modulo 32. */
export interface FragmentSeats extends Seats {
  /** Which of the workgroup's rows is the upper one of this invocation. */
  readonly upper: Value;
}

/**
 * Where an invocation stands in its subgroup's 16 rows: an even one writes the upper of its two rows, an
 * odd one the lower, every other quad of columns.
 */
export function seatInFragment(): { readonly upper: Value; readonly place: Value; readonly part: Value } {
  const lane = builtin('local', 0);
  const ofRow = operation('mod', [lane, constant(4)], 'i32');
  const upper = operation('div', [operation('mod', [lane, constant(32)], 'i32'), constant(4)], 'i32');
  const below = mulInts(operation('mod', [lane, constant(2)], 'i32'), constant(apart));
  return { upper, place: addInts(upper, below), part: operation('div', [ofRow, constant(2)], 'i32') };
}

export class FragmentRows extends AttentionRows {
  override readonly rowWidth = 4;
  readonly #certain: Certain;
  readonly #upper: Value;
  readonly #upperAtom: IndexExpr;
  readonly #pairAtom: IndexExpr;
  /** Whether the conditions of `#certain` hold at all keys that are walked over now. */
  #isCertain = false;

  constructor(frame: Frame, body: Attention, seats: FragmentSeats, shared: readonly string[]) {
    super(frame, body, seats, shared);
    this.#upper = seats.upper;
    this.#certain = certainOf(body);
    const tiles = Math.ceil(body.row.extent / seats.rows);
    this.#upperAtom = axisIndex('upper_row', seats.rows * tiles - apart);
    this.#pairAtom = axisIndex('key_pair', Math.ceil(body.key.extent / 2));
  }

  get #upperRow(): Value {
    return this.b.let(addInts(this.firstRow, this.#upper), 'upper_row');
  }

  protected override get sweptRow(): Value {
    return this.b.let(addInts(this.#upperRow, numbers(0, 0, apart, apart)), 'rows');
  }

  /** Under a causal mask the last rows see most keys: they come first, so that what runs at the end is short. */
  protected override tileOf(inOrder: Value): Value {
    const { row, range } = this.body;
    if (range.last === undefined) return inOrder;
    const tiles = Math.ceil(row.extent / this.seats.rows);
    return operation('sub', [constant(tiles - 1), inOrder], 'i32');
  }

  /** Blocks whose conditions all hold are walked over without them, before the others or after. */
  override overKeys(visit: (block: KeyBlock) => void): void {
    const { b, blockQuads, feed } = this;
    const [start, end] = this.keySpan();
    feed?.open(start, end);
    const walk = (from: Value, to: Value, isCertain: boolean): void => {
      this.#isCertain = isCertain;
      b.for('block', from, to, blockQuads, (first) => {
        feed?.each(first, end);
        visit({ first, quads: this.quadsOf(first) });
      });
      this.#isCertain = false;
    };
    const { side, conditions } = this.#certain;
    const whole = Math.floor(this.body.key.extent / (4 * blockQuads));
    if (conditions.size === 0 && (whole === 0 || 4 * blockQuads * whole === this.body.key.extent))
      return walk(start, end, whole > 0);
    const edge = b.let(this.#edge(), 'edge');
    const until = b.let(operation('min', [edge, end], 'i32'), 'until');
    const since = b.let(operation('max', [edge, start], 'i32'), 'since');
    walk(start, until, side === 'before');
    walk(since, end, side === 'behind');
  }

  /** The quad at which blocks begin, or no longer are, certain: a multiple of a block's. */
  #edge(): Value {
    const { blockQuads, body } = this;
    const { side, offset } = this.#certain;
    const keys = 4 * blockQuads;
    const blocks = (count: Value): Value => {
      const some = operation('max', [count, constant(0)], 'i32');
      return mulInts(operation('div', [some, constant(keys)], 'i32'), constant(blockQuads));
    };
    // Rows past the end are nobody's.
    if (side === 'behind') return blocks(addInts(this.lastRow, constant(offset + keys - 1)));
    const whole = constant(Math.floor(body.key.extent / keys) * blockQuads);
    if (offset === Infinity) return whole;
    const before = blocks(addInts(this.firstRow, constant(offset + 1)));
    return body.row.extent + offset < body.key.extent ? before : operation('min', [before, whole], 'i32');
  }

  protected override quadsOf(first: Value): KeyBlock['quads'] {
    const { b, blockQuads, body } = this;
    const { extent } = body.key;
    const pairs = Math.ceil(extent / 2);
    const isWhole = extent % (4 * blockQuads) === 0 || (this.#isCertain && this.#certain.side === 'before');
    const within = operation('mod', [builtin('local', 0), constant(pairsOfFragment)], 'i32');
    const start = addInts(mulInts(first, constant(2)), within);
    return Array.from({ length: blockQuads / 2 }, (_, i) => {
      const asked = b.let(addInts(start, constant(pairsOfFragment * i)), 'pair');
      if (isWhole) return { quad: asked, inside: undefined };
      const quad = b.let(operation('min', [asked, constant(pairs - 1)], 'i32'), 'pair');
      const key = addInts(mulInts(asked, constant(2)), numbers(0, 1, 0, 1));
      return { quad, inside: b.let(operation('lt', [key, constant(extent)], 'bool'), 'inside_key') };
    });
  }

  override atKeys(pair: Value): Lowering {
    const { row, key } = this.body;
    return this.lowering(
      [
        [this.#pairAtom, pair],
        [this.#upperAtom, this.#upperRow],
      ],
      [
        [key.atom, addIndex(scaleIndex(this.#pairAtom, 2), modIndex(laneAtom, 2))],
        [row.atom, addIndex(this.#upperAtom, scaleIndex(divIndex(laneAtom, 2), apart))],
      ],
      this.#isCertain ? this.#certain.conditions : undefined,
    );
  }

  /** Powers of what is at most 0 lose what is below the normal numbers; a quotient by their sum is a product with its reciprocal. */
  protected override instead(expr: Expr, value: (arg: Expr) => Value): Value | undefined {
    if (expr.kind !== 'op' || expr.dtype !== 'f32') return undefined;
    const { b } = this;
    const [x, y] = expr.args;
    if (expr.op === 'div' && isWeightSum(y!)) {
      const by = value(y!);
      return b.let(this.scaled(value(x!), 'div', y!, by), 'div');
    }
    const isBelow =
      expr.op === 'exp' && x!.kind === 'op' && x!.op === 'sub' && isMaximum(x!.args[1]!, this.body);
    return isBelow ? this.#power(value(x!)) : undefined;
  }

  /** e^x, for x of at most 0. */
  #power(x: Value): Value {
    const { b } = this;
    const power = b.let(operation('mul', [x, constant(Math.LOG2E, 'f32')], 'f32'), 'power');
    return b.let(operation('exp2Normal', [power], 'f32'), 'exp');
  }

  override scaled(sum: Value, op: 'mul' | 'div', of: Expr, by: Value): Value {
    if (op === 'mul' || !isWeightSum(of)) return super.scaled(sum, op, of, by);
    return operation('mul', [sum, this.b.let(operation('recipNormal', [by], 'f32'), 'share')], 'f32');
  }

  override shrinking(max: Value, next: Value): Value {
    return this.#power(this.b.let(operation('sub', [max, next], 'f32'), 'fall'));
  }

  /** Of both rows: each of the four invocations that share them takes every fourth quad of the depth. */
  override product(product: RowProduct): Value {
    const { b, body, seats } = this;
    const { extent } = product.depth;
    const quads = Math.ceil(extent / 4);
    const ofRow = b.let(operation('mod', [builtin('local', 0), constant(4)], 'i32'), 'of_row');
    const isWhole = body.row.extent % seats.rows === 0;
    const sums = [0, apart].map((below) => {
      const row = addInts(this.#upperRow, constant(below));
      const own = isWhole ? row : operation('min', [row, constant(body.row.extent - 1)], 'i32');
      const at = [[body.row.atom, b.let(own, 'row')] as const];
      const sum = b.var('product', constant(0, 'f32', 4));
      // All loads are on their way at the same time.
      for (let first = 0; first < quads; first += 4) {
        const quad = b.let(addInts(ofRow, constant(first)), 'depth_quad');
        const add = (): void => this.addProduct(product, quad, at, sum);
        if (first + 4 <= quads) add();
        else b.if(less(quad, constant(quads)), add);
      }
      return combineLanes(b, 'sum', sum, 'product');
    });
    let both: Value = { kind: 'vector', args: sums, type: 'f32', width: 2 };
    both = b.let(both, 'products');
    for (const mask of [1, 2])
      both = b.let(operation('add', [both, b.shuffle(both, mask, 'other')], 'f32'), 'products');
    return b.let(lanesOf(both, 0, 0, 1, 1), 'row_product');
  }

  /** Of both rows: over an invocation's keys, then over the four invocations that share them. */
  override total(own: Value, monoid: Monoid, hint: string): Value {
    const { b } = this;
    const four = b.let(splat(own, 4), hint);
    let both = b.let(combine(monoid, lanesOf(four, 0, 2), lanesOf(four, 1, 3)), hint);
    for (const mask of [1, 2]) both = b.let(combine(monoid, both, b.shuffle(both, mask, 'other')), monoid);
    return b.let(lanesOf(both, 0, 0, 1, 1), hint);
  }

  /** Values are exchanged within a subgroup. */
  override meet(): void {}

  override own(value: Value): Value {
    if (value.width === 1) return value;
    const { b } = this;
    const known = b.let(value, 'both_rows');
    return b.let(operation('where', [isOddLane(b), laneOf(known, 2), laneOf(known, 0)], value.type), 'own');
  }
}

function numbers(...lanes: readonly number[]): Value {
  return { kind: 'vector', args: lanes.map((lane) => constant(lane)), type: 'i32', width: 4 };
}

function lanesOf(value: Value, ...lanes: readonly number[]): Value {
  const width = lanes.length === 2 ? 2 : 4;
  return { kind: 'vector', args: lanes.map((lane) => laneOf(value, lane)), type: value.type, width };
}
