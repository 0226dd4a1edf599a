// LinearIndices in memory as sums of products with constants, so that it can be said how far apart two of them are. Arithmetic on places
// never leaves 32 bits (Loop IR), so sums may be reordered.

import type { Loop, Value } from '../../../loop/loop.ts';
import { operandsOf } from '../../../loop/builder.ts';
import { printValue } from '../../../loop/print.ts';
import { namesIn, statementsIn } from '../../../loop/walk.ts';

/** What a place is made of but for a constant, as text that is equal for equal sums; and the constant. */
export interface LinearIndex {
  readonly base: string;
  readonly constant: number;
}

interface Sum {
  readonly terms: ReadonlyMap<string, number>;
  readonly constant: number;
}

/** Follows the names of a Loop, of which no two are equal. */
export class LinearIndices {
  readonly #lets = new Map<string, Value>();
  readonly #sums = new Map<string, Sum | undefined>();
  readonly #mutable = new Set<string>();
  readonly #linear = new Map<Value, LinearIndex | undefined>();

  constructor(loop: Loop) {
    for (const stmt of statementsIn(loop.body)) {
      if (stmt.kind === 'let') this.#lets.set(stmt.name, stmt.value);
      if (stmt.kind === 'var') this.#mutable.add(stmt.name);
      for (const name of namesIn(stmt, 'assigned')) this.#mutable.add(name);
    }
  }

  /** A place; undefined where it depends on a register that changes, or on memory. */
  of(index: Value): LinearIndex | undefined {
    if (this.#linear.has(index)) return this.#linear.get(index);
    const sum = this.#sum(index);
    const found = sum && {
      base: [...sum.terms]
        .filter(([, by]) => by !== 0)
        .map(([atom, by]) => `${by}*${atom}`)
        .toSorted()
        .join('+'),
      constant: sum.constant,
    };
    this.#linear.set(index, found);
    return found;
  }

  #sum(value: Value): Sum | undefined {
    if (value.type !== 'i32' || value.width !== 1) return undefined;
    switch (value.kind) {
      case 'constant':
        return { terms: new Map(), constant: value.value };
      case 'variable':
        return this.#named(value.name);
      case 'op': {
        if (value.wraps === true) return this.#atom(value);
        const [a, b] = value.args.map((arg) => this.#sum(arg));
        if (value.op === 'add' && a && b) return plus(a, b, 1);
        if (value.op === 'sub' && a && b) return plus(a, b, -1);
        if (value.op === 'neg' && a) return times(a, -1);
        if (value.op === 'mul' && a && b) {
          if (b.terms.size === 0) return times(a, b.constant);
          if (a.terms.size === 0) return times(b, a.constant);
        }
        return this.#atom(value);
      }
      case 'builtin':
      case 'subgroup':
      case 'scalar':
        return this.#atom(value);
      case 'load':
      case 'vector':
      case 'splat':
      case 'lane':
        return undefined;
      default:
        return value satisfies never;
    }
  }

  #named(name: string): Sum | undefined {
    if (this.#mutable.has(name)) return undefined;
    if (!this.#sums.has(name)) {
      const value = this.#lets.get(name);
      const whole = { terms: new Map([[name, 1]]), constant: 0 };
      this.#sums.set(name, whole);
      this.#sums.set(
        name,
        (value?.kind === 'op' || value?.kind === 'variable' ? this.#inside(value) : undefined) ?? whole,
      );
    }
    return this.#sums.get(name);
  }

  /** What a name stands for; undefined where the name says as much. */
  #inside(value: Value): Sum | undefined {
    const sum = this.#sum(value);
    const isAtom = value.kind === 'op' && sum?.terms.size === 1 && sum.terms.has(printValue(value));
    return isAtom ? undefined : sum;
  }

  #atom(value: Value): Sum | undefined {
    return this.#isFixed(value) ? { terms: new Map([[printValue(value), 1]]), constant: 0 } : undefined;
  }

  #isFixed(value: Value): boolean {
    if (value.kind === 'load') return false;
    if (value.kind === 'variable') return !this.#mutable.has(value.name);
    return operandsOf(value).every((operand) => this.#isFixed(operand));
  }
}

function plus(a: Sum, b: Sum, by: 1 | -1): Sum {
  const terms = new Map(a.terms);
  for (const [atom, count] of b.terms) terms.set(atom, (terms.get(atom) ?? 0) + by * count);
  for (const [atom, count] of terms) if (count === 0) terms.delete(atom);
  return { terms, constant: a.constant + by * b.constant };
}

function times(sum: Sum, by: number): Sum {
  if (by === 0) return { terms: new Map(), constant: 0 };
  return {
    terms: new Map([...sum.terms].map(([atom, count]) => [atom, count * by])),
    constant: sum.constant * by,
  };
}
