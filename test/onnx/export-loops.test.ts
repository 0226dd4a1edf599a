// Loops and branches in exported models: one Loop or If each, that ONNX Runtime and our importer run as the function does.

import ort from 'onnxruntime-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { exportOnnx, loadOnnx } from '../../src/onnx/index.ts';
import { decode } from '../../src/onnx/wire.ts';

type Tensor = sn.Tensor;
beforeAll(() => sn.setDevice('interpreter'));
afterAll(() => sn.setDevice(undefined));

const list = async (x: Tensor): Promise<number[]> => Array.from(await x.data(), Number);

const w = sn.tensor([
  [0.5, -0.25],
  [0.75, 0.125],
]);
const xs = sn.tensor(
  Array.from({ length: 24 }, (_, i) => Math.sin(i)),
  { shape: [12, 2] },
);

/** Each function gives tensors of one vector of two, and says which larger nodes stand for it. */
const cases: Record<string, readonly [fn: (x: Tensor) => Record<string, Tensor>, ops: readonly string[]]> = {
  scan: [
    (x) => {
      const [last, rows] = sn.scan(
        (h: Tensor, row: Tensor) => [h.matmul(w).add(row).tanh(), h.mul(row)],
        x,
        xs,
      );
      return { last, rows };
    },
    ['Loop'],
  ],
  'reverse scan': [
    (x) => {
      const turn = (h: Tensor, row: Tensor, i: Tensor): [Tensor, Tensor] => [
        h.add(row).sin(),
        h.add(i.cast('f32')),
      ];
      const [last, rows] = sn.scan(turn, x, xs, { reverse: true });
      return { last, rows };
    },
    ['Loop'],
  ],
  'gradient of a loop': [
    (x) => ({
      slope: sn.grad((v: Tensor) => sn.foriLoop(0, 30, (_, h: Tensor) => h.mul(v).sin().add(0.5), v).sum())(
        x,
      ),
    }),
    ['Loop', 'Loop'],
  ],
  whileLoop: [
    (x) => {
      const found = sn.whileLoop(
        ({ h }: { h: Tensor; n: Tensor }) => h.sum().lt(40),
        ({ h, n }) => ({ h: h.mul(1.5).add(1), n: n.add(1) }),
        { h: x, n: sn.tensor(0, { dtype: 'i32' }) },
      );
      return { h: found.h, n: found.n };
    },
    ['Loop'],
  ],
  cond: [
    (x) => ({
      y: sn.cond(
        x.sum().gt(0),
        (v) => v.exp(),
        (v) => v.matmul(w),
        x,
      ),
    }),
    ['If', 'If'],
  ],
  'gradient of a branch': [
    (x) => ({
      slope: sn.grad((v: Tensor) =>
        sn
          .cond(
            v.sum().gt(0),
            (u) => u.matmul(w).tanh(),
            (u) => u.mul(u),
            v,
          )
          .sum(),
      )(x),
    }),
    // One forwards, for the product that the derivative keeps; one backwards for each branch.
    ['If', 'If', 'If'],
  ],
};

test.each(Object.entries(cases))('%s', async (_, [fn, ops]) => {
  const named = (x: Tensor): Record<string, Tensor> => fn(x);
  const { bytes } = await exportOnnx(named, [sn.tensor([1, 2])]);
  const { graph } = decode('Model', bytes);
  const found = graph!.node.map(({ opType }) => opType).filter((op) => op === 'Loop' || op === 'If');
  expect(found).toEqual(ops);
  const session = await ort.InferenceSession.create(bytes);
  const again = await loadOnnx(bytes);
  for (const start of [
    [1, 2],
    [-3, 0.5],
    [30, 20],
  ]) {
    const expected = fn(sn.tensor(start));
    const theirs = await session.run({ x: new ort.Tensor('float32', Float32Array.from(start), [2]) });
    const ours = await again.run({ x: Float32Array.from(start) });
    for (const [name, value] of Object.entries(expected)) {
      const right = await list(value);
      const runs = [Array.from(theirs[name]!.data as Float32Array, Number), await list(ours[name]!)];
      for (const got of runs) {
        expect(got).toHaveLength(right.length);
        got.forEach((number, i) =>
          expect(Math.abs(number - right[i]!)).toBeLessThan(1e-4 * Math.max(1, Math.abs(right[i]!))),
        );
      }
    }
  }
});
