// Atomic statements: many invocations fold into few elements. What they compute, what may not meet them unordered, and that
// devices agree.

import { beforeAll, describe, expect, test } from 'vitest';
import {
  addInts,
  builtin,
  constant,
  LoopBuilder,
  mulInts,
  operation,
} from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { AtomicOp, Loop, LoopBuffer, RegisterType, Value } from '../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../src/codegen/loop/print.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { emitWgsl } from '../../../src/codegen/emit/wgsl/emit.ts';
import { CompilerBug } from '../../../src/errors.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import type { HostData } from '../../../src/ir/value.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import '../../../src/compile/all.ts';
import { runLoop } from '../run-loop.ts';

const item = builtin('local', 0);
const id = addInts(mulInts(builtin('workgroup', 0), constant(32)), item);
const cell = operation('mod', [id, constant(3)], 'i32');
const load = (buffer: string, index: Value, type: RegisterType): Value => ({
  kind: 'load',
  buffer,
  index,
  aligned: true,
  type,
  width: 1,
});

const buffer = (
  name: string,
  dtype: DType,
  size: number,
  space: LoopBuffer['space'] = 'global',
): LoopBuffer => ({
  name,
  space,
  dtype,
  size,
  access: name === 'x' ? 'read' : 'read_write',
});

/** Two workgroups of 32 invocations. */
function makeLoop(buffers: readonly LoopBuffer[], build: (b: LoopBuilder) => void): Loop {
  const b = new LoopBuilder(new Set(['y', 's']));
  build(b);
  return {
    name: 'fold',
    kind: 'test',
    header: [],
    buffers,
    usesScalars: false,
    grid: [2, 1, 1],
    workgroup: [32, 1, 1],
    body: b.body,
  };
}

const folds: readonly [AtomicOp, 'f32' | 'i32' | 'u32'][] = [
  ...(['f32', 'i32', 'u32'] as const).flatMap((type) =>
    (['add', 'mul', 'min', 'max'] as const).map((op): [AtomicOp, typeof type] => [op, type]),
  ),
  ...(['i32', 'u32'] as const).flatMap((type) =>
    (['and', 'or'] as const).map((op): [AtomicOp, typeof type] => [op, type]),
  ),
];

const fold = (op: AtomicOp, type: 'f32' | 'i32' | 'u32'): Loop =>
  makeLoop([buffer('x', type, 64), buffer('y', type, 3)], (b) =>
    b.atomic(op, 'y', b.let(cell, 'cell'), load('x', id, type)),
  );

const arrays = { f32: Float32Array, i32: Int32Array, u32: Uint32Array } as const;
const meaning: Readonly<Record<AtomicOp, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
};

/** Small numbers whose folds are exact in any order, products too. */
function inputs(op: AtomicOp, type: 'f32' | 'i32' | 'u32'): Map<string, HostData> {
  const value = (i: number): number => (op === 'mul' ? (i % 7 === 0 ? 2 : 1) : (i * 37) % 11);
  const x = new arrays[type](Array.from({ length: 64 }, (_, i) => value(i)));
  return new Map<string, HostData>([
    ['x', x],
    ['y', new arrays[type]([1, 5, 12])],
  ]);
}

describe('atomic statements', () => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('webgpu:software');
  });

  test.each(folds)(
    '%s of %s folds every value in, in the interpreter and on the device',
    async (op, type) => {
      const loop = fold(op, type);
      verifyLoop(loop);
      const expected = [1, 5, 12];
      const given = inputs(op, type);
      for (let i = 0; i < 64; i++)
        expected[i % 3] = meaning[op](expected[i % 3]!, Number(given.get('x')![i]));
      interpretLoop(loop, given, []);
      expect([...given.get('y')!]).toEqual(expected);
      const there = inputs(op, type);
      await runLoop(device, loop, there);
      expect([...there.get('y')!]).toEqual(expected);
    },
  );

  test('masks and counts in workgroup memory are whole after a barrier', async () => {
    const buffers = [buffer('x', 'u32', 64), buffer('y', 'i32', 64), buffer('s', 'u32', 4, 'workgroup')];
    const loop = makeLoop(buffers, (b) => {
      b.if(operation('lt', [item, constant(4)], 'bool'), () => b.store('s', item, constant(0, 'u32'), true));
      b.barrier();
      const row = b.let(operation('cast', [load('x', id, 'u32')], 'i32'), 'row');
      const place = operation('cast', [item], 'u32');
      b.atomic('or', 's', row, operation('shl', [constant(1, 'u32'), place], 'u32'));
      b.barrier();
      const members = operation('popcount', [load('s', row, 'u32')], 'u32');
      b.store('y', id, operation('cast', [members], 'i32'), true);
    });
    verifyLoop(loop);
    const rows = Uint32Array.from({ length: 64 }, (_, i) => (i * i) % 4);
    const expected = Array.from(rows, (row, i) => {
      const first = i < 32 ? 0 : 32;
      return rows.slice(first, first + 32).filter((other) => other === row).length;
    });
    const here = new Map<string, HostData>([
      ['x', rows],
      ['y', new Int32Array(64)],
    ]);
    interpretLoop(loop, here, []);
    expect([...here.get('y')!]).toEqual(expected);
    const there = new Map<string, HostData>([['x', rows]]);
    await runLoop(device, loop, there);
    expect([...there.get('y')!]).toEqual(expected);
  });

  test('read as text', () => {
    expect(printLoop(fold('add', 'f32'))).toContain(
      'y[cell] atomic add x[add(mul(workgroup.x, 32), local.x)]',
    );
    expect(emitWgsl(fold('add', 'u32'), { scalarSlots: 0 })).toMatch(/atomicAdd\(&y\[cell\], /);
    expect(emitWgsl(fold('add', 'f32'), { scalarSlots: 0 })).toContain('atomicCompareExchangeWeak(&y[cell]');
  });
});

describe('the Loop interpreter refuses', () => {
  const run = (build: (b: LoopBuilder) => void): void => {
    const buffers = [buffer('y', 'u32', 64), buffer('s', 'u32', 4, 'workgroup')];
    interpretLoop(makeLoop(buffers, build), new Map([['y', new Uint32Array(64)]]), []);
  };
  const one = constant(1, 'u32');
  const same = constant(0);

  test('a plain read beside atomic updates', () => {
    expect(() =>
      run((b) => {
        b.atomic('add', 'y', same, one);
        b.store('y', addInts(id, constant(1)), load('y', same, 'u32'), true);
      }),
    ).toThrow(/race on y\[0\]/);
  });

  test('an atomic update of what another invocation wrote plainly, or read', () => {
    expect(() =>
      run((b) => {
        b.if(operation('eq', [item, constant(0)], 'bool'), () => b.store('y', same, one, true));
        b.atomic('add', 'y', same, one);
      }),
    ).toThrow(/race on y\[0\]: .*plainly/);
    expect(() =>
      run((b) => {
        const first = operation('eq', [item, constant(0)], 'bool');
        b.if(first, () => b.store('y', constant(40), load('y', same, 'u32'), true));
        b.if(operation('not', [first], 'bool'), () => b.atomic('add', 'y', same, one));
      }),
    ).toThrow(/race on y\[0\]: .*read it/);
  });

  test('atomic updates of workgroup memory that nobody wrote', () => {
    expect(() => run((b) => b.atomic('add', 's', same, one))).toThrow(/nobody wrote it/);
  });

  test('an atomic update out of bounds', () => {
    expect(() => run((b) => b.atomic('add', 'y', constant(64), one))).toThrow(/outside y/);
  });

  test('atomics on narrow elements and bits of floats', () => {
    const verify = (dtype: DType, op: AtomicOp, value: Value): void =>
      verifyLoop(makeLoop([buffer('y', dtype, 64)], (b) => b.atomic(op, 'y', same, value)));
    expect(() => verify('f16', 'add', constant(1, 'f32'))).toThrow(CompilerBug);
    expect(() => verify('f32', 'or', constant(1, 'f32'))).toThrow(CompilerBug);
    expect(() => verify('u32', 'or', constant(1, 'i32'))).toThrow(CompilerBug);
  });
});
