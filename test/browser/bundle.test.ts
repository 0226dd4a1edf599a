// Bundles in a real browser: programs with a state, built ahead of time and served as the files that they are, learn and remember what they
// do in Node, on WebGPU and on WebAssembly, with one thread and with more. Nothing of the compiler is there.
//
// Runs on the sources: it bundles programs of TypeScript, which import them.

import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as writer from '../../examples/kv-cache.ts';
import * as digits from '../../examples/mnist-bundle.ts';
import { readDigits } from '../../examples/mnist-mlp.ts';
import { compile, setDevice, tensor, type Tensor } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import * as perceptron from '../aot/perceptron.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { sinter } from '../support/cli.ts';
import { filesUnder, isolated, serve, type Served } from './serve.ts';

/** A program, and calls of it in order. */
interface Course {
  readonly name: string;
  /** The file that it is built of, and its functions with their state. */
  readonly module: string;
  readonly program: object;
  readonly skip?: string;
  /** Kernels for GPUs take their time on a software adapter: only the small courses take them. */
  readonly flags?: readonly string[];
  readonly calls: () => Promise<Call[]>;
}

/** A call in both tongues: of the function, after its state, and of the bundle. */
interface Call {
  readonly entry: string;
  readonly args: readonly unknown[];
  readonly given: Readonly<Record<string, Float32Array | Int32Array | number>>;
}

type Step = (state: unknown, ...args: readonly unknown[]) => Readonly<Record<string, Tensor>>;
type Entry = (inputs: object) => Promise<Readonly<Record<string, Float32Array>>>;
type Load = (options: object) => Promise<{
  readonly [entry: string]: unknown;
  readonly target: string;
  readonly description: string;
  dispose(): void;
}>;

const project = path.resolve(import.meta.dirname, '../..');
const mnist = path.resolve(project, '../shared/data/mnist');

const courses: readonly Course[] = [
  {
    name: 'a perceptron',
    module: 'test/aot/perceptron.ts',
    program: perceptron,
    flags: ['--check'],
    calls: async () => {
      const [{ images, labels }] = perceptron.inputs.train;
      const pixels = (await images.data()) as Float32Array;
      const batch = { 'batch.images': pixels, 'batch.labels': (await labels.data()) as Int32Array };
      const step = { entry: 'train', args: [{ images, labels }, 0.05], given: { ...batch, rate: 0.05 } };
      return [step, step, step, step, step, { entry: 'predict', args: [images], given: { images: pixels } }];
    },
  },
  {
    name: 'the MNIST perceptron',
    module: 'examples/mnist-bundle.ts',
    program: digits,
    flags: ['--software'],
    ...(!existsSync(mnist) && { skip: `the MNIST files are not at ${mnist}` }),
    calls: async () => {
      const all = await readDigits(mnist);
      const imagesAt = (start: number, count: number): Float32Array =>
        all.images.slice(784 * start, 784 * (start + count));
      const steps = Array.from({ length: 6 }, (_, i): Call => {
        const given = { images: imagesAt(64 * i, 64), labels: all.labels.slice(64 * i, 64 * (i + 1)) };
        const args = [tensor(given.images, { shape: [64, 784] }), tensor(given.labels)];
        return { entry: 'train', args, given };
      });
      const images = imagesAt(2000, 100);
      return [
        ...steps,
        { entry: 'predict', args: [tensor(images, { shape: [100, 784] })], given: { images } },
      ];
    },
  },
  {
    name: 'a transformer with a cache of keys and values',
    module: 'examples/kv-cache.ts',
    program: writer,
    calls: () => {
      const calls = [5, 90, 17, 17, 3, 64].map((token, position): Call => {
        const given = { token: Int32Array.of(token), position: Int32Array.of(position) };
        return { entry: 'decode', args: [tensor(given.token), tensor(given.position, { shape: [] })], given };
      });
      return Promise.resolve(calls);
    },
  },
];

let browser: Chromium;
beforeAll(async () => {
  setDevice('wasm');
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  removeFolders();
  setDevice(undefined);
});

/** What the calls' first results are, after each other, in Sinter. */
async function inSinter({ program, calls }: Course): Promise<Float32Array[]> {
  const exported = program as Readonly<Record<string, unknown>>;
  let { state } = exported;
  const found: Float32Array[] = [];
  for (const { entry, args } of await calls()) {
    const { state: next, ...results } = compile(exported[entry] as Step)(state, ...args);
    state = next ?? state;
    found.push((await Object.values(results)[0]!.data()) as Float32Array);
  }
  return found;
}

interface Played {
  readonly target: string;
  readonly description: string;
  readonly found: readonly Float32Array[];
}

/** The same of the bundle whose `load` is global: a function that pages run, and Node. */
async function played({ options, calls }: { options: object; calls: readonly Call[] }): Promise<Played> {
  const model = await (globalThis as unknown as { load: Load }).load(options);
  const found: Float32Array[] = [];
  for (const { entry, given } of calls) found.push(Object.values(await (model[entry] as Entry)(given))[0]!);
  model.dispose();
  return { target: model.target, description: model.description, found };
}

describe.each(courses)('$name', (course) => {
  const { name, module, skip, flags = [] } = course;
  let calls: readonly Call[];
  let expected: readonly Float32Array[];
  let inNode: Played;
  let files: ReadonlyMap<string, Uint8Array>;
  let served: Served;
  const asked: string[] = [];

  beforeAll(async () => {
    if (skip !== undefined) return;
    const folder = temporary();
    calls = (await course.calls()).map(({ entry, given }) => ({ entry, given, args: [] }));
    const entries = [...new Set(calls.map(({ entry }) => entry))].join();
    const file = path.join(project, module);
    const { code, err } = await sinter('build', file, '--export', entries, ...flags, '--out', folder);
    if (code !== 0) throw new Error(err);
    files = filesUnder(folder);
    expected = await inSinter(course);
    Object.assign(globalThis, await import(path.join(folder, 'index.js')));
    inNode = await played({ options: { target: 'wasm', threads: 1 }, calls });
    served = await serve((at) => {
      if (at === '/favicon.ico') return { body: '' };
      if (at === '/alone/page.html') return page;
      if (at === '/shared/page.html') return { ...page, headers: isolated };
      const body = files.get(at.replace(/^\/(alone|shared)\//, ''));
      return body === undefined ? undefined : { body, headers: isolated };
    });
  });
  afterAll(() => served?.close());

  test.for([
    ['webgpu', 'alone', /./],
    ['wasm', 'alone', /one thread/],
    ['wasm', 'shared', /2 threads/],
  ] as const)('on %s, in a page that is %s, as in Node', async ([target, place, words], context) => {
    context.skip(skip !== undefined, skip);
    const tab = await browser.context.newPage();
    const complaints: string[] = [];
    tab.on('request', (request) => asked.push(request.url()));
    tab.on('pageerror', (error) => complaints.push(String(error)));
    await tab.goto(`${served.origin}/${place}/page.html`);
    await tab.waitForFunction(() => 'load' in globalThis);
    const start = performance.now();
    const seen = await tab.evaluate(played, { options: { target, threads: 2 }, calls });
    const spent = performance.now() - start;
    await tab.close();
    expect(complaints).toEqual([]);
    expect([seen.target, seen.description]).toEqual([target, expect.stringMatching(words)]);
    seen.found.forEach((values, i) => expectClose(values, expected[i]!));
    // The same kernels give the same bits in every engine.
    if (target === 'wasm') expect(seen.found).toEqual(inNode.found);
    const losses = seen.found.flatMap(([loss], i) => (calls[i]!.entry === 'train' ? [loss!] : []));
    if (losses.length > 0) expect(losses.at(-1)!).toBeLessThan(0.95 * losses[0]!);
    console.log(
      `${name}, ${target}, ${place}: loaded and called ${calls.length} times in ${spent.toFixed(0)} ms`,
    );
  });

  const asksForIt = flags.includes('--check');
  if (asksForIt)
    test('is checked where it runs, if the page asks for it', async () => {
      expect(asked.filter((url) => url.includes('check'))).toEqual([]);
      const tab = await browser.context.newPage();
      await tab.goto(`${served.origin}/alone/page.html`);
      for (const target of ['webgpu', 'wasm']) {
        const seen = await tab.evaluate(
          `import('./check.js').then(({ check }) => check({ target: '${target}' }))
          .then((found) => ({ text: String(found), device: found.device, wrong: found.wrong, count: found.kernels.length }))`,
        );
        expect(seen).toMatchObject({ device: target, wrong: [] });
        expect((seen as { count: number }).count).toBeGreaterThan(5);
      }
      await tab.close();
    });

  test('needs the files of its folder, and no others', (context) => {
    context.skip(skip !== undefined, skip);
    const paths = new Set(
      asked.map((url) => url.replace(`${served.origin}/`, '').replace(/^(alone|shared)\//, '')),
    );
    paths.delete('page.html');
    // Workers begin with a text of the page's own.
    const others = [...paths].filter((path) => !files.has(path) && !path.startsWith('blob:'));
    expect(others).toEqual([]);
    const kernels = [...files.keys()].filter((path) => path.startsWith('kernels/'));
    expect(kernels.filter((path) => !paths.has(path))).toEqual([]);
  });
});

function expectClose(found: Float32Array, wanted: Float32Array): void {
  expect(found.length).toBe(wanted.length);
  wanted.forEach((value, i) => expect(found[i]).toBeCloseTo(value, 4));
}

const page = {
  body: `<!doctype html><title>A bundle</title>
<script type="module">import { load } from './index.js'; globalThis.load = load;</script>`,
};
