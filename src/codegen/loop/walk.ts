// Walks over the statements of Loops: what stands in a statement, for whoever looks for something
// anywhere in a body.

import type { Stmt, Value } from './loop.ts';

/** The bodies that a statement has, in order. */
export function bodiesOf(stmt: Stmt): readonly (readonly Stmt[])[] {
  if (stmt.kind === 'for') return [stmt.body];
  if (stmt.kind !== 'if') return [];
  return stmt.else === undefined ? [stmt.then] : [stmt.then, stmt.else];
}

/** Every statement of a body, each before those inside it. */
export function* statementsIn(body: readonly Stmt[]): Generator<Stmt> {
  for (const stmt of body) {
    yield stmt;
    for (const inner of bodiesOf(stmt)) yield* statementsIn(inner);
  }
}

/** Whether a statement of the body, at any depth, is so. */
export function someStatement(body: readonly Stmt[], test: (stmt: Stmt) => boolean): boolean {
  return body.some((stmt) => test(stmt) || bodiesOf(stmt).some((inner) => someStatement(inner, test)));
}

/** The values in a statement, but for those of statements inside it. */
export function valuesOf(stmt: Stmt): readonly Value[] {
  switch (stmt.kind) {
    case 'let':
    case 'var':
    case 'assign':
    case 'subgroupReduce':
    case 'shuffle':
      return [stmt.value];
    case 'store':
    case 'atomic':
      return [stmt.index, stmt.value];
    case 'for':
      return [stmt.start, stmt.end];
    case 'if':
      return [stmt.condition];
    case 'loadMatrix':
    case 'arrive':
      return [stmt.index];
    case 'mma':
      return [stmt.lhs, stmt.rhs];
    case 'asyncCopy':
      return [stmt.index, stmt.at, stmt.inside];
    case 'awaitBarrier':
      return [stmt.index, stmt.parity];
    case 'copyTile':
      return [stmt.index, ...stmt.at, stmt.slot];
    case 'wgmma':
      return [stmt.lhs.index, stmt.rhs.index];
    case 'initBarrier':
      return [stmt.index];
    case 'barrier':
    case 'asyncCommit':
    case 'asyncWait':
    case 'wgmmaFence':
    case 'wgmmaCommit':
    case 'wgmmaWait':
    case 'setRegisters':
    case 'comment':
      return [];
    default:
      return stmt satisfies never;
  }
}
