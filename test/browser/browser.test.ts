// Sinter in a real browser: the published package is bundled as a page's author would bundle it, served, and run by Chromium on
// its WebGPU, in the page and in a worker; the numbers are those that Node gives on the same adapter.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { JSHandle, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { device, synchronize } from '../../src/tensor/device.ts';
import { bundle, stagePackage, type Bundle } from '../support/browser/package.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import type { PageApi } from './page.ts';
import { compute, type Numbers } from './program.ts';
import { serve, type Served } from './serve.ts';

const DEVICE = 'webgpu:software';

/** What pages may import; `sinter/ir` reads text and brings a parser for it. */
const ENTRIES = ['sinter', 'sinter/nn', 'sinter/optim', 'sinter/io'];

let folder: string;
let home: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-page-'));
  home = stagePackage(folder);
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Bundles a program given as text. */
function bundleText(name: string, text: string): Promise<Bundle> {
  const file = path.join(folder, `${name}.js`);
  fs.writeFileSync(file, text);
  return bundle(folder, { [name]: file });
}

/** Modules of a bundle that are neither Sinter's, nor the program's own, nor the bundler's runtime. */
function foreign({ modules, imports }: Bundle): string[] {
  const own = [path.join(home, 'dist'), import.meta.dirname, '\0vite', '\0rolldown'];
  const isOwn = (module: string): boolean =>
    own.some((at) => module.startsWith(`${at}/`)) || path.dirname(module) === folder;
  return [...modules.filter((module) => !isOwn(module)), ...imports];
}

describe('a bundle for the browser', () => {
  let whole: Bundle;
  beforeAll(async () => {
    const lines = ENTRIES.map((entry, i) => `export * as entry${i} from '${entry}';`);
    whole = await bundleText('everything', lines.join('\n'));
  });

  test('holds nothing but Sinter: no Node module, no optional peer', () => {
    expect(whole.modules.length).toBeGreaterThan(100);
    expect(foreign(whole)).toEqual([]);
    const nodeOnly = /runtime\/webgpu\/(node|software)\.js$|(io\/files|tune\/file|dump\/folder)\.js$|\/cli\//;
    expect(whole.modules.filter((module) => nodeOnly.test(module))).toEqual([]);
    const code = [...whole.files.values()].join('\n');
    expect(code.match(/\b(?:koffi|ohm-js|sparticuz|createRequire)\b/g)).toBeNull();
    console.log(`sinter, nn, optim and io for a page: ${kilobytes(whole.gzip)} gzipped`);
  });

  test('of a small program leaves out what the program does not use', async () => {
    const small = await bundleText(
      'small',
      "import { matmul, ones } from 'sinter';\nawait matmul(ones([2, 3]), ones([3, 2])).array();",
    );
    expect(foreign(small)).toEqual([]);
    expect(small.modules.filter((module) => /dist\/(nn|optim|io|ir\/parse)/.test(module))).toEqual([]);
    expect(small.gzip).toBeLessThan(whole.gzip);
    console.log(`two matrices multiplied in a page: ${kilobytes(small.gzip)} gzipped`);
  });

  test('has the derivative of loops only where a loop is recorded', async () => {
    const derivatives = async (name: string, text: string): Promise<string[]> =>
      (await bundleText(name, text)).modules
        .map((module) => path.basename(module))
        .filter((module) => module === 'vjp.js' || module === 'rules-loop.js');
    const square = 'const x = sn.ones([2]).requiresGrad_(); x.mul(x).sum().backward();';
    const loop =
      'const y = sn.ones([2]).requiresGrad_(); sn.foriLoop(0, 3, (_, c) => c.mul(y), y).sum().backward();';
    const program = (...lines: readonly string[]): string =>
      ["import * as sn from 'sinter';", ...lines].join('\n');
    expect(await derivatives('square', program(square))).toEqual(['vjp.js']);
    expect((await derivatives('loop', program(loop))).toSorted()).toEqual(['rules-loop.js', 'vjp.js']);
  });

  test('shows a Node module, or an absent peer, where there is one', async () => {
    const files = await bundleText('files', "import * as fs from 'node:fs';\nconsole.log(fs);");
    expect(foreign(files)).toEqual(['__vite-browser-external:node:fs']);
    await expect(bundleText('parser', "export * from 'sinter/ir';")).rejects.toThrow(/ohm-js/);
    await expect(bundleText('drawer', "export * from 'sinter/explain';")).rejects.toThrow(/dagre/);
  });
});

describe('in Chromium', () => {
  let served: Served;
  let browser: Chromium;
  let page: Page;
  let expected: Numbers;
  const complaints: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    const { files } = await bundle(folder, {
      page: path.join(import.meta.dirname, 'page.ts'),
      worker: path.join(import.meta.dirname, 'worker.ts'),
    });
    const guide = fs.readFileSync(path.join(import.meta.dirname, '../../docs/browser.md'), 'utf8');
    const example = /^```html\n([\s\S]*?)^```$/m.exec(guide)![1]!;
    served = await serve((at) => {
      if (at === '/favicon.ico') return { body: '' };
      if (at === '/bundled.html') return BUNDLED;
      if (at === '/isolated.html') return ISOLATED;
      if (at === '/strict.html') return { ...ISOLATED, headers: { ...ISOLATED.headers, ...BUNDLED.headers } };
      if (at === '/forbidden.html') return FORBIDDEN;
      if (at === '/unbundled.html') return { body: example };
      const body = at.startsWith(PACKAGE)
        ? textOf(path.join(home, at.slice(PACKAGE.length)))
        : files.get(at.slice(1));
      return body === undefined ? undefined : { body, headers: EMBEDDER };
    });
    browser = await openChromium();
    console.log(`${browser.program}, version ${browser.context.browser()?.version()}`);
    page = await browser.context.newPage();
    page.on('request', (request) => asked.push(request.url()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    await page.goto(`${served.origin}/bundled.html`);
    expected = await compute(DEVICE);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.close();
    await synchronize();
    (await device()).destroy();
  });

  const api = (): Promise<JSHandle<PageApi>> =>
    page.evaluateHandle(() => (globalThis as unknown as { sinterTest: PageApi }).sinterTest);

  test('Node learns, so that there is something to compare', () => {
    const { losses, softmax } = expected;
    expect(losses).toHaveLength(20);
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
    expect(softmax.reduce((sum, p) => sum + p, 0)).toBeCloseTo(5, 5);
  });

  test('the page has WebGPU, on a software adapter', async () => {
    const reports = await (await api()).evaluate((sinter) => sinter.devices());
    expect(reports.map(({ name, available }) => [name, available])).toEqual([
      ['cuda', false],
      ['webgpu', false],
      [DEVICE, true],
      ['wasm', true],
      ['interpreter', true],
    ]);
    expect(JSON.stringify(reports[2])).toMatch(/swiftshader/i);
  });

  test('a page computes and trains as Node does', async () => {
    expectClose(await (await api()).evaluate((sinter, name) => sinter.compute(name), DEVICE), expected);
  });

  test('a dedicated worker computes and trains as Node does', async () => {
    expectClose(
      await (await api()).evaluate((sinter, name) => sinter.computeInWorker(name), DEVICE),
      expected,
    );
  });

  test('a page keeps what it has measured in its database', async () => {
    const { product, measured, kept } = await (
      await api()
    ).evaluate((sinter, name) => sinter.tune(name), DEVICE);
    expect(product).toHaveLength(6);
    expect(measured).toHaveLength(1);
    expect(measured[0]).toMatch(/^dot 1x3x4x2 .* on webgpu:software: /);
    expect(Object.keys((JSON.parse(kept) as { entries: object }).entries)).toEqual(measured);
  });

  test.each(['interpreter', 'wasm'] as const)('%s runs in a page as well', async (name) => {
    const page = await api();
    expectClose(await page.evaluate((sinter, device) => sinter.compute(device), name), expected, 1e-3);
  });

  describe('threads', () => {
    const shared = async (at: string, name: string): Promise<readonly number[]> => {
      await page.goto(`${served.origin}/${at}.html`);
      return (await api()).evaluate((sinter, device) => sinter.computeShared(device), name);
    };
    /** What the page says of the device `wasm`. */
    const said = async (): Promise<string> => {
      const reports = await (await api()).evaluate((sinter) => sinter.devices());
      const wasm = reports.find(({ name }) => name === 'wasm');
      return wasm?.available === true ? wasm.description : 'none';
    };
    const one = 'WebAssembly SIMD, one thread';
    let alone: readonly number[];
    let cores: number;

    test('a page that is not isolated has one, and the device says why', async () => {
      alone = await shared('bundled', 'wasm:2');
      expect(alone).toHaveLength(1024);
      expect(alone.every((value) => value > 0)).toBe(true);
      expect(page.workers()).toHaveLength(0);
      cores = await page.evaluate(() => navigator.hardwareConcurrency);
      expect(await said()).toBe(cores === 1 ? one : `${one}: the page is not cross-origin isolated`);
    });

    test('an isolated page has as many as are asked for, and computes the same', async () => {
      expect(await shared('isolated', 'wasm:3')).toEqual(alone);
      expect(page.workers()).toHaveLength(2);
      await (await api()).evaluate((sinter) => sinter.close());
      await expect.poll(() => page.workers().length).toBe(0);
      expect(await said()).toBe(cores === 1 ? one : `WebAssembly SIMD, ${Math.min(cores, 8)} threads`);
    });

    test('a worker of an isolated page has threads of its own', async () => {
      await page.goto(`${served.origin}/isolated.html`);
      const computed = (await api()).evaluate((sinter) => sinter.computeInWorker('wasm:2'));
      expectClose(await computed, expected, 1e-3);
    });

    test('a page whose policy forbids workers from blobs has one, and the device says so', async () => {
      const before = complaints.length;
      expect(await shared('strict', 'wasm:2')).toEqual(alone);
      expect(await said()).toMatch(cores === 1 ? one : `${one}: no worker starts here`);
      // The browser tells of the policy.
      expect(complaints.splice(before).every((text) => text.includes('Content Security Policy'))).toBe(true);
      await page.goto(`${served.origin}/bundled.html`);
    });
  });

  test('a page whose policy forbids WebAssembly says what the policy lacks', async () => {
    const before = complaints.length;
    await page.goto(`${served.origin}/forbidden.html`);
    const advice = /Content-Security-Policy forbids WebAssembly[^]*try: 'wasm-unsafe-eval' in its script-src/;
    const reports = await (await api()).evaluate((sinter) => sinter.devices());
    expect(reports.find(({ name }) => name === 'wasm')).toMatchObject({
      available: false,
      reason: expect.stringMatching(advice) as string,
    });
    const asked = (await api()).evaluate((sinter) => sinter.compute('wasm'));
    await expect(asked).rejects.toThrow(advice);
    // WebGPU asks for nothing.
    expectClose(await (await api()).evaluate((sinter, name) => sinter.compute(name), DEVICE), expected);
    expect(complaints.splice(before).every((text) => text.includes('Content Security Policy'))).toBe(true);
    await page.goto(`${served.origin}/bundled.html`);
  });

  test('errors in a minified page have their names, codes and hints', async () => {
    const errors = await (await api()).evaluate((sinter) => sinter.mistakes());
    expect(errors['sizes that do not fit']).toMatchObject({
      name: 'TensorError',
      code: 'E_SHAPE',
      kind: 'TensorError',
      message: expect.stringContaining('matmul: ') as string,
    });
    expect(errors['a device that is not there']).toMatchObject({
      name: 'DeviceError',
      code: 'E_DEVICE',
      kind: 'DeviceError',
      message: expect.stringMatching(/'abacus'[^]*'webgpu:software'/) as string,
    });
    expect(errors['a file by its path']).toMatchObject({
      name: 'TensorError',
      code: 'E_UNSUPPORTED',
      message: expect.stringContaining('fetch') as string,
    });
    expect(errors['a GPU where there is none']).toMatchObject({
      name: 'DeviceError',
      code: 'E_DEVICE',
      kind: 'DeviceError',
      message: expect.stringMatching(/software adapter.*swiftshader/i) as string,
    });
  });

  test('the page in docs/browser.md, without a bundler, works as written', async () => {
    await page.goto(`${served.origin}/unbundled.html`);
    const output = page.locator('output:not(:empty)');
    await output.waitFor();
    expect(await output.textContent()).toBe('[[14,32],[32,77]]');
    expect(asked.filter((url) => url.includes(PACKAGE)).length).toBeGreaterThan(100);
  });

  test('nothing was complained of, nor asked of any other host', () => {
    expect(complaints).toEqual([]);
    expect(asked.filter((url) => !url.replace(/^blob:/, '').startsWith(`${served.origin}/`))).toEqual([]);
  });

  test('closing leaves no process and no file', async () => {
    expect(processesOf(browser.profile)).not.toEqual([]);
    await browser.close();
    expect(processesOf(browser.profile)).toEqual([]);
    expect(fs.existsSync(browser.profile)).toBe(false);
  });
});

const PACKAGE = '/node_modules/sinter/';

/** Under a policy that allows neither inline code nor `eval`. */
const BUNDLED = {
  body: '<!doctype html><title>Sinter</title><script type="module" src="/page.js"></script>',
  headers: {
    'content-security-policy': "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self'",
  },
};

/** Under a policy that does not know of WebAssembly. */
const FORBIDDEN = {
  body: BUNDLED.body,
  headers: { 'content-security-policy': "default-src 'none'; script-src 'self'" },
};

/** What a page and its workers must be served with to have shared memory. */
const EMBEDDER = { 'cross-origin-embedder-policy': 'require-corp' };
const ISOLATED = {
  body: BUNDLED.body,
  headers: {
    ...EMBEDDER,
    'cross-origin-opener-policy': 'same-origin',
    'content-security-policy': `${BUNDLED.headers['content-security-policy']}; worker-src 'self' blob:`,
  },
};

/** Every list of numbers, element by element, within a share of the larger of 1e-2 and the value. */
function expectClose(got: Numbers, expected: Numbers, tolerance = 1e-5): void {
  expect(Object.keys(got)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected) as [keyof Numbers, readonly number[]][]) {
    const found = got[name];
    expect(found.length, name).toBe(values.length);
    const off = values.filter((value, i) => {
      const error = Math.abs(found[i]! - value);
      return !(error <= tolerance * Math.max(Math.abs(value), 1e-2));
    });
    expect(off, `${name}: ${found.join(' ')}, in Node ${values.join(' ')}`).toEqual([]);
  }
}

/** Command lines of the processes of this machine that name a folder, in their arguments or their environment. */
function processesOf(profile: string): string[] {
  const found: string[] = [];
  for (const id of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (Number(id) === process.pid) continue;
    const read = (file: string): string => textOf(path.join('/proc', id, file)) ?? '';
    const line = read('cmdline');
    if (`${line}\0${read('environ')}`.includes(profile)) found.push(line.replaceAll('\0', ' '));
  }
  return found;
}

function textOf(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
