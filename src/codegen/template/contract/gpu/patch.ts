// A patch of output positions of a convolution that one invocation computes: how their sums share
// registers, and what is evaluated there. Inputs that more than one tap asks for are one load,
// because their indices are equal expressions.

import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import { constant, mulInts, operation, type LoopBuilder } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, Lowering, registerOf } from '../../../expression/lowering.ts';
import type { Value, Width } from '../../../loop/loop.ts';
import type { Contract, Window } from '../problem.ts';
import type { Tile } from '../strategy.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { storeAt } from '../../shared/store-value.ts';
import { laneOf } from '../../../loop/register.ts';

export interface WindowTiling extends Tile {
  /**
   * conv: patches of `lines` × columns output positions, `taps` steps of k a round, inputs shared
   * among taps.
   */
  readonly kind: 'window';
  readonly lines: number;
  readonly taps: number;
}

/**
 * Output positions of an invocation, how their sums share registers, and what is evaluated there.
 */
export class PatchLowering {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #taps: number;
  readonly #atoms: ReadonlyMap<IndexExpr, Value>;
  readonly #round: IndexExpr;
  /** n at each position, line by line. */
  readonly #positions: readonly IndexExpr[];
  /** Positions of each register of sums: those that taps meet at the same time. */
  readonly #registers: readonly (readonly number[])[];
  /** Positions that lie one after the other in n. */
  readonly #runs: readonly (readonly number[])[];
  /** Whether a tile at the end of a line, moved back to fit, may store a column again. */
  readonly #first: { readonly asked: Value; readonly taken: Value } | undefined;
  readonly #columns: number;

  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: Contract,
    window: Window,
    { columns, lines, taps }: WindowTiling,
    place: { readonly group: Value; readonly tileX: Value; readonly tileY: Value },
  ) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#taps = taps;
    this.#columns = columns;
    const { width } = window;
    const rounds = body.k.extent / taps;
    this.#round = rounds === 1 ? constantIndex(0) : axisIndex('round', rounds);
    const exact = width % columns === 0;
    const tileX = axisIndex('tile_x', Math.ceil(width / columns));
    const tileY = axisIndex('tile_y', window.lines / lines);
    const moved = axisIndex('first', width - columns + 1);
    const atoms = new Map([
      [body.batch.atom, place.group],
      [tileX, place.tileX],
      [tileY, place.tileY],
    ]);
    if (!exact) {
      const asked = b.let(mulInts(place.tileX, constant(columns)), 'asked');
      const taken = b.let(operation('min', [asked, constant(width - columns)], 'i32'), 'first');
      atoms.set(moved, taken);
      this.#first = { asked, taken };
    }
    this.#atoms = atoms;
    const first = exact ? scaleIndex(tileX, columns) : moved;
    const inOrder = range(lines * columns);
    this.#positions = inOrder.map((p) => {
      const line = offsetIndex(scaleIndex(tileY, lines), Math.floor(p / columns));
      return addIndex(scaleIndex(line, width), offsetIndex(first, p % columns));
    });
    const whole =
      columns === width ? [inOrder] : range(lines).map((l) => inOrder.slice(l * columns, (l + 1) * columns));
    this.#runs = whole.flatMap((run) => chunks(run));
    this.#registers = whole.flatMap((run) =>
      range(window.spread).flatMap((rest) =>
        chunks(run.filter((p) => (p % columns) % window.spread === rest)),
      ),
    );
  }

  accumulators(row: number): Value[] {
    const type = registerOf(this.#body.node.dtype);
    return this.#registers.map((register, j) =>
      this.#b.var(`sum_${row}_${j}`, constant(0, type, register.length as Width)),
    );
  }

  weight(row: Value, step: Value | undefined, tap: number): Value {
    return this.#at(this.#body.lhs, step, tap, undefined, row);
  }

  get registers(): number {
    return this.#registers.length;
  }

  /** The inputs of a register; undefined where all are zero. */
  input(register: number, step: Value | undefined, tap: number): Value | undefined {
    const positions = this.#registers[register]!;
    const args = positions.map((p) => this.#at(this.#body.rhs, step, tap, this.#positions[p], undefined));
    if (args.every((arg) => arg.kind === 'constant' && arg.value === 0)) return undefined;
    return this.#b.let(together(args), 'x');
  }

  #at(
    operand: Expr,
    step: Value | undefined,
    tap: number,
    position: IndexExpr | undefined,
    row: Value | undefined,
  ): Value {
    const { m, n, k } = this.#body;
    const atoms = new Map(this.#atoms);
    if (step !== undefined) atoms.set(this.#round, step);
    if (row !== undefined) atoms.set(m.atom, row);
    const substitution = new Map([[k.atom, offsetIndex(scaleIndex(this.#round, this.#taps), tap)]]);
    if (position !== undefined) substitution.set(n.atom, position);
    return this.#lowering(substitution, atoms).value(operand);
  }

  /** The epilogue of one channel. */
  write(row: Value, sums: readonly Value[]): void {
    const lanes = new Map<number, Value>();
    this.#registers.forEach((register, j) => {
      const sum = this.#b.let(rounded(sums[j]!, this.#body.node.dtype), 'result');
      register.forEach((p, lane) => lanes.set(p, laneOf(sum, lane)));
    });
    for (const run of this.#runs) {
      const results = run.map((p) => lanes.get(p)!);
      if (run.length === 4 && this.#first === undefined) this.#store(row, run[0]!, together(results));
      else run.forEach((p, i) => this.#unlessStored(p, () => this.#store(row, p, results[i]!)));
    }
  }

  #unlessStored(position: number, store: () => void): void {
    if (this.#first === undefined) return store();
    const { asked, taken } = this.#first;
    const column = operation('add', [taken, constant(position % this.#columns)], 'i32');
    this.#b.if(operation('le', [asked, column], 'bool'), store);
  }

  /** Results of one position, or of four from it on. */
  #store(row: Value, position: number, result: Value): void {
    const { node, m, n } = this.#body;
    const { writes } = this.#frame.kernel;
    const at = this.#positions[position]!;
    const substitution = new Map([[n.atom, result.width === 4 ? addIndex(at, laneAtom) : at]]);
    const lowering = this.#lowering(substitution, new Map(this.#atoms).set(m.atom, row));
    lowering.results.set(node, this.#b.let(result, 'result'));
    const values = writes.map((write) => lowering.value(write.value));
    // No lane of a run lies past the end.
    const along = result.width === 4 ? { ...n, extent: 4 * n.extent } : undefined;
    writes.forEach((write, i) =>
      storeAt(this.#b, lowering, bufferName(this.#frame)(write.node), write, values[i]!, along),
    );
  }

  #lowering(substitution: ReadonlyMap<IndexExpr, IndexExpr>, atoms: ReadonlyMap<IndexExpr, Value>): Lowering {
    return new Lowering(this.#b, this.#frame.kernel.pool, { substitution, atoms }, bufferName(this.#frame));
  }
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** Fours, then a pair, then a single one. */
function chunks(list: readonly number[]): number[][] {
  const out: number[][] = [];
  for (let at = 0; at < list.length;) {
    const left = list.length - at;
    const count = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    out.push(list.slice(at, at + count));
    at += count;
  }
  return out;
}

/** Scalars as the lanes of one vector. */
function together(args: readonly Value[]): Value {
  const [first] = args;
  if (args.length === 1) return first!;
  return { kind: 'vector', args, type: first!.type, width: args.length as Width };
}
