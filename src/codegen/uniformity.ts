// Where invocations must meet: which values differ among the invocations of a workgroup, and that no barrier or subgroup
// reduction stands where such a value decides who gets there.

import { CompilerBug } from '../errors.ts';
import { operandsOf } from './builder.ts';
import type { Loop, Stmt, Value } from './loop.ts';
import { printLoop, printStmt } from './print-loop.ts';

/** Statements that invocations execute together, or in step with the others. */
const meetings: ReadonlySet<Stmt['kind']> = new Set<Stmt['kind']>([
  'barrier',
  'subgroupReduce',
  'loadMatrix',
  'mma',
  'shuffle',
  'asyncCommit',
  'asyncWait',
]);

/** Barriers and subgroup reductions must be reached by all invocations of a workgroup or by none. */
export function checkUniformity(loop: Loop): void {
  const varying = new Set<string>();
  const writable = new Set(
    loop.buffers.filter((buffer) => buffer.access === 'read_write').map(({ name }) => name),
  );
  const varies = (value: Value): boolean => {
    if (value.kind === 'builtin') return value.of === 'local';
    if (value.kind === 'subgroup') return value.of !== 'count';
    if (value.kind === 'variable') return varying.has(value.name);
    if (value.kind === 'load' && writable.has(value.buffer)) return true;
    return operandsOf(value).some(varies);
  };
  const mark = (name: string, differs: boolean): boolean => {
    if (!differs || varying.has(name)) return false;
    varying.add(name);
    return true;
  };
  // Variables assigned in a loop may vary because of a later statement: repeat until nothing new varies.
  const spread = (body: readonly Stmt[], divergent: boolean): boolean => {
    let changed = false;
    for (const stmt of body) {
      if (stmt.kind === 'let' || stmt.kind === 'var')
        changed = mark(stmt.name, varies(stmt.value)) || changed;
      // One value a subgroup, and there may be several.
      if (stmt.kind === 'subgroupReduce' || stmt.kind === 'loadMatrix' || stmt.kind === 'shuffle')
        changed = mark(stmt.name, true) || changed;
      if (stmt.kind === 'assign') changed = mark(stmt.name, divergent || varies(stmt.value)) || changed;
      if (stmt.kind === 'for') {
        const differs = varies(stmt.start) || varies(stmt.end);
        changed = mark(stmt.name, differs) || changed;
        changed = spread(stmt.body, divergent || differs) || changed;
      }
      if (stmt.kind === 'if') {
        const differs = divergent || varies(stmt.condition);
        changed = spread(stmt.then, differs) || changed;
        changed = spread(stmt.else ?? [], differs) || changed;
      }
    }
    return changed;
  };
  while (spread(loop.body, false));
  const check = (body: readonly Stmt[], under: Stmt | undefined): void => {
    for (const stmt of body) {
      const meets = meetings.has(stmt.kind);
      if (meets && under !== undefined) {
        const problem = `a ${stmt.kind} stands in non-uniform control flow\n  in: ${printStmt(under)}`;
        throw new CompilerBug('verify-loop', problem, printLoop(loop));
      }
      if (stmt.kind === 'for')
        check(stmt.body, under ?? (varies(stmt.start) || varies(stmt.end) ? stmt : undefined));
      if (stmt.kind === 'if') {
        const inner = under ?? (varies(stmt.condition) ? stmt : undefined);
        check(stmt.then, inner);
        check(stmt.else ?? [], inner);
      }
    }
  };
  check(loop.body, undefined);
}
