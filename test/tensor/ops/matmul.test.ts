// matmul of every rank against loops, and what it records: one dot, nothing repeated in memory.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { topological } from '../../../src/ir/graph.ts';
import { nodeOf } from '../../../src/tensor/record.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { build, element, holds, plain, ramp, read, toTensor, type Plain } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const small =
  (seed: number) =>
  (position: readonly number[]): number =>
    ((position.reduce((h, n) => h * 5 + n + 1, seed) * 17) % 9) - 4;

/** Two shapes whose leading axes broadcast. */
const shapes = fc
  .record({
    lead: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    onesX: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    onesY: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    dropX: fc.integer({ min: 0, max: 3 }),
    dropY: fc.integer({ min: 0, max: 3 }),
    m: fc.integer({ min: 0, max: 3 }),
    k: fc.integer({ min: 0, max: 3 }),
    n: fc.integer({ min: 0, max: 3 }),
  })
  .map(({ lead, onesX, onesY, dropX, dropY, m, k, n }) => ({
    x: [...lead.map((dim, i) => (onesX[i]! ? 1 : dim)).slice(Math.min(dropX, lead.length)), m, k],
    y: [...lead.map((dim, i) => (onesY[i]! ? 1 : dim)).slice(Math.min(dropY, lead.length)), k, n],
  }));

function naive(x: Plain, y: Plain): Plain {
  const rank = Math.max(x.shape.length, y.shape.length) - 2;
  const lead = Array.from({ length: rank }, (_, i) =>
    Math.max(x.shape.at(i - rank - 2) ?? 1, y.shape.at(i - rank - 2) ?? 1),
  );
  const within = (one: Plain, position: readonly number[]): number[] =>
    one.shape.slice(0, -2).map((dim, i) => (dim === 1 ? 0 : position[i + rank - (one.shape.length - 2)]!));
  return build([...lead, x.shape.at(-2)!, y.shape.at(-1)!], (position) => {
    const [row, column] = position.slice(-2);
    let sum = 0;
    for (let i = 0; i < x.shape.at(-1)!; i++) {
      sum += element(x, [...within(x, position), row!, i]) * element(y, [...within(y, position), i, column!]);
    }
    return sum;
  });
}

describe('matmul', () => {
  test('is the sum of products, leading axes broadcast', async () => {
    await holds(300, shapes, async ({ x, y }) => {
      const [left, right] = [build(x, small(1)), build(y, small(2))];
      const found = await plain(sn.matmul(toTensor(left), toTensor(right)));
      const expected = naive(left, right);
      expect(found.shape).toEqual(expected.shape);
      expect(found.data.map((n) => n + 0)).toEqual(expected.data.map((n) => n + 0));
    });
  });

  test('gradients of broadcast operands add up over what was broadcast', async () => {
    await holds(60, shapes, async ({ x, y }) => {
      const [left, right] = [
        toTensor(build(x, small(1))).requiresGrad_(),
        toTensor(build(y, small(2))).requiresGrad_(),
      ];
      sn.sum(sn.matmul(left, right)).backward();
      // Against broadcasting by hand, whose gradient sums explicitly.
      const [p, q] = [
        toTensor(build(x, small(1))).requiresGrad_(),
        toTensor(build(y, small(2))).requiresGrad_(),
      ];
      const products = sn.mul(sn.unsqueeze(p, -1), sn.unsqueeze(q, -3));
      sn.sum(products).backward();
      expect(await read(left.grad!)).toEqual(await read(p.grad!));
      expect(await read(right.grad!)).toEqual(await read(q.grad!));
    });
  });

  const used = (x: Tensor): string[] => topological([nodeOf(x)]).map((node) => node.op);
  const leaf = (...shape: number[]): Tensor => toTensor(ramp(shape));

  test.each([
    ['[B,M,K] @ [K,N]', leaf(2, 3, 4), leaf(4, 5)],
    ['[M,K] @ [B,K,N]', leaf(3, 4), leaf(2, 4, 5)],
    ['[B,1,M,K] @ [H,K,N]', leaf(2, 1, 3, 4), leaf(6, 4, 5)],
    ['[B,H,M,K] @ [B,1,K,N]', leaf(2, 6, 3, 4), leaf(2, 1, 4, 5)],
  ])('%s is one dot that repeats no operand', (_, x, y) => {
    const ops = used(sn.matmul(x, y));
    expect(ops.filter((op) => op === 'dot')).toHaveLength(1);
    expect(ops).not.toContain('broadcast');
  });

  test('equal leading axes become batch axes of the dot, those of one operand free axes', () => {
    const dot = (x: Tensor): unknown => topological([nodeOf(x)]).find((node) => node.op === 'dot')!.attrs;
    expect(dot(sn.matmul(leaf(2, 3, 4), leaf(4, 5)))).toMatchObject({
      lhsBatch: [],
      lhsContract: [2],
      rhsContract: [0],
    });
    expect(dot(sn.matmul(leaf(2, 3, 4), leaf(2, 4, 5)))).toMatchObject({ lhsBatch: [0], rhsBatch: [0] });
  });

  test('a wider dtype can be asked for', async () => {
    const x = sn.full([1, 2], 300, { dtype: 'f16' });
    const y = sn.full([2, 1], 300, { dtype: 'f16' });
    expect(await read(sn.matmul(x, y))).toEqual([Infinity]);
    const wide = sn.matmul(x, y, { dtype: 'f32' });
    expect([wide.dtype, await read(wide)]).toEqual(['f32', [180000]]);
  });

  test('vectors, named ranks and the trace', async () => {
    const x = leaf(2, 3);
    expect(await read(sn.dot(leaf(3), leaf(3)))).toEqual([5]);
    expect(await read(sn.mv(x, leaf(3)))).toEqual([5, 14]);
    expect(await read(sn.mm(x, leaf(3, 1)))).toEqual([5, 14]);
    expect(sn.bmm(leaf(2, 1, 3), leaf(2, 3, 4)).shape).toEqual([2, 1, 4]);
    expect(await read(sn.trace(leaf(3, 4)))).toEqual([15]);
  });
});
