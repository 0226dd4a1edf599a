// Loop → Loop with vectors of 8 or 16 lanes, for processors whose registers hold as many. Templates write vectors of four and several
// of them an iteration; neighbours that do the same are merged here (packer.ts). Every element is read, computed and written as before,
// by the same operations in the same order where order matters, so results keep all their bits.

import type { Loop, Stmt, Value, Width } from '../../../loop/loop.ts';
import { operandsOf, withOperands } from '../../../loop/builder.ts';
import { divisors, isMultiple, type KnownDivisors } from '../../../loop/divisible.ts';
import { bodiesOf, declaredIn, factsOf, rewritten, someStatement, valuesOf } from '../../../loop/walk.ts';
import { withoutUnused } from './unused.ts';
import { LinearIndices } from './linear.ts';
import { Packer, type PackedGroup } from './packer.ts';
import { eachStretch, partsOf, push, Segment, segmentsOf, type PlainStmt } from './segments.ts';
import { RegisterUses } from './uses.ts';

/** The Loop on registers of so many lanes of 32 bits, or half as many of 64. */
export function widenVectors(loop: Loop, lanes: 8 | 16): Loop {
  const names = [...declaredIn(loop.body)];
  const known = new Set(names);
  // Names that stand for two things, and statements of a GPU's units, are no templates' for a core.
  if (known.size !== names.length || someStatement(loop.body, (stmt) => factsOf(stmt).unit !== 'invocation'))
    return loop;
  const fresh = (hint: string): string => {
    const base = `${hint}_w`;
    let name = base;
    for (let i = 1; known.has(name); i++) name = `${base}${i}`;
    known.add(name);
    return name;
  };
  const places = new LinearIndices(loop);
  const segments = segmentsOf(loop.body, places);
  const packer = new Packer(segments, new RegisterUses(loop.body, segments), places, lanes, fresh);
  plant(packer, segments, places, lanes / 4);
  if (packer.groups.length === 0) return loop;
  return { ...loop, body: withoutUnused(new Rebuilding(packer, segments, divisors(loop)).body(loop.body)) };
}

/** Tries every seed; what saves nothing by itself may after others. */
function plant(packer: Packer, segments: readonly Segment[], places: LinearIndices, most: number): void {
  const seeds = segments.flatMap((segment) => [
    ...storeRows(segment, places).map((row) => ({ segment, row })),
    ...alikeRows(segment, isAssigned).map((row) => ({ segment, row })),
  ]);
  for (let isNew = true, round = 0; isNew && round < 3; round++) {
    isNew = false;
    for (const { segment, row } of seeds)
      for (let size = most; size >= 2; size /= 2)
        for (let from = 0; from + size <= row.length;) {
          const done = packer.seed(segment, row.slice(from, from + size));
          isNew ||= done;
          from += done ? size : 1;
        }
    // What is combined in the end brings in what it is combined from, so the last come first.
    const isNear = combinations(packer, segments);
    const names = segments.flatMap((segment) => alikeRows(segment, isNear).map((row) => ({ segment, row })));
    for (const { segment, row } of names)
      for (let size = most; size >= 2; size /= 2)
        for (let end = row.length; end >= size;) {
          const done = packer.seed(segment, row.slice(end - size, end));
          isNew ||= done;
          end -= done ? size : 1;
        }
  }
}

/** Stores of four elements to places that follow each other. */
function storeRows(segment: Segment, places: LinearIndices): readonly (readonly number[])[] {
  const byBase = new Map<string, { readonly at: number; readonly place: number }[]>();
  segment.stmts.forEach((stmt, at) => {
    if (stmt.kind !== 'store' || stmt.value.width !== 4) return;
    const place = places.of(stmt.index);
    if (place === undefined) return;
    push(byBase, `${stmt.buffer} ${stmt.owned} ${stmt.value.type} ${place.base}`, {
      at,
      place: place.constant,
    });
  });
  return [...byBase.values()].flatMap((stores) => {
    const rows: number[][] = [];
    const sorted = stores.toSorted((a, b) => a.place - b.place || a.at - b.at);
    sorted.forEach(({ at, place }, i) => {
      if (i > 0 && place === sorted[i - 1]!.place + 4) rows.at(-1)!.push(at);
      else rows.push([at]);
    });
    return rows.filter(({ length }) => length > 1);
  });
}

const isAssigned = (stmt: PlainStmt): boolean => stmt.kind === 'assign';

/** Which names are computed from nothing but what is merged already. */
function combinations(packer: Packer, segments: readonly Segment[]): (stmt: PlainStmt) => boolean {
  const near = new Set<string>();
  const isKnown = (value: Value): boolean =>
    value.kind === 'variable' && value.width === 4 && (packer.homes.has(value.name) || near.has(value.name));
  for (const { stmts } of segments)
    for (const stmt of stmts) {
      if (stmt.kind !== 'let' || packer.homes.has(stmt.name)) continue;
      const { value } = stmt;
      if (isKnown(value) || (value.kind === 'op' && value.args.every(isKnown))) near.add(stmt.name);
    }
  return (stmt) => stmt.kind === 'let' && stmt.value.kind === 'op' && near.has(stmt.name);
}

/** Statements on four lanes, of those that are meant, that compute the same of other operands. */
function alikeRows(segment: Segment, isMeant: (stmt: PlainStmt) => boolean): readonly (readonly number[])[] {
  const alike = new Map<string, number[]>();
  segment.stmts.forEach((stmt, at) => {
    if ('value' in stmt && stmt.value.width === 4 && isMeant(stmt)) push(alike, shapeOf(stmt.value), at);
  });
  return [...alike.values()].filter(({ length }) => length > 1);
}

/** What a value computes, whatever it is computed of. */
function shapeOf(value: Value): string {
  const inside = operandsOf(value).map(shapeOf).join(',');
  const what = value.kind === 'op' ? value.op : value.kind === 'load' ? value.buffer : value.kind;
  return `${value.type}${what}(${value.kind === 'load' ? '' : inside})`;
}

class Rebuilding {
  readonly #packer: Packer;
  readonly #segments: readonly Segment[];
  readonly #divisors: KnownDivisors;
  readonly #twins = new Map<string, { readonly name: string; readonly value: Value }[]>();
  #next = 0;

  constructor(packer: Packer, segments: readonly Segment[], known: KnownDivisors) {
    this.#packer = packer;
    this.#segments = segments;
    this.#divisors = known;
    for (const [key, twin] of packer.twins) push(this.#twins, key.slice(0, key.lastIndexOf(':')), twin);
  }

  body(body: readonly Stmt[]): Stmt[] {
    const out: Stmt[] = [];
    eachStretch(
      body,
      () => this.#stretch(this.#segments[this.#next++]!, out),
      (stmt) => {
        out.push(
          rewritten(stmt, { value: (value) => this.#value(value), body: (inner) => this.body(inner) }),
        );
      },
    );
    return out;
  }

  #stretch(segment: Segment, out: Stmt[]): void {
    for (const at of segment.order()!) {
      const number = segment.groups[at]!;
      const stmt = segment.stmts[at]!;
      if (number >= 0) this.#group(this.#packer.groups[number]!, out);
      else {
        out.push(rewritten(stmt, { value: (value) => this.#value(value) }));
        if (stmt.kind === 'let') this.#twinsOf(stmt.name, out);
      }
    }
  }

  #group(group: PackedGroup, out: Stmt[]): void {
    const { segment, members, name } = group;
    for (const { name: part, value } of this.#packer.parts.get(group) ?? [])
      out.push({ kind: 'let', name: part, value: this.#value(value) });
    const stmts = members.map((at) => segment.stmts[at]!) as readonly Exclude<
      PlainStmt,
      { kind: 'comment' }
    >[];
    const [first] = stmts as [(typeof stmts)[number]];
    const value = this.#value(group.value!);
    if (first.kind === 'store') out.push({ ...first, index: this.#value(first.index), value });
    else out.push({ kind: first.kind, name: name!, value });
    if (first.kind !== 'let') return;
    for (const stmt of stmts as readonly (typeof first)[]) {
      const { type } = stmt.value;
      out.push({ kind: 'let', name: stmt.name, value: this.#part(stmt.name, type) });
      this.#twinsOf(stmt.name, out);
    }
  }

  #twinsOf(name: string, out: Stmt[]): void {
    for (const twin of this.#twins.get(name) ?? [])
      out.push({ kind: 'let', name: twin.name, value: this.#value(twin.value) });
  }

  /** Four lanes of a wide register. */
  #part(name: string, type: Value['type']): Value {
    const args = [0, 1, 2, 3].map((lane) => this.#lane(name, type, lane));
    return { kind: 'vector', args, type, width: 4 };
  }

  #lane(name: string, type: Value['type'], lane: number): Value {
    const { name: wide, part, count } = this.#packer.homes.get(name)!;
    const arg: Value = { kind: 'variable', name: wide, type, width: (4 * count) as Width };
    return { kind: 'lane', arg, lane: 4 * part + lane, type, width: 1 };
  }

  /** A value with wide registers in the place of those that they took in. */
  #value(value: Value): Value {
    const { homes } = this.#packer;
    if (value.kind === 'lane' && value.arg.kind === 'variable' && homes.has(value.arg.name))
      return this.#lane(value.arg.name, value.type, value.lane);
    // A name stays where it is let: its four lanes are named anew.
    if (value.kind === 'variable')
      return this.#isVar(value.name) ? this.#part(value.name, value.type) : value;
    const operands = operandsOf(value).map((operand) => this.#value(operand));
    const made = withOperands(value, operands);
    if (made.kind !== 'load' || made.width <= 4) return made;
    return { ...made, aligned: isMultiple(made.index, made.width, this.#divisors) };
  }

  #isVar(name: string): boolean {
    return this.#packer.isVar(name) && this.#packer.homes.has(name);
  }
}

/** Statements on vectors, by their lanes: what widening is there to lessen. */
export function vectorStatements(loop: Loop): ReadonlyMap<Width, number> {
  const counts = new Map<Width, number>();
  const walk = (body: readonly Stmt[]): void => {
    for (const stmt of body) {
      const widths = valuesOf(stmt).flatMap((value) => [...partsOf(value)].map(({ width }) => width));
      const widest = widths.reduce<Width>((most, width) => (width > most ? width : most), 1);
      if (widest > 1) counts.set(widest, (counts.get(widest) ?? 0) + 1);
      for (const inner of bodiesOf(stmt)) walk(inner);
    }
  };
  walk(loop.body);
  return counts;
}
