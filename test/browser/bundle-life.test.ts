// Bundles come and go on a page: several at once, on one device or on their own; what they took is given back, also when loading is
// stopped; and a connection that breaks is taken up again.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import type { Bundle } from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { setDevice } from '../../src/index.ts';
import { built, removeFolders } from '../aot/bundles.ts';
import { inputs, predict, state, train } from '../aot/perceptron.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { isolated, serve, type Served } from './serve.ts';

interface Model {
  train(inputs: object): Promise<{ loss: Float32Array }>;
  predict(inputs: object): Promise<{ logits: Float32Array }>;
  weight(name: string): Promise<Int32Array>;
  dispose(): void;
}

/** What the page has: `load` of the bundle, a batch, and what it took of WebGPU and has not given back. */
interface Life {
  load(options: object): Promise<Model>;
  readonly batch: object;
  readonly images: Float32Array;
  readonly held: Held;
  /** Resolves once nothing is held but so many devices, for longer than what is stopped goes on; or when that never comes. */
  settled(devices: number): Promise<Held>;
  /** Tells the server how many bytes of the weights are here, and that loading has failed. */
  arrived(bytes: number): void;
  failed(): Promise<void>;
}

interface Held {
  readonly buffers: number;
  readonly devices: number;
}

let bundle: Bundle;
let browser: Chromium;
let served: Served;
const ranges: (string | undefined)[] = [];
let breaks = 0;
/** Told how many bytes of the weights the page has. */
let onArrival: (bytes: number) => void = () => undefined;
beforeAll(async () => {
  setDevice('wasm');
  const points: EntryPoint[] = [
    { name: 'train', fn: train as EntryPoint['fn'], inputs: inputs.train },
    { name: 'predict', fn: predict as EntryPoint['fn'], inputs: inputs.predict },
  ];
  bundle = await built(points, { state, software: true });
  served = await serve((at, { range }) => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/page.html') return { ...page, headers: isolated };
    const policy = policies[at];
    if (policy !== undefined) return { ...page, headers: { ...isolated, 'content-security-policy': policy } };
    const body = bundle.files.get(at.slice(1));
    if (body === undefined) return undefined;
    if (!at.endsWith('.safetensors')) return { body, headers: isolated };
    ranges.push(range);
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')![1]);
    const answer = { body: body.slice(from), headers: isolated, status: from === 0 ? 200 : 206 };
    breaks -= 1;
    if (breaks < 0) return answer;
    // Not before the page has what was sent: a connection that breaks may take with it what nobody has read yet.
    const when = new Promise<void>((resolve) => {
      onArrival = (bytes) => bytes >= from + 700 && resolve();
    });
    return { ...answer, breakAt: { bytes: 700, when } };
  });
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  removeFolders();
  setDevice(undefined);
});

/** Counts what is made and destroyed. */
function countHeld(): void {
  const held = { buffers: 0, devices: 0 };
  Object.assign(globalThis, { held });
  const watch = (owner: object, name: string, count: keyof typeof held, change: number): void => {
    const original = Reflect.get(owner, name) as (...args: unknown[]) => unknown;
    const seen = new WeakSet();
    Reflect.set(owner, name, function (this: object, ...args: unknown[]) {
      if (change > 0 || !seen.has(this)) held[count] += change;
      if (change < 0) seen.add(this);
      return Reflect.apply(original, this, args);
    });
  };
  watch(GPUDevice.prototype, 'createBuffer', 'buffers', 1);
  watch(GPUBuffer.prototype, 'destroy', 'buffers', -1);
  watch(GPUAdapter.prototype, 'requestDevice', 'devices', 1);
  watch(GPUDevice.prototype, 'destroy', 'devices', -1);
  const settled = async (devices: number): Promise<Held> => {
    const [step, still] = [20, 15];
    for (let [looks, same] = [0, 0]; looks < 3000 && same < still; looks++) {
      same = held.buffers === 0 && held.devices === devices ? same + 1 : 0;
      await new Promise((resolve) => setTimeout(resolve, step));
    }
    return { ...held };
  };
  Object.assign(globalThis, { settled });
}

async function opened(at = 'page'): Promise<Page> {
  const tab = await browser.context.newPage();
  await tab.addInitScript(countHeld);
  await tab.goto(`${served.origin}/${at}.html`);
  await tab.waitForFunction(() => 'load' in globalThis);
  const given = {
    images: (await inputs.predict[0].data()) as Float32Array,
    labels: (await inputs.train[0].labels.data()) as Int32Array,
  };
  await tab.evaluate(({ images, labels }) => {
    Object.assign(globalThis, {
      images,
      batch: { 'batch.images': images, 'batch.labels': labels, rate: 0.1 },
    });
  }, given);
  return tab;
}

/** Waits until no worker is left. */
async function expectNoWorkers(tab: Page): Promise<void> {
  await expect.poll(() => tab.workers().length).toBe(0);
}

describe('several models on a page', () => {
  test.for([
    ['one device', true],
    ['devices of their own', false],
  ] as const)('on %s keep their states apart, and give everything back', async ([, isShared]) => {
    const tab = await opened();
    const seen = await tab.evaluate(async (shared) => {
      const { load, batch, images, held } = globalThis as unknown as Life;
      const adapter = await navigator.gpu.requestAdapter();
      const device = shared ? await adapter!.requestDevice() : undefined;
      const options = { target: 'webgpu', ...(device !== undefined && { device }) };
      const [one, other] = await Promise.all([load(options), load(options)]);
      const first = (await other.train(batch)).loss[0]!;
      for (let i = 0; i < 3; i++) await one.train(batch);
      const steps = [await one.weight('optimizer.step'), await other.weight('optimizer.step')];
      const whileBoth = { ...held };
      one.dispose();
      const afterOne = (await other.train(batch)).loss[0]!;
      const halfway = { ...held };
      await other.predict({ images });
      other.dispose();
      const failed = await other.predict({ images }).catch((error: { code: string }) => error.code);
      const end = { ...held };
      // A device of the page's own is the page's.
      device?.createBuffer({ size: 16, usage: 8 }).destroy();
      const info = await (device === undefined ? undefined : Promise.race([device.lost, 'alive']));
      return { first, afterOne, steps: steps.map(([step]) => step), whileBoth, halfway, end, failed, info };
    }, isShared);
    expect(seen.steps).toEqual([3, 1]);
    expect(seen.afterOne).toBeLessThan(seen.first);
    expect(seen.failed).toBe('E_STATE');
    expect(seen.whileBoth.buffers).toBeGreaterThan(0);
    expect(seen.halfway.buffers).toBe(seen.whileBoth.buffers / 2);
    expect(seen.end).toEqual({ buffers: 0, devices: isShared ? 1 : 0 });
    expect(seen.info).toBe(isShared ? 'alive' : undefined);
    await tab.close();
  });

  test('on WebAssembly say what the policy of a page lacks', async () => {
    const tab = await opened('without-wasm');
    const failed = await tab.evaluate(() => {
      const { load } = globalThis as unknown as Life;
      return load({ target: 'wasm' }).catch((error: Error) => error.message);
    });
    expect(failed).toBe(
      "wasm: the page's Content-Security-Policy forbids WebAssembly\n  try: 'wasm-unsafe-eval' in its script-src",
    );
    await tab.close();
  });

  test('and have one thread where no workers are allowed', async () => {
    const tab = await opened('without-workers');
    const loss = await tab.evaluate(async () => {
      const { load, batch } = globalThis as unknown as Life;
      return (await (await load({ target: 'wasm', threads: 3 })).train(batch)).loss[0]!;
    });
    expect(loss).toBeGreaterThan(0);
    expect(tab.workers()).toHaveLength(0);
    await tab.close();
  });

  test('on WebAssembly have threads of their own, which end with them', async () => {
    const tab = await opened();
    const both = await tab.evaluate(async () => {
      const { load, batch } = globalThis as unknown as Life;
      const models = await Promise.all([1, 2].map(() => load({ target: 'wasm', threads: 3 })));
      Object.assign(globalThis, { models });
      return Promise.all(models.map(async (model) => (await model.train(batch)).loss[0]));
    });
    expect(both[0]).toBe(both[1]);
    const alive = tab.workers().length;
    expect(alive).toBeGreaterThanOrEqual(2);
    await tab.evaluate(() => (globalThis as unknown as { models: Model[] }).models[0]!.dispose());
    await expect.poll(() => tab.workers().length).toBe(alive / 2);
    await tab.evaluate(() => (globalThis as unknown as { models: Model[] }).models[1]!.dispose());
    await expectNoWorkers(tab);
    await tab.close();
  });
});

test.each(['webgpu', 'wasm'])('loading on %s that is stopped gives everything back', async (target) => {
  const tab = await opened();
  const seen = await tab.evaluate(async (on) => {
    const { load, settled } = globalThis as unknown as Life;
    const stop = new AbortController();
    let told = 0;
    const onProgress = (): void => {
      told += 1;
      stop.abort(new Error('enough'));
    };
    const loading = load({ target: on, threads: 2, signal: stop.signal, onProgress });
    const reason = await loading.catch((error: Error) => error.message);
    const atOnce = await load({ target: on, signal: stop.signal }).catch((error: Error) => error.message);
    // What was under way when it was stopped comes to its end.
    return { reason, atOnce, told, held: await settled(0) };
  }, target);
  expect([seen.reason, seen.atOnce]).toEqual(['enough', 'enough']);
  expect(seen.told).toBeGreaterThan(0);
  expect(seen.held).toEqual({ buffers: 0, devices: 0 });
  await expectNoWorkers(tab);
  await tab.close();
});

test('loading that fails while kernels are on their way gives everything back', async () => {
  const tab = await opened();
  await tab.route('**/*.safetensors', (route) => route.fulfill({ status: 404 }));
  // Kernels come once loading has failed.
  let asked = 0;
  let failed = (): void => undefined;
  const failure = new Promise<void>((resolve) => (failed = resolve));
  await tab.route('**/kernels/*', async (route) => {
    asked += 1;
    await failure;
    await route.continue();
  });
  await tab.exposeFunction('failed', () => failed());
  const seen = await tab.evaluate(async () => {
    const { load, settled, failed } = globalThis as unknown as Life;
    const device = await (await navigator.gpu.requestAdapter())!.requestDevice();
    const code = await load({ target: 'webgpu', device }).catch((error: { code: string }) => error.code);
    await failed();
    return { code, held: await settled(1) };
  });
  expect(asked).toBeGreaterThan(0);
  expect(seen).toEqual({ code: 'E_IO', held: { buffers: 0, devices: 1 } });
  await tab.close();
});

test('a connection that breaks is taken up where it ended', async () => {
  const tab = await opened();
  const logits = (): Promise<Float32Array> =>
    tab.evaluate(async () => {
      const { load, images, arrived } = globalThis as unknown as Life;
      const onProgress = ({ loadedBytes }: { loadedBytes: number }): void => arrived(loadedBytes);
      const model = await load({ target: 'wasm', threads: 1, onProgress });
      const found = await model.predict({ images });
      model.dispose();
      return found.logits;
    });
  await tab.exposeFunction('arrived', (bytes: number) => onArrival(bytes));
  const whole = await logits();
  ranges.length = 0;
  breaks = 2;
  expect(await logits()).toEqual(whole);
  expect(ranges).toEqual([undefined, 'bytes=700-', 'bytes=1400-']);
  await tab.close();
});

/** What pages are allowed to do, by their paths. */
const policies: Readonly<Record<string, string>> = {
  '/without-wasm.html': "script-src 'self' 'unsafe-inline'",
  '/without-workers.html': "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; worker-src 'self'",
};

const page = {
  body: `<!doctype html><title>A bundle</title>
<script type="module">import { load } from './index.js'; globalThis.load = load;</script>`,
};
