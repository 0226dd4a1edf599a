// Walks over statements hold for every kind: the table of facts says of each field what it is.

import { describe, expect, test } from 'vitest';
import type { Stmt, TileOperand, Value } from '../../../src/codegen/loop/loop.ts';
import { bodiesOf, namesIn, rewritten, statementsIn, valuesOf } from '../../../src/codegen/loop/walk.ts';

let count = 0;
const v = (): Value => ({ kind: 'variable', name: `read${count++}`, type: 'i32', width: 1 });
const tile = (): TileOperand => ({ buffer: 'buffer', index: v(), alongK: true, panel: 512 });
const inside = (): readonly Stmt[] => [{ kind: 'let', name: 'register', value: v() }];

/** A statement of every kind: registers, buffers and mbarriers are called so. */
const samples: { readonly [K in Stmt['kind']]: Extract<Stmt, { readonly kind: K }> } = {
  let: { kind: 'let', name: 'register', value: v() },
  var: { kind: 'var', name: 'register', value: v() },
  assign: { kind: 'assign', name: 'register', value: v() },
  store: { kind: 'store', buffer: 'buffer', index: v(), value: v(), owned: true },
  atomic: { kind: 'atomic', op: 'add', buffer: 'buffer', index: v(), value: v() },
  for: { kind: 'for', name: 'register', start: v(), end: v(), step: 1, body: inside() },
  if: { kind: 'if', condition: v(), then: inside(), else: inside() },
  prefetch: { kind: 'prefetch', buffer: 'buffer', index: v() },
  barrier: { kind: 'barrier' },
  subgroupReduce: { kind: 'subgroupReduce', name: 'register', monoid: 'sum', value: v() },
  loadMatrix: { kind: 'loadMatrix', name: 'register', buffer: 'buffer', index: v(), transposed: false },
  mma: { kind: 'mma', name: 'register', operand: 'f16', lhs: v(), rhs: v() },
  shuffle: { kind: 'shuffle', name: 'register', value: v(), mask: 1 },
  asyncCopy: { kind: 'asyncCopy', buffer: 'buffer', index: v(), from: 'buffer', at: v(), inside: v() },
  asyncCommit: { kind: 'asyncCommit' },
  asyncWait: { kind: 'asyncWait', pending: 0 },
  initBarrier: { kind: 'initBarrier', barrier: 'mbarrier', index: v(), count: 1 },
  arrive: { kind: 'arrive', barrier: 'mbarrier', index: v(), bytes: 0 },
  awaitBarrier: { kind: 'awaitBarrier', barrier: 'mbarrier', index: v(), parity: v() },
  copyTile: {
    kind: 'copyTile',
    buffer: 'buffer',
    index: v(),
    map: 'map',
    at: [v(), v()],
    barrier: 'mbarrier',
    slot: v(),
  },
  clearTile: { kind: 'clearTile', buffer: 'buffer', index: v() },
  publishTiles: { kind: 'publishTiles' },
  wgmma: { kind: 'wgmma', sums: ['register', 'register'], operand: 'f16', lhs: tile(), rhs: tile() },
  wgmmaFence: { kind: 'wgmmaFence', sums: ['register'] },
  wgmmaCommit: { kind: 'wgmmaCommit' },
  wgmmaWait: { kind: 'wgmmaWait', pending: 0, sums: ['register'] },
  setRegisters: { kind: 'setRegisters', count: 24, grow: true },
  comment: { kind: 'comment', text: 'text' },
};

/** Every value that stands in an object, however deep, but for those in bodies. */
function foundIn(part: unknown): Value[] {
  if (typeof part !== 'object' || part === null) return [];
  if ('type' in part && 'width' in part) return [part as Value];
  return Object.entries(part)
    .filter(([key]) => !['body', 'then', 'else'].includes(key))
    .flatMap(([, inner]) => foundIn(inner));
}

/** How often a word stands in JSON as a value. */
const times = (text: string, word: string): number => text.split(new RegExp(`"${word}"(?!:)`)).length - 1;

describe.each(Object.values(samples).map((stmt) => [stmt.kind, stmt] as const))('%s', (_, stmt) => {
  const text = JSON.stringify(stmt);

  test('has the values that stand in it', () => {
    expect(new Set(valuesOf(stmt))).toEqual(new Set(foundIn(stmt)));
  });

  test('rewritten by nothing is the same', () => {
    expect(rewritten(stmt, {})).toEqual(stmt);
    const same = rewritten(stmt, { value: (value) => value, body: (body) => body, buffer: (name) => name });
    expect(same).toEqual(stmt);
  });

  test('renamed has no old name left, and no other name is renamed', () => {
    const renamed = (each: Stmt): Stmt =>
      rewritten(each, {
        body: (body) => body.map(renamed),
        register: () => 'newRegister',
        buffer: () => 'newBuffer',
      });
    const after = JSON.stringify(renamed(stmt));
    expect(times(after, 'newRegister')).toBe(times(text, 'register'));
    expect(times(after, 'newBuffer')).toBe(times(text, 'buffer'));
    expect(after.replaceAll('newRegister', 'register').replaceAll('newBuffer', 'buffer')).toBe(text);
  });

  test('names what it declares, writes and reads', () => {
    const named = [...statementsIn([stmt])].flatMap((each) => [
      ...namesIn(each, 'declared', 'counter', 'assigned', 'awaited'),
      ...namesIn(each, 'read', 'written'),
    ]);
    expect(named.length).toBe(times(text, 'buffer') + times(text, 'register'));
    expect(bodiesOf(stmt).length).toBe(stmt.kind === 'for' ? 1 : stmt.kind === 'if' ? 2 : 0);
  });
});
