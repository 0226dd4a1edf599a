// What tests of layers and optimizers share: tensors of fixtures, and comparing with them.

import { expect } from 'vitest';
import { tensor } from '../../src/tensor/ops/creation/creation.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import type { TorchTensor } from '../support/torch/figures.ts';

export function fromTorch({ dtype, shape, data }: TorchTensor): Tensor {
  return tensor(data, { dtype, shape });
}

export async function numbers(x: Tensor): Promise<number[]> {
  return Array.from(await x.data(), Number);
}

/** Every element within `tolerance` of the expected one, relative to the largest of them (at least 1). */
export function close(found: readonly number[], expected: ArrayLike<number>, tolerance: number): void {
  expect(found.length).toBe(expected.length);
  const scale = Math.max(1, ...Array.from(expected, Math.abs));
  found.forEach((value, i) => {
    expect(Math.abs(value - expected[i]!), `element ${i}`).toBeLessThanOrEqual(tolerance * scale);
  });
}

/** As `close`, for a tensor of a fixture, by its dtype. */
export async function matches(found: Tensor, expected: TorchTensor): Promise<void> {
  expect(found.dtype).toBe(expected.dtype);
  expect(found.shape).toEqual(expected.shape);
  close(
    await numbers(found),
    Array.from(expected.data as Float64Array),
    expected.dtype === 'f64' ? 1e-12 : 2e-6,
  );
}
