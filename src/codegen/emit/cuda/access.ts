// Loads, stores and atomics in CUDA C. Every dtype, 8-bit and 16-bit ones too, is addressed element
// by element; consecutive elements that are aligned are reached by one access of up to 16 bytes.

import { CompilerBug } from '../../../errors.ts';
import { isMultiple, type KnownDivisors } from '../../loop/divisible.ts';
import type { LoopBuffer, Stmt, Value, Width } from '../../loop/loop.ts';
import type { Names } from '../shared/names.ts';
import { call, component, infix, primary, subscript, type Term } from '../shared/term.ts';
import type { CudaPrelude } from './prelude.ts';
import { isLong } from '../../loop/register.ts';

/** The part of the emitter that the spelling of accesses uses. */
export interface CudaScribe {
  readonly prelude: CudaPrelude;
  readonly names: Names;
  readonly known: KnownDivisors;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  value(value: Value): Term;
  /** A value that is written more than once: named first unless it is a name or a constant. */
  atom(value: Value, hint: string): Term;
  line(text: string): void;
}

function placeOf(scribe: CudaScribe, name: string): { readonly array: Term; readonly buffer: LoopBuffer } {
  const buffer = scribe.buffers.get(name);
  if (buffer === undefined) throw new CompilerBug('CUDA emitter', `no buffer is called ${name}`);
  return { array: primary(scribe.names.buffer(name)), buffer };
}

/** The expression that reads `value.width` elements. */
export function spellLoad(scribe: CudaScribe, value: Extract<Value, { kind: 'load' }>): Term {
  const { width, type, index } = value;
  const { prelude } = scribe;
  const { array, buffer } = placeOf(scribe, value.buffer);
  const element = (at: Term): Term => {
    const stored = subscript(array, at.text);
    const text = prelude.widen(buffer.dtype, stored.text);
    return buffer.dtype === 'bool' ? infix('!=', stored, primary('0')) : primary(text);
  };
  if (width === 1) return element(scribe.value(index));
  if (value.aligned || isMultiple(index, width, scribe.known)) {
    const load = prelude.load(buffer.dtype, type, width);
    return call(load, [infix('+', array, scribe.value(index))]);
  }
  const at = scribe.atom(index, 'at');
  const parts = Array.from({ length: width }, (_, i) => element(plus(at, i)).text);
  return primary(`${prelude.type(type, width)}{${parts.join(', ')}}`);
}

/** Writes the lines of a store. */
export function spellStore(scribe: CudaScribe, stmt: Extract<Stmt, { kind: 'store' }>): void {
  const { index, value } = stmt;
  const { prelude } = scribe;
  const { array, buffer } = placeOf(scribe, stmt.buffer);
  const put = (at: Term, part: Term): void =>
    scribe.line(`${array.text}[${at.text}] = ${prelude.narrow(buffer.dtype, part.text)};`);
  const { width } = value;
  if (width === 1) {
    put(scribe.value(index), scribe.value(value));
    return;
  }
  if (isMultiple(index, width, scribe.known)) {
    const to = infix('+', array, scribe.value(index));
    const store = prelude.store(buffer.dtype, value.type, width);
    scribe.line(`${call(store, [to, scribe.value(value)]).text};`);
    return;
  }
  const at = scribe.atom(index, 'at');
  const source = scribe.atom(value, 'value');
  for (let i = 0; i < width; i++) put(plus(at, i), laneOf(source, width, i));
}

/** Writes the line of an atomic statement. */
export function spellAtomic(scribe: CudaScribe, stmt: Extract<Stmt, { kind: 'atomic' }>): void {
  const { array } = placeOf(scribe, stmt.buffer);
  const { op, value } = stmt;
  const at = primary(`&${subscript(array, scribe.value(stmt.index).text).text}`);
  const { type } = value;
  const own = op === 'add' ? type === 'i64' || type === 'u64' : type === 'f32' || isLong(type);
  const name = own || op === 'mul' ? scribe.prelude.use(`atomic_${op}_${type}`) : builtins[op];
  scribe.line(`${call(name, [at, scribe.value(value)]).text};`);
}

const builtins = {
  add: 'atomicAdd',
  min: 'atomicMin',
  max: 'atomicMax',
  and: 'atomicAnd',
  or: 'atomicOr',
} as const;

function laneOf(term: Term, width: Width, lane: number): Term {
  return width === 1 ? term : component(term, lane);
}

function plus(index: Term, offset: number): Term {
  if (offset === 0) return index;
  if (/^\d+$/.test(index.text)) return primary(String(Number(index.text) + offset));
  return infix('+', index, primary(String(offset)));
}
