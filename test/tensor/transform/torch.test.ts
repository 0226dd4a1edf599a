// Transforms against `torch.autograd.functional` (scripts/transforms/fixtures.py): tangents, Jacobians both ways, Hessians, and
// their products with a vector.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

type T = sn.Tensor;
interface Figures {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
interface Case {
  readonly name: string;
  readonly inputs: readonly Figures[];
  readonly tangents: readonly Figures[];
  readonly value: Figures;
  readonly jvp: Figures;
  readonly jacobian: readonly Figures[];
  readonly hessian: readonly (readonly Figures[])[];
  readonly vhp: readonly Figures[];
}

const place = new URL('../../fixtures/functional.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(place, 'utf8')) as { readonly cases: readonly Case[] };

const functions: Readonly<Record<string, (...args: T[]) => T>> = {
  softmax: (x) => sn.softmax(x!, -1),
  product: (x, w) => sn.matmul(x!, w!).tanh(),
  norm: (x) => sn.layerNorm(x!, 4),
  solve: (a, b) => sn.linalg.solve(a!.add(sn.eye(3, 3, { dtype: 'f64' }).mul(3)), b!),
  running: (x) => sn.cumprod(x!, 0).add(sn.cumsum(x!, 0).exp()),
  convolution: (x, w) => sn.conv1d(x!, w!, undefined, { padding: 1 }),
};

const made = ({ shape, data }: Figures): T => sn.tensor([...data], { dtype: 'f64' }).reshape([...shape]);

async function expectFigures(found: T, { shape, data }: Figures): Promise<void> {
  expect(found.shape).toEqual(shape);
  const values = (await found.data()) as Float64Array;
  values.forEach((x, i) =>
    expect(Math.abs(x - data[i]!)).toBeLessThan(1e-5 * Math.max(1, Math.abs(data[i]!))),
  );
}

describe.each(cases.map((one) => [one.name, one] as const))('%s', (name, one) => {
  const fn = functions[name]!;
  const total = (...args: T[]): T =>
    fn(...args)
      .pow(2)
      .sum();
  const inputs = (): T[] => one.inputs.map(made);
  const tangents = (): T[] => one.tangents.map(made);
  const argnums = [...one.inputs.keys()];

  test('jvp and linearize', async () => {
    const { value, tangent } = sn.jvp(fn, inputs(), tangents());
    await expectFigures(value, one.value);
    await expectFigures(tangent, one.jvp);
    await expectFigures(sn.linearize(fn, ...inputs()).jvp(...tangents()), one.jvp);
  });

  test('jacfwd and jacrev', async () => {
    for (const jacobian of [sn.jacfwd, sn.jacrev]) {
      const found = jacobian(fn, { argnums })(...inputs()) as unknown as T[];
      for (const [i, each] of found.entries()) await expectFigures(each, one.jacobian[i]!);
    }
  });

  test('hessian and hvp', async () => {
    const rows = sn.hessian(total, { argnums })(...inputs()) as unknown as T[][];
    for (const [i, row] of rows.entries())
      for (const [j, each] of row.entries()) await expectFigures(each, one.hessian[i]![j]!);
    const { hvp } = sn.hvp(total, inputs(), tangents()) as unknown as { hvp: T[] };
    for (const [i, each] of hvp.entries()) await expectFigures(each, one.vhp[i]!);
  });
});
