// Pictures and videos on their way through tensors onto canvases, in Chromium: the colours that go in come out, as computed, and
// on WebGPU no byte of them visits the host. So does the page of examples/video.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { bundle, stagePackage } from '../support/browser/package.ts';
import type { Picture, PixelsApi, SourceKind } from './pixels-page.ts';
import { serve, type Served } from './serve.ts';

const GPU = 'webgpu:software';
/** Canvases need what draws pages to lie on the same adapter as WebGPU. */
const FLAGS = [
  '--ignore-gpu-blocklist',
  '--use-vulkan=swiftshader',
  '--use-angle=swiftshader',
  '--disable-vulkan-surface',
];
const example = path.resolve(import.meta.dirname, '../../examples/video');

let folder: string;
let served: Served;
let browser: Chromium;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-pixels-'));
  const home = stagePackage(folder);
  const { files } = await bundle(folder, { page: path.join(import.meta.dirname, 'pixels-page.ts') });
  const scripts = new Map([['page.js', files.get('page.js')!], ...files]);
  served = await serve((at) => {
    if (at === '/favicon.ico') return { body: '' };
    if (at === '/test.html') return { body: '<!doctype html><script type="module" src="/page.js"></script>' };
    const [from, name] = at.startsWith('/video/')
      ? [example, at.slice('/video/'.length)]
      : [path.dirname(path.dirname(home)), at];
    const file = path.join(from, name);
    const body =
      scripts.get(at.slice(1)) ?? (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined);
    return body === undefined ? undefined : { body };
  });
  browser = await openChromium(FLAGS);
  page = await browser.context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${served.origin}/test.html`);
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Opaque colours, another for each pixel. */
function picture(width: number, height: number): Picture {
  const data = Array.from({ length: width * height }, (_, i) => [
    (37 * i) % 256,
    (11 * i + 90) % 256,
    255 - (i % 256),
    255,
  ]);
  return { width, height, data: data.flat() };
}

/** How far colours are apart at most. */
function apart(one: readonly number[], other: readonly number[]): number {
  expect(one.length).toBe(other.length);
  return one.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i]!)), 0);
}

const invertedBytes = ({ data }: Picture): number[] =>
  data.map((value, i) => (i % 4 === 3 ? 255 : 255 - value));

const api = (): Promise<import('playwright-core').JSHandle<PixelsApi>> =>
  page.evaluateHandle(() => (globalThis as unknown as { pixelsTest: PixelsApi }).pixelsTest);

describe.each([GPU, 'wasm'])('on %s', (device) => {
  const isGpu = device === GPU;

  test.each(['frame', 'bitmap', 'canvas', 'bytes'] as const)('a %s is inverted on a canvas', async (kind) => {
    const given = picture(19, 7);
    for (const layout of ['chw', 'hwc'] as const) {
      const run = { device, kind, given, layout };
      const shown = await (
        await api()
      ).evaluate((pixels, at) => pixels.inverted(at.device, at.kind, at.given, at.layout), run);
      expect([shown.width, shown.height]).toEqual([19, 7]);
      expect(apart(shown.data, invertedBytes(given))).toBeLessThanOrEqual(1);
      if (isGpu && kind !== 'bytes') expect(shown.crossed).toBe(0);
      else expect(shown.crossed).toBeGreaterThan(0);
    }
  });

  test('a playing video is read where it stands', async () => {
    // Plain areas: videos have fewer colours than brightnesses.
    const data = Array.from({ length: 64 * 64 }, (_, i) =>
      i % 64 < 32 ? [200, 40, 40, 255] : [30, 90, 220, 255],
    );
    const given = { width: 64, height: 64, data: data.flat() };
    const shown = await (
      await api()
    ).evaluate((pixels, at) => pixels.inverted(at.device, 'video', at.given, 'chw'), { device, given });
    const inner = (bytes: readonly number[]): number[] =>
      [10, 50].flatMap((x) => bytes.slice(4 * (64 * 30 + x), 4 * (64 * 30 + x) + 3));
    expect(apart(inner(shown.data), inner(invertedBytes(given)))).toBeLessThanOrEqual(12);
    if (isGpu) expect(shown.crossed).toBe(0);
  });

  test('elements are shares of 255, in the layout that is asked for', async () => {
    const given = { width: 2, height: 1, data: [255, 0, 51, 255, 0, 102, 255, 255] };
    const read = async (
      kind: SourceKind,
      options: object,
    ): Promise<{ shape: readonly number[]; data: readonly number[] }> =>
      (await api()).evaluate((pixels, at) => pixels.elements(at.device, at.kind, at.given, at.options), {
        device,
        kind,
        given,
        options,
      });
    for (const kind of ['frame', 'bytes', 'bitmap'] as const) {
      const planes = await read(kind, {});
      expect(planes.shape).toEqual([3, 1, 2]);
      expect(
        apart(
          planes.data.map((x) => 255 * x),
          [255, 0, 0, 102, 51, 255],
        ),
      ).toBeLessThanOrEqual(1);
      const rows = await read(kind, { layout: 'hwc' });
      expect(rows.shape).toEqual([1, 2, 4]);
      expect(
        apart(
          rows.data.map((x) => 255 * x),
          given.data,
        ),
      ).toBeLessThanOrEqual(1);
    }
    const wide = await read('bitmap', { width: 4, height: 3 });
    expect(wide.shape).toEqual([3, 3, 4]);
    // What lies between two pixels is between their colours.
    const [red] = [wide.data.slice(0, 4)];
    expect(red[0]).toBeCloseTo(1, 1);
    expect(red[3]).toBeCloseTo(0, 1);
    expect(red[1]! > red[2]!).toBe(true);
  });

  test('what cannot be read or drawn on is told', async () => {
    const told = await (await api()).evaluate((pixels, at) => pixels.failures(at), device);
    expect(told[0]).toContain('fromPixels: the source has no pixels');
    expect(told[1]).toContain('toCanvas: the canvas has a context of another kind');
    expect(told[2]).toContain('fromPixels: the source has no pixels: it is 0 by 0');
  });
});

test('the page of the example shows the edges of its pattern', async () => {
  const tab = await browser.context.newPage();
  tab.on('pageerror', (error) => complaints.push(String(error)));
  await tab.goto(`${served.origin}/video/index.html`);
  await tab.addScriptTag({
    type: 'module',
    content: `import { setDevice } from 'sinter'; setDevice('${GPU}'); window.ready = true;`,
  });
  await tab.waitForFunction(() => 'ready' in globalThis);
  // What the page shows is composed elsewhere; a canvas by itself can be looked at.
  await tab.evaluate(() => {
    const edges = document.querySelector('#edges')!;
    Object.assign(globalThis, { edges });
    edges.remove();
  });
  await tab.click('#pattern');
  await tab.waitForFunction(() => document.querySelector('#times')!.textContent?.endsWith('down'));
  const shown = await tab.evaluate(() => {
    const canvas = (globalThis as unknown as { edges: HTMLCanvasElement }).edges;
    const context = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d')!;
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    return { width: canvas.width, values: [...data].filter((_, i) => i % 4 === 0) };
  });
  expect(shown.width).toBe(320);
  // Little of the pattern is an edge, and some of it is.
  const bright = shown.values.filter((value) => value > 100).length;
  expect(bright).toBeGreaterThan(100);
  expect(bright).toBeLessThan(shown.values.length / 10);
  await tab.close();
});

test('nothing went wrong unsaid', () => expect(complaints).toEqual([]));
