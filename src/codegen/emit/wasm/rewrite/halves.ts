// Loop → Loop: splits vectors of four 64-bit lanes, which a v128 cannot hold, into two vectors of
// two, and scalars made of them into one of their lanes. The emitters then see only vectors that
// fit into a v128.

import { addInts, constant, operandsOf, withOperands } from '../../../loop/builder.ts';
import type { Loop, Stmt, Value, Width } from '../../../loop/loop.ts';
import { isTooWide, needsHalving } from '../registers.ts';
import { declaredIn, rewritten } from '../../../loop/walk.ts';

type Halves = readonly [low: Value, high: Value];

/** The Loop without vectors of four lanes of 64 bits. */
export function halveVectors(loop: Loop): Loop {
  return { ...loop, body: new Halving(loop).body(loop.body) };
}

function lane(arg: Value, at: number): Value {
  return { kind: 'lane', arg, lane: at, type: arg.type, width: 1 };
}

function vector(args: readonly Value[]): Value {
  return { kind: 'vector', args, type: args[0]!.type, width: args.length as Width };
}

const isNamed = ({ kind }: Value): boolean => kind === 'variable' || kind === 'constant';

class Halving {
  readonly #taken: Set<string>;
  readonly #halved = new Map<string, Halves>();
  /** What must come before the statement at hand. */
  #before: Stmt[] = [];

  constructor(loop: Loop) {
    this.#taken = new Set(loop.buffers.map(({ name }) => name));
    for (const name of declaredIn(loop.body)) this.#taken.add(name);
  }

  body(body: readonly Stmt[]): readonly Stmt[] {
    return body.flatMap((stmt) => {
      const made = this.#stmt(stmt);
      const before = this.#before;
      this.#before = [];
      return [...before, ...made];
    });
  }

  #stmt(stmt: Stmt): readonly Stmt[] {
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        if (!isTooWide(stmt.value)) return [{ ...stmt, value: this.#whole(stmt.value) }];
        const { kind } = stmt;
        const parts = this.#halves(stmt.value).map((value, half) => {
          const name = this.#name(`${stmt.name}_${half === 0 ? 'low' : 'high'}`);
          return { stmt: { kind, name, value } as const, variable: variableOf(name, value) };
        });
        this.#halved.set(stmt.name, [parts[0]!.variable, parts[1]!.variable]);
        return parts.map((part) => part.stmt);
      }
      case 'assign': {
        const halves = this.#halved.get(stmt.name);
        if (halves === undefined) return [{ ...stmt, value: this.#whole(stmt.value) }];
        // Either half may read the old value of the other.
        const values = this.#halves(stmt.value).map((value) => this.#let(value, stmt.name));
        return halves.flatMap((half, i): Stmt[] =>
          half.kind === 'variable' ? [{ kind: 'assign', name: half.name, value: values[i]! }] : [],
        );
      }
      case 'store': {
        if (!isTooWide(stmt.value))
          return [{ ...stmt, index: this.#whole(stmt.index), value: this.#whole(stmt.value) }];
        const index = this.#let(this.#whole(stmt.index), 'at');
        const values = this.#halves(stmt.value).map((value) => this.#let(value, 'half'));
        return values.map((value, i): Stmt => ({ ...stmt, index: addInts(index, constant(2 * i)), value }));
      }
      default:
        return [
          rewritten(stmt, { value: (value) => this.#whole(value), body: (body) => this.#inside(body) }),
        ];
    }
  }

  /** A body inside the statement at hand. */
  #inside(body: readonly Stmt[]): readonly Stmt[] {
    const before = this.#before;
    this.#before = [];
    const made = this.body(body);
    this.#before = before;
    return made;
  }

  /** A value that fits, its parts in halves where they do not. */
  #whole(value: Value): Value {
    if (!needsHalving(value)) return value;
    if (value.kind === 'lane') {
      if (!isTooWide(value.arg)) return { ...value, arg: this.#whole(value.arg) };
      return lane(this.#halves(value.arg)[value.lane >> 1]!, value.lane & 1);
    }
    if (value.kind === 'op' && value.width === 4 && value.op !== 'philox') {
      const [low, high] = this.#halves(value).map((half) => this.#let(half, 'half')) as [Value, Value];
      return vector([lane(low, 0), lane(low, 1), lane(high, 0), lane(high, 1)]);
    }
    return withOperands(
      value,
      operandsOf(value).map((operand) => this.#whole(operand)),
    );
  }

  /** A vector of four lanes as two of two. */
  #halves(value: Value): Halves {
    // What is not of 64 bits is computed whole, where it can be.
    if (!needsHalving(value) && value.kind !== 'constant' && value.kind !== 'splat') {
      const named = this.#let(value, 'whole');
      return [vector([lane(named, 0), lane(named, 1)]), vector([lane(named, 2), lane(named, 3)])];
    }
    const both = (make: (half: 0 | 1) => Value): Halves => [make(0), make(1)];
    switch (value.kind) {
      case 'constant':
        return both(() => ({ ...value, width: 2 }));
      case 'variable': {
        const halves = this.#halved.get(value.name);
        return halves ?? both((half) => vector([lane(value, 2 * half), lane(value, 2 * half + 1)]));
      }
      case 'op': {
        const args = value.args.map((arg) => this.#halves(arg));
        return both((half) => ({ ...value, args: args.map((arg) => arg[half]), width: 2 }));
      }
      case 'load': {
        const index = this.#let(this.#whole(value.index), 'at');
        return both((half) => ({ ...value, index: addInts(index, constant(2 * half)), width: 2 }));
      }
      case 'vector': {
        const args = value.args.map((arg) => this.#whole(arg));
        return both((half) => vector(args.slice(2 * half, 2 * half + 2)));
      }
      case 'splat': {
        const arg = this.#let(this.#whole(value.arg), 'every');
        return both(() => ({ ...value, arg, width: 2 }));
      }
      case 'builtin':
      case 'subgroup':
      case 'scalar':
      case 'lane':
        // These have one lane.
        return [value, value];
      default:
        return value satisfies never;
    }
  }

  /** A value under a name, computed before the statement at hand. */
  #let(value: Value, hint: string): Value {
    if (isNamed(value) && !(value.kind === 'variable' && this.#halved.has(value.name))) return value;
    const name = this.#name(hint);
    this.#before.push({ kind: 'let', name, value });
    return variableOf(name, value);
  }

  #name(hint: string): string {
    let name = hint;
    for (let i = 1; this.#taken.has(name); i++) name = `${hint}_${i}`;
    this.#taken.add(name);
    return name;
  }
}

function variableOf(name: string, { type, width }: Value): Value {
  return { kind: 'variable', name, type, width };
}
