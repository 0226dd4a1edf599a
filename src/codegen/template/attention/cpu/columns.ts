// The end of attention on a CPU core: what is written of the weighted sums of a row, once they are whole.

import type { Node } from '../../../../ir/graph.ts';
import type { Axis, OuterProduct, Write } from '../../../../schedule/kernel.ts';
import { operation } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import type { Value } from '../../../loop/loop.ts';
import { bufferName } from '../../shared/frame.ts';
import { storeAt } from '../../shared/store-value.ts';
import { columnsAt, isOfProducts } from '../products.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import { scratchAt } from './core.ts';
import { statisticAt, type CoreMemory } from './packed-row.ts';

/** All products over one column axis, and what is written of them. */
export interface ColumnGroup {
  readonly column: Axis;
  /** Each with its place among the products of the body. */
  readonly products: readonly { readonly outer: OuterProduct; readonly i: number }[];
  readonly writes: readonly Write[];
}

/** The groups of which something is written. */
export function columnGroups({ outers }: Attention, writes: readonly Write[]): readonly ColumnGroup[] {
  const extents = [...new Set(outers.map(({ column }) => column.extent))];
  return extents
    .map((extent) => {
      const products = outers.flatMap((outer, i) => (outer.column.extent === extent ? [{ outer, i }] : []));
      const { column } = products[0]!.outer;
      const nodes = new Set(products.map(({ outer }) => outer.node as Node));
      return { column, products, writes: writes.filter((write) => isOfProducts(write, column, nodes)) };
    })
    .filter((group) => group.writes.length > 0);
}

/** What is known of a row, from where it left it. `offset` is its number in the workgroup. */
export function recall({ b, results }: AttentionRows, memory: CoreMemory, offset: Value): void {
  const { factors, stages } = memory.statistics;
  results.clear();
  stages.forEach((node, i) => results.set(node, b.let(statistic(memory, offset, factors + i), 'known')));
}

/** Writes four columns of the row that was recalled. `sums` has the four of each product. */
export function writeColumns(
  rows: AttentionRows,
  memory: CoreMemory,
  { column, products, writes }: ColumnGroup,
  offset: Value,
  quad: Value,
  sums: readonly Value[],
): void {
  const { b, frame } = rows;
  const name = bufferName(frame);
  const lowering = columnsAt(rows, column, quad, undefined);
  products.forEach(({ outer, i }, place) => {
    const sum = sums[place]!;
    const whole =
      memory.statistics.factors === 0
        ? sum
        : operation('mul', [sum, b.let(statistic(memory, offset, i), 'factor')], 'f32');
    lowering.results.set(outer.node as Node, b.let(rounded(whole, outer.node.dtype), 'result'));
  });
  const values = writes.map((write) => lowering.value(write.value));
  writes.forEach((write, i) => storeAt(b, lowering, name(write.node), write, values[i]!, column));
}

function statistic(memory: CoreMemory, offset: Value, i: number): Value {
  return scratchAt('statistics', statisticAt(memory, offset, i), 1);
}
