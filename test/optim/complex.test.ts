// What stands around an optimizer takes complex parameters as the optimizers themselves do.

import { describe, expect, test } from 'vitest';
import * as optim from '../../src/optim/index.ts';
import * as sn from '../../src/index.ts';
import { close, numbers } from './support.ts';

// 3 + 4i, −1 + 0i.
const values = (): sn.Tensor => sn.complex(sn.tensor([3, -1]), sn.tensor([4, 0]));
const leaf = (): sn.Tensor => values().detach().requiresGrad_();
// The gradient of the sum of squares is twice the value.
const squares = (z: sn.Tensor): sn.Tensor => sn.real(z.mul(sn.conj(z))).sum();

describe('complex gradients', () => {
  test('count with their moduli where gradients are clipped by norm', async () => {
    const other = sn.tensor([2, Math.sqrt(6)]);
    const [[z, x], norm] = optim.clipByNorm([values(), other], 3);
    close([Number(await norm.item())], [6], 1e-6);
    close(await numbers(z!), [1.5, 2, -0.5, 0], 1e-6);
    close(await numbers(x!), [1, Math.sqrt(1.5)], 1e-6);
    const [, largest] = optim.clipByNorm([values()], 1, { p: Infinity });
    expect(await largest.item()).toBe(5);
  });

  test('cannot be clipped by value', () => {
    expect(() => optim.clipByValue([values()], 1)).toThrow(/clipByValue: complex gradients have no order/);
    const param = leaf();
    squares(param).backward();
    expect(() => optim.clipGradValue([param], 1)).toThrow(/clipGradValue: complex gradients have no order/);
  });

  test('lose the scale of the loss, and count among what overflows', async () => {
    const param = leaf();
    const optimizer = new optim.SGD([param], { lr: 0.25 });
    const scaler = new optim.GradScaler({ initScale: 1024 });
    scaler.scale(squares(param)).backward();
    expect(await scaler.step(optimizer)).toBe(true);
    close(await numbers(param), [1.5, 2, -0.5, 0], 1e-6);
    param.grad = sn.complex(sn.tensor([1, 1]), sn.tensor([Infinity, 1]));
    scaler.update();
    expect(await scaler.step(optimizer)).toBe(false);
  });
});

test('averages are of complex parameters too', async () => {
  for (const average of [optim.ema({ decay: 0.5 }), optim.swa()]) {
    const state = average.update(average.init([values()]), [values().mul(3)]);
    close(await numbers(state.average[0]!), [6, 8, -2, 0], 1e-6);
  }
});

test.each([
  ['muon', optim.muon],
  ['adafactor', optim.adafactor],
] as const)('%s, whose matrices would be of the parts, refuses them', (name, make) => {
  expect(() => make().init([leaf()])).toThrow(`${name}: does not take complex parameters, and one is c64`);
});

test('the equal average of doubles is one of doubles', async () => {
  const average = optim.swa();
  const params = (value: number): sn.Tensor[] => [sn.tensor([value], { dtype: 'f64' })];
  let state = average.init(params(1));
  for (const value of [2, 4]) state = average.update(state, params(value));
  expect(Math.abs(Number(await state.average[0]!.item()) - 7 / 3)).toBeLessThan(1e-15);
});
