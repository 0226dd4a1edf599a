// What a kernel's header says of its run-time bounds: `k < scalars[0]`.

import { printIndex } from '../../../ir/index-algebra/expr.ts';
import { printExpr, type Expr } from '../../../schedule/expression/expr.ts';
import type { Body } from '../../../schedule/kernel.ts';

/** The bounds of a body's loops and points, as words behind what else is said of it. */
export function boundNote(body: Body): string {
  const folded = foldedOf(body);
  const needed = ('needed' in body && body.needed) || [];
  const notes = [
    ...(folded === undefined ? [] : [`${folded.axis} < ${shown(folded.end)}`]),
    ...needed.map(({ at, end }) => `of ${printIndex(at)} < ${shown(end)} only`),
  ];
  return notes.map((note) => `, ${note}`).join('');
}

function foldedOf(body: Body): { readonly axis: string; readonly end: Expr } | undefined {
  if (body.kind === 'attention') return body.range.end && { axis: 'key', end: body.range.end };
  if (body.kind !== 'contract' && body.kind !== 'row-reduction') return undefined;
  return body.bound && { axis: body.kind === 'contract' ? 'k' : 'column', end: body.bound };
}

/** A bound without what keeps it inside the axis. */
function shown(end: Expr): string {
  const core = (expr: Expr): Expr => {
    if (expr.kind !== 'op' || (expr.op !== 'min' && expr.op !== 'max')) return expr;
    const [a, b] = expr.args;
    return b!.kind === 'constant' ? core(a!) : expr;
  };
  return printExpr(core(end), () => '').replaceAll(/scalar(\d+)/g, 'scalars[$1]');
}
