// Models of text, sequences, maps and optional values: what operators make of strings is what ONNX Runtime makes of them, and what
// users give and get is theirs.

import * as fc from 'fast-check';
import ort from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, tensor, Tensor } from '../../src/index.ts';
import { loadOnnx, type ModelInputs } from '../../src/onnx/index.ts';
import { seed } from '../support/property.ts';
import { encode, graph, modelOf, node, port, type Draft } from '../support/onnx/file.ts';
import { attr } from './peer/draw.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const text = (name: string, shape: readonly (number | string)[]): Draft => port(name, 8, shape);

interface Plain {
  readonly shape: readonly number[];
  readonly values: readonly unknown[];
}

/** Results of ours: of whatever kind, as plain data. */
async function ours(file: Uint8Array, inputs: ModelInputs): Promise<Plain[]> {
  const results = await (await loadOnnx(file)).runValues(inputs);
  return Promise.all(
    Object.values(results).map(async (value): Promise<Plain> => {
      if (value instanceof Tensor) return { shape: value.shape, values: [...(await value.data())] };
      if (value === null || !('strings' in value)) throw new Error('neither a tensor nor text');
      return { shape: value.shape, values: value.strings };
    }),
  );
}

async function peers(file: Uint8Array, inputs: Readonly<Record<string, ort.Tensor>>): Promise<Plain[]> {
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4, intraOpNumThreads: 1 });
  const results = await session.run(inputs);
  await session.release();
  return session.outputNames.map((name) => {
    const { dims, data } = results[name]!;
    return { shape: dims, values: [...data] };
  });
}

/** A model of one node that takes text, on inputs of one shape each. */
async function compareText(
  op: string,
  given: readonly Plain[],
  attributes: readonly Draft[],
  outputs: readonly Draft[],
): Promise<void> {
  const names = given.map((_, i) => `x${i}`);
  const ports = given.map(({ shape }, i) => text(names[i]!, shape));
  const ends = outputs.map(({ name }) => name as string);
  const nodes = [node(op, names, ends, attributes)];
  const file = modelOf({ inputs: ports, outputs, nodes }, 20);
  const asked = given.map(
    ({ shape, values }, i) => [names[i]!, { shape, strings: values as string[] }] as const,
  );
  const told = given.map(
    ({ shape, values }, i) => [names[i]!, new ort.Tensor('string', values as string[], shape)] as const,
  );
  const expected = await peers(file, Object.fromEntries(told));
  expect(await ours(file, Object.fromEntries(asked))).toEqual(expected);
}

const words = fc.constantFrom(
  '',
  'a',
  'B',
  'ab',
  'Ab',
  ' a  b ',
  'b,a',
  ',',
  'a,,b',
  'é',
  '日本',
  '😀',
  '1.5',
  'monday',
);
const row = (shape: readonly number[]): fc.Arbitrary<Plain> => {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return fc.array(words, { minLength: size, maxLength: size }).map((values) => ({ shape, values }));
};
const shapes = fc.constantFrom([3], [1, 4], [2, 3], []);
const open = (name: string, type = 8): Draft => ({ name, type: { tensor: { elemType: type } } });

const stopwords = (values: readonly string[]): Draft[] =>
  values.length === 0 ? [] : [attr.texts('stopwords', values)];

describe('strings, as in ONNX Runtime', () => {
  const laws: Readonly<Record<string, fc.Arbitrary<() => Promise<void>>>> = {
    StringConcat: fc
      .constantFrom<[number[], number[]][]>(
        [[2, 3], [3]],
        [
          [2, 1],
          [1, 3],
        ],
        [[], [2]],
        [[0], [0]],
      )
      .chain(([a, b]) => fc.tuple(row(a), row(b)))
      .map((given) => () => compareText('StringConcat', given, [], [open('y')])),
    StringSplit: fc
      .tuple(shapes.chain(row), fc.constantFrom('', ',', ' ', 'ab'), fc.constantFrom(undefined, 1, 2))
      .map(([given, delimiter, most]) => () => {
        const limit = most === undefined ? [] : [attr.int('maxsplit', most)];
        // White space around, and what an empty string is split into, are other things there.
        const clean = { ...given, values: given.values.map((x) => (x as string).trim() || 'a') };
        return compareText(
          'StringSplit',
          [clean],
          [attr.text('delimiter', delimiter), ...limit],
          [open('y'), open('z', 7)],
        );
      }),
    StringNormalizer: fc
      .tuple(
        fc.constantFrom([4], [1, 3]).chain(row),
        fc.constantFrom('NONE', 'LOWER', 'UPPER'),
        fc.constantFrom(0, 1),
        fc.subarray(['a', 'AB', 'b,a']),
      )
      .map(([given, action, exact, stops]) => () => {
        // Its lower case of letters beyond ASCII depends on the machine's locales.
        const ascii = {
          ...given,
          values: given.values.map((x) => (/^[ -~]*$/.test(x as string) ? x : 'Zz')),
        };
        const options = [
          attr.text('case_change_action', action),
          attr.int('is_case_sensitive', exact),
          attr.text('locale', 'C'),
        ];
        return compareText('StringNormalizer', [ascii], [...options, ...stopwords(stops)], [open('y')]);
      }),
    RegexFullMatch: fc
      .tuple(
        shapes.chain(row),
        fc.constantFrom(
          '',
          'a*',
          '(?i)ab?',
          '.',
          '\\s*a\\s+b\\s*',
          '[[:alpha:]]+',
          '\\d+\\.\\d',
          '\\pL+',
          '[^a]',
          '[^]a]*',
          '(?P<x>a|b),+.*',
          '\\Qb,a\\E',
          'a|',
          '\\Aab\\z',
        ),
      )
      .map(
        ([given, pattern]) =>
          () =>
            compareText('RegexFullMatch', [given], [attr.text('pattern', pattern)], [open('y', 9)]),
      ),
    TfIdfVectorizer: fc
      .tuple(
        fc.constantFrom([5], [2, 4]).chain(row),
        fc.constantFrom('TF', 'IDF', 'TFIDF'),
        fc.integer({ min: 0, max: 2 }),
        fc.constantFrom([1, 1], [1, 2], [2, 2]),
      )
      .map(
        ([given, mode, skips, [least, most]]) =>
          () =>
            compareText(
              'TfIdfVectorizer',
              [given],
              [
                attr.text('mode', mode),
                attr.int('max_skip_count', skips),
                attr.int('min_gram_length', least!),
                attr.int('max_gram_length', most!),
                attr.ints('ngram_counts', [0, 3]),
                attr.ints('ngram_indexes', [0, 1, 2, 3, 4]),
                attr.texts('pool_strings', ['a', 'B', '', 'a', 'B', 'ab', 'a']),
                attr.floats('weights', [1, 2, 0.5, 3, 4]),
              ],
              [open('y', 1)],
            ),
      ),
  };
  test.each(Object.keys(laws))('%s', async (op) => {
    await fc.assert(
      fc.asyncProperty(laws[op]!, (law) => law()),
      { numRuns: 12, seed },
    );
  });

  test('are not changed as in a language with cases of its own', async () => {
    const options = [attr.text('case_change_action', 'UPPER'), attr.text('locale', 'tr_TR.UTF-8')];
    const nodes = [node('StringNormalizer', ['x'], ['y'], options)];
    const file = modelOf({ inputs: [text('x', [1])], outputs: [open('y')], nodes }, 20);
    await expect(ours(file, { x: { shape: [1], strings: ['i'] } })).rejects.toThrow(/'tr_TR.UTF-8' is not/);
  });

  test('move, join and compare', async () => {
    const file = modelOf(
      {
        inputs: [text('a', ['n']), text('b', ['m'])],
        outputs: [open('joined'), open('same', 9), open('picked'), open('unique'), open('chosen')],
        initializers: [{ name: 'at', dataType: 7, dims: [2n], int64Data: [2n, -1n] }],
        nodes: [
          node('Concat', ['a', 'b'], ['joined'], [attr.int('axis', 0)]),
          node('Equal', ['a', 'b'], ['same']),
          node('Gather', ['joined', 'at'], ['picked'], []),
          node('Unique', ['joined'], ['unique'], []),
          node('Where', ['same', 'a', 'b'], ['chosen']),
        ],
      },
      20,
    );
    const [a, b] = [
      ['x', '😀', '\uffee', 'x'],
      ['x', 'a', '', 'y'],
    ];
    const expected = await peers(file, {
      a: new ort.Tensor('string', a, [4]),
      b: new ort.Tensor('string', b, [4]),
    });
    const found = await ours(file, { a, b });
    // Truth is 0 and 1 in both.
    expect(found).toEqual(expected);
  });

  test('become numbers and come of them', async () => {
    const file = modelOf(
      {
        inputs: [text('x', ['n']), port('y', 1, ['n'])],
        outputs: [open('f', 1), open('i', 7), open('s'), open('t')],
        nodes: [
          node('Cast', ['x'], ['f'], [attr.int('to', 1)]),
          node('Cast', ['f'], ['w'], [attr.int('to', 7)]),
          node('Cast', ['w'], ['t'], [attr.int('to', 8)]),
          node('Identity', ['w'], ['i']),
          node('Cast', ['y'], ['s'], [attr.int('to', 8)]),
        ],
      },
      20,
    );
    const y = Float32Array.of(0.1, -2.5, Infinity, NaN);
    const [f, i, s, t] = await ours(file, { x: ['1.5', '-2', ' 3e2', '0'], y: tensor(y) });
    expect(f!.values).toEqual([1.5, -2, 300, 0]);
    expect(i!.values).toEqual([1n, -2n, 300n, 0n]);
    expect(s!.values).toEqual(['0.1', '-2.5', 'INF', 'NaN']);
    expect(t!.values).toEqual(['1', '-2', '300', '0']);
  });
});

describe('values of other kinds', () => {
  const listType = (elemType: number): Draft => ({ sequence: { elem: { tensor: { elemType } } } });

  test('are sequences, given and got as arrays', async () => {
    const file = modelOf({
      inputs: [{ name: 'xs', type: listType(1) }, port('x', 1, [2])],
      outputs: [{ name: 'ys', type: listType(1) }],
      nodes: [node('SequenceInsert', ['xs', 'x'], ['ys'])],
    });
    const model = await loadOnnx(file);
    expect(model.inputs[0]).toMatchObject({ kind: 'sequence', type: 'float', isOptional: false });
    const x = tensor([5, 6]);
    const { ys } = await model.runValues({ xs: [tensor([1]), tensor([[2, 3]])], x });
    const lists = await Promise.all((ys as readonly Tensor[]).map(async (y) => [...(await y.data())]));
    expect(lists).toEqual([[1], [2, 3], [5, 6]]);
    await expect(model.run({ xs: [], x })).rejects.toThrow(/output 'ys' is a sequence[^]*runValues/);
    await expect(model.runValues({ xs: tensor([1]), x })).rejects.toThrow(
      /input 'xs' is a sequence: an array/,
    );
  });

  test('are compiled where only results are', async () => {
    const file = modelOf({
      inputs: [port('x', 1, [4])],
      outputs: [{ name: 'ys', type: listType(1) }],
      nodes: [node('SplitToSequence', ['x', 'two'], ['ys'])],
      initializers: [{ name: 'two', dataType: 7, dims: [], int64Data: [2n] }],
    });
    const model = await loadOnnx(file);
    for (const from of [0, 10]) {
      const { ys } = await model.runValues({ x: Float32Array.of(from, from + 1, from + 2, from + 3) });
      const lists = await Promise.all((ys as readonly Tensor[]).map(async (y) => [...(await y.data())]));
      expect(lists).toEqual([
        [from, from + 1],
        [from + 2, from + 3],
      ]);
    }
  });

  test('are optional values, whose null is no element', async () => {
    const type = { optional: { elem: { tensor: { elemType: 1, shape: { dim: [{ value: 2n }] } } } } };
    const branch = (made: Draft): Draft => graph({ inputs: [], outputs: [port('r', 1, [2])], nodes: [made] });
    const other = { name: 'value', type: 4, t: { dataType: 1, dims: [2n], floatData: [7, 7] } };
    const file = modelOf(
      {
        inputs: [{ name: 'x', type }],
        outputs: [port('y', 1, [2]), { name: 'same', type }],
        nodes: [
          node('OptionalHasElement', ['x'], ['has']),
          node(
            'If',
            ['has'],
            ['y'],
            [
              { name: 'then_branch', type: 5, g: branch(node('OptionalGetElement', ['x'], ['r'])) },
              { name: 'else_branch', type: 5, g: branch(node('Constant', [], ['r'], [other])) },
            ],
          ),
          node('Identity', ['x'], ['same']),
        ],
      },
      18,
    );
    const model = await loadOnnx(file);
    const full = await model.runValues({ x: tensor([1, 2]) });
    expect([...(await (full['y'] as Tensor).data())]).toEqual([1, 2]);
    const empty = await model.runValues({ x: null });
    expect([...(await (empty['y'] as Tensor).data())]).toEqual([7, 7]);
    expect(empty['same']).toBeNull();
  });

  test('are refused where they do not fit', async () => {
    const file = modelOf(
      {
        inputs: [text('x', [2]), port('n', 1, [2])],
        outputs: [open('y'), open('z', 1)],
        nodes: [node('Identity', ['x'], ['y']), node('Neg', ['n'], ['z'])],
      },
      20,
    );
    const model = await loadOnnx(file);
    const n = tensor([1, 2]);
    await expect(model.run({ x: ['a', 'b'], n })).rejects.toThrow(/output 'y' is text/);
    await expect(model.runValues({ x: ['a'], n })).rejects.toThrow(/input 'x' is string\[2\], got 1 strings/);
    await expect(model.runValues({ x: n, n })).rejects.toThrow(/input 'x' is text/);
    await expect(model.runValues({ x: ['a', 'b'], n: ['a', 'b'] })).rejects.toThrow(/'n' is a tensor/);
    await expect(model.runValues({ x: null, n })).rejects.toThrow(/not an optional value/);
    const added = modelOf(
      { inputs: [text('x', [2])], outputs: [open('y')], nodes: [node('Add', ['x', 'x'], ['y'])] },
      20,
    );
    await expect((await loadOnnx(added)).runValues({ x: ['a', 'b'] })).rejects.toThrow(
      /Add.*takes no strings/,
    );
    const record = model.toFunction({ fixed: { x: ['a', 'b'] }, outputs: ['z'] });
    expect([...(await record({ n })['z']!.data())]).toEqual([-1, -2]);
    expect(() => model.toFunction({ outputs: ['w'] })).toThrow(/no output 'w'/);
  });

  test('of files that are broken are refused', async () => {
    const bad = { name: 'x', dataType: 8, dims: [2n], stringData: [new Uint8Array([97])] };
    const of = graph({
      inputs: [],
      outputs: [open('y')],
      nodes: [node('Identity', ['x'], ['y'])],
      initializers: [bad],
    });
    const file = encode('Model', { irVersion: 10n, opsetImport: [{ version: 20n }], graph: of });
    await expect(loadOnnx(file)).rejects.toThrow(/2 strings, and the file has 1/);
  });
});
