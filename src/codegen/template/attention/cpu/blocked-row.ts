// One row of attention on a CPU core, whose scores lie in memory a block of keys at a time. What the row has found waits in
// memory for the next block: the results of its stages so far, and which guards held. Sums that a growing maximum shrinks are
// multiplied before more is added to them.

import type { Node } from '../../../../ir/graph.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Online, RowStage, SumTerm } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import type { Value } from '../../../loop/loop.ts';
import { combine, identity } from '../../shared/monoid.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import { scratchAt } from './core.ts';
import {
  finishOnline,
  foldOnline,
  foldPass,
  guardsOf,
  maximum,
  shiftBy,
  writeStatistics,
  type CoreMemory,
} from './packed-row.ts';

/** Multiplies the sums of a product for the row at `offset`. */
export type Shrink = (product: number, offset: Value, factor: Value) => void;

/** The guards of a kernel in online form; none in passes. */
const guardsIn = ({ online }: Attention): readonly Expr[] => (online === undefined ? [] : guardsOf(online));

/** Elements that a row keeps between blocks. */
export const sizeOfState = (body: Attention): number =>
  Math.max(1, body.stages.length + guardsIn(body).length);

/** A row between blocks. */
export class BlockedRow {
  readonly #rows: AttentionRows;
  readonly #offset: Value;
  readonly #guards: readonly Expr[];

  /** The row that `rows` stand at, the `offset`-th of the workgroup. */
  constructor(rows: AttentionRows, offset: Value) {
    this.#rows = rows;
    this.#offset = offset;
    this.#guards = guardsIn(rows.body);
  }

  /** Before the first block. */
  open(): void {
    const { body } = this.#rows;
    for (const stage of body.stages) {
      const { monoid } = stage;
      const none = monoid === 'max' ? this.#rows.unvisited(stage) : identity(monoid, 'f32', 1);
      this.#keep(stage.node as Node, none);
    }
    for (const guard of this.#guards) this.#keep(guard, constant(0, 'f32'));
  }

  /** Takes in a block in online form, and leaves the weights of its keys. */
  addOnline(memory: CoreMemory, online: Online, shrinkSums: Shrink): void {
    const rows = this.#rows;
    const { b, results } = rows;
    const offset = this.#offset;
    results.clear();
    const before = b.let(this.#kept(online.max.node as Node), 'max_before');
    const max = maximum(rows, memory, online, offset, before);
    const shift = shiftBy(rows, online, max);
    const shrink = b.let(rows.shrinking(before, shift), 'shrink');
    this.#keep(online.max.node as Node, max);
    // A sum of nothing stays one, whatever the maximum is.
    const odd = operation('isNan', [shrink], 'bool');
    const spared = b.let(operation('where', [odd, constant(1, 'f32'), shrink], 'f32'), 'spared');
    const factorOf = ({ guard }: SumTerm): Value => (guard === undefined ? shrink : spared);
    const { sum, holds } = foldOnline(rows, memory, online, offset);
    online.stages.forEach((term, i) => {
      const node = term.stage.node as Node;
      const own = sum(i);
      const kept = this.#kept(node);
      const shrunk = term.shifts ? operation('mul', [kept, factorOf(term)], 'f32') : kept;
      this.#keep(node, operation('add', [shrunk, own], 'f32'));
    });
    for (const guard of this.#guards)
      this.#keep(guard, operation('where', [holds(guard), constant(1, 'f32'), this.#kept(guard)], 'f32'));
    const shifting = online.outers.flatMap((term, i) => (term.shifts ? [{ term, i }] : []));
    if (shifting.length === 0) return;
    b.if(operation('ne', [shrink, constant(1, 'f32')], 'bool'), () => {
      for (const { term, i } of shifting) shrinkSums(i, offset, factorOf(term));
    });
  }

  /** Takes in a block in one of several passes, and leaves the weights of its keys that the pass multiplies. */
  addPass(memory: CoreMemory, pass: number): void {
    this.#recall(pass);
    const first = ({ monoid }: RowStage): Value => identity(monoid, 'f32', 4);
    foldPass(this.#rows, memory, this.#offset, pass, first, ({ node, monoid }, own) =>
      this.#keep(node as Node, combine(monoid, this.#kept(node as Node), own)),
    );
  }

  /** Behind the last block of a pass: its stages are results, rounded once. */
  endPass(pass: number): void {
    for (const { node, dtype, pass: own } of this.#rows.body.stages)
      if (own === pass) this.#keep(node as Node, rounded(this.#kept(node as Node), dtype));
  }

  /** Behind all blocks: leaves what products and other writes need, and writes what belongs to the row alone. */
  close(memory: CoreMemory): void {
    const rows = this.#rows;
    const { b, body } = rows;
    const { online } = body;
    if (online === undefined) this.#recall(Infinity);
    else {
      rows.results.clear();
      finishOnline(rows, memory, online, this.#offset, {
        max: b.let(this.#kept(online.max.node as Node), 'max'),
        sum: (i) => {
          const { node, dtype } = online.stages[i]!.stage;
          return b.let(rounded(this.#kept(node as Node), dtype), 'row_sum');
        },
        holds: (guard) => operation('ne', [this.#kept(guard), constant(0, 'f32')], 'bool'),
      });
    }
    writeStatistics(rows, memory, this.#offset);
  }

  /** The results of passes before this one. */
  #recall(pass: number): void {
    const { b, body, results } = this.#rows;
    results.clear();
    for (const { node, pass: own } of body.stages)
      if (own < pass) results.set(node as Node, b.let(this.#kept(node as Node), 'known'));
  }

  #slot(of: Node | Expr): Value {
    const { body } = this.#rows;
    const stage = body.stages.findIndex(({ node }) => node === of);
    const place = stage >= 0 ? stage : body.stages.length + this.#guards.indexOf(of as Expr);
    return addInts(mulInts(this.#offset, constant(sizeOfState(body))), constant(place));
  }

  #kept(of: Node | Expr): Value {
    return scratchAt('state', this.#slot(of), 1);
  }

  #keep(of: Node | Expr, value: Value): void {
    this.#rows.b.store('state', this.#slot(of), value, true);
  }
}
