// `checkpoint`: gradients with what a function computed computed again are the plain ones, bit for
// bit where every operation stands for itself (the interpreter), and but for the order in which
// kernels round sums elsewhere; and policies keep what they say. Under other transforms it is one of
// test/autograd/nested.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { seed } from '../../support/property.ts';

type T = sn.Tensor;

beforeAll(() => sn.setDevice('interpreter'));

const values = async (tree: unknown): Promise<number[][]> =>
  Promise.all(
    sn.treeLeaves(tree as sn.Tree<T>).map(async (leaf) => Array.from((await leaf.data()) as Float32Array)),
  );

/** The same numbers: to the bit on the interpreter, else within a few roundings of the largest. */
function expectSame(found: number[][], expected: number[][], device = 'interpreter'): void {
  if (device === 'interpreter') expect(found).toEqual(expected);
  else
    found.forEach((list, i) => {
      const room = 1e-5 * Math.max(1, ...expected[i]!.map(Math.abs));
      list.forEach((x, k) => expect(Math.abs(x - expected[i]![k]!)).toBeLessThanOrEqual(room));
    });
}

function weights(...sizes: readonly number[]): T[] {
  return sizes.slice(1).map((to, i) => sn.normal([sizes[i]!, to], { std: 0.4 }));
}

const layer = (x: T, w: T): T =>
  x
    .matmul(w)
    .tanh()
    .mul(x.sum(1, { keepdim: true }).sigmoid());

/** A perceptron whose layers are the same function, called through `around`. */
const perceptron =
  (around: (fn: typeof layer) => typeof layer) =>
  (ws: readonly T[], x: T): T =>
    ws
      .reduce((at, w) => around(layer)(at, w), x)
      .square()
      .mean() as T;

const plain = (fn: typeof layer): typeof layer => fn;
const again = (fn: typeof layer): typeof layer => sn.checkpoint(fn);

describe('gradients are the plain ones', () => {
  test.each(['wasm', 'webgpu:software', 'interpreter'])(
    'on %s, compiled, and by backward',
    async (device) => {
      await sn.setDevice(device);
      sn.manualSeed(3);
      const [ws, x] = [weights(8, 8, 8, 8), sn.rand([4, 8])];
      const expected = await values(sn.valueAndGrad(perceptron(plain))(ws, x));
      expectSame(await values(sn.valueAndGrad(perceptron(again))(ws, x)), expected, device);
      expectSame(await values(sn.compile(sn.valueAndGrad(perceptron(again)))(ws, x)), expected, device);
      const leaves = ws.map((w) => w.detach().requiresGrad_());
      const loss = perceptron(again)(leaves, x);
      loss.backward();
      expectSame(await values([loss, leaves.map((leaf) => leaf.grad!)]), expected, device);
      // The derivative of a compiled call as well.
      const others = ws.map((w) => w.detach().requiresGrad_());
      sn.compile(perceptron(again))(others, x).backward();
      expectSame(await values(others.map((leaf) => leaf.grad!)), expected.slice(1), device);
      await sn.setDevice('interpreter');
    },
  );

  test('of random chains of operations, cut anywhere, nested anyhow', async () => {
    const steps: readonly ((x: T, w: T) => T)[] = [
      (x, w) => x.matmul(w),
      (x) => x.sin(),
      (x) => x.softmax(1),
      (x, w) => x.add(w.sum(0)),
      (x) => x.mul(x),
      (x) => x.transpose(0, 1),
      (x) => x.cumsum(0),
      (x) => sn.where(x.gt(0), x, x.mul(0.1)),
      (x, w) => sn.layerNorm(x.sub(w.mean()), 5),
      (x) => sn.cat([x.narrow(0, 1, 4), x.narrow(0, 0, 1)], 0),
    ];
    interface Node {
      readonly list: readonly (number | Node)[];
    }
    const { node } = fc.letrec<{ node: Node; item: number | Node }>((tie) => ({
      node: fc.record({ list: fc.array(tie('item'), { minLength: 1, maxLength: 5 }) }),
      item: fc.oneof({ maxDepth: 3 }, fc.nat(steps.length - 1), tie('node')),
    }));
    const call = (at: Node, x: T, w: T, isAgain: boolean): T => {
      const whole = (y: T): T =>
        at.list.reduce<T>((z, each) => {
          return typeof each === 'number' ? steps[each]!(z, w) : call(each, z, w, isAgain);
        }, y);
      return isAgain ? sn.checkpoint(whole)(x) : whole(x);
    };
    await fc.assert(
      fc.asyncProperty(node, async (tree) => {
        sn.manualSeed(seed);
        const at = { dtype: 'f64' } as const;
        const [x, w, directions] = [sn.rand([5, 5], at), sn.rand([5, 5], at), sn.rand([5, 5], at)];
        const loss = (isAgain: boolean) => (p: readonly T[]) =>
          call(tree, p[0]!, p[1]!, isAgain).mul(directions).sum() as T;
        const [expected, found] = [false, true].map((isAgain) => sn.valueAndGrad(loss(isAgain))([x, w]));
        const [[loss0, x0, w0], [loss1, x1, w1]] = (await Promise.all([expected, found].map(values))) as [
          number[][],
          number[][],
        ];
        expect([loss1, x1]).toEqual([loss0, x0]);
        // Squares of squares overflow: beside an infinity sums in another order are other things.
        if (!w0!.every(Number.isFinite)) return;
        // What several calls add to the gradient of one weight is added call by call: in f64, since terms may cancel.
        expectSame([w1!], [w0!], 'elsewhere');
      }),
      { numRuns: 60, seed },
    );
  });

  test('with random draws, which are the same draws', async () => {
    const noisy =
      (around: typeof again) =>
      (ws: readonly T[], x: T): T =>
        ws
          .reduce(
            (at, w) => around((y, v) => sn.dropout(y.matmul(v).relu(), 0.5).add(sn.rand([4, 8])))(at, w),
            x,
          )
          .square()
          .sum() as T;
    for (const outer of [(f: unknown) => f, (f: unknown) => sn.compile(f as () => unknown)]) {
      const results = [];
      for (const around of [plain, again]) {
        sn.manualSeed(11);
        const [ws, x] = [weights(8, 8, 8), sn.rand([4, 8])];
        const step = outer(sn.valueAndGrad(noisy(around))) as (ws: readonly T[], x: T) => unknown;
        results.push(await values([step(ws, x), step(ws, x), sn.rand([3])]));
      }
      expect(results[1]).toEqual(results[0]);
      expect(results[0]![0]).not.toEqual(results[0]![3]);
    }
  });

  test('of modules in training, which assign once', async () => {
    const results = [];
    for (const isAgain of [false, true]) {
      sn.manualSeed(5);
      const body = new nn.Sequential(
        new nn.Linear(6, 6),
        new nn.BatchNorm1d(6),
        new nn.Dropout(0.3),
        new nn.Tanh(),
      );
      const head = new nn.Linear(6, 2);
      const model = new nn.Sequential(body, head);
      const optimizer = new SGD(nn.parameters(model), { lr: 0.1 });
      const x = sn.rand([4, 6]);
      for (let i = 0; i < 3; i++) {
        optimizer.zeroGrad();
        const run = (m: typeof body, y: T): T => m.forward(y);
        const hidden = isAgain ? sn.checkpoint(run)(body, x) : run(body, x);
        head.forward(hidden).square().sum().backward();
        optimizer.step();
      }
      results.push(await values(Object.values(nn.stateDict(model))));
    }
    expect(results[1]).toEqual(results[0]);
  });

  test('of several results, and of ones that are no floats', async () => {
    const parts = (x: T, w: T): { readonly y: T; readonly at: T; readonly rest: readonly T[] } => {
      const y = x.matmul(w).sin();
      return { y, at: y.argmax(1), rest: [y.mul(x), x] };
    };
    const loss =
      (f: typeof parts) =>
      (x: T, w: T): T => {
        const { y, at, rest } = f(x, w);
        return y.mul(at.unsqueeze(1)).add(rest[0]!).sum().add(rest[1]!.square().sum()) as T;
      };
    const [x, w] = [sn.rand([4, 4]), sn.rand([4, 4])];
    const g = (f: typeof parts): Promise<number[][]> => values(sn.grad(loss(f), { argnums: [0, 1] })(x, w));
    expect(await g(sn.checkpoint(parts))).toEqual(await g(parts));
  });
});

test('arguments that depend on each other get their own share of the gradient', async () => {
  const f = sn.checkpoint((a: T, b: T) => a.mul(b).sin());
  const g = sn.grad((a: T) => f(a, a.mul(2)).add(f(a, a)).sum());
  const x = sn.tensor([0.3, 0.7]);
  const expected = [0.3, 0.7].map((a) => Math.cos(2 * a * a) * 4 * a + Math.cos(a * a) * 2 * a);
  (await g(x).data()).forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 5));
});

describe('a policy', () => {
  const [x, w] = [sn.zeros([4, 8]), [sn.zeros([8, 8]), sn.zeros([8, 8])]];
  const f = (y: T, ...[a, b]: T[]): T =>
    sn.checkpointName(sn.checkpointName(y.matmul(a!), 'first').sin().matmul(b!), 'second').sin();
  const dotsWith = (policy?: sn.CheckpointPolicy): number => {
    const g = sn.checkpoint(f, policy === undefined ? {} : { policy });
    const { graph } = sn.explain(
      sn.grad((y: T, ...ws: T[]) => g(y, ...ws).sum() as T, { argnums: [1, 2] }) as (
        ...args: never[]
      ) => unknown,
      x,
      ...w,
    );
    return graph.match(/ = dot/g)?.length ?? 0;
  };

  test('keeps products, names or what a function says, and computes the rest again', () => {
    // Two forward, and three backward: the gradient of x is not asked for.
    const plainDots = sn
      .explain(
        sn.grad((y: T, ...ws: T[]) => f(y, ...ws).sum() as T, { argnums: [1, 2] }) as (
          ...args: never[]
        ) => unknown,
        x,
        ...w,
      )
      .graph.match(/ = dot/g)!.length;
    expect(dotsWith('products')).toBe(plainDots);
    expect(dotsWith('unbatchedProducts')).toBe(plainDots);
    expect(dotsWith(({ op }) => op === 'dot')).toBe(plainDots);
    expect(dotsWith()).toBe(plainDots + 2);
    expect(dotsWith('nothing')).toBe(plainDots + 2);
    expect(dotsWith(['second'])).toBe(plainDots + 1);
    expect(dotsWith(['first'])).toBe(plainDots + 1);
    expect(dotsWith(['first', 'second'])).toBe(plainDots);
    expect(dotsWith(['third'])).toBe(plainDots + 2);
  });

  test('that is none is refused', () => {
    expect(() => sn.checkpoint(f, { policy: 'product' as 'products' })).toThrow(/policy: 'products'/);
    expect(() => sn.checkpoint(f, { policy: [1] as unknown as string[] })).toThrow(/E_VALUE|must be/);
    expect(() => sn.checkpointName(x, 3 as unknown as string)).toThrow('must be a string');
    expect(() => sn.checkpoint(() => 3 as unknown as T)()).toThrow('must be a tensor');
  });
});
