// What JavaScript itself does to tensors: operators, Math and text ask an object for a number, arrays can be written to and can
// contain themselves, and functions may be asynchronous. Each is an error that says what to write instead, never a value.

import { describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';

/** A tensor where JavaScript takes a number, as code that no type checker has seen. */
const plain = (value: unknown): number => value as number;

describe('a tensor is no number', () => {
  const x = sn.tensor([1, 2]);
  const uses: Readonly<Record<string, () => unknown>> = {
    'x + 1': () => plain(x) + 1,
    "x + ' text'": () => `${' '}`.concat(plain(x) + (' text' as unknown as string)),
    'x - y': () => plain(x) - plain(sn.ones([2])),
    'x * 2': () => plain(x) * 2,
    'x ** 2': () => plain(x) ** 2,
    '-x': () => -plain(x),
    '+x': () => +plain(x),
    'x > 0': () => plain(x) > 0,
    'x <= y': () => plain(x) <= plain(x),
    'x == 1': () => (x as unknown) == 1, // eslint-disable-line eqeqeq
    'Math.sqrt(x)': () => Math.sqrt(plain(x)),
    'Math.max(x, 0)': () => Math.max(plain(x), 0),
    'Number(x)': () => Number(x),
    'isNaN(x)': () => isNaN(plain(x)),
    'x & 1': () => plain(x) & 1,
    'x++': () => {
      let n = plain(x);
      return n++;
    },
  };

  test.each(Object.keys(uses))('%s throws and says what to write', (use) => {
    let error: unknown;
    try {
      uses[use]!();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(sn.TensorError);
    expect(error).toMatchObject({ code: 'E_VALUE' });
    expect((error as Error).message).toMatch(/the value of f32\[2\] is not known yet/);
    expect((error as Error).message).toMatch(/operators\.test\.ts:\d+/);
    expect((error as Error).message).toMatch(/try: \.add, \.mul, \.gt.*await t\.item\(\)/);
  });

  test('as text it says what it is', () => {
    expect(String(x)).toMatch(/^Tensor f32\[2\]/);
    expect(`${x}`).toBe(String(x));
  });
});

describe('a number that a compiled or differentiated function is given is a tensor inside', () => {
  const uses: Readonly<Record<string, (n: number) => unknown>> = {
    'n > 0.5': (n) => n > 0.5,
    'n * 2': (n) => n * 2,
    'Math.min(n, 3)': (n) => Math.min(n, 3),
    'a loop to n': (n) => {
      for (let i = 0; i < n; i++);
    },
    'a template string': (n) => `${n}`,
    'a property name': (n) => [1, 2, 3][n],
  };

  test.each(Object.keys(uses))('%s throws', (use) => {
    const body = (x: sn.Tensor, n: sn.Tensor): sn.Tensor => {
      uses[use]!(plain(n));
      return x.sum();
    };
    for (const call of [sn.compile(body), sn.grad(body, { argnums: [0, 1] })]) {
      const run = (): unknown => call(sn.ones([2]), 3 as unknown as sn.Tensor);
      expect(run).toThrow(/a number that was passed to a compiled or differentiated function/);
      expect(run).toThrow(/try: .*captures is compiled in/);
    }
  });

  test('a message about it still tells what came', () => {
    const f = sn.compile((x: sn.Tensor, n: sn.Tensor) => sn.zeros([plain(n)]).add(x));
    expect(() => f(sn.ones([2]), 2)).toThrow(/sizes must be non-negative integers: \[Tensor f32\[\]/);
  });
});

describe('a shape cannot be written to', () => {
  test.each([
    ['of host data', () => sn.tensor([1, 2])],
    ['of a pending value', () => sn.ones([2]).add(1)],
    ['of a compiled result', () => sn.compile((x: sn.Tensor) => x.add(1))(sn.ones([2]))],
  ])('%s', async (_, make) => {
    const x = make();
    expect(() => ((x.shape as number[])[0] = 40)).toThrow(TypeError);
    expect(() => (x.shape as number[]).push(1)).toThrow(TypeError);
    expect(x.shape).toEqual([2]);
    expect(((await x.array()) as number[]).length).toBe(2);
  });

  test("and a caller's own array stays the caller's", async () => {
    const shape = [2, 3];
    const x = sn.ones(shape).reshape(shape);
    shape[0] = 7;
    expect([x.shape, shape]).toEqual([
      [2, 3],
      [7, 3],
    ]);
    expect(((await x.array()) as number[][]).length).toBe(2);
  });
});

describe('nested arrays that no memory holds', () => {
  test('an array that contains itself', () => {
    const a: unknown[] = [];
    a.push(a);
    expect(() => sn.tensor(a as number[])).toThrow(/the array contains itself/);
    const [b, c]: unknown[][] = [[], []];
    b!.push(c);
    c!.push(b, 1);
    expect(() => sn.tensor(b as number[])).toThrow(/the array contains itself/);
    const d: unknown[] = [1];
    d.push(d);
    expect(() => sn.tensor(d as number[])).toThrow(/ragged array/);
  });

  test('an array whose parts are shared by many places', () => {
    let a: unknown[] = [1, 2];
    for (let i = 0; i < 40; i++) a = [a, a];
    expect(() => sn.tensor(a as number[])).toThrow(/nested arrays hold at most/);
  });
});

describe('an asynchronous function is refused, and its own rejection ends nothing', () => {
  const later = async (): Promise<never> => {
    await Promise.resolve();
    throw new Error('nobody waits for this');
  };
  const scopes: Readonly<Record<string, () => unknown>> = {
    compile: () => sn.compile(later)(),
    'compile inside compile': () =>
      sn.compile((x: sn.Tensor) => {
        sn.compile(later)();
        return x;
      })(sn.ones([2])),
    'compile, in its results': () => sn.compile(() => ({ a: [later()] }))(),
    noGrad: () => sn.noGrad(later),
    enableGrad: () => sn.enableGrad(later),
    grad: () => sn.grad(later as unknown as () => sn.Tensor, { argnums: [] })(),
    valueAndGrad: () => sn.valueAndGrad(later as unknown as (x: sn.Tensor) => sn.Tensor)(sn.ones([2])),
    vjp: () => sn.vjp(later as unknown as (x: sn.Tensor) => sn.Tensor, sn.ones([2])),
    customVjp: () => sn.customVjp(later as never, () => [])(sn.ones([2])),
    'the rule of customVjp': () => {
      const f = sn.customVjp((x) => x.mul(2), later as never);
      return sn.grad((x: sn.Tensor) => f(x).sum())(sn.ones([2]));
    },
    explain: () => sn.explain(later),
    lower: () => sn.lower(later),
  };

  test.each(Object.keys(scopes))('%s', async (scope) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    const before = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', note);
    try {
      expect(() => scopes[scope]!()).toThrow(/asynchronous|got a? ?Promise/);
      await new Promise((resolve) => setTimeout(resolve, 5));
    } finally {
      process.off('unhandledRejection', note);
      for (const listener of before) process.on('unhandledRejection', listener);
    }
    expect(unhandled).toEqual([]);
  });

  test('and so is a generator, whose body runs after the scope has ended', () => {
    expect(() =>
      sn.noGrad(function* () {
        yield 1;
      }),
    ).toThrow(/noGrad: the function is a generator/);
  });

  test('gradients are tracked as before after the refusal', () => {
    expect(() => sn.noGrad(async () => undefined)).toThrow('noGrad: the function is asynchronous');
    expect(sn.ones([2]).requiresGrad_().mul(2).requiresGrad).toBe(true);
  });
});
