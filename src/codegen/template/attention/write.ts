// The stores of an attention kernel for values of a row that do not depend on columns.

import type { Node } from '../../../ir/graph.ts';
import { constant, operation } from '../../loop/builder.ts';
import { isOfProducts } from './products.ts';
import type { AttentionRows } from './rows.ts';
import { bufferName } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';

/** Results of the row itself, by the first invocation that has it. */
export function writeRows(rows: AttentionRows): void {
  const { b, body, frame } = rows;
  const own = frame.kernel.writes.filter(
    (write) => !body.outers.some(({ column, node }) => isOfProducts(write, column, new Set([node as Node]))),
  );
  if (own.length === 0) return;
  const first = operation('eq', [rows.part, constant(0)], 'bool');
  b.if(rows.parts === 1 ? rows.inside : operation('and', [rows.inside, first], 'bool'), () => {
    const lowering = rows.lowering([]);
    const values = own.map((write) => lowering.value(write.value));
    own.forEach((write, i) => {
      storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, undefined);
    });
  });
}
