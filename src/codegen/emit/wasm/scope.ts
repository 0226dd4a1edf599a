// Where a function keeps what statements name: a local for each variable, buffer and coordinate. A
// body that becomes a function gets what it captures as parameters, under the same names.

import type { LoopBuffer, Value } from '../../loop/loop.ts';
import { FunctionBuilder } from './function.ts';
import type { ValueType } from './module/instructions.ts';
import type { Builtin, CapturedNames } from './rewrite/outline.ts';
import type { Access } from './rewrite/pointers.ts';

export class WasmScope {
  readonly f: FunctionBuilder;
  readonly variables: Map<string, number> = new Map();
  readonly buffers: Map<string, number> = new Map();
  readonly builtins: Map<string, number> = new Map();
  /** The scalar block's address. */
  scalars = -1;
  /** What running pointers reach: a local, and bytes behind it. */
  readonly places: Map<Access, { readonly local: number; readonly offset: number }> = new Map();
  /** Names that nothing reads any more. */
  readonly unused: Set<string> = new Set();

  constructor(f: FunctionBuilder) {
    this.f = f;
  }

  builtin({ of, axis }: Pick<Builtin, 'of' | 'axis'>): number {
    return this.builtins.get(`${of}.${axis}`)!;
  }
}

/** The first function's: buffers and scalars are parameters behind `leading` ones. */
export function outerScope(
  name: string,
  leading: readonly string[],
  buffers: readonly LoopBuffer[],
  others: readonly string[],
): WasmScope {
  const global = buffers.filter(({ space }) => space === 'global').map((buffer) => buffer.name);
  const params = [...leading, ...global, ...others];
  const scope = new WasmScope(
    new FunctionBuilder(
      name,
      params.map((param) => [param, 'i32']),
    ),
  );
  global.forEach((buffer, i) => scope.buffers.set(buffer, leading.length + i));
  scope.scalars = params.indexOf('scalars');
  return scope;
}

/**
 * A function for the body of a loop: its counter is the first parameter. `call` leaves the
 * arguments, in order, on the stack.
 */
export function innerScope(
  name: string,
  counter: string,
  captured: CapturedNames,
  typeOf: (value: Value) => ValueType,
  outer: WasmScope,
): { readonly scope: WasmScope; readonly args: readonly number[] } {
  const variables = [...captured.variables];
  const params: (readonly [string, ValueType])[] = [
    [counter, 'i32'],
    ...variables.map(([variable, value]) => [variable, typeOf(value)] as const),
    ...captured.builtins.map(({ of, axis }) => [`${of}_${'xyz'[axis]!}`, 'i32'] as const),
    ...captured.buffers.map((buffer) => [buffer, 'i32'] as const),
    ...(captured.scalars ? [['scalars', 'i32'] as const] : []),
  ];
  const scope = new WasmScope(new FunctionBuilder(name, params));
  scope.variables.set(counter, 0);
  const args: number[] = [];
  const pass = (local: number): number => args.push(local);
  for (const [variable] of variables) scope.variables.set(variable, pass(outer.variables.get(variable)!));
  for (const { of, axis } of captured.builtins)
    scope.builtins.set(`${of}.${axis}`, pass(outer.builtin({ of, axis })));
  for (const buffer of captured.buffers) scope.buffers.set(buffer, pass(outer.buffers.get(buffer)!));
  if (captured.scalars) scope.scalars = pass(outer.scalars);
  return { scope, args };
}
