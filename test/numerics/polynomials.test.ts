// Orthogonal polynomials beside their explicit forms, with orders as numbers and as tensors; and a special function in a file of
// another runtime.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explain } from '../../src/explain/explain.ts';
import * as sn from '../../src/index.ts';
import { exportOnnx } from '../../src/onnx/index.ts';
import { expectOutputs } from '../support/onnx/exported.ts';

const { special } = sn;
const points = [-1, -0.6, 0, 0.3, 1, 1.7];
const values = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

/** The polynomial of each order, written out. */
const forms: Readonly<Record<string, readonly ((x: number) => number)[]>> = {
  chebyshevPolynomialT: [() => 1, (x) => x, (x) => 2 * x ** 2 - 1, (x) => 4 * x ** 3 - 3 * x],
  chebyshevPolynomialU: [() => 1, (x) => 2 * x, (x) => 4 * x ** 2 - 1, (x) => 8 * x ** 3 - 4 * x],
  chebyshevPolynomialV: [() => 1, (x) => 2 * x - 1, (x) => 4 * x ** 2 - 2 * x - 1],
  chebyshevPolynomialW: [() => 1, (x) => 2 * x + 1, (x) => 4 * x ** 2 + 2 * x - 1],
  hermitePolynomialH: [() => 1, (x) => 2 * x, (x) => 4 * x ** 2 - 2, (x) => 8 * x ** 3 - 12 * x],
  hermitePolynomialHe: [() => 1, (x) => x, (x) => x ** 2 - 1, (x) => x ** 3 - 3 * x],
  laguerrePolynomialL: [() => 1, (x) => 1 - x, (x) => x ** 2 / 2 - 2 * x + 1],
  legendrePolynomialP: [() => 1, (x) => x, (x) => (3 * x ** 2 - 1) / 2, (x) => (5 * x ** 3 - 3 * x) / 2],
};
for (const kind of 'TUVW') {
  const plain = forms[`chebyshevPolynomial${kind}`]!;
  Object.assign(forms, {
    [`shiftedChebyshevPolynomial${kind}`]: plain.map((f) => (x: number) => f(2 * x - 1)),
  });
}

describe.each(['interpreter', 'wasm', 'webgpu:software'])('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  test.each(Object.entries(forms))('%s is what it is written out', async (name, orders) => {
    const polynomial = (special as unknown as Readonly<Record<string, sn.Polynomial>>)[name]!;
    const x = sn.tensor(points);
    for (const [n, form] of orders.entries()) {
      const found = await values(polynomial(x, n));
      points.forEach((at, i) => expect(found[i]).toBeCloseTo(form(at), 4));
    }
    // One order for each row: the same, and 0 below 0, fractions cut off, NaN above the greatest.
    const each = sn.tensor([...orders.keys(), -1, 1.9, 9]).unsqueeze(1);
    const rows = await polynomial(x, each, { maxOrder: 4 }).array();
    const wanted = [...orders, () => 0, orders[1]!, () => NaN];
    (rows as number[][]).forEach((row, n) => {
      points.forEach((at, i) => {
        if (n === wanted.length - 1) expect(row[i]).toBeNaN();
        else expect(row[i]).toBeCloseTo(wanted[n]!(at), 4);
      });
    });
  });
});

describe('special functions', () => {
  beforeAll(() => sn.setDevice('interpreter'));
  afterAll(() => sn.setDevice(undefined));

  test('are one kernel with what stands around them', () => {
    const around = (f: (x: sn.Tensor) => sn.Tensor) => (x: sn.Tensor) => f(x.mul(2)).add(1);
    const once = [
      sn.erfc,
      sn.erfinv,
      sn.i0,
      sn.lgamma,
      special.erfcx,
      special.ndtr,
      special.ndtri,
      special.besselJ1,
    ];
    for (const f of once) {
      const { kernels } = explain(around(f), sn.ones([64]));
      expect(kernels.length, f.name).toBe(1);
    }
  });

  test('are written for other runtimes as what they are made of', async () => {
    const f = (x: sn.Tensor): sn.Tensor => sn.lgamma(x).add(special.ndtr(x)).add(special.i0e(x));
    const x = sn.tensor([-3.3, -0.4, 0.2, 1.5, 4, 30]);
    const model = await exportOnnx(f, [x]);
    await expectOutputs(model, { x }, { output: f(x) }, 1e-4);
  });
});
