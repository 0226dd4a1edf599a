// Complex tensors as users hold them: made, read, promoted, refused, differentiated and trained, on every device, and held to PyTorch's
// figures (scripts/complex-fixtures.py); at infinities, to NumPy's (scripts/special/infinities.py).

import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { exportOnnx, loadOnnx } from '../../src/onnx/index.ts';
import { readNpy, toHostTensor, writeNpy, fromHostTensor } from '../../src/io/index.ts';
import * as optim from '../../src/optim/index.ts';
import { randomNumbers } from '../autograd/differences.ts';
import { everyDevice } from '../support/devices.ts';
import { seed } from '../support/property.ts';

type Part = number | string;
interface Case {
  readonly result: readonly (Part | readonly [Part, Part])[];
  readonly grads: readonly (readonly [Part, Part])[][];
}
const figures = JSON.parse(
  readFileSync(new URL('../fixtures/torch-complex.json', import.meta.url), 'utf8'),
) as {
  readonly points: readonly (readonly [Part, Part])[];
  readonly others: readonly (readonly [Part, Part])[];
  readonly near: readonly number[];
  readonly unary: Readonly<Record<string, Case>>;
  readonly binary: Readonly<Record<string, Case>>;
};

const atInfinities = JSON.parse(
  readFileSync(new URL('../fixtures/complex-infinities.json', import.meta.url), 'utf8'),
) as {
  readonly points: readonly (readonly [Part, Part])[];
  readonly values: Readonly<Record<string, readonly (Part | readonly [Part, Part] | null)[]>>;
};

const partOf = (part: Part): number =>
  part === '-0' ? -0 : Number(part === 'inf' ? Infinity : part === '-inf' ? -Infinity : part);
const flat = (list: readonly (Part | readonly Part[])[]): number[] => list.flat().map(partOf);

function tensorOf(points: readonly (readonly [Part, Part])[], dtype: 'c64' | 'c128'): sn.Tensor {
  return sn.tensor(Float64Array.from(flat(points)), { dtype });
}

type Cut = (re: number, im: number) => boolean;
const beyondOne: Cut = (re, im) => im === 0 && Math.abs(re) > 1;
/** On these cuts PyTorch's code for vectors takes one side, whatever the sign of 0 says, and C goes by that sign. */
const cuts: Readonly<Record<string, Cut>> = {
  atan: (re, im) => re === 0 && Math.abs(im) > 1,
  acosh: (re, im) => im === 0 && re < 1,
};
/** On these its derivatives do; ours are of the side of the value. */
const derivativeCuts: Readonly<Record<string, Cut>> = {
  ...cuts,
  asin: beyondOne,
  acos: beyondOne,
  asinh: (re, im) => beyondOne(im, re),
};

/** Elements as near as the larger part of the wanted one allows, and infinite ones in their places. */
async function expectNear(
  actual: sn.Tensor,
  wanted: readonly (Part | readonly Part[])[],
  tolerance: number,
  skips: (element: number) => boolean = () => false,
): Promise<void> {
  const data = Array.from((await actual.data()) as Float64Array);
  const width = actual.dtype.startsWith('c') ? 2 : 1;
  const expected = flat(wanted);
  expect(data).toHaveLength(expected.length);
  for (let i = 0; i < expected.length; i += width) {
    const size = Math.max(...expected.slice(i, i + width).map(Math.abs));
    if (!Number.isFinite(size) || size > 1e30 || skips(i / width)) continue;
    for (let k = i; k < i + width; k++) {
      const error = Math.abs(data[k]! - expected[k]!);
      if (!(error <= tolerance * Math.max(size, 1e-3)))
        throw new Error(
          `element ${i / width}: ${data.slice(i, i + width)} is not ${expected.slice(i, i + width)}`,
        );
    }
  }
}

afterAll(() => sn.close());

describe.each(everyDevice)('on %s', (device) => {
  test.each(Object.keys(figures.unary))('%s is PyTorch’s, with its gradient', async (name) => {
    sn.setDevice(device);
    const { result, grads } = figures.unary[name]!;
    const f = (sn as unknown as Record<string, (x: sn.Tensor) => sn.Tensor>)[name]!;
    const onCut =
      (table: Readonly<Record<string, Cut>>) =>
      (element: number): boolean => {
        const [re, im] = figures.points[element]!.map(partOf);
        return table[name]?.(re!, im!) === true;
      };
    for (const [dtype, tolerance] of [
      ['c64', 4e-5],
      ['c128', 1e-10],
    ] as const) {
      if (dtype === 'c128' && device === 'webgpu:software') continue;
      const z = tensorOf(figures.points, dtype).requiresGrad_();
      const out = f(z);
      await expectNear(out, result, tolerance, onCut(cuts));
      const weight = sn.isComplex(out)
        ? sn.complex(sn.tensor(1, { dtype: dtype === 'c64' ? 'f32' : 'f64' }), -0.5)
        : 1;
      sn.real(sn.mul(out, weight)).sum().backward();
      await expectNear(z.grad!, grads[0]!, tolerance * 20, onCut(derivativeCuts));
    }
  });

  test.each(['c64', 'c128'] as const)(
    'infinite, huge and tiny %s have the values of Annex G',
    async (dtype) => {
      if (dtype === 'c128' && device === 'webgpu:software') return;
      sn.setDevice(device);
      const z = tensorOf(atInfinities.points, dtype);
      const names = Object.keys(atInfinities.values);
      // All are recorded before one is read, so they are one program.
      const outs = names.map((name) =>
        (sn as unknown as Record<string, (x: sn.Tensor) => sn.Tensor>)[name]!(z),
      );
      const wrong: string[] = [];
      for (const [row, name] of names.entries()) {
        const wanted = atInfinities.values[name]!;
        const data = Array.from((await outs[row]!.data()) as Float64Array);
        const width = data.length / wanted.length;
        wanted.forEach((value, i) => {
          if (value === null) return;
          const parts = flat([value]).map(dtype === 'c64' ? Math.fround : Number);
          const size = Math.max(...parts.map(Math.abs).filter(Number.isFinite), 1e-30);
          // Beside NaN, the sign of an infinite part is open.
          const side = parts.some(Number.isNaN) ? Math.abs : (x: number): number => x + 0;
          parts.forEach((part, k) => {
            const actual = data[i * width + k]!;
            const near = Math.abs(actual - part) <= (dtype === 'c64' ? 4e-5 : 1e-10) * size;
            if (!near && !Object.is(side(actual), side(part)))
              wrong.push(`${name}(${atInfinities.points[i]!.join(', ')}): ${actual} is not ${part}`);
          });
        });
      }
      expect(wrong).toEqual([]);
    },
  );

  test('a part of 0 in a divisor or an exponent meets no infinity', async () => {
    sn.setDevice(device);
    const z = tensorOf(
      [
        [1, 'inf'],
        ['-inf', 0],
        ['nan', 'inf'],
      ],
      'c64',
    );
    const by = (re: number): sn.Tensor =>
      tensorOf(
        [0, 1, 2].map(() => [re, 0]),
        'c64',
      );
    // By 0, part by part; the second as a power too, which z⁰ = 1 is for all.
    expect(Array.from(await z.div(by(0)).data(), Number)).toEqual([
      Infinity,
      Infinity,
      -Infinity,
      NaN,
      NaN,
      Infinity,
    ]);
    expect(Number((await z.pow(by(1)).data())[2])).toBe(-Infinity);
    expect(Array.from(await z.pow(by(0)).data(), Number)).toEqual([1, 0, 1, 0, 1, 0]);
  });

  test('atanh keeps its digits beside both of its poles', async () => {
    sn.setDevice(device);
    const points = [-1, 1].flatMap((re) => [1e-3, 1e-5, 1e-25].map((im): [Part, Part] => [re, im]));
    const data = (await sn.atanh(tensorOf(points, 'c64')).data()) as Float32Array;
    points.forEach(([re, im], i) =>
      expect(data[2 * i]).toBeCloseTo((Number(re) * Math.log(2 / Number(im))) / 2, 5),
    );
  });

  test.each(Object.keys(figures.binary))('%s is PyTorch’s, with its gradients', async (name) => {
    sn.setDevice(device);
    const { result, grads } = figures.binary[name]!;
    const f = (sn as unknown as Record<string, (x: sn.Tensor, y: sn.Tensor) => sn.Tensor>)[name]!;
    const z = tensorOf(
      figures.near.map((i) => figures.points[i]!),
      'c64',
    ).requiresGrad_();
    const w = tensorOf(figures.others, 'c64').requiresGrad_();
    const out = f(z, w);
    await expectNear(out, result, 4e-5);
    sn.real(sn.mul(out, sn.complex(1, -0.5)))
      .sum()
      .backward();
    await expectNear(z.grad!, grads[0]!, 4e-4);
    await expectNear(w.grad!, grads[1]!, 4e-4);
  });

  test('products of matrices and convolutions are those of the parts', async () => {
    sn.setDevice(device);
    const parts = (...shape: number[]): sn.Tensor => sn.randn(shape);
    const [a, b, c, d] = [parts(3, 4, 5), parts(3, 4, 5), parts(5, 6), parts(5, 6)];
    const product = sn.complex(a, b).matmul(sn.complex(c, d));
    const near = async (x: sn.Tensor, y: sn.Tensor): Promise<void> =>
      expect(await sn.sub(x, y).abs().amax().item()).toBeLessThan(1e-4);
    await near(product.real(), a.matmul(c).sub(b.matmul(d)));
    await near(product.imag(), a.matmul(d).add(b.matmul(c)));
    const [x, y, u, v] = [parts(2, 4, 7), parts(2, 4, 7), parts(6, 2, 3), parts(6, 2, 3)];
    const options = { groups: 2, padding: 1, stride: 2 };
    const conv = sn.conv1d(sn.complex(x, y), sn.complex(u, v), undefined, options);
    const one = (p: sn.Tensor, q: sn.Tensor): sn.Tensor => sn.conv1d(p, q, undefined, options);
    await near(conv.real(), one(x, u).sub(one(y, v)));
    await near(conv.imag(), one(x, v).add(one(y, u)));
  });

  test('compiled functions take and give them, and keep the bytes of views', async () => {
    sn.setDevice(device);
    const f = sn.compile((z: sn.Tensor, x: sn.Tensor) => ({
      turned: z.mul(sn.polar(1, x)),
      pairs: sn.viewAsReal(z),
      back: sn.viewAsComplex(sn.viewAsReal(z)),
    }));
    const z = sn.tensor([
      { re: 1, im: 2 },
      { re: -3, im: 0.5 },
    ]);
    for (const angle of [0, Math.PI / 2]) {
      const { turned, pairs, back } = f(z, sn.tensor(angle));
      expect(await pairs.array()).toEqual([
        [1, 2],
        [-3, 0.5],
      ]);
      expect(await back.data()).toEqual(new Float32Array([1, 2, -3, 0.5]));
      const wanted = angle === 0 ? [1, 2, -3, 0.5] : [-2, 1, -0.5, -3];
      const data = Array.from((await turned.data()) as Float32Array);
      data.forEach((value, i) => expect(value).toBeCloseTo(wanted[i]!, 5));
    }
  });

  test('random programs are what the interpreter makes of them', async () => {
    const steps: readonly ((x: sn.Tensor, y: sn.Tensor) => sn.Tensor)[] = [
      (x, y) => x.add(y),
      (x, y) => x.mul(y),
      (x, y) => x.sub(y.conj()),
      (x) => x.mul(0.5),
      (x) => x.tanh(),
      (x) => sn.sgn(x.exp()),
      (x) => x.t().flip(0),
      (x, y) => x.matmul(y),
      (x) => x.cumsum(1),
      (x) => x.sum(0, { keepdim: true }).expand([3, 3]),
      (x) => x.prod(1, { keepdim: true }).expand([3, 3]),
      (x, y) => sn.where(x.real().gt(0), x, y),
      (x, y) => sn.narrow(sn.cat([x, y], 1), 1, 1, 3),
      (x, y) => sn.complex(x.imag(), y.real()),
    ];
    const next = randomNumbers(seed);
    const numbers = (): Float32Array => Float32Array.from({ length: 18 }, () => 2 * next() - 1);
    for (let run = 0; run < 12; run++) {
      const data = [numbers(), numbers()];
      const list = Array.from({ length: 5 }, () => [next(), next(), next()] as const);
      const value = async (on: string): Promise<Float32Array> => {
        sn.setDevice(on);
        const made = data.map((part) => sn.tensor(part, { dtype: 'c64', shape: [3, 3] }));
        const one = (u: number): sn.Tensor => made[Math.floor(u * made.length)]!;
        for (const [step, x, y] of list) made.push(steps[Math.floor(step * steps.length)]!(one(x), one(y)));
        return (await made.at(-1)!.data()) as Float32Array;
      };
      const [actual, wanted] = [await value(device), await value('interpreter')];
      const size = Math.max(1, ...wanted.map(Math.abs));
      actual.forEach((part, i) => {
        if (!(Math.abs(part - wanted[i]!) <= 2e-4 * size))
          throw new Error(`run ${run} of SINTER_SEED=${seed}: ${part} is not ${wanted[i]} at ${i}`);
      });
    }
  });

  test('optimizers descend along both parts', async () => {
    sn.setDevice(device);
    const wanted = sn.tensor([
      { re: 1, im: -2 },
      { re: 0.5, im: 3 },
    ]);
    const z = sn.zeros([2], { dtype: 'c64' }).requiresGrad_();
    const adam = new optim.Adam([z], { lr: 0.1 });
    for (let step = 0; step < 200; step++) {
      adam.zeroGrad();
      z.sub(wanted).abs().square().sum().backward();
      adam.step();
    }
    expect(await z.sub(wanted).abs().amax().item()).toBeLessThan(0.02);
  });
});

describe('complex tensors', () => {
  test('are made of pairs, of parts and of host data', async () => {
    sn.setDevice('interpreter');
    const z = sn.tensor([
      [{ re: 1, im: 2 }, 3],
      [0, { re: 0, im: -1 }],
    ]);
    expect([z.dtype, z.shape]).toEqual(['c64', [2, 2]]);
    expect(await z.data()).toEqual(new Float32Array([1, 2, 3, 0, 0, 0, 0, -1]));
    expect(await sn.tensor(new Float64Array([1, 2, 3, 4]), { dtype: 'c128' }).array()).toEqual([
      { re: 1, im: 2 },
      { re: 3, im: 4 },
    ]);
    expect(
      await sn
        .complex(sn.tensor([1, 2], { dtype: 'f64' }), 1)
        .item()
        .catch((e: Error) => e.message),
    ).toMatch(/one element/);
    expect(await sn.complex(1, -2).item()).toEqual({ re: 1, im: -2 });
    expect(String(sn.tensor([{ re: 0.1, im: -2 }]))).toBe('Tensor c64[1] [0.1-2i]');
    expect(await sn.full([2], { re: 1, im: 2 }).array()).toEqual([
      { re: 1, im: 2 },
      { re: 1, im: 2 },
    ]);
    expect(() => sn.tensor(new Float32Array(3), { dtype: 'c64' })).toThrow(/by turns/);
    expect(() => sn.tensor([{ re: 1, im: 2 }], { dtype: 'f32' })).toThrow(/does not hold/);
  });

  test('promote as PyTorch’s do', () => {
    const of = (dtype: sn.DType, ...shape: number[]): sn.Tensor => sn.zeros(shape, { dtype });
    const cases: readonly (readonly [sn.Tensor, sn.Tensor, sn.DType])[] = [
      [of('c64', 2), of('f64', 2), 'c128'],
      [of('c64', 2), of('f64'), 'c64'],
      [of('f64', 2), of('c64'), 'c128'],
      [of('f32', 2), of('c128'), 'c64'],
      [of('f16', 2), of('c64', 2), 'c64'],
      [of('i32', 2), of('c64'), 'c64'],
      [of('bool', 2), of('c128'), 'c128'],
    ];
    for (const [x, y, dtype] of cases) expect([x.add(y).dtype, y.add(x).dtype]).toEqual([dtype, dtype]);
    expect(of('c64', 2).add(1.5).dtype).toBe('c64');
  });

  test('cast to real dtypes by their real part, to bool by both', async () => {
    const z = sn.tensor([{ re: 1.5, im: 2 }, { re: 0, im: 1 }, 0]);
    expect(await z.cast('f32').array()).toEqual([1.5, 0, 0]);
    expect(await z.cast('i32').array()).toEqual([1, 0, 0]);
    expect(await z.cast('bool').array()).toEqual([true, true, false]);
    expect(await sn.tensor([1, 2]).cast('c128').array()).toEqual([
      { re: 1, im: 0 },
      { re: 2, im: 0 },
    ]);
  });

  test('refuse what orders and rounds, and a complex loss', () => {
    const z = sn.tensor([{ re: 1, im: 2 }, 3]);
    const calls: readonly (() => unknown)[] = [
      () => z.lt(1),
      () => sn.maximum(z, z),
      () => z.floor(),
      () => z.sign(),
      () => z.clamp(0, 1),
      () => z.relu(),
      () => z.amax(),
      () => z.argmax(),
      () => z.sort(),
      () => z.erf(),
      () => z.div(2, { rounding: 'trunc' }),
      () => sn.remainder(z, 2),
      () => sn.atan2(z, z),
      () => sn.cummax(z, 0),
      () => sn.softmax(z),
      () => sn.mseLoss(z, z),
      () => sn.arange(0, 3, 1, { dtype: 'c64' }),
      () => sn.imag(sn.tensor([1])),
      () => sn.viewAsComplex(sn.zeros([3], { dtype: 'i32' })),
      () => sn.complex(z, 1),
      () => sn.bitcast(z, 'f64'),
    ];
    for (const call of calls)
      expect(call, String(call)).toThrow(expect.objectContaining({ code: 'E_DTYPE' }) as Error);
    expect(() => sn.grad((w: sn.Tensor) => w.sum())(z)).toThrow(/loss must be real/);
  });

  test('sums of squares, spreads and norms are real', async () => {
    const z = sn.tensor([
      { re: 3, im: 4 },
      { re: 0, im: -5 },
    ]);
    expect(await sn.norm(z).item()).toBeCloseTo(Math.sqrt(50), 5);
    expect(await sn.norm(z, Infinity).item()).toBe(5);
    expect(await sn.norm(z, 1).item()).toBe(10);
    expect(await sn.norm(z, 0).item()).toBe(2);
    expect(await z.mean().item()).toEqual({ re: 1.5, im: -0.5 });
    // Deviations ±(1.5 + 4.5i).
    expect(await z.var().item()).toBeCloseTo(45, 4);
    expect(await z.sum().item()).toEqual({ re: 3, im: -1 });
    expect(await z.prod().item()).toEqual({ re: 20, im: -15 });
    expect(await sn.isReal(z).array()).toEqual([false, false]);
    // Of one number no spread is known, so nor is its derivative; PyTorch's for real numbers is NaN too.
    for (const spread of [sn.var, sn.std]) {
      const slope = sn.grad((y: sn.Tensor) => spread(y))(sn.select(z, 0, 0));
      expect(await sn.viewAsReal(slope).array()).toEqual([NaN, NaN]);
    }
  });

  test('logsumexp is shifted by the largest real part', async () => {
    const pairs = (...parts: number[]): sn.Tensor =>
      sn.viewAsComplex(sn.tensor(parts, { dtype: 'f64' }).reshape([-1, 2]));
    const read = async (z: sn.Tensor): Promise<number[]> =>
      [...(await sn.viewAsReal(z).data())].map((part) => Number(Number(part).toFixed(8)));
    // jax.scipy.special.logsumexp, and jax.grad of its real part, conjugated.
    const z = pairs(1, 0, 2, -1, 3, 2);
    expect(await read(sn.logsumexp(z))).toEqual([2.49800781, 1.70675462]);
    expect(await read(sn.grad((y: sn.Tensor) => sn.real(sn.logsumexp(y)))(z))).toEqual([
      -0.03030333, 0.22151195, -0.55118284, 0.25601877, 1.58148618, -0.47753072,
    ]);
    expect(await read(sn.logsumexp(pairs(1000, 1, 999, 2)))).toEqual([1000.21357008, 1.25271138]);
    expect((await read(sn.logsumexp(pairs(-Infinity, 1, -Infinity, 2))))[0]).toBe(-Infinity);
  });

  test('exported to ONNX are real, with a last axis of 2', async () => {
    sn.setDevice('wasm');
    const w = sn.tensor([
      [{ re: 1, im: 2 }, 3],
      [1, { re: 0, im: -1 }],
    ]);
    const f = (z: sn.Tensor): sn.Tensor => w.matmul(z).add(1).exp().conj();
    const z = sn.tensor([
      { re: 0.5, im: -0.25 },
      { re: -1, im: 0.125 },
    ]);
    const model = await loadOnnx((await exportOnnx(f, [z])).bytes);
    const [result] = Object.values(await model.run({ z: sn.viewAsReal(z) }));
    expect([result!.dtype, result!.shape]).toEqual(['f32', [2, 2]]);
    const [actual, wanted] = [await result!.data(), await f(z).data()];
    actual.forEach((value: number | bigint, i: number) =>
      expect(Number(value)).toBeCloseTo(Number(wanted[i]), 5),
    );
    sn.setDevice('interpreter');
  });

  test('npy keeps every bit', async () => {
    for (const dtype of ['c64', 'c128'] as const) {
      const z = sn.tensor(new Float64Array([0.1, -2, -0, NaN]), { dtype });
      const back = readNpy(writeNpy(await toHostTensor(z)));
      expect([back.dtype, back.shape]).toEqual([dtype, [2]]);
      expect(await fromHostTensor(back).data()).toEqual(await z.data());
    }
  });

  test('rules of customVjp get and give cotangents in this convention', async () => {
    const square = sn.customVjp(
      (z) => z.mul(z),
      (g, [z]) => [g.mul(z!.mul(2).conj())],
    );
    const z = sn.tensor([{ re: 1, im: 2 }]);
    const loss = (f: (z: sn.Tensor) => sn.Tensor) => (w: sn.Tensor) => f(w).abs().sum();
    const [own, plain] = [loss(square), loss((w) => w.square())].map((f) => sn.grad(f)(z) as sn.Tensor);
    expect(await own!.array()).toEqual(await plain!.array());
  });
});
