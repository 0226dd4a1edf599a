// Functions built ahead of time compute what they compute in Sinter, with nothing of Sinter there but the files of their folder.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createServer } from 'node:http';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Bundle } from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { compile, manualSeed, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import { namedParameters } from '../../src/nn/index.ts';
import type { BundleTarget } from '../../src/bundle-runtime/manifest.ts';
import type { Inputs, LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { standIn, useStandIn } from '../cuda/standin/standin.ts';
import { built, removeFolders, temporary, written } from './bundles.ts';
import * as perceptron from './perceptron.ts';

interface Loaded {
  readonly target: string;
  readonly description: string;
  train(inputs: Inputs): Promise<Outputs>;
  predict(inputs: Inputs): Promise<Outputs>;
  noise(inputs: Inputs): Promise<Outputs>;
  weight(name: string): Promise<Float32Array | Int32Array>;
  seed(seed: number): void;
  dispose(): void;
}

const { train, predict, noise, inputs: examples } = perceptron;
const points = Object.entries({ train, predict, noise }).map(([name, fn]): EntryPoint => {
  return { name, fn: fn as EntryPoint['fn'], inputs: examples[name as keyof typeof examples] };
});

let bundle: Bundle;
let folder: string;
let load: (options?: LoadOptions) => Promise<Loaded>;
let given: { readonly images: Float32Array<ArrayBuffer>; readonly labels: Int32Array<ArrayBuffer> };
let gpu: GPUDevice;
beforeAll(async () => {
  setDevice('wasm');
  useStandIn();
  const targets: BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
  bundle = await built(points, { state: perceptron.state, targets });
  folder = written(bundle);
  ({ load } = (await import(path.join(folder, 'index.js'))) as { load: typeof load });
  const [{ images, labels }] = perceptron.inputs.train as [{ images: Tensor; labels: Tensor }, number];
  given = {
    images: Float32Array.from((await images.data()) as Float32Array),
    labels: Int32Array.from((await labels.data()) as Int32Array),
  };
  gpu = await (await softwareAdapter()).requestDevice();
});
afterAll(() => {
  gpu.destroy();
  removeFolders();
  setDevice(undefined);
});

const places: Readonly<Record<string, () => LoadOptions>> = {
  'wasm, one thread': () => ({ target: 'wasm', threads: 1 }),
  'wasm, two threads': () => ({ target: 'wasm', threads: 2 }),
  webgpu: () => ({ target: 'webgpu', device: gpu }),
  cuda: () => ({ target: 'cuda' }),
};

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(found.length).toBe(expected.length);
  Array.from(expected, (value, i) => expect(found[i]).toBeCloseTo(value, 5));
}

interface Pair {
  readonly a: Tensor;
  readonly b: Tensor;
}

/** New values that lie where others are still wanted. */
const trades: Readonly<Record<string, (state: Pair) => { readonly state: Pair; readonly sum: Tensor }>> = {
  'move on': ({ a, b }) => ({ state: { a: b, b: a.add(b) }, sum: a.sum() }),
  'trade places': ({ a, b }) => ({ state: { a: b, b: a }, sum: a.add(b).sum() }),
  'go out as they were': ({ a, b }) => ({ state: { a: a.add(b), b: b.mul(2) }, sum: a }),
  'become of each other': ({ a, b }) => ({ state: { a: b.add(1), b: a.add(2) }, sum: a.sum() }),
};
const traded = new Map<string, string>();
async function tradeOf(name: string, state: Pair): Promise<string> {
  const known = traded.get(name);
  if (known !== undefined) return known;
  const point = { name: 'run', fn: trades[name] as EntryPoint['fn'], inputs: [] };
  const made = written(await built([point], { state, targets: ['cuda', 'webgpu', 'wasm'] }));
  traded.set(name, made);
  return made;
}

/** Calls that hand on arguments, captured tensors and state untouched. */
type Through = Readonly<Record<'swap' | 'same' | 'show', (inputs: Inputs) => Promise<Outputs>>> &
  Pick<Loaded, 'dispose'>;
let throughIn: string | undefined;
async function throughBundle(): Promise<string> {
  const table = tensor([7, 8]);
  const [x, n] = [zeros([4]), zeros([2], { dtype: 'i64' })];
  const calls = {
    swap: [(_: unknown, x: Tensor, n: Tensor) => ({ first: n, second: x, twice: x.mul(2) }), [x, n]],
    same: [(_: unknown, x: Tensor) => x, [x]],
    show: [({ held }: { readonly held: Tensor }) => ({ table, held }), []],
  } as const;
  const through = Object.entries(calls).map(([name, [fn, inputs]]) => ({
    name,
    fn: fn as EntryPoint['fn'],
    inputs,
  }));
  const targets: BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
  return written(await built(through, { state: { held: tensor([1, 2, 3]) }, targets }));
}
async function loaderOf(place: string): Promise<(options: LoadOptions) => Promise<Through>> {
  return (
    (await import(path.join(place, 'index.js'))) as { load: (options: LoadOptions) => Promise<Through> }
  ).load;
}

const found = standIn();
describe.each(Object.keys(places))('on %s', (place) => {
  const options = (): LoadOptions => places[place]!();
  beforeEach(({ skip }) => {
    if (place === 'cuda' && !found.available) skip(found.reason);
  });

  test('train steps lose as Sinter does, and predict by what they have learned', async () => {
    const model = await load(options());
    const step = compile(perceptron.train);
    let { state } = perceptron;
    for (let i = 0; i < 3; i++) {
      const { images, labels } = perceptron.inputs.train[0] as { images: Tensor; labels: Tensor };
      const next = step(state, { images, labels }, 0.02);
      state = next.state;
      const { loss } = await model.train({
        'batch.images': given.images,
        'batch.labels': given.labels,
        rate: 0.02,
      });
      expectClose(loss as Float32Array, (await next.loss.data()) as Float32Array);
    }
    const expected = perceptron.predict(state, tensor([...given.images]).reshape([8, 20]));
    const { logits, best } = await model.predict({ images: given.images });
    expectClose(logits as Float32Array, (await expected.logits.data()) as Float32Array);
    expect([...(best as Int32Array)]).toEqual([...((await expected.best.data()) as Int32Array)]);
    for (const [name, parameter] of namedParameters(state.model))
      expectClose(await model.weight(`model.${name}`), (await parameter.data()) as Float32Array);
    expect([...(await model.weight('optimizer.step'))]).toEqual([3]);
    model.dispose();
  });

  test('random draws are those of the seed, other ones at each call', async () => {
    const model = await load(options());
    model.seed(11);
    manualSeed(11);
    const shift = Float32Array.of(1, 2, 3, 4);
    for (let i = 0; i < 2; i++) {
      const expected = perceptron.noise(perceptron.state, tensor([1, 2, 3, 4]));
      const { output } = await model.noise({ shift });
      expectClose(output as Float32Array, (await expected.data()) as Float32Array);
    }
    model.dispose();
  });

  test('wrong calls say what was expected', async () => {
    const model = await load(options());
    const images = given.images;
    await expect(model.predict({ images: Int32Array.from(images) })).rejects.toThrow(
      'predict: images is f32[8, 20]: expected Float32Array of 160, got Int32Array of 160',
    );
    await expect(model.predict({ images: images.slice(1) })).rejects.toThrow('got Float32Array of 159');
    await expect(model.predict({})).rejects.toThrow('expected Float32Array of 160, got undefined');
    await expect(model.predict({ images, more: 1 })).rejects.toThrow(
      'there is no input more: expected images',
    );
    const whole = { 'batch.images': images, 'batch.labels': given.labels };
    await expect(model.train({ ...whole, rate: images })).rejects.toThrow('rate is a number, got object');
    const gone = images.slice();
    structuredClone(gone, { transfer: [gone.buffer] });
    await expect(model.predict({ images: gone })).rejects.toThrow('got Float32Array of 0');
    for (const seed of [1.5, NaN])
      expect(() => model.seed(seed)).toThrow(
        expect.objectContaining({ code: 'E_VALUE', message: `seed ${seed} is no integer` }),
      );
    await expect(model.weight('nothing')).rejects.toThrow('there is no weight nothing');
    expect((await model.predict({ images }))['logits']).toHaveLength(32);
    model.dispose();
    model.dispose();
    await expect(model.predict({ images })).rejects.toMatchObject({ code: 'E_STATE' });
  });

  test.each(Object.keys(trades))('parts of a state %s, all at once', async (name) => {
    const first = { a: tensor([1, 2, 3]), b: tensor([10, 20, 30]) };
    const fn = trades[name]!;
    const { load: loadTrade } = (await import(path.join(await tradeOf(name, first), 'index.js'))) as {
      load: (options: LoadOptions) => Promise<Loaded & { run(inputs: Inputs): Promise<Outputs> }>;
    };
    const model = await loadTrade(options());
    let state: Pair = first;
    for (let i = 0; i < 3; i++) {
      const next = fn(state);
      const { sum } = await model.run({});
      expect([...(sum as Float32Array)]).toEqual([...((await next.sum.data()) as Float32Array)]);
      ({ state } = next);
      for (const part of ['a', 'b'] as const)
        expect([...(await model.weight(part))]).toEqual([...((await state[part].data()) as Float32Array)]);
    }
    model.dispose();
  });

  test('what is only handed through comes out as it went in', async () => {
    const model = await (await loaderOf((throughIn ??= await throughBundle())))(options());
    const [x, n] = [Float32Array.of(1, -0, NaN, 4), BigInt64Array.of(5n, -6n)];
    expect(await model.swap({ x, n })).toEqual({
      first: n,
      second: x,
      twice: Float32Array.of(2, -0, NaN, 8),
    });
    expect(await model.same({ x })).toEqual({ output: x });
    expect(await model.show({})).toEqual({ table: Float32Array.of(7, 8), held: Float32Array.of(1, 2, 3) });
    model.dispose();
  });

  test('two models keep their states apart', async () => {
    const [one, other] = await Promise.all([load(options()), load(options())]);
    const batch = { 'batch.images': given.images, 'batch.labels': given.labels, rate: 0.1 };
    const [before] = [(await other!.train(batch))['loss']];
    for (let i = 0; i < 4; i++) await one!.train(batch);
    const { loss } = await one!.train(batch);
    expect((loss as Float32Array)[0]).toBeLessThan((before as Float32Array)[0]!);
    expect([...(await other!.weight('optimizer.step'))]).toEqual([1]);
    one!.dispose();
    other!.dispose();
  });
});

describe('the folder', () => {
  test('has code that imports nothing else, of few bytes', async () => {
    const script = bundle.files.get('index.js') as string;
    // `files.js` imports what runs it on CUDA or WebAssembly, or within ranges of sizes, when that is wanted.
    const own = /import\{files as \w+,modules as \w+\}from[`"]\.\/files\.js[`"]/;
    expect(script).toMatch(own);
    expect(script.replace(own, '')).not.toMatch(/\bimport\s*(?:[{*"'(]|\w+\s+from)/);
    const sizes = { webgpu: 6.6, wasm: 8.7 } as const;
    for (const [target, kilobytes] of Object.entries(sizes)) {
      const alone = await built([points[1]!], { state: perceptron.state, targets: [target as 'wasm'] });
      const bytes = gzipSync(alone.files.get('index.js') as string, { level: 9 }).length;
      console.log(`index.js for ${target}: ${bytes} bytes gzipped`);
      expect(bytes).toBeLessThanOrEqual(1000 * kilobytes);
    }
    // Both have what one of them needs in a file beside.
    const both = await built([points[1]!], { state: perceptron.state });
    expect([...both.files.keys()].filter((name) => /^\w+\.js$/.test(name)).toSorted()).toEqual([
      'files.js',
      'index.js',
      'wasm.js',
    ]);
    expect(gzipSync(both.files.get('index.js') as string, { level: 9 }).length).toBeLessThanOrEqual(6650);
  });

  test('runs what its README shows, where there is nothing else', async () => {
    const alone = await built([points[1]!], { state: perceptron.state, targets: ['wasm'] });
    const place = written(alone);
    const snippet = /```js\n([^]*?)```/.exec(alone.files.get('README.md') as string)![1]!;
    fs.writeFileSync(path.join(place, 'snippet.js'), snippet);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['snippet.js'], {
      cwd: place,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Float32Array\(32\) \[/);
  });

  test('has types that hold its snippet', async () => {
    const place = written(bundle);
    const snippet = /```js\n([^]*?)```/.exec(bundle.files.get('README.md') as string)![1]!;
    fs.writeFileSync(path.join(place, 'snippet.mts'), snippet);
    const tsc = path.resolve('node_modules/typescript/bin/tsc');
    const options = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'es2022,dom',
      '--types',
      '',
    ];
    const { stdout, status } = spawnSync(process.execPath, [tsc, ...options, 'snippet.mts'], {
      cwd: place,
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, '']);
  });

  test('keeps zeros out of its files, and splits large ones', async () => {
    const parameters = [...namedParameters(perceptron.state.model).values()];
    const bytes = parameters.reduce((sum, { size }) => sum + 4 * size, 0) + 4 * perceptron.scale.size;
    const [file] = bundle.manifest.files;
    expect(file!.parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(bytes);
    expect(bundle.manifest.weights.filter(({ state }) => state).length).toBe(3 * parameters.length + 1);
    const split = await built(points, { state: perceptron.state, targets: ['wasm'], shardSize: 300 });
    expect(split.manifest.files.map(({ name }) => name)).toEqual([
      'weights-1-of-3.safetensors',
      'weights-2-of-3.safetensors',
      'weights-3-of-3.safetensors',
    ]);
    const { load: loadSplit } = (await import(path.join(written(split), 'index.js'))) as {
      load: typeof load;
    };
    const [one, other] = [await loadSplit(), await load({ target: 'wasm' })];
    const { images } = given;
    expect(await one.predict({ images })).toEqual(await other.predict({ images }));
    one.dispose();
    other.dispose();
  });
});

describe('what no bundle can do is refused', () => {
  const refused: readonly (readonly [string, EntryPoint, unknown, string])[] = [
    [
      'a result that is no tensor',
      { name: 'f', fn: () => 'text', inputs: [] },
      undefined,
      'f returns text, which is not a tensor',
    ],
    [
      'a state with less than before',
      { name: 'f', fn: ((s: { a: Tensor }) => ({ state: { a: s.a.add(1) } })) as never, inputs: [] },
      { a: zeros([2]), b: zeros([2]) },
      'f returns a state without .b',
    ],
    [
      'a state with more',
      { name: 'f', fn: ((s: { a: Tensor }) => ({ state: { a: s.a, b: s.a } })) as never, inputs: [] },
      { a: zeros([2]) },
      'f returns a state with .b',
    ],
  ];
  test('models keep their own names', async () => {
    for (const name of ['weight', 'then', 'dispose'])
      await expect(built([{ name, fn: (x: Tensor) => x, inputs: [zeros([1])] }])).rejects.toThrow(
        `models have a ${name} of their own`,
      );
  });
  test.each(refused)('%s', async (_, point, state, words) => {
    const building = built([point], { targets: ['wasm'], ...(state !== undefined && { state }) });
    await expect(building).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
    await expect(
      built([point], { targets: ['wasm'], ...(state !== undefined && { state }) }),
    ).rejects.toThrow(words);
  });
});

describe('over a network', () => {
  test('a connection that breaks is taken up where it ended; progress is told; loading can be stopped', async () => {
    const ranges: (string | undefined)[] = [];
    let onArrival: (bytes: number) => unknown = () => undefined;
    const server = createServer((request, response) => {
      const name = new URL(request.url!, 'http://here').pathname;
      const held = bundle.files.get(name.slice(1));
      if (held === undefined) return void response.writeHead(404).end();
      const content = Buffer.from(held);
      if (!name.endsWith('.safetensors')) return void response.end(content);
      ranges.push(request.headers.range);
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? 'bytes=0-')![1]);
      response.writeHead(from === 0 ? 200 : 206, { 'content-length': content.length - from });
      // Ends in the middle, twice.
      if (ranges.length > 2) return void response.end(content.subarray(from));
      response.write(content.subarray(from, from + 700));
      // Once they have arrived: what breaks may take with it what nobody has read yet.
      onArrival = (bytes) => bytes >= from + 700 && response.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const base = `http://127.0.0.1:${port}/`;
    const told: number[] = [];
    const model = await load({
      base,
      target: 'wasm',
      onProgress: ({ loadedBytes }) => {
        told.push(loadedBytes);
        onArrival(loadedBytes);
      },
    });
    expect(ranges).toEqual([undefined, 'bytes=700-', 'bytes=1400-']);
    expect(told.at(-1)).toBe(bundle.manifest.files[0]!.bytes);
    const near = await load({ target: 'wasm' });
    const { images } = given;
    expect(await model.predict({ images })).toEqual(await near.predict({ images }));
    const stop = new AbortController();
    stop.abort(new Error('enough'));
    await expect(load({ base, target: 'wasm', signal: stop.signal })).rejects.toThrow('enough');
    await expect(load({ base: `${base}elsewhere/`, target: 'wasm' })).rejects.toThrow('the server gave 404');
    model.dispose();
    near.dispose();
    server.close();
  });

  test('a folder that is not there says so', async () => {
    const missing = new URL(`file://${temporary()}/nothing/`);
    await expect(load({ base: missing, target: 'wasm' })).rejects.toMatchObject({ code: 'E_IO' });
  });

  test('a damaged one says which file it is', async () => {
    const made = written(bundle);
    const base = new URL(`file://${made}/`);
    const isThere = await load({ base, target: 'wasm' });
    isThere.dispose();
    const manifest = path.join(made, 'program.json');
    const text = fs.readFileSync(manifest, 'utf8');
    for (const strange of ['<!doctype html>', 'null', text.replace('"version":1', '"version":2')]) {
      fs.writeFileSync(manifest, strange);
      await expect(load({ base, target: 'wasm' })).rejects.toMatchObject({
        code: 'E_IO',
        message: expect.stringContaining('not a bundle of this version') as string,
      });
    }
    fs.writeFileSync(manifest, text);
    fs.truncateSync(path.join(made, 'weights.safetensors'), 700);
    await expect(load({ base, target: 'wasm' })).rejects.toThrow('it ended at byte 700 of');
    const { file } = bundle.manifest.entries['predict']!.programs.wasm![0]!.kernels[0]!;
    fs.rmSync(path.join(made, file));
    await expect(load({ base, target: 'wasm' })).rejects.toMatchObject({ code: 'E_IO' });
  });

  test('loading that fails stops what is under way', async () => {
    const opened: Promise<void>[] = [];
    const server = createServer((request, response) => {
      const name = new URL(request.url!, 'http://here').pathname.slice(1);
      if (name.endsWith('.wasm')) return void response.writeHead(404).end();
      const content = Buffer.from(bundle.files.get(name)!);
      if (!name.endsWith('.safetensors')) return void response.end(content);
      // Drop by drop, and never all of it.
      response.writeHead(200);
      const drops = setInterval(() => response.write(content.subarray(0, 4)), 20);
      opened.push(new Promise((resolve) => response.on('close', resolve)));
      response.on('close', () => clearInterval(drops));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const loading = load({ base: `http://127.0.0.1:${port}/`, target: 'wasm' });
    await expect(loading).rejects.toMatchObject({ code: 'E_IO' });
    expect(opened).toHaveLength(1);
    await Promise.all(opened);
    server.close();
  });

  test('parts of threads are left out', async () => {
    const model = await load({ target: 'wasm', threads: 2.5 });
    expect(model.description).toMatch(/, 2 threads$/);
    model.dispose();
  });

  test('a target that the bundle has not is refused', async () => {
    await expect(load({ target: 'abacus' as 'wasm' })).rejects.toThrow(
      'the bundle is for cuda, webgpu, wasm, not for abacus',
    );
  });
});
