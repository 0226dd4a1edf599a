// What is known of the signs of indices: intervals hold every value that a Loop computes, and divisions by powers of two become
// shifts only where that changes nothing.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { arithmetic, builtin, constant, LoopBuilder, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopOp, Value } from '../../../src/codegen/loop/loop.ts';
import { emitWgsl } from '../../../src/codegen/emit/wgsl/emit.ts';
import { rangesOf } from '../../../src/codegen/loop/ranges.ts';
import { verifyRanges } from '../../../src/codegen/loop/verify-ranges.ts';
import { emptyData } from '../../../src/ir/value.ts';
import '../../../src/compile/all.ts';
import { checkLaw } from '../../support/property.ts';

const ops = ['add', 'sub', 'mul', 'div', 'mod', 'min', 'max', 'floorDiv', 'floorMod'] as const;
const constants = [0, 1, -1, 3, 8, -5, 1000, 70_000, 2147483647];

/** Steps of a program: an operation, two earlier values or constants. */
const program = fc.array(
  fc.record({ op: fc.constantFrom(...ops), a: fc.nat({ max: 40 }), b: fc.nat({ max: 40 }) }),
  { minLength: 1, maxLength: 8 },
);

/** A Loop over 2 workgroups of 4 invocations and a counter below 3, which stores one value a step of the counter. */
function loopOf(
  steps: { op: LoopOp; a: number; b: number }[],
  stored: number,
  make: typeof operation = arithmetic,
): { loop: Loop; names: string[] } {
  const b = new LoopBuilder(new Set(['out']));
  const names: string[] = [];
  b.for('k', constant(0), constant(3), 1, (counter) => {
    const values: Value[] = [builtin('workgroup', 0), builtin('local', 0), counter];
    const pick = (i: number): Value => {
      const all = [...values, ...constants.map((value) => constant(value))];
      return all[i % all.length]!;
    };
    for (const { op, a, b: second } of steps) {
      const rounds = op === 'floorDiv' || op === 'floorMod';
      const right = rounds
        ? constant(8)
        : op === 'div' || op === 'mod'
          ? constant([3, 8][second % 2]!)
          : pick(second);
      values.push(b.let(make(op, [pick(a), right], 'i32'), 'v'));
      const made = values.at(-1)!;
      if (made.kind === 'variable') names.push(made.name);
    }
    const made = values[3 + (stored % steps.length)]!;
    const item = operation(
      'add',
      [operation('mul', [builtin('workgroup', 0), constant(4)], 'i32'), builtin('local', 0)],
      'i32',
    );
    b.store(
      'out',
      operation('add', [operation('mul', [item, constant(3)], 'i32'), counter], 'i32'),
      made,
      true,
    );
  });
  const loop: Loop = {
    name: 'ranges',
    kind: 'map',
    header: [],
    buffers: [{ name: 'out', space: 'global', dtype: 'i32', size: 24, access: 'read_write' }],
    usesScalars: false,
    grid: [2, 1, 1],
    workgroup: [4, 1, 1],
    body: b.body,
  };
  return { loop, names };
}

test('every value lies in its range', () => {
  checkLaw(400, program, (steps) => {
    for (let i = 0; i < steps.length; i++) {
      const { loop, names } = loopOf(steps, i);
      const out = emptyData('i32', 24);
      interpretLoop(loop, new Map([['out', out]]), []);
      const range = rangesOf(loop).get(names[i]!);
      if (range === undefined) continue;
      for (const value of out) {
        expect(Number(value)).toBeGreaterThanOrEqual(range[0]);
        expect(Number(value)).toBeLessThanOrEqual(range[1]);
      }
    }
  });
});

test('arithmetic that finds places may not wrap around: the verifier refuses it, and what it lets through runs', () => {
  const outcomes = { refused: 0, ran: 0, trapped: 0 };
  checkLaw(400, program, (steps) => {
    const plain = steps.map((step) => ({
      ...step,
      op: (['add', 'sub', 'mul', 'min', 'max'] as const)[step.a % 5]!,
    }));
    const { loop } = loopOf(plain, 0, operation);
    const run = (): void => interpretLoop(loop, new Map([['out', emptyData('i32', 24)]]), []);
    try {
      verifyRanges(loop);
    } catch (error) {
      expect(String(error)).toContain('an index leaves 32 bits');
      outcomes.refused += 1;
      try {
        run();
      } catch (trap) {
        expect(String(trap)).toContain('an index leaves 32 bits');
        outcomes.trapped += 1;
      }
      return;
    }
    run();
    outcomes.ran += 1;
  });
  for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(20);
});

test('where one end is not known, nothing is refused', () => {
  const b = new LoopBuilder(new Set(['out']));
  const asked: Value = {
    kind: 'load',
    buffer: 'out',
    index: constant(0),
    aligned: true,
    type: 'i32',
    width: 1,
  };
  const clamped = b.let(
    operation('max', [operation('min', [asked, constant(7)], 'i32'), constant(0)], 'i32'),
    'at',
  );
  b.store('out', operation('mul', [clamped, constant(4)], 'i32'), constant(1), true);
  const loop = { ...loopOf([], 0).loop, body: b.body };
  verifyRanges(loop);
});

test("a loop's counter does not pass its end by more than 32 bits hold", () => {
  const upTo = (end: number, step: number): Loop => {
    const b = new LoopBuilder(new Set(['out']));
    b.for('k', constant(0), constant(end), step, () => b.store('out', constant(0), constant(1), true));
    return { ...loopOf([], 0).loop, body: b.body };
  };
  verifyRanges(upTo(2147483647, 1));
  verifyRanges(upTo(2147483640, 8));
  expect(() => verifyRanges(upTo(2147483641, 8))).toThrow(/k ends at 2147483641 in steps of 8/);
});

test('a quotient by a power of two is a shift where nothing is negative', () => {
  const textOf = (op: 'div' | 'mod', value: Value, by: number): string => {
    const b = new LoopBuilder(new Set(['out']));
    b.store('out', builtin('local', 0), operation(op, [value, constant(by)], 'i32'), true);
    return emitWgsl({ ...loopOf([], 0).loop, body: b.body }, { scalarSlots: 0 });
  };
  const local = builtin('local', 0);
  const below = operation('sub', [local, constant(1)], 'i32');
  const large = operation('mul', [local, constant(2_000_000_000)], 'i32');
  expect(textOf('div', local, 8)).toContain('>> 3u');
  expect(textOf('mod', local, 8)).toContain('& 7');
  for (const value of [below, large]) expect(textOf('div', value, 8)).not.toContain('>>');
  expect(textOf('div', local, 3)).toContain('/ 3');
});

test('a range is narrower where a condition holds, and wide again behind it', () => {
  const b = new LoopBuilder(new Set(['out']));
  const group = b.let(operation('add', [builtin('workgroup', 0), constant(0)], 'i32'), 'group');
  const within = operation(
    'and',
    [operation('le', [constant(3), group], 'bool'), operation('lt', [group, constant(9)], 'bool')],
    'bool',
  );
  const names: string[] = [];
  const note = (value: Value): void => {
    if (value.kind === 'variable') names.push(value.name);
  };
  b.if(within, () => {
    const own = b.let(operation('add', [group, constant(-3)], 'i32'), 'own');
    const rest = b.let(operation('mod', [own, constant(4)], 'i32'), 'rest');
    note(own);
    note(rest);
  });
  note(b.let(operation('add', [group, constant(-3)], 'i32'), 'after'));
  const ranges = rangesOf({ ...loopOf([], 0).loop, grid: [100, 1, 1], body: b.body });
  expect(names.map((name) => ranges.get(name))).toEqual([
    [0, 5],
    [0, 3],
    [-3, 96],
  ]);
});
