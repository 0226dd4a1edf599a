// Graphs inside of graphs: functions and what is left out of their calls, loops of no rounds, scans of old and new opsets; and tensors
// that a file keeps in unusual ways.
//
// Runs alone: it measures the memory of the process.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, tensor, type Tensor } from '../../src/index.ts';
import { loadOnnx, type ModelInputs } from '../../src/onnx/index.ts';
import { settledAt } from '../support/collector.ts';
import {
  attribute,
  encode,
  float,
  graph,
  model,
  modelOf,
  node,
  port,
  type Draft,
} from '../support/onnx/file.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

async function run(file: Uint8Array, inputs: ModelInputs): Promise<Tensor[]> {
  return Object.values(await (await loadOnnx(file)).run(inputs));
}

async function numbers(x: Tensor | undefined): Promise<number[]> {
  return Array.from((await x!.data()) as ArrayLike<number | bigint>, Number);
}

const body = (draft: Draft): Draft => ({ name: 'body', type: 5, g: draft });

describe('functions', () => {
  const withFunctions = (functions: readonly Draft[], nodes: readonly Draft[]): Uint8Array =>
    encode('Model', {
      irVersion: 10n,
      opsetImport: [{ version: 21n }, { domain: 'mine', version: 1n }],
      functions,
      graph: graph({ inputs: [port('x', 1, [2])], outputs: [port('y', 1, [2])], nodes }),
    });
  const opsetImport = [{ domain: 'ai.onnx', version: 21n }];

  test('of one name are told apart by their overload', async () => {
    const one = (overload: string, op: string): Draft => ({
      name: 'F',
      domain: 'mine',
      overload,
      input: ['a'],
      output: ['b'],
      node: [node(op, ['a'], ['b'])],
      opsetImport,
    });
    const calls = [
      { ...node('F', ['x'], ['h'], [], 'mine'), overload: 'second' },
      { ...node('F', ['h'], ['y'], [], 'mine'), overload: 'first' },
    ];
    const [y] = await run(withFunctions([one('first', 'Abs'), one('second', 'Neg')], calls), {
      x: Float32Array.of(1, -2),
    });
    expect(await numbers(y)).toEqual([1, 2]);
  });

  test('hand on that an input is left out', async () => {
    const clipped = {
      name: 'F',
      domain: 'mine',
      input: ['a', 'low', 'high'],
      output: ['b'],
      node: [node('Clip', ['a', 'low', 'high'], ['b'])],
      opsetImport,
    };
    const nodes = [
      node('Constant', [], ['zero'], [{ name: 'value_float', type: 1, f: 0 }]),
      node('F', ['x', '', 'zero'], ['y'], [], 'mine'),
    ];
    const [y] = await run(withFunctions([clipped], nodes), { x: Float32Array.of(1, -2) });
    expect(await numbers(y)).toEqual([0, -2]);
  });

  test('put their attributes into sub-graphs, with the values that they have by themselves', async () => {
    const inner = graph({
      inputs: [],
      outputs: [{ name: 'z' }],
      nodes: [node('Elu', ['a'], ['z'], [{ name: 'alpha', type: 1, refAttrName: 'slope' }])],
    });
    const called = {
      name: 'F',
      domain: 'mine',
      input: ['a'],
      output: ['b'],
      attributeProto: [{ name: 'slope', type: 1, f: 2 }],
      node: [
        node('Constant', [], ['on'], [{ name: 'value', type: 4, t: { dataType: 9, int32Data: [1] } }]),
        node(
          'If',
          ['on'],
          ['b'],
          [
            { name: 'then_branch', type: 5, g: inner },
            { name: 'else_branch', type: 5, g: inner },
          ],
        ),
      ],
      opsetImport,
    };
    const x = Float32Array.of(1, -1);
    const [y] = await run(withFunctions([called], [node('F', ['x'], ['y'], [], 'mine')]), { x });
    expect((await numbers(y))[1]).toBeCloseTo(2 * (Math.exp(-1) - 1), 5);
    const [steep] = await run(
      withFunctions([called], [node('F', ['x'], ['y'], [{ name: 'slope', type: 1, f: 3 }], 'mine')]),
      { x },
    );
    expect((await numbers(steep))[1]).toBeCloseTo(3 * (Math.exp(-1) - 1), 5);
  });
});

test('a loop of no rounds hands on what it was given, and gathers rows of none', async () => {
  const inner = graph({
    inputs: [port('i', 7, []), port('on', 9, []), port('s', 1, [2])],
    outputs: [{ name: 'still' }, { name: 'next' }, { name: 'row' }],
    nodes: [
      node('Identity', ['on'], ['still']),
      node('Neg', ['s'], ['next']),
      node('Concat', ['s', 's'], ['row'], [attribute('axis', 0)]),
    ],
  });
  const outer = graph({
    inputs: [port('count', 7, []), port('x', 1, [2])],
    outputs: [{ name: 'last' }, { name: 'rows' }],
    nodes: [node('Loop', ['count', '', 'x'], ['last', 'rows'], [body(inner)])],
  });
  const x = Float32Array.of(1, 2);
  const [last, rows] = await run(model(outer), { count: 0n, x });
  expect(await numbers(last)).toEqual([1, 2]);
  expect(rows!.shape).toEqual([0, 4]);
  const [odd, three] = await run(model(outer), { count: 3n, x });
  expect(await numbers(odd)).toEqual([-1, -2]);
  expect(three!.shape).toEqual([3, 4]);
});

describe('scans', () => {
  const running = graph({
    inputs: [port('s', 1, [1]), port('e', 1, [1])],
    outputs: [{ name: 'next' }, { name: 'out' }],
    nodes: [node('Add', ['s', 'e'], ['next']), node('Identity', ['next'], ['out'])],
  });

  test('of opset 8 go as far as each sequence does, and backwards where told to', async () => {
    const outer = graph({
      inputs: [port('lengths', 7, [2]), port('s', 1, [2, 1]), port('x', 1, [2, 3, 1])],
      outputs: [{ name: 'last' }, { name: 'all' }],
      nodes: [
        node(
          'Scan',
          ['lengths', 's', 'x'],
          ['last', 'all'],
          [body(running), attribute('num_scan_inputs', 1), attribute('directions', [1])],
        ),
      ],
    });
    const [last, all] = await run(model(outer, 8), {
      lengths: BigInt64Array.of(3n, 2n),
      s: Float32Array.of(0, 100),
      x: Float32Array.of(1, 2, 3, 10, 20, 30),
    });
    expect(await numbers(last)).toEqual([6, 130]);
    expect(all!.shape).toEqual([2, 3, 1]);
    expect(await numbers(all)).toEqual([3, 5, 6, 120, 130, 0]);
  });

  test('over nothing give rows of none', async () => {
    const outer = graph({
      inputs: [port('s', 1, [1]), port('x', 1, ['n', 1])],
      outputs: [{ name: 'last' }, { name: 'all' }],
      nodes: [node('Scan', ['s', 'x'], ['last', 'all'], [body(running), attribute('num_scan_inputs', 1)])],
    });
    const [last, all] = await run(model(outer), {
      s: Float32Array.of(5),
      x: tensor(new Float32Array(0), { shape: [0, 1] }),
    });
    expect(await numbers(last)).toEqual([5]);
    expect(all!.shape).toEqual([0, 1]);
  });
});

test('a sub-graph reads its own tensor where one outside has the same name', async () => {
  const branch = (value: number): Draft =>
    graph({
      inputs: [],
      outputs: [{ name: 'z' }],
      initializers: [float('w', [1], [value])],
      nodes: [node('Add', ['x', 'w'], ['z'])],
    });
  const outer = graph({
    inputs: [port('on', 9, []), port('x', 1, [1])],
    outputs: [{ name: 'y' }],
    initializers: [float('w', [1], [1])],
    nodes: [
      node(
        'If',
        ['on'],
        ['h'],
        [
          { name: 'then_branch', type: 5, g: branch(10) },
          { name: 'else_branch', type: 5, g: branch(20) },
        ],
      ),
      node('Mul', ['h', 'w'], ['y']),
    ],
  });
  expect(await numbers((await run(model(outer), { on: true, x: Float32Array.of(2) }))[0])).toEqual([12]);
});

describe('sparse tensors', () => {
  const sparse = (places: readonly bigint[], dims: readonly bigint[]): Draft => ({
    values: float('w', [2], [3, 4]),
    indices: { dataType: 7, dims: places.length === 2 ? [2n] : [2n, 2n], int64Data: places },
    dims,
  });
  const of = (parts: Draft): Uint8Array =>
    model({
      ...graph({
        inputs: [port('x', 1, [2, 2])],
        outputs: [{ name: 'y' }],
        nodes: [node('Add', ['x', 'w'], ['y'])],
      }),
      ...parts,
    });
  const x = new Float32Array(4);

  test('are filled with zeros, by flat places and by one an axis', async () => {
    for (const places of [
      [1n, 2n],
      [0n, 1n, 1n, 0n],
    ]) {
      const [y] = await run(of({ sparseInitializer: [sparse(places, [2n, 2n])] }), { x });
      expect(await numbers(y)).toEqual([0, 3, 4, 0]);
    }
    const constant = node(
      'Constant',
      [],
      ['w'],
      [{ name: 'sparse_value', type: 11, sparseTensor: sparse([0n, 3n], [2n, 2n]) }],
    );
    const [y] = await run(of({ node: [constant, node('Add', ['x', 'w'], ['y'])] }), { x });
    expect(await numbers(y)).toEqual([3, 0, 0, 4]);
  });

  test('with places outside of them are refused', async () => {
    await expect(loadOnnx(of({ sparseInitializer: [sparse([1n, 4n], [2n, 2n])] }))).rejects.toThrow(
      'place 4 is outside',
    );
  });
});

test('tensors of sub-graphs and attributes may lie in other files', async () => {
  const external = (location: string): Draft => ({
    dataType: 1,
    dims: [1n],
    dataLocation: 1,
    externalData: [{ key: 'location', value: location }],
  });
  const constant = graph({
    inputs: [port('x', 1, [1])],
    outputs: [{ name: 'y' }],
    nodes: [
      node('Constant', [], ['w'], [{ name: 'value', type: 4, t: external('w.bin') }]),
      node('Add', ['x', 'w'], ['y']),
    ],
  });
  await expect(loadOnnx(model(constant))).rejects.toThrow("tensors lie in 'w.bin'");
  const loaded = await loadOnnx(model(constant), {
    externalData: { 'w.bin': new Uint8Array(Float32Array.of(7).buffer) },
  });
  expect(await numbers((await loaded.run({ x: Float32Array.of(1) }))['y'])).toEqual([8]);
});

test('the host holds weights once', async () => {
  // What other tests of the process left is collected before, and the file's bytes after.
  const held = (): Promise<number> => settledAt(() => process.memoryUsage().arrayBuffers);
  const size = 2 ** 21;
  const of = (): Uint8Array => {
    const weights = ['a', 'b'].map((name) => ({
      name,
      dataType: 1,
      dims: [BigInt(size)],
      rawData: new Uint8Array(4 * size),
    }));
    const nodes = [node('Add', ['x', 'a'], ['h']), node('Mul', ['h', 'b'], ['y'])];
    const ports = { inputs: [port('x', 1, [1])], outputs: [port('y', 1, [size])] };
    return modelOf({ ...ports, initializers: weights, nodes });
  };
  const before = await held();
  // In a function of its own, whose frame does not hold the file.
  const load = (): ReturnType<typeof loadOnnx> => loadOnnx(of());
  const loaded = await load();
  expect(((await held()) - before) / (2 * 4 * size)).toBeLessThan(1.25);
  expect(Object.keys(loaded.parameters)).toEqual(['a', 'b']);
});

describe('sequences', () => {
  const of = (nodes: readonly Draft[], outputs: readonly Draft[] = [{ name: 'y' }]): Uint8Array =>
    modelOf({ inputs: [port('x', 1, [2, 3])], outputs, nodes });
  const x = Float32Array.of(1, 2, 3, 4, 5, 6);

  test('of single elements keep or drop their axis, and have a length', async () => {
    const flat = [attribute('axis', 1), attribute('keepdims', 0)];
    const nodes = [
      node('SplitToSequence', ['x'], ['list'], flat),
      node('SequenceLength', ['list'], ['count']),
      node('Constant', [], ['last'], [{ name: 'value_int', type: 2, i: -1n }]),
      node('SequenceAt', ['list', 'last'], ['y']),
    ];
    const [y, count] = await run(of(nodes, [{ name: 'y' }, { name: 'count' }]), { x });
    expect(y!.shape).toEqual([2]);
    expect(await numbers(y)).toEqual([3, 6]);
    expect(await count!.item()).toBe(3n);
  });

  test('are refused where tensors belong, where they come out, and at places that they do not have', async () => {
    const list = node('SequenceConstruct', ['x', 'x'], ['list']);
    await expect(run(of([list, node('Neg', ['list'], ['y'])]), { x })).rejects.toThrow(
      /Neg.*a sequence stands/,
    );
    const type = { sequence: { elem: { tensor: { elemType: 1 } } } };
    await expect(run(of([list], [{ name: 'list', type }]), { x })).rejects.toThrow(
      "output 'list' is a sequence",
    );
    const far = node('Constant', [], ['far'], [{ name: 'value_int', type: 2, i: 2n }]);
    const at = node('SequenceAt', ['list', 'far'], ['y']);
    await expect(run(of([list, far, at]), { x })).rejects.toThrow('place 2 is outside of 2');
    const gap = node('SequenceConstruct', ['x', '', 'x'], ['list']);
    const count = node('SequenceLength', ['list'], ['y']);
    await expect(run(of([gap, count]), { x })).rejects.toThrow('input 1 is missing');
  });
});
