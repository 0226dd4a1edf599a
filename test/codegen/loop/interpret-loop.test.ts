// What the Loop interpreter computes and, above all, what it refuses: each kind of fault is planted once in a kernel that is
// right without it.
//
// Runs alone: it measures time.

import { describe, expect, test } from 'vitest';
import {
  addInts,
  builtin,
  constant,
  less,
  LoopBuilder,
  mulInts,
  operation,
} from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopBuffer, RegisterType, Stmt, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../src/codegen/loop/print.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { CompilerBug } from '../../../src/errors.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { randomWords } from '../../../src/ir/interpret/random.ts';
import { emptyData, type HostData } from '../../../src/ir/value.ts';
import { cpuTime } from '../../support/cpu-time.ts';

const local = builtin('local', 0);
const group = builtin('workgroup', 0);
const load = (buffer: string, index: Value, width: Width = 1, aligned = true): Value => ({
  kind: 'load',
  buffer,
  index,
  aligned,
  type: 'f32',
  width,
});
const store = (buffer: string, index: Value, value: Value, owned = true): Stmt => ({
  kind: 'store',
  buffer,
  index,
  value,
  owned,
});
const variable = (name: string, type: RegisterType = 'f32', width: Width = 1): Value => ({
  kind: 'variable',
  name,
  type,
  width,
});
const one = constant(1, 'f32');
const barrier: Stmt = { kind: 'barrier' };

interface Draft {
  readonly buffers?: readonly LoopBuffer[];
  readonly grid?: Loop['grid'];
  readonly workgroup?: Loop['workgroup'];
  readonly usesScalars?: boolean;
}
const global = (
  name: string,
  size: number,
  dtype: DType = 'f32',
  access: LoopBuffer['access'] = 'read_write',
): LoopBuffer => ({
  name,
  space: 'global',
  dtype,
  size,
  access,
});
const shared = (name: string, size: number): LoopBuffer => ({ ...global(name, size), space: 'workgroup' });

/** x is read, y is written, both f32[16]; 4 invocations in each of 2 workgroups unless said otherwise. */
function makeLoop(body: readonly Stmt[], draft: Draft = {}): Loop {
  return {
    name: 'kernel',
    kind: 'test',
    header: [],
    buffers: [global('x', 16, 'f32', 'read'), global('y', 16), shared('s', 8)],
    usesScalars: false,
    grid: [2, 1, 1],
    workgroup: [4, 1, 1],
    ...draft,
    body,
  };
}

function run(
  loop: Loop,
  given: Readonly<Record<string, HostData>> = {},
  scalars: readonly number[] = [],
): Map<string, HostData> {
  const buffers = new Map(
    loop.buffers
      .filter((buffer) => buffer.space === 'global')
      .map((buffer) => [buffer.name, given[buffer.name] ?? emptyData(buffer.dtype, buffer.size)]),
  );
  interpretLoop(loop, buffers, scalars);
  return buffers;
}

const fails = (loop: Loop, message: RegExp, given?: Readonly<Record<string, HostData>>): void => {
  expect(() => run(loop, given)).toThrow(CompilerBug);
  expect(() => run(loop, given)).toThrow(message);
};

const at = addInts(mulInts(group, constant(4)), local);

describe('meaning', () => {
  test('a dot product by loop, branch and register', () => {
    const b = new LoopBuilder(new Set(['y']));
    const sum = b.var('sum', constant(0, 'f32'));
    b.for('k', constant(1), constant(8), 2, (k) =>
      b.if(operation('ne', [k, constant(5)], 'bool'), () =>
        b.assign(sum, operation('add', [sum, load('x', k)], 'f32')),
      ),
    );
    b.store('y', at, sum, true);
    const { y } = Object.fromEntries(
      run(makeLoop(b.body), { x: Float32Array.from({ length: 16 }, (_, i) => 10 ** i) }),
    );
    expect([...y!].slice(0, 8)).toEqual(Array(8).fill(10 ** 1 + 10 ** 3 + 10 ** 7));
  });

  test('else runs where the condition does not hold', () => {
    const body: Stmt[] = [
      {
        kind: 'if',
        condition: less(local, constant(2)),
        then: [store('y', at, one)],
        else: [store('y', at, constant(2, 'f32'))],
      },
    ];
    expect([...run(makeLoop(body)).get('y')!].slice(0, 8)).toEqual([1, 1, 2, 2, 1, 1, 2, 2]);
  });

  test('a vector is assigned from its own old lanes', () => {
    const v = variable('v', 'f32', 2);
    const lane = (i: number): Value => ({ kind: 'lane', arg: v, lane: i, type: 'f32', width: 1 });
    const body: Stmt[] = [
      {
        kind: 'var',
        name: 'v',
        value: { kind: 'vector', args: [one, constant(2, 'f32')], type: 'f32', width: 2 },
      },
      {
        kind: 'assign',
        name: 'v',
        value: { kind: 'vector', args: [lane(1), lane(0)], type: 'f32', width: 2 },
      },
      store('y', mulInts(at, constant(2)), v),
    ];
    expect([...run(makeLoop(body)).get('y')!].slice(0, 4)).toEqual([2, 1, 2, 1]);
  });

  test('coordinates count x fastest', () => {
    const local1 = builtin('local', 1);
    const index = addInts(
      addInts(local, mulInts(local1, constant(2))),
      addInts(mulInts(group, constant(4)), mulInts(builtin('workgroup', 2), constant(8))),
    );
    const value = operation('cast', [addInts(mulInts(local1, constant(10)), builtin('workgroup', 2))], 'f32');
    const loop = makeLoop([store('y', index, value)], { grid: [2, 1, 2], workgroup: [2, 2, 1] });
    expect([...run(loop).get('y')!]).toEqual([0, 0, 10, 10, 0, 0, 10, 10, 1, 1, 11, 11, 1, 1, 11, 11]);
  });

  test('workgroup memory carries values over a barrier, and starts anew in every workgroup', () => {
    const other = operation('sub', [constant(3), local], 'i32');
    const body = [
      store('s', local, operation('cast', [at], 'f32')),
      barrier,
      store('y', at, load('s', other)),
    ];
    expect([...run(makeLoop(body)).get('y')!].slice(0, 8)).toEqual([3, 2, 1, 0, 7, 6, 5, 4]);
  });

  test('barriers inside uniform loops and branches', () => {
    const body: Stmt[] = [
      store('s', local, one),
      barrier,
      {
        kind: 'for',
        name: 'k',
        start: constant(0),
        end: constant(3),
        step: 1,
        body: [
          {
            kind: 'let',
            name: 'next',
            value: load('s', operation('mod', [addInts(local, constant(1)), constant(4)], 'i32')),
          },
          barrier,
          {
            kind: 'if',
            condition: less(variable('k', 'i32'), constant(2)),
            then: [store('s', local, operation('add', [variable('next'), one], 'f32')), barrier],
          },
        ],
      },
      store('y', at, load('s', local)),
    ];
    const loop = makeLoop(body);
    verifyLoop(loop);
    expect([...run(loop).get('y')!].slice(0, 8)).toEqual(Array(8).fill(3));
  });

  test('stores round to the dtype of the buffer', () => {
    const buffers = [global('h', 4, 'f16'), global('b', 4, 'bf16'), global('i', 4, 'i8')];
    const body = [
      store('h', constant(0), constant(65520, 'f32')),
      store('h', constant(1), constant(1 + 2 ** -11, 'f32')),
      store('b', constant(0), constant(1 + 3 * 2 ** -8, 'f32')),
      store('i', constant(0), constant(200)),
    ];
    const after = run(makeLoop(body, { buffers, grid: [1, 1, 1], workgroup: [1, 1, 1] }));
    expect([after.get('h')![0], after.get('h')![1], after.get('b')![0]]).toEqual([Infinity, 1, 1 + 2 ** -6]);
  });

  test('scalars take their type', () => {
    const scalar = (slot: number, type: RegisterType): Value => ({ kind: 'scalar', slot, type, width: 1 });
    const body = [
      store('y', constant(0), scalar(0, 'f32')),
      store('y', constant(1), operation('cast', [scalar(1, 'i32')], 'f32')),
      store('y', constant(2), operation('cast', [scalar(2, 'bool')], 'f32')),
    ];
    const loop = makeLoop(body, { grid: [1, 1, 1], workgroup: [1, 1, 1], usesScalars: true });
    expect([...run(loop, {}, [0.1, -3, 1]).get('y')!].slice(0, 3)).toEqual([Math.fround(0.1), -3, 1]);
    fails(loop, /scalar 0 was not given/);
  });

  test('random words come four at a time from their block', () => {
    const words = [1, 2, 0xffffffff, 4].map((word) => constant(word, 'u32'));
    const philox = (index: Value, width: Width): Value => ({
      kind: 'op',
      op: 'philox',
      args: [...words, index],
      type: 'u32',
      width,
    });
    const body = [
      store('a', constant(4), philox(constant(4), 4)),
      store('b', constant(6), philox(constant(6), 1)),
    ];
    const buffers = [global('a', 8, 'u32'), global('b', 8, 'u32')];
    const loop = makeLoop(body, { buffers, grid: [1, 1, 1], workgroup: [1, 1, 1] });
    const expected = randomWords([1, 2], [0xffffffff, 4], 8);
    expect([...run(loop).get('a')!].slice(4)).toEqual(Array.from(expected).slice(4));
    expect(run(loop).get('b')![6]).toBe(expected[6]);
    const odd = makeLoop([store('a', constant(1), philox(constant(1), 4))], { buffers });
    fails(odd, /multiple of 4/);
  });

  test('a hundred thousand statements take well under a second', () => {
    const b = new LoopBuilder(new Set(['y']));
    const sum = b.var('sum', constant(0, 'f32'));
    b.for('k', constant(0), constant(6250), 1, (k) =>
      b.assign(sum, operation('add', [sum, load('x', operation('mod', [k, constant(16)], 'i32'))], 'f32')),
    );
    b.store('y', at, sum, true);
    const times = [0, 1, 2].map(() => cpuTime(() => run(makeLoop(b.body))));
    expect(Math.min(...times)).toBeLessThan(1000);
  });
});

describe('faults of indices', () => {
  test('a store past the end', () => {
    const body = (last: number): Stmt[] => [store('y', addInts(at, constant(last)), one)];
    run(makeLoop(body(8)));
    fails(
      makeLoop(body(9)),
      /element 16 is outside y, which has 16[^]*invocation 3 \(3,0,0\) of workgroup 1,0,0/,
    );
  });

  test('a load before the beginning, even in a choice that is not taken', () => {
    const guarded = operation(
      'where',
      [less(local, constant(1)), one, load('x', operation('sub', [local, constant(1)], 'i32'))],
      'f32',
    );
    fails(makeLoop([store('y', at, guarded)]), /element -1 is outside x/);
  });

  test('the last lanes of a vector', () => {
    fails(
      makeLoop([{ kind: 'let', name: 'v', value: load('x', constant(13), 4, false) }]),
      /element 13 is outside x/,
    );
  });

  test('an index that is not as aligned as it says', () => {
    const body = (from: number): Stmt[] => [{ kind: 'let', name: 'v', value: load('x', constant(from), 4) }];
    run(makeLoop(body(8)));
    fails(makeLoop(body(6)), /element 6 is not aligned to 4/);
  });

  test('elements past the end of the given array are poison, not zero', () => {
    const loop = makeLoop([store('y', at, operation('mul', [load('x', at), constant(0, 'f32')], 'f32'))]);
    const after = run(loop, { x: new Float32Array(5) });
    expect([...after.get('y')!].slice(0, 8)).toEqual([0, 0, 0, 0, 0, NaN, NaN, NaN]);
  });
});

describe('races', () => {
  const places = 'workgroup memory, storage';
  test.each([
    ['workgroup memory', 's'],
    ['storage', 'y'],
  ])(`two invocations write one element of %s (of ${places})`, (_, buffer) => {
    const half = operation('div', [local, constant(2)], 'i32');
    const grid = [1, 1, 1] as const;
    run(makeLoop([store(buffer, local, one)], { grid }));
    fails(makeLoop([store(buffer, half, one)], { grid }), /race on .*\[0\].*invocation 0 wrote it too/);
  });

  test.each(['s', 'y'])('an invocation reads what another wrote without a barrier (%s)', (buffer) => {
    const grid = [1, 1, 1] as const;
    const previous = operation('max', [operation('sub', [local, constant(1)], 'i32'), constant(0)], 'i32');
    const body = (between: readonly Stmt[]): Stmt[] => [
      store(buffer, local, one),
      ...between,
      { kind: 'let', name: 'v', value: load(buffer, previous) },
    ];
    run(makeLoop(body([barrier]), { grid }));
    fails(makeLoop(body([]), { grid }), /race on .*invocation 0 wrote it, and no barrier orders the two/);
  });

  test.each(['s', 'y'])('an invocation writes what another read without a barrier (%s)', (buffer) => {
    const grid = [1, 1, 1] as const;
    const next = operation('min', [addInts(local, constant(1)), constant(3)], 'i32');
    const body = (between: readonly Stmt[]): Stmt[] => [
      store(buffer, local, one),
      barrier,
      { kind: 'let', name: 'v', value: load(buffer, next) },
      ...between,
      store(buffer, local, variable('v')),
    ];
    run(makeLoop(body([barrier]), { grid }));
    fails(makeLoop(body([]), { grid }), /race on .*read it, and no barrier orders the two/);
  });

  test('a read by two invocations is remembered when one of them writes', () => {
    const first: Stmt = {
      kind: 'if',
      condition: operation('eq', [local, constant(3)], 'bool'),
      then: [store('s', constant(0), one)],
    };
    const body = (between: readonly Stmt[]): Stmt[] => [
      {
        kind: 'if',
        condition: operation('eq', [local, constant(0)], 'bool'),
        then: [store('s', constant(0), one)],
      },
      barrier,
      { kind: 'let', name: 'v', value: load('s', constant(0)) },
      ...between,
      first,
    ];
    run(makeLoop(body([barrier])));
    fails(makeLoop(body([])), /race on s\[0\].*several invocations read it/);
  });

  test('two workgroups write one element', () => {
    fails(makeLoop([store('y', local, one)]), /race on y\[0\].*invocation 0 of workgroup 0 wrote it too/);
  });

  test('a workgroup reads what another wrote, whatever the barriers', () => {
    const all: Stmt[] = [store('y', at, one), barrier, { kind: 'let', name: 'v', value: load('y', local) }];
    fails(makeLoop(all), /race on y\[0\].*of workgroup 0 wrote it/);
    run(makeLoop(all, { grid: [1, 1, 1] }));
  });

  test('a workgroup writes what another read', () => {
    const is = (which: number): Value => operation('eq', [group, constant(which)], 'bool');
    const place = addInts(local, constant(4));
    const body = (writer: number): Stmt[] => [
      { kind: 'if', condition: is(0), then: [{ kind: 'let', name: 'v', value: load('y', place) }] },
      { kind: 'if', condition: is(writer), then: [store('y', place, one)] },
    ];
    run(makeLoop(body(0)));
    fails(makeLoop(body(1)), /race on y\[4\].*workgroup 0 read it/);
  });

  test('a store that claims a word it shares', () => {
    const buffers = [global('h', 16, 'f16')];
    const body = (owned: boolean): Stmt[] => [store('h', at, one, owned)];
    run(makeLoop(body(false), { buffers }));
    fails(makeLoop(body(true), { buffers }), /race on h\[1\].*owns the word, but invocation 0/);
    const other: Stmt = {
      kind: 'if',
      condition: operation('eq', [local, constant(0)], 'bool'),
      then: [store('h', constant(0), one, true)],
      else: [store('h', constant(1), one, false)],
    };
    fails(
      makeLoop([other], { buffers, grid: [1, 1, 1], workgroup: [2, 1, 1] }),
      /race on h\[1\].*owns the word, but invocation 0/,
    );
    const own = [store('h', mulInts(at, constant(2)), { ...one, width: 2 })];
    run(makeLoop(own, { buffers }));
  });
});

describe('faults of workgroups', () => {
  test('workgroup memory that nobody wrote is not zero', () => {
    fails(makeLoop([{ kind: 'let', name: 'v', value: load('s', local) }]), /s is read but never written/);
    const some: Stmt = { kind: 'if', condition: less(local, constant(2)), then: [store('s', local, one)] };
    fails(
      makeLoop([some, barrier, { kind: 'let', name: 'v', value: load('s', local) }]),
      /s\[2\] is read but nobody wrote it/,
    );
  });

  test('what one workgroup wrote is lost to the next', () => {
    const first: Stmt = {
      kind: 'if',
      condition: operation('eq', [group, constant(0)], 'bool'),
      then: [store('s', local, one)],
    };
    fails(
      makeLoop([first, barrier, { kind: 'let', name: 'v', value: load('s', local) }]),
      /s\[0\] is read but nobody wrote it/,
    );
  });

  test('a barrier that some invocations miss', () => {
    const some: Stmt = { kind: 'if', condition: less(local, constant(2)), then: [barrier] };
    fails(makeLoop([some]), /do not reach the same barrier/);
    const count: Stmt = { kind: 'for', name: 'k', start: constant(0), end: local, step: 1, body: [barrier] };
    fails(makeLoop([count]), /do not reach the same barrier/);
    const either: Stmt = {
      kind: 'if',
      condition: less(local, constant(2)),
      then: [barrier],
      else: [{ kind: 'barrier' }],
    };
    fails(makeLoop([either]), /do not reach the same barrier/);
  });
});

describe('the verifier refuses', () => {
  const refuses = (loop: Loop, message: RegExp): void => {
    expect(() => verifyLoop(loop)).toThrow(CompilerBug);
    expect(() => verifyLoop(loop)).toThrow(message);
  };
  const let1 = (value: Value, name = 'v'): Stmt => ({ kind: 'let', name, value });

  test('names: undefined, out of scope, twice, constant', () => {
    refuses(makeLoop([let1(variable('nobody'))]), /nobody is not defined here/);
    refuses(
      makeLoop([{ kind: 'if', condition: constant(1, 'bool'), then: [let1(one)] }, let1(variable('v'), 'w')]),
      /v is not defined here/,
    );
    refuses(makeLoop([let1(one), let1(one)]), /v is defined twice/);
    refuses(makeLoop([let1(one), { kind: 'assign', name: 'v', value: one }]), /v is not a var/);
    refuses(makeLoop([let1(load('z', local))]), /there is no buffer z/);
    refuses(makeLoop([], { buffers: [global('x', 4), global('x', 4)] }), /two buffers are called x/);
  });

  test('types and widths that do not agree', () => {
    const wide = load('x', constant(0), 4);
    refuses(
      makeLoop([let1({ kind: 'op', op: 'add', args: [one, constant(1)], type: 'f32', width: 1 })]),
      /1 is i32, expected f32/,
    );
    refuses(
      makeLoop([let1({ kind: 'op', op: 'add', args: [one, wide], type: 'f32', width: 4 })]),
      /1_f32 is f32, expected f32x4/,
    );
    refuses(
      makeLoop([let1({ kind: 'op', op: 'lt', args: [one, one], type: 'f32', width: 1 })]),
      /is f32, expected bool/,
    );
    refuses(
      makeLoop([let1({ kind: 'op', op: 'exp', args: [constant(1)], type: 'i32', width: 1 })]),
      /exp is not defined on i32/,
    );
    refuses(
      makeLoop([let1({ kind: 'op', op: 'sub', args: [one], type: 'f32', width: 1 })]),
      /sub takes 2 arguments, not 1/,
    );
    refuses(
      makeLoop([let1(operation('floorDiv', [local, local], 'i32'))]),
      /floorDiv takes a positive constant divisor/,
    );
    refuses(makeLoop([store('y', one, one)]), /1_f32 is f32, expected i32/);
    refuses(makeLoop([store('y', local, constant(1))]), /1 is i32, expected f32/);
    refuses(makeLoop([store('x', local, one)]), /x is read-only/);
    refuses(makeLoop([let1({ kind: 'lane', arg: wide, lane: 4, type: 'f32', width: 1 })]), /lane 4 of 4/);
    refuses(
      makeLoop([let1({ kind: 'vector', args: [one], type: 'f32', width: 2 })]),
      /a vector of 2 has 1 parts/,
    );
    refuses(makeLoop([{ kind: 'if', condition: local, then: [] }]), /is i32, expected bool/);
    refuses(
      makeLoop([{ kind: 'for', name: 'k', start: constant(0), end: constant(4), step: 0, body: [] }]),
      /step 0/,
    );
    refuses(makeLoop([let1({ kind: 'scalar', slot: 0, type: 'f32', width: 1 })]), /usesScalars is false/);
    refuses(
      makeLoop([let1({ kind: 'op', op: 'bitcast', args: [constant(1, 'bool')], type: 'i32', width: 1 })]),
      /bool has no bits/,
    );
    refuses(
      makeLoop([], { buffers: [{ ...global('s', 4, 'bool'), space: 'workgroup' }] }),
      /workgroup memory s cannot be bool/,
    );
    refuses(
      makeLoop([{ kind: 'prefetch', buffer: 's', index: local }]),
      /what is prefetched is in global memory/,
    );
  });

  test('barriers under conditions that differ between invocations, however they got there', () => {
    const under = (condition: Value, before: readonly Stmt[] = []): Loop =>
      makeLoop([...before, { kind: 'if', condition, then: [barrier] }]);
    verifyLoop(under(less(group, constant(1))));
    verifyLoop(under(less(load('x', constant(0)), one)));
    refuses(under(less(local, constant(1))), /non-uniform control flow/);
    refuses(under(less(load('y', constant(0)), one)), /non-uniform control flow/);
    refuses(under(less(load('x', local), one)), /non-uniform control flow/);
    refuses(under(less(variable('n', 'i32'), constant(1)), [let1(local, 'n')]), /non-uniform control flow/);
    const m = variable('m', 'i32');
    const divergent: Stmt[] = [
      { kind: 'var', name: 'm', value: constant(0) },
      {
        kind: 'if',
        condition: less(local, constant(1)),
        then: [{ kind: 'assign', name: 'm', value: constant(1) }],
      },
    ];
    refuses(under(less(m, constant(1)), divergent), /non-uniform control flow/);
    // In a loop, what a later statement makes differ is seen in the next turn.
    const turn: Stmt = {
      kind: 'for',
      name: 'k',
      start: constant(0),
      end: constant(3),
      step: 1,
      body: [
        { kind: 'if', condition: less(variable('n', 'i32'), constant(1)), then: [barrier] },
        { kind: 'assign', name: 'n', value: m },
        { kind: 'assign', name: 'm', value: local },
      ],
    };
    const both = ['m', 'n'].map((name): Stmt => ({ kind: 'var', name, value: constant(0) }));
    refuses(makeLoop([...both, turn]), /non-uniform control flow/);
    const long: Stmt = { kind: 'for', name: 'k', start: constant(0), end: local, step: 1, body: [barrier] };
    refuses(makeLoop([long]), /non-uniform control flow/);
  });

  test('launches that no device runs', () => {
    const limits = {
      storageBuffers: 2,
      workgroupBytes: 64,
      workgroupInvocations: 256,
      workgroupsPerDimension: 65_535,
    };
    verifyLoop(makeLoop([]), limits);
    const over = (draft: Draft, message: RegExp): void =>
      expect(() => verifyLoop(makeLoop([], draft), limits)).toThrow(message);
    over({ grid: [65_536, 1, 1] }, /65536 workgroups in one dimension, at most 65535/);
    over({ workgroup: [16, 17, 1] }, /272 invocations/);
    over({ buffers: [shared('s', 17)] }, /80 bytes of workgroup memory, at most 64/);
    over({ buffers: [global('a', 1), global('b', 1), global('c', 1)] }, /3 storage buffers, at most 2/);
    over({ workgroup: [0, 1, 1] }, /size 0/);
  });
});

test('the text of a Loop names every statement', () => {
  const body: Stmt[] = [
    { kind: 'comment', text: 'note' },
    { kind: 'var', name: 'v', value: load('x', constant(0), 4) },
    {
      kind: 'for',
      name: 'k',
      start: constant(0),
      end: constant(8),
      step: 4,
      body: [
        {
          kind: 'if',
          condition: less(variable('k', 'i32'), local),
          then: [{ kind: 'assign', name: 'v', value: { kind: 'splat', arg: one, type: 'f32', width: 4 } }],
          else: [store('y', variable('k', 'i32'), variable('v', 'f32', 4), false)],
        },
      ],
    },
    // It may lie beyond the buffer.
    { kind: 'prefetch', buffer: 'x', index: constant(4096) },
    barrier,
  ];
  verifyLoop(makeLoop(body));
  expect(printLoop(makeLoop(body))).toMatchInlineSnapshot(`
    "loop kernel (test) grid 2x1x1 workgroup 4x1x1
      global x: f32[16] read
      global y: f32[16]
      workgroup s: f32[8]
    {
      // note
      var v: f32x4 = x[0:4]
      for k in 0 .. 8 by 4 {
        if lt(k, local.x) {
          v = splat4(1_f32)
        } else {
          y[k:4] =merge v
        }
      }
      prefetch x[4096]
      barrier
    }"
  `);
});
