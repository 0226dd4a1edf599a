// A bundled page records as Node does: shapes, derivatives, transforms and loops are there at once, before anything of the compiler
// has been fetched, and reading a value fetches what its program needs and no more. By Chromium, with the published package.
//
// Its tests follow one another: what a page loads depends on what it has loaded.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { serve, type Served } from './serve.ts';

const PROGRAM = "import * as sn from 'sinter';\nglobalThis.sn = sn;\n";
const PAGE = '<!doctype html><title>Sinter</title><script type="module" src="/everything.js"></script>';

let folder: string;
let served: Served;
let browser: Chromium;
let files: ReadonlyMap<string, string>;
/** Names of the scripts that were asked for since the page was opened. */
let asked: string[] = [];
/** A name that the server does not know for the time being. */
let missing: string | undefined;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-at-once-'));
  stagePackage(folder);
  const entry = path.join(folder, 'everything.js');
  fs.writeFileSync(entry, PROGRAM);
  ({ files } = await bundle(folder, { everything: entry }, false));
  served = await serve((at) => {
    if (at === '/page.html') return { body: PAGE };
    if (at === '/favicon.ico') return { body: '' };
    const body = files.get(at.slice(1));
    if (body === undefined || (missing !== undefined && at.startsWith(missing))) return undefined;
    asked.push(at.slice(1));
    return { body };
  });
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Calls of compiled functions, which begin to compile: what they give has its shape at once. */
const compiled: readonly (readonly [expression: string, value: unknown])[] = [
  ['sn.compile((x) => x.mul(2))(sn.ones([2, 2])).shape', [2, 2]],
  ['sn.compile((x) => x.mul(2), { dims: { x: ["n"] } })(sn.ones([2])).shape', [2]],
];

/** What could not be asked for before the code of rare operations had come, as expressions and what they are. */
const recorded: readonly (readonly [expression: string, value: unknown])[] = [
  ['sn.cumsum(sn.tensor([1, 2, 3]), 0).neg().shape', [3]],
  ['sn.fft.rfft(sn.ones([8])).dtype', 'c64'],
  ['sn.linalg.svd(sn.ones([3, 2])).map((x) => x.shape)', [[3, 3], [2], [2, 2]]],
  ['sn.sort(sn.tensor([3, 1, 2]))[1].dtype', 'i32'],
  ['sn.split(sn.cumsum(sn.ones([4]), 0), 2).length', 2],
  ['sn.unbind(sn.cumsum(sn.ones([3, 2]), 0)).map((x) => x.shape)', [[2], [2], [2]]],
  [
    'sn.meshgrid([sn.arange(2), sn.arange(3)]).map((x) => x.shape)',
    [
      [2, 3],
      [2, 3],
    ],
  ],
  ['sn.vmap((row) => row.sum())(sn.ones([2, 3])).shape', [2]],
  ['sn.jvp((x) => x.sin(), [sn.tensor(1)], [sn.tensor(1)]).tangent?.shape ?? []', []],
  ['sn.hessian((x) => x.square().sum())(sn.ones([2])).shape', [2, 2]],
  ['sn.scan((sum, x) => [sum.add(x), sum], 0, sn.tensor([1, 2, 3]))[1].shape', [3]],
  ['sn.foriLoop(0, 3, (i, x) => x.mul(2), sn.ones([2])).shape', [2]],
  ['sn.whileLoop((x) => x.sum().lt(9), (x) => x.mul(2), sn.ones([2])).shape', [2]],
  ['sn.cond(sn.tensor(true), (x) => x.add(1), (x) => x, sn.ones([2])).shape', [2]],
  ['sn.grad((x) => sn.cumsum(x, 0).sum())(sn.ones([3])).shape', [3]],
  ['sn.vjp((x) => sn.sort(x)[0], sn.ones([3])).value.shape', [3]],
  ['sn.sparse.csr !== undefined && sn.sparse.fromDense !== undefined', true],
  ['sn.distributions.normal(sn.zeros([2]), sn.ones([2])) !== undefined', true],
  [
    '(() => { const x = sn.ones([2]).requiresGrad_(); x.exp().sum().backward(); return x.grad.shape })()',
    [2],
  ],
  ['(() => { const x = sn.ones([2]); x.assign(sn.cumsum(x, 0)); return x.shape })()', [2]],
];

describe.each(['wasm', 'webgpu:software'])('on %s', (device) => {
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    asked = [];
    page = await browser.context.newPage();
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${served.origin}/page.html`);
    await page.waitForFunction('globalThis.sn !== undefined');
    await page.evaluate(`sn.setDevice('${device}')`);
  });
  afterAll(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });

  test('everything records at once, and nothing is fetched for it', async () => {
    const before = asked.length;
    const values = recorded.map(([expression]) => expression);
    const seen = await page.evaluate<unknown[]>(`[${values.map((one) => `(() => ${one})()`).join(', ')}]`);
    expect(seen).toEqual(recorded.map(([, value]) => value));
    expect(asked.slice(before)).toEqual([]);
  });

  test('what compiles without waiting says that it lacks the compiler', async () => {
    const message = await page.evaluate<string>(
      'try { String(sn.explain(sn.ones([2]).add(1))) } catch (error) { `${error.code} ${error.message}` }',
    );
    expect(message).toMatch(
      /^E_STATE sinter: explain is not loaded in this page yet\n {2}try: await loadCompiler\(\)/,
    );
  });

  test('reading a value fetches the compiler and the language of the device, and rarer code when it is needed', async () => {
    const names = (from: number): string[] => asked.slice(from).map((name) => name.replace(/-.{8}\.js$/, ''));
    const start = asked.length;
    expect(await page.evaluate('sn.tensor([1, 2, 3]).add(1).array()')).toEqual([2, 3, 4]);
    const first = names(0);
    expect(first).toContain(device === 'wasm' ? 'wasm' : 'wgsl');
    for (const rare of ['rare', 'attention', 'cuda', 'interpreter', 'verifiers'])
      expect(first).not.toContain(rare);
    const beforeSort = asked.length;
    expect(beforeSort).toBeGreaterThan(start);
    expect(await page.evaluate('sn.sort(sn.tensor([3, 1, 2]))[0].array()')).toEqual([1, 2, 3]);
    expect(names(beforeSort)).toContain('rare');
    const beforeMore = asked.length;
    expect(await page.evaluate('sn.cumsum(sn.tensor([1, 2, 3]), 0).array()')).toEqual([1, 3, 6]);
    expect(names(beforeMore)).toEqual([]);
  });

  test('calls of compiled functions give tensors at once', async () => {
    const values = compiled.map(([expression]) => expression);
    expect(await page.evaluate(`[${values.join(', ')}]`)).toEqual(compiled.map(([, value]) => value));
  });

  test('gradients, transforms, factorizations and compiled functions compute', async () => {
    expect(await page.evaluate('sn.grad((x) => x.square().sum())(sn.tensor([1, 2, 3])).array()')).toEqual([
      2, 4, 6,
    ]);
    const spectrum = await page.evaluate<number[]>(
      'sn.fft.rfft(sn.tensor([1, 2, 3, 4])).abs().square().array()',
    );
    expect(spectrum.map(Math.round)).toEqual([100, 8, 4]);
    expect(await page.evaluate('sn.linalg.cholesky(sn.eye(2).mul(4)).array()')).toEqual([
      [2, 0],
      [0, 2],
    ]);
    const doubled =
      '(() => { const f = sn.compile((x) => x.mul(2)); return f(sn.tensor([1, 2])).add(f(sn.tensor([3, 4]))); })()';
    expect(await page.evaluate(`${doubled}.array()`)).toEqual([8, 12]);
  });

  test('a compiled function serves sizes that vary, none among them', async () => {
    const sums = `(() => {
      const total = sn.compile((x) => sn.cumsum(x, 0).sum());
      return Promise.all([5, 6, 7, 8, 9, 0, 4].map((n) => total(sn.ones([n])).item()));
    })()`;
    expect(await page.evaluate(sums)).toEqual([15, 21, 28, 36, 45, 0, 10]);
  });

  test('all of the compiler can be asked for beforehand', async () => {
    await page.evaluate('sn.loadCompiler()');
    expect(await page.evaluate('String(sn.explain(sn.ones([2]).add(1)))')).toContain('kernel');
    expect(
      await page.evaluate('sn.lower((x) => x.mul(2), [sn.ones([4])], { target: "wgsl" })[0].source'),
    ).toContain('fn ');
  });
});

test('the code of a device that does not come rejects the read', async () => {
  missing = '/device';
  const page = await browser.context.newPage();
  try {
    await page.goto(`${served.origin}/page.html`);
    await page.waitForFunction('globalThis.sn !== undefined');
    const read =
      "(sn.setDevice('wasm'), sn.ones([3]).add(1).data()).then(String, (error) => `${error.code} ${error.message}`)";
    expect(await page.evaluate<string>(read)).toMatch(/^E_IO sinter: the device wasm does not load: /);
  } finally {
    missing = undefined;
    await page.close();
  }
});

test('a device that is lost is opened again, and what was on it is an error', async () => {
  const page = await browser.context.newPage();
  try {
    await page.goto(`${served.origin}/page.html`);
    await page.waitForFunction('globalThis.sn !== undefined');
    const told = await page.evaluate(`(async () => {
      const made = [];
      const { requestDevice } = GPUAdapter.prototype;
      GPUAdapter.prototype.requestDevice = async function (...given) {
        made.push(await requestDevice.apply(this, given));
        return made.at(-1);
      };
      sn.setDevice('webgpu:software');
      const told = [];
      const ask = (x) => x.data().then((values) => told.push([...values]), ({ code }) => told.push(code));
      const double = sn.compile((x) => x.mul(2));
      const [kept, there] = [sn.tensor([1, 2]), sn.tensor([3, 4]).add(1)];
      await ask(there);
      const [first, during] = [double(kept), sn.tensor([5]).add(1)];
      await ask(first);
      made[0].destroy();
      await ask(there);
      await ask(during);
      await ask(double(there));
      await ask(double(kept));
      await ask(sn.tensor([1]).add(1));
      return [...told, made.length];
    })()`);
    expect(told).toEqual([
      [4, 5],
      [2, 4],
      'E_DEVICE_LOST',
      expect.anything(),
      'E_DEVICE_LOST',
      [2, 4],
      [2],
      2,
    ]);
  } finally {
    await page.close();
  }
});

test('a chunk that does not come rejects the read', async () => {
  missing = '/products-cpu';
  const page = await browser.context.newPage();
  try {
    await page.goto(`${served.origin}/page.html`);
    await page.waitForFunction('globalThis.sn !== undefined');
    const lost = await page.evaluate<string>(
      "(sn.setDevice('wasm'), sn.ones([3]).sum().data()).then(String, (error) => `${error.code} ${error.message}`)",
    );
    expect(lost).toMatch(/^E_IO sinter: its chunk 'products-cpu' does not load: /);
    expect(await page.evaluate('sn.ones([2]).add(1).array()')).toEqual([2, 2]);
  } finally {
    missing = undefined;
    await page.close();
  }
});
