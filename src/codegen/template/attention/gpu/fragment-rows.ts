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
import { laneAtom, type Lowering } from '../../../expression/lowering.ts';
import { addInts, builtin, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import { laneOf } from '../../../loop/register.ts';
import { fragment, isOddLane } from '../../shared/fragment.ts';
import type { Frame } from '../../shared/frame.ts';
import { combine } from '../../shared/monoid.ts';
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
  readonly #upper: Value;
  readonly #upperAtom: IndexExpr;
  readonly #pairAtom: IndexExpr;

  constructor(frame: Frame, body: Attention, seats: FragmentSeats, shared: readonly string[]) {
    super(frame, body, seats, shared);
    this.#upper = seats.upper;
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

  protected override quadsOf(first: Value): KeyBlock['quads'] {
    const { b, blockQuads, body } = this;
    const { extent } = body.key;
    const pairs = Math.ceil(extent / 2);
    const isWhole = extent % (4 * blockQuads) === 0;
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
    );
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
