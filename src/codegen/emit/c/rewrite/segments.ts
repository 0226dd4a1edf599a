// Stretches of a Loop without control flow, whose statements may be put in another order where nobody can tell: what each of them
// waits for, and the order in which merged statements can follow each other.

import type { Stmt, Value } from '../../../loop/loop.ts';
import { operandsOf } from '../../../loop/builder.ts';
import { bodiesOf, valuesOf } from '../../../loop/walk.ts';
import type { LinearIndices } from './linear.ts';

/** A statement that a stretch has. */
export type PlainStmt = Extract<Stmt, { kind: 'let' | 'var' | 'assign' | 'store' | 'comment' }>;

export function isPlain(stmt: Stmt): stmt is PlainStmt {
  return (
    stmt.kind === 'let' ||
    stmt.kind === 'var' ||
    stmt.kind === 'assign' ||
    stmt.kind === 'store' ||
    stmt.kind === 'comment'
  );
}

/** Statements that follow each other. */
export class Segment {
  readonly stmts: readonly PlainStmt[];
  /** How often it runs, in the measure of costs. */
  readonly weight: number;
  /** The group that each statement is in: a number, negative where it is alone. */
  readonly groups: number[];
  readonly #waits: readonly ReadonlySet<number>[];

  constructor(stmts: readonly PlainStmt[], weight: number, places: LinearIndices) {
    this.stmts = stmts;
    this.weight = weight;
    this.groups = stmts.map(() => -1);
    this.#waits = waitsOf(stmts, places);
  }

  /** The statements in an order that keeps those of a group together, each group as its first member; undefined if there is none. */
  order(): readonly number[] | undefined {
    const members = new Map<number, number[]>();
    this.groups.forEach((group, at) => {
      if (group >= 0) members.set(group, [...(members.get(group) ?? []), at]);
    });
    const order: number[] = [];
    const state = new Map<number, 'open' | 'done'>();
    const visit = (at: number): boolean => {
      const group = this.groups[at]!;
      const all = group < 0 ? [at] : members.get(group)!;
      const first = all[0]!;
      const known = state.get(first);
      if (known !== undefined) return known === 'done';
      state.set(first, 'open');
      for (const member of all)
        for (const before of this.#waits[member]!) if (!all.includes(before) && !visit(before)) return false;
      for (const member of all)
        for (const before of this.#waits[member]!) if (all.includes(before)) return false;
      state.set(first, 'done');
      order.push(first);
      return true;
    };
    return this.stmts.every((_, at) => visit(at)) ? order : undefined;
  }
}

/** The stretches of a body and of the bodies inside it, in the order of a walk. */
export function segmentsOf(body: readonly Stmt[], places: LinearIndices, weight = 1): Segment[] {
  const found: Segment[] = [];
  eachStretch(
    body,
    (stmts) => found.push(new Segment(stmts, weight, places)),
    (stmt) => {
      const inside = stmt.kind === 'for' ? Math.min(weight * 16, 65_536) : weight;
      for (const inner of bodiesOf(stmt)) found.push(...segmentsOf(inner, places, inside));
    },
  );
  return found;
}

/** Calls for each stretch and each other statement of a body, in order. */
export function eachStretch(
  body: readonly Stmt[],
  stretch: (stmts: readonly PlainStmt[]) => void,
  other: (stmt: Stmt) => void,
): void {
  let open: PlainStmt[] = [];
  const close = (): void => {
    if (open.length > 0) stretch(open);
    open = [];
  };
  for (const stmt of body) {
    if (isPlain(stmt)) open.push(stmt);
    else {
      close();
      other(stmt);
    }
  }
  close();
}

/** Every part of a value, the value first. */
export function* partsOf(value: Value): Generator<Value> {
  yield value;
  for (const operand of operandsOf(value)) yield* partsOf(operand);
}

interface Access {
  readonly at: number;
  readonly index: Value;
  readonly width: number;
}

function waitsOf(stmts: readonly PlainStmt[], places: LinearIndices): ReadonlySet<number>[] {
  const waits = stmts.map(() => new Set<number>());
  const written = new Map<string, number>();
  const readers = new Map<string, number[]>();
  const stores = new Map<string, Access[]>();
  const loads = new Map<string, Access[]>();
  const apart = (a: Access, b: Access): boolean => {
    const [p, q] = [places.of(a.index), places.of(b.index)];
    if (p === undefined || q === undefined || p.base !== q.base) return false;
    return p.constant + a.width <= q.constant || q.constant + b.width <= p.constant;
  };
  const after = (at: number, earlier: readonly Access[] | undefined, access: Access): void => {
    for (const other of earlier ?? []) if (other.at !== at && !apart(other, access)) waits[at]!.add(other.at);
  };
  stmts.forEach((stmt, at) => {
    const name = 'name' in stmt ? stmt.name : undefined;
    const wait = (before: number | undefined): void => {
      if (before !== undefined && before !== at) waits[at]!.add(before);
    };
    for (const value of valuesOf(stmt))
      for (const part of partsOf(value)) {
        if (part.kind === 'variable') {
          wait(written.get(part.name));
          push(readers, part.name, at);
        }
        if (part.kind === 'load') {
          const access = { at, index: part.index, width: part.width };
          after(at, stores.get(part.buffer), access);
          push(loads, part.buffer, access);
        }
      }
    if (name !== undefined) {
      wait(written.get(name));
      for (const reader of readers.get(name) ?? []) wait(reader);
      written.set(name, at);
    }
    if (stmt.kind === 'store') {
      const access = { at, index: stmt.index, width: stmt.value.width };
      after(at, stores.get(stmt.buffer), access);
      after(at, loads.get(stmt.buffer), access);
      push(stores, stmt.buffer, access);
    }
  });
  return waits;
}

export function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}
