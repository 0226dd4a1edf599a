// Folds of neighbouring columns of a product, by the workgroup that has their tile: every invocation folds its
// own columns of a row, the invocations of the row join what they have, and one of them stores the results. They
// join four rows at a time in workgroup memory; two of a subgroup exchange what they have of a row. The next stage
// is folded from the same sums, which stay in registers.

import type { Node } from '../../../../ir/graph.ts';
import type { Monoid } from '../../../../ir/ops.ts';
import type { Write } from '../../../../schedule/kernel.ts';
import { both, constant, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import type { LoopBuffer, Value } from '../../../loop/loop.ts';
import { laneOf } from '../../../loop/register.ts';
import type { Frame } from '../../shared/frame.ts';
import { Join, type RowSeats } from '../../shared/join.ts';
import { combine, combineLanes } from '../../shared/monoid.ts';
import { isOfFold, type Contract } from '../problem.ts';
import { rowsAtOnce, type TileLowering, type TilePlace } from '../tile.ts';

/** How the invocations of a row are seated; `mask`: they are two, whose places in their subgroup differ by these bits. */
export interface FoldSeats extends Pick<RowSeats, 'parts' | 'rows' | 'part' | 'place'> {
  readonly mask?: number;
}

export class ColumnFolder {
  readonly #b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #seats: FoldSeats;
  readonly #join: Join;
  readonly #ofFolds: readonly Write[];
  readonly #ofElements: readonly Write[];

  constructor(b: LoopBuilder, { kernel }: Frame, body: Contract, points: TileLowering, seats: FoldSeats) {
    this.#b = b;
    this.#body = body;
    this.#points = points;
    this.#seats = seats;
    const joined = { together: true, width: rowsAtOnce, atOnce: 1, subgroup: undefined } as const;
    this.#join = new Join(b, { ...seats, ...joined });
    const { n, folds } = body;
    this.#ofFolds = kernel.writes.filter((write) => isOfFold(write, n, folds!));
    this.#ofElements = kernel.writes.filter((write) => !isOfFold(write, n, folds!));
  }

  /** The workgroup arrays used so far. */
  get buffers(): readonly LoopBuffer[] {
    return this.#join.buffers;
  }

  /** Folds as many rows as are joined at once: `sums` are this invocation's, by row and quad, of the columns from `first` on. */
  fold(
    rows: readonly TilePlace[],
    quads: readonly TilePlace[],
    sums: readonly (readonly Value[])[],
    first: TilePlace,
  ): void {
    const b = this.#b;
    const { folds } = this.#body;
    const results = rows.map(() => new Map<Node, Value>());
    const lowerings = rows.map(({ index: row }, i) =>
      quads.map(({ index: quad }, j) => this.#points.summed(row, quad, sums[i]![j]!)),
    );
    for (const { node: fold, monoid, value } of folds!.stages) {
      const own = lowerings.map((line) => {
        const [one, ...others] = line.map((lowering) => splat(lowering.value(value), 4));
        const all = others.reduce((so, other) => b.let(combine(monoid, so, other), monoid), one!);
        return combineLanes(b, monoid, all, monoid);
      });
      const totals = this.#joined(monoid, own);
      rows.forEach((_, i) => {
        const ofRow = b.let(totals[i]!, monoid);
        results[i]!.set(fold as Node, ofRow);
        for (const lowering of lowerings[i]!) lowering.results.set(fold as Node, ofRow);
      });
    }
    const isFirst = operation('eq', [this.#seats.part, constant(0)], 'bool');
    b.if(both(first.inside, isFirst), () =>
      rows.forEach(({ index: row, inside }, i) =>
        b.if(inside, () => {
          const lowering = this.#points.at({ row, column: first.index, results: results[i] });
          this.#points.store(lowering, this.#ofFolds, undefined);
        }),
      ),
    );
    if (this.#ofElements.length === 0) return;
    lowerings.forEach((line, i) =>
      line.forEach((lowering, j) =>
        b.if(both(rows[i]!.inside, quads[j]!.inside), () =>
          this.#points.store(lowering, this.#ofElements, this.#body.n),
        ),
      ),
    );
  }

  /** What all invocations of each row have. */
  #joined(monoid: Monoid, own: readonly Value[]): readonly Value[] {
    const b = this.#b;
    const { mask } = this.#seats;
    if (mask !== undefined) return own.map((part) => combine(monoid, part, b.shuffle(part, mask, 'other')));
    const value: Value = { kind: 'vector', args: own, type: own[0]!.type, width: rowsAtOnce };
    const [total] = this.#join.all([{ monoid, value }]);
    return own.map((_, i) => laneOf(total!, i));
  }
}
