// Lanes that are known when a shader is compiled: adapters compute with them as with any others.
// SwiftShader gets comparisons with WGSL's `min` and `max` of such vectors wrong, so these are
// spelled otherwise.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { constant, LoopBuilder, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopOp, RegisterType, Value } from '../../../src/codegen/loop/loop.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { runLoop } from '../run-loop.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const lanes: readonly (readonly number[])[] = [
  [0, 1, 2, 3],
  [0, 0, 0, 0],
  [2, 3, 3, 4],
];
const orders: readonly LoopOp[] = ['eq', 'ne', 'lt', 'le'];

/**
 * Compares `op` of two known vectors, and its like of that, with a third: for all vectors and
 * orders.
 */
function comparisons(op: 'min' | 'max', type: RegisterType): Loop {
  const b = new LoopBuilder(new Set(['out']));
  const vector = (values: readonly number[]): Value => ({
    kind: 'vector',
    args: values.map((value) => constant(value, type)),
    type,
    width: 4,
  });
  const known = lanes.map((values) => b.let(vector(values), 'known'));
  let count = 0;
  for (const first of known)
    for (const second of lanes) {
      const one = b.let(operation(op, [first, vector(second)], type), 'one');
      const two = b.let(operation(op === 'min' ? 'max' : 'min', [one, known[2]!], type), 'two');
      for (const third of known)
        for (const order of orders) {
          const [left, right] = [
            operation(order, [one, third], 'bool'),
            operation(order, [third, two], 'bool'),
          ];
          const hit = b.let(
            operation('where', [left, constant(1, 'u32', 4), constant(0, 'u32', 4)], 'u32'),
            'hit',
          );
          const both = operation('where', [right, constant(2, 'u32', 4), constant(0, 'u32', 4)], 'u32');
          b.store('out', constant(4 * count++), operation('add', [hit, both], 'u32'), true);
        }
    }
  return {
    name: 'compare',
    kind: 'map',
    header: [],
    buffers: [{ name: 'out', space: 'global', dtype: 'u32', size: 4 * count, access: 'read_write' }],
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [1, 1, 1],
    body: b.body,
  };
}

describe.each(['min', 'max'] as const)('%s', (op) => {
  test.each(['i32', 'u32', 'f32'] as const)('of known vectors of %s compares as it should', async (type) => {
    const loop = comparisons(op, type);
    const { size } = loop.buffers[0]!;
    const [meant, made] = [new Uint32Array(size), new Uint32Array(size)];
    interpretLoop(loop, new Map([['out', meant]]), []);
    const arrays = new Map([['out', made as Uint32Array]]);
    await runLoop(device, loop, arrays);
    expect(arrays.get('out')).toEqual(meant);
  });
});
