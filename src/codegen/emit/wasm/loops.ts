// Serial loops: a counter that is compared at the end of every iteration. Bodies that run long are functions
// (rewrite/outline.ts), and innermost loops advance pointers (rewrite/pointers.ts).

import { dtypeBytes } from '../../../ir/dtype.ts';
import { addressOf } from './access.ts';
import type { Emitter } from './emitter.ts';
import type { FunctionBuilder } from './function.ts';
import { loopsIn, type CapturedNames, type For } from './rewrite/outline.ts';
import { pointersOf } from './rewrite/pointers.ts';
import { valueType } from './registers.ts';
import { innerScope } from './scope.ts';

export function emitFor(to: Emitter, stmt: For): void {
  const { name, start, end, step } = stmt;
  const { f, variables } = to.scope;
  const counter = f.local(name, 'i32');
  variables.set(name, counter);
  let last = (): void => to.value(end);
  if (end.kind !== 'constant') {
    const local = f.local('end', 'i32');
    to.value(end);
    f.set(local);
    last = () => f.get(local);
  }
  to.value(start);
  f.set(counter);
  const turn = turnOf(to, stmt);
  const loop = (): void =>
    f.block('loop', () => {
      turn();
      stepCounter(f, counter, step, last);
    });
  const runs = start.kind === 'constant' && end.kind === 'constant' && start.value < end.value;
  if (runs) {
    loop();
    return;
  }
  f.get(counter);
  last();
  f.op('i32.lt_s');
  f.block('if', loop);
}

/** Goes on with the innermost loop while a counter, grown by a step, is below an end. */
export function stepCounter(f: FunctionBuilder, counter: number, step: number, end: () => void): void {
  f.get(counter);
  f.int(step);
  f.op('i32.add');
  f.tee(counter);
  end();
  f.op('i32.lt_s');
  f.op('br_if', 0);
}

/** What writes one turn of a loop whose counter is set; writes what must come before the first. */
function turnOf(to: Emitter, stmt: For): () => void {
  const captured = to.outlined.get(stmt);
  if (captured !== undefined) return outlinedTurn(to, stmt, captured);
  if (loopsIn(stmt.body).length > 0) return () => to.body(stmt.body);
  return pointedTurn(to, stmt);
}

/** The body as a function that is called. */
function outlinedTurn(to: Emitter, { name, body }: For, captured: CapturedNames): () => void {
  const outer = to.scope;
  const { scope, args } = innerScope(to.name(`${name}_body`), name, captured, valueType, outer);
  to.scope = scope;
  to.body(body);
  to.scope = outer;
  const number = to.functions.push(scope.f) - 1;
  return () => {
    for (const local of [outer.variables.get(name)!, ...args]) outer.f.get(local);
    outer.f.op('call', number);
  };
}

/** The body of an innermost loop, over pointers that move on at its end. */
function pointedTurn(to: Emitter, stmt: For): () => void {
  const plan = pointersOf(stmt, to.definitions);
  if (plan === undefined) return () => to.body(stmt.body);
  const { f, places, unused } = to.scope;
  const moved = plan.pointers.map(({ buffer, first, step }) => {
    const bytes = dtypeBytes(to.buffers.get(buffer)!.dtype);
    const local = f.local(`${buffer}_at`, 'i32');
    addressOf(to, buffer, first, bytes);
    f.set(local);
    return { local, bytes, by: step * bytes };
  });
  return () => {
    for (const [access, { pointer, offset }] of plan.places) {
      const { local, bytes } = moved[pointer]!;
      places.set(access, { local, offset: offset * bytes });
    }
    for (const name of plan.unused) unused.add(name);
    to.body(stmt.body);
    // The same values may stand elsewhere too.
    for (const access of plan.places.keys()) places.delete(access);
    for (const name of plan.unused) unused.delete(name);
    for (const { local, by } of moved) {
      if (by === 0) continue;
      f.get(local);
      f.int(by);
      f.op('i32.add');
      f.set(local);
    }
  };
}
