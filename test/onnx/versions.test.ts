// What operators were before, and what only some opsets have: older versions that no other engine runs any more, newer ones that
// none runs yet, each against what its definition gives.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import type { HostArray } from '../../src/ir/value.ts';
import type { Draft } from '../support/onnx/file.ts';
import { modelOf, runOurs, runPeer, show } from './peer/compare.ts';
import { attr, floats, ints } from './peer/draw.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

/** The results of one node. Fails where it is refused. */
async function call(
  op: string,
  opset: number,
  inputs: readonly (HostArray | undefined)[],
  attributes: readonly Draft[] = [],
  outputs = 1,
): Promise<readonly HostArray[]> {
  const { file, given } = modelOf({ op, opset, inputs, attributes, outputs });
  const outcome = await runOurs(file, given);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.results;
}

function close(actual: HostArray | undefined, expected: readonly number[]): void {
  const data = Array.from(actual!.data as ArrayLike<number | bigint>, Number);
  expect(data.length).toBe(expected.length);
  expected.forEach((value, i) => expect(data[i]).toBeCloseTo(value, 4));
}

const wave = (count: number, shape: readonly number[]): HostArray =>
  floats(
    Array.from({ length: count }, (_, i) => Math.sin(2 * i + 1)),
    shape,
  );

describe('the first versions', () => {
  test('cast to types by name', async () => {
    const [found] = await call('Cast', 1, [floats([1.5, -2.5])], [attr.text('to', 'INT32')]);
    expect(show(found!)).toBe('i32[2]');
    close(found, [1, -2]);
  });

  test('have the power of a norm as a float', async () => {
    const options = [attr.float('p', 1), attr.ints('kernel_shape', [2])];
    const [found] = await call('LpPool', 1, [floats([1, -2, 3], [1, 1, 3])], options);
    close(found, [3, 5]);
  });

  test('upsample by two numbers', async () => {
    const scales = [attr.float('height_scale', 1), attr.float('width_scale', 2)];
    const [found] = await call('Upsample', 1, [floats([1, 2], [1, 1, 1, 2])], scales);
    close(found, [1, 1, 2, 2]);
  });

  test('give the mask of what is dropped in the type of the input', async () => {
    const [, mask] = await call('Dropout', 7, [floats([1, 2])], [], 2);
    expect(show(mask!)).toBe('f32[2]');
  });

  test('normalise each element of a sample by its own figures', async () => {
    const parts = [
      floats([1, 2, 3, 4], [1, 2, 2]),
      ...[2, 1, 1, 4].map((v) => floats(new Array<number>(4).fill(v), [2, 2])),
    ];
    const options = [attr.int('spatial', 0), attr.int('is_test', 1), attr.float('epsilon', 0)];
    const [found] = await call('BatchNormalization', 6, parts, options);
    close(found, [1, 2, 3, 4]);
  });

  test('normalise channels where that is denied, and there is one figure for each', async () => {
    const figures = [2, 1, 1, 4].map((v) => floats([v]));
    const options = [attr.int('spatial', 0), attr.float('epsilon', 0)];
    const [found] = await call('BatchNormalization', 8, [floats([1, 2], [1, 1, 2]), ...figures], options);
    close(found, [1, 2]);
  });

  test('tell training from its results', async () => {
    const x = floats([1, 3, 5, 7], [4, 1]);
    const [one, zero] = [floats([1]), floats([0])];
    const [y, mean, variance] = await call(
      'BatchNormalization',
      9,
      [x, one, zero, zero, one],
      [attr.float('momentum', 0.5)],
      5,
    );
    close(mean, [2]);
    close(variance, [3]);
    close(
      y,
      [-3, -1, 1, 3].map((v) => v / Math.sqrt(5)),
    );
  });
});

describe('steps backwards', () => {
  const x = floats([1, 2, 3]);
  const part = (opset: number, start: number, end: number): Promise<readonly HostArray[]> =>
    call('Slice', opset, [x, ints([start]), ints([end]), ints([0]), ints([-1])]);

  test('begin at the first element where the start lies before it', async () => {
    close((await part(13, -1000, -1000))[0], [1]);
  });

  test('go to the end at the largest number in opset 10 only', async () => {
    close((await part(10, 1, 2 ** 31 - 1))[0], [2, 1]);
    close((await part(11, 1, 2 ** 31 - 1))[0], []);
  });
});

test('smaller images take the next element in opset 10', async () => {
  const [found] = await call(
    'Resize',
    10,
    [floats([1, 2, 3, 4]), floats([0.6])],
    [attr.text('mode', 'nearest')],
  );
  close(found, [1, 3]);
});

test('activations that take no number leave it to the next', async () => {
  const [x, w, r] = [wave(4, [2, 1, 2]), wave(8, [2, 2, 2]), wave(8, [2, 2, 2])];
  const names = attr.texts('activations', ['Tanh', 'LeakyRelu']);
  const both = [
    attr.int('hidden_size', 2),
    attr.text('direction', 'bidirectional'),
    names,
    attr.floats('activation_alpha', [0.5]),
  ];
  const { file, given } = modelOf({ op: 'RNN', opset: 14, inputs: [x, w, r], attributes: both });
  const [ours, peer] = [await runOurs(file, given), await runPeer(file, given)];
  if (ours.kind === 'refused' || peer.kind === 'refused') throw new Error('refused');
  close(ours.results[0], Array.from(peer.results[0]!.data as Float32Array));
});

test('places of maxima are never those of padding, be all elements the least', async () => {
  const x: HostArray = { dtype: 'u8', shape: [1, 1, 2], data: new Uint8Array(2) };
  const options = [attr.ints('kernel_shape', [2]), attr.ints('pads', [1, 0])];
  const [, places] = await call('MaxPool', 12, [x], options, 2);
  close(places, [0, 0]);
});

describe('four spatial axes', () => {
  const sizes = [2, 3, 2, 3];
  const x = wave(36, [1, 1, ...sizes]);
  const at = (place: readonly number[]): number =>
    place.some((p, i) => p < 0 || p >= sizes[i]!)
      ? 0
      : Number(x.data[place.reduce((flat, p, i) => flat * sizes[i]! + p, 0)]);
  const corners = Array.from({ length: 16 }, (_, i) => [i >> 3, (i >> 2) & 1, (i >> 1) & 1, i & 1]);
  const outs = [2, 2, 1, 2];
  const windows = Array.from({ length: 8 }, (_, flat) => {
    const place = outs.map(
      (size, i) => Math.floor(flat / outs.slice(i + 1).reduce((p, n) => p * n, 1)) % size,
    );
    return corners.map((corner) => at(corner.map((k, i) => place[i]! + k - (i === 0 ? 1 : 0))));
  });
  const kernel = attr.ints('kernel_shape', [2, 2, 2, 2]);
  const pads = attr.ints('pads', [1, 0, 0, 0, 0, 0, 0, 0]);

  test('convolve', async () => {
    const w = wave(32, [2, 1, 2, 2, 2, 2]);
    const [found] = await call('Conv', 22, [x, w, floats([0.5, -0.5])], [pads]);
    const sums = [0, 1].flatMap((o) =>
      windows.map((window) =>
        window.reduce((sum, v, k) => sum + v * Number(w.data[16 * o + k]), o === 0 ? 0.5 : -0.5),
      ),
    );
    expect(found!.shape).toEqual([1, 2, ...outs]);
    close(found, sums);
  });

  test('are pooled', async () => {
    const [most] = await call(
      'MaxPool',
      12,
      [floats([...(x.data as Float32Array)].map(Math.abs), x.shape)],
      [kernel, pads],
    );
    close(
      most,
      windows.map((window) => Math.max(...window.map(Math.abs))),
    );
    const [mean] = await call('AveragePool', 11, [x], [kernel, pads, attr.int('count_include_pad', 1)]);
    close(
      mean,
      windows.map((window) => window.reduce((a, b) => a + b) / 16),
    );
  });
});

test('attention in a window sees the keys around each query', async () => {
  const scores = floats(new Array<number>(24).fill(0), [1, 1, 4, 6]);
  const q = floats(new Array<number>(4).fill(0), [1, 1, 4, 1]);
  const keys = floats([0, 1, 2, 3, 4, 5], [1, 1, 6, 1]);
  const window = [attr.int('left_window_size', 2), attr.int('right_window_size', 1)];
  const [found] = await call('Attention', 25, [q, keys, keys, scores], window);
  close(found, [0.5, 1, 1.5, 2.5]);
});

test('regions are pooled by whole elements', async () => {
  const x = floats(
    Array.from({ length: 16 }, (_, i) => i),
    [1, 1, 4, 4],
  );
  const [found] = await call(
    'MaxRoiPool',
    22,
    [x, floats([0, 0, 0, 2, 2], [1, 5])],
    [attr.ints('pooled_shape', [2, 2])],
  );
  close(found, [5, 6, 9, 10]);
});
