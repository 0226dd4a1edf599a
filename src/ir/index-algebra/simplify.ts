// Arithmetic of index expressions, simplified as it is built. Quotient and remainder by a constant
// are found together, so that `x = d·(x // d) + x % d` can always be read backwards: this is what
// turns the index map of a reshape and its inverse back into the plain axes. `//` and `%` round
// down; every law stands beside the code that uses it.

import { CompilerBug } from '../../errors.ts';
import {
  atomsOf,
  boundsOf,
  constantIndex,
  floorDiv,
  floorMod,
  internDiv,
  internMod,
  internSum,
  offsetOf,
  printIndex,
  termsOf,
  type Atom,
  type IndexExpr,
  type IndexTerm,
} from './node.ts';

/** A sum under construction. */
interface Sum {
  readonly factors: Map<Atom, number>;
  offset: number;
}

/** Adds `factor · e`. */
function accumulate(sum: Sum, e: IndexExpr, factor: number): void {
  switch (e.kind) {
    case 'const':
      sum.offset += factor * e.value;
      return;
    case 'sum':
      sum.offset += factor * e.offset;
      for (const term of e.terms) addTerm(sum, term.atom, factor * term.factor);
      return;
    default:
      addTerm(sum, e, factor);
  }
}

function addTerm(sum: Sum, atom: Atom, factor: number): void {
  const total = (sum.factors.get(atom) ?? 0) + factor;
  if (!Number.isSafeInteger(total))
    throw new CompilerBug('index', `factor leaves the safe integers: ${total}`, printIndex(atom));
  if (total === 0) sum.factors.delete(atom);
  else sum.factors.set(atom, total);
}

function finish(sum: Sum): IndexExpr {
  while (recombine(sum));
  return internSum(sum.factors, sum.offset + 0);
}

/** Σ factor·e over the pairs, simplified once at the end. */
export function weightedSum(parts: Iterable<readonly [factor: number, e: IndexExpr]>, offset = 0): IndexExpr {
  const sum: Sum = { factors: new Map(), offset };
  for (const [factor, e] of parts) if (factor !== 0) accumulate(sum, e, factor);
  return finish(sum);
}

/** p·a + q·b */
function combine(p: number, a: IndexExpr, q: number, b: IndexExpr): IndexExpr {
  const sum: Sum = { factors: new Map(), offset: 0 };
  accumulate(sum, a, p);
  accumulate(sum, b, q);
  return finish(sum);
}

/** a + b */
export function addIndex(a: IndexExpr, b: IndexExpr): IndexExpr {
  return combine(1, a, 1, b);
}

/** a − b */
export function subIndex(a: IndexExpr, b: IndexExpr): IndexExpr {
  return combine(1, a, -1, b);
}

/** a · factor */
export function scaleIndex(a: IndexExpr, factor: number): IndexExpr {
  return factor === 1 ? a : weightedSum([[factor, a]]);
}

/** a + n */
export function offsetIndex(a: IndexExpr, n: number): IndexExpr {
  return n === 0 ? a : weightedSum([[1, a]], n);
}

/** ⌊a / by⌋ for a positive constant. */
export function divIndex(a: IndexExpr, by: number): IndexExpr {
  return divMod(a, by).quotient;
}

/** a − by·⌊a / by⌋ for a positive constant: 0 ≤ value < by. */
export function modIndex(a: IndexExpr, by: number): IndexExpr {
  return divMod(a, by).remainder;
}

/**
 * Replaces axes and run-time values and simplifies again. What replaces a leaf must stay within the
 * leaf's bounds wherever the result is used, because e may have been simplified by them.
 */
export function substitute(e: IndexExpr, map: ReadonlyMap<IndexExpr, IndexExpr>): IndexExpr {
  // x // d and x % d share x: without this map, nesting costs 2^depth.
  const made = new Map<IndexExpr, IndexExpr>();
  const visit = (x: IndexExpr): IndexExpr => {
    if (x.kind === 'axis' || x.kind === 'dynamic') return map.get(x) ?? x;
    if (!atomsOf(x).some((leaf) => map.has(leaf))) return x;
    let out = made.get(x);
    if (out === undefined) made.set(x, (out = rebuild(x)));
    return out;
  };
  const rebuild = (x: IndexExpr): IndexExpr => {
    if (x.kind === 'div') return divIndex(visit(x.of), x.by);
    if (x.kind === 'mod') return modIndex(visit(x.of), x.by);
    return weightedSum(
      termsOf(x).map(({ factor, atom }) => [factor, visit(atom)] as const),
      offsetOf(x),
    );
  };
  return visit(e);
}

// ---- division ------------------------------------------------------------

interface DivMod {
  readonly quotient: IndexExpr;
  readonly remainder: IndexExpr;
}

const divisions = new WeakMap<IndexExpr, Map<number, DivMod>>();

function divMod(e: IndexExpr, by: number): DivMod {
  if (!Number.isSafeInteger(by) || by <= 0)
    throw new CompilerBug('index', `division by ${by}`, printIndex(e));
  if (by === 1) return { quotient: e, remainder: constantIndex(0) };
  let known = divisions.get(e);
  if (known === undefined) divisions.set(e, (known = new Map()));
  let result = known.get(by);
  if (result === undefined) {
    const { quotient, remainder } = splitInterval(e, by) ??
      splitMultiples(e, by) ??
      splitDivisor(e, by) ?? { quotient: quotientOf(e, by), remainder: remainderOf(e, by) };
    result = {
      quotient: staysIn(e, quotient) ? quotient : internDiv(e, by),
      remainder: staysIn(e, remainder) ? remainder : internMod(e, by),
    };
    known.set(by, result);
  }
  return result;
}

// q·d ≤ e < (q+1)·d  ⇒  e // d = q,  e % d = e − q·d
function splitInterval(e: IndexExpr, d: number): DivMod | undefined {
  const q = floorDiv(e.lo, d);
  if (q !== floorDiv(e.hi, d)) return undefined;
  return { quotient: constantIndex(q), remainder: offsetIndex(e, -q * d) };
}

// (d·q + r) // d = q + r // d, (d·q + r) % d = r % d. Factors split towards 0, so that q and r grow
// together and their bounds stay tight; the offset of r is the least that is ≥ 0 and keeps r ≥ 0,
// so kernels divide no negative number.
function splitMultiples(e: IndexExpr, d: number): DivMod | undefined {
  const multiples: Sum = { factors: new Map(), offset: 0 };
  const rest: IndexTerm[] = [];
  for (const { factor, atom } of termsOf(e)) {
    const part = factor % d;
    if (part !== factor) multiples.factors.set(atom, (factor - part) / d);
    if (part !== 0) rest.push({ factor: part, atom });
  }
  let offset = floorMod(offsetOf(e), d);
  const [lo] = boundsOf(rest, offset);
  if (lo < 0) offset -= d * floorDiv(lo, d);
  multiples.offset = (offsetOf(e) - offset) / d;
  if (multiples.factors.size === 0 && multiples.offset === 0) return undefined;
  const { quotient, remainder } = divMod(sumOf(rest, offset), d);
  accumulate(multiples, quotient, 1);
  return { quotient: finish(multiples), remainder };
}

// g | d, 0 ≤ s < g  ⇒  (g·y + s) // d = y // (d/g),  (g·y + s) % d = g·(y % (d/g)) + s
function splitDivisor(e: IndexExpr, d: number): DivMod | undefined {
  const split = splitRadix(e, d);
  if (split === undefined) return undefined;
  const { quotient, remainder } = divMod(split.high, d / split.radix);
  return { quotient, remainder: combine(split.radix, remainder, 1, split.low) };
}

/** `e = radix·high + low` with 0 ≤ low < radix. */
export interface RadixSplit {
  readonly radix: number;
  readonly high: IndexExpr;
  readonly low: IndexExpr;
}

/**
 * Splits e at the largest radix > 1 that divides `modulus` (0: any), keeps whole terms, and is
 * accepted, given the greatest value of `low`.
 */
export function splitRadix(
  e: IndexExpr,
  modulus: number,
  accepts: (radix: number, most: number) => boolean = () => true,
): RadixSplit | undefined {
  // Terms come by falling factor. `low` may hold no factor ≥ radix, so `high` is a prefix and the
  // radix its gcd.
  const terms = termsOf(e);
  const offset = offsetOf(e);
  let radix = modulus;
  let { lo, hi } = e;
  for (let i = 0; i < terms.length; i++) {
    const { factor, atom } = terms[i]!;
    radix = gcd(radix, Math.abs(factor));
    if (radix === 1) return undefined;
    lo -= factor * (factor > 0 ? atom.lo : atom.hi);
    hi -= factor * (factor > 0 ? atom.hi : atom.lo);
    const carry = floorDiv(lo, radix);
    if (hi - radix * carry >= radix || !accepts(radix, hi - radix * carry)) continue;
    const high = terms.slice(0, i + 1).map((term) => ({ factor: term.factor / radix, atom: term.atom }));
    return { radix, high: sumOf(high, carry), low: sumOf(terms.slice(i + 1), offset - radix * carry) };
  }
  return undefined;
}

/**
 * Laws that multiply must not let an index overflow 32 bits: then the quotient stays unsimplified.
 */
function staysIn(before: IndexExpr, after: IndexExpr): boolean {
  return after.fits || !before.fits;
}

function quotientOf(e: IndexExpr, d: number): IndexExpr {
  // (x % (d·b)) // d = (x // d) % b
  if (e.kind === 'mod' && e.by % d === 0) return modIndex(divIndex(e.of, d), e.by / d);
  // (x // a + r) // d = (x + a·r) // (a·d)
  for (const { factor, atom } of termsOf(e)) {
    if (factor !== 1 || atom.kind !== 'div' || !Number.isSafeInteger(4 * atom.by * (e.hi + d))) continue;
    const joined = divIndex(combine(1, atom.of, atom.by, subIndex(e, atom)), atom.by * d);
    if (staysIn(e, joined)) return joined;
  }
  return internDiv(e, d);
}

function remainderOf(e: IndexExpr, d: number): IndexExpr {
  // d | f·n ⇒ (f·(x % n) + r) % d = (f·x + r) % d, where r has no division, so that the quotient
  // keeps its partner
  const [division, secondDivision] = termsOf(e).filter((term) => isDivision(term.atom));
  if (division?.atom.kind === 'mod' && secondDivision === undefined) {
    const { of, by } = division.atom;
    const { factor } = division;
    const safe = Number.isSafeInteger(4 * (Math.abs(factor) * of.hi + e.hi));
    if ((factor * by) % d === 0 && safe) {
      const freed = modIndex(combine(factor, of, 1, combine(1, e, -factor, division.atom)), d);
      if (staysIn(e, freed)) return freed;
    }
  }
  return internMod(e, d);
}

// ---- recombination ------------------------------------------------------------

/**
 * One step that makes the sum smaller by reading a division backwards; false when there is none.
 */
function recombine(sum: Sum): boolean {
  for (const [atom, factor] of sum.factors) {
    if (atom.kind === 'div') {
      if (factor % atom.by === 0 && twoOfThree(sum, atom.of, atom.by, factor / atom.by)) return true;
    } else if (atom.kind === 'mod') {
      if (twoOfThree(sum, atom.of, atom.by, factor)) return true;
      if (joinRemainders(sum, atom.of, atom.by, factor)) return true;
      for (const { factor: unit, atom: inner } of termsOf(atom.of)) {
        if (unit !== 1 || inner.kind !== 'div' || factor % inner.by !== 0) continue;
        if (joinRemainders(sum, inner.of, inner.by, factor / inner.by)) return true;
      }
    }
  }
  return false;
}

// k·m·(y // m) + k·(y % m) − k·y = 0: where two of the three stand in the sum, the third replaces
// them.
function twoOfThree(sum: Sum, y: IndexExpr, m: number, k: number): boolean {
  const { quotient, remainder } = divMod(y, m);
  const present =
    Number(holdsDivisions(sum.factors, quotient, k * m)) +
    Number(holdsDivisions(sum.factors, remainder, k)) +
    Number(termsOf(y).every((term) => sum.factors.get(term.atom) === -k * term.factor));
  if (present < 2) return false;
  accumulate(sum, quotient, -k * m);
  accumulate(sum, remainder, -k);
  accumulate(sum, y, k);
  return true;
}

// k·(y % m) + k·m·(z % b) = k·((m·z + y % m) % (m·b)), worth it where m·z takes up y % m: y // m
// stands in z
function joinRemainders(sum: Sum, y: IndexExpr, m: number, k: number): boolean {
  const { remainder } = divMod(y, m);
  if (!termsOf(remainder).some((term) => isDivision(term.atom))) return false;
  for (const [upper, factor] of sum.factors) {
    if (upper.kind !== 'mod' || factor !== k * m || !holdsDivisions(sum.factors, remainder, k)) continue;
    if (!Number.isSafeInteger(4 * m * (upper.of.hi + upper.by))) continue;
    const joined = combine(m, upper.of, 1, remainder);
    if (holdsDivisions(factorsOf(joined), remainder, 1)) continue;
    const whole = modIndex(joined, m * upper.by);
    if (!staysIn(upper, whole)) continue;
    accumulate(sum, remainder, -k);
    addTerm(sum, upper, -factor);
    accumulate(sum, whole, k);
    return true;
  }
  return false;
}

function factorsOf(e: IndexExpr): Map<Atom, number> {
  return new Map(termsOf(e).map(({ factor, atom }) => [atom, factor]));
}

/** Whether every div and mod term of `scale · e` stands in the sum with exactly that factor. */
function holdsDivisions(factors: ReadonlyMap<Atom, number>, e: IndexExpr, scale: number): boolean {
  return termsOf(e).every(({ factor, atom }) => !isDivision(atom) || factors.get(atom) === scale * factor);
}

function isDivision(atom: Atom): boolean {
  return atom.kind === 'div' || atom.kind === 'mod';
}

function sumOf(terms: readonly IndexTerm[], offset: number): IndexExpr {
  return weightedSum(
    terms.map(({ factor, atom }) => [factor, atom] as const),
    offset,
  );
}

/** Greatest common divisor of non-negative numbers; gcd(0, n) = n. */
export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
