// A bundle in a real browser: built ahead of time, served as the files that it is, it trains to the losses that Node gets, on WebGPU and
// on WebAssembly, with one thread and with more. Nothing of the compiler is there.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bundle } from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { compile, setDevice } from '../../src/index.ts';
import { built, removeFolders } from '../aot/bundles.ts';
import { inputs, predict, state, train } from '../aot/perceptron.ts';
import { openChromium, type Chromium } from '../support/chromium.ts';
import { serve, type Served } from './serve.ts';

const { images, labels } = inputs.train[0];
const steps = 5;

/** What a page gives back. */
interface Seen {
  readonly target: string;
  readonly description: string;
  readonly losses: readonly number[];
  readonly logits: readonly number[];
  readonly milliseconds: number;
}

/** What the bundle exports. */
type Load = (options: object) => Promise<{
  readonly target: string;
  readonly description: string;
  train(inputs: object): Promise<{ loss: Float32Array }>;
  predict(inputs: object): Promise<{ logits: Float32Array }>;
  dispose(): void;
}>;

let bundle: Bundle;
let expected: Pick<Seen, 'losses' | 'logits'>;
let given: { readonly images: readonly number[]; readonly labels: readonly number[] };
let served: Served;
let browser: Chromium;
const asked: string[] = [];
beforeAll(async () => {
  setDevice('wasm');
  const points: EntryPoint[] = [
    { name: 'train', fn: train as EntryPoint['fn'], inputs: inputs.train },
    { name: 'predict', fn: predict as EntryPoint['fn'], inputs: inputs.predict },
  ];
  bundle = await built(points, { state });
  given = {
    images: [...((await images.data()) as Float32Array)],
    labels: [...((await labels.data()) as Int32Array)],
  };
  const step = compile(train);
  const losses: number[] = [];
  let now = state;
  for (let i = 0; i < steps; i++) {
    const next = step(now, { images, labels }, 0.05);
    now = next.state;
    losses.push((await next.loss.item()) as number);
  }
  expected = { losses, logits: [...((await predict(now, images).logits.data()) as Float32Array)] };
  served = await serve((at) => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/alone/page.html') return page;
    if (at === '/shared/page.html') return { ...page, headers: isolated };
    const body = bundle.files.get(at.replace(/^\/(alone|shared)\//, ''));
    return body === undefined ? undefined : { body, headers: isolated };
  });
  browser = await openChromium();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await served?.close();
  removeFolders();
  setDevice(undefined);
});

/** Loads the bundle in a page and trains there. */
async function trainedIn(folder: 'alone' | 'shared', target: 'webgpu' | 'wasm'): Promise<Seen> {
  const tab = await browser.context.newPage();
  const complaints: string[] = [];
  tab.on('request', (request) => asked.push(request.url()));
  tab.on('pageerror', (error) => complaints.push(String(error)));
  await tab.goto(`${served.origin}/${folder}/page.html`);
  await tab.waitForFunction(() => 'load' in globalThis);
  const seen = await tab.evaluate(
    async ({ images: pixels, labels: digits, on, count }) => {
      const start = performance.now();
      const { load } = globalThis as unknown as { load: Load };
      const model = await load({ target: on, threads: 2 });
      const batch = { 'batch.images': Float32Array.from(pixels), 'batch.labels': Int32Array.from(digits) };
      const losses: number[] = [];
      for (let i = 0; i < count; i++) losses.push((await model.train({ ...batch, rate: 0.05 })).loss[0]!);
      const { logits } = await model.predict({ images: batch['batch.images'] });
      const { target, description } = model;
      model.dispose();
      return { target, description, losses, logits: [...logits], milliseconds: performance.now() - start };
    },
    { ...given, on: target, count: steps },
  );
  await tab.close();
  expect(complaints).toEqual([]);
  return seen;
}

describe('a bundle in Chromium trains as Node does', () => {
  test.each([
    ['webgpu', 'alone', /./],
    ['wasm', 'alone', /one thread/],
    ['wasm', 'shared', /2 threads/],
  ] as const)('on %s, in a page that is %s', async (target, folder, description) => {
    const seen = await trainedIn(folder, target);
    expect([seen.target, seen.description]).toEqual([target, expect.stringMatching(description)]);
    seen.losses.forEach((loss, i) => expect(loss).toBeCloseTo(expected.losses[i]!, 5));
    seen.logits.forEach((value, i) => expect(value).toBeCloseTo(expected.logits[i]!, 4));
    console.log(
      `${target}, ${folder}: loaded and trained ${steps} steps in ${seen.milliseconds.toFixed(0)} ms`,
    );
  });

  test('with the files of its folder, and no others', () => {
    const paths = new Set(
      asked.map((url) => url.replace(`${served.origin}/`, '').replace(/^(alone|shared)\//, '')),
    );
    paths.delete('page.html');
    // Workers begin with a text of the page's own.
    const others = [...paths].filter((path) => !bundle.files.has(path) && !path.startsWith('blob:'));
    expect(others).toEqual([]);
    const kernels = [...bundle.files.keys()].filter((path) => path.startsWith('kernels/'));
    expect(kernels.filter((path) => !paths.has(path))).toEqual([]);
  });
});

const page = {
  body: `<!doctype html><title>A bundle</title>
<script type="module">import { load } from './index.js'; globalThis.load = load;</script>`,
};

/** What lets a page share memory among threads. */
const isolated = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};
