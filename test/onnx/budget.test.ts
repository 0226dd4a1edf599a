// Files of a few bytes that ask for a great deal are refused before it is made: by the number of their nodes, functions and loops
// written out, and by the bytes of what they compute.
//
// Runs alone: it measures time.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { loadOnnx, type LoadOptions } from '../../src/onnx/index.ts';
import { cpuTimeOf } from '../support/cpu-time.ts';
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

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

const x = port('x', 1, [2]);
/** An output that tells no shape. */
const y = { name: 'y', type: { tensor: { elemType: 1 } } };
const list = (name: string, ...values: (number | bigint)[]): Draft =>
  int64(name, [values.length], values.map(BigInt));
const one = (name: string, value: number | bigint): Draft => int64(name, [], [BigInt(value)]);
const yes: Draft = { name: 'c', dataType: 9, dims: [], rawData: Uint8Array.of(1) };
const integer = (name: string, i: bigint): Draft => ({ name, type: 2, i });

function fileOf(
  nodes: readonly Draft[],
  initializers: readonly Draft[] = [],
  inputs: readonly Draft[] = [x],
): Uint8Array {
  return modelOf({ inputs, outputs: [y], initializers, nodes });
}

const round = graph({
  inputs: [port('i', 7, []), port('k', 9, []), port('v', 1, [2])],
  outputs: [port('ko', 9, []), port('vo', 1, [2])],
  nodes: [node('Identity', ['k'], ['ko']), node('Add', ['v', 'v'], ['vo'])],
});
const around = (body: Draft): Draft =>
  graph({
    inputs: [port('i', 7, []), port('k', 9, []), port('v', 1, [2])],
    outputs: [port('ko', 9, []), port('vo', 1, [2])],
    nodes: [
      node('Identity', ['k'], ['ko']),
      node('Loop', ['t', 'c', 'v'], ['vo'], [attribute('body', body)]),
    ],
  });
const loop = (body: Draft, rounds: bigint): Uint8Array =>
  fileOf([node('Loop', ['t', 'c', 'x'], ['y'], [attribute('body', body)])], [one('t', rounds), yes]);

/** Functions that call each other twice: 2ⁿ nodes. */
function laughs(depth: number): Uint8Array {
  const functions = Array.from({ length: depth }, (_, k) => ({
    name: `f${k}`,
    domain: 'own',
    input: ['a'],
    output: ['b'],
    node: [node(`f${k + 1}`, ['a'], ['t'], [], 'own'), node(`f${k + 1}`, ['t'], ['b'], [], 'own')],
    opsetImport: [{ domain: 'own', version: 1n }],
  }));
  const last = {
    name: `f${depth}`,
    domain: 'own',
    input: ['a'],
    output: ['b'],
    node: [node('Neg', ['a'], ['b'])],
  };
  return encode('Model', {
    opsetImport: [
      { domain: '', version: 21n },
      { domain: 'own', version: 1n },
    ],
    graph: graph({ inputs: [x], outputs: [y], nodes: [node('f0', ['x'], ['y'], [], 'own')] }),
    functions: [...functions, last],
  });
}

const image = port('x', 1, [1, 1, 4, 4]);
const big = 2n ** 31n;
const scanned = graph({
  inputs: [port('s', 1, []), port('e', 1, [])],
  outputs: [port('so', 1, [])],
  nodes: [node('Add', ['s', 'e'], ['so'])],
});

const greedy: Readonly<Record<string, () => Uint8Array>> = {
  'Split into 2³¹ parts': () => fileOf([node('Split', ['x'], ['y'], [integer('num_outputs', big)])]),
  'SplitToSequence of 2²⁸ elements': () =>
    fileOf(
      [
        node('ConstantOfShape', ['s'], ['c']),
        node('SplitToSequence', ['c'], ['q']),
        node('SequenceAt', ['q', 'z'], ['y']),
      ],
      [list('s', 2n ** 28n), one('z', 0)],
    ),
  'Range of 2³¹': () =>
    fileOf([node('Range', ['a', 'b', 'd'], ['y'])], [one('a', 0), one('b', big), one('d', 1)]),
  'ConstantOfShape of 2⁴⁰': () => fileOf([node('ConstantOfShape', ['s'], ['y'])], [list('s', 2n ** 40n)]),
  'a window of 2⁴⁰': () => fileOf([node('HannWindow', ['n'], ['y'])], [one('n', 2n ** 40n)]),
  'mel filters of 2³¹ bins': () =>
    fileOf(
      [node('MelWeightMatrix', ['a', 'b', 'd', 'e', 'f'], ['y'])],
      [one('a', big), one('b', big), one('d', 8000), float('e', [], [0]), float('f', [], [4000])],
    ),
  'a transform of length 2³²': () =>
    fileOf([node('DFT', ['x', 'n'], ['y'])], [one('n', 2n ** 32n)], [port('x', 1, [1, 4, 1])]),
  'an image of 2²⁶ rows': () =>
    fileOf([node('Resize', ['x', '', '', 's'], ['y'])], [list('s', 1, 1, 2n ** 26n, 2)], [image]),
  'a sparse tensor of 2³¹': () =>
    encode('Model', {
      opsetImport: [{ domain: '', version: 21n }],
      graph: {
        ...graph({ inputs: [x], outputs: [y], nodes: [node('Add', ['x', 'w'], ['y'])] }),
        sparseInitializer: [{ values: float('w', [1], [1]), indices: int64('i', [1], [0n]), dims: [big] }],
      },
    }),
  'windows of 10⁹ elements': () =>
    fileOf(
      [
        node(
          'AveragePool',
          ['x'],
          ['y'],
          [attribute('kernel_shape', [30_000, 30_000]), attribute('pads', [20_000, 20_000, 20_000, 20_000])],
        ),
      ],
      [],
      [image],
    ),
  'functions that double 20 times': () => laughs(20),
  'functions that double 30 times': () => laughs(30),
  'a loop of 2⁶³ rounds': () => loop(round, 2n ** 63n - 1n),
  'a loop of 65,536 rounds': () => loop(round, 65_536n),
  'loops in loops': () => loop(around(around(round)), 100n),
  'a scan of 50,000': () =>
    fileOf(
      [node('Scan', ['z', 'x'], ['y'], [integer('num_scan_inputs', 1n), attribute('body', scanned)])],
      [float('z', [], [0])],
      [port('x', 1, [50_000])],
    ),
  'five million empty nodes': () => {
    const sound = fileOf([node('Neg', ['x'], ['y'])]);
    // A Graph (field 7 of Model) of Nodes (field 1 of Graph) of no bytes.
    const nodes = Uint8Array.from({ length: 10_000_000 }, (_, i) => (i % 2 === 0 ? 0x0a : 0));
    const head = [0x3a];
    for (let rest = nodes.length; rest > 0; rest >>>= 7) head.push((rest & 127) | (rest > 127 ? 128 : 0));
    const file = new Uint8Array(sound.length + head.length + nodes.length);
    file.set(head);
    file.set(nodes, head.length);
    file.set(sound, head.length + nodes.length);
    return file;
  },
};

/** Loads and runs on ones; gives the error's code, or undefined. */
async function codeOf(bytes: Uint8Array, options: LoadOptions = {}): Promise<unknown> {
  try {
    const loaded = await loadOnnx(bytes, options);
    const given = loaded.inputs.map(({ name, shape }) => {
      const size = shape!.reduce<number>((product, dim) => product * Number(dim), 1);
      return [name, new Float32Array(size).fill(1)] as const;
    });
    for (const output of Object.values(await loaded.run(Object.fromEntries(given)))) await output.data();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

describe('refuses, in little time and memory,', () => {
  test.for(Object.entries(greedy))('%s', async ([, bytes]) => {
    const file = bytes();
    let code: unknown;
    const time = await cpuTimeOf(async () => {
      code = await codeOf(file);
    });
    expect(code).toBe('E_LIMIT');
    expect(time).toBeLessThan(8000);
  });
});

describe('a budget', () => {
  const rounds = loop(round, 100n);
  const tall = fileOf([node('Expand', ['x', 's'], ['y'])], [list('s', 1000, 2)]);
  test('of nodes counts those that loops become', async () => {
    expect(await codeOf(rounds, { maxNodes: 700 })).toBe(undefined);
    expect(await codeOf(rounds, { maxNodes: 150 })).toBe('E_LIMIT');
    expect(await codeOf(laughs(3), { maxNodes: 30 })).toBe(undefined);
    expect(await codeOf(laughs(3), { maxNodes: 10 })).toBe('E_LIMIT');
    expect(await codeOf(laughs(12), { maxNodes: Infinity })).toBe(undefined);
  });

  test('is anew for each run', async () => {
    const loaded = await loadOnnx(rounds, { maxNodes: 700 });
    for (let i = 0; i < 5; i++) await (await loaded.run({ x: new Float32Array(2) }))['y']!.data();
  });

  test('of bytes counts values that kernels may never store', async () => {
    expect(await codeOf(tall, { maxBytes: 8000 })).toBe(undefined);
    expect(await codeOf(tall, { maxBytes: 7999 })).toBe('E_LIMIT');
  });

  test('says what it was asked for, and how to allow it', async () => {
    await expect(loadOnnx(laughs(20))).rejects.toThrow(
      /the model needs 100001 nodes or more: the budget is 100000\n  try: loadOnnx\(…, \{ maxNodes: Infinity \}\)/,
    );
    const loaded = await loadOnnx(tall, { maxBytes: 100 });
    await expect(loaded.run({ x: new Float32Array(2) })).rejects.toThrow(
      'Expand (opset 21): a result asks for f32[1000,2] which takes 8000 bytes: the budget is 100',
    );
  });

  test('is a number', async () => {
    for (const wrong of [-1, NaN, '2' as unknown as number])
      for (const name of ['maxBytes', 'maxNodes'] as const)
        await expect(loadOnnx(tall, { [name]: wrong })).rejects.toThrow(`${name} is a number`);
  });
});

test.for(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
  'an operator or a domain called %s is one that is not supported',
  async (name) => {
    expect(await codeOf(fileOf([node(name, ['x'], ['y'])]))).toBe('E_UNSUPPORTED');
    const own = encode('Model', {
      opsetImport: [
        { domain: '', version: 21n },
        { domain: name, version: 1n },
      ],
      graph: graph({ inputs: [x], outputs: [y], nodes: [node('length', ['x'], ['y'], [], name)] }),
    });
    expect(await codeOf(own)).toBe('E_UNSUPPORTED');
  },
);
