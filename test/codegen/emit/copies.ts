// Loops that copy elements from one type to another, and elements that show what is rounded how.

import { addInts, builtin, constant, less, LoopBuilder, mulInts } from '../../../src/codegen/loop/builder.ts';
import type { Loop, RegisterType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { isWide, type DType } from '../../../src/ir/dtype.ts';
import { emptyData, unpackBytes, type HostData } from '../../../src/ir/value.ts';
import { randomReal } from '../values.ts';

/** Copies `size` elements, `width` at a time, from one type to another; the loads begin `from` elements in. */
export function copies(
  from: DType,
  to: DType,
  type: RegisterType,
  width: Width,
  size: number,
  start = 0,
): Loop {
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

const patterns = Uint8Array.from({ length: 2 * 65_536 }, (_, i) => (i & 1 ? i >> 9 : (i >> 1) & 0xff));

/** Every value of a 16-bit float. */
export function everyHalf(dtype: 'f16' | 'bf16'): Float32Array {
  return unpackBytes(patterns, dtype, [65_536]).data as Float32Array;
}

/** What a 16-bit float represents, what lies halfway, and its neighbours: ties must go to even. */
export function aroundHalves(dtype: 'f16' | 'bf16'): Float32Array {
  const halves = everyHalf(dtype);
  return Float32Array.from({ length: 4 * 65_536 }, (_, i) => {
    const [at, kind] = [i >> 2, i & 3];
    const [x, y] = [halves[at]!, halves[Math.min(at + 1, 65_535)]!];
    if (kind === 0) return x;
    const middle = (x + y) / 2;
    return kind === 1 ? middle : kind === 2 ? middle * (1 + 2 ** -23) : randomReal();
  });
}

/** Elements that are copied as they are. */
export function elementsOf(dtype: DType, size: number): HostData {
  const values = emptyData(dtype, size);
  const top = dtype === 'bool' ? 2 : 300;
  for (let i = 0; i < values.length; i++)
    values[i] = isWide(dtype) ? BigInt(i * 7919) << 30n : (i * 7919) % top;
  return values;
}
