// Loads, stores and atomics in C. Every dtype is addressed element by element; vectors of
// consecutive elements are read and written by functions, wherever they begin. Workgroups run on
// several threads: integers in buffers are folded by atomic builtins. Sums of floats depend on their
// order: a kernel that folds them runs on one thread, in order, and so do atomics on workgroup
// memory, which belongs to one thread.

import { CompilerBug } from '../../../errors.ts';
import { dtypeBytes, lowered } from '../../../ir/dtype.ts';
import type { LoopBuffer, RegisterType, Stmt, Value } from '../../loop/loop.ts';
import type { Names } from '../shared/names.ts';
import { call, infix, primary, subscript, type Term } from '../shared/term.ts';
import { loadFunction, storeFunction } from './memory.ts';
import type { CPrelude } from './prelude.ts';

/** The part of the emitter that the spelling of accesses uses. */
export interface CScribe {
  readonly prelude: CPrelude;
  readonly names: Names;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  value(value: Value): Term;
  /** A value that is written more than once: named first unless it is a name or a constant. */
  atom(value: Value, hint: string): Term;
  /** The expression of an operation whose operands are texts. */
  combined(op: 'add' | 'mul' | 'min' | 'max' | 'and' | 'or', type: RegisterType, a: Term, b: Term): Term;
  line(text: string): void;
}

function placeOf(scribe: CScribe, name: string): { readonly array: Term; readonly buffer: LoopBuffer } {
  const buffer = scribe.buffers.get(name);
  if (buffer === undefined) throw new CompilerBug('emit-c', `no buffer is called ${name}`);
  return { array: primary(scribe.names.buffer(name)), buffer };
}

/** Where an access begins. */
function pointer(array: Term, index: Term): Term {
  return index.text === '0' ? array : infix('+', array, index);
}

/** The expression that reads `value.width` elements. */
export function spellLoad(scribe: CScribe, value: Extract<Value, { kind: 'load' }>): Term {
  const { width, index } = value;
  const { prelude } = scribe;
  const { array, buffer } = placeOf(scribe, value.buffer);
  const at = scribe.value(index);
  if (width > 1) return call(loadFunction(prelude, buffer.dtype, width), [pointer(array, at)]);
  const element = subscript(array, at.text);
  const dtype = lowered(buffer.dtype);
  switch (dtype) {
    case 'f16':
    case 'bf16':
      return call(prelude.use(`f32_of_${dtype}`), [element]);
    case 'bool':
      return infix('!=', element, primary('0'));
    default:
      return element;
  }
}

/** Writes the line of a prefetch. The address is an integer: it may lie beyond the buffer. */
export function spellPrefetch(scribe: CScribe, stmt: Extract<Stmt, { kind: 'prefetch' }>): void {
  const { array, buffer } = placeOf(scribe, stmt.buffer);
  const index = scribe.value(stmt.index).text;
  const bytes = dtypeBytes(lowered(buffer.dtype));
  scribe.line(
    `__builtin_prefetch((const void *)((uintptr_t)${array.text} + ${bytes}u * (uintptr_t)(${index})));`,
  );
}

/** Writes the line of a store. */
export function spellStore(scribe: CScribe, stmt: Extract<Stmt, { kind: 'store' }>): void {
  const { value } = stmt;
  const { prelude } = scribe;
  const { array, buffer } = placeOf(scribe, stmt.buffer);
  const index = scribe.value(stmt.index);
  const source = scribe.value(value);
  if (value.width > 1) {
    const store = storeFunction(prelude, buffer.dtype, value.width);
    scribe.line(`${call(store, [pointer(array, index), source]).text};`);
    return;
  }
  scribe.line(`${array.text}[${index.text}] = ${narrowed(scribe, buffer, source)};`);
}

function narrowed({ prelude }: CScribe, { dtype }: LoopBuffer, value: Term): string {
  const plain = lowered(dtype);
  switch (plain) {
    case 'f16':
    case 'bf16':
      return call(prelude.use(`${plain}_of_f32`), [value]).text;
    case 'i8':
    case 'i16':
    case 'u8':
    case 'u16': {
      const type = `${plain.startsWith('u') ? 'u' : ''}int${plain.slice(1)}_t`;
      return `(${type})(${value.text})`;
    }
    default:
      return value.text;
  }
}

/** Writes the line of an atomic statement. */
export function spellAtomic(scribe: CScribe, stmt: Extract<Stmt, { kind: 'atomic' }>): void {
  const { array, buffer } = placeOf(scribe, stmt.buffer);
  const { op, value } = stmt;
  const { type } = value;
  const isPlain = buffer.space === 'workgroup' || type === 'f32' || type === 'f64';
  const index = isPlain ? scribe.atom(stmt.index, 'at') : scribe.value(stmt.index);
  const element = subscript(array, index.text);
  const own = scribe.value(value);
  if (isPlain) {
    scribe.line(`${element.text} = ${scribe.combined(op, type, element, own).text};`);
    return;
  }
  const address = primary(`&${element.text}`);
  const order = primary('__ATOMIC_RELAXED');
  if (op === 'add' || op === 'and' || op === 'or')
    scribe.line(`${call(`__atomic_fetch_${op}`, [address, own, order]).text};`);
  else scribe.line(`${call(scribe.prelude.use(`atomic_${op}_${type}`), [address, own]).text};`);
}
