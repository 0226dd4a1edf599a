// Malformed programs are refused by name before anything runs.

import { expect, test } from 'vitest';
import { checkProgram } from '../../src/runtime/check.ts';
import type { Program, ProgramPack } from '../../src/runtime/program.ts';
import { dispatch, f32, kernel, program } from './programs.ts';

const sound = program({
  kernels: [kernel('k', 64, ['read', 'read_write'], 'b1[i] = b0[i];')],
  buffers: [
    f32('x', 'input', 64),
    f32('t', 'scratch', 64, { arena: 0, offset: 256 }),
    f32('y', 'output', 64),
    f32('w', 'constant', 64),
  ],
  arenas: [512],
  steps: [dispatch(0, [0, 1], 64), { kind: 'copy', from: 1, to: 2 }],
});

const buffer = (index: number, change: object): Partial<Program> => ({
  buffers: sound.buffers.map((old, i) => (i === index ? { ...old, ...change } : old)),
});

/** The kernel with a tile map of its first binding. */
const mapped = (change: object): Partial<Program> => {
  const map = {
    binding: 0,
    dtype: 'bf16',
    offset: 0,
    sizes: [16, 8],
    strides: [1, 16],
    box: [64, 64],
  } as const;
  return {
    ...buffer(0, { dtype: 'bf16' }),
    kernels: [{ ...sound.kernels[0]!, tileMaps: [{ ...map, ...change }] }],
  };
};

/** A sum over two of four ranks, of x into y. */
const meets = (change: object): Program['steps'][number] => ({
  kind: 'collective',
  action: { kind: 'allReduce', monoid: 'sum' },
  dtype: 'f32',
  ranks: 4,
  axes: [{ size: 2, stride: 2 }],
  from: 0,
  sends: 256,
  to: 2,
  takes: 256,
  ...change,
});

test('a sound program passes', () => {
  expect(() => checkProgram({ ...sound, steps: [meets({})] }, 'wgsl', 'd')).not.toThrow();
  expect(() => checkProgram(sound, 'wgsl', 'd')).not.toThrow();
});

test.each<[Partial<Program>, string]>([
  [{ version: 2 as unknown as 1 }, 'program version 2 is not 1'],
  [{ target: 'interpreter' }, 'a program for interpreter cannot run here'],
  [buffer(0, { bytes: 254 }), 'buffer x has 254 bytes'],
  [buffer(0, { bytes: 0 }), 'buffer x has 0 bytes'],
  [buffer(1, { arena: 1 }), 'scratch buffer t is in no arena'],
  [buffer(1, { offset: 128 }), 'scratch buffer t is at offset 128'],
  [buffer(1, { offset: 512 }), 'scratch buffer t ends at 768, its arena at 512'],
  [{ inputs: [9] }, 'input 0 is buffer 9 of 4'],
  [{ outputs: [1] }, 'output 0 is the scratch buffer t'],
  [{ donated: [{ input: 0, output: 1 }] }, 'donated pair (output 1, input 0) is out of range'],
  [
    { ...buffer(2, { bytes: 128 }), steps: [], donated: [{ input: 0, output: 0 }] },
    'donated x has 256 bytes, its output y has 128',
  ],
  [{ kernels: [sound.kernels[0]!, sound.kernels[0]!] }, 'in kernel k: two kernels have this name'],
  [mapped({ binding: 2 }), 'in kernel k: step 0: a tile map of binding 2, which there is not'],
  [mapped({ dtype: 'f16' }), 'a tile map takes x for f16, it is bf16'],
  [mapped({ box: [64] }), 'a tile map has 2 sizes, 2 strides and a box of 1'],
  [mapped({ strides: [1, 0] }), 'strides are multiples of 8 elements, and each of the one before, not [1,0]'],
  [mapped({ strides: [1, 12] }), 'strides are multiples of 8 elements'],
  [mapped({ strides: [16, 1] }), 'neighbours come first, not [16,1]'],
  [mapped({ offset: 4 }), 'a tile map of x: offset 4'],
  [mapped({ sizes: [16, 9] }), 'a tile map reaches element 143 of x, which has 256 bytes'],
  [{ steps: [dispatch(3, [], 1)] }, 'step 0 runs kernel 3: there is none'],
  [{ steps: [dispatch(0, [0], 1)] }, 'in kernel k: step 0 gives 1 buffers for 2 bindings'],
  [{ steps: [dispatch(0, [0, 7], 1)] }, 'in kernel k: step 0 uses buffer 7 of 4'],
  [{ steps: [dispatch(0, [3, 1], 1)] }, 'in kernel k: step 0 uses constant w, which is never bound'],
  [{ steps: [dispatch(0, [0, 1], -64)] }, 'the grid -1×1×1'],
  [{ steps: [{ ...dispatch(0, [0, 1], 64), grid: [1.5, 1, 1] } as never] }, 'the grid 1.5×1×1'],
  [{ ...buffer(2, { bytes: 128 }), steps: sound.steps.slice(1) }, 'step 0 copies 256 bytes onto 128'],
  [{ steps: [meets({ sends: 300 })] }, 'step 0 sends 300 bytes and takes 256: more than its buffers have'],
  [{ steps: [meets({ axes: [{ size: 3, stride: 1 }] })] }, 'an axis of 3 ranks, 1 apart, is none of 4 ranks'],
  [{ steps: [meets({ axes: [{ size: 2, stride: 4 }] })] }, 'an axis of 2 ranks, 4 apart, is none of 4 ranks'],
  [{ packs: [{ buffer: 9, members: [] }] }, 'pack 0 is buffer 9 of 4'],
  [{ packs: [{ buffer: 0, members: [{ buffer: 0, offset: 0 }] }] }, 'pack 0 is the input x'],
])('a malformed program is refused: case %#', (change, words) => {
  expect(() => checkProgram({ ...sound, ...change }, 'wgsl', 'd')).toThrow(words);
});

const whole = f32('pair', 'input', 128);
const packed = program({
  kernels: [kernel('k', 128, ['read', 'read_write'], 'b1[i] = b0[i];')],
  buffers: [f32('x', 'input', 64), f32('y', 'input', 64), whole, f32('z', 'output', 128)],
  inputs: [0, 1],
  packs: [
    {
      buffer: 2,
      members: [
        { buffer: 0, offset: 0 },
        { buffer: 1, offset: 256 },
      ],
    },
  ],
  steps: [dispatch(0, [2, 3], 128)],
});

test('a program with a pack passes', () => {
  expect(() => checkProgram(packed, 'wgsl', 'd')).not.toThrow();
});

test.each<[ProgramPack['members'], string]>([
  [[], 'pack 0 (pair) has no members'],
  [[{ buffer: 3, offset: 0 }], 'pair holds buffer 3, which is no input'],
  [[{ buffer: 0, offset: 128 }], 'x is at offset 128 of pair'],
  [
    [0, 1].map((buffer) => ({ buffer, offset: 0 })),
    'y is at offset 0 of pair: not a multiple of 256 from 256 on',
  ],
  [[0, 256].map((offset) => ({ buffer: 0, offset })), 'x is in two packs, or twice in one'],
  [[{ buffer: 0, offset: 512 }], 'the members of pair end at 768, it has 512 bytes'],
])('a malformed pack is refused: case %#', (members, words) => {
  const packs = [{ buffer: 2, members }];
  expect(() => checkProgram({ ...packed, packs }, 'wgsl', 'd')).toThrow(words);
});
