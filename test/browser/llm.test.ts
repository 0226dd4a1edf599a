// Language models in a page: a file that its user chooses is read, and what is written is what Node writes; and the page of
// examples/chat answers.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { loadModel } from '../../src/llm/index.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';
import { serve, type Served } from './serve.ts';

const project = path.resolve(import.meta.dirname, '../..');
const example = path.join(project, 'examples/chat');
const PROGRAM = `import { loadModel } from 'sinter/llm';
globalThis.answered = async (file) => {
  const packages = { jinja: () => import('@huggingface/jinja') };
  const model = await loadModel(file, { device: 'wasm:1', contextLength: 64, packages });
  return model.chat([{ role: 'user', content: 'ab' }], { temperature: 0, maxTokens: 6 }).text();
};`;

let folder: string;
let served: Served;
let browser: Chromium;
let page: Page;
let bytes: Uint8Array;
const complaints: string[] = [];

beforeAll(async () => {
  const spec = fileSpecs.find(({ name }) => name === 'llama q8_0')!;
  bytes = await ggufBytes({ ...spec, extra: { context_length: 4096 } });
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-llm-page-'));
  stagePackage(folder);
  fs.symlinkSync(
    path.join(project, 'node_modules/@huggingface'),
    path.join(folder, 'node_modules/@huggingface'),
  );
  fs.copyFileSync(path.join(example, 'chat.js'), path.join(folder, 'chat.js'));
  fs.writeFileSync(path.join(folder, 'own.js'), PROGRAM);
  const entries = { chat: path.join(folder, 'chat.js'), own: path.join(folder, 'own.js') };
  const { files } = await bundle(folder, entries, false);
  served = await serve((at) => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/own.html') return { body: '<!doctype html><script type="module" src="/own.js"></script>' };
    if (at === '/model.gguf') return { body: bytes };
    if (at === '/chat.html') return { body: fs.readFileSync(path.join(example, 'index.html'), 'utf8') };
    const body = files.get(at.slice(1));
    return body === undefined ? undefined : { body };
  });
  browser = await openChromium();
  page = await browser.context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
  setDevice(undefined);
});

test('a page answers what Node answers', async () => {
  const model = await loadModel(bytes, { device: 'wasm:1', contextLength: 64 });
  const expected = await model
    .chat([{ role: 'user', content: 'ab' }], { temperature: 0, maxTokens: 6 })
    .text();
  model.dispose();
  await page.goto(`${served.origin}/own.html`);
  await page.waitForFunction('globalThis.answered !== undefined');
  const found = await page.evaluate<string>(
    "fetch('/model.gguf').then((response) => response.blob()).then(answered)",
  );
  expect(found).toBe(expected);
  expect(complaints).toEqual([]);
});

test('examples/chat loads the file that is chosen, and answers', async () => {
  await page.goto(`${served.origin}/chat.html`);
  await page.setInputFiles('#file', {
    name: 'small.gguf',
    mimeType: 'application/octet-stream',
    buffer: Buffer.from(bytes),
  });
  const invitation = 'What do you want to say?';
  const said = "document.querySelector('#said').textContent";
  await page.waitForFunction(`${said} === '${invitation}'`);
  await page.fill('#line', 'ab');
  await page.press('#line', 'Enter');
  await page.waitForFunction(`${said} !== '${invitation}'`);
  expect(complaints).toEqual([]);
});
