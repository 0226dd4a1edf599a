// What the forms of dot and conv for matrix units share: the order in which workgroups take tiles, and how fragments of sums
// leave, as quads, to the same epilogue as from every other form.

import { addInts, constant, less, mulInts, operation, type LoopBuilder } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import { exchanged, fragment, isOddLane } from '../../shared/fragment.ts';
import { type TileLowering, type TilePlace } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';
import type { ColumnFolder } from './column-folds.ts';
import { columnFolder } from './staged.ts';
import type { Frame } from '../../shared/frame.ts';

/** Which tile a number stands for: bands of `band` tile rows, in each column by column, so that workgroups that run at a time
 *  share operands in the cache. */
export function tileAt(
  b: LoopBuilder,
  number: Value,
  tilesM: number,
  tilesN: number,
  band: number,
): readonly [row: Value, column: Value] {
  if (tilesM === 1) return [constant(0), number];
  const height = Math.min(band, tilesM);
  const [which, inBand] = divideInts(b, number, height * tilesN, ['band', 'in_band']);
  const first = b.let(mulInts(which, constant(height)), 'first_row');
  const rest = addInts(constant(tilesM), operation('neg', [first], 'i32'));
  const high =
    tilesM % height === 0
      ? constant(height)
      : b.let(operation('min', [rest, constant(height)], 'i32'), 'height');
  return [
    b.let(addInts(first, operation('mod', [inBand, high], 'i32')), 'tile_m'),
    b.let(operation('div', [inBand, high], 'i32'), 'tile_n'),
  ];
}

/** Writes fragments of sums. */
export class FragmentWriter {
  readonly #b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #exact: { readonly m: boolean; readonly n: boolean };
  readonly #isOdd: Value;
  readonly #inRow: Value;
  readonly #inQuad: Value;
  readonly #folder: ColumnFolder | undefined;

  /** `lane`: the invocation's place in its subgroup. `tile`: sizes that may leave the result at its edges. */
  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: Contract,
    points: TileLowering,
    lane: Value,
    tile: { readonly m: number; readonly n: number },
  ) {
    this.#b = b;
    this.#body = body;
    this.#points = points;
    this.#exact = { m: body.m.extent % tile.m === 0, n: body.n.extent % tile.n === 0 };
    this.#isOdd = isOddLane(b);
    // An invocation has two columns in each of two rows, 8 apart; of its pair, even ones take the upper row.
    this.#inRow = b.let(
      addInts(
        operation('div', [lane, constant(4)], 'i32'),
        operation('where', [this.#isOdd, constant(8), constant(0)], 'i32'),
      ),
      'in_row',
    );
    this.#inQuad = b.let(
      operation('div', [operation('mod', [lane, constant(4)], 'i32'), constant(2)], 'i32'),
      'in_quad',
    );
    // Of the four invocations that share two rows, those two places apart have the same one.
    const seats = { parts: 2, rows: 1, part: this.#inQuad, place: constant(0), mask: 2 };
    if (body.folds !== undefined) this.#folder = new columnFolder.value(b, frame, body, points, seats);
  }

  /** Sixteen rows from `firstRow`, a fragment every eight columns from quad `firstQuad`. */
  write(sums: readonly Value[], firstRow: Value, firstQuad: Value): void {
    const b = this.#b;
    const { m, n, folds } = this.#body;
    const row = b.let(addInts(firstRow, this.#inRow), 'm');
    if (this.#folder !== undefined) {
      const rows = [placeAt(b, row, m.extent, this.#exact.m)];
      const each = folds!.width / fragment.n;
      for (let j = 0; j < sums.length; j += each)
        this.#fold(this.#folder, rows, sums.slice(j, j + each), addInts(firstQuad, constant(2 * j)));
      return;
    }
    sums.forEach((sum, j) => {
      const quad = b.let(addInts(firstQuad, addInts(this.#inQuad, constant((fragment.n / 4) * j))), 'quad');
      const whole = exchanged(b, sum, this.#isOdd);
      b.if(this.#exact.m ? constant(1, 'bool') : less(row, constant(m.extent)), () =>
        b.if(this.#exact.n ? constant(1, 'bool') : less(quad, constant(Math.ceil(n.extent / 4))), () =>
          this.#points.write(row, quad, whole),
        ),
      );
    });
  }

  /** Columns that are folded together, from quad `firstQuad` on, of one row of this invocation. */
  #fold(folder: ColumnFolder, rows: readonly TilePlace[], sums: readonly Value[], firstQuad: Value): void {
    const b = this.#b;
    const { extent } = this.#body.n;
    const quads = sums.map((_, j) => {
      const quad = b.let(addInts(firstQuad, addInts(this.#inQuad, constant((fragment.n / 4) * j))), 'quad');
      return placeAt(b, quad, Math.ceil(extent / 4), this.#exact.n);
    });
    const whole = sums.map((sum) => exchanged(b, sum, this.#isOdd));
    const first = placeAt(b, b.let(mulInts(firstQuad, constant(4)), 'n'), extent, this.#exact.n);
    folder.fold(rows, quads, [whole], first);
  }
}

/** A place along an axis of so many. */
function placeAt(b: LoopBuilder, at: Value, extent: number, isExact: boolean): TilePlace {
  if (isExact) return { index: at, inside: constant(1, 'bool') };
  return {
    index: b.let(operation('min', [at, constant(extent - 1)], 'i32'), 'at'),
    inside: less(at, constant(extent)),
  };
}
