// Vectors of four registers of 64 bits as two of two: the same numbers, and nothing left that fits no v128.

import { expect, test } from 'vitest';
import { constant, LoopBuilder, operandsOf, operation } from '../../../src/codegen/loop/builder.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import type { Loop, Stmt, Value } from '../../../src/codegen/loop/loop.ts';
import { checkTypes } from '../../../src/codegen/loop/verify.ts';
import { halveVectors } from '../../../src/codegen/emit/wasm/rewrite/halves.ts';
import { isLong } from '../../../src/codegen/loop/register.ts';
import type { HostData } from '../../../src/ir/value.ts';
import '../../../src/compile/all.ts';
import { runWasm } from './run-wasm.ts';

const f64 = (op: 'add' | 'mul' | 'sub', ...args: Value[]): Value => operation(op, args, 'f64');
const laneOf = (arg: Value, lane: number): Value => ({ kind: 'lane', arg, lane, type: arg.type, width: 1 });

/** Sums blocks of four of two kinds, turns the lanes about, and chooses among them by a comparison of floats of 32 bits. */
function loopOf(): Loop {
  const b = new LoopBuilder(new Set(['out', 'flags']));
  const total = b.var('total', constant(0, 'f64', 4));
  b.for('i', constant(0), constant(16), 4, (i) => {
    const load = (buffer: string, type: 'f32' | 'f64'): Value =>
      b.let({ kind: 'load', buffer, index: i, aligned: true, type, width: 4 }, buffer);
    const [x, y] = [load('x', 'f64'), load('y', 'f32')];
    const wide = operation('cast', [y], 'f64');
    b.assign(total, f64('add', total, f64('mul', x, wide)));
    const turned: Value = {
      kind: 'vector',
      args: [3, 2, 1, 0].map((lane) => laneOf(total, lane)),
      type: 'f64',
      width: 4,
    };
    const isLess = operation('lt', [operation('cast', [x], 'f32'), y], 'bool');
    b.assign(total, operation('where', [isLess, turned, f64('sub', total, x)], 'f64'));
  });
  b.store('out', constant(0), total, true);
  b.store('flags', constant(0), operation('le', [total, constant(0, 'f64', 4)], 'bool'), true);
  const buffer = (name: string, dtype: 'f32' | 'f64' | 'bool', size: number): Loop['buffers'][number] => {
    return { name, space: 'global', dtype, size, access: size === 4 ? 'read_write' : 'read' };
  };
  return {
    name: 'apply',
    kind: 'map',
    header: [],
    buffers: [
      buffer('x', 'f64', 16),
      buffer('y', 'f32', 16),
      buffer('out', 'f64', 4),
      buffer('flags', 'bool', 4),
    ],
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [1, 1, 1],
    body: b.body,
  };
}

function widest(body: readonly Stmt[]): number {
  const of = (value: Value): number =>
    Math.max(isLong(value.type) ? value.width : 1, ...operandsOf(value).map(of));
  return Math.max(
    ...body.map((stmt) => {
      if (stmt.kind === 'for') return widest(stmt.body);
      return 'value' in stmt ? of(stmt.value) : 1;
    }),
  );
}

test('a Loop computes the same in halves, and as WebAssembly', () => {
  const loop = loopOf();
  const halved = halveVectors(loop);
  expect([widest(loop.body), widest(halved.body)]).toEqual([4, 2]);
  checkTypes(halved);
  const arrays = (): Map<string, HostData> =>
    new Map<string, HostData>([
      ['x', Float64Array.from({ length: 16 }, (_, i) => Math.sin(i) * 10)],
      ['y', Float32Array.from({ length: 16 }, (_, i) => Math.cos(3 * i) * 10)],
      ['out', new Float64Array(4)],
      ['flags', new Uint8Array(4)],
    ]);
  const [meant, found, run] = [arrays(), arrays(), arrays()];
  interpretLoop(loop, meant, []);
  interpretLoop(halved, found, []);
  runWasm(loop, run);
  for (const name of ['out', 'flags']) {
    expect(found.get(name)).toEqual(meant.get(name));
    expect(run.get(name)).toEqual(meant.get(name));
  }
  expect(new Set(meant.get('flags') as Uint8Array)).toEqual(new Set([0, 1]));
});

test('a Loop without them stays as it is', () => {
  const { body, ...rest } = loopOf();
  const narrow: Loop = { ...rest, body: body.filter(({ kind }) => kind === 'comment') };
  expect(halveVectors(narrow)).toEqual(narrow);
});
