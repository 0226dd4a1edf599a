// The stored PyTorch figures are well formed: a wrong fixture would make a right kernel fail.

import { describe, expect, test } from 'vitest';
import { dtypeKind, isDType, promote } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { torchCases, torchFamilies, torchPromotions, type TorchTensor } from './figures.ts';

function check(tensor: TorchTensor): void {
  expect(isDType(tensor.dtype)).toBe(true);
  expect(tensor.data.length).toBe(sizeOf(tensor.shape));
  if (tensor.dtype === 'f32' || tensor.dtype === 'f64') return;
  const kind = dtypeKind(tensor.dtype);
  for (const value of tensor.data) {
    if (kind === 'bool') expect(value === 0 || value === 1).toBe(true);
    else if (kind !== 'float') expect(typeof value === 'bigint' || Number.isInteger(value)).toBe(true);
  }
}

describe('PyTorch fixtures', () => {
  test.each(torchFamilies())('%s: every tensor holds as many values as its shape says', (family) => {
    const cases = torchCases(family);
    expect(cases.length).toBeGreaterThan(5);
    for (const one of cases) {
      for (const tensor of [...one.inputs, ...one.outputs]) check(tensor);
      if (one.upstream !== undefined) expect(one.upstream.shape).toEqual(one.outputs[0]!.shape);
    }
  });

  test('a gradient has its input’s dtype and shape, and is null where the input is no float', () => {
    let gradients = 0;
    for (const one of torchFamilies().flatMap((family) => torchCases(family))) {
      one.grads?.forEach((grad, index) => {
        const input = one.inputs[index]!;
        expect(grad === null).toBe(dtypeKind(input.dtype) !== 'float');
        if (grad === null) return;
        gradients++;
        expect([grad.dtype, grad.shape]).toEqual([input.dtype, input.shape]);
        check(grad);
      });
    }
    expect(gradients).toBeGreaterThan(500);
  });

  test('every stored float is exactly a value of its dtype', () => {
    // Bits below the dtype's precision are zero in the f32 that holds it (normal f16 only: subnormals have fewer bits).
    const spare = { f16: 13, bf16: 16 } as const;
    const seen = new Set<string>();
    for (const one of torchFamilies().flatMap((family) => torchCases(family))) {
      for (const { dtype, data } of [...one.inputs, ...one.outputs]) {
        if (dtype !== 'f16' && dtype !== 'bf16' && dtype !== 'f32') continue;
        seen.add(dtype);
        for (const value of data as Float64Array) {
          expect(Math.fround(value)).toBe(value);
          if (dtype === 'f32' || Number.isNaN(value) || (dtype === 'f16' && Math.abs(value) < 2 ** -14))
            continue;
          const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!;
          expect(bits & ((1 << spare[dtype]) - 1)).toBe(0);
        }
      }
    }
    expect([...seen].sort()).toEqual(['bf16', 'f16', 'f32']);
  });

  test('special values and wide integers survive the text', () => {
    const cube = torchCases('special', 'neg')[0]!;
    expect([...cube.inputs[0]!.data].slice(0, 5)).toEqual([NaN, Infinity, -Infinity, 0, -0]);
    const wide = torchCases('integer', 'neg').find((one) => one.inputs[0]!.dtype === 'i64')!;
    expect(wide.inputs[0]!.data[0]).toBe(-(2n ** 63n));
  });

  test('promote agrees with torch.promote_types on every pair of dtypes torch has', () => {
    const pairs = torchPromotions().filter((fact) => fact.kind === 'types');
    expect(pairs).toHaveLength(100);
    for (const { a, b, result } of pairs) expect([a, b, promote(a, b)]).toEqual([a, b, result]);
  });
});
