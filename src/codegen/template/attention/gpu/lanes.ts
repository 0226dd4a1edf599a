// Attention on any machine: an invocation computes the scores of its row with four keys at a time,
// and adds weighted values to a register of four columns for every quad of columns that it owns.
// With several parts a row, weights of a block of keys meet in workgroup memory; with one there is
// neither workgroup memory nor a barrier. Few rows over many keys, as when a text is continued, have
// a workgroup each, whose invocations take different keys of a block for the same columns.

import type { Node } from '../../../../ir/graph.ts';
import { invocationsToFill, sharesWork } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import { addInts, builtin, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { LoopBuffer, Value } from '../../../loop/loop.ts';
import { columnQuad, columnsAt, type AttentionUnits, type Sums } from '../products.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import { AttentionRows, type Attention } from '../rows.ts';
import { fewParts, type KeyBlock, type Seats } from '../seats.ts';
import { scoresAt, sharedScores, sharesDepth } from './scores.ts';
import { sweptLoop } from './sweep.ts';

/**
 * Products of four keys that are written out; more run in a loop over the keys, or pipelines take
 * seconds to compile.
 */
const unrolled = 128;

/** Workgroup memory for a quad of numbers of each invocation. */
const exchanged = 'exchanged';

/** How rows are spread over lanes. */
interface LaneTiling {
  /** Rows a workgroup handles. */
  readonly rows: number;
  /** Invocations that share a row; a power of two. */
  readonly parts: number;
  /** Invocations of a row among which columns are dealt; a power of two. */
  readonly columnParts: number;
}

/**
 * A row an invocation without barriers, or up to eight, or a whole workgroup, that share scores and
 * weights in workgroup memory.
 */
export const lanes: FittingStrategy<Attention> = {
  loop(frame, body) {
    const tiling = tilingOf(body, frame.target);
    const memory = memoryOf(body, tiling);
    const names = memory.map(({ name }) => name);
    const rows = new AttentionRows(frame, body, seatsOf(tiling), names);
    const note = `${tiling.parts} invocation(s) a row, ${tiling.rows} rows a workgroup`;
    return sweptLoop(frame, body, { rows, units: new LaneUnits(rows, memory), note });
  },
};

/** By how many invocations it takes to fill the machine. */
function tilingOf(body: Attention, target: Target): LaneTiling {
  if (!sharesWork(target)) return { rows: Math.min(8, target.workgroupSize), parts: 1, columnParts: 1 };
  const columns = Math.max(...body.outers.map(({ column }) => column.extent));
  const rows = body.batch.extent * body.row.extent;
  // Enough invocations to fill the machine, none of them idle: neither over the keys nor over the
  // columns.
  const maxParts = Math.min(Math.ceil(columns / 4), Math.ceil(body.key.extent / 4), fewParts);
  let parts = 1;
  while (parts < 4 && parts * 2 <= maxParts) parts *= 2;
  while (parts * 2 <= maxParts && rows * parts < invocationsToFill(target)) parts *= 2;
  const whole = wholeGroup(body, target, Math.ceil(columns / 4));
  if (rows * fewParts < invocationsToFill(target) && whole >= leastWhole)
    return { rows: 1, parts: whole, columnParts: Math.min(whole, powerAbove(Math.ceil(columns / 4))) };
  return { rows: Math.max(1, Math.min(128 / parts, body.row.extent)), parts, columnParts: parts };
}

/** Invocations of a workgroup that has one row, at least: with fewer, eight a row do as well. */
const leastWhole = 64;
/** At most. */
const mostWhole = 256;

/**
 * Invocations that may share one row: so many that the machine is filled and each has keys, and
 * columns of a quad or more. A power of two.
 */
function wholeGroup(body: Attention, target: Target, columnQuads: number): number {
  const rows = body.batch.extent * body.row.extent;
  // A quad of weights for each sum, a quad that is exchanged, and two numbers that are joined.
  const bytes = 4 * (4 * body.outers.length + 4 + 2);
  const most = Math.min(
    mostWhole,
    target.limits.workgroupInvocations,
    target.limits.workgroupBytes / bytes,
    Math.ceil(body.key.extent / 4),
    invocationsToFill(target) / rows,
  );
  const sameColumns = body.outers.every(({ column }) => Math.ceil(column.extent / 4) === columnQuads);
  return sameColumns && most >= 1 ? 2 ** Math.floor(Math.log2(most)) : 1;
}

function powerAbove(count: number): number {
  return 2 ** Math.ceil(Math.log2(count));
}

function seatsOf({ rows, parts, columnParts }: LaneTiling): Seats {
  return {
    rows,
    parts,
    columnParts,
    place: rows === 1 ? constant(0) : builtin('local', parts === 1 ? 0 : 1),
    part: parts === 1 ? constant(0) : builtin('local', 0),
    workgroup: parts === 1 ? [rows, 1, 1] : [parts, rows, 1],
    quads: 1,
  };
}

/** Workgroup memory that a row's invocations exchange values through. */
function memoryOf(body: Attention, { rows, parts, columnParts }: LaneTiling): readonly LoopBuffer[] {
  const share = (name: string, each: number): LoopBuffer => {
    return { name, space: 'workgroup', dtype: 'f32', size: rows * parts * each, access: 'read_write' };
  };
  if (parts === 1) return [];
  return [
    ...(body.stages.length + body.rowProducts.length > 0 && parts <= fewParts ? [share('partial', 1)] : []),
    ...body.outers.map((_, i) => share(`weights_${i}`, 4)),
    ...(parts > columnParts || sharesDepth(body, parts) ? [share(exchanged, 4)] : []),
  ];
}

class LaneUnits implements AttentionUnits {
  readonly #memory: readonly LoopBuffer[];
  readonly #rows: AttentionRows;

  constructor(rows: AttentionRows, memory: readonly LoopBuffer[]) {
    this.#rows = rows;
    this.#memory = memory;
  }

  get memory(): readonly LoopBuffer[] {
    return [...this.#memory, ...this.#rows.joined];
  }

  scores({ first, quads }: KeyBlock): readonly ReadonlyMap<Node, Value>[] {
    const { body, parts } = this.#rows;
    if (sharesDepth(body, parts)) return [sharedScores(this.#rows, first, exchanged)];
    return quads.map(({ quad }) => scoresAt(this.#rows, quad));
  }

  open(outer: number): Sums {
    const { b, body, columnParts } = this.#rows;
    const owned = Math.ceil(Math.ceil(body.outers[outer]!.column.extent / 4) / columnParts);
    const registers = Array.from({ length: owned }, () => b.var('sum', constant(0, 'f32', 4)));
    return { outer, registers };
  }

  shrink(all: readonly Sums[], factors: readonly Value[], needed: Value): void {
    const { b } = this.#rows;
    b.if(needed, () =>
      all.forEach(({ registers }, i) => {
        for (const sum of registers) b.assign(sum, operation('mul', [sum, factors[i]!], 'f32'));
      }),
    );
  }

  whole({ registers }: Sums): readonly Value[] {
    const { b, keyGroups, columnParts, columnPart, part } = this.#rows;
    if (keyGroups === 1) return registers;
    return registers.map((own) => {
      b.store(exchanged, this.#rows.weightSlot(part), own, true);
      b.barrier();
      const total = b.var('sum', constant(0, 'f32', 4));
      b.for('group', constant(0), constant(keyGroups), 1, (group) => {
        const index = this.#rows.weightSlot(addInts(mulInts(group, constant(columnParts)), columnPart));
        const other: Value = { kind: 'load', buffer: exchanged, index, aligned: true, type: 'f32', width: 4 };
        b.assign(total, operation('add', [total, other], 'f32'));
      });
      b.barrier();
      return total;
    });
  }

  add({ first }: KeyBlock, all: readonly Sums[], weights: readonly (readonly Value[])[]): void {
    if (all.length === 0) return;
    const { b, body, parts, part, keyGroup, keyGroups } = this.#rows;
    const own = weights.map(([weight]) => weight!);
    if (parts === 1) {
      this.#addQuad(first, all, own);
      return;
    }
    all.forEach(({ outer }, i) => {
      b.store(`weights_${outer}`, this.#rows.weightSlot(part), own[i]!, true);
    });
    b.barrier();
    const quads = Math.ceil(body.key.extent / 4);
    const left = operation('sub', [constant(quads), first], 'i32');
    const peers =
      quads % parts === 0
        ? constant(parts)
        : b.let(operation('min', [constant(parts), left], 'i32'), 'peers');
    b.for('peer', keyGroup, peers, keyGroups, (peer) => {
      const index = this.#rows.weightSlot(peer);
      const peerWeights = all.map(({ outer }): Value => {
        const buffer = `weights_${outer}`;
        return b.let({ kind: 'load', buffer, index, aligned: true, type: 'f32', width: 4 }, 'weight');
      });
      this.#addQuad(b.let(addInts(first, peer), 'quad'), all, peerWeights);
    });
  }

  #addQuad(quad: Value, all: readonly Sums[], weights: readonly Value[]): void {
    const { b } = this.#rows;
    const lane = (weight: Value, at: number): Value => {
      return { kind: 'lane', arg: weight, lane: at, type: 'f32', width: 1 };
    };
    const statements = 4 * all.reduce((sum, { registers }) => sum + registers.length, 0);
    if (statements <= unrolled) {
      for (const at of [0, 1, 2, 3])
        this.#addKey(
          quad,
          constant(at),
          all,
          weights.map((weight) => lane(weight, at)),
        );
      return;
    }
    b.for('lane', constant(0), constant(4), 1, (at) => {
      const chosen = weights.map((weight) => {
        const either = (from: number): Value => {
          const first = operation('eq', [at, constant(from)], 'bool');
          return operation('where', [first, lane(weight, from), lane(weight, from + 1)], 'f32');
        };
        const low = operation('lt', [at, constant(2)], 'bool');
        return b.let(operation('where', [low, either(0), either(2)], 'f32'), 'weight');
      });
      this.#addKey(quad, at, all, chosen);
    });
  }

  /** sum += weight · value for the key at one lane of a quad. */
  #addKey(quad: Value, lane: Value, all: readonly Sums[], weights: readonly Value[]): void {
    const { b, body } = this.#rows;
    const { key, inside } = this.#rows.keyAt(quad, lane);
    all.forEach(({ outer, registers }, place) => {
      const { value, column } = body.outers[outer]!;
      registers.forEach((sum, i) => {
        const at = columnsAt(this.#rows, column, this.#existing(column, i), key);
        const read = splat(at.value(value), 4);
        // What lies behind the last key weighs 0, and must not be ∞ then.
        const known =
          inside.kind === 'constant'
            ? read
            : operation('where', [inside, read, constant(0, 'f32', 4)], 'f32');
        b.assign(sum, operation('fma', [weights[place]!, known, sum], 'f32'));
      });
    });
  }

  /** The i-th quad of columns of this invocation, repeating the last where there is none. */
  #existing(column: Axis, i: number): Value {
    const { quad, exists } = columnQuad(this.#rows, column, i);
    if (exists.kind === 'constant') return quad;
    const last = constant(Math.ceil(column.extent / 4) - 1);
    return this.#rows.b.let(operation('min', [quad, last], 'i32'), 'column_quad');
  }
}
