// What Loops are counted to execute: a Loop of known counts, one whose bounds depend on places, and the kernels of all counted
// programs as they are committed. A change that means to change kernels writes those anew: `npm run sass -- --write`.

import { expect, test } from 'vitest';
import type { Loop, LoopBuffer, Value } from '../../src/codegen/loop/loop.ts';
import { committedLoops, countedTargets, loopRows } from '../../scripts/sass/figures.ts';
import { countLoop } from '../../scripts/sass/loops.ts';
import { counted } from '../../scripts/sass/programs.ts';
import { setDevice } from '../../src/index.ts';

const i32 = { type: 'i32', width: 1 } as const;
const whole = (value: number): Value => ({ kind: 'constant', value, ...i32 });
const named = (name: string): Value => ({ kind: 'variable', name, ...i32 });
const lane: Value = { kind: 'builtin', of: 'local', axis: 0, ...i32 };
const group: Value = { kind: 'builtin', of: 'workgroup', axis: 0, ...i32 };
const times = (a: Value, b: Value): Value => ({ kind: 'op', op: 'mul', args: [a, b], ...i32 });
const read = (buffer: string, index: Value): Value => ({
  kind: 'load',
  buffer,
  index,
  aligned: true,
  type: 'f32',
  width: 4,
});

const buffer = (name: string, space: LoopBuffer['space']): LoopBuffer => ({
  name,
  space,
  dtype: 'f32',
  size: 65_536,
  access: 'read_write',
});

function loopOf(body: Loop['body']): Loop {
  return {
    name: 'k',
    kind: 'map',
    header: [],
    buffers: [buffer('x', 'global'), buffer('tile', 'workgroup')],
    usesScalars: false,
    grid: [16, 1, 1],
    workgroup: [64, 1, 1],
    body,
  };
}

test('a loop counts as often as it turns, and arithmetic once a lane', () => {
  const x = read('x', times(named('k'), whole(4)));
  const sum: Value = { kind: 'op', op: 'fma', args: [x, x, x], type: 'f32', width: 4 };
  const body: Loop['body'] = [{ kind: 'let', name: 'y', value: sum }, { kind: 'barrier' }];
  const { counts, workgroups, loading, unknown } = countLoop(
    loopOf([{ kind: 'for', name: 'k', start: whole(0), end: whole(20), step: 2, body }]),
  );
  expect(counts).toMatchObject({
    turns: 10,
    barriers: 10,
    fma: 40,
    integer: 30,
    loads: { 16: 30 },
    loadBytes: 480,
  });
  expect({ workgroups, loading, unknown }).toEqual({
    workgroups: 16,
    loading: { loads: 3, loadBytes: 48 },
    unknown: 0,
  });
});

test('bounds that depend on the workgroup are a mean over eight of them', () => {
  const body: Loop['body'] = [{ kind: 'barrier' }];
  const { counts } = countLoop(
    loopOf([{ kind: 'for', name: 'k', start: whole(0), end: group, step: 1, body }]),
  );
  // Of 0 to 15: 0, 2, 4, 6, 9, 11, 13, 15.
  expect(counts.barriers).toBe(60 / 8);
});

test('half of the warps take a branch that half of the invocations take', () => {
  const condition: Value = { kind: 'op', op: 'lt', args: [lane, whole(32)], type: 'bool', width: 1 };
  const store = { kind: 'store', buffer: 'x', index: lane, value: whole(0), owned: true } as const;
  const { counts } = countLoop(loopOf([{ kind: 'if', condition, then: [store] }]));
  expect(counts.storeBytes).toBe(2);
});

test('a condition on data counts as true, and is told', () => {
  const value: Value = { ...read('x', lane), width: 1 };
  const condition: Value = { kind: 'op', op: 'lt', args: [value, value], type: 'bool', width: 1 };
  const { counts, unknown } = countLoop(loopOf([{ kind: 'if', condition, then: [{ kind: 'barrier' }] }]));
  expect([counts.barriers, unknown]).toEqual([1, 1]);
});

test.each([
  ['neighbours', lane, 1, 1],
  ['one place for all', whole(5), 1, 1],
  ['every second word', times(lane, whole(2)), 1, 2],
  ['one bank', times(lane, whole(32)), 1, 32],
  ['neighbours of four words', times(lane, whole(4)), 4, 4],
] as const)('wavefronts of workgroup memory: %s', (_, index, width, wavefronts) => {
  const value: Value = { ...read('tile', index), width };
  const { counts } = countLoop(loopOf([{ kind: 'let', name: 'y', value }]));
  expect(counts.wavefronts).toBe(wavefronts);
});

test('the committed counts name these programs', () => {
  const names = counted.map(({ name }) => name);
  for (const target of countedTargets) expect(Object.keys(committedLoops()[target])).toEqual(names);
});

const committed = committedLoops();
test.each(countedTargets.flatMap((target) => counted.map((one) => [target, one.name, one] as const)))(
  '%s: the Loops of %s execute what is committed',
  (target, name, one) => {
    setDevice('interpreter');
    try {
      const now = loopRows(target, [one])[name];
      expect(now, 'its kernels changed: npm run sass -- --write').toEqual(committed[target][name]);
    } finally {
      setDevice(undefined);
    }
  },
);
