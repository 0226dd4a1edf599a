// The values of the index algebra: integers that say where a kernel reads or writes, as functions
// of its loop axes. Nodes are hash-consed, so structural equality is `===`, and each carries its
// inclusive bounds. In: the parts of a node already in canonical form (index-algebra/simplify.ts
// brings them there). Out: the one node made of those parts.

import { CompilerBug } from '../../errors.ts';

interface Bounded {
  /** Inclusive bounds of the value over all values of its leaves; tight for linear forms. */
  readonly lo: number;
  readonly hi: number;
  /**
   * Kernels compute indices in 32 bits: whether every value on the way to this one fits, in
   * whatever order a sum is added up.
   */
  readonly fits: boolean;
  /**
   * Divisions on the way to the value, each as often as it is written out (up to `mostWeight`): the
   * cost of computing the index, and of walking it.
   */
  readonly weight: number;
  /**
   * Unique over the process; identifies the node in interning keys, and determines no visible
   * order.
   */
  readonly id: number;
}

/** A known integer. */
export interface ConstExpr extends Bounded {
  readonly kind: 'const';
  readonly value: number;
}

/** A loop axis: 0 ≤ value < extent. Name and extent together are its identity. */
export interface AxisExpr extends Bounded {
  readonly kind: 'axis';
  readonly name: string;
  readonly extent: number;
}

/** A value read from data at run time, within inclusive bounds. */
export interface DynamicExpr extends Bounded {
  readonly kind: 'dynamic';
  readonly name: string;
}

/** `factor * atom` in a sum; the factor is never 0. */
export interface IndexTerm {
  readonly factor: number;
  readonly atom: Atom;
}

/** `Σ factor·atom + offset`: at least one term, distinct atoms, ordered by `compareTerms`. */
export interface SumExpr extends Bounded {
  readonly kind: 'sum';
  readonly terms: readonly IndexTerm[];
  readonly offset: number;
}

/** `⌊of / by⌋`, by ≥ 2. The operand is never negative, so a truncating division computes it. */
export interface DivExpr extends Bounded {
  readonly kind: 'div';
  readonly of: IndexExpr;
  readonly by: number;
}

/**
 * `of - by·⌊of / by⌋`, by ≥ 2. The operand is never negative, so a truncating remainder computes
 * it.
 */
export interface ModExpr extends Bounded {
  readonly kind: 'mod';
  readonly of: IndexExpr;
  readonly by: number;
}

/** What a kernel supplies values for. */
export type Leaf = AxisExpr | DynamicExpr;
/** What a term multiplies. */
export type Atom = Leaf | DivExpr | ModExpr;
/** An immutable integer expression; equal expressions are the same object. */
export type IndexExpr = ConstExpr | SumExpr | Atom;

// A node lives while it is referenced; its entry is removed when it is garbage-collected.
/**
 * The largest number that an index has on the way to its value: `i32` without its least, so that it
 * can be negated.
 */
export const largestIndex = 2147483647;

/** Weights above this are all counted as this. */
const mostWeight = 2 ** 20;

function inWord(value: number): boolean {
  return value >= -largestIndex && value <= largestIndex;
}

const table = new Map<string, WeakRef<IndexExpr>>();
const collected = new FinalizationRegistry<string>((key) => {
  if (table.get(key)?.deref() === undefined) table.delete(key);
});
let lastId = 0;

function intern<E extends IndexExpr>(key: string, make: (id: number) => E): E {
  const found = table.get(key)?.deref();
  if (found !== undefined) return found as E;
  lastId += 1;
  const made = make(lastId);
  Object.freeze(made);
  if (!Number.isSafeInteger(made.lo) || !Number.isSafeInteger(made.hi))
    throw new CompilerBug(
      'index',
      `values leave the safe integers: ${made.lo}..${made.hi}`,
      printIndex(made),
    );
  table.set(key, new WeakRef(made));
  collected.register(made, key);
  return made;
}

/** The integer itself. */
export function constantIndex(value: number): IndexExpr {
  const it = value + 0; // −0 is 0
  return intern(`${it}`, (id) => ({
    kind: 'const',
    value: it,
    lo: it,
    hi: it,
    fits: inWord(it),
    weight: 0,
    id,
  }));
}

/** A loop axis; an axis of extent 1 is the constant 0. */
export function axisIndex(name: string, extent: number): IndexExpr {
  if (!(extent >= 1)) throw new CompilerBug('index', `axis ${name} needs an extent of at least 1: ${extent}`);
  if (extent === 1) return constantIndex(0);
  return intern(`a${extent} ${name}`, (id) => {
    const hi = extent - 1;
    return { kind: 'axis', name, extent, lo: 0, hi, fits: inWord(hi), weight: 0, id };
  });
}

/** A run-time value within inclusive bounds; with equal bounds it is that constant. */
export function dynamicIndex(name: string, lo: number, hi: number): IndexExpr {
  if (!(lo <= hi)) throw new CompilerBug('index', `${name} has no value: ${lo}..${hi}`);
  if (lo === hi) return constantIndex(lo);
  const fits = inWord(lo) && inWord(hi);
  return intern(`d${lo} ${hi} ${name}`, (id) => ({ kind: 'dynamic', name, lo, hi, fits, weight: 0, id }));
}

/**
 * The node of `Σ factor·atom + offset`, where nothing but order and degenerate cases is left to
 * normalise.
 */
export function internSum(factors: ReadonlyMap<Atom, number>, offset: number): IndexExpr {
  if (factors.size === 0) return constantIndex(offset);
  const terms: IndexTerm[] = [];
  for (const [atom, factor] of factors) terms.push({ factor, atom });
  if (terms.length > 1) terms.sort(compareTerms);
  if (terms.length === 1 && offset === 0 && terms[0]!.factor === 1) return terms[0]!.atom;
  let key = `s${offset}`;
  for (const { factor, atom } of terms) key += ` ${factor}*${atom.id}`;
  return intern(key, (id) => {
    const [lo, hi] = boundsOf(terms, offset);
    const fits = sumFits(terms, offset);
    const weight = Math.min(
      mostWeight,
      terms.reduce((sum, { atom }) => sum + atom.weight, 0),
    );
    return { kind: 'sum', terms: Object.freeze(terms), offset, lo, hi, fits, weight, id };
  });
}

/** Inclusive bounds of `Σ factor·atom + offset`. */
export function boundsOf(terms: readonly IndexTerm[], offset: number): [lo: number, hi: number] {
  let lo = offset;
  let hi = offset;
  for (const { factor, atom } of terms) {
    lo += factor * (factor > 0 ? atom.lo : atom.hi);
    hi += factor * (factor > 0 ? atom.hi : atom.lo);
  }
  return [lo, hi];
}

/**
 * Whether all products, and all sums of some of the terms, fit: a kernel adds those first that
 * change least often.
 */
function sumFits(terms: readonly IndexTerm[], offset: number): boolean {
  let lower = Math.min(0, offset);
  let upper = Math.max(0, offset);
  for (const { factor, atom } of terms) {
    if (!atom.fits || !inWord(factor)) return false;
    const [a, b] = [factor * atom.lo, factor * atom.hi];
    lower += Math.min(0, a, b);
    upper += Math.max(0, a, b);
  }
  return inWord(lower) && inWord(upper);
}

/** The node `⌊of / by⌋`, for an operand that no law of division applies to. */
export function internDiv(of: IndexExpr, by: number): DivExpr {
  const lo = floorDiv(of.lo, by);
  const hi = floorDiv(of.hi, by);
  const fits = of.fits && inWord(by);
  return intern(`/${by} ${of.id}`, (id) => ({ kind: 'div', of, by, lo, hi, fits, weight: heavier(of), id }));
}

function heavier(of: IndexExpr): number {
  return Math.min(mostWeight, 1 + of.weight);
}

/** The node `of mod by`, for an operand that no law of the remainder applies to. */
export function internMod(of: IndexExpr, by: number): ModExpr {
  const fits = of.fits && inWord(by);
  return intern(`%${by} ${of.id}`, (id) => ({
    kind: 'mod',
    of,
    by,
    lo: 0,
    hi: by - 1,
    fits,
    weight: heavier(of),
    id,
  }));
}

/** Quotient rounded towards −∞. */
export function floorDiv(a: number, by: number): number {
  return (a - floorMod(a, by)) / by;
}

/** The remainder in [0, by). */
export function floorMod(a: number, by: number): number {
  const remainder = a % by;
  return remainder < 0 ? remainder + by : remainder + 0;
}

/** The linear terms of any expression; none for a constant. */
export function termsOf(e: IndexExpr): readonly IndexTerm[] {
  if (e.kind === 'sum') return e.terms;
  return e.kind === 'const' ? [] : [{ factor: 1, atom: e }];
}

/** The constant part of the linear form. */
export function offsetOf(e: IndexExpr): number {
  if (e.kind === 'sum') return e.offset;
  return e.kind === 'const' ? e.value : 0;
}

/** Inclusive bounds of the value; sound always, tight when every leaf occurs in one term. */
export function interval(e: IndexExpr): { lo: number; hi: number } {
  return { lo: e.lo, hi: e.hi };
}

/** Large strides first, so that sums read from the outer axis to the inner one. */
function compareTerms(a: IndexTerm, b: IndexTerm): number {
  return Math.abs(b.factor) - Math.abs(a.factor) || b.factor - a.factor || compareIndex(a.atom, b.atom);
}

const kindOrder = { const: 0, axis: 1, dynamic: 2, div: 3, mod: 4, sum: 5 } as const;

/** A total order by structure, the same in every process whatever was made before. */
export function compareIndex(a: IndexExpr, b: IndexExpr): number {
  if (a === b) return 0;
  if (a.kind !== b.kind) return kindOrder[a.kind] - kindOrder[b.kind];
  if ((a.kind === 'axis' || a.kind === 'dynamic') && (b.kind === 'axis' || b.kind === 'dynamic')) {
    if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  }
  if ((a.kind === 'div' || a.kind === 'mod') && (b.kind === 'div' || b.kind === 'mod'))
    return a.by - b.by || compareIndex(a.of, b.of);
  if (a.kind === 'sum' && b.kind === 'sum') {
    if (a.terms.length !== b.terms.length) return a.terms.length - b.terms.length;
    for (let i = 0; i < a.terms.length; i++) {
      const order = compareTerms(a.terms[i]!, b.terms[i]!);
      if (order !== 0) return order;
    }
    return a.offset - b.offset;
  }
  return a.lo - b.lo || a.hi - b.hi;
}

const leaves = new WeakMap<IndexExpr, readonly Leaf[]>();

/** The distinct axes and run-time values that the expression reads. */
export function atomsOf(e: IndexExpr): readonly Leaf[] {
  if (e.kind === 'const') return [];
  if (e.kind === 'axis' || e.kind === 'dynamic') return [e];
  let found = leaves.get(e);
  if (found === undefined) {
    found = e.kind === 'sum' ? [...new Set(e.terms.flatMap((term) => atomsOf(term.atom)))] : atomsOf(e.of);
    leaves.set(e, found);
  }
  return found;
}

/**
 * d e / d atom where e is linear in the atom (0 where it does not occur), undefined where a div or
 * mod holds it.
 */
export function coefficientOf(e: IndexExpr, atom: IndexExpr): number | undefined {
  let coefficient = 0;
  for (const term of termsOf(e)) {
    if (term.atom === atom) coefficient = term.factor;
    else if (holds(term.atom, atom)) return undefined;
  }
  return coefficient;
}

function holds(e: IndexExpr, atom: IndexExpr): boolean {
  if (e === atom) return true;
  if (atom.kind === 'axis' || atom.kind === 'dynamic') return atomsOf(e).includes(atom);
  if (e.kind === 'sum') return e.terms.some((term) => holds(term.atom, atom));
  return (e.kind === 'div' || e.kind === 'mod') && holds(e.of, atom);
}

/** The value for given values of the leaves. */
export function evaluateIndex(e: IndexExpr, env: (atom: Leaf) => number): number {
  switch (e.kind) {
    case 'const':
      return e.value;
    case 'axis':
    case 'dynamic':
      return env(e);
    case 'sum':
      return e.terms.reduce((sum, { factor, atom }) => sum + factor * evaluateIndex(atom, env), e.offset);
    case 'div':
      return floorDiv(evaluateIndex(e.of, env), e.by);
    case 'mod':
      return floorMod(evaluateIndex(e.of, env), e.by);
  }
}

/** What a text calls a leaf. */
export type LeafName = (leaf: Leaf) => string;

/** Readable infix text: `i*128 + j`, `(i*4 + k) / 12`, `7 - i % 8`; `/` rounds down. */
export function printIndex(e: IndexExpr): string {
  return showIndex(e, (leaf) => leaf.name);
}

/** The same, with names for the leaves. */
export function showIndex(e: IndexExpr, name: LeafName): string {
  switch (e.kind) {
    case 'const':
      return String(e.value);
    case 'axis':
    case 'dynamic':
      return name(e);
    case 'div':
      return `${printOperand(e.of, name)} / ${e.by}`;
    case 'mod':
      return `${printOperand(e.of, name)} % ${e.by}`;
    case 'sum':
      return printSum(e, name);
  }
}

function printOperand(e: IndexExpr, name: LeafName): string {
  return e.kind === 'axis' || e.kind === 'dynamic' ? name(e) : `(${showIndex(e, name)})`;
}

function printSum({ terms, offset }: SumExpr, name: LeafName): string {
  const pieces = terms.map(({ factor, atom }) => ({
    sign: factor,
    text: Math.abs(factor) === 1 ? showIndex(atom, name) : `${printOperand(atom, name)}*${Math.abs(factor)}`,
  }));
  // `7 - i` rather than `-i + 7`.
  if (offset > 0 && terms[0]!.factor < 0) pieces.unshift({ sign: 1, text: String(offset) });
  else if (offset !== 0) pieces.push({ sign: offset, text: String(Math.abs(offset)) });
  return pieces
    .map(({ sign, text }, i) =>
      i === 0 ? (sign < 0 ? `-${text}` : text) : `${sign < 0 ? ' - ' : ' + '}${text}`,
    )
    .join('');
}
