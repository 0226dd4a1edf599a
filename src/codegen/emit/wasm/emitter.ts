// The interface that the parts of the WebAssembly emitter (accesses, casts, loops, spellings) use
// of the emitter that assembles a kernel's module.

import type { LoopBuffer, Stmt, Value } from '../../loop/loop.ts';
import type { FunctionBuilder } from './function.ts';
import type { CapturedNames, For } from './rewrite/outline.ts';
import type { Access, Definitions } from './rewrite/pointers.ts';
import type { RoutineName } from './routines.ts';
import type { WasmScope } from './scope.ts';

export interface Emitter {
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  /** What names of the kernel stand for. */
  readonly definitions: Definitions;
  /** Loops whose bodies are functions. */
  readonly outlined: ReadonlyMap<For, CapturedNames>;
  /** Functions in the order of their numbers. */
  readonly functions: FunctionBuilder[];
  /** Of the function that is being written. */
  scope: WasmScope;
  /** The function that is being written. */
  readonly f: FunctionBuilder;
  /** Leaves a value on the stack. */
  value(value: Value): void;
  /** Statements in order. */
  body(body: readonly Stmt[]): void;
  /** Calls a routine on what lies on the stack. */
  call(name: RoutineName): void;
  /** A name that no other function has. */
  name(hint: string): string;
  /** A local of WebAssembly as a Value. */
  held(local: number, of: Value): Value;
  /** The local that holds the address of a buffer. */
  pointer(buffer: string): number;
  /** The running pointer that reaches an access, and how many bytes behind it, if there is one. */
  running(access: Access): { readonly local: number; readonly offset: number } | undefined;
  /** Whether an index is known not to be below 0. */
  isNonnegative(value: Value): boolean;
}
