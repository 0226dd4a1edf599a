// What the ways of attention on a CPU core have in common: which kernels they are for, the rows of a workgroup of one
// invocation, and the memory that it alone fills.

import type { Node } from '../../../../ir/graph.ts';
import { packsOperands } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { constant } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { LoopBuffer, Value } from '../../../loop/loop.ts';
import type { Frame } from '../../shared/frame.ts';
import { AttentionRows, type Attention } from '../rows.ts';

/** Whether a kernel may be computed on a core in any of these ways: all of it is in f32. */
export function isForCore({ inners, stages, outers, rowProducts }: Attention, target: Target): boolean {
  const nodes = [...inners, ...stages, ...outers].map(({ node }) => node as Node);
  return (
    packsOperands(target) &&
    rowProducts.length === 0 &&
    nodes.every(({ dtype }) => registerOf(dtype) === 'f32')
  );
}

/** So many rows of a workgroup, which looks at so many quads of keys at a time. */
export function coreRows(
  frame: Frame,
  body: Attention,
  rows: number,
  quads: number,
  memory: readonly LoopBuffer[],
): AttentionRows {
  const seats = {
    rows,
    parts: 1,
    place: constant(0),
    part: constant(0),
    workgroup: [1, 1, 1] as const,
    quads,
  };
  return new AttentionRows(
    frame,
    body,
    seats,
    memory.map(({ name }) => name),
  );
}

/** Memory for so many numbers. */
export function scratch(name: string, size: number): LoopBuffer {
  return { name, space: 'workgroup', dtype: 'f32', size, access: 'read_write' };
}

export function bytesOf(memory: readonly LoopBuffer[]): number {
  return memory.reduce((sum, { size }) => sum + 4 * size, 0);
}

/** What memory holds at an element. */
export function scratchAt(buffer: string, index: Value, width: 1 | 4): Value {
  return { kind: 'load', buffer, index, aligned: true, type: 'f32', width };
}
