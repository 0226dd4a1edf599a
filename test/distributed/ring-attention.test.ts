// Attention over sequences that processes hold in parts: it equals plain attention with its gradients, processes skip blocks that
// a causal mask hides, and in zigzag order all of them multiply as many.
// Runs on the sources: graphs are partitioned and run without devices.

import { describe, expect, test } from 'vitest';
import { mesh, ringAttention, unzigzag, zigzag, type Spec } from '../../src/distributed/index.ts';
import * as sn from '../../src/index.ts';
import { topological, type Node } from '../../src/ir/graph.ts';
import { siblingKey } from '../../src/ir/control/iterate.ts';
import { constantOf } from '../../src/ir/passes/pattern.ts';
import { graphOf } from '../../src/ir/text/region.ts';
import { placeRank } from '../../src/schedule/passes/collectives.ts';
import { isQuick } from '../support/sample.ts';
import { expectSame, gradientOf, onMesh, type Fn, type Shape } from './together.ts';

const spec: Spec = [null, null, 'sequence', null];

/** Positions in zigzag order, by which the plain attention gets and gives the same rows. */
const zigzagged =
  (of: Fn, count: number): Fn =>
  (...args) => {
    const ring = mesh({ sequence: count });
    const result = of(...args.map((x) => unzigzag(x, ring, 'sequence', -2))) as sn.Tensor;
    return zigzag(result, ring, 'sequence', -2);
  };

describe('ring attention is plain attention', () => {
  test.each([false, true])('beside data that is parallel, causal: %s', (isCausal) => {
    const ring = mesh({ data: 2, sequence: 4 });
    const both: Spec = ['data', null, 'sequence', null];
    const shapes = [
      [2, 3, 8, 4],
      [2, 3, 8, 4],
      [2, 3, 8, 5],
    ];
    const fn: Fn = (q, k, v) => ringAttention(q!, k!, v!, ring, both, { isCausal });
    const plain: Fn = (q, k, v) => sn.scaledDotProductAttention(q!, k!, v!, { isCausal });
    const used = expectSame(fn, plain, ring, shapes, [both, both, both]);
    // Keys and values go three steps.
    expect(used.map(({ kind }) => kind)).toEqual(Array(6).fill('permuteRanks'));
    expectSame(gradientOf(fn), gradientOf(plain), ring, shapes, [both, both, both]);
  });

  // Gradients of eight parts take seconds each.
  test.each(isQuick ? [1, 2] : [1, 2, 3, 4, 8])('over %i processes', (count) => {
    const ring = mesh({ sequence: count });
    const length = 4 * count;
    const shapes = [
      [1, 4, length, 3],
      [1, 2, length, 3],
      [1, 2, length, 2],
    ];
    for (const isCausal of [false, true])
      for (const order of ['sequence', 'zigzag'] as const) {
        const options = { isCausal, enableGqa: true };
        const fn: Fn = (q, k, v) => ringAttention(q!, k!, v!, ring, spec, { ...options, order });
        const attention: Fn = (q, k, v) => sn.scaledDotProductAttention(q!, k!, v!, options);
        const plain = order === 'zigzag' ? zigzagged(attention, count) : attention;
        expectSame(fn, plain, ring, shapes, [spec, spec, spec]);
        expectSame(gradientOf(fn), gradientOf(plain), ring, shapes, [spec, spec, spec]);
      }
  });

  test('over heads that are split, too, in groups', () => {
    const ring = mesh({ heads: 2, sequence: 2 });
    const both: Spec = [null, 'heads', 'sequence', null];
    const shapes = [
      [1, 8, 4, 3],
      [1, 4, 4, 3],
      [1, 4, 4, 2],
    ];
    const options = { isCausal: true, enableGqa: true };
    const fn: Fn = (q, k, v) => ringAttention(q!, k!, v!, ring, both, options);
    const plain: Fn = (q, k, v) => sn.scaledDotProductAttention(q!, k!, v!, options);
    expectSame(fn, plain, ring, shapes, [both, both, both]);
    expectSame(gradientOf(fn), gradientOf(plain), ring, shapes, [both, both, both]);
  });
});

test('zigzag lays out slices from both ends, and unzigzag puts them back', async () => {
  const ring = mesh({ sequence: 2 });
  const x = sn.arange(8);
  const laid = zigzag(x, ring, 'sequence');
  expect(await laid.array()).toEqual([0, 1, 6, 7, 2, 3, 4, 5]);
  expect(await unzigzag(laid, ring, 'sequence').array()).toEqual(await x.array());
  const rows = sn.arange(24).reshape([2, 12]);
  const three = mesh({ sequence: 3 });
  expect(await zigzag(rows, three, ['sequence'], -1).select(0, 0).array()).toEqual([
    0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7,
  ]);
  expect(await unzigzag(zigzag(rows, three, ['sequence'], -1), three, 'sequence', 1).array()).toEqual(
    await rows.array(),
  );
});

/** Products that a process executes: those of loops that are guarded by 0 are skipped. */
function productsOf(nodes: readonly Node[]): number {
  const loops = new Set<string>();
  let count = 0;
  for (const node of topological(nodes) as readonly Node[]) {
    if (node.op === 'dot') count += 1;
    if (node.op !== 'iterate') continue;
    const key = siblingKey(node);
    if (loops.has(key)) continue;
    loops.add(key);
    const { guard, body } = node.attrs;
    const inside = productsOf(graphOf(body).outputs as readonly Node[]);
    const going = guard === undefined ? undefined : constantOf(node.inputs[guard]!);
    if (inside > 0 && going === undefined) throw new Error('a guard that is not known of a process');
    if (going !== 0) count += inside;
  }
  return count;
}

test.each([2, 4])('blocks that nobody of %i processes sees are not multiplied', (count) => {
  const ring = mesh({ sequence: count });
  const shape: Shape = [1, 1, 4 * count, 2];
  const blocks = (fn: Fn): number[] => {
    const { graph } = onMesh(fn, ring, [shape, shape, shape], [spec, spec, spec]);
    // Two products a block: of queries and keys, and of weights and values.
    return Array.from({ length: count }, (_, rank) => productsOf(placeRank(graph, { rank }).outputs) / 2);
  };
  const attend =
    (isCausal: boolean, order: 'sequence' | 'zigzag'): Fn =>
    (q, k, v) =>
      ringAttention(q!, k!, v!, ring, spec, { isCausal, order });
  const all = (value: number): number[] => Array.from({ length: count }, () => value);
  expect(blocks(attend(false, 'sequence'))).toEqual(all(count));
  expect(blocks(attend(true, 'sequence'))).toEqual(Array.from({ length: count }, (_, rank) => rank + 1));
  // Blocks of half the queries and half the keys: three of the own part, and two of each other part.
  expect(blocks(attend(true, 'zigzag'))).toEqual(all(2 * count + 1));
});

describe('what ring attention refuses', () => {
  const ring = mesh({ data: 2, sequence: 4 });
  const q = sn.zeros([2, 8, 4]);
  const all: Spec = [null, 'sequence', null];
  test.each<readonly [string, () => unknown, string, RegExp]>([
    [
      'shapes that do not fit',
      () => ringAttention(q, q, sn.zeros([2, 6, 4]), ring, all),
      'E_SHAPE',
      /expects q and k \[.., S, d\]/,
    ],
    [
      'a last axis that is split',
      () => ringAttention(q, q, q, ring, [null, null, 'sequence']),
      'E_SHAPE',
      /last axis cannot be split/,
    ],
    [
      'fewer heads without a word',
      () => ringAttention(sn.zeros([4, 8, 4]), q, q, ring, all),
      'E_SHAPE',
      /expects q and k/,
    ],
    [
      'heads that are no groups',
      () => ringAttention(sn.zeros([3, 8, 4]), q, q, ring, all, { enableGqa: true }),
      'E_SHAPE',
      /q's heads must be a multiple of k's and v's/,
    ],
    [
      'slices that are not equal',
      () => {
        const x = sn.zeros([2, 12, 4]);
        return ringAttention(x, x, x, ring, all, { isCausal: true, order: 'zigzag' });
      },
      'E_SHAPE',
      /12 positions are not 8 equal slices/,
    ],
    ['masks', () => ringAttention(q, q, q, ring, all, { mask: q } as object), 'E_VALUE', /mask/],
    [
      'other orders',
      () => ringAttention(q, q, q, ring, all, { order: 'striped' } as object),
      'E_VALUE',
      /striped/,
    ],
    ['slices in a zigzag that are not equal', () => zigzag(q, ring, 'sequence'), 'E_SHAPE', /2 positions/],
    ['a zigzag along no axis', () => unzigzag(q, ring, 'sequence', 3), 'E_AXIS', /axis 3/],
    ['a zigzag over no axis of the mesh', () => zigzag(q, ring, 'rows', 1), 'E_AXIS', /rows/],
  ])('%s', (_, fn, code, problem) => {
    expect(fn).toThrow(expect.objectContaining({ code, message: expect.stringMatching(problem) }) as Error);
  });
});
