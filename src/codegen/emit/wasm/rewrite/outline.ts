// Outlining: which bodies of loops become functions of their own. An engine compiles the optimised version of
// a function while the unoptimised one runs, and uses it from the next call on, so code that runs long must
// be called often. The body of a loop around an innermost loop therefore becomes a function, which is called
// once in each iteration. The values that it captures are parameters.

import { operandsOf } from '../../../loop/builder.ts';
import type { Loop, Stmt, Value } from '../../../loop/loop.ts';
import { bodiesOf, factsOf, namesIn, valuesOf } from '../../../loop/walk.ts';

export type For = Extract<Stmt, { kind: 'for' }>;
export type Builtin = Extract<Value, { kind: 'builtin' }>;

/** What a body reads that is defined around it. */
export interface CapturedNames {
  /** Names, with a value of their type and width. */
  readonly variables: ReadonlyMap<string, Value>;
  readonly builtins: readonly Builtin[];
  readonly buffers: readonly string[];
  readonly scalars: boolean;
}

/** The most parameters that an outlined function takes: the price of a call grows with them. */
const mostParameters = 24;
/** Turns of the loops in a body, all together, that make a call worth it. */
const fewTurns = 16;

/** The loops whose bodies become functions, with what these capture. */
export function outlinedLoops({ body }: Loop): ReadonlyMap<For, CapturedNames> {
  const outlined = new Map<For, CapturedNames>();
  for (const loop of loopsIn(body)) {
    if (isOnce(loop) || !directLoops(loop.body).some((inner) => loopsIn(inner.body).length === 0)) continue;
    if (directLoops(loop.body).reduce((sum, inner) => sum + turns(inner), 0) < fewTurns) continue;
    const captured = capturedBy(loop);
    if (captured === undefined) continue;
    const { variables, builtins, buffers } = captured;
    if (variables.size + builtins.length + buffers.length <= mostParameters) outlined.set(loop, captured);
  }
  return outlined;
}

/** Turns of a loop; many where its ends are not known. */
function turns({ start, end, step, body }: For): number {
  if (start.kind !== 'constant' || end.kind !== 'constant') return fewTurns;
  const own = Math.ceil((end.value - start.value) / step);
  return (
    own *
    Math.max(
      1,
      directLoops(body).reduce((sum, inner) => sum + turns(inner), 0),
    )
  );
}

const isOnce = ({ start, end, step }: For): boolean =>
  start.kind === 'constant' && end.kind === 'constant' && start.value + step >= end.value;

/** Loops that stand in no other loop of the body. */
function directLoops(body: readonly Stmt[]): readonly For[] {
  return body.flatMap((stmt) => (stmt.kind === 'for' ? [stmt] : bodiesOf(stmt).flatMap(directLoops)));
}

/** All loops of the body. */
export function loopsIn(body: readonly Stmt[]): readonly For[] {
  return directLoops(body).flatMap((loop) => [loop, ...loopsIn(loop.body)]);
}

/**
 * What a loop's body captures; undefined where it assigns what is defined around it, or what must
 * be shared stands in it.
 */
function capturedBy(loop: For): CapturedNames | undefined {
  const variables = new Map<string, Value>();
  const builtins = new Map<string, Builtin>();
  const buffers = new Set<string>();
  let [scalars, isOpen] = [false, false];
  const read = (value: Value, known: ReadonlySet<string>): void => {
    if (value.kind === 'variable' && !known.has(value.name)) variables.set(value.name, value);
    if (value.kind === 'builtin') builtins.set(`${value.of}.${value.axis}`, value);
    if (value.kind === 'load') buffers.add(value.buffer);
    if (value.kind === 'scalar') scalars = true;
    operandsOf(value).forEach((operand) => read(operand, known));
  };
  const visit = (body: readonly Stmt[], outer: ReadonlySet<string>): void => {
    const known = new Set(outer);
    for (const stmt of body) {
      const { unit, together } = factsOf(stmt);
      if (unit !== 'invocation' || together !== undefined) isOpen = true;
      for (const name of namesIn(stmt, 'read', 'written')) buffers.add(name);
      for (const value of valuesOf(stmt)) read(value, known);
      if (namesIn(stmt, 'assigned').some((name) => !known.has(name))) isOpen = true;
      const inside = new Set([...known, ...namesIn(stmt, 'counter')]);
      for (const inner of bodiesOf(stmt)) visit(inner, inside);
      for (const name of namesIn(stmt, 'declared')) known.add(name);
    }
  };
  visit(loop.body, new Set([loop.name]));
  return isOpen ? undefined : { variables, builtins: [...builtins.values()], buffers: [...buffers], scalars };
}
