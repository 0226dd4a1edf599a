// Operators that no case of the ONNX project beside the repository covers, one node each, against what their definition gives.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { attribute, graph, model, node, port, type Draft } from '../support/onnx/file.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const codes: Readonly<Record<string, number>> = { f32: 1, u8: 2, i8: 3, i32: 6, i64: 7, bool: 9, f64: 11 };

/** Runs one node on tensors; gives its results. */
async function call(
  op: string,
  inputs: readonly (Tensor | undefined)[],
  attributes: readonly Draft[] = [],
  { outputs = 1, opset = 22, domain = '' } = {},
): Promise<Tensor[]> {
  const names = inputs.map((x, i) => (x === undefined ? '' : `x${i}`));
  const results = Array.from({ length: outputs }, (_, i) => `y${i}`);
  const ports = inputs.flatMap((x, i) => (x === undefined ? [] : [port(`x${i}`, codes[x.dtype]!, x.shape)]));
  const file = model(
    graph({
      inputs: ports,
      outputs: results.map((name) => ({ name })),
      nodes: [node(op, names, results, attributes, domain)],
    }),
    opset,
    domain === '' ? [] : [domain],
  );
  const given = inputs.flatMap((x, i) => (x === undefined ? [] : [[`x${i}`, x] as const]));
  return Object.values(await (await loadOnnx(file)).run(Object.fromEntries(given)));
}

async function close(actual: Tensor | undefined, expected: readonly number[]): Promise<void> {
  const data = Array.from((await actual!.data()) as ArrayLike<number | bigint>, Number);
  expect(data.length).toBe(expected.length);
  expected.forEach((value, i) => expect(data[i]).toBeCloseTo(value, 4));
}

const wave = (count: number, shape: readonly number[]): Tensor =>
  tensor(
    Float32Array.from({ length: count }, (_, i) => Math.sin(2 * i + 1)),
    { shape },
  );

describe('windows', () => {
  const size = tensor(8n);
  const angle = (n: number, count: number): number => (2 * Math.PI * n) / count;

  test('of Hann and Blackman, periodic and symmetric', async () => {
    const places = Array.from({ length: 8 }, (_, n) => n);
    const [hann] = await call('HannWindow', [size]);
    await close(
      hann,
      places.map((n) => 0.5 - 0.5 * Math.cos(angle(n, 8))),
    );
    const [blackman] = await call('BlackmanWindow', [size], [attribute('periodic', 0)]);
    await close(
      blackman,
      places.map((n) => 0.42 - 0.5 * Math.cos(angle(n, 7)) + 0.08 * Math.cos(2 * angle(n, 7))),
    );
  });
});

test('a short-time transform is the transform of each frame', async () => {
  const signal = wave(16, [1, 16, 1]);
  const data = (await signal.data()) as Float32Array;
  const [found] = await call('STFT', [signal, tensor(4n), undefined, tensor(8n)]);
  expect(found!.shape).toEqual([1, 3, 5, 2]);
  const expected: number[] = [];
  for (let frame = 0; frame < 3; frame++) {
    for (let k = 0; k <= 4; k++) {
      let [re, im] = [0, 0];
      for (let n = 0; n < 8; n++) {
        re += data[4 * frame + n]! * Math.cos((2 * Math.PI * k * n) / 8);
        im -= data[4 * frame + n]! * Math.sin((2 * Math.PI * k * n) / 8);
      }
      expected.push(re, im);
    }
  }
  await close(found, expected);
});

test('determinants change their sign with the order of rows', async () => {
  const matrices = tensor([
    [
      [0, 2],
      [3, 4],
    ],
    [
      [2, 0],
      [0, 5],
    ],
    [
      [1, 2],
      [2, 4],
    ],
  ]);
  const [found] = await call('Det', [matrices]);
  await close(found, [-6, 10, 0]);
});

test('convolutions pad each side by its own number: all fronts come before all ends', async () => {
  const x = tensor([1, 2, 3, 4], { shape: [1, 1, 2, 2] });
  const w = tensor([1], { shape: [1, 1, 1, 1] });
  const [found] = await call('Conv', [x, w], [attribute('pads', [1, 2, 0, 0])]);
  expect(found!.shape).toEqual([1, 1, 3, 4]);
  await close(found, [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4]);
});

test('integers convolve without their zeros', async () => {
  const x = tensor(Uint8Array.of(2, 3, 4, 5, 6, 7, 8, 9, 10), { shape: [1, 1, 3, 3] });
  const w = tensor(Uint8Array.of(1, 1, 1, 1), { shape: [1, 1, 2, 2] });
  const [found] = await call('ConvInteger', [x, w, tensor(Uint8Array.of(1), { shape: [] })]);
  expect(found!.dtype).toBe('i32');
  await close(found, [12, 16, 24, 28]);
});

test('a region of interest that is the image, cell by cell, is the image', async () => {
  const x = wave(16, [1, 1, 4, 4]);
  const region = tensor([[0, 0, 4, 4]]);
  const options = [
    attribute('output_height', 4),
    attribute('output_width', 4),
    attribute('sampling_ratio', 1),
  ];
  const [found] = await call('RoiAlign', [x, region, tensor([0n])], options);
  await close(found, [...((await x.data()) as Float32Array)]);
});

test('a layer of two directions is one of each', async () => {
  const [x, w, r] = [wave(12, [3, 2, 2]), wave(2 * 12 * 2, [2, 12, 2]), wave(2 * 12 * 3, [2, 12, 3])];
  const hidden = attribute('hidden_size', 3);
  const way = (direction: string): Draft => attribute('direction', direction);
  const [both] = await call('LSTM', [x, w, r], [hidden, way('bidirectional')]);
  expect(both!.shape).toEqual([3, 2, 2, 3]);
  const half = (t: Tensor, d: number): Tensor => t.narrow(0, d, 1);
  const [forward] = await call('LSTM', [x, half(w, 0), half(r, 0)], [hidden]);
  const [backward] = await call('LSTM', [x, half(w, 1), half(r, 1)], [hidden, way('reverse')]);
  await close(both!.narrow(1, 0, 1), [...((await forward!.data()) as Float32Array)]);
  await close(both!.narrow(1, 1, 1), [...((await backward!.data()) as Float32Array)]);
});

test('draws are classes that have a chance', async () => {
  const logs = tensor([[-Infinity, 0, -Infinity, 0]]);
  const [found] = await call('Multinomial', [logs], [attribute('sample_size', 64)]);
  const drawn = new Set((await found!.data()) as Int32Array);
  expect([...drawn].sort()).toEqual([1, 3]);
});

describe('older opsets', () => {
  test('broadcast from an axis when told to (opset 6)', async () => {
    const [x, y] = [wave(12, [2, 3, 2]), tensor([10, 20, 30])];
    const [found] = await call('Add', [x, y], [attribute('broadcast', 1), attribute('axis', 1)], {
      opset: 6,
    });
    const data = (await x.data()) as Float32Array;
    await close(
      found,
      Array.from(data, (value, i) => value + 10 * (1 + (Math.floor(i / 2) % 3))),
    );
  });

  test('name axes, shapes and pads by attributes', async () => {
    const x = wave(6, [1, 6]);
    const data = [...((await x.data()) as Float32Array)];
    const [reshaped] = await call('Reshape', [x], [attribute('shape', [3, -1])], { opset: 4 });
    expect(reshaped!.shape).toEqual([3, 2]);
    const [squeezed] = await call('Squeeze', [x], [attribute('axes', [0])], { opset: 11 });
    expect(squeezed!.shape).toEqual([6]);
    const [padded] = await call('Pad', [x], [attribute('pads', [0, 1, 0, 2])], { opset: 2 });
    await close(padded, [0, ...data, 0, 0]);
    const [sliced] = await call(
      'Slice',
      [x],
      [attribute('starts', [1]), attribute('ends', [3]), attribute('axes', [1])],
      { opset: 1 },
    );
    await close(sliced, data.slice(1, 3));
  });
});

test('images of whole numbers are read between their elements, and cut off', async () => {
  const x = tensor(Uint8Array.of(0, 9), { shape: [1, 1, 1, 2] });
  const [wide] = await call('Resize', [x, undefined, tensor([1, 1, 1, 2])], [attribute('mode', 'linear')]);
  expect(wide!.dtype).toBe('u8');
  await close(wide, [0, 2, 6, 9]);
  const places = tensor(Float32Array.of(-0.5, 0, 0, 0), { shape: [1, 1, 2, 2] });
  const [read] = await call('GridSample', [x, places]);
  await close(read, [0, 4]);
});

test.each([
  ['Celu', (x: number) => Math.max(0, x) + Math.min(0, 0.5 * Math.expm1(x / 0.5))],
  ['Selu', (x: number) => 1.5 * (x > 0 ? x : 0.5 * Math.expm1(x))],
] as const)('%s follows a fused product', async (activation, of) => {
  const numbers = { activation, activation_alpha: 0.5, activation_gamma: 1.5 };
  const attributes = Object.entries(numbers).map(([name, value]) => attribute(name, value));
  const x = tensor([[-2], [-0.5], [0], [3]]);
  const [y] = await call('FusedGemm', [x, tensor([[1]])], attributes, { domain: 'com.microsoft' });
  await close(y, [-2, -0.5, 0, 3].map(of));
});

test.each([
  ['i8', -128],
  ['u8', 0],
] as const)('what is no number becomes the least %s', async (dtype, least) => {
  const x = tensor([NaN, -1e9, -0.5, 3.5]);
  const [y] = await call('QuantizeLinear', [x, tensor(1), zeros([], { dtype })]);
  await close(y, [least, least, 0, 4]);
});

test('turned heads have no scale', async () => {
  const inputs = [wave(8, [1, 1, 2, 4]), tensor([[0n, 1n]]), wave(4, [2, 2]), wave(4, [2, 2]).mul(-1)];
  const turned = async (attributes: readonly Draft[]): Promise<unknown> => {
    const [y] = await call('RotaryEmbedding', inputs, attributes, { domain: 'com.microsoft' });
    return y!.data();
  };
  expect(await turned([attribute('scale', 2)])).toEqual(await turned([]));
});

test('a size of 0 is one that the input has', async () => {
  const x = zeros([2, 0, 3]);
  await expect(call('Reshape', [x, tensor([2n, 3n, 1n, 0n])])).rejects.toThrow(
    "size 3 is 0, which is the input's own without allowzero, and [2,0,3] has none",
  );
  const [copied] = await call('Reshape', [x, tensor([3n, 0n, 2n])]);
  expect(copied!.shape).toEqual([3, 0, 2]);
});

test('padding may be infinite', async () => {
  const [found] = await call('Pad', [tensor([1]), tensor([1n, 1n]), tensor(-Infinity)]);
  expect([...((await found!.data()) as Float32Array)]).toEqual([-Infinity, 1, -Infinity]);
  const least = -(2n ** 63n);
  await expect(call('Pad', [tensor([1n]), tensor([1n, 1n]), tensor(least)])).rejects.toThrow(
    /no exact number/,
  );
});

describe('bool tensors on a device without bytes', () => {
  beforeAll(() => setDevice('webgpu:software'));
  afterAll(() => setDevice('wasm'));
  const mask = tensor([
    [true, true],
    [true, true],
  ]);

  test('are padded and cut to triangles', async () => {
    const [padded] = await call('Pad', [mask, tensor([0n, 1n, 0n, 0n])]);
    expect([...((await padded!.data()) as Uint8Array)]).toEqual([0, 1, 1, 0, 1, 1]);
    const [lower] = await call('Trilu', [mask], [attribute('upper', 0)]);
    expect([...((await lower!.data()) as Uint8Array)]).toEqual([1, 0, 1, 1]);
  });
});

test('places beyond 32 bits are outside, not at the places that their low bits name', async () => {
  const x = tensor([5, 6, 7]);
  const far = tensor([2n ** 62n, -(2n ** 62n) + 1n, 1n]);
  const [picked] = await call('Gather', [x, far]);
  await expect(picked!.data()).rejects.toThrow(/index .* is outside axis 0 of f32\[3\]/);
  await close((await call('OneHot', [far, tensor(2n), tensor([0, 1])]))[0], [0, 0, 0, 0, 0, 1]);
});

test.each([
  ['Gather', 'f32[3]', (at: Tensor) => [tensor([5, 6, 7]), at]],
  ['GatherElements', 'f32[3]', (at: Tensor) => [tensor([5, 6, 7]), at]],
  ['GatherND', 'f32[3,1]', (at: Tensor) => [tensor([[5], [6], [7]]), at.unsqueeze(1)]],
  ['ScatterElements', 'f32[3]', (at: Tensor) => [tensor([5, 6, 7]), at, tensor([1, 2])]],
  ['ScatterND', 'f32[3]', (at: Tensor) => [tensor([5, 6, 7]), at.unsqueeze(1), tensor([1, 2])]],
] as const)('%s names an index that is outside as it was given', async (op, type, inputs) => {
  for (const index of [-4n, 3n, 2n ** 40n]) {
    const [y] = await call(op, inputs(tensor([-3n, index])));
    await expect(y!.data()).rejects.toThrow(`${op}: index ${index} is outside axis 0 of ${type}`);
    const [again] = await call(op, inputs(tensor([-3n, index])));
    await expect(again!.data()).rejects.toMatchObject({ code: 'E_INDEX' });
  }
  const [inside] = await call(op, inputs(tensor([-3n, 2n])));
  expect((await inside!.data()).length).toBeGreaterThan(1);
});
