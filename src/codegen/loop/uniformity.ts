// Where invocations must meet: which values differ among the invocations of a workgroup, of a warp group or of a subgroup, and that
// nothing which they do together stands where such a value decides who gets there.

import { CompilerBug } from '../../errors.ts';
import { operandsOf } from './builder.ts';
import type { Loop, Stmt, Value } from './loop.ts';
import { printLoop, printStmt } from './print.ts';
import { factsOf, namesIn } from './walk.ts';

/** Among whom a value is the same, each step fewer: a workgroup, a warp group of 128 invocations, 32 that act as one, nobody. */
type Spread = 0 | 1 | 2 | 3;
const among = ['workgroup', 'warp group', 'subgroup'] as const;

/** Barriers and the like must be reached by all invocations of a workgroup or by none; so must what warp groups and subgroups
 *  do together by all of theirs. */
export function checkUniformity(loop: Loop): void {
  const spreads = new Map<string, Spread>();
  const writable = new Set(
    loop.buffers.filter((buffer) => buffer.access === 'read_write').map(({ name }) => name),
  );
  const widest = (...all: readonly Spread[]): Spread => Math.max(0, ...all) as Spread;
  const spreadOf = (value: Value): Spread => {
    if (value.kind === 'builtin') return value.of === 'local' ? spreadAlong(loop, value.axis) : 0;
    if (value.kind === 'subgroup') return value.of === 'count' ? 0 : 3;
    if (value.kind === 'variable') return spreads.get(value.name) ?? 0;
    if (value.kind === 'load' && writable.has(value.buffer)) return 3;
    return widest(...operandsOf(value).map(spreadOf));
  };
  const mark = (name: string, spread: Spread): boolean => {
    if (spread <= (spreads.get(name) ?? 0)) return false;
    spreads.set(name, spread);
    return true;
  };
  // Variables assigned in a loop may vary because of a later statement: repeat until nothing new varies.
  const spreadThrough = (body: readonly Stmt[], under: Spread): boolean => {
    let changed = false;
    for (const stmt of body) {
      if (stmt.kind === 'let' || stmt.kind === 'var')
        changed = mark(stmt.name, spreadOf(stmt.value)) || changed;
      if (factsOf(stmt).differs)
        for (const name of namesIn(stmt, 'declared', 'assigned')) changed = mark(name, 3) || changed;
      if (stmt.kind === 'assign') changed = mark(stmt.name, widest(under, spreadOf(stmt.value))) || changed;
      if (stmt.kind === 'for') {
        const differs = widest(spreadOf(stmt.start), spreadOf(stmt.end));
        changed = mark(stmt.name, differs) || changed;
        changed = spreadThrough(stmt.body, widest(under, differs)) || changed;
      }
      if (stmt.kind === 'if') {
        const differs = widest(under, spreadOf(stmt.condition));
        changed = spreadThrough(stmt.then, differs) || changed;
        changed = spreadThrough(stmt.else ?? [], differs) || changed;
      }
    }
    return changed;
  };
  while (spreadThrough(loop.body, 0));
  const check = (body: readonly Stmt[], under: Spread, because: Stmt | undefined): void => {
    const inside = (inner: readonly Stmt[], stmt: Stmt, differs: Spread): void =>
      differs > under ? check(inner, differs, stmt) : check(inner, under, because);
    for (const stmt of body) {
      const { together } = factsOf(stmt);
      if (together !== undefined && because !== undefined && under > among.indexOf(together)) {
        const where =
          together === 'workgroup' ? 'non-uniform control flow' : `control flow that parts a ${together}`;
        const problem = `a ${stmt.kind} stands in ${where}\n  in: ${printStmt(because)}`;
        throw new CompilerBug('verify-loop', problem, printLoop(loop));
      }
      if (stmt.kind === 'for') inside(stmt.body, stmt, widest(spreadOf(stmt.start), spreadOf(stmt.end)));
      if (stmt.kind === 'if') {
        const differs = spreadOf(stmt.condition);
        inside(stmt.then, stmt, differs);
        inside(stmt.else ?? [], stmt, differs);
      }
    }
  };
  check(loop.body, 0, undefined);
}

/** Invocations are numbered along x first: rows of whole warp groups or subgroups have one place along the other axes. */
function spreadAlong({ workgroup: [x, y] }: Loop, axis: 0 | 1 | 2): Spread {
  const consecutive = [1, x, x * y][axis]!;
  return consecutive % 128 === 0 ? 1 : consecutive % 32 === 0 ? 2 : 3;
}
