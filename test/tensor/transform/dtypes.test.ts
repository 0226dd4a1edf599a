// What the type checker knows of dtypes, and that it is so: the types below are checked by `npm run check`, and every method
// whose dtype is known is called on every dtype to see that its result has the dtype that its type says.

import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { SinterError } from '../../../src/errors.ts';
import { dtypes, isComplex, isFloat, isInexact, partType, promote } from '../../../src/ir/dtype.ts';

beforeAll(() => sn.setDevice('interpreter'));

type Complex = { readonly re: number; readonly im: number };

describe('on the host', () => {
  test('an element is a number, a bigint, a boolean or a pair, by the dtype', async () => {
    expectTypeOf(await sn.tensor([1.5]).item()).toEqualTypeOf<number>();
    expectTypeOf(await sn.tensor(2).item()).toEqualTypeOf<number>();
    expectTypeOf(await sn.tensor([7n]).item()).toEqualTypeOf<bigint>();
    expectTypeOf(await sn.tensor([[true]]).item()).toEqualTypeOf<boolean>();
    expectTypeOf(await sn.zeros([1], { dtype: 'c64' }).item()).toEqualTypeOf<Complex>();
    const values = [sn.tensor([1.5]), sn.tensor([7n]), sn.tensor([[true]])] as const;
    expect(await Promise.all(values.map((x) => x.item()))).toEqual([1.5, 7n, true]);
  });

  test('data is the typed array of the dtype', async () => {
    expectTypeOf(await sn.ones([2]).data()).toEqualTypeOf<Float32Array>();
    expectTypeOf(await sn.ones([2], { dtype: 'f16' }).data()).toEqualTypeOf<Float32Array>();
    expectTypeOf(await sn.ones([2], { dtype: 'i64' }).data()).toEqualTypeOf<BigInt64Array>();
    expectTypeOf(await sn.tensor(new Int32Array(2)).data()).toEqualTypeOf<Int32Array>();
    expectTypeOf(await sn.tensor([[1], [2]]).array()).toEqualTypeOf<sn.NestedArray<number>>();
    expect(await sn.ones([2], { dtype: 'i64' }).data()).toEqual(new BigInt64Array([1n, 1n]));
  });

  test('of a tensor of which nothing is known, it may be any', async () => {
    const x: sn.Tensor = sn.ones([1]);
    expectTypeOf(await x.item()).toEqualTypeOf<number | bigint | boolean | Complex>();
    expectTypeOf(await x.data()).toEqualTypeOf<sn.HostData>();
    expectTypeOf(x.dtype).toEqualTypeOf<sn.DType>();
    // @ts-expect-error: it may be a bigint
    const item: number = await x.item();
    expect(item).toBe(1);
  });
});

describe('through operations', () => {
  test('the dtype is inferred', () => {
    const x = sn.ones([2, 3]);
    expectTypeOf(x.mul(2).sub(x).relu().sum(0)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(sn.exp(x).matmul(x.T)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(x.gt(0).all()).toEqualTypeOf<sn.Tensor<'bool'>>();
    expectTypeOf(x.argmax(1)).toEqualTypeOf<sn.Tensor<'i32'>>();
    expectTypeOf(x.cast('i64').add(1).sum().dtype).toEqualTypeOf<'i64' | 'f32'>();
    expectTypeOf(x.cast('i64').sum()).toEqualTypeOf<sn.Tensor<'i64'>>();
    expectTypeOf(x.sum(0, { dtype: 'f64' })).toEqualTypeOf<sn.Tensor<'f64'>>();
    expectTypeOf(x.cast('c64').abs()).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(x.cast('u8').exp()).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(x.cast('u8').sum()).toEqualTypeOf<sn.Tensor<'i32'>>();
    expectTypeOf(x.cast('bool').add(x)).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(sn.add(x, x.cast('c64'))).toExtend<sn.Tensor<'c64' | 'c128'>>();
    expectTypeOf(x.topk(2)).toEqualTypeOf<[values: sn.Tensor<'f32'>, indices: sn.Tensor<'i32'>]>();
    expectTypeOf(sn.cat([x, x])).toEqualTypeOf<sn.Tensor<'f32'>>();
    expect(x.cast('u8').sum().dtype).toBe('i32');
  });

  test('losses are floats, so that their value is a number', async () => {
    const logits: sn.Tensor = sn.ones([2, 3]);
    const loss = sn.crossEntropy(logits, sn.tensor([0, 1], { dtype: 'i32' }));
    expectTypeOf(await loss.item()).toEqualTypeOf<number>();
    expect((await loss.item()).toFixed(3)).toBe('1.099');
  });

  test('split gives a tuple where the sizes are one', () => {
    const x = sn.ones([6, 2]);
    const [a, b, c] = x.split([1, 2, 3]);
    expectTypeOf(b).toEqualTypeOf<sn.Tensor<'f32'>>();
    const [q] = sn.split(x, [2, 4]);
    expectTypeOf(q).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(x.split([1, 2, 3])).toExtend<readonly [sn.Tensor, sn.Tensor, sn.Tensor]>();
    const [first] = x.split(2);
    expectTypeOf(first).toEqualTypeOf<sn.Tensor<'f32'> | undefined>();
    expect([a.shape, b.shape, c.shape, q.shape, first?.shape]).toEqual([
      [1, 2],
      [2, 2],
      [3, 2],
      [2, 2],
      [2, 2],
    ]);
  });

  test('what is not known goes wherever a dtype is expected', () => {
    const step = (x: sn.Tensor): sn.Tensor => x.mul(2);
    let state = sn.zeros([2]);
    state = step(state);
    const whole: sn.Tensor<'i32'> = step(sn.zeros([2], { dtype: 'i32' }));
    // @ts-expect-error: that one is known
    const wrong: sn.Tensor<'i32'> = sn.zeros([2]);
    expect([state.dtype, whole.dtype, wrong.dtype]).toEqual(['f32', 'i32', 'f32']);
  });
});

/** The operands and arguments that a method is called with, from matrices [4, 4] of the dtype and of another. */
type Call = (x: sn.Tensor, y: sn.Tensor) => readonly [sn.Tensor, ...(readonly unknown[])];
type Calls = Readonly<Record<string, Call>>;

const mask = sn.ones([4, 4]).gt(0);
const index = sn.zeros([4, 4], { dtype: 'i32' });
const places = sn.arange(4);

/** Methods by what their results have. */
const calls = {
  keeping: {
    bitwiseNot: (x) => [x],
    ceil: (x) => [x],
    conj: (x) => [x],
    floor: (x) => [x],
    maskedFill: (x) => [x, mask, 1],
    neg: (x) => [x],
    relu: (x) => [x],
    round: (x) => [x],
    sign: (x) => [x],
    trunc: (x) => [x],
    amax: (x) => [x],
    amin: (x) => [x],
    max: (x) => [x],
    min: (x) => [x],
    at: (x) => [x, 0],
    broadcastTo: (x) => [x, [2, 4, 4]],
    clone: (x) => [x],
    diag: (x) => [x],
    diagonal: (x) => [x],
    expand: (x) => [x, [2, 4, 4]],
    expandAs: (x) => [x, x],
    flatten: (x) => [x],
    flip: (x) => [x, 0],
    moveaxis: (x) => [x, 0, 1],
    narrow: (x) => [x, 0, 1, 2],
    permute: (x) => [x, [1, 0]],
    ravel: (x) => [x],
    reshape: (x) => [x, [16]],
    roll: (x) => [x, 1, 0],
    select: (x) => [x, 0, 1],
    slice: (x) => [x, 0, 1, 3],
    squeeze: (x) => [x],
    swapaxes: (x) => [x, 0, 1],
    t: (x) => [x],
    tile: (x) => [x, [2, 1]],
    transpose: (x) => [x],
    tril: (x) => [x],
    triu: (x) => [x],
    unflatten: (x) => [x, 0, [2, 2]],
    unsqueeze: (x) => [x, 0],
    view: (x) => [x, [16]],
    gather: (x) => [x, 0, index],
    indexAdd: (x) => [x, 0, places, x],
    addAt: (x) => [x, [0], x.at(0)],
    setAt: (x) => [x, [0], 1],
    indexSelect: (x) => [x, 0, places],
    scatter: (x) => [x, 0, index, x],
    scatterAdd: (x) => [x, 0, index, x],
    take: (x) => [x, places],
  },
  parting: {
    chunk: (x) => [x, 2],
    unbind: (x) => [x.narrow(0, 0, 2)],
  },
  floating: {
    acos: (x) => [x],
    asin: (x) => [x],
    atan: (x) => [x],
    cos: (x) => [x],
    cosh: (x) => [x],
    elu: (x) => [x],
    erf: (x) => [x],
    exp: (x) => [x],
    exp2: (x) => [x],
    expm1: (x) => [x],
    gelu: (x) => [x],
    leakyRelu: (x) => [x],
    log: (x) => [x],
    log10: (x) => [x],
    log1p: (x) => [x],
    log2: (x) => [x],
    logsumexp: (x) => [x],
    reciprocal: (x) => [x],
    rsqrt: (x) => [x],
    sigmoid: (x) => [x],
    silu: (x) => [x],
    sin: (x) => [x],
    sinh: (x) => [x],
    softplus: (x) => [x],
    sqrt: (x) => [x],
    tan: (x) => [x],
    tanh: (x) => [x],
  },
  asking: {
    all: (x) => [x],
    any: (x) => [x],
    eq: (x) => [x, x],
    ge: (x) => [x, x],
    gt: (x) => [x, x],
    isFinite: (x) => [x],
    isInf: (x) => [x],
    isNan: (x) => [x],
    le: (x) => [x, x],
    logicalAnd: (x) => [x, x],
    logicalNot: (x) => [x],
    logicalOr: (x) => [x, x],
    logicalXor: (x) => [x, x],
    lt: (x) => [x, x],
    ne: (x) => [x, x],
    toBool: (x) => [x],
  },
  locating: {
    argmax: (x) => [x],
    argmin: (x) => [x],
    argsort: (x) => [x],
    countNonzero: (x) => [x],
    toInt: (x) => [x],
  },
  finding: {
    maxWithIndices: (x) => [x, 0],
    minWithIndices: (x) => [x, 0],
    sort: (x) => [x],
    topk: (x) => [x, 2],
  },
  pairing: {
    add: (x, y) => [x, y],
    bitwiseAnd: (x, y) => [x, y],
    bitwiseOr: (x, y) => [x, y],
    bitwiseXor: (x, y) => [x, y],
    floorDivide: (x, y) => [x, y],
    fmod: (x, y) => [x, y],
    matmul: (x, y) => [x, y],
    maximum: (x, y) => [x, y],
    minimum: (x, y) => [x, y],
    mm: (x, y) => [x, y],
    bmm: (x, y) => [x.reshape([1, 4, 4]), y.reshape([1, 4, 4])],
    mv: (x, y) => [x, y.select(0, 0)],
    dot: (x, y) => [x.reshape([16]), y.reshape([16])],
    mul: (x, y) => [x, y],
    outer: (x, y) => [x.reshape([16]), y.reshape([16])],
    pow: (x, y) => [x, y],
    remainder: (x, y) => [x, y],
    sub: (x, y) => [x, y],
  },
  pairingFloats: {
    atan2: (x, y) => [x, y],
  },
  summing: {
    prod: (x) => [x],
    sum: (x) => [x],
  },
  running: {
    cumprod: (x) => [x, 0],
    cumsum: (x) => [x, 0],
  },
  spreading: {
    std: (x) => [x],
    var: (x) => [x],
  },
  averaging: {
    logSoftmax: (x) => [x],
    mean: (x) => [x],
    softmax: (x) => [x],
  },
} satisfies Readonly<Record<string, Calls>>;

type List = keyof typeof calls;

/** Those of a list that give something else than `Result` by their types, of tensors of dtype `D`. */
type Wrong<L extends List, D extends sn.DType, Result> = {
  [K in keyof (typeof calls)[L] & keyof sn.Tensor<D>]: sn.Tensor<D>[K] extends (...given: never[]) => infer R
    ? [R, Result] extends [Result, R]
      ? never
      : K
    : K;
}[keyof (typeof calls)[L] & keyof sn.Tensor<D>];

test('types say of every method in a list what the list says', () => {
  expectTypeOf<Wrong<'keeping', 'u8', sn.Tensor<'u8'>>>().toBeNever();
  expectTypeOf<Wrong<'keeping', 'c64', sn.Tensor<'c64'>>>().toBeNever();
  expectTypeOf<Wrong<'parting', 'u8', sn.Tensor<'u8'>[]>>().toBeNever();
  expectTypeOf<Wrong<'floating', 'u8', sn.Tensor<'f32'>>>().toBeNever();
  expectTypeOf<Wrong<'floating', 'f16', sn.Tensor<'f16'>>>().toBeNever();
  expectTypeOf<Wrong<'asking', 'u8', sn.Tensor<'bool'>>>().toBeNever();
  expectTypeOf<Wrong<'locating', 'f32', sn.Tensor<'i32'>>>().toBeNever();
  expectTypeOf<Wrong<'finding', 'u8', [sn.Tensor<'u8'>, sn.Tensor<'i32'>]>>().toBeNever();
  expectTypeOf<Wrong<'spreading', 'c64', sn.Tensor<'f32'>>>().toBeNever();
  // The check tells: these are of the other list.
  expectTypeOf<Wrong<'keeping', 'u8', sn.Tensor<'f32'>>>().toEqualTypeOf<keyof typeof calls.keeping>();
});

test('types say of every method of two operands that they promote', () => {
  const given = (u: sn.Tensor<'u8'>, f: sn.Tensor<'f16'>) => ({
    add: u.add(f),
    bitwiseAnd: u.bitwiseAnd(f),
    bitwiseOr: u.bitwiseOr(f),
    bitwiseXor: u.bitwiseXor(f),
    floorDivide: u.floorDivide(f),
    fmod: u.fmod(f),
    matmul: u.matmul(f),
    maximum: u.maximum(f),
    minimum: u.minimum(f),
    mm: u.mm(f),
    bmm: u.bmm(f),
    mv: u.mv(f),
    dot: u.dot(f),
    mul: u.mul(f),
    outer: u.outer(f),
    pow: u.pow(f),
    remainder: u.remainder(f),
    sub: u.sub(f),
    atan2: u.atan2(f),
  });
  type Given = ReturnType<typeof given>;
  type Names = keyof typeof calls.pairing | keyof typeof calls.pairingFloats;
  expectTypeOf<Given>().toEqualTypeOf<{ [K in Names]: sn.Tensor<'f16'> }>();
  expect(Object.keys(calls.pairing)).toHaveLength(18);
});

test('types say of every sum and mean in which dtype it is', () => {
  const given = (u: sn.Tensor<'u8'>) => ({
    prod: u.prod(),
    sum: u.sum(),
    cumprod: u.cumprod(0),
    cumsum: u.cumsum(0),
    logSoftmax: u.logSoftmax(),
    mean: u.mean(),
    softmax: u.softmax(),
  });
  type Whole = keyof typeof calls.summing | keyof typeof calls.running;
  type Floats = keyof typeof calls.averaging;
  type Given = ReturnType<typeof given>;
  expectTypeOf<Given>().toEqualTypeOf<{
    [K in Whole | Floats]: sn.Tensor<K extends Whole ? 'i32' : 'f32'>;
  }>();
  expect(Object.keys(calls.averaging)).toHaveLength(3);
});

const floated = (x: sn.DType): sn.DType => (isInexact(x) ? x : 'f32');

/** The dtypes that results have, by the list. */
const expected: { readonly [K in List]: (x: sn.DType, y: sn.DType) => readonly sn.DType[] } = {
  keeping: (x) => [x],
  parting: (x) => [x, x],
  floating: (x) => [floated(x)],
  asking: () => ['bool'],
  locating: () => ['i32'],
  finding: (x) => [x, 'i32'],
  pairing: (x, y) => [promote(x, y)],
  pairingFloats: (x, y) => [floated(promote(x, y))],
  summing: (x) => [['bool', 'i8', 'u8', 'i16', 'u16'].includes(x) ? 'i32' : x],
  running: (x) => [['bool', 'i8', 'u8', 'i16', 'u16'].includes(x) ? 'i32' : x],
  spreading: (x) => [partType(floated(x))],
  averaging: (x) => [floated(x)],
};

const lists = Object.keys(calls) as List[];

describe.each(lists)('every method that is %s', (list) => {
  test.each(Object.entries<Call>(calls[list]))('%s', (name, call) => {
    const seen = dtypes.flatMap((dtype) => {
      const others = list.startsWith('pairing') ? dtypes : [dtype];
      return others.flatMap((other) => {
        const [self, ...args] = call(sn.ones([4, 4], { dtype }), sn.ones([4, 4], { dtype: other }));
        const method = (self as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[name]!;
        try {
          const result = method.apply(self, args) as sn.Tensor | readonly sn.Tensor[];
          const got = (Array.isArray(result) ? result : [result as sn.Tensor]).map((x: sn.Tensor) => x.dtype);
          return [{ dtype, other, got, wanted: expected[list](dtype, other) }];
        } catch (error) {
          // Some take no integers, or no complex numbers, and say so.
          if (error instanceof SinterError) return [];
          throw error;
        }
      });
    });
    expect(seen.length).toBeGreaterThan(0);
    for (const { dtype, other, got, wanted } of seen)
      expect({ dtype, other, got }).toEqual({ dtype, other, got: wanted });
  });
});

test('what two dtypes promote to is what the types say', () => {
  expectTypeOf<sn.Promoted<'f32', 'i64'>>().toEqualTypeOf<'f32'>();
  expectTypeOf<sn.Promoted<'bool', 'u8'>>().toEqualTypeOf<'u8'>();
  expectTypeOf<sn.Promoted<'f16', 'bf16'>>().toExtend<sn.FloatDType>();
  for (const x of dtypes)
    for (const y of dtypes) {
      const both = promote(x, y);
      const kinds = [x, y].map((dtype) =>
        dtype === 'bool' ? 0 : isComplex(dtype) ? 3 : isFloat(dtype) ? 2 : 1,
      );
      if (kinds[0]! > kinds[1]! && kinds[0]! < 3) expect(both).toBe(x);
      if (x === y) expect(both).toBe(x);
      if (kinds[0] === 2 && kinds[1] === 2) expect(isFloat(both)).toBe(true);
      if (kinds[0] === 3 || kinds[1] === 3) expect(isComplex(both)).toBe(true);
    }
  expect(partType('c64')).toBe('f32');
});
