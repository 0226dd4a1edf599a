// scan, foriLoop and map as users write them.

import { describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import { everyStep } from '../../src/runtime/program.ts';
import { softwareTarget, wasmTarget } from '../../src/schedule/target.ts';
import { traceFunction } from '../../src/tensor/derivative/transform.ts';
import { everyDevice } from '../support/devices.ts';

const list = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

test('checkpoints keep the carries of every √n-th iteration instead of every one', () => {
  const [width, turns] = [64, 256];
  const bytesOf = (options: sn.LoopOptions): number => {
    const slope = sn.grad((w: sn.Tensor, x: sn.Tensor) =>
      sn.foriLoop(0, turns, (_, h: sn.Tensor) => h.mul(w).tanh(), x, options).sum(),
    );
    const { graph } = traceFunction(slope as never, [sn.ones([width]), sn.ones([width])]);
    return compileGraph(graph, wasmTarget).program.arenas.reduce((sum, bytes) => sum + bytes, 0);
  };
  const row = 4 * width;
  // A stack of all carries, and little else; or one of segments and one of the iterations within one.
  expect(bytesOf({})).toBeGreaterThan(turns * row);
  expect(bytesOf({ checkpoint: 'sqrt' })).toBeGreaterThan(2 * Math.sqrt(turns) * row);
  expect(bytesOf({ checkpoint: 'sqrt' })).toBeLessThan(3 * Math.sqrt(turns) * row);
});

test.each([wasmTarget, softwareTarget])('no kernel writes over a number that a loop reads', (target) => {
  const loop = (a: sn.Tensor, b: sn.Tensor, xs: sn.Tensor, k: sn.Tensor): unknown =>
    sn.scan(([p, q], x) => [[p!.add(x.mul(k)), q!.mul(x)], p!.mul(k)], [a, b.add(k)], xs);
  const { graph } = traceFunction(loop as never, [sn.tensor(1), sn.tensor(2), sn.ones([4]), sn.tensor(3)]);
  const { program } = compileGraph(graph, target);
  const written = [...everyStep(program.steps)].flatMap((step) =>
    step.kind === 'dispatch'
      ? step.buffers.filter((_, i) => program.kernels[step.kernel]!.bindings[i] === 'read_write')
      : [],
  );
  expect(written.length).toBeGreaterThan(0);
  expect(written.filter((buffer) => program.inputs.includes(buffer))).toEqual([]);
});

test('of carries, slices and results that are written as lists, each place has its own type', async () => {
  await sn.setDevice('interpreter');
  const count = sn.tensor(0, { dtype: 'i32' });
  const [[turns, { h }], [before, { twice }]] = sn.scan(
    ([n, state], [x, y]) => [
      [n.add(1), { h: state.h.add(x).add(y) }],
      [n, { twice: state.h.mul(2) }],
    ],
    [count, { h: sn.zeros([]) }],
    [sn.ones([3]), sn.tensor([1, 2, 3])],
  );
  const whole: readonly sn.Tensor<'i32'>[] = [turns, before];
  expect(await Promise.all([...whole, h, twice].map(list))).toEqual([[3], [0, 1, 2], [9], [0, 4, 10]]);
  const [k, total]: [sn.Tensor<'i32'>, sn.Tensor] = sn.foriLoop(
    0,
    3,
    (i, [n, sum]) => [n.add(i).cast('i32'), sum.add(n)],
    [count, sn.zeros([])],
  );
  const [doubled] = sn.whileLoop(
    ([v, n]) => n.lt(3).logicalAnd(v.lt(100)),
    ([v, n]) => [v.mul(2), n.add(1)],
    [sn.tensor(1.5), count],
  );
  expect(await Promise.all([k, total, doubled].map(list))).toEqual([[3], [1], [12]]);
});

describe.each(everyDevice)('loops on %s', (device) => {
  test('take one number as several arguments of a compiled function', async () => {
    await sn.setDevice(device);
    const one = sn.tensor(1);
    const twice = sn.compile((a: sn.Tensor, b: sn.Tensor, xs: sn.Tensor) =>
      sn.scan(([p, q], x) => [[p!.add(x), q!.mul(x)], p!.add(q!)], [a, b], xs),
    );
    const [[sum, product], both] = twice(one, one, sn.tensor([2, 3]));
    expect([await list(sum!), await list(product!), await list(both)]).toEqual([[6], [6], [2, 5]]);
  });

  test('scan hands on a carry and stacks what each iteration gives', async () => {
    await sn.setDevice(device);
    const xs = sn.tensor([1, 2, 3, 4, 5]);
    const [sum, running] = sn.scan((carry, x) => [carry.add(x), carry.mul(x)], 0, xs);
    expect(await list(sum)).toEqual([15]);
    expect(await list(running)).toEqual([0, 2, 9, 24, 50]);
  });

  test('reverse, length, trees and captured tensors', async () => {
    await sn.setDevice(device);
    const w = sn.tensor([
      [1, 2],
      [3, 4],
    ]);
    const step = sn.compile((x: sn.Tensor) =>
      sn.scan(
        ({ h, n }: { h: sn.Tensor; n: sn.Tensor }, _: undefined, i) => [
          { h: h.matmul(w).mul(0.1), n: n.add(i) },
          { first: h.select(0, 0), i },
        ],
        { h: x, n: sn.tensor(0, { dtype: 'i32' }) },
        undefined,
        { length: 4, reverse: true },
      ),
    );
    for (let again = 0; again < 2; again++) {
      const [{ h, n }, { first, i }] = step(sn.tensor([1, 1]));
      let [a, b] = [1, 1];
      const seen: number[] = [];
      for (let turn = 0; turn < 4; turn++) {
        seen.unshift(a);
        [a, b] = [0.1 * (a + 3 * b), 0.1 * (2 * a + 4 * b)];
      }
      (await list(h)).forEach((value, k) => expect(value).toBeCloseTo([a, b][k]!, 5));
      (await list(first)).forEach((value, k) => expect(value).toBeCloseTo(seen[k]!, 5));
      expect(await list(n)).toEqual([6]);
      expect(await list(i)).toEqual([0, 1, 2, 3]);
    }
  });

  test('what the derivative keeps of complex numbers are pairs', async () => {
    const z = sn.complex(sn.tensor([0.3, -0.8, 1, 0.2]), sn.tensor([1, 0.5, 0.3, 0.4])).reshape([2, 2]);
    // The product is kept, and so are the operands of what is summed behind the loop.
    const step = (c: sn.Tensor, w: sn.Tensor): sn.Tensor => c.matmul(w).mul(0.3).exp().mul(w.select(0, 0));
    const size = (c: sn.Tensor): sn.Tensor => sn.real(c).sum().add(sn.imag(c).square().sum());
    const looped = (w: sn.Tensor): sn.Tensor =>
      size(sn.scan((c) => [step(c, w), 0], w, undefined, { length: 2 })[0]);
    const plain = (w: sn.Tensor): sn.Tensor => size(step(step(w, w), w));
    const slopes = [looped, plain].map((f) => list(sn.viewAsReal(sn.grad(f)(z))));
    const [found, expected] = await Promise.all(slopes);
    found!.forEach((value, i) => expect(value).toBeCloseTo(expected![i]!, 4));
  });

  test('foriLoop and map', async () => {
    await sn.setDevice(device);
    const [a, b] = sn.foriLoop(2, 12, (_, [x, y]) => [y, x.add(y)], [0, 1] as [number, number]);
    expect([await list(a), await list(b)]).toEqual([[55], [89]]);
    const squares = sn.map(
      (x) => x.mul(x).sum(),
      sn.tensor([
        [1, 2],
        [3, 4],
        [5, 6],
      ]),
    );
    expect(await list(squares)).toEqual([5, 25, 61]);
  });

  test.each([1, 2, 5, 8, 13])('associativeScan of %i elements', async (n) => {
    await sn.setDevice(device);
    // Matrices under multiplication do not commute.
    const random = (i: number): number => Math.sin(12.9898 * i);
    const values = Array.from({ length: 4 * n }, (_, i) => random(i + 1));
    const xs = sn.tensor(values, { shape: [n, 2, 2] });
    for (const reverse of [false, true]) {
      const found = await list(sn.associativeScan((a, b) => a.matmul(b), xs, { reverse }));
      let product = [1, 0, 0, 1];
      for (let k = 0; k < n; k++) {
        const at = reverse ? n - 1 - k : k;
        const [a, b, c, d] = product as [number, number, number, number];
        const [e, f, g, h] = values.slice(4 * at, 4 * at + 4) as [number, number, number, number];
        product = [a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h];
        product.forEach((x, i) => expect(found[4 * at + i]).toBeCloseTo(x, 4));
      }
    }
  });

  test.each([undefined, 'sqrt', 3] as const)('gradients, checkpoint %s', async (checkpoint) => {
    await sn.setDevice(device);
    const w = sn.tensor([
      [0.5, -0.3],
      [0.2, 0.8],
    ]);
    const xs = sn.arange(14).reshape([7, 2]).mul(0.1);
    const options = checkpoint === undefined ? {} : { checkpoint };
    const looped = (weight: sn.Tensor, x: sn.Tensor): sn.Tensor => {
      const [end, ys] = sn.scan(
        (h, part) => [h.matmul(weight).add(part).tanh(), h.mul(part)],
        sn.ones([2]),
        x,
        options,
      );
      return end.sum().add(ys.square().sum());
    };
    const written = (weight: sn.Tensor, x: sn.Tensor): sn.Tensor => {
      let h: sn.Tensor = sn.ones([2]);
      let total: sn.Tensor = sn.tensor(0);
      for (let i = 0; i < 7; i++) {
        const part = x.select(0, i);
        total = total.add(h.mul(part).square().sum());
        h = h.matmul(weight).add(part).tanh();
      }
      return h.sum().add(total);
    };
    const found = sn.compile(sn.valueAndGrad(looped, { argnums: [0, 1] }))(w, xs);
    const expected = sn.valueAndGrad(written, { argnums: [0, 1] })(w, xs);
    expect((await list(found.value))[0]).toBeCloseTo((await list(expected.value))[0]!, 5);
    for (const k of [0, 1] as const) {
      const right = await list(expected.grad[k]);
      (await list(found.grad[k])).forEach((value, i) => expect(value).toBeCloseTo(right[i]!, 4));
    }
  });
});
