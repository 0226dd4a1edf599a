// Integers of 8 and 16 bits over words of memory are what they are without: every operation, at the edges of their ranges.

import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { overWords } from '../../src/aot/small-integers.ts';
import { cast, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import { binary, cast as castNode, reduce, unary, where } from '../../src/ir/build.ts';
import type { DType } from '../../src/ir/dtype.ts';
import type { Graph, Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret.ts';
import type { BinaryOp, Monoid } from '../../src/ir/ops.ts';
import { hostArray, packBytes, unpackBytes, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import type { LoadOptions, Outputs } from '../../src/player/player.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { Sketch } from '../codegen/cases.ts';
import { randomArray } from '../support/random-values.ts';
import { built, removeFolders, written } from './bundles.ts';

const small = ['i8', 'u8', 'i16', 'u16'] as const;

/** Bytes in whole words. */
function words(array: HostArray): HostArray {
  const bytes = packBytes(array);
  const whole = new Uint8Array(4 * Math.ceil(bytes.length / 4));
  whole.set(bytes);
  return unpackBytes(whole, 'u32', [whole.length / 4]);
}

function expectSame(graph: Graph, inputs: readonly HostArray[]): void {
  const over = overWords(graph, gpuTarget.dtypes);
  verify(over, 'overWords');
  const isSmall = (dtype: DType): boolean => (small as readonly string[]).includes(dtype);
  const found = interpret(
    over,
    inputs.map((input) => (isSmall(input.dtype) ? words(input) : input)),
  );
  interpret(graph, inputs).forEach((expected, i) => {
    const wanted = isSmall(expected.dtype) ? words(expected) : expected;
    expect([...found[i]!.data]).toEqual([...wanted.data]);
  });
}

describe.each(small)('%s', (dtype) => {
  const count = 37;
  const bits = Number(dtype.slice(1));
  const [low, high] = dtype.startsWith('i') ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  const edges = [low, low + 1, -1, 0, 1, 2, 3, 7, high - 1, high].filter((value) => value >= low);
  const values = (shift: number): HostArray =>
    hostArray(
      dtype,
      [count],
      Array.from({ length: count }, (_, i) => edges[(i * (shift + 1) + shift) % edges.length]!),
    );

  const ops: readonly BinaryOp[] = 'add sub mul mulhi div mod min max and or xor shl shr lt le eq ne'.split(
    ' ',
  ) as BinaryOp[];
  test.each(ops)('%s', (op) => {
    const s = new Sketch();
    const graph = s.graph([binary(s.b, op, s.input([count], dtype), s.input([count], dtype))]);
    for (const shift of [0, 1, 3]) expectSame(graph, [values(shift), values(2)]);
  });

  test.each(['neg', 'abs', 'sign', 'not'] as const)('%s', (op) => {
    const s = new Sketch();
    expectSame(s.graph([unary(s.b, op, s.input([count], dtype))]), [values(0)]);
  });

  test.each<DType>(['f32', 'i32', 'u32', 'bool', ...small])('casts to and from %s', (other) => {
    const s = new Sketch();
    const [x, y] = [s.input([count], dtype), s.input([count], other)];
    const from =
      other === 'f32'
        ? hostArray(
            'f32',
            [count],
            Array.from(
              { length: count },
              (_, i) => [NaN, Infinity, -Infinity, -1.5, 300.7, 70000, -70000][i % 7]!,
            ),
          )
        : randomArray(other, [count], 5, 'special');
    expectSame(s.graph([castNode(s.b, x, other), castNode(s.b, y, dtype)]), [values(0), from]);
  });

  test.each<Monoid>(['sum', 'prod', 'min', 'max'])('folds by %s', (monoid) => {
    const s = new Sketch();
    const x = s.input([5, 7], dtype);
    const scans = [false, true].map(
      (exclusive) => s.b.add('scan', [x], { monoid, axis: 1, reverse: false, exclusive }) as Node,
    );
    expectSame(s.graph([reduce(s.b, monoid, x, [1]), ...scans]), [randomArray(dtype, [5, 7], 3, 'special')]);
    const none = new Sketch();
    expectSame(none.graph([reduce(none.b, monoid, none.input([3, 0], dtype), [1])]), [
      hostArray(dtype, [3, 0], []),
    ]);
  });

  test('products, choices, joins and rows of tables', () => {
    const s = new Sketch();
    const [x, y, at] = [s.input([3, 5], dtype), s.input([5, 3], dtype), s.input([2, 3], 'i32')];
    const chosen = where(s.b, binary(s.b, 'lt', x, x), x, unary(s.b, 'neg', x));
    const joined = s.b.add('concat', [x, chosen], { axis: 0 }) as Node;
    const rows = s.b.add('gather', [y, at], { axis: 0 }) as Node;
    const put = s.b.add('scatter', [y, at, rows], { axis: 0, mode: 'add' }) as Node;
    const iota = s.b.add('iota', [], { shape: [300], axis: 0, dtype }) as Node;
    expectSame(s.graph([s.matmul(x, y), joined, rows, put, iota]), [
      randomArray(dtype, [3, 5], 1, 'special'),
      randomArray(dtype, [5, 3], 2, 'special'),
      hostArray('i32', [2, 3], [0, 4, 1, 2, 2, 3]),
    ]);
  });
});

describe('a bundle', () => {
  let gpu: GPUDevice;
  beforeAll(async () => {
    setDevice('wasm');
    gpu = await (await softwareAdapter()).requestDevice();
  });
  afterAll(() => {
    gpu.destroy();
    removeFolders();
    setDevice(undefined);
  });

  test('takes, keeps and gives bytes on every target', async () => {
    const weight = tensor([3, -100, 7, 120, -128, 1], { dtype: 'i8', shape: [2, 3] });
    const image = (pixels: Tensor): Record<string, Tensor> => ({
      scaled: cast(pixels, 'f32').mul(1 / 255),
      turned: pixels.mul(3).add(200),
      summed: cast(pixels, 'f32').reshape([1, 2]).matmul(cast(weight, 'f32')),
    });
    const bundle = await built([
      { name: 'image', fn: image as never, inputs: [zeros([2], { dtype: 'u8' })] },
    ]);
    const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
      load: (options: LoadOptions) => Promise<{ image(inputs: object): Promise<Outputs>; dispose(): void }>;
    };
    for (const options of [{ target: 'wasm' }, { target: 'webgpu', device: gpu }] as const) {
      const model = await load(options);
      expect(await model.image({ pixels: Uint8Array.of(255, 51) })).toEqual({
        scaled: Float32Array.of(1, Math.fround(Math.fround(1 / 255) * 51)),
        turned: Uint8Array.of((255 * 3 + 200) % 256, (51 * 3 + 200) % 256),
        summed: Float32Array.of(255 * 3 + 51 * 120, 255 * -100 + 51 * -128, 255 * 7 + 51),
      });
      expect((await model.image({ pixels: [1, 2] }))['turned']).toEqual(Uint8Array.of(203, 206));
      await expect(model.image({ pixels: [1, 256] })).rejects.toThrow(
        'element 1 is 256, which does not fit u8',
      );
      model.dispose();
    }
  });
});
