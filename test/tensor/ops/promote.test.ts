// Result dtypes agree with PyTorch's promotion table. Where it widens to i64 by default, ours stay 32 bits wide, as documented.

import { describe, expect, test } from 'vitest';
import * as sn from '../../../src/operations/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { torchPromotions } from '../../support/torch/figures.ts';

const facts = torchPromotions();
const ones = (dtype: DType): Tensor => sn.ones([2], { dtype });
const binary = { add: sn.add, mul: sn.mul, div: sn.div, lt: sn.lt, pow: sn.pow, maximum: sn.maximum };
const unary = {
  exp: sn.exp,
  sqrt: sn.sqrt,
  sin: sn.sin,
  sigmoid: sn.sigmoid,
  tanh: sn.tanh,
  erf: sn.erf,
  log1p: sn.log1p,
  reciprocal: sn.reciprocal,
};
const folds = {
  sum: (x: Tensor) => sn.sum(x),
  prod: (x: Tensor) => sn.prod(x),
  argmax: (x: Tensor) => sn.argmax(x),
  all: (x: Tensor) => sn.all(x),
  cumsum: (x: Tensor) => sn.cumsum(x, 0),
};

describe('result dtypes agree with PyTorch', () => {
  test('of two tensors', () => {
    for (const fact of facts) {
      if (fact.kind !== 'binary') continue;
      const f = binary[fact.op as keyof typeof binary];
      // A power of bool is refused here, as PyTorch refuses it for two of them.
      if (fact.op === 'pow' && fact.result === 'bool') continue;
      expect(`${fact.op} ${fact.a} ${fact.b} ${f(ones(fact.a), ones(fact.b)).dtype}`).toBe(
        `${fact.op} ${fact.a} ${fact.b} ${fact.result}`,
      );
    }
  });

  test('of a tensor and a number', () => {
    for (const fact of facts) {
      if (fact.kind !== 'number') continue;
      const f = binary[fact.op as keyof typeof binary];
      // bool with a whole number counts in i64 there, in i32 here.
      const expected = fact.a === 'bool' && fact.result === 'i64' ? 'i32' : fact.result;
      expect(`${fact.op} ${fact.a} ${fact.value} ${f(ones(fact.a), fact.value).dtype}`).toBe(
        `${fact.op} ${fact.a} ${fact.value} ${expected}`,
      );
    }
  });

  test('of functions of one tensor', () => {
    for (const fact of facts) {
      if (fact.kind !== 'unary') continue;
      const f = unary[fact.op as keyof typeof unary];
      expect(`${fact.op} ${fact.a} ${f(ones(fact.a)).dtype}`).toBe(`${fact.op} ${fact.a} ${fact.result}`);
    }
  });

  test('of reductions, whose integers keep at least 32 bits here and are i64 there', () => {
    const widths: Readonly<Partial<Record<DType, DType>>> = {
      i64: 'i64',
      bool: 'i32',
      u8: 'i32',
      i8: 'i32',
      i16: 'i32',
    };
    for (const fact of facts) {
      if (fact.kind !== 'reduce') continue;
      const f = folds[fact.op as keyof typeof folds];
      let expected: DType = fact.result;
      // PyTorch keeps u8 in `all` for old code's sake.
      if (fact.op === 'all') expected = 'bool';
      else if (fact.op === 'argmax') expected = 'i32';
      else if (fact.result === 'i64') expected = widths[fact.a] ?? fact.a;
      expect(`${fact.op} ${fact.a} ${f(ones(fact.a)).dtype}`).toBe(`${fact.op} ${fact.a} ${expected}`);
    }
  });
});

describe('the stronger operand decides', () => {
  test('a rank-0 tensor gives way to one with axes, unless its kind is higher', () => {
    const rankZero = (dtype: DType): Tensor => sn.ones([], { dtype });
    expect(sn.add(ones('f16'), rankZero('f32')).dtype).toBe('f16');
    expect(sn.add(ones('i32'), rankZero('i64')).dtype).toBe('i32');
    expect(sn.add(ones('i32'), rankZero('f16')).dtype).toBe('f16');
    expect(sn.add(rankZero('f16'), rankZero('f32')).dtype).toBe('f32');
  });

  test('a whole number keeps integers, a fraction makes them f32', () => {
    expect(sn.mul(ones('i32'), 2).dtype).toBe('i32');
    expect(sn.mul(ones('i32'), 2.5).dtype).toBe('f32');
    expect(sn.mul(ones('f16'), 2.5).dtype).toBe('f16');
    expect(sn.add(2, 3).dtype).toBe('f32');
  });

  test('a number that the integer dtype cannot hold is refused', () => {
    expect(() => sn.add(ones('u8'), 300)).toThrow(/add: 300 is not a value of u8/);
    expect(() => sn.add(ones('u32'), -1)).toThrow(/add: -1 is not a value of u32/);
  });
});
