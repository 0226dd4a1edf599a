// Bundles in a real browser: train steps built ahead of time and served as the files that they are learn what Node learns, on WebGPU and
// on WebAssembly, with one thread and with more. Nothing of the compiler is there.

import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as digits from '../../examples/mnist-bundle.ts';
import { readDigits } from '../../examples/mnist-mlp.ts';
import { compile, setDevice, tensor } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import * as small from '../aot/perceptron.ts';
import { openChromium, type Chromium } from '../support/chromium.ts';
import { sinter } from '../support/cli.ts';
import { filesUnder, isolated, serve, type Served } from './serve.ts';

/** A program that trains, as it is built and as it is called. */
interface Course {
  readonly name: string;
  readonly module: string;
  readonly skip?: string;
  /** A call in both tongues: of the function, after its state, and of the bundle. */
  readonly step: (i: number) => Promise<{ readonly args: readonly unknown[]; readonly given: Given }>;
  readonly question: () => Promise<{ readonly args: readonly unknown[]; readonly given: Given }>;
  readonly program: { train: Train; readonly predict: Predict; readonly state: unknown };
  readonly steps: number;
}

type Given = Readonly<Record<string, Float32Array | Int32Array | number>>;
type Train = (state: unknown, ...args: readonly unknown[]) => { state: unknown; loss: Loss };
type Predict = (state: unknown, ...args: readonly unknown[]) => { logits: Loss };
type Loss = ReturnType<typeof tensor>;

interface Calls {
  readonly steps: readonly Given[];
  readonly question: Given;
}

/** What a course ends with. */
interface Learned {
  readonly losses: readonly number[];
  readonly logits: Float32Array;
}

/** What the bundle exports. */
type Load = (options: object) => Promise<{
  readonly target: string;
  readonly description: string;
  train(inputs: object): Promise<{ loss: Float32Array }>;
  predict(inputs: object): Promise<{ logits: Float32Array }>;
  dispose(): void;
}>;

const project = path.resolve(import.meta.dirname, '../..');
const mnist = path.resolve(project, '../shared/data/mnist');
const handwriting = existsSync(mnist) ? readDigits(mnist) : undefined;

/** Digits from `start` on. */
async function digitsAt(start: number, count: number): Promise<{ images: Float32Array; labels: Int32Array }> {
  const { images, labels } = await handwriting!;
  return {
    images: images.slice(784 * start, 784 * (start + count)),
    labels: labels.slice(start, start + count),
  };
}

const courses: readonly Course[] = [
  {
    name: 'a perceptron',
    module: path.join(project, 'test/aot/perceptron.ts'),
    program: small as unknown as Course['program'],
    steps: 5,
    step: async () => {
      const { images, labels } = small.inputs.train[0];
      const pixels = (await images.data()) as Float32Array;
      const given = { 'batch.images': pixels, 'batch.labels': (await labels.data()) as Int32Array };
      return { args: [{ images, labels }, 0.05], given: { ...given, rate: 0.05 } };
    },
    question: async () => {
      const [images] = small.inputs.predict;
      return { args: [images], given: { images: (await images.data()) as Float32Array } };
    },
  },
  {
    name: 'the MNIST perceptron',
    module: path.join(project, 'examples/mnist-bundle.ts'),
    ...(handwriting === undefined && { skip: `the MNIST files are not at ${mnist}` }),
    program: digits as unknown as Course['program'],
    steps: 6,
    step: async (i) => {
      const given = await digitsAt(64 * i, 64);
      return { args: [tensor(given.images, { shape: [64, 784] }), tensor(given.labels)], given };
    },
    question: async () => {
      const { images } = await digitsAt(2000, 100);
      return { args: [tensor(images, { shape: [100, 784] })], given: { images } };
    },
  },
];

let browser: Chromium;
beforeAll(async () => {
  setDevice('wasm');
  browser = await openChromium();
}, 60_000);
afterAll(async () => {
  await browser?.close();
  removeFolders();
  setDevice(undefined);
});

/** Trains the bundle whose `load` is global: a function that pages run, and Node. */
async function trained({
  options,
  calls,
}: {
  readonly options: object;
  readonly calls: Calls;
}): Promise<Learned & { readonly target: string; readonly description: string }> {
  const model = await (globalThis as unknown as { load: Load }).load(options);
  const losses: number[] = [];
  for (const step of calls.steps) losses.push((await model.train(step)).loss[0]!);
  const { logits } = await model.predict(calls.question);
  const { target, description } = model;
  model.dispose();
  return { target, description, losses, logits };
}

describe.each(courses)('$name', ({ name, module, program, steps, step, question, skip }) => {
  let calls: Calls;
  let expected: Learned;
  let inNode: Learned;
  let files: ReadonlyMap<string, Uint8Array>;
  let served: Served;
  const asked: string[] = [];

  beforeAll(async () => {
    if (skip !== undefined) return;
    const folder = temporary();
    const { code, err } = await sinter('build', module, '--export', 'train,predict', '--out', folder);
    if (code !== 0) throw new Error(err);
    files = filesUnder(folder);

    const lessons = await Promise.all(Array.from({ length: steps }, (_, i) => step(i)));
    const asking = await question();
    calls = { steps: lessons.map(({ given }) => given), question: asking.given };
    const compiled = compile(program.train);
    let { state } = program;
    const losses: number[] = [];
    for (const { args } of lessons) {
      const next = compiled(state, ...args);
      state = next.state;
      losses.push((await next.loss.item()) as number);
    }
    const logits = (await program.predict(state, ...asking.args).logits.data()) as Float32Array;
    expected = { losses, logits };

    Object.assign(globalThis, await import(path.join(folder, 'index.js')));
    inNode = await trained({ options: { target: 'wasm', threads: 1 }, calls });
    served = await serve((at) => {
      if (at === '/favicon.ico') return { body: '' };
      if (at === '/alone/page.html') return page;
      if (at === '/shared/page.html') return { ...page, headers: isolated };
      const body = files.get(at.replace(/^\/(alone|shared)\//, ''));
      return body === undefined ? undefined : { body, headers: isolated };
    });
  }, 120_000);
  afterAll(() => served?.close());

  test.for([
    ['webgpu', 'alone', /./],
    ['wasm', 'alone', /one thread/],
    ['wasm', 'shared', /2 threads/],
  ] as const)('learns on %s, in a page that is %s, as in Node', async ([target, place, words], context) => {
    context.skip(skip !== undefined, skip);
    const tab = await browser.context.newPage();
    const complaints: string[] = [];
    tab.on('request', (request) => asked.push(request.url()));
    tab.on('pageerror', (error) => complaints.push(String(error)));
    await tab.goto(`${served.origin}/${place}/page.html`);
    await tab.waitForFunction(() => 'load' in globalThis);
    const start = performance.now();
    const seen = await tab.evaluate(trained, { options: { target, threads: 2 }, calls });
    const spent = performance.now() - start;
    await tab.close();
    expect(complaints).toEqual([]);
    expect([seen.target, seen.description]).toEqual([target, expect.stringMatching(words)]);
    expectClose(seen.losses, expected.losses, 5);
    expectClose(seen.logits, expected.logits, 4);
    // The same kernels on the same numbers, in whatever engine.
    if (target === 'wasm') expect([seen.losses, seen.logits]).toEqual([inNode.losses, inNode.logits]);
    expect(seen.losses.at(-1)!).toBeLessThan(0.95 * seen.losses[0]!);
    console.log(`${name}, ${target}, ${place}: loaded and trained ${steps} steps in ${spent.toFixed(0)} ms`);
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

function expectClose(found: ArrayLike<number>, wanted: ArrayLike<number>, digitsAfter: number): void {
  expect(found.length).toBe(wanted.length);
  Array.from(wanted, (value, i) => expect(found[i]).toBeCloseTo(value, digitsAfter));
}

const page = {
  body: `<!doctype html><title>A bundle</title>
<script type="module">import { load } from './index.js'; globalThis.load = load;</script>`,
};
