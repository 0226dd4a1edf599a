// The weighted sums of an attention kernel: for each outer product a register of four columns for every quad of columns that
// the invocation owns (every parts-th one). Weights of a block of keys meet in workgroup memory when a row has several parts.

import type { Node } from '../../ir/graph.ts';
import { addIndex, atomsOf, scaleIndex } from '../../ir/index-expr.ts';
import { argsOf, type Expr } from '../../schedule/expr.ts';
import type { Axis, Write } from '../../schedule/kernel.ts';
import { addInts, constant, less, operation, splat } from '../builder.ts';
import { laneAtom, quadIndex, rounded, type Lowering } from '../lower.ts';
import type { Value } from '../loop.ts';
import type { AttentionRows } from './attention-rows.ts';
import { bufferName } from './frame.ts';
import { storeAt } from './store-value.ts';

/** Products of four keys that are written out; more run in a loop over the keys, or pipelines take seconds to compile. */
const unrolled = 128;

/** One outer product while it is summed. */
export interface Sums {
  /** Place among the body's outer products. */
  readonly outer: number;
  readonly quads: readonly Value[];
}

/** What is done to a finished sum, given the values of the row's expressions. */
export type Finish = (sum: Value, value: (expr: Expr) => Value) => Value;

export class Products {
  readonly #rows: AttentionRows;
  /** Finished sums, with what is still to be done to them. */
  readonly #finished = new Map<number, { readonly sums: Sums; readonly finish: Finish }>();

  constructor(rows: AttentionRows) {
    this.#rows = rows;
  }

  open(outer: number): Sums {
    const { b, body, parts } = this.#rows;
    const owned = Math.ceil(Math.ceil(body.outers[outer]!.column.extent / 4) / parts);
    const quads = Array.from({ length: owned }, () => b.var('sum', constant(0, 'f32', 4)));
    return { outer, quads };
  }

  close(sums: Sums, finish: Finish = (sum) => sum): void {
    this.#finished.set(sums.outer, { sums, finish });
  }

  /** sum += weight · value over a block of keys that starts at the quad `first`; `weights` are those of this invocation. */
  add(first: Value, all: readonly Sums[], weights: readonly Value[]): void {
    if (all.length === 0) return;
    const { b, body, parts, part } = this.#rows;
    if (parts === 1) {
      this.#addQuad(first, all, weights);
      return;
    }
    all.forEach(({ outer }, i) => {
      b.store(`weights_${outer}`, this.#rows.weightSlot(part), weights[i]!, true);
    });
    b.barrier();
    const quads = Math.ceil(body.key.extent / 4);
    const left = operation('sub', [constant(quads), first], 'i32');
    const peers =
      quads % parts === 0
        ? constant(parts)
        : b.let(operation('min', [constant(parts), left], 'i32'), 'peers');
    b.for('peer', constant(0), peers, 1, (peer) => {
      const index = this.#rows.weightSlot(peer);
      const theirs = all.map(({ outer }): Value => {
        const buffer = `weights_${outer}`;
        return b.let({ kind: 'load', buffer, index, aligned: true, type: 'f32', width: 4 }, 'weight');
      });
      this.#addQuad(b.let(addInts(first, peer), 'quad'), all, theirs);
    });
  }

  #addQuad(quad: Value, all: readonly Sums[], weights: readonly Value[]): void {
    const { b } = this.#rows;
    const lane = (weight: Value, at: number): Value => {
      return { kind: 'lane', arg: weight, lane: at, type: 'f32', width: 1 };
    };
    const statements = 4 * all.reduce((sum, { quads }) => sum + quads.length, 0);
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
    all.forEach(({ outer, quads }, place) => {
      const { value, column } = body.outers[outer]!;
      quads.forEach((sum, i) => {
        const read = splat(this.#at(column, this.#existing(column, i), key).value(value), 4);
        // What lies behind the last key weighs 0, and must not be ∞ then.
        const known =
          inside.kind === 'constant'
            ? read
            : operation('where', [inside, read, constant(0, 'f32', 4)], 'f32');
        b.assign(sum, operation('fma', [weights[place]!, known, sum], 'f32'));
      });
    });
  }

  /** The i-th quad of columns of this invocation, and whether the axis has it. */
  #column(column: Axis, i: number): { readonly quad: Value; readonly exists: Value } {
    const { parts, part, b } = this.#rows;
    const quads = Math.ceil(column.extent / 4);
    const quad = b.let(addInts(constant(i * parts), part), 'column_quad');
    const exists = (i + 1) * parts <= quads ? constant(1, 'bool') : less(quad, constant(quads));
    return { quad, exists };
  }

  /** The same, repeating the last where there is none. */
  #existing(column: Axis, i: number): Value {
    const { quad, exists } = this.#column(column, i);
    if (exists.kind === 'constant') return quad;
    const last = constant(Math.ceil(column.extent / 4) - 1);
    return this.#rows.b.let(operation('min', [quad, last], 'i32'), 'column_quad');
  }

  #at(column: Axis, quad: Value, key: Value | undefined): Lowering {
    const quadAtom = quadIndex('column_quad', column.extent);
    return this.#rows.lowering(
      [[quadAtom, quad], ...(key === undefined ? [] : [[this.#rows.body.key.atom, key] as const])],
      [[column.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom)]],
    );
  }

  /** Stores what depends on the column: all products over one column axis together. */
  write(writes: readonly Write[]): void {
    const { b, body, frame, inside } = this.#rows;
    const name = bufferName(frame);
    const extents = [...new Set(body.outers.map(({ column }) => column.extent))];
    for (const extent of extents) {
      const own = [...this.#finished.values()].filter(
        ({ sums }) => body.outers[sums.outer]!.column.extent === extent,
      );
      const { column } = body.outers.find((outer) => outer.column.extent === extent)!;
      const nodes = new Set(own.map(({ sums }) => body.outers[sums.outer]!.node as Node));
      const here = writes.filter((write) => isOfProducts(write, column, nodes));
      if (here.length === 0) continue;
      b.if(inside, () => {
        for (let i = 0; i < own[0]!.sums.quads.length; i++) {
          const { quad, exists } = this.#column(column, i);
          b.if(exists, () => {
            const lowering = this.#at(column, quad, undefined);
            for (const { sums, finish } of own) {
              const { node } = body.outers[sums.outer]!;
              const result = finish(sums.quads[i]!, (expr) => lowering.value(expr));
              lowering.results.set(node as Node, b.let(rounded(result, node.dtype), 'result'));
            }
            const values = here.map((write) => lowering.value(write.value));
            here.forEach((write, w) => storeAt(b, lowering, name(write.node), write, values[w]!, column));
          });
        }
      });
    }
  }
}

/** Whether a write is made for each column: its element or its value depends on the products over that axis. */
export function isOfProducts(write: Write, column: Axis, products: ReadonlySet<Node>): boolean {
  const uses = (expr: Expr): boolean =>
    expr.kind === 'result' ? products.has(expr.node) : argsOf(expr).some(uses);
  return atomsOf(write.index).some((atom) => atom === column.atom) || uses(write.value);
}
