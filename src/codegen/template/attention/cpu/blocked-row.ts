// One row of attention on a CPU core, whose scores lie in memory a block of keys at a time. What the row has found waits in
// memory for the next block: the results of its stages so far, and which guards held. Sums that a growing maximum shrinks are
// multiplied before more is added to them.

import type { Node } from '../../../../ir/graph.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Online, SumTerm } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import type { Value } from '../../../loop/loop.ts';
import { combine, combineLanes, identity } from '../../shared/monoid.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import {
  chainsOf,
  finishOnline,
  masked,
  maximum,
  overKeys,
  together,
  writeStatistics,
  type CoreMemory,
} from './packed-row.ts';

/** Multiplies the sums of a product for the row at `offset`. */
export type Shrink = (product: number, offset: Value, factor: Value) => void;

/** The guards of online terms, each once. */
function guardsOf({ online }: Attention): readonly Expr[] {
  if (online === undefined) return [];
  const all = [...online.stages, ...online.outers].flatMap(({ guard }) => guard ?? []);
  return [...new Set(all)];
}

/** Elements that a row keeps between blocks. */
export const sizeOfState = (body: Attention): number =>
  Math.max(1, body.stages.length + guardsOf(body).length);

/** A row between blocks. */
export class BlockedRow {
  readonly #rows: AttentionRows;
  readonly #offset: Value;
  readonly #guards: readonly Expr[];

  /** The row that `rows` stand at, the `offset`-th of the workgroup. */
  constructor(rows: AttentionRows, offset: Value) {
    this.#rows = rows;
    this.#offset = offset;
    this.#guards = guardsOf(rows.body);
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
    // While all scores are −∞ the shift is 0: e^(−∞ − 0) is the 0 that they count for.
    const none = operation('eq', [max, constant(-Infinity, 'f32')], 'bool');
    const shift = b.let(operation('where', [none, constant(0, 'f32'), max], 'f32'), 'shift');
    const shrink = b.let(rows.shrinking(before, shift), 'shrink');
    this.#keep(online.max.node as Node, max);
    results.set(online.max.node as Node, shift);
    // A sum of nothing stays one, whatever the maximum is.
    const odd = operation('isNan', [shrink], 'bool');
    const spared = b.let(operation('where', [odd, constant(1, 'f32'), shrink], 'f32'), 'spared');
    const factorOf = ({ guard }: SumTerm): Value => (guard === undefined ? shrink : spared);
    const folds = online.stages.map(() => chainsOf(rows, () => b.var('total', constant(0, 'f32', 4))));
    const flags = this.#guards.map(() => chainsOf(rows, () => b.var('seen', constant(0, 'bool', 4))));
    overKeys(rows, memory, offset, (at, inside, slot, chain) => {
      const term = (core: Expr): Value =>
        b.let(masked(at.value(core), inside, constant(0, 'f32', 4)), 'term');
      online.stages.forEach(({ core }, i) => {
        const fold = folds[i]![chain]!;
        b.assign(fold, operation('add', [fold, term(core)], 'f32'));
      });
      this.#guards.forEach((guard, i) => {
        const flag = flags[i]![chain]!;
        const holds = masked(at.value(guard), inside, constant(0, 'bool', 4));
        b.assign(flag, operation('or', [flag, holds], 'bool'));
      });
      online.outers.forEach(({ core }, i) => b.store(`weights_${i}`, slot, term(core), true));
    });
    online.stages.forEach((term, i) => {
      const node = term.stage.node as Node;
      const own = combineLanes(b, 'sum', together(rows, folds[i]!, 'total', adding), 'total');
      const kept = this.#kept(node);
      const sum = term.shifts ? operation('mul', [kept, factorOf(term)], 'f32') : kept;
      this.#keep(node, operation('add', [sum, own], 'f32'));
    });
    this.#guards.forEach((guard, i) => {
      const any = combineLanes(
        b,
        'or',
        together(rows, flags[i]!, 'seen', (x, y) => operation('or', [x, y], 'bool')),
        'seen',
      );
      const one: Value = constant(1, 'f32');
      this.#keep(guard, operation('where', [any, one, this.#kept(guard)], 'f32'));
    });
    const shifting = online.outers.flatMap((term, i) => (term.shifts ? [{ term, i }] : []));
    if (shifting.length === 0) return;
    b.if(operation('ne', [shrink, constant(1, 'f32')], 'bool'), () => {
      for (const { term, i } of shifting) shrinkSums(i, offset, factorOf(term));
    });
  }

  /** Takes in a block in one of several passes, and leaves the weights of its keys that the pass multiplies. */
  addPass(memory: CoreMemory, pass: number): void {
    const rows = this.#rows;
    const { b, body } = rows;
    const stages = body.stages.filter((stage) => stage.pass === pass);
    const outers = body.outers.flatMap((outer, i) => (outer.pass === pass ? [{ outer, i }] : []));
    this.#recall(pass);
    const folds = stages.map(({ monoid }) => chainsOf(rows, () => b.var(monoid, identity(monoid, 'f32', 4))));
    overKeys(rows, memory, this.#offset, (at, inside, slot, chain) => {
      stages.forEach(({ monoid, value }, i) => {
        const fold = folds[i]![chain]!;
        b.assign(fold, combine(monoid, fold, masked(at.value(value), inside, identity(monoid, 'f32', 4))));
      });
      for (const { outer, i } of outers)
        b.store(`weights_${i}`, slot, masked(at.value(outer.weight), inside, constant(0, 'f32', 4)), true);
    });
    stages.forEach(({ node, monoid }, i) => {
      const all = together(rows, folds[i]!, monoid, (x, y) => combine(monoid, x, y));
      const own = combineLanes(b, monoid, all, monoid);
      this.#keep(node as Node, combine(monoid, this.#kept(node as Node), own));
    });
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
    return { kind: 'load', buffer: 'state', index: this.#slot(of), aligned: true, type: 'f32', width: 1 };
  }

  #keep(of: Node | Expr, value: Value): void {
    this.#rows.b.store('state', this.#slot(of), value, true);
  }
}

const adding = (x: Value, y: Value): Value => operation('add', [x, y], 'f32');
