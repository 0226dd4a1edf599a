// Atomic statements as CUDA C, on every type that has them, in global and in workgroup memory: on numbers whose folds are exact, in
// whichever order threads come.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { expect, test } from 'vitest';
import { builtin, constant, less, LoopBuilder, operation } from '../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../support/interpret/run.ts';
import type { AtomicOp, Loop, LoopBuffer, RegisterType, Value } from '../../src/codegen/loop/loop.ts';
import { isWide } from '../../src/ir/dtype.ts';
import { emptyData, type HostData } from '../../src/ir/value.ts';
import { onStandIn } from './standin/on-standin.ts';
import { runTrials } from './trials.ts';

type Type = Exclude<RegisterType, 'bool'>;
const types: readonly Type[] = ['f32', 'i32', 'u32', 'f64', 'i64', 'u64'];
const threads = 64;
const cells = 3;

interface Case {
  readonly op: AtomicOp;
  readonly type: Type;
  readonly space: LoopBuffer['space'];
}

const cases = (['add', 'mul', 'min', 'max', 'and', 'or'] as const).flatMap((op) =>
  types
    .filter((type) => (op !== 'and' && op !== 'or') || (type !== 'f32' && type !== 'f64'))
    .flatMap((type) => (['global', 'workgroup'] as const).map((space): Case => ({ op, type, space }))),
);

/** Each of 64 invocations folds its element into one of three cells, which begin at 1. */
function loopOf({ op, type, space }: Case, number: number): Loop {
  const b = new LoopBuilder(new Set(['out', 'cells']));
  const local = builtin('local', 0);
  const load = (buffer: string): Value => ({
    kind: 'load',
    buffer,
    index: local,
    aligned: true,
    type,
    width: 1,
  });
  const folded = space === 'global' ? 'out' : 'cells';
  const inside = less(local, constant(cells));
  b.if(inside, () => b.store(folded, local, constant(1, type), true));
  b.barrier();
  const cell = b.let(operation('mod', [local, constant(cells)], 'i32'), 'cell');
  b.atomic(op, folded, cell, b.let(load('x'), 'x'));
  b.barrier();
  if (space === 'workgroup') b.if(inside, () => b.store('out', local, load('cells'), true));
  const buffers: LoopBuffer[] = [
    { name: 'x', space: 'global', dtype: type, size: threads, access: 'read' },
    { name: 'out', space: 'global', dtype: type, size: cells, access: 'read_write' },
  ];
  if (space === 'workgroup')
    buffers.push({ name: 'cells', space, dtype: type, size: cells, access: 'read_write' });
  return {
    name: `fold_${number}`,
    kind: 'map',
    header: [],
    buffers,
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [threads, 1, 1],
    body: b.body,
  };
}

/** Small numbers; factors are powers of two, and few of them. */
function elementsOf({ op, type }: Case): HostData {
  const data = emptyData(type, threads);
  for (let i = 0; i < threads; i++) {
    const number = op === 'mul' ? (i % 4 === 0 ? 2 : 1) : (i * 37) % 100;
    const signed = type.startsWith('u') || i % 2 === 0 ? number : -number;
    data[i] = isWide(type) ? BigInt(signed) * 2n ** 20n : signed;
  }
  return data;
}

onStandIn('atomics as CUDA C', () => {
  test('fold as in the interpreter', async () => {
    const trials = cases.map((row, i) => ({ loop: loopOf(row, i), inputs: [elementsOf(row)] }));
    const results = await runTrials(trials);
    cases.forEach(({ op, type, space }, i) => {
      const { loop, inputs } = trials[i]!;
      const expected = emptyData(type, cells);
      interpretLoop(
        loop,
        new Map([
          ['x', inputs[0]!],
          ['out', expected],
        ]),
        [],
        32,
      );
      expect(results[i]!.slice(0, cells), `${op} on ${type} in ${space} memory`).toEqual(expected);
    });
  });
});
