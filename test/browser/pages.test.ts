// What whole pages download until their first result: pages as their authors write them, built by Vite with its defaults, each by
// itself, and opened by Chromium with empty caches. `npm run bench:pages` measures how long they take as well.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPage, type BuiltPage } from '../../bench/pages/build.ts';
import { bytesOf } from '../../bench/pages/measure.ts';
import {
  isExpected,
  openSite,
  pageNames,
  type Bar,
  type PageName,
  type Site,
} from '../../bench/pages/site.ts';
import { openVisitor, type Visitor } from '../../bench/pages/visit.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';

/** Bytes as sent, gzipped, and requests, the page itself among them: what they were in November 2026, and little more. */
const limits = {
  one: {
    wasm: { bytes: 179_300, requests: 8 },
    'webgpu:software': { bytes: 181_600, requests: 8 },
  },
  mlp: {
    wasm: { bytes: 190_600, requests: 8 },
    'webgpu:software': { bytes: 192_900, requests: 8 },
  },
  every: {
    wasm: { bytes: 313_900, requests: 9 },
    'webgpu:software': { bytes: 315_800, requests: 9 },
  },
} as const satisfies Readonly<Record<PageName, Readonly<Record<string, Required<Bar>>>>>;

const devices = ['wasm', 'webgpu:software'] as const;

let site: Site;
let browser: Chromium;
let visitor: Visitor;

beforeAll(async () => {
  site = openSite();
  browser = await openChromium();
  visitor = await openVisitor(browser);
});
afterAll(async () => {
  await visitor?.close();
  await browser?.close();
  site?.remove();
});

test.each([
  ['throws', "throw new Error('it broke')", 'it broke'],
  ['rejects', "void Promise.reject(new Error('it broke later'))", 'it broke later'],
  ['lacks a file', "void import('./lost.js')", '404 for '],
])('a page that %s is no page with a result', async (_, script, problem) => {
  const html = `<!doctype html><title>Page</title><script type="module">${script}</script>`;
  const page = { files: new Map([['index.html', Buffer.from(html)]]), entry: '', makeup: new Map() };
  await expect(visitor.visit(page)).rejects.toThrow(problem);
});

describe.each(pageNames)('the page %s', (name) => {
  let page: BuiltPage;
  beforeAll(async () => {
    page = await buildPage(await site.folderOf(name));
  });

  test.each(devices)('has its first result on %s of few bytes and requests', async (device) => {
    const { sent, values } = await visitor.visit(page, device);
    console.log(`${name} on ${device}: ${bytesOf(sent)} bytes gzipped in ${sent.length} requests`);
    expect(values).toSatisfy((seen: readonly number[]) => isExpected(name, seen));
    // The page and at least one script, each asked for once.
    expect(sent.length).toBeGreaterThan(1);
    expect(new Set(sent.map((file) => file.name)).size).toBe(sent.length);
    expect(bytesOf(sent)).toBeLessThanOrEqual(limits[name][device].bytes);
    expect(sent.length).toBeLessThanOrEqual(limits[name][device].requests);
    if (device !== 'wasm') return;
    // README.md and docs/browser.md state the figures of WebAssembly, in the order of the pages.
    const place = pageNames.indexOf(name);
    for (const [file, rows] of [
      ['README.md', /(\d+) kB \((?:gzipped, in )?(\d+)(?: requests)?\)/g],
      ['docs/browser.md', /^\|[^|]*\| (\d+) kB *\| (\d+) *\|$/gm],
    ] as const) {
      const stated = [...readFileSync(join(import.meta.dirname, '../..', file), 'utf8').matchAll(rows)][
        place
      ];
      expect(Number(stated?.[2]), file).toBe(sent.length);
      expect(Math.abs(Number(stated?.[1]) / (bytesOf(sent) / 1000) - 1), file).toBeLessThan(0.02);
    }
  });
});

test.each([
  ['wasm', /^assets\/wasm-/],
  ['webgpu:software', /^assets\/wgsl-/],
])('a page on %s asks for the emitter before anything of the compiler has come', async (device, until) => {
  const page = await buildPage(await site.folderOf('one'));
  const { values } = await visitor.visit(page, device, {
    files: /^assets\/(compiler|products|device|open)/,
    until,
  });
  expect(values).toSatisfy((seen: readonly number[]) => isExpected('one', seen));
});
