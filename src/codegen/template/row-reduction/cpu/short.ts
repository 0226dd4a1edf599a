// Short rows on a core, such as the windows of a pool: what a row folds is written out as one
// expression, and the rows are visited as the elements of a map are. Neighbouring windows then read
// neighbouring elements.

import { substitute, substituteGuard, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import { constantIndex, atomsOf } from '../../../../ir/index-algebra/expr.ts';
import { dtypeBytes } from '../../../../ir/dtype.ts';
import { dims, type Node } from '../../../../ir/graph.ts';
import { combining } from '../../../../ir/ops.ts';
import { ExprPool, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Kernel, RowStage } from '../../../../schedule/kernel.ts';

/** Terms that are written out. */
const mostTerms = 32;

/**
 * The kernel as a map over its rows; undefined where rows are long, or are written element by
 * element.
 */
export function mapOfRows(kernel: Kernel): Kernel | undefined {
  const { body, writes, pool } = kernel;
  if (body.kind !== 'row-reduction' || body.column.extent > mostTerms || pool.dynamics.size > 0)
    return undefined;
  const { row, column, stages } = body;
  const isPlain = stages.every(
    ({ arg, pass, dtype }) => !arg && pass === 0 && dtypeBytes(dtype) >= 4 && dtype !== 'bool',
  );
  if (!isPlain || writes.some(({ index }) => atomsOf(index).includes(column.atom as never))) return undefined;
  const copy = new Copy(column.atom);
  for (const stage of stages) copy.results.set(stage.node as Node, copy.folded(stage, column.extent));
  const values = writes.map((write) => ({ ...write, value: copy.at(write.value, undefined) }));
  const shape = dims(stages[0]!.node as Node);
  return { ...kernel, body: { kind: 'map', axis: row, shape }, writes: values, pool: copy.pool };
}

/** Expressions of a row in another pool, at columns that are known. */
class Copy {
  readonly pool = new ExprPool();
  readonly results = new Map<Node, Expr>();
  readonly #column: IndexExpr;
  readonly #made = new Map<string, Expr>();

  constructor(column: IndexExpr) {
    this.#column = column;
  }

  folded({ monoid, value, dtype }: RowStage, terms: number): Expr {
    const all = Array.from({ length: terms }, (_, term) => this.at(value, term));
    // A sum starts from 0, which −0 is not.
    const start = monoid === 'sum' ? [this.pool.constant(0, dtype)] : [];
    return [...start, ...all].reduce((x, y) => this.pool.op(combining[monoid], [x, y], dtype));
  }

  at(expr: Expr, column: number | undefined): Expr {
    const key = `${expr.id} ${column}`;
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const made = this.#make(expr, column);
    this.#made.set(key, made);
    return made;
  }

  #make(expr: Expr, column: number | undefined): Expr {
    const { pool } = this;
    const map = new Map(column === undefined ? [] : [[this.#column, constantIndex(column)]]);
    switch (expr.kind) {
      case 'op':
        return pool.op(
          expr.op,
          expr.args.map((arg) => this.at(arg, column)),
          expr.dtype,
        );
      case 'select': {
        const guard = substituteGuard(expr.guard, map);
        if (guard === 'never') return this.at(expr.no, column);
        const yes = this.at(expr.yes, column);
        return guard.length === 0 ? yes : pool.make({ ...expr, guard, yes, no: this.at(expr.no, column) });
      }
      case 'decode':
      case 'random': {
        const args = expr.args.map((arg) => this.at(arg, column));
        return pool.make({ ...expr, args, index: substitute(expr.index, map) });
      }
      case 'read':
      case 'index':
        return pool.make({ ...expr, index: substitute(expr.index, map) });
      case 'result':
        return this.results.get(expr.node) ?? pool.make(expr);
      case 'scalar':
      case 'constant':
        return pool.make(expr);
      default:
        return expr satisfies never;
    }
  }
}
