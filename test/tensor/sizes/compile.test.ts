// Declared sizes: how many programs there are, what is refused and in which words, and what a call
// keeps doing: gradients, donations, random draws, captured state.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { parameter } from '../../../src/nn/index.ts';
import { floats, integers } from './programs.ts';

beforeAll(() => sn.setDevice('interpreter'));

type X = sn.Tensor;
const seq = sn.dim('seq', { max: 1024 });

async function programsOf(run: () => Promise<unknown>): Promise<number> {
  const before = sn.stats().programs;
  await run();
  return sn.stats().programs - before;
}

describe('one compiled function', () => {
  test('over 200 lengths has at most 3 programs, and none after the first few', async () => {
    const f = sn.compile((x: X) => x.softmax(-1).mul(x.shape[1]!), { dims: { x: [2, seq] } });
    const lengths = Array.from({ length: 200 }, (_, i) => 5 + ((i * 331) % 1019));
    const call = (length: number): Promise<unknown> => f(floats(2, length)).data();
    const first = await programsOf(async () => {
      for (const length of lengths.slice(0, 40)) await call(length);
    });
    expect(first).toBeLessThanOrEqual(3);
    const before = sn.stats();
    for (const length of lengths.slice(40)) await call(length);
    const after = sn.stats();
    expect(after.programs - before.programs).toBe(0);
    expect(after.traces - before.traces).toBe(0);
    expect(after.sizes - before.sizes).toBe(160);
  });

  test('spreads an axis of one element over one of several, each way', async () => {
    const add = (x: X, y: X): X => x.add(y);
    const f = sn.compile(add, { dims: [['a'], ['b']] });
    for (const [a, b] of [
      [5, 1],
      [1, 7],
      [6, 6],
      [9, 1],
      [1, 1],
      [1, 30],
    ] as const) {
      const [x, y] = [floats(a), floats(b)];
      expect(await f(x, y).array(), `${a} and ${b}`).toEqual(await add(x, y).array());
    }
    expect(() => f(floats(5), floats(6))).toThrow('a === b has to hold, and they are 5 and 6');
  });

  test('refuses a loop along the axis by the name of the dim', () => {
    const f = sn.compile((x: X) => sn.scan((sum: X, each: X) => [sum.add(each), sum], sn.zeros([]), x)[1], {
      dims: [[seq]],
    });
    expect(() => f(floats(5))).toThrow(
      'loop: scan, foriLoop and recurrent layers make a fixed number of iterations, and here it is a size (seq)',
    );
  });

  const halving: Readonly<Record<string, (x: X) => X>> = {
    associativeScan: (x) => sn.associativeScan((a: X, b: X) => a.mul(b), x),
    'the gradient of cumprod': sn.grad((x: X) => x.cumprod(0).sum()),
    logcumsumexp: (x) => sn.logcumsumexp(x, 0),
  };
  test.each(Object.entries(halving))('refuses what halves the axis by the name of the dim: %s', (_, fn) => {
    const f = sn.compile(fn, { dims: [['seq']] });
    expect(() => f(floats(5))).toThrow(/records other operations at other sizes of seq: /);
  });

  test('takes trees, and sizes by place', async () => {
    const rows = (n: number): X => sn.tensor(new Float32Array(2 * n).fill(1), { shape: [n, 2] });
    const scale = sn.tensor([3, 4]);
    const f = sn.compile(
      (batch: { rows: X[]; scale: X }) => batch.rows[0]!.add(batch.rows[1]!).mul(batch.scale),
      {
        dims: [
          {
            rows: [
              [seq, 2],
              [seq, 2],
            ],
          },
        ],
      },
    );
    const made = await programsOf(async () => {
      for (const n of [40, 100, 77]) {
        const y = f({ rows: [rows(n), rows(n)], scale });
        expect(y.shape).toEqual([n, 2]);
        expect([...(await y.data())].slice(-2)).toEqual([6, 8]);
      }
    });
    expect(made).toBeLessThanOrEqual(2);
  });

  test('reads what it captures at each call', async () => {
    const shift = sn.tensor([1]);
    const f = sn.compile((x: X) => x.add(shift).sum(), { dims: { x: ['n'] } });
    expect(await f(sn.ones([10])).item()).toBe(20);
    shift.assign(sn.tensor([2]));
    expect(await f(sn.ones([11])).item()).toBe(33);
    expect(await f(sn.ones([10])).item()).toBe(30);
  });

  test('takes numbers, and gives static values', async () => {
    const f = sn.compile((x: X, by: X, mode: string) => ({ y: x.mul(by), size: x.shape[0]!, mode }), {
      dims: { x: ['n'] },
    });
    const { y, size, mode } = f(sn.ones([5]), 3, 'a');
    expect([await y.array(), size, mode]).toEqual([[3, 3, 3, 3, 3], 5, 'a']);
    expect(f(sn.ones([7]), 4, 'a').size).toBe(7);
    expect(await f(sn.ones([2]), 4, 'b').y.array()).toEqual([4, 4]);
  });

  test('draws what the function draws, and leaves the generator where it does', async () => {
    const body = (x: X): X => x.add(sn.randn([3, x.shape[0]!]));
    const f = sn.compile(body, { dims: { x: ['n'] } });
    for (const n of [9, 30, 31]) {
      sn.manualSeed(n);
      const [a, b] = [await body(sn.zeros([n])).data(), await sn.rand([4]).data()];
      sn.manualSeed(n);
      expect(await f(sn.zeros([n])).data()).toEqual(a);
      expect(await sn.rand([4]).data()).toEqual(b);
    }
  });
});

describe('gradients', () => {
  test('flow through a call', async () => {
    const f = sn.compile((x: X, w: X) => x.matmul(w).tanh().sum(), { dims: { x: ['n', 4] } });
    for (const n of [5, 17]) {
      const x = floats(n, 4);
      const [w, plain] = [floats(4, 2), (v: X): X => x.matmul(v).tanh().sum()];
      const wanted = await sn.grad(plain)(w).data();
      const own = parameter(w);
      f(x, own).backward();
      const got = await own.grad!.data();
      for (const [i, value] of got.entries()) expect(value).toBeCloseTo(Number(wanted[i]), 4);
    }
  });

  test('of a training step within it are one program', async () => {
    const w = parameter(floats(4, 10));
    const step = sn.compile(
      (x: X, y: X) => {
        const loss = sn.crossEntropy(x.matmul(w), y);
        loss.backward();
        sn.noGrad(() => w.assign(w.sub(w.grad!.mul(0.1))));
        w.grad = undefined;
        return loss.detach();
      },
      { dims: { x: ['n', 4], y: ['n'] } },
    );
    let made = 0;
    for (const n of [22, 33, 65, 49, 600]) {
      const [x, y] = [floats(n, 4), integers(10, n)];
      const before = w.detach();
      const wanted = sn.grad((at: X) => sn.crossEntropy(x.matmul(at), y))(before);
      const expected = await before.sub(wanted.mul(0.1)).data();
      made += await programsOf(() => step(x, y).item());
      for (const [i, value] of (await w.data()).entries()) expect(value).toBeCloseTo(Number(expected[i]), 5);
    }
    expect(made).toBeLessThanOrEqual(3);
  });
});

describe('donated arguments', () => {
  test('are given up', async () => {
    const f = sn.compile((x: X) => x.mul(2), { dims: { x: ['n'] }, donate: [0] });
    for (const n of [4, 9]) {
      const x = sn.ones([n]).add(0);
      expect(await f(x).array()).toEqual(Array.from({ length: n }, () => 2));
      expect(() => x.add(1)).toThrow('was donated');
    }
  });
});

describe('what is refused', () => {
  const f = sn.compile(
    function scores(x: X, y: X) {
      return x.matmul(y);
    },
    {
      dims: [
        [seq, 4],
        [4, sn.dim('width', { min: 2, max: 64, multipleOf: 2 })],
      ],
    },
  );

  test.each([
    [
      'a size beyond its range',
      [floats(1025, 4), floats(4, 2)],
      'scores: seq (axis 0 of x) is 1025, declared as 1 to 1024',
    ],
    [
      'no multiple',
      [floats(3, 4), floats(4, 3)],
      'scores: width (axis 1 of y) is 3, declared as 2 to 64, a multiple of 2',
    ],
    ['another fixed size', [floats(3, 5), floats(5, 2)], 'scores: axis 1 of x is 5, declared as 4'],
    ['another rank', [floats(3), floats(4, 2)], 'scores: x is f32[3], and dims gives 2 axes: [seq,4]'],
  ])('%s', (_, args, message) => {
    expect(() => f(args[0]!, args[1]!)).toThrow(message);
  });

  test('two sizes of one name', () => {
    const g = sn.compile((x: X, y: X) => x.sum().add(y.sum()), { dims: [['n'], ['n']] });
    expect(() => g(floats(3), floats(4))).toThrow('n is 3 on axis 0 of x, and 4 on axis 0 of y');
  });

  test('sizes that the function needs to be equal', async () => {
    const g = sn.compile((x: X, y: X) => x.add(y), { dims: { x: ['a'], y: ['b'] } });
    expect(
      await g(sn.ones([5]), sn.ones([5]))
        .sum()
        .item(),
    ).toBe(10);
    expect(
      await g(sn.ones([60]), sn.ones([60]))
        .sum()
        .item(),
    ).toBe(120);
    expect(() => g(floats(5), floats(6))).toThrow('a === b has to hold, and they are 5 and 6');
  });

  test('sizes that the function needs to be multiples', async () => {
    const g = sn.compile((x: X) => x.reshape([-1, 4]).sum(1), { dims: { x: ['n'] } });
    expect(await g(sn.ones([12])).array()).toEqual([4, 4, 4]);
    expect(await g(sn.ones([8])).array()).toEqual([4, 4]);
    expect(() => g(floats(6))).toThrow('n % 4 === 0 has to hold, and n is 6');
  });

  test('a function that does something else at other sizes', () => {
    const g = sn.compile((x: X) => (x.shape[0]! > 2000 ? x.exp() : x.neg()), { dims: { x: ['n'] } });
    expect(() => g(floats(6))).toThrow(/records other operations at other sizes of n/);
  });

  test('an operation that cannot do with a varying size', () => {
    const g = sn.compile((x: X) => sn.linalg.inv(x), { dims: { x: ['n', 'n'] } });
    expect(() => g(floats(6, 6))).toThrow(/varying size/);
  });

  test('dims that make no sense', () => {
    expect(() => sn.dim('n', { min: 5, max: 7, multipleOf: 4 })).toThrow(
      'n: there is no multiple of 4 from 5 to 7',
    );
    expect(() => sn.compile((x: X) => x, { dims: { y: ['n'] } })).toThrow(
      'dims names y, and its parameters are x',
    );
    const g = sn.compile((x: X, y: X) => x.add(y), { dims: { x: { w: ['n'] } } });
    expect(() => g(floats(3), floats(3))).toThrow(
      'dims has sizes for [0].w, but the call has no tensor there',
    );
  });
});

test('a size at which the function does something else has a program of its own', async () => {
  const g = sn.compile((x: X) => (x.shape[0] === 13 ? x.exp() : x.neg()), {
    dims: { x: [sn.dim('n', { max: 100 })] },
  });
  expect(
    await g(sn.ones([12]))
      .sum()
      .item(),
  ).toBe(-12);
  expect(
    await g(sn.zeros([13]))
      .sum()
      .item(),
  ).toBe(13);
  expect(
    await g(sn.ones([14]))
      .sum()
      .item(),
  ).toBe(-14);
});
