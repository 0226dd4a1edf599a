// The example page with real networks: built from their ONNX files, served, and driven in Chromium on WebGPU and WebAssembly. It gives the
// figures that came with the networks, of the bundle's files alone, and compiles nothing once it is loaded.

import { existsSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { encode } from 'fast-png';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { servePage } from '../../examples/page/serve.ts';
import { setDevice } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { sinter } from '../support/cli.ts';
import { missingNetworks, networkFigures, networks } from '../support/onnx/networks.ts';

/** What the page leaves for the console. */
interface Classifier {
  readonly model: { readonly target: string; dispose(): void };
  classify(image: Float32Array): Promise<Float32Array>;
}

let browser: Chromium;
beforeAll(async () => {
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  removeFolders();
  setDevice(undefined);
});

/** Counts what compiles: of text or bytes, by whatever name. */
function countCompilations(): void {
  const compiled: string[] = [];
  Object.assign(globalThis, { compiled });
  const watch = (owner: object | undefined, names: readonly string[]): void => {
    for (const name of names) {
      const original: unknown = Reflect.get(owner ?? {}, name);
      if (owner === undefined || typeof original !== 'function') continue;
      Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
        compiled.push(name);
        return new.target === undefined
          ? (Reflect.apply(original, this, args) as unknown)
          : (Reflect.construct(original, args) as unknown);
      });
    }
  };
  const pipelines = ['createComputePipeline', 'createComputePipelineAsync'];
  watch(globalThis.GPUDevice?.prototype, ['createShaderModule', ...pipelines]);
  watch(WebAssembly, ['compile', 'compileStreaming', 'instantiate', 'instantiateStreaming', 'Module']);
}

/** Opens the page; gives what it asked the server for. */
async function opened(address: string): Promise<{ readonly tab: Page; readonly asked: readonly string[] }> {
  const tab = await browser.context.newPage();
  const asked: string[] = [];
  tab.on('request', (request) => asked.push(new URL(request.url()).pathname));
  tab.on('pageerror', (error) => asked.push(String(error)));
  await tab.addInitScript(countCompilations);
  await tab.goto(address);
  await tab.waitForFunction(() => 'classifier' in globalThis);
  return { tab, asked };
}

test('the page is served with its bundle, and nothing else is', async () => {
  const folder = temporary();
  writeFileSync(path.join(folder, 'index.js'), '');
  const { server, origin } = await servePage(folder);
  const statuses = [
    '',
    '/bundle/index.js',
    '/bundle/none',
    '/bundle/..%2f..%2fx',
    '/%',
    '/../../package.json',
  ].map(async (at) => (await fetch(origin + at)).status);
  expect(await Promise.all(statuses)).toEqual([200, 200, 404, 404, 404, 404]);
  server.close();
  server.closeAllConnections();
});

describe.each(networks)('%s', (name) => {
  let folder: string;
  let page: Awaited<ReturnType<typeof servePage>>;
  beforeAll(async () => {
    if (missingNetworks !== undefined) return;
    folder = temporary();
    const { code, err } = await sinter('build', networkFigures(name).model, '--software', '--out', folder);
    if (code !== 0) throw new Error(err);
    page = await servePage(folder);
  });
  afterAll(() => {
    page?.server.close();
    page?.server.closeAllConnections();
  });

  test.for([
    ['webgpu', 1],
    ['wasm', 1],
    ['wasm', 2],
  ] as const)('on %s with threads: %d', async ([target, threads], { skip }) => {
    if (missingNetworks !== undefined) skip(missingNetworks);
    const { input, output } = networkFigures(name);
    const expected = output.data;
    const { tab, asked } = await opened(`${page.origin}/?target=${target}&threads=${threads}`);
    const seen = await tab.evaluate(async (image) => {
      const all = globalThis as unknown as { classifier: Promise<Classifier>; compiled: string[] };
      const { classify, model } = await all.classifier;
      const before = all.compiled.length;
      const scores = await classify(image);
      const compiledLater = all.compiled.slice(before);
      return { target: model.target, scores, compiled: before, compiledLater };
    }, input.data);
    expect([seen.target, seen.compiledLater]).toEqual([target, []]);
    expect(seen.compiled).toBeGreaterThan(0);
    const scale = Math.max(...expected.map(Math.abs));
    expect(seen.scores).toHaveLength(expected.length);
    expected.forEach((value, i) => expect(Math.abs(seen.scores[i]! - value) / scale).toBeLessThan(1e-3));

    const shown = await tab.locator('li span:first-child').allTextContents();
    const likeliest = [...expected.keys()].sort((a, b) => expected[b]! - expected[a]!);
    expect(shown).toEqual(likeliest.slice(0, 5).map((index) => `class ${index}`));
    console.log(
      `${name}, ${target}: ${(await tab.locator('#times').textContent())!.split(/\s*\n\s*/).join(', ')}`,
    );

    // A picture of someone's own.
    const picture = { width: 40, height: 30, data: Uint8Array.from({ length: 3600 }, (_, i) => i % 251) };
    const png = encode({ ...picture, channels: 3 });
    await tab
      .locator('li')
      .first()
      .evaluate((row) => row.remove());
    await tab.setInputFiles('input', { name: 'it.png', mimeType: 'image/png', buffer: Buffer.from(png) });
    await tab.waitForFunction(() => document.querySelectorAll('li').length === 5);
    expect(await tab.locator('#problem').textContent()).toBe('');
    await tab.close();

    const own = new Set(['/', '/classify.js', '/favicon.ico']);
    const others = asked.filter(
      (at) => !own.has(at) && !existsSync(path.join(folder, at.replace('/bundle/', ''))),
    );
    // Workers begin with a text of the page's own.
    expect(others.filter((at) => !/^[\w-]{36}$/.test(path.basename(at)))).toEqual([]);
  });

  test('by itself it takes WebAssembly where WebGPU has a software adapter', async ({ skip }) => {
    if (missingNetworks !== undefined) skip(missingNetworks);
    const { tab } = await opened(`${page.origin}/`);
    const target = await tab.evaluate(async () => {
      return (await (globalThis as unknown as { classifier: Promise<Classifier> }).classifier).model.target;
    });
    expect(target).toBe('wasm');
    await tab.close();
  });

  test('the page says what is missing', async ({ skip }) => {
    if (missingNetworks !== undefined) skip(missingNetworks);
    const { tab } = await opened(`${page.origin}/?target=abacus`);
    await tab.waitForFunction(() => document.querySelector('#problem')!.textContent !== '');
    expect(await tab.locator('#problem').textContent()).toMatch(
      /E_DEVICE: the bundle is for .*, not for abacus/,
    );
    await tab.close();
  });
});
