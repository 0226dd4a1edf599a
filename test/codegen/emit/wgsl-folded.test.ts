// Every operation on vectors whose elements the driver's compiler can work out before the kernel
// runs, against the Loop interpreter: folding has to give what the kernel would have computed.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addInts,
  arithmetic,
  builtin,
  constant,
  LoopBuilder,
  operation,
  splat,
} from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopBuffer, LoopOp, RegisterType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { GraphBuilder, type NodeOf } from '../../../src/ir/graph.ts';
import { hostArray } from '../../../src/ir/value.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { targetOf } from '../../../src/schedule/target.ts';
import { runOnDevice } from '../../support/execute.ts';
import { runLoop, type Arrays } from '../run-loop.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const types = ['i32', 'u32', 'f32'] as const;
type Known = (typeof types)[number];

/** Constants of each type: what operations have rules of their own for, and beside it. */
const constants: Readonly<Record<Known, readonly number[]>> = {
  i32: [0, 1, -1, 3],
  u32: [0, 1, 3],
  f32: [0, 1, -1, 3],
};
const binary: Readonly<Record<Known, readonly LoopOp[]>> = {
  i32: ['add', 'sub', 'mul', 'min', 'max', 'and', 'or', 'xor', 'div', 'mod'],
  u32: ['add', 'sub', 'mul', 'min', 'max', 'and', 'or', 'xor', 'div', 'mod'],
  f32: ['add', 'sub', 'mul', 'min', 'max'],
};
const relations: readonly LoopOp[] = ['eq', 'ne', 'lt', 'le'];

/** Operations on the results of others; integers are also combined bit by bit. */
function usesOf(value: Value, by: Value): Value[] {
  const { type } = value;
  const one = constant(1, 'i32', value.width);
  const none = constant(0, 'i32', value.width);
  const asked = relations.map((op) =>
    operation('where', [operation(op, [value, by], 'bool'), one, none], 'i32'),
  );
  const bits = operation('bitcast', [value], 'i32');
  return [
    ...asked,
    ...(type === 'f32' ? [] : [arithmetic('or', [bits, constant(4, 'i32', value.width)], 'i32')]),
    ...(type === 'i32' ? [operation('not', [value], 'i32')] : []),
  ];
}

/** Known elements −2 … 1, or 0 … 3, and every operation of the type on them, each result used by several others. */
function loopOf(type: Known, width: Width, op: LoopOp): { readonly loop: Loop; readonly arrays: Arrays } {
  const b = new LoopBuilder(new Set(['y']));
  // i mod 1, which is 0 in every invocation.
  const zero = b.let(operation('floorMod', [builtin('local', 0), constant(1)], 'i32'), 'zero');
  const first = type === 'u32' || width === 1 ? 0 : -2;
  const lanes = Array.from({ length: width }, (_, i) => addInts(zero, constant(first + i)));
  const ints: Value = width === 1 ? lanes[0]! : { kind: 'vector', args: lanes, type: 'i32', width };
  const known = b.let(type === 'i32' ? ints : operation('cast', [ints], type), 'known');
  let at = 0;
  const put = (value: Value): void => {
    b.store('y', addInts(builtin('local', 0), constant(at)), value, false);
    at += width;
  };
  const of = (value: number): Value => splat(constant(value, type), width);
  const results = constants[type].flatMap((value): Value[] => {
    const safe = op !== 'div' && op !== 'mod';
    return [
      arithmetic(op, [known, of(value)], type),
      ...(safe ? [arithmetic(op, [of(value), known], type)] : []),
      operation('where', [operation('lt', [known, of(value)], 'bool'), of(value), known], type),
    ];
  });
  for (const result of results) {
    const value = b.let(result, 'value');
    for (const by of [0, 1]) usesOf(value, of(by)).forEach(put);
  }
  const global = (name: string, dtype: RegisterType & LoopBuffer['dtype'], size: number): LoopBuffer => ({
    name,
    space: 'global',
    dtype,
    size,
    access: 'read_write',
  });
  const loop: Loop = {
    name: 'kernel',
    kind: 'test',
    header: ['a test'],
    usesScalars: false,
    buffers: [global('y', 'i32', at)],
    body: b.body,
    grid: [1, 1, 1],
    workgroup: [1, 1, 1],
  };
  return { loop, arrays: new Map([['y', new Int32Array(at)]]) };
}

describe.each(types)('known vectors of %s', (type) => {
  describe.each([2, 4] as const)('of %i elements', (width) => {
    test.each(binary[type])('%s', async (op) => {
      const { loop, arrays } = loopOf(type, width, op);
      verifyLoop(loop);
      const expected: Arrays = new Map([...arrays].map(([name, data]) => [name, data.slice()]));
      interpretLoop(loop, expected, []);
      await runLoop(device, loop, arrays);
      expect([...arrays.get('y')!]).toEqual([...expected.get('y')!]);
    });
  });
});

test('rows gathered by known positions are those of the concatenated parts', async () => {
  const b = new GraphBuilder();
  const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f16', shape: [5, 1] });
  const y = b.add('parameter', [], { index: 1, name: 'y', dtype: 'f16', shape: [1] });
  const parts = b.add('concat', [x, x, x, x], { axis: 1 });
  const positions = b.add('iota', [], { axis: 0, dtype: 'i32', shape: [4, 1] });
  const rows = b.add('gather', [parts, positions], { axis: 1 });
  const contraction = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0] };
  const product = b.add('dot', [rows, y], { ...contraction, dtype: 'f16' });
  const parameters = [x, y] as NodeOf<'parameter'>[];
  const inputs = [
    hostArray('f16', [5, 1], [0.75, -Infinity, -0.75, 1.125, -Infinity]),
    hostArray('f16', [1], [-0.25]),
  ];
  const [found] = await runOnDevice(
    device,
    targetOf(device.facts),
    { parameters, outputs: [product] },
    inputs,
  );
  expect([...found!.data]).toEqual([-0.1875, Infinity, 0.1875, -0.28125]);
});
