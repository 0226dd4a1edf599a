// What is only stored as f16 or bf16 is rounded by the store alone; the stored bits are the same.

import { describe, expect, test } from 'vitest';
import { constant, LoopBuilder, operation } from '../../../src/codegen/loop/builder.ts';
import type { Loop, Value } from '../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../src/codegen/loop/print.ts';
import { roundOnce } from '../../../src/codegen/loop/rounding.ts';
import { lowered } from '../../../src/ir/dtype.ts';
import { emptyData, type HostData } from '../../../src/ir/value.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import { randomReal } from '../values.ts';

const rounded = { f16: 'roundF16', bf16: 'roundBf16' } as const;
const load = (index: number): Value => ({
  kind: 'load',
  buffer: 'x',
  index: constant(index),
  aligned: true,
  type: 'f32',
  width: 4,
});

/** A kernel over eight floats of `x` whose results `y` and `z` are of a narrow type. */
function kernel(dtype: 'f16' | 'bf16', body: (b: LoopBuilder, round: (value: Value) => Value) => void): Loop {
  const b = new LoopBuilder(new Set(['y', 'z']));
  body(b, (value) => operation(rounded[dtype], [value], 'f32'));
  const result = { space: 'global', dtype, size: 8, access: 'read_write' } as const;
  return {
    name: 'kernel',
    kind: 'test',
    header: [],
    buffers: [
      { name: 'x', space: 'global', dtype: 'f32', size: 8, access: 'read' },
      { name: 'y', ...result },
      { name: 'z', ...result },
    ],
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [1, 1, 1],
    body: b.body,
  };
}

const edges = [NaN, Infinity, -Infinity, -0, 65519.99, 65520, -1e-41, 3.3895e38];

function results(loop: Loop, x: Float32Array): readonly HostData[] {
  const arrays = new Map<string, HostData>([['x', x]]);
  for (const name of ['y', 'z']) arrays.set(name, emptyData(lowered(loop.buffers[1]!.dtype), 8));
  interpretLoop(loop, arrays, []);
  return ['y', 'z'].map((name) => arrays.get(name)!);
}

/** How often the Loop rounds by itself, after a comparison of what it stores before and after. */
function roundings(loop: Loop): number {
  const after = roundOnce(loop);
  for (const x of [edges, Array.from({ length: 8 }, randomReal)])
    expect(results(after, Float32Array.from(x))).toEqual(results(loop, Float32Array.from(x)));
  return printLoop(after).match(/round\w+\(/g)?.length ?? 0;
}

describe.each(['f16', 'bf16'] as const)('stores of %s', (dtype) => {
  test('round what nothing else reads, by name or not', () => {
    const loop = kernel(dtype, (b, round) => {
      const sum = b.let(round(operation('add', [load(0), load(4)], 'f32')), 'sum');
      b.store('y', constant(0), sum, true);
      b.store('z', constant(4), sum, true);
      b.store('y', constant(4), round(load(4)), true);
    });
    expect(roundings(loop)).toBe(0);
  });

  test('leave what is computed with rounded', () => {
    const loop = kernel(dtype, (b, round) => {
      const sum = b.let(round(operation('add', [load(0), load(4)], 'f32')), 'sum');
      b.store('y', constant(0), sum, true);
      b.store('z', constant(0), round(operation('mul', [sum, sum], 'f32')), true);
    });
    expect(roundings(loop)).toBe(1);
  });

  test('round what is chosen, and lanes that are put together', () => {
    const loop = kernel(dtype, (b, round) => {
      const isLess = operation('lt', [load(0), load(4)], 'bool');
      b.store(
        'y',
        constant(0),
        operation('where', [isLess, round(load(0)), constant(1.5, 'f32', 4)], 'f32'),
        true,
      );
      const lanes = [3, 2, 1, 0].map((lane): Value => {
        return { kind: 'lane', arg: round(load(4)), lane, type: 'f32', width: 1 };
      });
      b.store('z', constant(4), { kind: 'vector', args: lanes, type: 'f32', width: 4 }, true);
    });
    expect(roundings(loop)).toBe(0);
  });

  test('round what keeps its order and sign, through names and branches', () => {
    const loop = kernel(dtype, (b, round) => {
      const sum = b.let(round(operation('add', [load(0), load(4)], 'f32')), 'sum');
      const positive = b.let(operation('max', [sum, constant(0, 'f32', 4)], 'f32'), 'positive');
      const negative = operation('neg', [operation('abs', [sum], 'f32')], 'f32');
      b.if(
        operation(
          'lt',
          [constant(0), { kind: 'builtin', of: 'local', axis: 0, type: 'i32', width: 1 }],
          'bool',
        ),
        () => b.store('y', constant(0), positive, true),
        () => b.store('z', constant(4), negative, true),
      );
    });
    expect(roundings(loop)).toBe(0);
  });

  test('leave what is also added up, in a loop', () => {
    const loop = kernel(dtype, (b, round) => {
      const sum = b.let(round(operation('add', [load(0), load(4)], 'f32')), 'sum');
      const total = b.var('total', constant(0, 'f32', 4));
      b.for('i', constant(0), constant(3), 1, () => {
        b.assign(total, operation('add', [total, sum], 'f32'));
      });
      b.store('y', constant(0), operation('max', [sum, total], 'f32'), true);
    });
    expect(roundings(loop)).toBe(1);
  });

  test('leave what is rounded to another type', () => {
    const loop = kernel(dtype, (b) => {
      const other = rounded[dtype === 'f16' ? 'bf16' : 'f16'];
      b.store('y', constant(0), operation(other, [load(0)], 'f32'), true);
    });
    expect(roundings(loop)).toBe(1);
  });
});
