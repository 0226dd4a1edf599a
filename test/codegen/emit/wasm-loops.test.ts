// Loops in WebAssembly: which bodies become functions, and which addresses run along.

import { describe, expect, test } from 'vitest';
import { addInts, constant, LoopBuilder, mulInts, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, LoopBuffer, Value } from '../../../src/codegen/loop/loop.ts';
import { emitWasm } from '../../../src/codegen/emit/wasm/emit.ts';
import { loopsIn, outlinedLoops } from '../../../src/codegen/emit/wasm/rewrite/outline.ts';
import { definitionsOf, pointersOf } from '../../../src/codegen/emit/wasm/rewrite/pointers.ts';
import '../../../src/compile/all.ts';
import { runWasm } from './run-wasm.ts';

const x: LoopBuffer = { name: 'x', space: 'global', dtype: 'f32', size: 64, access: 'read' };
const y: LoopBuffer = { name: 'y', space: 'global', dtype: 'f32', size: 64, access: 'read_write' };
const scratch: LoopBuffer = {
  name: 'kept',
  space: 'workgroup',
  dtype: 'f32',
  size: 64,
  access: 'read_write',
};

function loopOf(build: (b: LoopBuilder) => void, buffers: readonly LoopBuffer[] = [x, y]): Loop {
  const b = new LoopBuilder(new Set(['y', 'kept']));
  build(b);
  const sizes = { grid: [1, 1, 1], workgroup: [1, 1, 1] } as const;
  return { name: 'test', kind: 'map', header: [], buffers, usesScalars: false, ...sizes, body: b.body };
}

const load = (buffer: string, index: Value, width: 1 | 4 = 1): Value => {
  return { kind: 'load', buffer, index, aligned: false, type: 'f32', width };
};
const from = (index: Value, offset: number): Value => addInts(index, constant(offset));

/** The same elements by the interpreter and as WebAssembly. */
function expectSame(loop: Loop): void {
  const data = Float32Array.from({ length: 64 }, (_, i) => i * i);
  const [one, other] = [new Float32Array(64), new Float32Array(64)];
  interpretLoop(
    loop,
    new Map([
      ['x', data],
      ['y', one],
    ]),
    [],
  );
  const arrays = new Map([
    ['x', data],
    ['y', other],
  ]);
  runWasm(loop, arrays);
  expect([...arrays.get('y')!]).toEqual([...one]);
}

describe('running pointers', () => {
  test('neighbours share one, at offsets from the lowest', () => {
    const loop = loopOf((b) =>
      b.for('i', constant(1), constant(15), 1, (i) => {
        const at = b.let(mulInts(i, constant(4)), 'at');
        const sum = operation('add', [load('x', from(at, -4)), load('x', from(at, 4))], 'f32');
        b.store('y', at, sum, true);
      }),
    );
    const plan = pointersOf(loopsIn(loop.body)[0]!)!;
    expect(plan.pointers.map(({ buffer, step }) => [buffer, step])).toEqual([
      ['x', 4],
      ['y', 4],
    ]);
    expect([...plan.places.values()].map(({ offset }) => offset)).toEqual([0, 0, 8]);
    expect([...plan.unused]).toEqual(['at']);
    expectSame(loop);
  });

  test('what only some turns reach has one of its own where it lies lower', () => {
    const loop = loopOf((b) =>
      b.for('i', constant(0), constant(64), 1, (i) => {
        b.if(operation('lt', [constant(2), i], 'bool'), () => b.store('y', i, load('x', from(i, -3)), true));
        b.store('y', i, operation('add', [load('y', i), load('x', i)], 'f32'), true);
      }),
    );
    const plan = pointersOf(loopsIn(loop.body)[0]!)!;
    expect(plan.pointers.filter(({ buffer }) => buffer === 'x').length).toBe(2);
    expectSame(loop);
  });

  test('accesses that differ by a number share one, whatever names around the loop say', () => {
    const loop = loopOf((b) =>
      b.for('row', constant(0), constant(2), 1, (row) => {
        const starts = Array.from({ length: 16 }, (_, n) =>
          b.let(addInts(constant(n), mulInts(row, constant(32))), 'start'),
        );
        b.for('i', constant(0), constant(2), 1, (i) => {
          for (const start of starts) {
            const at = addInts(start, mulInts(i, constant(16)));
            b.store('y', at, load('x', at), true);
          }
        });
      }),
    );
    const inner = loopsIn(loop.body)[1]!;
    expect(pointersOf(inner)).toBeUndefined();
    const plan = pointersOf(inner, definitionsOf(loop.body))!;
    expect(plan.pointers.map(({ buffer, step }) => [buffer, step])).toEqual([
      ['x', 16],
      ['y', 16],
    ]);
    expectSame(loop);
  });

  test('a name of what changes stays one of its own', () => {
    const loop = loopOf((b) => {
      const at = b.var('at', constant(0));
      const first = b.let(addInts(at, constant(1)), 'first');
      b.assign(at, constant(16));
      const second = b.let(addInts(at, constant(1)), 'second');
      b.for('i', constant(0), constant(8), 1, (i) =>
        b.store('y', addInts(first, i), load('x', addInts(second, i)), true),
      );
    });
    const plan = pointersOf(loopsIn(loop.body)[0]!, definitionsOf(loop.body))!;
    expect(plan.pointers.length).toBe(2);
    expectSame(loop);
  });

  test('an index that does not grow evenly is computed anew', () => {
    const loop = loopOf((b) =>
      b.for('i', constant(0), constant(64), 1, (i) =>
        b.store('y', i, load('x', operation('floorDiv', [i, constant(3)], 'i32')), true),
      ),
    );
    const plan = pointersOf(loopsIn(loop.body)[0]!)!;
    expect(plan.pointers.map(({ buffer }) => buffer)).toEqual(['y']);
    expectSame(loop);
  });
});

describe('functions of bodies', () => {
  const nest = (assigns: boolean): Loop =>
    loopOf(
      (b) => {
        const total = b.var('total', constant(0, 'f32'));
        b.for('row', constant(0), constant(4), 1, (row) => {
          const sum = b.var('sum', constant(0, 'f32'));
          b.for('i', constant(0), constant(16), 1, (i) => {
            const at = addInts(mulInts(row, constant(16)), i);
            b.store('kept', at, load('x', at), true);
            b.assign(sum, operation('add', [sum, load('kept', at)], 'f32'));
          });
          b.store('y', row, sum, true);
          if (assigns) b.assign(total, operation('add', [total, sum], 'f32'));
        });
        b.store('y', constant(60), total, true);
      },
      [x, y, scratch],
    );

  test('the body around an innermost loop is called with what it reads', () => {
    const [captured] = outlinedLoops(nest(false)).values();
    expect(captured?.buffers.toSorted()).toEqual(['kept', 'x', 'y']);
    expect([...captured!.variables.keys()]).toEqual([]);
    expectSame(nest(false));
  });

  test('a body that assigns what lies around it stays where it is', () => {
    expect(outlinedLoops(nest(true)).size).toBe(0);
    expectSame(nest(true));
  });

  test('scratch memory is a parameter, and as large as the buffers are', () => {
    expect(emitWasm(nest(true)).sharedBytes).toBe(256);
  });
});
