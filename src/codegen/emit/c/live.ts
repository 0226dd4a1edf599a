// What a kernel's stores depend on. Compilers warn about names that nothing reads, so these are left out.

import { operandsOf } from '../../loop/builder.ts';
import type { Stmt, Value } from '../../loop/loop.ts';
import { namesIn, rewritten, statementsIn, valuesOf } from '../../loop/walk.ts';

/** The body without registers that nothing reads. */
export function withoutUnread(body: readonly Stmt[]): readonly Stmt[] {
  const values = new Map<string, Value[]>();
  const live = new Set<string>();
  const found: string[] = [];
  const visit = (value: Value): void => {
    if (value.kind === 'variable' && !live.has(value.name)) {
      live.add(value.name);
      found.push(value.name);
    }
    operandsOf(value).forEach(visit);
  };
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'let' || stmt.kind === 'var' || stmt.kind === 'assign') {
      const known = values.get(stmt.name) ?? [];
      values.set(stmt.name, known);
      known.push(stmt.value);
    } else valuesOf(stmt).forEach(visit);
  }
  for (let name = found.pop(); name !== undefined; name = found.pop()) values.get(name)?.forEach(visit);
  const kept = (stmts: readonly Stmt[]): readonly Stmt[] =>
    stmts.flatMap((stmt) => {
      const isRegister = stmt.kind === 'let' || stmt.kind === 'var' || stmt.kind === 'assign';
      if (isRegister && !live.has(stmt.name)) return [];
      return [rewritten(stmt, { body: kept })];
    });
  return kept(body);
}

/** What a body reads of its surroundings: buffers, and coordinates as `workgroup.0`. */
export function usedIn(body: readonly Stmt[]): ReadonlySet<string> {
  const used = new Set<string>();
  const visit = (value: Value): void => {
    if (value.kind === 'load') used.add(value.buffer);
    if (value.kind === 'builtin') used.add(`${value.of}.${value.axis}`);
    if (value.kind === 'scalar') used.add('scalars');
    operandsOf(value).forEach(visit);
  };
  for (const stmt of statementsIn(body)) {
    for (const name of namesIn(stmt, 'written')) used.add(name);
    valuesOf(stmt).forEach(visit);
  }
  return used;
}
