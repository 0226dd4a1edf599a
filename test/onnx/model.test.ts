// What users do with a model: run it, call it inside of compiled and differentiated functions, train it; and how shapes that depend on
// data behave.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  compile,
  explain,
  setDevice,
  stats,
  sub,
  tensor,
  valueAndGrad,
  type Tensor,
} from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { SGD } from '../../src/optim/index.ts';
import {
  attribute,
  encode,
  float,
  graph,
  int64,
  modelOf,
  node,
  port,
  type Draft,
} from '../support/onnx/file.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const perceptron = modelOf({
  inputs: [port('x', 1, ['batch', 2])],
  outputs: [port('y', 1, ['batch', 1])],
  initializers: [
    float('w1', [2, 3], [0.5, -0.25, 0.75, 0.1, 0.6, -0.4]),
    float('b1', [3], [0.1, 0.2, 0.3]),
    float('w2', [3, 1], [0.3, -0.7, 0.2]),
  ],
  nodes: [
    node('Gemm', ['x', 'w1', 'b1'], ['h']),
    node('Tanh', ['h'], ['a']),
    node('MatMul', ['a', 'w2'], ['y']),
  ],
});

const one = (outputs: Readonly<Record<string, Tensor>>): Tensor => Object.values(outputs)[0]!;

async function numbers(x: Tensor): Promise<number[]> {
  return Array.from((await x.data()) as ArrayLike<number | bigint>, Number);
}

describe('a model', () => {
  test('tells its ports and parameters', async () => {
    const { inputs, outputs, parameters } = await loadOnnx(perceptron);
    const plain = { kind: 'tensor', isOptional: false };
    expect(inputs).toEqual([{ name: 'x', ...plain, type: 'float', dtype: 'f32', shape: ['batch', 2] }]);
    expect(outputs).toEqual([{ name: 'y', ...plain, type: 'float', dtype: 'f32', shape: ['batch', 1] }]);
    expect(Object.entries(parameters).map(([name, { shape }]) => [name, shape])).toEqual([
      ['w1', [2, 3]],
      ['b1', [3]],
      ['w2', [3, 1]],
    ]);
  });

  test('compiles once for the sizes that it names', async () => {
    const model = await loadOnnx(perceptron);
    const dims = model.dims({ batch: { max: 200 } });
    expect(dims).toEqual({ x: [{ name: 'batch', min: 1, max: 200, multipleOf: 1 }, 2] });
    const f = compile(model.toFunction(), { dims: [dims] });
    let made = 0;
    for (const rows of [3, 40, 7, 120]) {
      const x = tensor(
        Float32Array.from({ length: 2 * rows }, (_, i) => Math.sin(i)),
        { shape: [rows, 2] },
      );
      const before = stats().programs;
      const got = await numbers(one(f({ x })));
      made += stats().programs - before;
      const wanted = await numbers(one(await model.run({ x })));
      expect(got.length).toBe(rows);
      for (const [i, value] of got.entries()) expect(value).toBeCloseTo(wanted[i]!, 5);
    }
    expect(made).toBeLessThanOrEqual(2);
    expect(() => f({ x: tensor([[1, 2]]).expand([201, 2]) })).toThrow('batch (axis 0 of');
    expect(() => model.dims({ rows: {} })).toThrow("the model has no size 'rows': it has batch");
  });

  test('that is not there, or nothing of that kind, is refused by name', async () => {
    await expect(loadOnnx('/no/where/model.onnx')).rejects.toMatchObject({
      code: 'E_IO',
      message: expect.stringContaining('/no/where/model.onnx') as string,
    });
    // A port that nothing listens to.
    await expect(loadOnnx('http://127.0.0.1:1/model.onnx')).rejects.toMatchObject({ code: 'E_IO' });
    const whole = perceptron.slice().buffer as unknown as Uint8Array;
    await expect(loadOnnx(whole)).rejects.toThrow('got an ArrayBuffer');
  });

  test('computes what its nodes say, for every size of an open axis', async () => {
    const loaded = await loadOnnx(perceptron);
    const expected = (p: number, q: number): number => {
      const h = [0.5 * p + 0.1 * q + 0.1, -0.25 * p + 0.6 * q + 0.2, 0.75 * p - 0.4 * q + 0.3].map(Math.tanh);
      return 0.3 * h[0]! - 0.7 * h[1]! + 0.2 * h[2]!;
    };
    for (const rows of [
      [[1, 2]],
      [
        [1, 2],
        [3, -1],
        [0, 0],
      ],
      [[-1, 1]],
    ]) {
      const { y } = await loaded.run({ x: Float32Array.from(rows.flat()) });
      expect(y!.shape).toEqual([rows.length, 1]);
      const found = await numbers(y!);
      rows.forEach(([p, q], i) => expect(found[i]).toBeCloseTo(expected(p!, q!), 5));
    }
  });

  test('says what is wrong with its inputs', async () => {
    const loaded = await loadOnnx(perceptron);
    await expect(loaded.run({})).rejects.toThrow(/input 'x' is missing/);
    await expect(loaded.run({ z: 1 })).rejects.toThrow(/there is no input 'z'/);
    const mapped = loaded.run(new Map([['x', tensor([[1, 2]])]]) as never);
    await expect(mapped).rejects.toThrow(/inputs must be an object, got .*[^]*Object\.fromEntries/);
    await expect(loaded.run(null as never)).rejects.toMatchObject({ code: 'E_VALUE' });
    expect(() => loaded.toFunction({ fixd: {} } as never)).toThrow(/no option 'fixd'[^]*fixed/);
    await expect(loaded.run({ x: tensor([[1, 2, 3]]) })).rejects.toMatchObject({ code: 'E_SHAPE' });
    await expect(loaded.run({ x: tensor([[1, 2]], { dtype: 'i32' }) })).rejects.toMatchObject({
      code: 'E_DTYPE',
    });
  });

  test('is a function for compile and explain', async () => {
    const loaded = await loadOnnx(perceptron);
    const f = loaded.toFunction();
    const twice = compile((x: Tensor) => one(f({ x })).mul(2));
    const x = tensor([[1, 2]]);
    const [direct] = await numbers(one(await loaded.run({ x })));
    expect((await numbers(twice(x)))[0]).toBeCloseTo(2 * direct!, 6);
    expect(String(explain((input: Tensor) => f({ x: input }), x))).toContain('kernel');
  });

  test('trains: its parameters are leaves that an optimizer moves', async () => {
    const loaded = await loadOnnx(perceptron);
    const f = loaded.toFunction();
    const weights = Object.values(loaded.parameters).map((weight) => weight.requiresGrad_());
    const optimizer = new SGD(weights, { lr: 0.2 });
    const x = tensor([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ]);
    const target = tensor([[0], [1], [1], [2]]);
    const before = await numbers(one(await loaded.run({ x })));
    const losses: number[] = [];
    for (let step = 0; step < 40; step++) {
      const loss = sub(one(f({ x })), target)
        .square()
        .mean();
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      losses.push(Number(await loss.item()));
    }
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 10);
    const after = await numbers(one(await loaded.run({ x })));
    expect(after).not.toEqual(before);
    expect(after[3]).toBeGreaterThan(before[3]!);
  });

  test('has gradients in its inputs', async () => {
    const f = (await loadOnnx(perceptron)).toFunction();
    const { grad: slope } = valueAndGrad((x: Tensor) => one(f({ x })).sum())(tensor([[0.5, -0.5]]));
    const at = async (p: number): Promise<number> => (await numbers(one(f({ x: tensor([[p, -0.5]]) }))))[0]!;
    const numeric = ((await at(0.51)) - (await at(0.49))) / 0.02;
    expect((await numbers(slope))[0]).toBeCloseTo(numeric, 3);
  });
});

describe('shapes that come with a run', () => {
  const reshaping = modelOf({
    inputs: [port('x', 1, [6]), port('shape', 7, [2])],
    outputs: [port('y', 1, ['a', 'b'])],
    nodes: [node('Reshape', ['x', 'shape'], ['r']), node('Neg', ['r'], ['y'])],
  });

  test('decide the shape of the result in every run', async () => {
    const loaded = await loadOnnx(reshaping);
    const x = Float32Array.of(1, 2, 3, 4, 5, 6);
    for (const shape of [
      [2, 3],
      [3, 2],
      [6, -1],
      [2, 3],
    ]) {
      const { y } = await loaded.run({ x, shape: BigInt64Array.from(shape, BigInt) });
      expect(y!.shape).toEqual(shape.map((dim) => (dim < 0 ? 1 : dim)));
      expect(await numbers(y!)).toEqual([-1, -2, -3, -4, -5, -6]);
    }
  });

  test('are asked for by name where they must be known', async () => {
    const loaded = await loadOnnx(reshaping);
    const f = loaded.toFunction();
    const x = tensor([1, 2, 3, 4, 5, 6]);
    const traced = compile((shape: Tensor) => f({ x, shape }));
    const shape = tensor([2n, 3n]);
    expect(() => traced(shape)).toThrow(/Reshape: needs the elements of 'shape'/);
    const fixed = loaded.toFunction({ fixed: { shape: BigInt64Array.of(3n, 2n) } });
    const { y } = compile((input: Tensor) => fixed({ x: input }))(x);
    expect(y!.shape).toEqual([3, 2]);
  });

  test('may depend on computed values', async () => {
    const loaded = await loadOnnx(
      modelOf({
        inputs: [port('x', 1, [5])],
        outputs: [port('y', 7, [1, 'n'])],
        initializers: [float('zero', [], [0])],
        nodes: [
          node('Add', ['x', 'x'], ['d']),
          node('Greater', ['d', 'zero'], ['p']),
          node('NonZero', ['p'], ['y']),
        ],
      }),
    );
    for (const [x, places] of [
      [
        [1, -1, 2, 0, 3],
        [0, 2, 4],
      ],
      [[-1, -1, -1, -1, 1], [4]],
      [[0, 0, 0, 0, 0], []],
    ] as const) {
      const { y } = await loaded.run({ x: Float32Array.from(x) });
      expect([...(await y!.data())]).toEqual(places.map(BigInt));
      expect(y!.dtype).toBe('i64');
    }
  });
});

describe('control flow', () => {
  const branch = (op: string): Draft =>
    graph({ inputs: [], outputs: [port('out', 1, [2])], nodes: [node(op, ['x'], ['out'])] });

  test('takes the branch that the condition says', async () => {
    const ifNode = node(
      'If',
      ['c'],
      ['y'],
      [attribute('then_branch', branch('Neg')), attribute('else_branch', branch('Exp'))].map((item) => ({
        ...item,
        type: 5,
      })),
    );
    const loaded = await loadOnnx(
      modelOf({
        inputs: [port('c', 9, []), port('x', 1, [2])],
        outputs: [port('y', 1, [2])],
        nodes: [ifNode],
      }),
    );
    const x = Float32Array.of(0, 1);
    expect(await numbers(one(await loaded.run({ c: true, x })))).toEqual([-0, -1]);
    expect((await numbers(one(await loaded.run({ c: false, x }))))[0]).toBe(1);
    expect(await numbers(one(await loaded.run({ c: true, x })))).toEqual([-0, -1]);
  });

  test('goes round as often as it is told, and stacks what rounds give', async () => {
    const body = graph({
      inputs: [port('i', 7, []), port('go', 9, []), port('sum', 1, [])],
      outputs: [port('goes', 9, []), port('next', 1, []), port('row', 1, [])],
      nodes: [
        node('Add', ['sum', 'x'], ['next']),
        node('Identity', ['go'], ['goes']),
        node('Neg', ['next'], ['row']),
      ],
    });
    const loaded = await loadOnnx(
      modelOf({
        inputs: [port('n', 7, []), port('x', 1, [])],
        outputs: [port('last', 1, []), port('rows', 1, ['n'])],
        initializers: [float('zero', [], [0])],
        nodes: [node('Loop', ['n', '', 'zero'], ['last', 'rows'], [attribute('body', body)])],
      }),
    );
    for (const count of [3, 1]) {
      const { last, rows } = await loaded.run({ n: BigInt64Array.of(BigInt(count)), x: 2 });
      expect(await last!.item()).toBe(2 * count);
      expect(await numbers(rows!)).toEqual(Array.from({ length: count }, (_, i) => -2 * (i + 1)));
    }
  });

  test('calls functions of the model with their attributes', async () => {
    const called = {
      name: 'Leak',
      domain: 'own',
      input: ['a'],
      output: ['b'],
      attribute: ['slope'],
      opsetImport: [{ version: 21n }],
      node: [node('LeakyRelu', ['a'], ['b'], [{ name: 'alpha', type: 1, refAttrName: 'slope' }])],
    };
    const nodes = [node('Leak', ['x'], ['y'], [{ name: 'slope', type: 1, f: 0.5 }], 'own')];
    const bytes = encode('Model', {
      opsetImport: [{ version: 21n }, { domain: 'own', version: 1n }],
      graph: graph({ inputs: [port('x', 1, [2])], outputs: [port('y', 1, [2])], nodes }),
      functions: [called],
    });
    expect(await numbers(one(await (await loadOnnx(bytes)).run({ x: Float32Array.of(-4, 3) })))).toEqual([
      -2, 3,
    ]);
  });
});

describe('integers of 64 bits on WebGPU', () => {
  beforeAll(() => setDevice('webgpu:software'));
  afterAll(() => setDevice('wasm'));

  test('come out as what they are', async () => {
    const doubling = modelOf({
      inputs: [port('x', 7, [2])],
      outputs: [port('y', 7, [2])],
      nodes: [node('Add', ['x', 'x'], ['y'])],
    });
    const { y } = await (await loadOnnx(doubling)).run({ x: BigInt64Array.of(-3n, 2n ** 40n) });
    expect(y!.dtype).toBe('i64');
    expect([...(await y!.data())]).toEqual([-6n, 2n ** 41n]);
  });

  test('are folded by functions of floats in those that the device has', async () => {
    const norm = modelOf({
      inputs: [port('x', 7, [2])],
      outputs: [port('y', 7, [1])],
      nodes: [node('ReduceL2', ['x'], ['y'])],
    });
    const { y } = await (await loadOnnx(norm)).run({ x: BigInt64Array.of(30n, 40n) });
    expect([...(await y!.data())]).toEqual([50n]);
  });
});

describe('integers of 64 bits', () => {
  test('come out exactly', async () => {
    const loaded = await loadOnnx(
      modelOf({
        inputs: [port('x', 7, [2])],
        outputs: [port('y', 7, [2])],
        initializers: [int64('big', [], [2n ** 40n])],
        nodes: [node('Add', ['x', 'big'], ['y'])],
      }),
    );
    const { y } = await loaded.run({ x: BigInt64Array.of(1n, -(2n ** 50n)) });
    expect([...(await y!.data())]).toEqual([2n ** 40n + 1n, 2n ** 40n - 2n ** 50n]);
  });
});

describe('what a file declares of its outputs', () => {
  const turned = (type: number, shape: readonly (number | string)[]): Uint8Array =>
    modelOf({
      inputs: [port('x', 1, ['a', 2])],
      outputs: [port('y', type, shape)],
      nodes: [node('Neg', ['x'], ['y'])],
    });
  const x = tensor([[1, 2]]);

  test('has to have the type of their elements', async () => {
    const model = await loadOnnx(turned(7, ['a', 2]));
    const problem =
      "onnx: output 'y': the file declares int64 elements, and its nodes give float\n  try: a Cast";
    await expect(model.run({ x })).rejects.toThrow(problem);
    expect(() => model.toFunction()({ x })).toThrow(problem);
    await expect(model.run({ x })).rejects.toMatchObject({ code: 'E_DTYPE' });
  });

  test.each([[[5, 2]], [[1, 2, 1]], [['a', 3]]])(
    'has another shape, %j, which is told once',
    async (shape) => {
      const told: string[] = [];
      const warn = vi.spyOn(console, 'warn').mockImplementation((line: string) => void told.push(line));
      try {
        const model = await loadOnnx(turned(1, shape));
        const { y } = await model.run({ x });
        expect([y!.shape, await numbers(y!)]).toEqual([
          [1, 2],
          [-1, -2],
        ]);
        await model.run({ x });
        model.toFunction()({ x });
      } finally {
        warn.mockRestore();
      }
      const declared = `the file declares [${shape.join()}], and its nodes give [1,2]`;
      expect(told).toEqual([`sinter: onnx: output 'y': ${declared}, which is what you get`]);
    },
  );

  test('may leave sizes open, and name them', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    try {
      const { y } = await (await loadOnnx(turned(1, ['rows', 'columns']))).run({ x });
      expect(y!.shape).toEqual([1, 2]);
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
    }
  });
});
