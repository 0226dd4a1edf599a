// `sinter/data` in a page: bundled and minified as an author would, its Web Workers make batches of a module that the page serves, and
// end with the loop; images are decoded by the browser.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { encode } from 'fast-png';
import type { JSHandle, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import type { DataApi } from './data-page.ts';
import { serve, type Served } from './serve.ts';

let folder: string;
let served: Served;
let browser: Chromium;
let page: Page;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-data-page-'));
  stagePackage(folder);
  const { files, imports, modules } = await bundle(folder, {
    page: path.join(import.meta.dirname, 'data-page.ts'),
  });
  expect(imports).toEqual([]);
  expect(modules.filter((module) => module.endsWith('dist/data/files/node.js'))).toEqual([]);
  const squares = fs.readFileSync(path.join(import.meta.dirname, '../fixtures/data/squares.mjs'));
  served = await serve((at) => {
    if (at === '/index.html')
      return { body: '<!doctype html><title>Data</title><script type="module" src="/page.js"></script>' };
    if (at === '/squares.js') return { body: squares };
    const body = files.get(at.slice(1));
    return body === undefined ? undefined : { body };
  });
  browser = await openChromium();
  page = await browser.context.newPage();
  await page.goto(`${served.origin}/index.html`);
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

const api = (): Promise<JSHandle<DataApi>> =>
  page.evaluateHandle(() => (globalThis as unknown as { sinterData: DataApi }).sinterData);

test('workers make the batches of an epoch, in order', async () => {
  const seen = await (await api()).evaluate((data) => data.batches());
  const squares = (from: number): number[][] => [0, 1, 2, 3, 4].map((i) => [from + i, (from + i) ** 2]);
  expect(seen).toEqual([
    { x: squares(0), by: [0, 0, 0, 0, 0] },
    { x: squares(5), by: [1, 1, 1, 1, 1] },
  ]);
  await expect.poll(() => page.workers().length).toBe(0);
});

test('what fails in a worker fails in the loop, and the workers end', async () => {
  expect(await (await api()).evaluate((data) => data.failure())).toEqual({
    code: 'E_WORKER',
    message: expect.stringMatching(
      /worker 1 failed at items 5, 6, 7, 8, 9: RangeError: no item 9 today/,
    ) as string,
  });
  expect(await (await api()).evaluate((data) => data.first())).toEqual(
    [0, 1, 2, 3, 4].map((i) => [i, i * i]),
  );
  await expect.poll(() => page.workers().length).toBe(0);
});

test('images are decoded by the browser', async () => {
  const bytes = [
    ...encode({ width: 2, height: 1, channels: 3, data: Uint8Array.of(10, 20, 30, 200, 100, 0) }),
  ];
  const read = await (await api()).evaluate((data, given) => data.image(given, 3), bytes);
  expect(read).toEqual({ shape: [3, 1, 2], data: [10, 200, 20, 100, 30, 0] });
});
