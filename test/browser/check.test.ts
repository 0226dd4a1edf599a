// `check` in a real browser: the interpreter and what compares with it are downloaded when a page asks for them.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { serve, type Served } from './serve.ts';

const PROGRAM = `import { arange, check, setDevice, useWorkarounds } from 'sinter';
globalThis.checked = async (device) => {
  setDevice(device);
  const x = arange(8192).mul(0.01).sin().reshape([16, 512]);
  const found = await check(async () => {
    const rows = x.softmax(-1);
    return Array.from(await rows.matmul(x.transpose(0, 1)).cumsum(0).sum(1).data()).length;
  });
  return { value: found.value, text: String(found), wrong: found.wrong.length, count: found.kernels.length };
};
globalThis.replaced = async () => {
  setDevice('wasm:1');
  const first = await check(() => arange(4).mul(2).data());
  const { device, description } = first;
  const entry = { device, description, avoid: [], schedules: {}, wrong: [], instead: 'interpreter' };
  useWorkarounds({ version: 1, entries: [entry] });
  setDevice('wasm:1');
  return check(() => arange(4).mul(2).data()).then(() => 'none', (error) => error.code);
};`;

let folder: string;
let served: Served;
let browser: Chromium;
let page: Page;
const asked: string[] = [];
const complaints: string[] = [];

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-check-page-'));
  stagePackage(folder);
  fs.writeFileSync(path.join(folder, 'own.js'), PROGRAM);
  const { files } = await bundle(folder, { own: path.join(folder, 'own.js') }, false);
  served = await serve((at) => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/own.html') return { body: '<!doctype html><script type="module" src="/own.js"></script>' };
    const body = files.get(at.slice(1));
    return body === undefined ? undefined : { body };
  });
  browser = await openChromium();
  page = await browser.context.newPage();
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${served.origin}/own.html`);
  await page.waitForFunction('globalThis.replaced !== undefined');
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

test.each(['webgpu:software', 'wasm:1'])('kernels on %s are right', async (device) => {
  const before = asked.length;
  const found = await page.evaluate<{ value: number; text: string; wrong: number; count: number }>(
    `checked(${JSON.stringify(device)})`,
  );
  expect(found, found.text).toMatchObject({ value: 16, wrong: 0 });
  expect(found.count).toBeGreaterThan(2);
  expect(found.text).toMatch(/^all right: .* beside the interpreter, on /);
  // What compares was not there before.
  if (device === 'webgpu:software') expect(asked.length).toBeGreaterThan(before);
  expect(complaints).toEqual([]);
});

test('a table that says so has another device compute', async () => {
  // The interpreter, with which nothing is compared.
  expect(await page.evaluate('replaced()')).toBe('E_VALUE');
  expect(complaints).toEqual([]);
});
