// Models whose sizes are left open: ONNX Runtime computes from one file what the function does at each size.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { dim, setDevice, type Dims, type Tensor } from '../../../src/index.ts';
import { Conv2d, Linear, Module, ReLU, Sequential, TransformerBlock } from '../../../src/nn/index.ts';
import { exportOnnx, loadOnnx, UnsupportedOpsError, type ExportedModel } from '../../../src/onnx/index.ts';
import { expectOutputs, graphOf, opsOf } from '../../support/onnx/exported.ts';
import { checkLawAsync } from '../../support/property.ts';
import { loops } from '../../tensor/sizes/loops.ts';
import { floats, integers, programs, type SizedProgram } from '../../tensor/sizes/programs.ts';
import { randomProgram } from '../../tensor/sizes/random.ts';

beforeAll(() => {
  setDevice('interpreter');
  sn.manualSeed(3);
});
afterAll(() => setDevice(undefined));

type Fn = (...args: Tensor[]) => Tensor | readonly Tensor[];

/** The function's own results under the names that the model has for them. */
function outputsOf(fn: Fn, args: readonly Tensor[]): Record<string, Tensor> {
  const result = fn(...args);
  if (result instanceof sn.Tensor) return { output: result };
  return Object.fromEntries(result.map((tensor, i) => [`output${i}`, tensor]));
}

async function expectAt(
  model: ExportedModel,
  fn: Fn,
  args: readonly Tensor[],
  tolerance = 1e-4,
): Promise<void> {
  const inputs = graphOf(model).input.map(({ name }, i) => [name!, args[i]!] as const);
  await expectOutputs(model, Object.fromEntries(inputs), outputsOf(fn, args), tolerance);
}

/** Sizes of inputs or outputs as the file says them. */
const sizesOf = (model: ExportedModel, of: 'input' | 'output'): (number | string)[][] =>
  graphOf(model)[of].map(({ type }) =>
    type!.tensor!.shape!.dim.map(({ value, param }) => param ?? Number(value)),
  );

/** The program's dims, from the smallest size that it takes. */
function dimsOf({ dims, least = 1 }: SizedProgram): { readonly dims: Dims; readonly step: number } {
  let step = 1;
  const from = (tree: unknown): unknown => {
    if (Array.isArray(tree)) return tree.map(from);
    if (typeof tree !== 'object' || tree === null || !('multipleOf' in tree)) return tree;
    const { name, min, max, multipleOf } = tree as sn.Dim;
    if (name !== 'n') return tree;
    step = multipleOf;
    return dim(name, { min: Math.max(min, least), max, multipleOf });
  };
  return { dims: from(dims) as Dims, step };
}

describe('a program with an axis that varies is one file', () => {
  const drawn = 'random numbers';
  test.each([...programs, ...loops].filter(({ name }) => name !== drawn))('$name', async (program) => {
    const { dims, step } = dimsOf(program);
    const { fn, args, least = 1 } = program;
    const size = (wished: number): number => Math.max(1, Math.ceil(Math.max(wished, least) / step)) * step;
    const model = await exportOnnx(fn, args(size(6)), { dims });
    for (const wished of [1, 2, 9, 48]) await expectAt(model, fn as Fn, args(size(wished)), 2e-3);
  });

  test('or an error that names what it draws', async () => {
    const { fn, args, dims } = programs.find(({ name }) => name === drawn)!;
    await expect(exportOnnx(fn, args(6), { dims })).rejects.toThrow(UnsupportedOpsError);
  });

  test('random programs', async () => {
    const n = dim('n', { min: 2, max: 40 });
    const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
    await checkLawAsync(20, seeds, async (seed) => {
      const fn = randomProgram(seed, 10) as unknown as Fn;
      const args = (size: number): Tensor[] => [floats(size, 3), floats(4, size), floats(size)];
      const model = await exportOnnx(fn, args(9), { dims: [[n, 3], [4, n], [n]] });
      for (const size of [2, 9, 33]) await expectAt(model, fn, args(size), 5e-3);
    });
  });
});

describe('what follows from no size', () => {
  test('is as it is in a file of fixed sizes', async () => {
    const net = new Sequential(new Linear(6, 8), new ReLU(), new Linear(8, 3));
    const model = await exportOnnx(net, [floats(5, 6)], { dims: [['batch', 6]] });
    expect(opsOf(model)).toEqual(['Gemm', 'Relu', 'Gemm']);
    expect([sizesOf(model, 'input'), sizesOf(model, 'output')]).toEqual([[['batch', 6]], [['batch', 3]]]);
    for (const batch of [1, 7, 5000]) await expectAt(model, (x) => net.forward(x!), [floats(batch, 6)]);
  });

  test('is stored in few bits', async () => {
    const net = new Linear(64, 32);
    const model = await exportOnnx(net, [floats(2, 64)], { dims: [['rows', 64]], dtype: 'q8_0' });
    expect(opsOf(model)).toContain('DequantizeLinear');
    for (const rows of [1, 3]) await expectAt(model, (x) => net.forward(x!), [floats(rows, 64)], 3e-2);
  });
});

describe('sizes of the file', () => {
  test('are inferred by a reshape of which one varies, and computed elsewhere', async () => {
    const fn = (x: Tensor): Tensor => x.reshape([-1, 2, 3]);
    const one = await exportOnnx(fn, [floats(5, 6)], { dims: [['n', 6]] });
    expect(opsOf(one)).toEqual(['Reshape']);
    expect(sizesOf(one, 'output')).toEqual([['n', 2, 3]]);
    const two = (x: Tensor): Tensor => x.reshape([x.shape[0]!, -1, 2]).transpose(1, 2);
    const dims = [['n', dim('m', { min: 2, multipleOf: 2 })]] as const;
    const model = await exportOnnx(two, [floats(5, 6)], { dims });
    expect(opsOf(model)).toEqual(['Shape', 'Shape', 'Div', 'Concat', 'Reshape', 'Transpose']);
    expect(sizesOf(model, 'output')).toEqual([['n', 2, 'm / 2']]);
    for (const [n, m] of [
      [1, 2],
      [3, 10],
    ] as const)
      await expectAt(model, two as Fn, [floats(n, m)]);
  });

  test('are whole parts of quotients, limits, and numbers that JavaScript makes of them', async () => {
    const conv = new Conv2d(2, 3, 3, { stride: 2, padding: 1 });
    const fn = (x: Tensor, y: Tensor): Tensor[] => {
      const [, length] = y.shape as [number, number];
      return [conv.forward(x), y.slice(1, 0, Math.min(length, 5)), y.mul(1 / Math.sqrt(length))];
    };
    const dims = [
      ['batch', 2, dim('height', { max: 300 }), 8],
      ['rows', dim('length', { max: 300 })],
    ] as const;
    const model = await exportOnnx(fn, [floats(2, 2, 9, 8), floats(3, 7)], { dims });
    for (const [height, length] of [
      [1, 1],
      [2, 4],
      [11, 5],
      [12, 6],
      [33, 300],
    ] as const)
      await expectAt(model, fn as unknown as Fn, [floats(2, 2, height, 8), floats(3, length)]);
  });

  test('may have ranges of few sizes, or of one', async () => {
    const fn: Fn = (x) => x!.softmax(-1).mul(x!.shape[0]!).sum(1);
    for (const [min, max] of [
      [4, 4],
      [2, 3],
      [1, 4],
    ] as const) {
      const model = await exportOnnx(fn, [floats(min, 4)], { dims: [[dim('n', { min, max }), 4]] });
      for (let n = min; n <= max; n++) await expectAt(model, fn, [floats(n, 4)]);
    }
  });

  test('are those of text models: batch and length, with positions and a mask', async () => {
    class Small extends Module {
      readonly words = sn.randn([50, 16]);
      readonly places = sn.randn([64, 16]);
      readonly block = new TransformerBlock(16, 2);
      forward(ids: Tensor, mask: Tensor): Tensor {
        const [, length] = ids.shape as [number, number];
        const x = sn.embedding(ids, this.words).add(this.places.slice(0, 0, length));
        return this.block.forward(x).mul(mask.unsqueeze(-1)).sum(1);
      }
    }
    const net = new Small();
    const dims = [
      ['batch', dim('length', { max: 64 })],
      ['batch', 'length'],
    ] as const;
    const args = (batch: number, length: number): Tensor[] => [
      integers(50, batch, length),
      sn.ones([batch, length]),
    ];
    const model = await exportOnnx(net, args(2, 5), { dims });
    expect(sizesOf(model, 'output')).toEqual([['batch', 16]]);
    for (const [batch, length] of [
      [1, 1],
      [1, 9],
      [4, 1],
      [3, 64],
    ] as const)
      await expectAt(
        model,
        ((ids: Tensor, mask: Tensor) => net.forward(ids, mask)) as Fn,
        args(batch, length),
        1e-3,
      );
    const again = await loadOnnx(model.bytes);
    expect(again.inputs.map(({ shape }) => shape)).toEqual([
      ['batch', 'length'],
      ['batch', 'length'],
    ]);
  });
});

describe('refused is, with what to do,', () => {
  const refusal = async (fn: Fn, args: readonly Tensor[], dims: Dims): Promise<string> => {
    const error: unknown = await exportOnnx(fn, args, { dims }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(sn.SinterError);
    return (error as sn.SinterError).message;
  };
  const x = [floats(5, 7)] as const;
  const xs = [['n', 'm']] as const;

  test('a function that does something else at some size, at the smallest one too', async () => {
    const large: Fn = (x) => (x!.shape[0]! > 100 ? x!.neg() : x!.abs());
    expect(await refusal(large, x, xs)).toContain('exportOnnx: the function does something else at n');
    const one: Fn = (x) => (x!.shape[0] === 1 ? x!.neg() : x!.abs());
    expect(await refusal(one, x, xs)).toMatch(/something else at n 1, .*\n.*dim\('n', \{ min: 2 \}\)/);
    await expectAt(await exportOnnx(one, x, { dims: [[dim('n', { min: 2 }), 'm']] }), one, [floats(3, 2)]);
  });

  test('a tensor of elements that JavaScript computed from a size', async () => {
    const fn: Fn = (x) => x!.add(sn.tensor(Float32Array.from({ length: x!.shape[1]! }, (_, i) => i * i)));
    expect(await refusal(fn, x, xs)).toMatch(/elements follow from n, m: a constant of Add\n.*arange/);
  });

  test('a number that the format fixes in the file', async () => {
    const fn: Fn = (x) => sn.maxPool2d(x!, [x!.shape[2]!, 2]);
    const message = await refusal(fn, [floats(1, 2, 6, 8)], [[1, 2, 'height', 8]]);
    expect(message).toMatch(/kernel_shape of MaxPool that follows from height/);
  });

  test('a tensor without elements at a size', async () => {
    const fn: Fn = (x) => x!.slice(0, 1).sort(0);
    expect(await refusal(fn, x, xs)).toMatch(/without elements at n 1.*\n.*min: 2/);
  });

  test('a size that no input has, and inputs that have others than declared', async () => {
    expect(await refusal((x) => x!, x, [[8, 'm']])).toContain(
      'exportOnnx: a function: axis 0 of x is 5, declared as 8',
    );
    expect(await refusal((x) => x!, x, { y: ['n', 7] })).toContain('exportOnnx: a function: dims names y');
    await expect(exportOnnx((x: Tensor) => x.reshape([4, -1]), x, { dims: xs })).rejects.toThrow(
      /^reshape: /,
    );
    const fn: Fn = (x) => x!.reshape([4, -1]);
    expect(await refusal(fn, [floats(8, 2)], [['n', 2]])).toMatch(
      /cannot be recorded at n \d+.*\n.*multipleOf/,
    );
  });
});
