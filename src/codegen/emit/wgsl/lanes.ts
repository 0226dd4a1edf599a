// Loop → Loop: integers of 64 bits one by one. In WGSL such an integer is a vector already, of its
// two words, so vectors of them become a variable for each lane, and what is computed of them is
// computed lane by lane.

import { isWide } from '../../../ir/dtype.ts';
import { addInts, constant, operandsOf, withOperands } from '../../loop/builder.ts';
import type { Loop, Stmt, Value } from '../../loop/loop.ts';
import { declaredIn, rewritten, statementsIn, valuesOf } from '../../loop/walk.ts';

const isWideVector = ({ type, width }: Value): boolean => width > 1 && isWide(type);

/** Whether a value, or a part of it, is a vector of 64-bit integers. */
const hasWideVector = (value: Value): boolean => isWideVector(value) || operandsOf(value).some(hasWideVector);

/** The Loop without vectors of 64-bit integers. */
export function splitWideVectors(loop: Loop): Loop {
  for (const stmt of statementsIn(loop.body))
    if (valuesOf(stmt).some(hasWideVector)) return { ...loop, body: new Splitting(loop).body(loop.body) };
  return loop;
}

type Variable = Extract<Value, { kind: 'variable' }>;

class Splitting {
  readonly #taken: Set<string>;
  /** The variables of the lanes of each vector. */
  readonly #split = new Map<string, readonly Variable[]>();
  /** What must come before the statement at hand. */
  #before: Stmt[] = [];

  constructor(loop: Loop) {
    this.#taken = new Set(loop.buffers.map(({ name }) => name));
    for (const name of declaredIn(loop.body)) this.#taken.add(name);
  }

  body(body: readonly Stmt[]): readonly Stmt[] {
    return body.flatMap((stmt) => {
      const around = this.#before;
      this.#before = [];
      const made = this.#stmt(stmt);
      const before = this.#before;
      this.#before = around;
      return [...before, ...made];
    });
  }

  #stmt(stmt: Stmt): readonly Stmt[] {
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        if (!isWideVector(stmt.value)) return [{ ...stmt, value: this.#whole(stmt.value) }];
        const { kind } = stmt;
        const values = this.#lanes(stmt.value);
        const names = values.map((_, i) => this.#name(`${stmt.name}_${'xyzw'[i]}`));
        this.#split.set(
          stmt.name,
          values.map((value, i) => variable(names[i]!, value)),
        );
        return values.map((value, i) => ({ kind, name: names[i]!, value }));
      }
      case 'assign': {
        const lanes = this.#split.get(stmt.name);
        if (lanes === undefined) return [{ ...stmt, value: this.#whole(stmt.value) }];
        const values = this.#lanes(stmt.value);
        // A lane may be assigned at once where no other reads what it was.
        const isApart = values.every((value, i) =>
          lanes.every((lane, j) => i === j || !mentions(value, lane.name)),
        );
        const settled = isApart ? values : values.map((value) => this.#copy(value, stmt.name));
        return lanes.map(({ name }, i) => ({ kind: 'assign', name, value: settled[i]! }));
      }
      case 'store': {
        if (!isWideVector(stmt.value))
          return [{ ...stmt, index: this.#whole(stmt.index), value: this.#whole(stmt.value) }];
        const index = this.#let(this.#whole(stmt.index), 'at');
        // All is read before the first is written.
        const values = this.#lanes(stmt.value).map((value) =>
          loads(value) ? this.#let(value, 'lane') : value,
        );
        return values.map((value, i) => ({ ...stmt, index: addInts(index, constant(i)), value }));
      }
      default:
        return [rewritten(stmt, { value: (value) => this.#whole(value), body: (body) => this.body(body) })];
    }
  }

  /** A value that is no such vector, its parts lane by lane where they are. */
  #whole(value: Value): Value {
    if (!hasWideVector(value)) return value;
    if (value.kind === 'lane' && isWideVector(value.arg)) return this.#lanes(value.arg)[value.lane]!;
    if (value.kind === 'op' && value.width > 1 && value.args.some(isWideVector))
      return { kind: 'vector', args: this.#lanes(value), type: value.type, width: value.width };
    return withOperands(
      value,
      operandsOf(value).map((operand) => this.#whole(operand)),
    );
  }

  /** The lanes of a vector. */
  #lanes(value: Value): readonly Value[] {
    const { type, width } = value;
    const each = (make: (lane: number) => Value): Value[] => Array.from({ length: width }, (_, i) => make(i));
    if (value.kind === 'constant') return each(() => ({ ...value, width: 1 }));
    if (value.kind === 'vector') return value.args.map((arg) => this.#whole(arg));
    if (value.kind === 'splat') {
      const arg = this.#let(this.#whole(value.arg), 'every');
      return each(() => arg);
    }
    if (value.kind === 'op' && (isWide(type) || value.args.some(isWideVector))) {
      const args = value.args.map((arg) => this.#lanes(arg));
      return each((lane) => ({ ...value, args: args.map((arg) => arg[lane]!), width: 1 }));
    }
    if (value.kind === 'load' && isWide(type)) {
      const index = this.#let(this.#whole(value.index), 'at');
      return each((lane) => ({
        ...value,
        index: addInts(index, constant(lane)),
        aligned: true,
        width: 1,
      }));
    }
    const split = value.kind === 'variable' ? this.#split.get(value.name) : undefined;
    if (split !== undefined) return split;
    // Of other types: computed whole.
    const arg = this.#let(this.#whole(value), 'whole');
    return each((lane) => ({ kind: 'lane', arg, lane, type, width: 1 }));
  }

  /** A value under a name, computed before the statement at hand. */
  #let(value: Value, hint: string): Value {
    return value.kind === 'variable' || value.kind === 'constant' ? value : this.#copy(value, hint);
  }

  /** What a value is before the statement at hand, whatever that does to variables. */
  #copy(value: Value, hint: string): Value {
    const name = this.#name(hint);
    this.#before.push({ kind: 'let', name, value });
    return variable(name, value);
  }

  #name(hint: string): string {
    let name = hint;
    for (let i = 1; this.#taken.has(name); i++) name = `${hint}_${i}`;
    this.#taken.add(name);
    return name;
  }
}

function variable(name: string, { type, width }: Value): Variable {
  return { kind: 'variable', name, type, width };
}

function mentions(value: Value, name: string): boolean {
  return (
    (value.kind === 'variable' && value.name === name) ||
    operandsOf(value).some((part) => mentions(part, name))
  );
}

function loads(value: Value): boolean {
  return value.kind === 'load' || operandsOf(value).some(loads);
}
