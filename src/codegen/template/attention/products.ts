// The weighted sums of an attention kernel once all keys are added: the expressions still to be
// applied (its epilogue), and the stores. How sums are accumulated is defined by the units
// (gpu/lanes.ts, gpu/mma.ts).

import type { DType } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import { addIndex, atomsOf, scaleIndex } from '../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../schedule/expression/expr.ts';
import type { Axis, Write } from '../../../schedule/kernel.ts';
import { addInts, both, constant, less, operation } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, quadIndex, type Lowering } from '../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import type { AttentionRows } from './rows.ts';
import type { KeyBlock } from './seats.ts';
import { bufferName } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';

/** One outer product while it is summed. */
export interface Sums {
  /** Place among the body's outer products. */
  readonly outer: number;
  readonly registers: readonly Value[];
}

/** How scores and weighted sums are computed, by the invocations of a workgroup. */
export interface AttentionUnits {
  /** Every inner dot at this row and each quad of a block, by node. */
  scores(block: KeyBlock): readonly ReadonlyMap<Node, Value>[];
  /** Registers for an outer product, zero. */
  open(outer: number): Sums;
  /**
   * sum += weight · value over the keys of a block; `weights` are those of each sum at this
   * invocation's quads.
   */
  add(block: KeyBlock, all: readonly Sums[], weights: readonly (readonly Value[])[]): void;
  /**
   * Multiplies each sum by a factor of this invocation's row, which is 1 where `needed` is false.
   */
  shrink(all: readonly Sums[], factors: readonly Value[], needed: Value): void;
  /**
   * The finished sums: for each quad of columns that this invocation owns (every columnParts-th) its
   * four values.
   */
  whole(sums: Sums): readonly Value[];
  /**
   * Where only some invocations of a workgroup compute: has the others do their part in each walk over
   * the keys (`walks`: whether weighted sums are added in it), and these `compute`.
   */
  divide?(walks: readonly boolean[], compute: () => void): void;
  /** What weights are rounded to when they are multiplied. */
  readonly rounds?: DType | undefined;
  /** Workgroup memory. */
  readonly memory: readonly LoopBuffer[];
  /** Maps and mbarriers of the kernel. */
  readonly maps?: Pick<Loop, 'tileMaps' | 'mbarriers'>;
}

/** What is done to a finished sum, given the values of the row's expressions. */
export type FinishSum = (sum: Value, value: (expr: Expr) => Value) => Value;

export class Products {
  readonly #rows: AttentionRows;
  readonly #units: AttentionUnits;
  /** Finished sums, with what is still to be done to them. */
  readonly #finished = new Map<number, { readonly sums: Sums; readonly finish: FinishSum }>();

  constructor(rows: AttentionRows, units: AttentionUnits) {
    this.#rows = rows;
    this.#units = units;
  }

  close(sums: Sums, finish: FinishSum = (sum) => sum): void {
    this.#finished.set(sums.outer, { sums, finish });
  }

  /** Stores what depends on the column: all products over one column axis together. */
  write(writes: readonly Write[]): void {
    const { b, body, frame, inside, keyGroups, keyGroup } = this.#rows;
    // Of the invocations that have the same columns, one writes them.
    const writing = keyGroups === 1 ? inside : both(inside, operation('eq', [keyGroup, constant(0)], 'bool'));
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
      const whole = own.map(({ sums }) => this.#units.whole(sums));
      b.if(writing, () => {
        for (let i = 0; i < whole[0]!.length; i++) {
          const { quad, exists } = columnQuad(this.#rows, column, i);
          b.if(exists, () => {
            const lowering = columnsAt(this.#rows, column, quad, undefined);
            for (const [place, { sums, finish }] of own.entries()) {
              const { node } = body.outers[sums.outer]!;
              const result = finish(whole[place]![i]!, (expr) => lowering.value(expr));
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

/**
 * Whether a write is made for each column: its element or its value depends on the products over
 * that axis.
 */
export function isOfProducts(write: Write, column: Axis, products: ReadonlySet<Node>): boolean {
  const uses = (expr: Expr): boolean =>
    expr.kind === 'result' ? products.has(expr.node) : argsOf(expr).some(uses);
  return atomsOf(write.index).some((atom) => atom === column.atom) || uses(write.value);
}

/** The i-th quad of columns of this invocation, and whether the axis has it. */
export function columnQuad(
  { columnParts, columnPart, b }: AttentionRows,
  column: Axis,
  i: number,
): { readonly quad: Value; readonly exists: Value } {
  const quads = Math.ceil(column.extent / 4);
  const quad = b.let(addInts(constant(i * columnParts), columnPart), 'column_quad');
  const exists = (i + 1) * columnParts <= quads ? constant(1, 'bool') : less(quad, constant(quads));
  return { quad, exists };
}

/** Evaluation at this row and a quad of columns, and at a key if there is one. */
export function columnsAt(rows: AttentionRows, column: Axis, quad: Value, key: Value | undefined): Lowering {
  const quadAtom = quadIndex('column_quad', column.extent);
  return rows.lowering(
    [[quadAtom, quad], ...(key === undefined ? [] : [[rows.body.key.atom, key] as const])],
    [[column.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom)]],
  );
}
