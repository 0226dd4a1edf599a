// Bundles for CUDA, in processes of their own that have nothing but the folder, koffi, and the stand-in for driver and NVRTC: what
// they compute, what they give back, and what they say where something is missing.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bundle, BundleOptions } from '../../src/aot/bundle.ts';
import { findImageCompiler } from '../../src/aot/cuda-images.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { matmul, setDevice, zeros, type Tensor } from '../../src/index.ts';
import { standIn } from '../cuda/standin/standin.ts';
import { built, removeFolders, temporary, written } from './bundles.ts';
import * as perceptron from './perceptron.ts';

const found = standIn();
const library = found.available ? found.library : '';
const missing = found.available ? undefined : found.reason;
const project = path.resolve(import.meta.dirname, '../..');

const { train, predict, noise, inputs } = perceptron;
const points = Object.entries({ train, predict, noise }).map(([name, fn]): EntryPoint => {
  return { name, fn: fn as EntryPoint['fn'], inputs: inputs[name as keyof typeof inputs] };
});

async function builtForCuda(options: Partial<BundleOptions> = {}, entries = points): Promise<Bundle> {
  const compiler = await findImageCompiler([], { NVRTC_PATH: library });
  return built(entries, {
    state: perceptron.state,
    targets: ['cuda', 'wasm'],
    archs: ['sm_90'],
    ...(compiler !== undefined && { compiler }),
    ...options,
  });
}

/** What a script has to itself: `load`, the stand-in's counters and settings, `batch`, and `told` for what it found. */
const prelude = (folder: string): string => `
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { load } from ${JSON.stringify(path.join(folder, 'index.js'))};
const library = process.env.SINTER_CUDA_DRIVER;
const koffi = library && createRequire(${JSON.stringify(path.join(project, 'package.json'))})('koffi');
const standIn = library && koffi.load(library);
const count = standIn && standIn.func('standin_get', 'int64_t', ['str']);
const inject = standIn && standIn.func('standin_inject', 'void', ['str', 'int', 'int', 'int']);
const counts = (...names) => Object.fromEntries(names.map((name) => [name, Number(count(name))]));
const images = Float32Array.from({ length: 160 }, (_, i) => Math.sin(i));
const batch = { 'batch.images': images, 'batch.labels': Int32Array.of(0, 1, 2, 3, 0, 1, 2, 3), rate: 0.02 };
const failure = (work) => work().then(() => 'nothing', ({ code, message }) => ({ code, message }));
const held = () =>
  counts('live_buffers', 'live_bytes', 'pinned_buffers', 'modules', 'streams', 'events', 'graphs');
const told = {};
`;

interface Place {
  readonly env?: Readonly<Record<string, string>>;
  /** Where packages are looked for. */
  readonly cwd?: string;
}

/** Runs a script beside a bundle; without `env` the stand-in is the driver, and there is no compiler. */
function inNode<Told>(folder: string, script: string, { env = {}, cwd = project }: Place = {}): Told {
  const file = path.join(folder, `script-${Math.random().toString(36).slice(2)}.mjs`);
  fs.writeFileSync(file, `${prelude(folder)}\n${script}\nconsole.log(JSON.stringify(told));`);
  const both = { SINTER_CUDA_DRIVER: library, NVRTC_PATH: '/nowhere', STANDIN_SETTINGS: '' };
  const { stdout, stderr, status } = spawnSync(process.execPath, [file], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SINTER_CACHE: folder, ...both, ...env },
  });
  expect([status, stderr]).toEqual([0, '']);
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Told;
}

const law = (name: string, work: () => Promise<void> | void): void => {
  test(name, async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    await work();
  });
};

let bundle: Bundle;
let folder: string;
/** The same without machine code. */
let bare: string;
beforeAll(async () => {
  setDevice('wasm');
  if (missing !== undefined) return;
  bundle = await builtForCuda();
  folder = written(bundle);
  bare = written(await built(points, { state: perceptron.state, targets: ['cuda', 'wasm'] }));
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** Trains, reads a weight back and predicts; after that everything is the device's again. */
const training = `
const model = await load(options);
Object.assign(told, { target: model.target, description: model.description, losses: [] });
for (let i = 0; i < 4; i++) told.losses.push((await model.train(batch)).loss[0]);
const { logits, best } = await model.predict({ images });
told.logits = [...logits];
told.best = [...best];
told.weight = [...(await model.weight('model.layers.0.weight'))];
told.steps = [...(await model.weight('optimizer.step'))];
model.seed(5);
told.noise = [];
for (let i = 0; i < 2; i++) told.noise.push(...(await model.noise({ shift: Float32Array.of(1, 2, 3, 4) })).output);
model.dispose();
if (standIn) told.held = held();
`;

interface Trained {
  readonly target: string;
  readonly description: string;
  readonly losses: readonly number[];
  readonly logits: readonly number[];
  readonly best: readonly number[];
  readonly weight: readonly number[];
  readonly steps: readonly number[];
  readonly noise: readonly number[];
  readonly held: Readonly<Record<string, number>>;
}

const nothing = {
  live_buffers: 0,
  live_bytes: 0,
  pinned_buffers: 0,
  modules: 0,
  streams: 0,
  events: 0,
  graphs: 0,
};

function expectTrained(got: Trained, expected: Trained): void {
  expect(got.target).toBe('cuda');
  expect(got.losses.at(-1)).toBeLessThan(got.losses[0]!);
  for (const key of ['losses', 'logits', 'weight', 'noise'] as const) {
    expect(got[key]).toHaveLength(expected[key].length);
    expected[key].forEach((value, i) => expect(got[key][i], key).toBeCloseTo(value, 5));
  }
  expect([got.best, got.steps]).toEqual([expected.best, expected.steps]);
  expect(got.held).toEqual(nothing);
}

describe('a train step on CUDA', () => {
  let expected: Trained;
  beforeAll(() => {
    if (missing === undefined) expected = inNode(folder, `const options = { target: 'wasm' };${training}`);
  });

  law('learns as on WebAssembly, from machine code alone, and gives everything back', () => {
    expectTrained(inNode(folder, `const options = {};${training}`), expected);
  });

  law('is compiled from its sources by NVRTC where there is no machine code', () => {
    const env = { NVRTC_PATH: library };
    expectTrained(inNode(bare, `const options = { device: 0 };${training}`, { env }), expected);
  });

  law('waits for each kernel where it is asked to', () => {
    const env = { SINTER_CUDA_SYNC: '1' };
    expectTrained(inNode(folder, `const options = { target: 'cuda' };${training}`, { env }), expected);
  });

  law('does so without a race between kernels, in every order of threads', () => {
    for (const order of [1, 2, 3]) {
      const env = { STANDIN_SETTINGS: `check=1,order=${order}` };
      expectTrained(inNode(folder, `const options = { target: 'cuda' };${training}`, { env }), expected);
    }
  });

  law('is one graph, which keeps its state on the device', () => {
    const told = inNode<{ readonly graph_launches: number }>(
      folder,
      `const model = await load({ target: 'cuda' });
       await model.train(batch);
       const before = counts('graph_launches');
       for (let i = 0; i < 10; i++) await model.train(batch);
       const after = counts('graph_launches');
       told.graph_launches = after.graph_launches - before.graph_launches;
       model.dispose();`,
    );
    expect(told.graph_launches).toBe(10);
  });
});

describe('a product by warp groups', () => {
  law('brings its tensor maps along', async () => {
    const fn = (a: Tensor, b: Tensor): { c: Tensor } => ({ c: matmul(a, b).to('f32') });
    const square = zeros([512, 512], { dtype: 'bf16' });
    const entry = { name: 'product', fn: fn as EntryPoint['fn'], inputs: [square, square] };
    const alone = await builtForCuda({ archs: ['sm_90a'], state: undefined }, [entry]);
    const { kernels, arch, images } = alone.manifest.entries['product']!.programs.cuda![0]!;
    expect([arch, images]).toEqual([
      'compute_90a',
      [{ arch: 'sm_90a', file: 'kernels/product-sm_90a.cubin' }],
    ]);
    expect(kernels.some(({ tileMaps = [], sharedBytes = 0 }) => tileMaps.length > 0 && sharedBytes > 0)).toBe(
      true,
    );
    const place = written(alone);
    const product = `
      // Whole numbers, whose sums are exact in whatever order.
      const bits = (value) => new Uint32Array(Float32Array.of(value).buffer)[0] >>> 16;
      const a = Uint16Array.from({ length: 512 * 512 }, (_, i) => bits(((i * 7) % 11) - 5));
      const b = Uint16Array.from({ length: 512 * 512 }, (_, i) => bits(((i * 5) % 13) - 6));
      const model = await load(options);
      told.target = model.target;
      told.c = createHash('sha256').update((await model.product({ a, b })).c).digest('hex');
      model.dispose();`;
    interface Product {
      readonly target: string;
      readonly c: string;
    }
    const [onCuda, onWasm] = ['cuda', 'wasm'].map((target) =>
      inNode<Product>(place, `const options = { target: '${target}' };${product}`),
    ) as [Product, Product];
    expect(onCuda).toEqual({ ...onWasm, target: 'cuda' });
    // Another GPU of the generation after it has no such instructions.
    const env = { STANDIN_SETTINGS: 'capability=100' };
    const other = inNode<Product>(place, `const options = {};${product}`, { env });
    expect(other).toEqual(onWasm);
  });
});

describe('where something is missing', () => {
  interface Failure {
    readonly code: string;
    readonly message: string;
  }
  const refused = (place: string, where: Place): Failure & { readonly usual: string } =>
    inNode(
      place,
      `Object.assign(told, await failure(() => load({ target: 'cuda' })));
       const model = await load();
       told.usual = model.target;
       model.dispose();`,
      where,
    );

  law('no driver: the next target is taken, and who asks for CUDA is told what was searched', () => {
    const told = refused(folder, { env: { SINTER_CUDA_DRIVER: '' } });
    expect(told).toMatchObject({ code: 'E_DEVICE', usual: 'wasm' });
    expect(told.message).toMatch(/^cuda: no CUDA driver on this machine: [^]*\n {2}try: SINTER_CUDA_DRIVER=/);
  });

  law('no koffi: it says how to install it', () => {
    const told = refused(folder, { cwd: folder, env: { SINTER_CUDA_DRIVER: '' } });
    expect(told).toEqual({
      code: 'E_DEVICE',
      message:
        'cuda: the package koffi, which opens the libraries of CUDA, is missing\n  try: npm install koffi',
      usual: 'wasm',
    });
  });

  law('neither machine code nor a compiler', () => {
    const told = refused(bare, {});
    expect(told).toMatchObject({ code: 'E_DEVICE', usual: 'wasm' });
    expect(told.message).toMatch(
      /no machine code of the bundle is for compute capability 9\.0 \(it has none\), and its sources cannot be compiled: no NVRTC 12 to 13 on this machine: \/nowhere is not there \(NVRTC_PATH\)\n {2}try: NVRTC_PATH=/,
    );
  });

  law('machine code for another generation, and no compiler', () => {
    const told = refused(folder, { env: { STANDIN_SETTINGS: 'capability=100' } });
    expect(told).toMatchObject({ code: 'E_DEVICE', usual: 'wasm' });
    expect(told.message).toContain(
      'no machine code of the bundle is for compute capability 10.0 (it has sm_90)',
    );
  });

  law('a GPU that is older than the kernels', () => {
    const told = refused(folder, { env: { STANDIN_SETTINGS: 'capability=80', NVRTC_PATH: library } });
    expect(told).toMatchObject({ code: 'E_DEVICE', usual: 'wasm' });
    expect(told.message).toBe(
      "cuda: the bundle's kernels are for compute capability 9.0 and later, not for compute capability 8.0",
    );
  });

  law('machine code that the driver refuses, and no compiler', () => {
    const place = written(bundle);
    for (const name of fs.readdirSync(path.join(place, 'kernels')))
      if (name.endsWith('.cubin')) fs.writeFileSync(path.join(place, 'kernels', name), 'no image');
    const told = refused(place, {});
    expect(told).toMatchObject({ code: 'E_DEVICE', usual: 'wasm' });
    expect(told.message).toContain("the driver refuses the bundle's machine code for sm_90");
    expect(told.message).toContain('CUDA_ERROR_INVALID_IMAGE (200)');
  });

  law('a device that is not there, and devices of others', () => {
    const told = inNode<Record<'other' | 'gpu', Failure>>(
      folder,
      `told.other = await failure(() => load({ target: 'cuda', device: 7 }));
       told.gpu = await failure(() => load({ target: 'cuda', device: {} }));`,
    );
    expect(told.other).toMatchObject({ code: 'E_DEVICE', message: expect.stringMatching(/no device 7$/) });
    expect(told.gpu).toMatchObject({ code: 'E_DEVICE', message: expect.stringContaining('by the number') });
  });
});

describe('failures', () => {
  law('of the device are typed, and a load that fails leaves nothing behind', () => {
    const told = inNode<Record<string, unknown>>(
      folder,
      `told.memory = await failure(() => { inject('cuMemAllocAsync', 2, 3, 100); return load({ target: 'cuda' }); });
       standIn.func('standin_heal', 'void', [])();
       told.held = held();
       const model = await load({ target: 'cuda' });
       told.wrong = await failure(() => model.predict({ images: images.slice(1) }));
       inject('kernel', 700, 0, 1);
       told.fault = await failure(() => model.predict({ images }));
       told.later = await failure(() => model.predict({ images }));
       model.dispose();`,
    );
    expect(told).toMatchObject({
      held: nothing,
      memory: { code: 'E_OOM' },
      wrong: { code: 'E_VALUE', message: expect.stringContaining('expected Float32Array of 160') },
      fault: { code: 'E_DEVICE_LOST', message: expect.stringContaining('CUDA_ERROR_ILLEGAL_ADDRESS (700)') },
      later: { code: 'E_DEVICE_LOST' },
    });
  });

  law('a model that is disposed of while it runs ends its calls, then gives everything back', () => {
    const told = inNode<{ code: string; disposed: string; held: Record<string, number> }>(
      folder,
      `const model = await load({ target: 'cuda' });
       const calls = [model.train(batch), model.predict({ images })].map((call) => failure(() => call));
       model.dispose();
       const [first] = await Promise.all(calls);
       told.code = first.code ?? 'E_STATE';
       told.disposed = (await failure(() => model.predict({ images }))).code;
       told.held = held();`,
    );
    expect(told).toEqual({ code: 'E_STATE', disposed: 'E_STATE', held: nothing });
  });
});

test('no file of the code imports anything of Sinter, nor a package', async () => {
  const { files } = await built([points[1]!], {
    state: perceptron.state,
    targets: ['cuda', 'webgpu', 'wasm'],
  });
  const imported = ['index.js', 'files.js', 'cuda.js'].flatMap((name) =>
    [
      ...(files.get(name) as string)
        .replaceAll(/\/\*.*?\*\//g, '')
        .matchAll(/\bimport\b[^;()]*?["'`]([^"'`]+)["'`]|\bimport\(([^)]*)/g),
    ].map(([, specifier, computed]) => specifier ?? computed!),
  );
  // The files beside, and what is computed: the file of koffi, and what bundlers of pages shall not follow.
  const others = imported.filter((specifier) => !specifier.startsWith('node:'));
  const isBeside = (specifier: string): boolean => /\.\/\w+\.js'?/.test(specifier);
  expect(others.filter(isBeside).map((specifier) => /\w+\.js/.exec(specifier)![0])).toEqual([
    'files.js',
    'cuda.js',
    'wasm.js',
  ]);
  expect(others.filter((specifier) => !isBeside(specifier))).toEqual([
    expect.stringMatching(/^\s*\w+\(\w+$/),
  ]);
  expect(imported.length).toBeGreaterThan(5);
});

/** Where NVIDIA's compiler is, every source of a bundle is its own program for it. */
const nvcc = spawnSync('nvcc', ['--version'], { stdio: 'ignore' }).status === 0;
if (!nvcc) console.warn('skipped: compiling a bundle by nvcc needs it on PATH, which is not there');

test.skipIf(!nvcc)('nvcc compiles the sources, and makes the images where NVRTC is missing', async () => {
  const compiler = await findImageCompiler([], { NVRTC_PATH: '/nowhere' });
  expect(compiler?.name).toMatch(/^nvcc \d+\.\d+$/);
  const archs = ['sm_80', 'sm_90a', 'compute_80'];
  const { manifest, files } = await built([points[1]!], {
    state: perceptron.state,
    targets: ['cuda'],
    archs,
    ...(compiler !== undefined && { compiler }),
  });
  const { images, arch } = manifest.entries['predict']!.programs.cuda![0]!;
  expect(arch).toBe('compute_80');
  expect(images!.map((image) => image.arch)).toEqual(archs);
  const starts = images!.map(({ file }) =>
    Buffer.from(files.get(file) as Uint8Array)
      .subarray(0, 4)
      .toString('latin1'),
  );
  expect(starts).toEqual(['\x7fELF', '\x7fELF', '//\n/']);
  // A text of C.
  expect((files.get(images!.at(-1)!.file) as Uint8Array).at(-1)).toBe(0);
  const place = temporary();
  for (const [name, content] of files) {
    if (!name.endsWith('.cu')) continue;
    const file = path.join(place, path.basename(name));
    fs.writeFileSync(file, content);
    const { status, stderr } = spawnSync('nvcc', ['-arch=sm_80', '-cubin', '-o', `${file}bin`, file], {
      encoding: 'utf8',
    });
    expect([status, stderr], name).toEqual([0, '']);
  }
});
