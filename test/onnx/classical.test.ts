// The operators of classical machine learning (ai.onnx.ml) give what ONNX Runtime gives, on random models; and a pipeline as
// scikit-learn's converters write them runs, is compiled, and is a function.

import * as fc from 'fast-check';
import ort from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compile, setDevice, tensor, Tensor } from '../../src/index.ts';
import { loadOnnx, type ModelInputs, type ModelValue } from '../../src/onnx/index.ts';
import { seed } from '../support/property.ts';
import { encode, graph, node, port, type Draft } from '../support/onnx/file.ts';
import { attr } from './peer/draw.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const utf8 = new TextEncoder();
const ml = 'ai.onnx.ml';

/** The bytes of a model of operators of the domain. */
function fileOf(
  inputs: readonly Draft[],
  outputs: readonly Draft[],
  nodes: readonly Draft[],
  version = 3n,
): Uint8Array {
  const opsetImport = [{ version: 17n }, { domain: ml, version }];
  return encode('Model', { irVersion: 8n, opsetImport, graph: graph({ inputs, outputs, nodes }) });
}

const open = (name: string, elemType: number): Draft => ({ name, type: { tensor: { elemType } } });

interface Plain {
  readonly shape: readonly number[];
  readonly values: readonly unknown[];
}

async function plain(value: ModelValue): Promise<Plain> {
  if (value instanceof Tensor) return { shape: value.shape, values: [...(await value.data())] };
  if (value === null || !('strings' in value)) throw new Error('neither a tensor nor text');
  return { shape: value.shape, values: value.strings };
}

function close(actual: Plain, expected: Plain, what: string, tolerance: number): void {
  const told = `${what}: ${JSON.stringify(actual, show)} for ${JSON.stringify(expected, show)}`;
  expect(actual.shape, told).toEqual(expected.shape);
  expected.values.forEach((value, i) => {
    const own = actual.values[i];
    const isClose =
      typeof value === 'number' && typeof own === 'number'
        ? Object.is(value, own) || value === own || Math.abs(value - own) <= tolerance * (1 + Math.abs(value))
        : value === own;
    expect(isClose, told).toBe(true);
  });
}

const show = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value);

interface Case {
  readonly op: string;
  readonly attributes: readonly Draft[];
  readonly x: {
    readonly type: 'float32' | 'int64' | 'string';
    readonly shape: readonly number[];
    readonly values: readonly unknown[];
  };
  /** Element types of the results. */
  readonly outputs: readonly number[];
  readonly version?: bigint;
  /** Results that are compared by their labels as well; by default all. */
  readonly tolerance?: number;
}

const codes = { float32: 1, int64: 7, string: 8 } as const;

function arrayOf({ type, values }: Case['x']): Float32Array | BigInt64Array | string[] {
  if (type === 'string') return values as string[];
  return type === 'int64' ? BigInt64Array.from(values as bigint[]) : Float32Array.from(values as number[]);
}

async function compare({ op, attributes, x, outputs, version, tolerance = 1e-4 }: Case): Promise<void> {
  const names = outputs.map((_, i) => `y${i}`);
  const ends = names.map((name, i) => open(name, outputs[i]!));
  const made = node(op, ['x'], names, attributes, ml);
  const file = fileOf([port('x', codes[x.type], x.shape)], ends, [made], version);
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4, intraOpNumThreads: 1 });
  const array = arrayOf(x);
  const told = await session.run({ x: new ort.Tensor(x.type, array as never, x.shape) });
  await session.release();
  const given =
    x.type === 'string'
      ? { shape: x.shape, strings: array as string[] }
      : tensor(array as never, { shape: x.shape });
  const found = await (await loadOnnx(file)).runValues({ x: given } as ModelInputs);
  for (const name of names) {
    const { dims, data } = told[name]!;
    const what = `${op} ${JSON.stringify(attributes.map(readable), show)} of ${JSON.stringify(x, show)}: ${name}`;
    close(await plain(found[name]!), { shape: dims, values: [...data] }, what, tolerance);
  }
}

function readable(draft: Draft): unknown {
  const text = (bytes: unknown): unknown =>
    bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : bytes;
  return Object.fromEntries(
    Object.entries(draft).map(([key, value]) => [key, Array.isArray(value) ? value.map(text) : text(value)]),
  );
}

const number = fc.integer({ min: -20, max: 20 }).map((value) => value / 8);
const numbers = (count: number): fc.Arbitrary<number[]> =>
  fc.array(number, { minLength: count, maxLength: count });
const batch = (rows: number, width: number): fc.Arbitrary<Case['x']> =>
  numbers(rows * width).map((values) => ({ type: 'float32', shape: [rows, width], values }));
const post = fc.constantFrom('NONE', 'LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO');
const text = (name: string, value: string): Draft => ({ name, type: 3, s: utf8.encode(value) });

/** Labels of so many classes, of either type. */
const labelsOf = (count: number, ints: string): fc.Arbitrary<{ draft: Draft; type: number }> =>
  fc.constantFrom(
    { draft: attr.texts('classlabels_strings', ['b', 'a', 'd', 'c'].slice(0, count)), type: 8 },
    { draft: attr.ints(ints, [7, -3, 12, 0].slice(0, count)), type: 7 },
  );

interface Tree {
  readonly feature: number;
  readonly value: number;
  readonly mode: string;
  readonly nan: number;
  readonly yes: Tree | undefined;
  readonly no: Tree | undefined;
}

const tree: fc.Arbitrary<Tree | undefined> = fc.letrec<{ tree: Tree | undefined }>((tie) => ({
  tree: fc.option(
    fc.record({
      feature: fc.nat(2),
      value: number,
      mode: fc.constantFrom(
        'BRANCH_LEQ',
        'BRANCH_LEQ',
        'BRANCH_LT',
        'BRANCH_GTE',
        'BRANCH_GT',
        'BRANCH_EQ',
        'BRANCH_NEQ',
      ),
      nan: fc.nat(1),
      yes: tie('tree'),
      no: tie('tree'),
    }),
    { nil: undefined, maxDepth: 4, depthSize: 'medium' },
  ),
})).tree;

/** Attributes of nodes of trees; `weigh` gives the votes of the leaf of this number. */
function treeAttributes(
  trees: readonly (Tree | undefined)[],
  kind: 'class' | 'target',
  isEven: boolean,
  weigh: (leaf: number) => readonly (readonly [number, number])[],
): Draft[] {
  const rows: { tree: number; id: number; node: Tree | undefined; yes: number; no: number }[] = [];
  const votes: { tree: number; id: number; to: number; weight: number }[] = [];
  let leaves = 0;
  trees.forEach((root, at) => {
    let next = 0;
    const add = (given: Tree | undefined): number => {
      const id = next++;
      const row = { tree: at, id, node: given, yes: 0, no: 0 };
      rows.push(row);
      if (given === undefined) {
        for (const [to, weight] of weigh(leaves++)) votes.push({ tree: at, id, to, weight });
      } else {
        row.yes = add(given.yes);
        row.no = add(given.no);
      }
      return id;
    };
    add(root);
  });
  const modeOf = (given: Tree | undefined): string =>
    given === undefined ? 'LEAF' : isEven ? 'BRANCH_LEQ' : given.mode;
  return [
    attr.ints(
      'nodes_treeids',
      rows.map((row) => row.tree),
    ),
    attr.ints(
      'nodes_nodeids',
      rows.map((row) => row.id),
    ),
    attr.ints(
      'nodes_featureids',
      rows.map((row) => row.node?.feature ?? 0),
    ),
    attr.floats(
      'nodes_values',
      rows.map((row) => row.node?.value ?? 0),
    ),
    attr.texts(
      'nodes_modes',
      rows.map((row) => modeOf(row.node)),
    ),
    attr.ints(
      'nodes_truenodeids',
      rows.map((row) => row.yes),
    ),
    attr.ints(
      'nodes_falsenodeids',
      rows.map((row) => row.no),
    ),
    attr.ints(
      'nodes_missing_value_tracks_true',
      rows.map((row) => row.node?.nan ?? 0),
    ),
    attr.ints(
      `${kind}_treeids`,
      votes.map((vote) => vote.tree),
    ),
    attr.ints(
      `${kind}_nodeids`,
      votes.map((vote) => vote.id),
    ),
    attr.ints(
      `${kind}_ids`,
      votes.map((vote) => vote.to),
    ),
    attr.floats(
      `${kind}_weights`,
      votes.map((vote) => vote.weight),
    ),
  ];
}

const forest = fc.record({
  trees: fc.array(tree, { minLength: 1, maxLength: 3 }),
  isEven: fc.boolean(),
  weights: numbers(8),
});
const withGaps = batch(4, 3).map((x) => ({
  ...x,
  values: x.values.map((value, i) => (i === 5 ? NaN : value)),
}));

const cases: Readonly<Record<string, fc.Arbitrary<Case>>> = {
  Scaler: fc.tuple(batch(3, 4), numbers(4), fc.constantFrom(1, 4)).map(([x, list, count]) => ({
    op: 'Scaler',
    attributes: [
      attr.floats('offset', list.slice(0, count)),
      attr.floats('scale', list.toReversed().slice(0, count)),
    ],
    x,
    outputs: [1],
  })),
  Normalizer: fc.tuple(batch(3, 4), fc.constantFrom('MAX', 'L1', 'L2')).map(([x, norm]) => ({
    op: 'Normalizer',
    attributes: [text('norm', norm)],
    x: { ...x, values: x.values.map((value) => Math.abs(value as number) + (norm === 'MAX' ? 1 : 0)) },
    outputs: [1],
  })),
  Binarizer: fc.tuple(batch(2, 3), number).map(([x, threshold]) => ({
    op: 'Binarizer',
    attributes: [attr.float('threshold', threshold)],
    x,
    outputs: [1],
  })),
  Imputer: fc
    .tuple(withGaps, fc.constantFrom(NaN, 0.5), numbers(3), fc.constantFrom(1, 3))
    .map(([x, gone, list, count]) => ({
      op: 'Imputer',
      attributes: [
        attr.float('replaced_value_float', gone),
        attr.floats('imputed_value_floats', list.slice(0, count)),
      ],
      x,
      outputs: [1],
    })),
  LabelEncoder: fc
    .tuple(
      fc.constantFrom('strings', 'int64s', 'floats'),
      fc.constantFrom('strings', 'int64s', 'floats'),
      fc.array(fc.nat(5), { minLength: 4, maxLength: 4 }),
    )
    .map(([from, to, picks]) => {
      const lists = {
        strings: ['b', 'a', '', 'zz'],
        int64s: [3, -1, 5, 2],
        floats: [0.5, -1, NaN, 2],
      } as const;
      const drafted = (name: string, kind: keyof typeof lists): Draft => {
        if (kind === 'strings') return attr.texts(name, [...lists.strings]);
        return kind === 'int64s' ? attr.ints(name, [...lists.int64s]) : attr.floats(name, [...lists.floats]);
      };
      const kinds = { strings: 'string', int64s: 'int64', floats: 'float32' } as const;
      const own: readonly unknown[] = [
        ...lists[from as 'floats'],
        from === 'strings' ? 'none' : 9,
        from === 'strings' ? 'x' : 8,
      ];
      const values = picks.map((pick) => (from === 'int64s' ? BigInt(own[pick] as number) : own[pick]));
      return {
        op: 'LabelEncoder',
        attributes: [drafted(`keys_${from}`, from as 'floats'), drafted(`values_${to}`, to as 'floats')],
        x: { type: kinds[from as 'floats'], shape: [2, 2], values },
        outputs: [codes[kinds[to as 'floats']]],
        version: 4n,
      };
    }),
  OneHotEncoder: fc
    .array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 3, maxLength: 3 })
    .map((values) => ({
      op: 'OneHotEncoder',
      attributes: [attr.texts('cats_strings', ['c', 'a', 'b'])],
      x: { type: 'string', shape: [3], values },
      outputs: [1],
    })),
  CategoryMapper: fc
    .array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 3, maxLength: 3 })
    .map((values) => ({
      op: 'CategoryMapper',
      attributes: [
        attr.texts('cats_strings', ['c', 'a', 'b']),
        attr.ints('cats_int64s', [4, 8, 6]),
        attr.int('default_int64', 3),
      ],
      x: { type: 'string', shape: [3], values },
      outputs: [7],
    })),
  LinearRegressor: fc.tuple(batch(3, 4), numbers(8), numbers(2)).map(([x, coefficients, intercepts]) => ({
    op: 'LinearRegressor',
    attributes: [
      attr.floats('coefficients', coefficients),
      attr.floats('intercepts', intercepts),
      attr.int('targets', 2),
    ],
    x,
    outputs: [1],
  })),
  LinearClassifier: fc
    .tuple(fc.constantFrom(2, 3), post)
    .chain(([classes, name]) =>
      fc.tuple(
        batch(4, 3),
        numbers(3 * classes),
        numbers(classes),
        labelsOf(classes, 'classlabels_ints'),
        fc.constant(name),
      ),
    )
    .map(([x, coefficients, intercepts, { draft, type }, name]) => ({
      op: 'LinearClassifier',
      attributes: [
        attr.floats('coefficients', coefficients),
        attr.floats('intercepts', intercepts),
        draft,
        text('post_transform', name),
      ],
      x,
      outputs: [type, 1],
    })),
  SVMRegressor: fc
    .tuple(
      batch(3, 2),
      fc.constantFrom('LINEAR', 'RBF', 'POLY', 'SIGMOID'),
      numbers(6),
      numbers(3),
      number,
      fc.nat(1),
    )
    .map(([x, kind, vectors, coefficients, rho, isOne]) => ({
      op: 'SVMRegressor',
      attributes: [
        text('kernel_type', kind),
        attr.floats('kernel_params', [0.5, 0.25, 2]),
        attr.floats('support_vectors', vectors),
        attr.floats('coefficients', coefficients),
        attr.floats('rho', [rho]),
        attr.int('n_supports', 3),
        attr.int('one_class', isOne),
      ],
      x,
      outputs: [1],
    })),
  SVMClassifier: fc
    .tuple(
      batch(4, 2),
      fc.constantFrom('LINEAR', 'RBF', 'POLY'),
      numbers(12),
      numbers(12),
      numbers(3),
      fc.boolean(),
      labelsOf(3, 'classlabels_ints'),
    )
    .map(([x, kind, vectors, coefficients, rho, isLikely, { draft, type }]) => ({
      op: 'SVMClassifier',
      attributes: [
        text('kernel_type', kind),
        attr.floats('kernel_params', [0.5, 0.25, 2]),
        attr.ints('vectors_per_class', [2, 1, 3]),
        attr.floats('support_vectors', vectors),
        attr.floats('coefficients', coefficients),
        attr.floats('rho', rho),
        draft,
        ...(isLikely ? [attr.floats('prob_a', [-1, -0.5, -2]), attr.floats('prob_b', [0.1, 0, -0.2])] : []),
      ],
      x,
      outputs: [type, 1],
      tolerance: 2e-3,
    })),
  TreeEnsembleRegressor: fc
    .tuple(
      withGaps,
      forest,
      fc.constantFrom('SUM', 'AVERAGE', 'MIN', 'MAX'),
      fc.constantFrom('NONE', 'LOGISTIC'),
      numbers(2),
      fc.boolean(),
    )
    .map(([x, { trees, isEven, weights }, aggregate, name, base, isBased]) => ({
      op: 'TreeEnsembleRegressor',
      attributes: [
        ...treeAttributes(trees, 'target', isEven, (leaf) => [
          [0, weights[leaf % 8]!],
          [1, weights[(leaf + 3) % 8]!],
        ]),
        attr.int('n_targets', 2),
        text('aggregate_function', aggregate),
        text('post_transform', name),
        ...(isBased ? [attr.floats('base_values', base)] : []),
      ],
      x,
      outputs: [1],
    })),
  TreeEnsembleClassifier: fc
    .tuple(withGaps, forest, post, labelsOf(3, 'classlabels_int64s'))
    .map(([x, { trees, isEven, weights }, name, { draft, type }]) => {
      const count = ((draft['strings'] ?? draft['ints']) as unknown[]).length;
      return {
        op: 'TreeEnsembleClassifier',
        attributes: [
          ...treeAttributes(trees, 'class', isEven, (leaf) =>
            Array.from({ length: count }, (_, to) => [to, weights[(leaf + 3 * to) % 8]! + to / 16] as const),
          ),
          draft,
          text('post_transform', name),
        ],
        x,
        outputs: [type, 1],
      };
    }),
  'TreeEnsembleClassifier of one of two': fc
    .tuple(
      withGaps,
      forest,
      fc.constantFrom('NONE', 'LOGISTIC', 'SOFTMAX'),
      labelsOf(2, 'classlabels_int64s'),
      fc.boolean(),
      fc.nat(1),
    )
    .map(([x, { trees, isEven, weights }, name, { draft, type }, isShare, voted]) => ({
      op: 'TreeEnsembleClassifier',
      attributes: [
        ...treeAttributes(trees, 'class', isEven, (leaf) => [
          [voted, isShare ? Math.abs(weights[leaf % 8]!) / 2 : weights[leaf % 8]! || -1],
        ]),
        draft,
        text('post_transform', name),
      ],
      x,
      outputs: [type, 1],
    })),
};

describe('nodes as in ONNX Runtime', () => {
  test.each(Object.keys(cases))('%s', async (name) => {
    await fc.assert(fc.asyncProperty(cases[name]!, compare), {
      numRuns: Number(process.env['SINTER_PEER_RUNS'] ?? 8),
      seed,
    });
  });
});

describe('maps', () => {
  const mapType = (elemType: number, key: number): Draft => ({
    map: { key, value: { tensor: { elemType } } },
  });

  test('become rows by a vocabulary, or by the order of their keys', async () => {
    const vectors = fileOf(
      [{ name: 'm', type: mapType(1, 8) }],
      [open('y', 1)],
      [node('DictVectorizer', ['m'], ['y'], [attr.texts('string_vocabulary', ['a', 'c', 'b', 'z'])], ml)],
    );
    const dict = await (await loadOnnx(vectors)).runValues({ m: { a: 4, c: 8 } });
    expect(await plain(dict['y']!)).toEqual({ shape: [1, 4], values: [4, 8, 0, 0] });
    const casts = fileOf(
      [{ name: 'm', type: mapType(1, 7) }],
      [open('dense', 1), open('sparse', 7)],
      [
        node('CastMap', ['m'], ['dense'], [text('cast_to', 'TO_FLOAT')], ml),
        node(
          'CastMap',
          ['m'],
          ['sparse'],
          [text('cast_to', 'TO_INT64'), text('map_form', 'SPARSE'), attr.int('max_map', 4)],
          ml,
        ),
      ],
    );
    const model = await loadOnnx(casts);
    const found = await model.runValues({
      m: new Map([
        [3, 1.5],
        [0, -2],
      ]),
    });
    expect(await plain(found['dense']!)).toEqual({ shape: [1, 2], values: [-2, 1.5] });
    expect(await plain(found['sparse']!)).toEqual({ shape: [1, 4], values: [-2n, 0n, 0n, 1n] });
    await expect(model.runValues({ m: new Map([[9, 1]]) })).rejects.toThrow(/the key 9 is outside of 4/);
  });
});

test('a pipeline of text and numbers is one model', async () => {
  const maps = { sequence: { elem: { map: { key: 8, value: { tensor: { elemType: 1 } } } } } };
  const nodes = [
    node(
      'Imputer',
      ['x'],
      ['full'],
      [attr.float('replaced_value_float', NaN), attr.floats('imputed_value_floats', [1, 2])],
      ml,
    ),
    node('Scaler', ['full'], ['scaled'], [attr.floats('offset', [1, 0]), attr.floats('scale', [2, 0.5])], ml),
    node('OneHotEncoder', ['kind'], ['hot'], [attr.texts('cats_strings', ['cat', 'dog'])], ml),
    node('FeatureVectorizer', ['scaled', 'hot'], ['features'], [attr.ints('inputdimensions', [2, 2])], ml),
    node(
      'LinearClassifier',
      ['features'],
      ['label', 'scores'],
      [
        attr.floats('coefficients', [1, 0, 1, 0, -1, 1, 0, 1]),
        attr.floats('intercepts', [0.25, 0]),
        attr.texts('classlabels_strings', ['yes', 'no']),
        text('post_transform', 'SOFTMAX'),
      ],
      ml,
    ),
    node('ZipMap', ['scores'], ['chances'], [attr.texts('classlabels_strings', ['yes', 'no'])], ml),
  ];
  const file = fileOf(
    [port('x', 1, ['n', 2]), port('kind', 8, ['n'])],
    [open('label', 8), { name: 'chances', type: maps }, open('scores', 1)],
    nodes,
  );
  const model = await loadOnnx(file);
  const x = Float32Array.of(0.5, 1, NaN, 4, -1, NaN);
  const kind = ['cat', 'dog', 'bird'];
  const found = await model.runValues({ x, kind });
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4 });
  const told = await session.run(
    { x: new ort.Tensor('float32', x, [3, 2]), kind: new ort.Tensor('string', kind, [3]) },
    ['label', 'scores'],
  );
  await session.release();
  const scores = [...(told['scores']!.data as Float32Array)];
  expect((await plain(found['label']!)).values).toEqual([...told['label']!.data]);
  close(await plain(found['scores']!), { shape: [3, 2], values: scores }, 'scores', 1e-5);
  const maps2 = found['chances'] as ReadonlyMap<string, number>[];
  expect(maps2.map((map) => [...map.keys()])).toEqual([
    ['yes', 'no'],
    ['yes', 'no'],
    ['yes', 'no'],
  ]);
  expect(maps2[2]!.get('no')).toBeCloseTo(scores[5]!, 5);
  const record = compile(model.toFunction({ fixed: { kind: ['dog', 'cat'] }, outputs: ['scores'] }));
  const { scores: own } = record({
    x: tensor([
      [1, 2],
      [3, 4],
    ]),
  }) as { scores: Tensor };
  expect(own.shape).toEqual([2, 2]);
  const again = await model.runValues({ x: Float32Array.of(1, 2, 3, 4), kind: ['dog', 'cat'] });
  close(await plain(own), await plain(again['scores']!), 'compiled', 1e-6);
});
