// Reductions over subgroups: the Loop interpreter models them for any size, a real adapter computes the same, NaN included, and
// row kernels need not know the size.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  builtin,
  constant,
  LoopBuilder,
  mulInts,
  operation,
  subgroup,
} from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, RegisterType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { emitWgsl } from '../../../src/codegen/emit/wgsl/emit.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Monoid } from '../../../src/ir/ops.ts';
import { emptyData, hostArray, type HostData } from '../../../src/ir/value.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import { gpuTarget } from '../../../src/schedule/target.ts';
import '../../../src/compile/all.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { expectClose } from '../../support/random/graph.ts';
import { Sketch } from '../cases.ts';
import { runLoop } from '../run-loop.ts';
import { randomUnit } from '../values.ts';

let device: Device;
beforeAll(async () => {
  device = await openDevice('webgpu:software');
});
afterAll(() => device.destroy());

const items = 16;

/** Each invocation's value, combined over its subgroup, in its place. */
function reduceLoop(monoid: Monoid, type: RegisterType, width: Width): Loop {
  const b = new LoopBuilder(new Set(['out']));
  const at = b.let(mulInts(builtin('local', 0), constant(width)), 'at');
  const load: Value = { kind: 'load', buffer: 'x', index: at, aligned: true, type, width };
  b.store('out', at, b.subgroupReduce(monoid, b.let(load, 'x'), 'total'), width === 4 || type !== 'bool');
  const buffer = (name: string, access: 'read' | 'read_write'): Loop['buffers'][number] => ({
    name,
    space: 'global',
    dtype: type,
    size: items * width,
    access,
  });
  return {
    name: 'reduce',
    kind: 'row-reduction',
    header: [],
    buffers: [buffer('x', 'read'), buffer('out', 'read_write')],
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [items, 1, 1],
    body: b.body,
  };
}

const rows: readonly (readonly [Monoid, RegisterType])[] = [
  ...(['sum', 'prod', 'min', 'max'] as const).flatMap((monoid) =>
    (['f32', 'i32', 'u32'] as const).map((type) => [monoid, type] as const),
  ),
  ['min', 'bool'],
  ['max', 'bool'],
  ['and', 'bool'],
  ['or', 'bool'],
  ['and', 'u32'],
];

function valuesOf(type: RegisterType, size: number): HostData {
  const data = emptyData(type, size);
  const special = [NaN, Infinity, -Infinity, -0, 0];
  for (let i = 0; i < size; i++) {
    const real = i % 7 === 3 ? special[i % 5]! : randomUnit() * 4 - 2;
    data[i] =
      type === 'f32' ? real : type === 'bool' ? Number(randomUnit() < 0.7) : Math.floor(randomUnit() * 9);
  }
  return data;
}

describe.each(rows)('the %s of a subgroup of %s', (monoid, type) => {
  test.each([1, 4] as const)('is what the interpreter says, width %d', async (width) => {
    const loop = reduceLoop(monoid, type, width);
    verifyLoop(loop, gpuTarget.limits);
    const x = valuesOf(type, items * width);
    const expected = new Map([
      ['x', x],
      ['out', emptyData(type, items * width)],
    ]);
    interpretLoop(loop, expected, [], device.facts.subgroups!.max);
    const actual = new Map([['x', x]]);
    await runLoop(device, loop, actual);
    const dims = [items * width];
    expectClose(
      hostArray(type, dims, [...actual.get('out')!] as number[]),
      hostArray(type, dims, [...expected.get('out')!] as number[]),
      1e-6,
    );
  });
});

test('a subgroup reduction stands in uniform control flow only', () => {
  const b = new LoopBuilder(new Set());
  b.if(operation('lt', [builtin('local', 0), constant(3)], 'bool'), () => {
    b.subgroupReduce('sum', constant(1), 'total');
  });
  const loop = { ...reduceLoop('sum', 'i32', 1), body: b.body };
  expect(() => verifyLoop(loop)).toThrow(/subgroupReduce stands in non-uniform control flow/);
});

test('place, number and count tell where an invocation stands, for any size', () => {
  const b = new LoopBuilder(new Set(['out']));
  const digits = [subgroup('place'), subgroup('number'), subgroup('count')].map((value, i) =>
    mulInts(value, constant(100 ** i)),
  );
  const sum = digits.reduce((x, y) => operation('add', [x, y], 'i32'));
  b.store('out', builtin('local', 0), sum, true);
  const loop = { ...reduceLoop('sum', 'i32', 1), body: b.body };
  const out = emptyData('i32', items);
  interpretLoop(
    loop,
    new Map([
      ['x', emptyData('i32', items)],
      ['out', out],
    ]),
    [],
    8,
  );
  expect([...out]).toEqual(
    Array.from({ length: items }, (_, i) => (i % 8) + 100 * Math.floor(i / 8) + 20_000),
  );
  const text = emitWgsl(loop, { scalarSlots: 0 });
  expect(text).toMatch(/^enable subgroups;\nrequires subgroup_id;$/m);
  // Numbers of subgroups are asked for: that invocations which follow each other make one is nowhere promised.
  expect(text).not.toContain('local_invocation_index');
  expect(text).not.toContain('subgroup_size');
});

describe('row kernels on an adapter with subgroups', () => {
  const target = { ...gpuTarget, subgroups: { min: 4, max: 128 } };
  const sketch = new Sketch();
  const graph = sketch.graph([sketch.softmax(sketch.input([6, 1024]), 1)]);
  const input = hostArray(
    'f32',
    [6, 1024],
    Array.from({ length: 6144 }, () => randomUnit() * 10 - 5),
  );

  test('compute the same whatever the size of a subgroup', () => {
    const [expected] = interpret(graph, [input]);
    for (const max of [4, 32, 128]) {
      const [got] = runLoops({ ...target, subgroups: { min: 4, max } }, graph, [input]);
      expectClose(got!, expected!, 1e-5);
    }
  });

  test('compute the same there', async () => {
    const [got] = await runOnDevice(device, target, graph, [input]);
    expectClose(got!, interpret(graph, [input])[0]!, 1e-5);
  });
});
