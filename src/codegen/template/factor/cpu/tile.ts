// Products inside matrix algorithms, where an invocation has a matrix for itself: some neighbouring
// columns are held as a panel, whose rows lie one behind the other, and two rows of a left side at a
// time are multiplied with them, with the sums in registers. That is the tile that products of
// matrices have there (contract/cpu/blocks.ts), so algorithms whose work is in such tiles are about as fast.

import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import { multiplyAdd } from '../../contract/tile.ts';
import type { Panel } from '../panel.ts';

/**
 * A panel of columns in memory of the workgroup: rows of `width` elements from element `start` on, which begin `stride`
 * elements apart.
 */
export class PanelColumns {
  readonly #panel: Panel;
  readonly #buffer: string;
  readonly width: number;
  readonly #start: Value;
  readonly #stride: number;

  constructor(
    panel: Panel,
    buffer: string,
    width: number,
    start: Value = constant(0),
    stride: number = width,
  ) {
    [this.#panel, this.#buffer, this.width] = [panel, buffer, width];
    [this.#start, this.#stride] = [start, stride];
  }

  get quads(): number {
    return this.width / 4;
  }

  #place(row: Value, column: Value): Value {
    return addInts(addInts(this.#start, mulInts(row, constant(this.#stride))), column);
  }

  /** Four elements of a row. */
  quad(row: Value, quad: number): Value {
    return this.#panel.held(this.#buffer, this.#place(row, constant(4 * quad)), 4);
  }

  keepQuad(row: Value, quad: number, value: Value): void {
    this.#panel.keep(this.#buffer, this.#place(row, constant(4 * quad)), value);
  }

  at(row: Value, column: Value): Value {
    return this.#panel.held(this.#buffer, this.#place(row, column));
  }

  keep(row: Value, column: Value, value: Value): void {
    this.#panel.keep(this.#buffer, this.#place(row, column), value);
  }
}

/** Columns from `first` on of a matrix, some of which may not be there. */
export interface ColumnSource {
  readonly first: Value;
  /** Columns that the matrix has. */
  readonly columns: number;
  /** Rows that are meant, up to `end`. */
  readonly start: Value;
  readonly end: Value;
}

/**
 * Fills a panel, from row `to` on, with columns of a matrix. Columns past the matrix's last have the last one's
 * elements, and mean nothing.
 */
export function filled(
  panel: Panel,
  columns: PanelColumns,
  { first, columns: all, start, end }: ColumnSource,
  read: (row: Value, column: Value, width: 1 | 4) => Value,
  to: Value = start,
): void {
  const { b } = panel;
  const rowOf = (i: Value): Value => b.let(addInts(operation('sub', [i, start], 'i32'), to), 'panel_row');
  inWhole(panel, columns.width, first, all, (isWhole) =>
    b.for('i', start, end, 1, (i) => {
      if (isWhole)
        for (let q = 0; q < columns.quads; q++)
          columns.keepQuad(rowOf(i), q, read(i, addInts(first, constant(4 * q)), 4));
      else
        b.for('c', constant(0), constant(columns.width), 1, (c) => {
          const column = operation('min', [addInts(first, c), constant(all - 1)], 'i32');
          columns.keep(rowOf(i), c, read(i, b.let(column, 'column'), 1));
        });
    }),
  );
}

/** Writes a panel to where its columns stand. */
export function written(
  panel: Panel,
  columns: PanelColumns,
  { first, columns: all, start, end }: ColumnSource,
  write: (row: Value, column: Value, value: Value) => void,
  from: Value = start,
): void {
  const { b } = panel;
  const rowOf = (i: Value): Value => b.let(addInts(operation('sub', [i, start], 'i32'), from), 'panel_row');
  inWhole(panel, columns.width, first, all, (isWhole) =>
    b.for('i', start, end, 1, (i) => {
      if (isWhole)
        for (let q = 0; q < columns.quads; q++)
          write(i, addInts(first, constant(4 * q)), columns.quad(rowOf(i), q));
      else
        b.for('c', constant(0), operation('sub', [constant(all), first], 'i32'), 1, (c) =>
          write(i, addInts(first, c), columns.at(rowOf(i), c)),
        );
    }),
  );
}

/** What is done where a panel's columns are all there, and where the last ones are not. */
function inWhole(
  { b }: Panel,
  width: number,
  first: Value,
  all: number,
  visit: (isWhole: boolean) => void,
): void {
  if (all % width === 0) return visit(true);
  const isWhole = operation('le', [first, constant(all - width)], 'bool');
  b.if(
    isWhole,
    () => visit(true),
    () => visit(false),
  );
}

/** Σ over the first `steps` rows of a panel of left(row, step) · panel row, for one or two rows. */
export function products(
  panel: Panel,
  columns: PanelColumns,
  rows: number,
  steps: Value,
  left: (row: number, step: Value) => Value,
): readonly (readonly Value[])[] {
  const { b, type } = panel;
  const sums = Array.from({ length: rows }, (_, r) =>
    Array.from({ length: columns.quads }, (__, q) => b.var(`sum_${r}_${q}`, constant(0, type, 4))),
  );
  b.for('k', constant(0), steps, 1, (k) => {
    const lines = Array.from({ length: columns.quads }, (_, q) => columns.quad(k, q));
    sums.forEach((line, r) => {
      const own = b.let(splat(left(r, k), 4), 'a');
      line.forEach((sum, q) => b.assign(sum, multiplyAdd(own, lines[q]!, sum)));
    });
  });
  return sums;
}

/** Pairs of rows from `start` (even) up to `end`, and a last one that has no neighbour. */
export function inPairs(
  { b }: Panel,
  start: Value,
  end: number,
  visit: (rows: readonly Value[]) => void,
): void {
  const paired = end - (end % 2);
  b.for('i', start, constant(paired), 2, (i) => visit([i, b.let(addInts(i, constant(1)), 'lower')]));
  if (end % 2 === 1) visit([constant(paired)]);
}

/** The numbers of four columns, the first of which is `first`. */
export function lanesFrom(first: number): Value {
  const args = [0, 1, 2, 3].map((lane) => constant(first + lane));
  return { kind: 'vector', args, type: 'i32', width: 4 };
}
