// Elements of every type as WebAssembly reads and writes them, one by one and four at a time; 16-bit floats in every bit pattern.

import { describe, expect, test } from 'vitest';
import { addInts, builtin, constant, less, LoopBuilder, mulInts } from '../../../src/codegen/loop/builder.ts';
import type { Loop, RegisterType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { emitWasm } from '../../../src/codegen/emit/wasm/emit.ts';
import { widened } from '../../../src/codegen/loop/register.ts';
import { realDTypes as dtypes, isWide, type DType } from '../../../src/ir/dtype.ts';
import { emptyData, fromReal, unpackBytes, type HostData } from '../../../src/ir/value.ts';
import '../../../src/compile/all.ts';
import { randomReal } from '../values.ts';
import type { Arrays } from '../run-loop.ts';
import { runWasm } from './run-wasm.ts';

/** Copies `size` elements, `width` at a time, from one type to another; the loads begin `from` elements in. */
function copies(from: DType, to: DType, type: RegisterType, width: Width, size: number, start = 0): Loop {
  const b = new LoopBuilder(new Set(['out']));
  const id = b.let(addInts(mulInts(builtin('workgroup', 0), constant(64)), builtin('local', 0)), 'id');
  b.if(less(id, constant(size / width)), () => {
    const at = b.let(mulInts(id, constant(width)), 'at');
    const index = addInts(at, constant(start));
    const value: Value = { kind: 'load', buffer: 'x', index, aligned: start === 0, type, width };
    b.store('out', at, b.let(value, 'v'), true);
  });
  return {
    name: 'copy',
    kind: 'map',
    header: [],
    buffers: [
      { name: 'x', space: 'global', dtype: from, size: size + start, access: 'read' },
      { name: 'out', space: 'global', dtype: to, size, access: 'read_write' },
    ],
    usesScalars: false,
    grid: [Math.ceil(size / width / 64), 1, 1],
    workgroup: [64, 1, 1],
    body: b.body,
  };
}

function copied(loop: Loop, input: HostData): HostData {
  const arrays: Arrays = new Map([['x', input]]);
  runWasm(loop, arrays);
  return arrays.get('out')!;
}

const patterns = Uint8Array.from({ length: 2 * 65_536 }, (_, i) => (i & 1 ? i >> 9 : (i >> 1) & 0xff));

describe.each([1, 2, 4] as const)('width %i', (width) => {
  test.each(['f16', 'bf16'] as const)('every %s becomes the f32 that it is', (dtype) => {
    const values = unpackBytes(patterns, dtype, [65_536]).data as Float32Array;
    const found = copied(copies(dtype, 'f32', 'f32', width, 65_536), values);
    expect(found).toEqual(values);
  });

  test.each(['f16', 'bf16'] as const)('f32 becomes the nearest %s', (dtype) => {
    const halves = unpackBytes(patterns, dtype, [65_536]).data as Float32Array;
    // What is representable, what lies halfway, and its neighbours: ties must go to even.
    const values = Float32Array.from({ length: 4 * 65_536 }, (_, i) => {
      const [at, kind] = [i >> 2, i & 3];
      const [x, y] = [halves[at]!, halves[Math.min(at + 1, 65_535)]!];
      if (kind === 0) return x;
      const middle = (x + y) / 2;
      return kind === 1 ? middle : kind === 2 ? middle * (1 + 2 ** -23) : randomReal();
    });
    const round = fromReal(dtype) as (x: number) => number;
    const found = copied(copies('f32', dtype, 'f32', width, values.length), values);
    expect(found).toEqual(values.map(round));
  });

  test.each(dtypes.filter((dtype) => dtype !== 'f16' && dtype !== 'bf16'))('%s is copied', (dtype) => {
    const size = 256;
    const values = emptyData(dtype, size + 3);
    const top = dtype === 'bool' ? 2 : 300;
    for (let i = 0; i < values.length; i++)
      values[i] = isWide(dtype) ? BigInt(i * 7919) << 30n : (i * 7919) % top;
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
  expect(text()).toContain('v128.load16x4_u');
  expect(text()).toContain('call $f16_to_f32');
});
