// L·D·Lᵀ and L·D·Lᴴ of indefinite matrices: by LAPACK's measures on every device, and against what LAPACK gives (figures of PyTorch).

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../../src/index.ts';
import { everyDevice } from '../../../support/devices.ts';

type Part = 'f32' | 'f64';

/** Numbers of a generator that tests can repeat, in [−1, 1). */
function numbers(count: number, seed: number): number[] {
  let state = seed >>> 0 || 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

function matrices(shape: readonly number[], part: Part, seed: number): sn.Tensor {
  const data = numbers(shape.reduce((n, dim) => n * dim, 1), seed); // prettier-ignore
  return sn
    .tensor(part === 'f32' ? Float32Array.from(data) : Float64Array.from(data), { dtype: part })
    .reshape([...shape]);
}

const turn = (a: sn.Tensor): sn.Tensor => a.transpose(-1, -2);

/** Matrices by what they are; those with small diagonals need pivots of two rows. */
const kinds: Readonly<Record<string, (n: number, part: Part) => { a: sn.Tensor; hermitian: boolean }>> = {
  symmetric: (n, part) => {
    const x = matrices([2, n, n], part, n);
    return { a: x.add(turn(x)), hermitian: false };
  },
  'symmetric with zeros on the diagonal': (n, part) => {
    const x = matrices([2, n, n], part, n + 1);
    const whole = x.add(turn(x));
    return { a: whole.sub(whole.mul(sn.eye(n, n, { dtype: part }))), hermitian: false };
  },
  'complex and symmetric': (n, part) => {
    const x = sn.complex(matrices([2, n, n], part, n + 2), matrices([2, n, n], part, n + 3));
    return { a: x.add(turn(x)), hermitian: false };
  },
  Hermitian: (n, part) => {
    const x = sn.complex(matrices([2, n, n], part, n + 4), matrices([2, n, n], part, n + 5));
    const whole = x.add(sn.adjoint(x));
    return { a: whole.sub(whole.mul(sn.eye(n, n, { dtype: part }).mul(0.9))), hermitian: true };
  },
};

async function greatest(x: sn.Tensor): Promise<number> {
  return Number(await x.abs().amax().item());
}

afterAll(() => sn.setDevice(undefined));

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  const parts: readonly Part[] = device === 'wasm' ? ['f32', 'f64'] : ['f32'];
  const sizes = device === 'wasm' ? [1, 2, 3, 7, 30] : [10];

  describe.each(parts)('%s', (part) => {
    const epsilon = part === 'f32' ? 2 ** -23 : 2 ** -52;
    for (const [name, make] of Object.entries(kinds)) {
      // One zero has no inverse.
      const own = name.includes('zeros') ? sizes.filter((n) => n > 1 && n % 2 === 0) : sizes;
      test.each(own)(`A·X is B, ${name}, n = %i`, async (n) => {
        const { a, hermitian } = make(n, part);
        const whole = matrices([n, 3], part, 5).cast(a.dtype);
        const [ld, pivots] = sn.linalg.ldlFactor(a, { hermitian });
        expect(pivots.dtype).toBe('i32');
        const x = sn.linalg.ldlSolve(ld, pivots, whole, { hermitian });
        const off = await greatest(a.matmul(x).sub(whole));
        expect(off / (n * n * (await greatest(a)) * (await greatest(x)) * epsilon)).toBeLessThan(30);
        expect(await greatest(ld.sub(ld.tril()))).toBe(0);
      });
    }
  });

  test('factors and pivots are those of LAPACK', async () => {
    const a = sn.tensor([
      [0, 1, 2, 3],
      [1, 0, 4, -1],
      [2, 4, 1, 5],
      [3, -1, 5, 0],
    ]);
    const [ld, pivots] = sn.linalg.ldlFactor(a);
    expect(await pivots.array()).toEqual([-4, -4, 3, 4]);
    const found = (await ld.array()) as number[][];
    const factors = [
      [0, 0, 0, 0],
      [3, 0, 0, 0],
      [1.6666667461395264, 0.6666666865348816, -5.6666669845581055, 0],
      [-0.3333333432674408, 0.3333333432674408, -0.5294117331504822, 2.254901885986328],
    ];
    factors.forEach((row, i) => row.forEach((value, j) => expect(found[i]![j]).toBeCloseTo(value, 5)));
  });

  test('a D without inverse is told, and fails the next read', async () => {
    const a = sn.tensor([
      [1, 1],
      [1, 1],
    ]);
    expect(await sn.linalg.ldlFactorEx(a)[2].item()).toBe(2);
    await expect(sn.linalg.ldlFactor(a)[0].data()).rejects.toThrow(
      /ldlFactor: the matrix is singular: element 2 of D is 0/,
    );
  });
});

test('ldlSolve has derivatives by its right-hand sides', async () => {
  sn.setDevice('interpreter');
  const { a, hermitian } = kinds['Hermitian']!(5, 'f64');
  const [ld, pivots] = sn.linalg.ldlFactor(a, { hermitian });
  const b = sn.complex(matrices([2, 5, 2], 'f64', 8), matrices([2, 5, 2], 'f64', 9));
  const g = sn.grad((y: sn.Tensor) => sn.real(sn.linalg.ldlSolve(ld, pivots, y, { hermitian })).sum())(b);
  // The adjoint of A⁻¹ is itself.
  const wanted = sn.linalg.solve(a, sn.ones([2, 5, 2], { dtype: 'f64' }).cast('c128'));
  expect(await greatest(g.sub(wanted))).toBeLessThan(1e-11);
});
