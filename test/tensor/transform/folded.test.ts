// Gradients through steps that recording folds: what a step gives is then made of what lies before its operand, and the gradient flows
// there all the same.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const steps: Readonly<Record<string, readonly [step: (x: Tensor) => Tensor, slope: readonly number[]]>> = {
  'the real part of parts': [(x) => sn.real(sn.complex(x, x.mul(2))), [1, 1, 1]],
  'the imaginary part of parts': [(x) => sn.imag(sn.complex(x, x.mul(2))), [2, 2, 2]],
  'the conjugate of a conjugate': [(x) => sn.real(sn.conj(sn.conj(sn.complex(x, x)))), [1, 1, 1]],
  'the modulus of parts': [(x) => sn.abs(sn.complex(x.mul(3), x.mul(4))), [5, 5, 5]],
  'a sum of squares of parts': [(x) => sn.linalg.norm(sn.complex(x, sn.zeros([3]))).square(), [2, 4, 6]],
  'parts of pairs': [(x) => sn.real(sn.viewAsComplex(sn.stack([x, x], -1))), [1, 1, 1]],
  'pairs of parts': [(x) => sn.viewAsReal(sn.complex(x, x)), [2, 2, 2]],
  'two negations': [(x) => x.neg().neg(), [1, 1, 1]],
  'two flips': [(x) => sn.flip(sn.flip(x, 0), 0).mul(x), [2, 4, 6]],
  'two shapes': [(x) => x.reshape([3, 1]).reshape([3]).mul(2), [2, 2, 2]],
  'two casts': [(x) => x.cast('f64').cast('f32'), [1, 1, 1]],
  'a piece of a join': [(x) => sn.stack([x, x.mul(3)]).at(1), [3, 3, 3]],
  'neutral operands': [(x) => x.mul(1).add(0).pow(1).div(1), [1, 1, 1]],
};

test.each(Object.entries(steps))('%s', async (_, [step, slope]) => {
  const loss = (x: Tensor): Tensor => step(x).sum();
  const at = sn.tensor([1, 2, 3]);
  const close = async (found: Tensor): Promise<void> =>
    Array.from(await found.data(), Number).forEach((x, i) => expect(x).toBeCloseTo(slope[i]!, 5));
  await close(sn.grad(loss)(at) as Tensor);
  await close(sn.compile(sn.grad(loss))(at) as Tensor);
  await close(sn.jacfwd(loss)(at) as Tensor);
  const x = sn.tensor([1, 2, 3]).requiresGrad_();
  loss(x).backward();
  await close(x.grad!);
  x.grad = undefined;
  sn.compile(loss)(x).backward();
  await close(x.grad!);
});
