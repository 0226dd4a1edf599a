// Takes away names that nothing uses.

import type { Stmt } from '../../../loop/loop.ts';
import { bodiesOf, namesIn, rewritten, valuesOf } from '../../../loop/walk.ts';
import { RegisterUses } from './uses.ts';

/** The body without values that nobody reads. */
export function withoutUnused(body: readonly Stmt[]): readonly Stmt[] {
  return without(body, new Set());
}

/** A name is used after it is declared, so a walk from behind has seen its uses. */
function without(body: readonly Stmt[], used: Set<string>): readonly Stmt[] {
  const kept: Stmt[] = [];
  for (const stmt of body.toReversed()) {
    if (stmt.kind === 'let' && !used.has(stmt.name)) continue;
    const bodies = bodiesOf(stmt).toReversed();
    const inner = new Map(bodies.map((part) => [part, without(part, used)]));
    for (const value of valuesOf(stmt)) for (const name of RegisterUses.namesOf(value)) used.add(name);
    for (const name of namesIn(stmt, 'assigned', 'awaited')) used.add(name);
    kept.push(inner.size === 0 ? stmt : rewritten(stmt, { body: (part) => inner.get(part) ?? part }));
  }
  return kept.toReversed();
}
