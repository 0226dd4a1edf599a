// Running pointers (strength reduction). In an innermost loop, an element whose index grows by the same
// number in every iteration is reached through a local that holds its address and grows with it. Neighbours
// share one pointer, at offsets that the instruction holds.

import { addInts, constant, mulInts, operandsOf } from '../../../loop/builder.ts';
import type { Stmt, Value } from '../../../loop/loop.ts';
import { bodiesOf, statementsIn, valuesOf } from '../../../loop/walk.ts';
import type { For } from './outline.ts';

/** A load or a store of the loop's body. */
export type Access = Extract<Value, { kind: 'load' }> | Extract<Stmt, { kind: 'store' }>;

/** An address in elements of a buffer: `first` in the first turn, `step` more every turn. */
export interface Pointer {
  readonly buffer: string;
  readonly first: Value;
  readonly step: number;
}

export interface PointerPlan {
  readonly pointers: readonly Pointer[];
  /** Which pointer reaches an access, and how many elements behind it. */
  readonly places: ReadonlyMap<Access, { readonly pointer: number; readonly offset: number }>;
  /** Names that only the indices of replaced accesses read. */
  readonly unused: ReadonlySet<string>;
}

/** Locals that a loop's pointers take at most. */
const mostPointers = 8;

/** base + factor·counter + offset */
interface Affine {
  readonly base: ReadonlyMap<string, { readonly factor: number; readonly value: Value }>;
  readonly factor: number;
  readonly offset: number;
}

interface Found {
  readonly access: Access;
  /** Over what the body can name. */
  readonly index: Affine;
  /** Over what names around the loop stand for: by it, accesses that differ by a number are known. */
  readonly whole: Affine;
  /** Whether every turn gets there. */
  readonly always: boolean;
}

/** What names of a Loop stand for. */
export interface Definitions {
  readonly lets: ReadonlyMap<string, Value>;
  /** Names whose values may change, and those that stand for several. */
  readonly mutable: ReadonlyMap<string, undefined>;
}

const nothing: Definitions = { lets: new Map(), mutable: new Map() };

/** What every name that the body defines stands for. */
export function definitionsOf(body: readonly Stmt[]): Definitions {
  const found = new Map<string, Value | undefined>();
  define(body, found);
  const lets = new Map<string, Value>();
  const mutable = new Map<string, undefined>();
  for (const [name, value] of found) {
    if (value === undefined) mutable.set(name, undefined);
    else lets.set(name, value);
  }
  return { lets, mutable };
}

/**
 * The pointers of an innermost loop, where names around it stand for what `outer` says; undefined
 * where there are none.
 */
export function pointersOf(loop: For, outer: Definitions = nothing): PointerPlan | undefined {
  const inside = new Map<string, Value | undefined>([[loop.name, undefined]]);
  define(loop.body, inside);
  const affine = (value: Value): Affine | undefined => affineOf(value, loop.name, inside);
  const known = new Map<string, Affine>();
  const expanded = ({ base, factor, offset }: Affine): Affine => {
    let all: Affine = { base: new Map(), factor, offset };
    for (const [name, term] of base) all = sum(all, scaled(resolve(name, term.value), term.factor), 1);
    return all;
  };
  const resolve = (name: string, value: Value): Affine => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const definition = value.kind === 'variable' ? outer.lets.get(name) : undefined;
    const of = definition && affineOf(definition, loop.name, outer.mutable);
    const found = of === undefined ? atom(name, value) : expanded(of);
    known.set(name, found);
    return found;
  };
  const found: Found[] = [];
  const visitValue = (value: Value, always: boolean): void => {
    operandsOf(value).forEach((operand) => visitValue(operand, always));
    if (value.kind === 'load') note(value, value.index, always);
  };
  const note = (access: Access, at: Value, always: boolean): void => {
    const index = affine(at);
    if (index !== undefined && !found.some((one) => one.access === access))
      found.push({ access, index, whole: expanded(index), always });
  };
  const visit = (body: readonly Stmt[], always: boolean): void => {
    for (const stmt of body) {
      for (const value of valuesOf(stmt)) visitValue(value, always);
      if (stmt.kind === 'store') note(stmt, stmt.index, always);
      for (const inner of bodiesOf(stmt)) visit(inner, false);
    }
  };
  visit(loop.body, true);
  const pointers: (Pointer & { readonly key: string; readonly offset: number })[] = [];
  const places = new Map<Access, { readonly pointer: number; readonly offset: number }>();
  // An offset must not be negative, and a pointer not lie before all memory: the lowest that every
  // turn reaches comes first.
  const ordered = found.toSorted(
    (a, b) => Number(b.always) - Number(a.always) || a.whole.offset - b.whole.offset,
  );
  for (const { access, index, whole } of ordered) {
    const terms = [...whole.base].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const key = [
      access.buffer,
      whole.factor,
      ...terms.map(([name, { factor }]) => `${factor}*${name}`),
    ].join();
    let pointer = pointers.findIndex((one) => one.key === key && one.offset <= whole.offset);
    if (pointer < 0) {
      if (pointers.length === mostPointers) return undefined;
      const base = [...index.base.values()].map(({ factor, value }) => mulInts(value, constant(factor)));
      const started = [...base, mulInts(loop.start, constant(index.factor)), constant(index.offset)];
      pointer = pointers.length;
      pointers.push({
        key,
        buffer: access.buffer,
        offset: whole.offset,
        first: started.reduce(addInts),
        step: index.factor * loop.step,
      });
    }
    places.set(access, { pointer, offset: whole.offset - pointers[pointer]!.offset });
  }
  if (pointers.length === 0) return undefined;
  return { pointers, places, unused: unusedIn(loop, places) };
}

/**
 * What is defined in the body, by name; vars, and what is assigned, have no definition that holds.
 */
function define(body: readonly Stmt[], inside: Map<string, Value | undefined>): void {
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'let') inside.set(stmt.name, inside.has(stmt.name) ? undefined : stmt.value);
    if (stmt.kind === 'var' || stmt.kind === 'assign') inside.set(stmt.name, undefined);
  }
}

function affineOf(
  value: Value,
  counter: string,
  inside: ReadonlyMap<string, Value | undefined>,
): Affine | undefined {
  const of = (inner: Value): Affine | undefined => affineOf(inner, counter, inside);
  if (value.kind === 'constant') return { base: new Map(), factor: 0, offset: value.value };
  if (value.kind === 'variable') {
    if (value.name === counter) return { base: new Map(), factor: 1, offset: 0 };
    if (!inside.has(value.name)) return atom(value.name, value);
    const definition = inside.get(value.name);
    return definition === undefined ? undefined : of(definition);
  }
  if (value.kind === 'builtin') return atom(`${value.of}.${value.axis}`, value);
  if (value.kind !== 'op') return undefined;
  const [a, b] = value.args.map(of);
  switch (value.op) {
    case 'add':
      return a && b && sum(a, b, 1);
    case 'sub':
      return a && b && sum(a, b, -1);
    case 'neg':
      return a && scaled(a, -1);
    case 'mul':
      if (a && b && isConstant(b)) return scaled(a, b.offset);
      return a && b && isConstant(a) ? scaled(b, a.offset) : undefined;
    case 'shl':
      return a && b && isConstant(b) ? scaled(a, 2 ** b.offset) : undefined;
    default:
      return undefined;
  }
}

const atom = (key: string, value: Value): Affine => {
  return { base: new Map([[key, { factor: 1, value }]]), factor: 0, offset: 0 };
};

const isConstant = ({ base, factor }: Affine): boolean => base.size === 0 && factor === 0;

function scaled({ base, factor, offset }: Affine, by: number): Affine {
  const terms = [...base].map(([key, term]) => [key, { ...term, factor: term.factor * by }] as const);
  return { base: new Map(terms), factor: factor * by, offset: offset * by };
}

function sum(a: Affine, b: Affine, sign: number): Affine {
  const base = new Map(a.base);
  for (const [key, { factor, value }] of scaled(b, sign).base)
    base.set(key, { factor: factor + (base.get(key)?.factor ?? 0), value });
  for (const [key, { factor }] of base) if (factor === 0) base.delete(key);
  return { base, factor: a.factor + sign * b.factor, offset: a.offset + sign * b.offset };
}

/** Names of `let`s that only indices of accesses with pointers lead to. */
function unusedIn({ body }: For, places: PointerPlan['places']): ReadonlySet<string> {
  const lets: Extract<Stmt, { kind: 'let' }>[] = [];
  const used = new Set<string>();
  const read = (value: Value): void => {
    if (value.kind === 'variable') used.add(value.name);
    if (value.kind === 'load' && places.has(value)) return;
    operandsOf(value).forEach(read);
  };
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'let') lets.push(stmt);
    else if (stmt.kind === 'store' && places.has(stmt)) read(stmt.value);
    else valuesOf(stmt).forEach(read);
  }
  // Users come after what they use.
  for (const { name, value } of lets.toReversed()) if (used.has(name)) read(value);
  return new Set(lets.map(({ name }) => name).filter((name) => !used.has(name)));
}
