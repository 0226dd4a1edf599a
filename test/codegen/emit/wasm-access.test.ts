// Elements of every type as WebAssembly reads and writes them, one by one and four at a time; 16-bit floats in every bit pattern.

import { describe, expect, test } from 'vitest';
import type { Loop } from '../../../src/codegen/loop/loop.ts';
import { emitWasm } from '../../../src/codegen/emit/wasm/emit.ts';
import { widened } from '../../../src/codegen/loop/register.ts';
import { realDTypes as dtypes } from '../../../src/ir/dtype.ts';
import { fromReal, type HostData } from '../../../src/ir/value.ts';
import '../../../src/compile/all.ts';
import type { Arrays } from '../run-loop.ts';
import { aroundHalves, copies, elementsOf, everyHalf } from './copies.ts';
import { runWasm } from './run-wasm.ts';

function copied(loop: Loop, input: HostData): HostData {
  const arrays: Arrays = new Map([['x', input]]);
  runWasm(loop, arrays);
  return arrays.get('out')!;
}

describe.each([1, 2, 4] as const)('width %i', (width) => {
  test.each(['f16', 'bf16'] as const)('every %s becomes the f32 that it is', (dtype) => {
    const values = everyHalf(dtype);
    const found = copied(copies(dtype, 'f32', 'f32', width, 65_536), values);
    expect(found).toEqual(values);
  });

  test.each(['f16', 'bf16'] as const)('f32 becomes the nearest %s', (dtype) => {
    const values = aroundHalves(dtype);
    const round = fromReal(dtype) as (x: number) => number;
    const found = copied(copies('f32', dtype, 'f32', width, values.length), values);
    expect(found).toEqual(values.map(round));
  });

  test.each(dtypes.filter((dtype) => dtype !== 'f16' && dtype !== 'bf16'))('%s is copied', (dtype) => {
    const size = 256;
    const values = elementsOf(dtype, size + 3);
    for (const start of [0, 3]) {
      const loop = copies(dtype, dtype, widened(dtype)!, width, size, start);
      const given = values.slice(0, size + start);
      expect(copied(loop, given)).toEqual(values.slice(start, start + size));
    }
  });
});

test('a module says in text what it is in bytes', () => {
  const { bytes, text } = emitWasm(copies('f16', 'f32', 'f32', 4, 256));
  expect(WebAssembly.validate(bytes)).toBe(true);
  expect(text()).toContain('(func $group (param $group i32) (param $x i32) (param $out i32)');
  expect(text()).toContain('v128.load16x4_s');
  expect(text()).toContain('f32x4.mul');
});
