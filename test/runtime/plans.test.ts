// What a run of a program does for each buffer that it is given: buffers that fit are taken as they are, and only one that does
// not fit is named. And which plans it finds again when sets of buffers come round.

import { expect, test } from 'vitest';
import { BufferPools } from '../../src/runtime/memory.ts';
import { givenBuffers, planLimit, Plans, type FittedPlan } from '../../src/runtime/plans.ts';
import type { Program } from '../../src/runtime/program.ts';
import { Scratch } from '../../src/runtime/scratch.ts';
import { Timeline } from '../../src/runtime/timeline.ts';

const count = 300;

test('buffers that fit are bound without a name being read', () => {
  let read = 0;
  const buffers = Array.from({ length: count + 1 }, (_, i) => ({
    bytes: 16,
    get name(): string {
      read += 1;
      return `b${i}`;
    },
  }));
  const inputs = Array.from({ length: count }, (_, i) => i);
  const program = { inputs, outputs: [count], buffers } as unknown as Program;
  const limits = { bufferBytes: 1024, budget: 2 ** 20 };
  const source = { create: (bytes: number): number => bytes, destroy: (): void => undefined };
  const memory = new BufferPools<number>('test', limits, new Timeline(), source);
  const given = inputs.map(() => memory.allocate(16));
  const output = memory.allocate(16);
  expect(givenBuffers(program, 'test', given, [output])).toEqual([...given, output]);
  expect(read).toBe(0);

  const small = memory.allocate(8);
  const mixed = given.map((buffer, i) => (i === 7 ? small : buffer));
  expect(() => givenBuffers(program, 'test', mixed, [output])).toThrow(
    'input 7 (b7) needs 16 bytes and was given 8',
  );
  expect(read).toBe(1);
  expect(() => givenBuffers(program, 'test', given, [])).toThrow('0 output buffers given: expected 1');
});

interface Round {
  /** Plans built in each turn. */
  readonly built: readonly number[];
  readonly kept: number;
}

/** Runs a program of so many steps over `period` sets of buffers, in turn. */
function round(period: number, steps: number, turns: number): Round {
  const limits = { bufferBytes: 1024, budget: 2 ** 20 };
  const source = { create: (bytes: number): number => bytes, destroy: (): void => undefined };
  const memory = new BufferPools<number>('test', limits, new Timeline(), source);
  const step = { kind: 'copy', from: 0, to: 1 };
  const program = {
    inputs: [0],
    outputs: [1],
    buffers: [],
    steps: Array.from({ length: steps }, () => step),
  };
  const plans = new Plans<number, FittedPlan<number>>(
    memory,
    new Scratch(memory),
    program as unknown as Program,
  );
  const weight = memory.allocate(16);
  const states = Array.from({ length: period }, () => memory.allocate(16));
  const built = Array.from({ length: turns }, () => {
    let count = 0;
    for (const state of states) {
      const places = [weight, state].map((buffer) => buffer.place(memory));
      const arrangement = plans.arrangementOf([weight, state]) ?? { places, lasting: true };
      expect(arrangement.places).toEqual(places);
      if (plans.known(arrangement) !== undefined) continue;
      plans.add({ arrangement, arenas: [] });
      count += 1;
    }
    return count;
  });
  return { built, kept: plans.clear().length };
}

test.each([1, 2, 6, 7, 24])(
  'a loop of 300 steps whose buffers come round after %i calls is planned once',
  (period) => {
    expect(round(period, 300, 4)).toEqual({ built: [period, 0, 0, 0], kept: period });
  },
);

test('where more sets come round than are kept, only the others are planned again', () => {
  for (const steps of [1, 300, 100_000]) {
    const limit = planLimit(steps);
    const { built, kept } = round(limit + 2, steps, 6);
    expect(kept).toBe(limit);
    // No choice of sets to keep could build fewer.
    expect(built.slice(3)).toEqual([2, 2, 2]);
  }
});

test('plans are kept by their steps: few large ones, many small ones, never without bound', () => {
  expect([0, 1, 128, 300, 4096, 10 ** 6].map(planLimit)).toEqual([64, 64, 64, 27, 4, 4]);
});
