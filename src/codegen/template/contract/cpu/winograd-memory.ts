// What a workgroup of Winograd's templates keeps: arrays of f32 by name, read and written in vectors of four where that is said.

import type { LoopBuilder } from '../../../loop/builder.ts';
import type { LoopBuffer, Value } from '../../../loop/loop.ts';
import { openBuilder, type Frame } from '../../shared/frame.ts';

export interface WinogradMemory<Part extends string> {
  readonly b: LoopBuilder;
  readonly buffers: readonly LoopBuffer[];
  /** What is there at an index, of which four are aligned. */
  readonly kept: (part: Part, index: Value, wide?: 1 | 4) => Value;
  readonly keep: (part: Part, index: Value, value: Value) => void;
}

/** Opens a kernel with arrays of so many elements. */
export function openMemory<Part extends string>(
  frame: Frame,
  room: Readonly<Record<Part, number>>,
): WinogradMemory<Part> {
  const buffers = (Object.keys(room) as Part[]).map((name): LoopBuffer => {
    return { name, space: 'workgroup', dtype: 'f32', size: room[name], access: 'read_write' };
  });
  const b = openBuilder(
    frame,
    buffers.map(({ name }) => name),
  );
  return {
    b,
    buffers,
    kept: (part, index, wide = 4) => {
      return { kind: 'load', buffer: part, index, aligned: true, type: 'f32', width: wide };
    },
    keep: (part, index, value) => b.store(part, index, value, true),
  };
}
