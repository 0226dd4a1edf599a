// What the forms of dot and conv for matrix units share: the order in which workgroups take tiles, and how fragments of sums
// leave, as quads, to the same epilogue as from every other form.

import { addInts, constant, less, mulInts, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import type { Contract } from './problem.ts';
import { exchanged, fragment, isOddLane } from '../shared/fragment.ts';
import { type TileLowering } from './tile.ts';
import { divideInts } from '../../loop/integers.ts';

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

  /** `lane`: the invocation's place in its subgroup. `tile`: sizes that may leave the result at its edges. */
  constructor(
    b: LoopBuilder,
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
  }

  /** Sixteen rows from `firstRow`, a fragment every eight columns from quad `firstQuad`. */
  write(sums: readonly Value[], firstRow: Value, firstQuad: Value): void {
    const b = this.#b;
    const { m, n } = this.#body;
    const row = b.let(addInts(firstRow, this.#inRow), 'm');
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
}
