// Which keys affect a row of an attention kernel. A causal mask makes weights 0 and scores a
// constant beyond a diagonal; the kernel does not visit the keys there. If such a key's value is
// NaN or infinite, the row does not get the NaN that 0 · ∞ would give it.

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import type { Expr } from '../expression/expr.ts';
import type { Axis, KeyRange, OuterProduct, RowStage } from '../kernel.ts';

/** The range that all of a kernel's stages and products agree on. */
export function keyRange(
  stages: readonly RowStage[],
  outers: readonly OuterProduct[],
  row: Axis,
  key: Axis,
): KeyRange {
  const find = new RangeFinder(row, key, stages);
  const ranges = [
    ...stages.map(({ monoid, value }): KeyRange => {
      if (monoid === 'sum') return find.vanishing(value);
      return monoid === 'max' ? find.hidden(value) : {};
    }),
    ...outers.map(({ weight }) => find.vanishing(weight)),
  ];
  const all = ranges.reduce(union);
  const { first, last } = all;
  // A maximum over no key at all would be −∞: every row must keep one.
  const keepsOne =
    (first === undefined || row.extent - 1 + first < key.extent) && (last === undefined || last >= 0);
  return keepsOne || stages.length === 0 ? all : {};
}

/** The smallest range that holds both. */
function union(a: KeyRange, b: KeyRange): KeyRange {
  const first = a.first === undefined || b.first === undefined ? undefined : Math.min(a.first, b.first);
  const last = a.last === undefined || b.last === undefined ? undefined : Math.max(a.last, b.last);
  return { ...(first !== undefined && { first }), ...(last !== undefined && { last }) };
}

/** What remains where both must hold. */
function intersection(a: KeyRange, b: KeyRange): KeyRange {
  const first = Math.max(a.first ?? -Infinity, b.first ?? -Infinity);
  const last = Math.min(a.last ?? Infinity, b.last ?? Infinity);
  return { ...(first > -Infinity && { first }), ...(last < Infinity && { last }) };
}

class RangeFinder {
  readonly #row: Axis;
  readonly #key: Axis;
  readonly #stages: readonly RowStage[];

  constructor(row: Axis, key: Axis, stages: readonly RowStage[]) {
    this.#row = row;
    this.#key = key;
    this.#stages = stages;
  }

  /** Keys outside the range make the expression 0. */
  vanishing(expr: Expr): KeyRange {
    if (expr.kind !== 'op') return {};
    const [a, b, c] = expr.args;
    switch (expr.op) {
      case 'where':
        return constantOf(c!) === 0 ? intersection(this.#condition(a!), this.vanishing(b!)) : {};
      case 'mul':
        return intersection(this.vanishing(a!), this.vanishing(b!));
      case 'div':
      case 'neg':
      case 'cast':
        return this.vanishing(a!);
      case 'exp': {
        // e^(x − max x), where x is −∞; no finite score is 0 next to all others.
        if (a!.kind !== 'op' || a!.op !== 'sub') return {};
        const [x, max] = a!.args;
        const stage =
          max!.kind === 'result' ? this.#stages.find(({ node }) => node === max!.node) : undefined;
        const counts = stage?.monoid !== 'max' || stage.value !== x || maskOf(x) !== -Infinity;
        return counts ? {} : this.hidden(x);
      }
      default:
        return {};
    }
  }

  /** Keys outside the range give one constant score, `maskOf` the expression. */
  hidden(expr: Expr): KeyRange {
    if (expr.kind !== 'op' || maskOf(expr) === undefined) return {};
    return this.#condition(expr.args[0]!);
  }

  /** Keys for which the condition can hold. */
  #condition(expr: Expr): KeyRange {
    if (expr.kind !== 'op') return {};
    const [a, b] = expr.args;
    if (expr.op === 'and') return intersection(this.#condition(a!), this.#condition(b!));
    return diagonalOf(expr, this.#row, this.#key) ?? {};
  }
}

/** The keys for which a comparison of the row with the key holds; undefined where the expression is none. */
export function diagonalOf(expr: Expr, row: Axis, key: Axis): KeyRange | undefined {
  if (expr.kind !== 'op' || (expr.op !== 'le' && expr.op !== 'lt')) return undefined;
  const [a, b] = expr.args;
  if (a!.kind !== 'index' || b!.kind !== 'index') return undefined;
  /** An index that is the row or the key, shifted by a constant. */
  const term = (index: IndexExpr): { readonly axis: Axis; readonly offset: number } | undefined => {
    for (const axis of [row, key]) {
      if (axis.extent <= 1) continue;
      const rest = addIndex(index, scaleIndex(axis.atom, -1));
      if (rest.kind === 'const') return { axis, offset: rest.value };
    }
    return undefined;
  };
  const [left, right] = [term(a!.index), term(b!.index)];
  if (left === undefined || right === undefined || left.axis === right.axis) return undefined;
  const strict = expr.op === 'lt' ? 1 : 0;
  // key + l ≤ row + r, or row + l ≤ key + r.
  if (left.axis === key) return { last: right.offset - left.offset - strict };
  return { first: left.offset - right.offset + strict };
}

/** The constant that a score has where it is masked. */
export function maskOf(expr: Expr): number | undefined {
  return expr.kind === 'op' && expr.op === 'where' ? constantOf(expr.args[2]!) : undefined;
}

function constantOf(expr: Expr): number | undefined {
  return expr.kind === 'constant' ? Number(expr.value) : undefined;
}
