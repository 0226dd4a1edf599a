// Loads and stores in WGSL: how elements are reached in each form of array (memory.ts chooses the
// forms).

import { CompilerBug } from '../../../errors.ts';
import { isWide } from '../../../ir/dtype.ts';
import type { AtomicOp, LoopBuffer, Stmt, Value } from '../../loop/loop.ts';
import { isMultiple, type KnownDivisors } from '../../loop/divisible.ts';
import { perWord, type Form } from './memory.ts';
import type { Names } from '../shared/names.ts';
import type { WgslPrelude } from './prelude.ts';
import { spell } from './spelling.ts';
import { call, component, infix, primary, subscript, type Term } from '../shared/term.ts';
import { typeName } from './types.ts';

/** The part of the emitter that the spelling of accesses uses. */
export interface WgslScribe {
  readonly prelude: WgslPrelude;
  readonly names: Names;
  readonly known: KnownDivisors;
  readonly forms: ReadonlyMap<string, Form>;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  value(value: Value): Term;
  /** A value that is written more than once: named first unless it is a name or a constant. */
  atom(value: Value, hint: string): Term;
  line(text: string): void;
}

interface Place {
  readonly array: Term;
  readonly form: Form;
  readonly buffer: LoopBuffer;
  /** Elements in a 32-bit word. */
  readonly packed: 1 | 2 | 4;
}

function placeOf(scribe: WgslScribe, name: string): Place {
  const buffer = scribe.buffers.get(name);
  if (buffer === undefined) throw new CompilerBug('WGSL emitter', `no buffer is called ${name}`);
  const array = primary(scribe.names.buffer(name));
  return { array, form: scribe.forms.get(name)!, buffer, packed: perWord[buffer.dtype]! };
}

/** The expression that reads `value.width` elements. */
export function spellLoad(scribe: WgslScribe, value: Extract<Value, { kind: 'load' }>): Term {
  const { width, aligned, type } = value;
  const place = placeOf(scribe, value.buffer);
  const { array, form, packed } = place;
  if (form === 'scalar' && width === 1) return subscript(array, scribe.value(value.index).text);
  if ((form === 'quad' || form === 'pair') && width === 4 && aligned) {
    const whole = subscript(array, quotient(scribe, value.index, 4).text);
    return form === 'quad' ? whole : call(scribe.prelude.use(`unpack_${place.buffer.dtype}x4`, 1), [whole]);
  }
  if (form !== 'pair' && packed > 1 && aligned && width >= packed) {
    const unpack = scribe.prelude.use(`unpack_${place.buffer.dtype}`, 1);
    if (width === packed) return call(unpack, [wordAt(place, quotient(scribe, value.index, packed))]);
    const first = firstWord(scribe, value.index, packed);
    const words = [0, 1].map((i) => wordAt(place, plus(first, i)));
    return call(
      typeName(type, width),
      words.map((word) => call(unpack, [word])),
    );
  }
  const index = scribe.atom(value.index, 'at');
  const parts = Array.from({ length: width }, (_, i) => elementAt(scribe, place, plus(index, i)));
  return width === 1 ? parts[0]! : call(typeName(type, width), parts);
}

function elementAt({ prelude }: WgslScribe, place: Place, index: Term): Term {
  const { array, form, buffer, packed } = place;
  if (form === 'atomic' && isWide(buffer.dtype))
    return call(
      'vec2u',
      [0, 1].map((half) => wordAt(place, halfOf(index, half))),
    );
  if (form === 'atomic' && packed === 1) {
    const word = wordAt(place, index);
    return buffer.dtype === 'f32' ? call('bitcast<f32>', [word]) : word;
  }
  if (form === 'scalar') return subscript(array, index.text);
  if (form === 'quad') return subscript(subscript(array, shifted(index, 4).text), masked(index, 4).text);
  const word =
    form === 'pair'
      ? subscript(subscript(array, shifted(index, 4).text), masked(shifted(index, 2), 2).text)
      : wordAt(place, shifted(index, packed));
  return call(prelude.use(`get_${buffer.dtype}`, 1), [word, index]);
}

/** The place of an element's low (0) or high (1) word among words. */
function halfOf(index: Term, half: number): Term {
  return plus(infix('*', primary('2'), index), half);
}

function wordAt({ array, form }: Place, index: Term): Term {
  const word = subscript(array, index.text);
  return form === 'atomic' ? primary(`atomicLoad(&${word.text})`) : word;
}

/** Writes the lines of a store. */
export function spellStore(scribe: WgslScribe, stmt: Extract<Stmt, { kind: 'store' }>): void {
  const { index, value } = stmt;
  const place = placeOf(scribe, stmt.buffer);
  const { array, form, packed } = place;
  if (form === 'quad' || form === 'pair') {
    const at = quotient(scribe, index, 4).text;
    const source = scribe.value(value);
    const whole =
      form === 'quad' ? source : call(scribe.prelude.use(`pack_${place.buffer.dtype}x4`, 1), [source]);
    scribe.line(`${array.text}[${at}] = ${whole.text};`);
  } else if (form === 'scalar' && value.width === 1) {
    const at = scribe.value(index).text;
    scribe.line(`${array.text}[${at}] = ${scribe.value(value).text};`);
  } else if (form === 'atomic' && isWide(place.buffer.dtype)) {
    const at = scribe.atom(index, 'at');
    const source = scribe.atom(value, 'value');
    for (const half of [0, 1])
      scribe.line(
        `atomicStore(&${subscript(array, halfOf(at, half).text).text}, ${component(source, half).text});`,
      );
  } else if (form === 'atomic' && packed === 1) {
    const at = scribe.atom(index, 'at');
    const source = value.width === 1 ? scribe.value(value) : scribe.atom(value, 'value');
    for (let i = 0; i < value.width; i++) {
      const part = value.width === 1 ? source : component(source, i);
      const word = place.buffer.dtype === 'f32' ? call('bitcast<u32>', [part]) : part;
      scribe.line(`atomicStore(&${subscript(array, plus(at, i).text).text}, ${word.text});`);
    }
  } else if (form === 'scalar') {
    const at = scribe.atom(index, 'at');
    const source = scribe.atom(value, 'value');
    for (let i = 0; i < value.width; i++)
      scribe.line(`${array.text}[${plus(at, i).text}] = ${component(source, i).text};`);
  } else if (stmt.owned && value.width >= packed && isMultiple(index, value.width, scribe.known)) {
    storeWords(scribe, place, index, value);
  } else storeParts(scribe, place, index, value);
}

const integerAtomics: Readonly<Record<Exclude<AtomicOp, 'mul'>, string>> = {
  add: 'atomicAdd',
  min: 'atomicMin',
  max: 'atomicMax',
  and: 'atomicAnd',
  or: 'atomicOr',
};

/** Writes the lines of an atomic statement: a builtin, or a compare-and-swap loop. */
export function spellAtomic(scribe: WgslScribe, stmt: Extract<Stmt, { kind: 'atomic' }>): void {
  const { array, buffer } = placeOf(scribe, stmt.buffer);
  const at = scribe.atom(stmt.index, 'at');
  if (isWide(buffer.dtype)) {
    foldWords(scribe, stmt, array, at);
    return;
  }
  const target = `&${subscript(array, at.text).text}`;
  const { op, value } = stmt;
  if (buffer.dtype !== 'f32' && op !== 'mul') {
    scribe.line(`${integerAtomics[op]}(${target}, ${scribe.value(value).text});`);
    return;
  }
  const operand = scribe.atom(value, 'value');
  const type = value.type === 'i32' ? 'i32' : 'u32';
  const [old, next] = [scribe.names.fresh('old'), scribe.names.fresh('next')];
  const before = primary(value.type === 'f32' ? `bitcast<f32>(${old})` : old);
  const site = {
    type: value.type,
    width: 1,
    from: value.type,
    first: undefined,
    second: undefined,
    last: undefined,
    prelude: scribe.prelude,
  } as const;
  const folded = spell(op, { ...site, args: [before, operand] });
  scribe.line(`var ${old} = atomicLoad(${target});`);
  scribe.line('loop {');
  scribe.line(
    `  let ${next} = ${value.type === 'f32' ? call(`bitcast<${type}>`, [folded]).text : folded.text};`,
  );
  scribe.line(`  let found = atomicCompareExchangeWeak(${target}, ${old}, ${next});`);
  scribe.line(`  if (found.exchanged) { break; }`);
  scribe.line(`  ${old} = found.old_value;`);
  scribe.line('}');
}

/**
 * Integers of 64 bits word by word: the low word of a sum carries into the high one by the value that
 * its own addition found there, so that all carries arrive, whatever the order. Bits do not carry.
 */
function foldWords(scribe: WgslScribe, stmt: Extract<Stmt, { kind: 'atomic' }>, array: Term, at: Term): void {
  const { op } = stmt;
  if (op === 'mul' || op === 'min' || op === 'max')
    throw new CompilerBug('WGSL emitter', `two words have no atomic ${op}`);
  const value = scribe.atom(stmt.value, 'value');
  const [low, high] = [component(value, 0), component(value, 1)];
  const [first, second] = [0, 1].map((half) => `&${subscript(array, halfOf(at, half).text).text}`);
  const fold = integerAtomics[op];
  if (op !== 'add') {
    scribe.line(`${fold}(${first}, ${low.text});`);
    scribe.line(`${fold}(${second}, ${high.text});`);
    return;
  }
  const old = scribe.names.fresh('old');
  scribe.line(`let ${old} = ${fold}(${first}, ${low.text});`);
  scribe.line(`${fold}(${second}, ${high.text} + select(0u, 1u, ${old} + ${low.text} < ${old}));`);
}

/** Narrow elements that fill their words. */
function storeWords(scribe: WgslScribe, place: Place, index: Value, value: Value): void {
  const { array, form, buffer, packed } = place;
  const pack = scribe.prelude.use(`pack_${buffer.dtype}`, 1);
  const put = (at: Term, part: Term): void => {
    const word = call(pack, [part]).text;
    const target = subscript(array, at.text).text;
    scribe.line(form === 'atomic' ? `atomicStore(&${target}, ${word});` : `${target} = ${word};`);
  };
  if (value.width === packed) {
    put(quotient(scribe, index, packed), scribe.value(value));
    return;
  }
  const first = firstWord(scribe, index, packed);
  const source = scribe.atom(value, 'value');
  ['xy', 'zw'].forEach((half, i) => put(plus(first, i), primary(`${source.text}.${half}`)));
}

/** Narrow elements that share words with others: the word's other bits stay. */
function storeParts(scribe: WgslScribe, place: Place, index: Value, value: Value): void {
  const { array, form, buffer, packed } = place;
  const at = scribe.atom(index, 'at');
  const source = scribe.atom(value, 'value');
  const bitsOf = scribe.prelude.use(`bits_${buffer.dtype}`, 1);
  const width = 32 / packed;
  for (let i = 0; i < value.width; i++) {
    const element = plus(at, i);
    const word = subscript(array, shifted(element, packed).text).text;
    const bits = call(bitsOf, [value.width === 1 ? source : component(source, i)]).text;
    const offset = `u32(${masked(element, packed).text}) * ${width}u`;
    if (form === 'word') {
      scribe.line(`${word} = insertBits(${word}, ${bits}, ${offset}, ${width}u);`);
      continue;
    }
    // Others change other bits of the word at the same time: clear ours, then set ours.
    const name = scribe.names.fresh('offset');
    scribe.line(`let ${name} = ${offset};`);
    scribe.line(`atomicAnd(&${word}, ~(${packed === 2 ? '0xffffu' : '0xffu'} << ${name}));`);
    scribe.line(`atomicOr(&${word}, ${bits} << ${name});`);
  }
}

/**
 * An index that is a multiple of `by`, divided by it; the factor is cancelled where it can be seen.
 */
function quotient(scribe: WgslScribe, value: Value, by: 1 | 2 | 4): Term {
  const divided = divideExactly(value, by);
  return divided === undefined ? shifted(scribe.value(value), by) : scribe.value(divided);
}

/** The word that the first of several elements lies in, as a text that may be written twice. */
function firstWord(scribe: WgslScribe, index: Value, packed: 1 | 2 | 4): Term {
  return divideExactly(index, packed) === undefined
    ? shifted(scribe.atom(index, 'at'), packed)
    : quotient(scribe, index, packed);
}

function divideExactly(value: Value, by: number): Value | undefined {
  if (value.kind === 'constant')
    return value.value % by === 0 ? { ...value, value: value.value / by } : undefined;
  if (value.kind !== 'op') return undefined;
  const [a, b] = value.args;
  if (value.op === 'mul') {
    const right = divideExactly(b!, by);
    if (right !== undefined)
      return right.kind === 'constant' && right.value === 1 ? a! : { ...value, args: [a!, right] };
    const left = divideExactly(a!, by);
    return left === undefined ? undefined : { ...value, args: [left, b!] };
  }
  if (value.op === 'add') {
    const [left, right] = [divideExactly(a!, by), divideExactly(b!, by)];
    return left === undefined || right === undefined ? undefined : { ...value, args: [left, right] };
  }
  return undefined;
}

function plus(index: Term, offset: number): Term {
  if (offset === 0) return index;
  if (/^\d+$/.test(index.text)) return primary(String(Number(index.text) + offset));
  return infix('+', index, primary(String(offset)));
}

/** index / by, for a power of two. */
function shifted(index: Term, by: 1 | 2 | 4): Term {
  return by === 1 ? index : infix('>>', index, primary(`${Math.log2(by)}u`));
}

/** index mod by, for a power of two. */
function masked(index: Term, by: 1 | 2 | 4): Term {
  return infix('&', index, primary(String(by - 1)));
}
