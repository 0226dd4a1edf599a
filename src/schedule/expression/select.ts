// The expressions of values that are selected: padding, the parts of a concatenation, and elements at positions that data
// gives. A guard says where the selected value is read. Also what a kernel reads of a stack of which data names one slice: an
// iteration of a loop reads its slice, not the whole.

import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, nodeBytes, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  andGuards,
  atomsOf,
  constantIndex,
  divIndex,
  dynamicIndex,
  largestIndex,
  modIndex,
  offsetIndex,
  within,
  type Guard,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import type { Evaluator, Indices, Selection } from './evaluate.ts';
import { argsOf, indicesOf, type Expr, type ExprPool } from './expr.ts';

/** The expression of a node that selects, at the indices of a point. */
export function selected(evaluator: Evaluator, node: Selection, at: Indices): Expr {
  switch (node.op) {
    case 'pad':
      return padded(evaluator, node, at);
    case 'concat':
      return joined(evaluator, node, at);
    case 'gather':
      return gathered(evaluator, node, at);
    default:
      return node satisfies never;
  }
}

function zeroOf({ pool }: Evaluator, { dtype }: Pick<Node, 'dtype'>, value = 0): Expr {
  return pool.constant(dtype === 'i64' || dtype === 'u64' ? BigInt(value) : value, dtype);
}

function padded(evaluator: Evaluator, node: NodeOf<'pad'>, at: Indices): Expr {
  const { attrs } = node;
  const input = node.inputs[0]!;
  const outside = zeroOf(evaluator, node, attrs.value);
  let guard: Guard | 'never' = [];
  const inner: IndexExpr[] = [];
  for (const [axis, size] of dims(input).entries()) {
    const shifted = offsetIndex(at[axis]!, -attrs.low[axis]!);
    const step = attrs.interior[axis]! + 1;
    if (size === 0) return outside;
    guard = andGuards(guard, within(shifted, 0, (size - 1) * step));
    guard = andGuards(guard, within(modIndex(shifted, step), 0, 0));
    inner.push(divIndex(shifted, step));
  }
  return guard === 'never' ? outside : select(evaluator, guard, evaluator.value(input, inner), outside);
}

function joined(evaluator: Evaluator, node: NodeOf<'concat'>, at: Indices): Expr {
  const { axis } = node.attrs;
  let value = zeroOf(evaluator, node);
  let end = dims(node as Node)[axis]!;
  for (const [i, part] of [...node.inputs].reverse().entries()) {
    const size = dims(part)[axis]!;
    const start = end - size;
    end = start;
    if (size === 0) continue;
    // Parts are tried from the last; each stands for everything at or after its start.
    const guard = within(at[axis]!, start, start + size - 1);
    if (guard === 'never') continue;
    const here = evaluator.value(
      part,
      at.map((index, a) => (a === axis ? offsetIndex(index, -start) : index)),
    );
    value = i === 0 && guard.length === 0 ? here : select(evaluator, guard, here, value);
  }
  return value;
}

/** An index from data: clamped for the read, and compared so that a miss reads zero. */
function gathered(evaluator: Evaluator, node: NodeOf<'gather'>, at: Indices): Expr {
  const { pool } = evaluator;
  const { axis } = node.attrs;
  const [operand, indices] = [node.inputs[0]!, node.inputs[1]!];
  const size = dims(operand)[axis]!;
  const zero = zeroOf(evaluator, node);
  if (size === 0) return zero;
  const asked = evaluator.value(indices, at);
  const { atom, inside } = dynamicAxis(pool, asked, size);
  const value = evaluator.value(
    operand,
    at.map((index, a) => (a === axis ? atom : index)),
  );
  return pool.op('where', [inside, value, zero], node.dtype);
}

function select({ pool }: Evaluator, guard: Guard, yes: Expr, no: Expr): Expr {
  if (guard.length === 0 || yes === no) return yes;
  return pool.make({ kind: 'select', guard, yes, no, dtype: yes.dtype });
}

/**
 * A run-time index within [0, size): the atom (clamped) and the bool that says whether it was in
 * range. An i32 reaches the first 2^31 places of an axis.
 */
export function dynamicAxis(pool: ExprPool, asked: Expr, size: number): { atom: IndexExpr; inside: Expr } {
  const index = asked.dtype === 'i32' ? asked : pool.op('cast', [asked], 'i32');
  const reach = Math.min(size - 1, largestIndex);
  const last = pool.constant(reach, 'i32');
  const zero = pool.constant(0, 'i32');
  const clamped = pool.op('min', [pool.op('max', [index, zero], 'i32'), last], 'i32');
  const inside = pool.op('eq', [clamped, index], 'bool');
  for (const [atom, expr] of pool.dynamics) if (expr === clamped) return { atom, inside };
  const atom = size === 1 ? constantIndex(0) : dynamicIndex(`at${pool.dynamics.size}`, 0, reach);
  if (size > 1) pool.dynamics.set(atom, clamped);
  return { atom, inside };
}

/**
 * Bytes of the nodes that are read at a slice only, which the same data names at every point of the
 * kernel.
 */
export function sliceBytes(pool: ExprPool): Map<Node, number> {
  const { dynamics } = pool;
  const found = new Map<Node, number>();
  const isFixed = (atom: IndexExpr): boolean => {
    const seen = new Set<Expr>([dynamics.get(atom)!]);
    for (const expr of seen) {
      if (indicesOf(expr).some((index) => atomsOf(index).length > 0)) return false;
      for (const arg of argsOf(expr)) seen.add(arg);
    }
    return true;
  };
  const whole = new Set<Node>();
  for (const expr of pool.all) {
    if (expr.kind !== 'read') continue;
    const atoms = atomsOf(expr.index);
    const named = atoms.filter((atom) => dynamics.has(atom));
    if (named.length === 0 || !named.every(isFixed)) whole.add(expr.node);
    const points = atoms
      .filter((atom) => !dynamics.has(atom))
      .reduce((product, { lo, hi }) => product * (hi - lo + 1), 1);
    const bytes = points * dtypeBytes(expr.node.dtype);
    found.set(expr.node, Math.min(nodeBytes(expr.node), (found.get(expr.node) ?? 0) + bytes));
  }
  for (const node of whole) found.delete(node);
  return found;
}
