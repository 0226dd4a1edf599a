// What a run of a program does for each buffer that it is given: buffers that fit are taken as they are, and only one that does
// not fit is named.

import { expect, test } from 'vitest';
import { BufferPools } from '../../src/runtime/memory.ts';
import { givenBuffers } from '../../src/runtime/plans.ts';
import type { Program } from '../../src/runtime/program.ts';
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
