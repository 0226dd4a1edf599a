// Names of users are data: whatever they hold, a bundle keeps apart what they keep apart, or says at build time that it cannot.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bundle } from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { add, mul, ones, setDevice, SinterError, tensor, zeros, type Tensor } from '../../src/index.ts';
import { loadStateDict, namedParameters, stateDict } from '../../src/nn/index.ts';
import { exportOnnx, loadOnnx } from '../../src/onnx/index.ts';
import type { Inputs, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { sinter } from '../support/cli.ts';
import { encode, float, graph, modelOf, node, port } from '../support/onnx/file.ts';
import { checkLawAsync } from '../support/property.ts';
import { built, removeFolders, temporary, written } from './bundles.ts';

beforeAll(() => setDevice('wasm:1'));
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

interface Loaded {
  dispose(): void;
  weight(name: string): Promise<Float32Array>;
  readonly [entry: string]: unknown;
}

async function loaded(bundle: Bundle): Promise<Loaded> {
  const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
    load: (options: object) => Promise<Loaded>;
  };
  return load({ target: 'wasm', threads: 1 });
}

type Called = (inputs: Inputs) => Promise<Outputs>;

const hostile = [
  [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'valueOf',
    'prototype',
    'then',
    'length',
    'name',
  ],
  ['class', 'await', 'default', 'model', 'load', 'value', 'value_1', 'console', 'output', 'input', 'input1'],
  [
    'a\nb',
    'c\nd',
    'a\r',
    '\u2028',
    '\0',
    ' ',
    '',
    'a.b',
    'a[0]',
    '[0]',
    '"',
    "'",
    '`',
    '\\',
    '*/',
    '//',
    '${a}',
  ],
  [
    '</script>',
    'a|b',
    '../../x',
    'C:\\con',
    'x',
    'X',
    'é',
    'e\u0301',
    '\ud800',
    '🙂',
    '0',
    '7',
    '-1',
    '@',
    '#?%',
  ],
].flat();
const name = fc.oneof(fc.constantFrom(...hostile), fc.string({ maxLength: 6 }));
const distinctNames = fc.uniqueArray(name, { minLength: 1, maxLength: 6 });

function expectSound({ files, manifest }: Bundle): void {
  const paths = [...files.keys()];
  expect(new Set(paths.map((file) => file.toLowerCase())).size).toBe(paths.length);
  for (const file of paths) expect(file).toMatch(/^[\w$.-]+(?:\/[\w$.-]+)?$/);
  expect(new Set(manifest.weights.map((weight) => weight.name)).size).toBe(manifest.weights.length);
  const [, snippet = ''] = /```js\n([^]*?)```/.exec(String(files.get('README.md'))) ?? [];
  texts.push({ types: String(files.get('index.d.ts')), snippet });
}

/** Of all bundles that were built. */
const texts: { readonly types: string; readonly snippet: string }[] = [];

describe('bundles', () => {
  test('keep inputs and outputs apart that have different names', () =>
    checkLawAsync(25, distinctNames, async (names) => {
      const run = (...[given]: [Record<string, Tensor>]): Record<string, Tensor> =>
        Object.fromEntries(names.map((key, i) => [key, add(mul(given[key]!, i + 1), i)]));
      const inputs = [Object.fromEntries(names.map((key) => [key, zeros([2])]))];
      const bundle = await built([{ name: 'run', fn: run as EntryPoint['fn'], inputs }], {
        targets: ['wasm'],
      });
      expectSound(bundle);
      const bound = await loaded(bundle);
      const given = Object.fromEntries(names.map((key, i) => [key, Float32Array.of(i, 10 + i)]));
      const found = await (bound['run'] as Called)(given);
      bound.dispose();
      expect(Object.keys(found).sort()).toEqual([...names].sort());
      for (const [i, key] of names.entries())
        expect(found[key]).toEqual(Float32Array.of(i * (i + 1) + i, (10 + i) * (i + 1) + i));
    }));

  test('keep the tensors of a state apart, and files of functions', () =>
    checkLawAsync(15, distinctNames, async (names) => {
      const outer = names.slice(0, 2);
      const state = Object.fromEntries(
        outer.map((key, k) => [
          key,
          Object.fromEntries(names.map((own, i) => [own, tensor([k * 10 + i, 1, 2])])),
        ]),
      );
      // The same tensors again under joined keys, which read alike.
      const joined = Object.fromEntries(
        outer.flatMap((key, k) =>
          names.map((own, i) => [`${key}.${own}`, tensor([-(k * 10 + i), 1, 2])] as const),
        ),
      );
      const whole = { ...joined, ...state };
      type State = typeof whole;
      const read = (tree: State): Tensor[] => [
        ...outer.flatMap((key) => names.map((own) => (tree[key] as Record<string, Tensor>)[own]!)),
        ...outer.flatMap((key) =>
          outer.includes(`${key}.`) ? [] : names.map((own) => tree[`${key}.${own}`] as Tensor),
        ),
      ];
      const safe = read(whole).every((item) => 'dtype' in Object(item));
      fc.pre(safe);
      const points = ['go', 'Go', 'GO', ...names.filter((own) => own !== '')].map((label, i): EntryPoint => {
        const fn = (tree: State): object => ({
          all: read(tree).reduce((sum, item, k) => add(sum, mul(item, k + i)), zeros([3])),
        });
        return { name: label, fn: fn as EntryPoint['fn'], inputs: [] };
      });
      const expected = await Promise.all(
        points.map(async ({ fn }) => {
          const { all } = (fn as (tree: State) => { all: Tensor })(whole);
          return Float32Array.from((await all.data()) as Float32Array);
        }),
      );
      let bundle: Bundle;
      try {
        bundle = await built(points, { targets: ['wasm'], state: whole });
      } catch (error) {
        expect(error).toBeInstanceOf(SinterError);
        expect((error as SinterError).message).toMatch(/models have a .* of their own|two functions/s);
        return;
      }
      expectSound(bundle);
      const bound = await loaded(bundle);
      for (const [i, point] of points.entries()) {
        const { all } = await (bound[point.name] as Called)({});
        expect(all).toEqual(expected[i]);
      }
      bound.dispose();
    }));

  test('say where names read alike', async () => {
    const fn = ({ a, ...rest }: { a: { b: Tensor }; 'a.b': Tensor }): Tensor => add(a.b, rest['a.b']);
    const inputs = [{ a: { b: ones([2]) }, 'a.b': ones([2]) }];
    const point = { name: 'run', fn: fn as EntryPoint['fn'], inputs };
    await expect(built([point], { targets: ['wasm'] })).rejects.toThrow(
      'build: run takes two values called "a.b": calls tell them apart by name',
    );
    const twins = (x: Tensor): object => ({ a: [x], 'a[0]': mul(x, 2) });
    await expect(
      built([{ name: 'run', fn: twins as EntryPoint['fn'], inputs: [ones([2])] }], { targets: ['wasm'] }),
    ).rejects.toThrow('build: run returns two values called "a[0]"');
    const one = { name: 'run', fn: ((x: Tensor) => x) as EntryPoint['fn'], inputs: [ones([2])] };
    await expect(built([one, one], { targets: ['wasm'] })).rejects.toThrow('two functions are called run');
    await expect(built([{ ...one, name: '__proto__' }], { targets: ['wasm'] })).rejects.toThrow(
      'of their own',
    );
  });

  test('keep weights apart from the parts of packed ones', async () => {
    const whole = tensor(
      Array.from({ length: 1024 }, (_, i) => i / 64 - 8),
      { shape: [32, 32] },
    );
    const state = { w: whole, 'w.scale': tensor([1, 2, 3]) };
    const point = {
      name: 'run',
      fn: ((tree: typeof state) => ({ y: add(tree.w.sum(), tree['w.scale']) })) as EntryPoint['fn'],
      inputs: [],
    };
    const bundle = await built([point], { targets: ['wasm'], state, format: 'q8_0' });
    expectSound(bundle);
    const bound = await loaded(bundle);
    expect(await bound.weight('w.scale')).toEqual(Float32Array.of(1, 2, 3));
    bound.dispose();
  });

  test('of an ONNX model have its names, be there line breaks in them', async () => {
    const file = path.join(import.meta.dirname, '../../../shared/trial/bugs/14-names-collide.onnx');
    const own = encodedDifference('a\nb', 'c\nd');
    for (const bytes of [own, readIfThere(file)]) {
      if (bytes === undefined) continue;
      const folder = temporary();
      const source = path.join(folder, 'm.onnx');
      writeFileSync(source, bytes);
      const out = path.join(folder, 'bundle');
      const said = await sinter('build', source, '--target', 'wasm', '--out', out);
      expect([said.code, said.err]).toEqual([0, '']);
      const { load } = (await import(path.join(out, 'index.js'))) as { load: () => Promise<Loaded> };
      const bound = await load();
      const given = { 'a\nb': Float32Array.of(5, 1), 'c\nd': Float32Array.of(1, 5) };
      expect((await (bound['run'] as Called)(given))['y']).toEqual(Float32Array.of(4, -4));
      bound.dispose();
    }
  });
});

function readIfThere(file: string): Uint8Array | undefined {
  try {
    return readFileSync(file);
  } catch {
    console.log(`${file} is not there: the model made here stands for it`);
    return undefined;
  }
}

/** y = a − b, of two inputs of these names. */
function encodedDifference(a: string, b: string): Uint8Array {
  return modelOf({
    inputs: [port(a, 1, [2]), port(b, 1, [2])],
    outputs: [port('y', 1, [2])],
    nodes: [node('Sub', [a, b], ['y'])],
  });
}

describe('models', () => {
  test('take inputs and give outputs and weights of any names', () =>
    checkLawAsync(
      60,
      fc.uniqueArray(
        name.filter((own) => own !== ''),
        { minLength: 4, maxLength: 4 },
      ),
      async (names) => {
        // What is no Unicode text cannot stand in a file.
        fc.pre(names.every((own) => !/\p{Cs}/u.test(own)));
        const [a, b, w, y] = names as [string, string, string, string];
        const found = await loadOnnx(
          modelOf({
            inputs: [port(a, 1, [2]), port(b, 1, [2])],
            outputs: [port(y, 1, [2])],
            initializers: [float(w, [2], [100, 200])],
            nodes: [node('Sub', [a, b], [`${a}${b}${w}${y}`]), node('Add', [`${a}${b}${w}${y}`, w], [y])],
          }),
        );
        expect(Object.keys(found.parameters)).toEqual([w]);
        const given = { [a]: Float32Array.of(5, 1), [b]: Float32Array.of(1, 5) };
        const results = await found.run(given);
        expect(Object.keys(results)).toEqual([y]);
        expect(await results[y]!.data()).toEqual(Float32Array.of(104, 196));
        await expect(found.run({ [a]: given[a]! })).rejects.toThrow(`input '${b}' is missing`);
      },
    ));

  test('keep what functions give and take apart when they are exported', () =>
    checkLawAsync(30, distinctNames, async (given) => {
      // Keys that are whole numbers come first in objects.
      const names = Object.keys(Object.fromEntries(given.map((key) => [key, 0])));
      const run = (...[x]: [Record<string, Tensor>]): Record<string, Tensor> =>
        Object.fromEntries(names.map((key, i) => [key, add(mul(x[key]!, i + 1), i)]));
      const inputs = [Object.fromEntries(names.map((key) => [key, zeros([2])]))];
      let exported;
      try {
        exported = await exportOnnx(run as (...args: never[]) => unknown, inputs);
      } catch (error) {
        expect((error as Error).message).toContain('names of Unicode letters');
        expect(names.some((own) => own === '' || /[\0\p{Cs}]/u.test(own))).toBe(true);
        return;
      }
      const again = await loadOnnx(exported.bytes);
      const values = Object.fromEntries(again.inputs.map((own, i) => [own.name, Float32Array.of(i, 10 + i)]));
      const found = Object.values(await again.run(values));
      expect(found).toHaveLength(names.length);
      for (const [i, item] of found.entries())
        expect(await item.data()).toEqual(Float32Array.of(i * (i + 1) + i, (10 + i) * (i + 1) + i));
    }));

  test('with two values of a name are no models', async () => {
    const twice = encode('Model', {
      opsetImport: [{ domain: '', version: 21n }],
      graph: graph({
        inputs: [port('x', 1, [2]), port('x', 1, [2])],
        outputs: [port('y', 1, [2])],
        nodes: [node('Relu', ['x'], ['y'])],
      }),
    });
    await expect(loadOnnx(twice)).rejects.toThrow("there are two inputs 'x'");
  });
});

test('parameters whose names read alike are no two parameters in silence', () => {
  const net = { a: { b: ones([2]).requiresGrad_() }, 'a.b': ones([2]).requiresGrad_() };
  for (const read of [namedParameters, stateDict, (it: unknown) => loadStateDict(it, {})])
    expect(() => read(net)).toThrow('two tensors of the model are called "a.b"');
});

test('types of bundles hold for what their READMEs show', () => {
  const folder = temporary();
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  const files = texts.map(({ types, snippet }, i) => {
    mkdirSync(path.join(folder, String(i)));
    writeFileSync(path.join(folder, String(i), 'index.d.ts'), types);
    const file = path.join(folder, String(i), 'snippet.ts');
    writeFileSync(file, snippet);
    return file;
  });
  expect(files.length).toBeGreaterThan(0);
  const project = path.resolve(import.meta.dirname, '../..');
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc');
  const options = '--ignoreConfig --noEmit --strict --module nodenext --target esnext --lib esnext,dom';
  const { stdout, status } = spawnSync(process.execPath, [compiler, ...options.split(' '), ...files], {
    encoding: 'utf8',
  });
  expect([stdout, status]).toEqual(['', 0]);
});
