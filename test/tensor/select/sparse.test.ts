// Sparse matrices are the dense ones that they stand for, in every format, product and derivative, on every device.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';
import { holds, read } from '../ops/support.ts';

const { sparse, sparse24 } = sn;
const runs = (device: string): number => ({ interpreter: 25, wasm: 6 })[device] ?? 2;
const ints = (...list: readonly number[]): sn.Tensor =>
  sn.tensor([...list], { dtype: 'i32', shape: [list.length] });

const matrices = fc
  .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 6 }))
  .chain(([rows, columns]) =>
    fc.record({
      shape: fc.constant([rows, columns] as const),
      data: fc.array(fc.constantFrom(0, 0, 0, 1, -2, 3), {
        minLength: rows * columns,
        maxLength: rows * columns,
      }),
    }),
  );

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('every conversion keeps the matrix, and its elements in order', async () => {
    await holds(runs(device), matrices, async ({ shape, data }) => {
      const x = sn.tensor(data, { shape: [...shape], dtype: 'f32' });
      const rows = await sparse.fromDense(x);
      expect(rows.values.size).toBe(data.filter((v) => v !== 0).length);
      const columns = await sparse.fromDense(x, { layout: 'csc' });
      expect(await read(sparse.toCsc(rows).row)).toEqual(await read(columns.row));
      expect(await read(sparse.toCsc(rows).ccol)).toEqual(await read(columns.ccol));
      expect(await read(sparse.toCsr(columns).col)).toEqual(await read(rows.col));
      const all = [
        rows,
        columns,
        sparse.toCoo(rows),
        sparse.toCsr(columns),
        sparse.toCsc(sparse.toCoo(columns)),
      ];
      for (const matrix of all) expect(await read(sparse.toDense(matrix))).toEqual(data);
      expect(await read(sparse.toDense(sparse.transpose(columns)))).toEqual(await read(x.T));
    });
  });

  test('a product is that of the dense matrix, and so are its gradients', async () => {
    await holds(runs(device), matrices, async ({ shape: [m, k], data }) => {
      const x = sn.tensor(data, { shape: [m, k], dtype: 'f32' });
      const w = sn
        .arange(k * 2, undefined, undefined, { dtype: 'f32' })
        .reshape([k, 2])
        .requiresGrad_();
      const pattern = await sparse.fromDense(x);
      const values = pattern.values.detach().requiresGrad_();
      const matrix = sparse.csr(pattern.crow, pattern.col, values, [m, k]);
      const y = sparse.spmm(matrix, w);
      expect(await read(y)).toEqual(await read(x.matmul(w)));
      const [gv, gw] = sn.gradients(sn.sum(y.mul(y)), [values, w]);
      const dense = x.detach().requiresGrad_();
      const z = dense.matmul(w);
      const [gx, gd] = sn.gradients(sn.sum(z.mul(z)), [dense, w]);
      const taken = (await read(gx!)).filter((_, i) => data[i] !== 0);
      expect([await read(gv!), await read(gw!)]).toEqual([taken, await read(gd!)]);
      const v = sn.ones([k]);
      expect(await read(sparse.spmv(sparse.toCsc(matrix), v))).toEqual(await read(x.sum(1)));
    });
  });

  test('coalesce adds up what shares a place, and a size leaves room', async () => {
    const matrix = sparse.coo(ints(2, 0, 2, 0), ints(1, 0, 1, 2), sn.tensor([1, 2, 3, 4]), [3, 3]);
    const once = await sparse.coalesce(matrix);
    expect([await read(once.row), await read(once.col), await read(once.values)]).toEqual([
      [0, 0, 2],
      [0, 2, 1],
      [2, 4, 4],
    ]);
    const roomy = sparse.coalesce(matrix, { size: 5 });
    expect(await read(sparse.toDense(roomy))).toEqual(await read(sparse.toDense(matrix)));
    const w = sn.full([3, 1], Infinity);
    expect(await read(sparse.spmm(roomy, w))).toEqual([Infinity, 0, Infinity]);
    const filled = sparse.fromDense(sparse.toDense(matrix), { size: 7 });
    expect(await read(sparse.toDense(sparse.toCsc(filled)))).toEqual(await read(sparse.toDense(matrix)));
  });

  test('compiled functions take matrices and give them', async () => {
    const step = sn.compile((a: sn.sparse.CsrMatrix, factor: sn.Tensor) =>
      sparse.scale(sparse.toCsr(sparse.transpose(a)), factor.sum()),
    );
    const a = sparse.csr(ints(0, 1, 3), ints(1, 0, 1), sn.tensor([1, 2, 3]), [2, 2]);
    const b = step(a, sn.tensor([2, 1]));
    expect(b).toBeInstanceOf(sparse.CsrMatrix);
    expect(await sparse.toDense(b).array()).toEqual([
      [0, 6],
      [3, 9],
    ]);
  });

  test('two of four keep a matrix that has no more, and its product', async () => {
    const groups = fc.array(
      fc.tuple(fc.subarray([0, 1, 2, 3], { maxLength: 2 }), fc.integer({ min: 1, max: 9 })),
      { minLength: 2, maxLength: 6 },
    );
    await holds(runs(device), groups, async (list) => {
      const kept = list.length - (list.length % 2);
      const columns = list
        .slice(0, kept)
        .map(([at, v]) => [0, 1, 2, 3].map((r) => (at.includes(r) ? v + r : 0)));
      const x = sn.tensor(columns.flat(), { shape: [kept / 2, 8], dtype: 'f32' }).T;
      const packed = sparse24.compress(x);
      expect(packed.values.shape).toEqual([4, kept / 2]);
      expect(await read(sparse24.decompress(packed))).toEqual(await read(x));
      const a = sn.arange(16, undefined, undefined, { dtype: 'f32' }).reshape([2, 8]);
      expect(await read(sparse24.matmul(a, packed))).toEqual(await read(a.matmul(x)));
    });
  });

  test('the gradient of packed values is that of the elements they stand for', async () => {
    const x = sn
      .tensor([
        [0, 5],
        [2, 0],
        [0, 0],
        [-3, 1],
      ])
      .requiresGrad_();
    const y = sparse24.matmul(sn.tensor([[1, 2, 3, 4]]), sparse24.compress(x));
    expect(await sn.gradients(sn.sum(y), [x])[0]!.array()).toEqual([
      [0, 1],
      [2, 0],
      [0, 0],
      [4, 4],
    ]);
  });
});

describe('what is no matrix', () => {
  beforeAll(() => sn.setDevice('interpreter'));
  const values = sn.tensor([1, 2]);

  test('is refused when it is made', () => {
    expect(() => sparse.csr(ints(0, 2), ints(0, 1), values, [2, 2])).toThrow(/crow must have 3 elements/);
    expect(() => sparse.csr(ints(0, 1, 2), ints(0), values, [2, 2])).toThrow(/one position a value/);
    expect(() => sparse.coo(ints(0, 1), ints(0, 1), values, [-1, 2] as never)).toThrow(/at least 0/);
    expect(() => sparse24.compress(sn.ones([6, 2]))).toThrow(/in fours/);
  });

  test('is told by its elements where they are watched', async () => {
    const told = async (make: () => sn.sparse.CsrMatrix): Promise<unknown> => sparse.toDense(make()).data();
    await expect(told(() => sparse.csr(ints(0, 2, 1), ints(0, 1), values, [2, 2]))).rejects.toThrow(
      /descend/,
    );
    await expect(told(() => sparse.csr(ints(0, 1, 1), ints(0, 1), values, [2, 2]))).rejects.toThrow(
      /from 0 to 2/,
    );
    await expect(told(() => sparse.csr(ints(0, 1, 2), ints(0, 5), values, [2, 2]))).rejects.toThrow(
      /columns 5/,
    );
  });
});
