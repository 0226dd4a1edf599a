// Which i32 values cannot be negative, by following names to their definitions with intervals: there a division by a power of two
// is a shift, which every compiler would find if it knew.

import type { Loop, LoopOp, Stmt, Value } from './loop.ts';

/** All values between the two, ends included. */
export type ValueRange = readonly [lo: number, hi: number];

/** What is known of each immutable i32 variable. */
export type ValueRanges = ReadonlyMap<string, ValueRange>;

const largest = 2147483647;

/**
 * Follows every `let` and loop counter of the Loop. `whole`: only what follows from both ends of all that a value is made of, and not
 * the one end that `max(x, 0)` has whatever x is.
 */
export function rangesOf(loop: Loop, whole = false): ValueRanges {
  const known = new Map<string, ValueRange>();
  const note = (name: string, range: ValueRange | undefined): void => {
    if (range !== undefined) known.set(name, range);
  };
  const visit = (body: readonly Stmt[]): void => {
    for (const stmt of body) {
      if (stmt.kind === 'let' && stmt.value.type === 'i32')
        note(stmt.name, rangeOf(stmt.value, loop, known, whole));
      if (stmt.kind === 'for') {
        const start = rangeOf(stmt.start, loop, known, whole);
        const end = rangeOf(stmt.end, loop, known, whole);
        if (start !== undefined && end !== undefined)
          note(stmt.name, [start[0], Math.max(start[0], end[1] - 1)]);
        visit(stmt.body);
      }
      if (stmt.kind === 'if') {
        const outside = limitedBy(stmt.condition, known);
        visit(stmt.then);
        for (const [name, range] of outside) known.set(name, range);
        visit(stmt.else ?? []);
      }
    }
  };
  visit(loop.body);
  return known;
}

/**
 * Narrows the ranges of variables that a condition compares with constants, as `1 ≤ group and group < 8` does, and gives what they were:
 * what is computed of them where the condition holds has narrower ranges too.
 */
function limitedBy(
  condition: Value,
  known: Map<string, ValueRange>,
): readonly (readonly [string, ValueRange])[] {
  if (condition.kind !== 'op') return [];
  const [left, right] = condition.args;
  if (left === undefined || right === undefined) return [];
  // The second part sees what the first has narrowed; so that what was before comes back last, it stands last.
  if (condition.op === 'and') {
    const outer = limitedBy(left, known);
    return [...limitedBy(right, known), ...outer];
  }
  if (condition.op !== 'lt' && condition.op !== 'le') return [];
  const strict = condition.op === 'lt' ? 1 : 0;
  const narrowed = (
    variable: Value,
    low: number,
    high: number,
  ): readonly (readonly [string, ValueRange])[] => {
    const before =
      variable.kind === 'variable' && variable.type === 'i32' ? known.get(variable.name) : undefined;
    if (before === undefined || variable.kind !== 'variable') return [];
    const after: ValueRange = [Math.max(before[0], low), Math.min(before[1], high)];
    // An empty range belongs to a branch that is never taken.
    if (after[0] <= after[1]) known.set(variable.name, after);
    return [[variable.name, before]];
  };
  if (right.kind === 'constant' && right.width === 1) return narrowed(left, -Infinity, right.value - strict);
  if (left.kind === 'constant' && left.width === 1) return narrowed(right, left.value + strict, Infinity);
  return [];
}

/** Whether no lane of an i32 value is ever below 0. */
export function isNonnegative(value: Value, loop: Loop, known: ValueRanges): boolean {
  const range = rangeOf(value, loop, known);
  return range !== undefined && range[0] >= 0;
}

/** Whether an i32 value is known not to have wrapped around where it was computed. */
export function isBounded(value: Value, loop: Loop, known: ValueRanges): boolean {
  return rangeOf(value, loop, known) !== undefined;
}

/** The range of an i32 value as mathematics has it, from whole ranges: beyond 32 bits where the value may wrap around. */
export function resultRange(value: Value, loop: Loop, known: ValueRanges): ValueRange | undefined {
  const of = (inner: Value): ValueRange | undefined => rangeOf(inner, loop, known, true);
  return value.kind === 'op' ? resultOf(value, of, true) : of(value);
}

/** Whether a number is one whose quotients are shifts and whose remainders are masks. */
export function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0;
}

/** The operation, with rounding chosen freely where nothing is negative: down, a power of two divides by a shift. */
export function withShifts(
  { op, args, type }: Extract<Value, { kind: 'op' }>,
  loop: Loop,
  known: ValueRanges,
): LoopOp {
  if (type !== 'i32' || (op !== 'div' && op !== 'mod')) return op;
  const by = args[1]!;
  if (by.kind !== 'constant' || !isPowerOfTwo(by.value)) return op;
  if (!isNonnegative(args[0]!, loop, known)) return op;
  return op === 'div' ? 'floorDiv' : 'floorMod';
}

function rangeOf(value: Value, loop: Loop, known: ValueRanges, whole = false): ValueRange | undefined {
  const of = (inner: Value): ValueRange | undefined => rangeOf(inner, loop, known, whole);
  switch (value.kind) {
    case 'constant':
      return [value.value, value.value];
    case 'variable':
      return known.get(value.name);
    case 'builtin':
      return [0, (value.of === 'workgroup' ? loop.grid : loop.workgroup)[value.axis] - 1];
    case 'subgroup':
      return [0, loop.workgroup[0] * loop.workgroup[1] * loop.workgroup[2]];
    case 'splat':
    case 'lane':
      return of(value.arg);
    case 'vector': {
      const ranges = value.args.map(of);
      return ranges.reduce((a, b) => (a === undefined || b === undefined ? undefined : hull(a, b)));
    }
    case 'op':
      return value.type === 'i32' ? inWord(resultOf(value, of, whole)) : undefined;
    case 'load':
    case 'scalar':
      return undefined;
    default:
      return value satisfies never;
  }
}

function resultOf(
  { op, args }: Extract<Value, { kind: 'op' }>,
  of: (value: Value) => ValueRange | undefined,
  whole: boolean,
): ValueRange | undefined {
  const [a, b, c] = args.map(of);
  if (op === 'where') return b === undefined || c === undefined ? undefined : hull(b, c);
  if (op === 'neg' && a !== undefined) return Number.isFinite(a[0]) ? [-a[1], -a[0]] : undefined;
  // At most this is known of one end: the range is whole again when the other is bounded too.
  const top = whole ? Infinity : largest;
  if (op === 'max' && a !== undefined && b === undefined) return [a[0], top];
  if (op === 'max' && a === undefined && b !== undefined) return [b[0], top];
  if (op === 'min' && a !== undefined && b === undefined) return [-Infinity, a[1]];
  if (op === 'min' && a === undefined && b !== undefined) return [-Infinity, b[1]];
  if (a === undefined || b === undefined) return undefined;
  if (op === 'min') return [Math.min(a[0], b[0]), Math.min(a[1], b[1])];
  if (op === 'max') return [Math.max(a[0], b[0]), Math.max(a[1], b[1])];
  // How far it goes is not known: the result may wrap around.
  if (![...a, ...b].every(Number.isFinite)) return undefined;
  switch (op) {
    case 'add':
      return [a[0] + b[0], a[1] + b[1]];
    case 'sub':
      return [a[0] - b[1], a[1] - b[0]];
    case 'mul': {
      const ends = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]];
      return [Math.min(...ends), Math.max(...ends)];
    }
    case 'div':
    case 'floorDiv': {
      if (b[0] <= 0) return undefined;
      const round = op === 'div' ? Math.trunc : Math.floor;
      // The smallest divisor takes each side furthest from zero. Adding 0 makes 0 of −0.
      return [round(a[0] / (a[0] < 0 ? b[0] : b[1])) + 0, round(a[1] / (a[1] < 0 ? b[1] : b[0])) + 0];
    }
    case 'mod':
      if (b[0] <= 0) return undefined;
      // A remainder has the sign of what is divided.
      return [a[0] >= 0 ? 0 : Math.max(a[0], 1 - b[1]), a[1] <= 0 ? 0 : Math.min(a[1], b[1] - 1)];
    case 'floorMod':
      if (b[0] <= 0) return undefined;
      return a[0] >= 0 ? [0, Math.min(a[1], b[1] - 1)] : [0, b[1] - 1];
    default:
      return undefined;
  }
}

/** A result that may wrap around could be anything. */
function inWord(range: ValueRange | undefined): ValueRange | undefined {
  return range !== undefined && (range[0] >= -largest - 1 || range[0] === -Infinity) && range[1] <= largest
    ? range
    : undefined;
}

/** Whether nothing in the range leaves 32 bits, or would when it is negated. */
export function fitsWord(range: ValueRange): boolean {
  return range[0] >= -largest && range[1] <= largest;
}

function hull(a: ValueRange, b: ValueRange): ValueRange {
  return [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
}
