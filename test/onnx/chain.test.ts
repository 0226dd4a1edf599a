// Models that read elements on their way run as compiled stretches between the reads: what they give is what ONNX Runtime gives,
// whatever the data, and data that count alike need no program that was not there.

import ort from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, stats, tensor, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { attribute, float, int64, modelOf, node, port, type Draft } from '../support/onnx/file.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const open = (name: string, elemType: number): Draft => ({ name, type: { tensor: { elemType } } });

async function numbers(x: Tensor): Promise<number[]> {
  return Array.from((await x.data()) as ArrayLike<number | bigint>, Number);
}

/** Runs a model on inputs one after the other, there and here; gives how many programs each run made. */
async function compare(
  file: Uint8Array,
  shape: readonly number[],
  all: readonly (readonly number[])[],
): Promise<number[]> {
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4, intraOpNumThreads: 1 });
  const model = await loadOnnx(file);
  const made: number[] = [];
  for (const values of all) {
    const x = Float32Array.from(values);
    const told = await session.run({ x: new ort.Tensor('float32', x, shape) });
    const before = stats().programs;
    const found = await model.run({ x: tensor(x, { shape }) });
    for (const [name, out] of Object.entries(found)) {
      const own = await numbers(out);
      expect(out.shape).toEqual(told[name]!.dims);
      Array.from(told[name]!.data as Float32Array, Number).forEach((value, i) =>
        expect(own[i]).toBeCloseTo(value, 4),
      );
    }
    made.push(stats().programs - before);
  }
  await session.release();
  return made;
}

describe('stretches between reads', () => {
  test('count on the host, and go on with what was counted as data', async () => {
    const file = modelOf({
      inputs: [port('x', 1, [2, 4])],
      outputs: [open('sum', 1), open('where', 7), open('scaled', 1)],
      initializers: [
        float(
          'w',
          [4, 4],
          Array.from({ length: 16 }, (_, i) => Math.sin(i)),
        ),
        float('half', [], [0.5]),
      ],
      nodes: [
        node('MatMul', ['x', 'w'], ['h']),
        node('Relu', ['x'], ['r']),
        node('NonZero', ['r'], ['at']),
        node('Transpose', ['at'], ['where']),
        node('GatherND', ['h', 'where'], ['picked']),
        node('Mul', ['picked', 'half'], ['scaled']),
        node('ReduceSum', ['scaled'], ['sum']),
      ],
    });
    const inputs = [
      [1, -1, 2, -3, 0, 4, -5, -6],
      [-1, 1, -2, 3, 0, -4, -5, 6],
      [1, 1, 1, 1, 1, -1, -1, -1],
      [-1, -1, -1, -1, -1, -1, -1, 3],
      [2, -1, 2, -3, 0, 4, -5, -6],
    ];
    const made = await compare(file, [2, 4], inputs);
    expect(made[0]).toBeGreaterThan(0);
    // As many as before, at other places.
    expect([made[1], made[4]]).toEqual([0, 0]);
  });

  test('choose boxes, and go on behind them', async () => {
    const count = 12;
    const file = modelOf(
      {
        inputs: [port('x', 1, [1, count, 4])],
        outputs: [open('kept', 1), open('total', 1)],
        initializers: [
          int64('most', [], [10n]),
          float('overlap', [], [0.4]),
          float('least', [], [0.1]),
          int64('two', [1], [2n]),
          int64('flat', [2], [-1n, 4n]),
          float(
            'scores',
            [1, 1, count],
            Array.from({ length: count }, (_, i) => ((i * 7) % count) / count),
          ),
        ],
        nodes: [
          node('Sigmoid', ['x'], ['boxes']),
          node('NonMaxSuppression', ['boxes', 'scores', 'most', 'overlap', 'least'], ['chosen']),
          node('Gather', ['chosen', 'two'], ['columns'], [attribute('axis', 1)]),
          node('Squeeze', ['columns', 'one'], ['places']),
          node('Reshape', ['boxes', 'flat'], ['rows']),
          node('Gather', ['rows', 'places'], ['kept'], [attribute('axis', 0)]),
          node('ReduceMean', ['kept'], ['total']),
          node('Constant', [], ['one'], [{ name: 'value_ints', type: 7, ints: [1n] }]),
        ],
      },
      17,
    );
    const wave = (shift: number): number[] =>
      Array.from({ length: count * 4 }, (_, i) => 2 * Math.sin(i * i + shift));
    const made = await compare(file, [1, count, 4], [wave(0), wave(0), wave(1)]);
    expect(made[1]).toBe(0);
  });

  test('take shapes that data decide', async () => {
    const file = modelOf(
      {
        inputs: [port('x', 1, [6])],
        outputs: [open('y', 1), open('distinct', 1)],
        initializers: [int64('rest', [1], [-1n])],
        nodes: [
          node('ReduceMax', ['x'], ['most']),
          node('Cast', ['most'], ['whole'], [attribute('to', 7)]),
          node('Concat', ['whole', 'rest'], ['shape'], [attribute('axis', 0)]),
          node('Reshape', ['x', 'shape'], ['grid']),
          node('Exp', ['grid'], ['y']),
          node('Unique', ['x'], ['distinct']),
        ],
      },
      17,
    );
    const made = await compare(
      file,
      [6],
      [
        [1, 2, 0, 1, 2, 0],
        [3, 1, 1, 1, 2, 0],
        [2, 1, 0, 1, 2, 0],
      ],
    );
    expect(made[2]).toBe(0);
  });
});
