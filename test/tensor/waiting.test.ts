// Calls of operations whose code has not come into a page yet: what they give, and that it is what the same calls give at
// once, whatever is done between a call and its recording.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Lazy, NotLoaded } from '../../src/lazy.ts';
import { patient, type Operation } from '../../src/tensor/waiting.ts';

beforeAll(() => sn.setDevice('interpreter'));

/** An operation of tensors, as these tests call it. */
type Called = (...args: readonly unknown[]) => sn.Tensor;

/** The same operation with its code still to come; `come` lets it. */
function absent(operation: Called, traits = {}): { readonly call: Called; come(): Promise<void> } {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const part = new Lazy<Called>('a part of this test', async () => {
    await gate;
    return operation;
  });
  return {
    call: patient((...args: readonly unknown[]) => part.value(...args), traits) as Called,
    come() {
      release();
      return part.load();
    },
  };
}

const add = patient(sn.add as Operation) as Called;
const mul = patient(sn.mul as Operation) as Called;
const rand = patient(sn.rand as Operation, { draws: true }) as Called;
const double: Called = (x) => sn.mul(x as sn.Tensor, 2);

const valuesOf = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof sn.SinterError ? `${error.name} ${error.code}` : String(error);
  }
  return 'nothing thrown';
}

describe('a tensor that waits', () => {
  test('has no shape and no dtype, says so, and has both once the code is there', async () => {
    const { call, come } = absent(double);
    const y = call(sn.tensor([1, 2]));
    expect(y).toBeInstanceOf(sn.Tensor);
    for (const ask of [
      () => y.shape,
      () => y.dtype,
      () => y.requiresGrad,
      () => y.backward(),
      () => y.detach(),
    ])
      expect(codeOf(ask)).toBe('NotLoaded E_STATE');
    expect(String(y)).toBe("Tensor (waits for 'a part of this test')");
    await come();
    expect([y.shape, y.dtype]).toEqual([[2], 'f32']);
    expect(await valuesOf(y)).toEqual([2, 4]);
  });

  test('is read without being asked for before', async () => {
    const { call, come } = absent(double);
    const y = call(sn.tensor(3));
    const read = Promise.all([y.data(), y.item(), y.array()]);
    void come();
    expect(await read).toEqual([new Float32Array([6]), 6, 6]);
  });

  test('hands waiting on to operations that are there, and to others that wait', async () => {
    const [first, second] = [absent(double), absent(double)];
    const x = sn.tensor([1, 2]);
    const y = add(second.call(mul(first.call(x), x)), 1);
    expect(codeOf(() => y.shape)).toBe('NotLoaded E_STATE');
    await second.come();
    expect(codeOf(() => y.shape)).toBe('NotLoaded E_STATE');
    await first.come();
    expect(await valuesOf(y)).toEqual([5, 17]);
  });

  test('rejects with the error of its call, and so does what is computed of it', async () => {
    const { call, come } = absent((x) => sn.reshape(x as sn.Tensor, [5]));
    const y = call(sn.tensor([1, 2]));
    const z = add(y, 1);
    void come();
    for (const wrong of [y, z]) {
      await expect(wrong.data()).rejects.toMatchObject({
        name: 'TensorError',
        code: 'E_SHAPE',
        op: 'reshape',
      });
      await expect(wrong.data()).rejects.toThrow(/waiting\.test\.ts/);
    }
  });

  test('can be disposed of before it is there', async () => {
    const { call, come } = absent(double);
    const y = call(sn.tensor([1]));
    y.dispose();
    await come();
    await expect(y.data()).rejects.toThrow(/disposed/);
  });

  test('rejects a read while its part does not come, and is there when it does', async () => {
    let tries = 0;
    const part = new Lazy<Called>('a part that fails at first', () =>
      tries++ < 2 ? Promise.reject(new Error('offline')) : Promise.resolve(double),
    );
    const y = (patient((...args: readonly unknown[]) => part.value(...args)) as Called)(sn.tensor([1]));
    await Promise.resolve();
    await expect(y.data()).rejects.toMatchObject({ code: 'E_IO' });
    await expect(y.data())
      .rejects.toMatchObject({ code: 'E_IO' })
      .catch(() => undefined);
    expect(await valuesOf(y)).toEqual([2]);
  });
});

describe('a call that waits is recorded as at its moment', () => {
  test('whatever becomes of its tensors', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 8 }),
        async (list) => {
          const x = sn.tensor(list);
          const pending = sn.add(sn.tensor(list), 1);
          const expected = await Promise.all([double(x), double(pending)].map(valuesOf));
          const { call, come } = absent(double);
          const given = [call(x), call(pending)];
          x.assign(sn.zerosLike(x));
          pending.dispose();
          await come();
          expect(await Promise.all(given.map(valuesOf))).toEqual(expected);
        },
      ),
      { numRuns: 20 },
    );
  });

  test('whatever becomes of its arrays and options', async () => {
    const { call, come } = absent((list, options) =>
      sn.tensor(list as number[]).mul((options as { readonly by: readonly number[] }).by[0]!),
    );
    const [list, typed, by] = [[1, 2], new Float32Array([3]), [10]];
    const given = [call(list, { by }), call(typed, { by })];
    [list[0], typed[0], by[0]] = [0, 0, 0];
    await come();
    expect(await Promise.all(given.map(valuesOf))).toEqual([[10, 20], [30]]);
  });

  test('also where what it takes has come meanwhile, and changed', async () => {
    const [first, second] = [absent(double), absent(double)];
    const y = first.call(sn.tensor([1]));
    const z = second.call(y);
    await first.come();
    y.assign(sn.tensor([100]));
    await second.come();
    expect(await valuesOf(z)).toEqual([4]);
  });

  test('in the scopes around it', async () => {
    const { call, come } = absent(double);
    const product = absent((x, y) => sn.matmul(x as sn.Tensor, y as sn.Tensor));
    const x = sn.tensor([1, 2]).requiresGrad_();
    const m = sn.ones([2, 2]);
    const free = sn.noGrad(() => call(x));
    const tracked = call(x);
    const narrow = sn.autocast(() => product.call(m, m));
    await Promise.all([come(), product.come()]);
    expect([free.requiresGrad, tracked.requiresGrad, narrow.dtype]).toEqual([false, true, 'f16']);
    tracked.sum().backward();
    expect(await valuesOf(x.grad!)).toEqual([2, 2]);
  });

  test('with the random numbers of its place', async () => {
    const drawn = async (noise: Called): Promise<number[][]> => {
      sn.manualSeed(5);
      const tensors = [rand([3]), noise(sn.tensor([2])), rand([3]), add(rand([3]), 1)];
      return Promise.all(tensors.map(valuesOf));
    };
    const noise: Called = (x) => sn.mul(x as sn.Tensor, sn.rand([5]));
    const expected = await drawn(noise);
    const { call, come } = absent(noise, { draws: true });
    const given = drawn((x) => {
      const y = call(x);
      expect(codeOf(() => sn.saveRngState())).toBe('NotLoaded E_STATE');
      return y;
    });
    await come();
    expect(await given).toEqual(expected);
  });
});

describe('what cannot wait throws', () => {
  test('inside of differentiated and compiled functions, and begins anew once the code is there', async () => {
    const { call, come } = absent(double);
    const loss = (x: sn.Tensor): sn.Tensor => sn.sum(call(x).square());
    const compiled = sn.compile(loss);
    const x = sn.tensor([1, 2]);
    expect(codeOf(() => sn.grad(loss)(x))).toBe('NotLoaded E_STATE');
    expect(codeOf(() => compiled(x))).toBe('NotLoaded E_STATE');
    await come();
    expect(await valuesOf(sn.grad(loss)(x))).toEqual([8, 16]);
    expect(await valuesOf(compiled(x))).toEqual([20]);
  });

  test('where what is given is not told, or is more than was told', async () => {
    const parts = absent(((x: sn.Tensor) => x.unbind()) as unknown as Called, { gives: 'untold' });
    expect(() => parts.call(sn.tensor([1, 2]))).toThrow(NotLoaded);
    const wrong = absent(((x: sn.Tensor) => x.unbind()) as unknown as Called, { gives: 3 });
    const [first] = wrong.call(sn.tensor([1, 2])) as unknown as sn.Tensor[];
    void wrong.come();
    await expect(first!.data()).rejects.toMatchObject({ code: 'E_BUG' });
  });

  test('but what gives several tensors, or a promise, waits', async () => {
    const pair = absent(((x: sn.Tensor) => x.unbind()) as unknown as Called, { gives: 2 });
    const [first, second] = pair.call(sn.tensor([1, 2])) as unknown as sn.Tensor[];
    const named = absent(((x: sn.Tensor) => ({ x, y: x.neg() })) as unknown as Called, { gives: ['x', 'y'] });
    const { y } = named.call(sn.tensor([1, 2])) as unknown as { readonly y: sn.Tensor };
    const late = absent((async (x: sn.Tensor) => x.neg()) as unknown as Called, { gives: 'promise' });
    const promise = late.call(first) as unknown as Promise<sn.Tensor>;
    await Promise.all([pair.come(), named.come(), late.come()]);
    expect(await Promise.all([first!, second!, y, await promise].map(valuesOf))).toEqual([
      [1],
      [2],
      [-1, -2],
      [-1],
    ]);
  });
});
