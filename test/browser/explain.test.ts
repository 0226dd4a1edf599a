// The page of an explanation in a real browser: what it shows at first, choosing kernels by mouse and keyboard, its views, what
// things say when pointed at, both colour schemes, narrow windows, and no scripts at all.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { explain } from '../../src/explain/explain.ts';
import { explanationPage } from '../../src/explain/index.ts';
import type { Explained, ExplainedSource } from '../../src/index.ts';
import { workloads } from '../../src/workloads/all.ts';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { serve } from './serve.ts';

function explained(workload: string): Explained {
  const { fn, args } = workloads.find(({ name }) => name === workload)!;
  return explain(fn, ...args());
}

const shown = explained('gptBlockForward');
const dearest = shown.kernels.reduce((best, { time }, i) => (time > shown.kernels[best]!.time ? i : best), 0);

interface Told {
  readonly text: string;
  readonly page: string;
  readonly sources: readonly (ExplainedSource | undefined)[];
}

let folder: string;
let browser: Chromium;
let page: Page;
const complaints: string[] = [];
const asked: string[] = [];
const url = (file: string): string => pathToFileURL(path.join(folder, file)).href;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-explained-'));
  const html = explanationPage(shown, { title: 'a block' });
  fs.writeFileSync(path.join(folder, 'page.html'), html);
  fs.writeFileSync(path.join(folder, 'plain.html'), html.replace(/<script>[\s\S]*<\/script>/, ''));
  browser = await openChromium();
  page = await browser.context.newPage();
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
});
afterAll(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function open(hash = ''): Promise<void> {
  await page.goto('about:blank');
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(`${url('page.html')}${hash}`);
}
beforeEach(() => open());

/** Places of the kernels whose sections are shown. */
const visible = (): Promise<number[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('.about')].flatMap((section, i) =>
      section.checkVisibility() ? [i] : [],
    ),
  );

const viewBox = async (id: string): Promise<number[]> =>
  ((await page.getAttribute(`#${id}`, 'viewBox')) ?? '').split(' ').map(Number);

test('it opens with the dearest kernel, needing nothing but itself', async () => {
  expect(await visible()).toEqual([dearest]);
  expect(await page.locator('#view-cards').isVisible()).toBe(true);
  expect(asked.filter((address) => address !== 'about:blank')).toEqual([url('page.html')]);
  expect(complaints).toEqual([]);
});

test('a link to a kernel opens that one', async () => {
  await open('#kernel-3');
  expect(await visible()).toEqual([3]);
});

test('a click on a kernel shows it and marks what it exchanges', async () => {
  await page.click('[data-zoom="fit"]');
  await page.click('#cards [data-kernel="2"]');
  expect(await visible()).toEqual([2]);
  expect(page.url()).toContain('#kernel-2');
  const marked = await page
    .locator('#cards .edge.on')
    .evaluateAll((edges) =>
      edges.map(
        (edge) => (edge as SVGElement).dataset['from'] === '2' || (edge as SVGElement).dataset['to'] === '2',
      ),
    );
  expect(marked.length).toBeGreaterThan(1);
  expect(marked).not.toContain(false);
  expect(await page.textContent('#spoken')).toContain(shown.kernels[2]!.name);
});

test('keys walk from kernel to kernel, and one of them only is a stop for Tab', async () => {
  await page.focus('#cards .kernel.on');
  await page.keyboard.press('ArrowDown');
  expect(await visible()).toEqual([dearest + 1]);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  expect(await visible()).toEqual([dearest - 1]);
  const focused = await page.evaluate(() => (document.activeElement as SVGElement | null)?.dataset['kernel']);
  expect(focused).toBe(String(dearest - 1));
  expect(await page.locator('#cards .kernel[tabindex="0"]').count()).toBe(1);
});

test('keys reach every control', async () => {
  const reached = new Set<string>();
  for (let i = 0; i < 14; i++) {
    await page.keyboard.press('Tab');
    reached.add(
      await page.evaluate(() => {
        const at = document.activeElement;
        return at?.getAttribute('role') ?? at?.tagName.toLowerCase() ?? '';
      }),
    );
  }
  for (const kind of ['tab', 'button', 'a']) expect([...reached]).toContain(kind);
  await page.focus('#tab-cards');
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('#view-nodes').isVisible()).toBe(true);
  expect(await page.locator('#view-cards').isVisible()).toBe(false);
});

test('the nodes of the chosen kernel are in sight when nodes are shown', async () => {
  await page.click('#tab-nodes');
  const inside = await page.evaluate((place) => {
    const box = document.querySelector(`#nodes [data-kernel="${place}"] .box`)!.getBoundingClientRect();
    const view = document.querySelector('#view-nodes')!.getBoundingClientRect();
    return box.top < view.bottom && box.bottom > view.top && box.left < view.right && box.right > view.left;
  }, dearest);
  expect(inside).toBe(true);
  // A node in the list lights up in the drawing.
  await page.hover(`#kernel-${dearest} .chips li >> nth=0`);
  expect(await page.locator('#nodes .node.found').count()).toBeGreaterThan(0);
});

test('the drawing zooms, moves and fits', async () => {
  const before = await viewBox('cards');
  await page.click('[data-zoom="1.25"]');
  expect((await viewBox('cards'))[2]).toBeLessThan(before[2]!);
  await page.mouse.move(150, 150);
  await page.mouse.down();
  await page.mouse.move(250, 200, { steps: 4 });
  await page.mouse.up();
  const moved = await viewBox('cards');
  expect(moved[0]).not.toBe(before[0]);
  expect(await visible()).toEqual([dearest]);
  await page.click('[data-zoom="fit"]');
  const [x, y, width, height] = await viewBox('cards');
  const whole = await page.evaluate(() => {
    const { width: w, height: h } = document.querySelector<SVGElement>('#cards')!.dataset;
    return [Number(w), Number(h)];
  });
  expect(x).toBeLessThanOrEqual(1);
  expect(y).toBeLessThanOrEqual(1);
  expect(x! + width!).toBeGreaterThanOrEqual(whole[0]! - 1);
  expect(y! + height!).toBeGreaterThanOrEqual(whole[1]! - 1);
});

test('an edge says how many bytes pass', async () => {
  await page.click('[data-zoom="fit"]');
  const at = await page.evaluate(() => {
    const path = document.querySelector<SVGPathElement>('#cards .edge .line')!;
    const point = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM()!);
    return { x: point.x, y: point.y };
  });
  await page.mouse.move(at.x - 1, at.y);
  await page.mouse.move(at.x, at.y);
  expect(await page.locator('#tip').isVisible()).toBe(true);
  expect(await page.textContent('#tip')).toMatch(/[KM]?i?B\n.*from \w+ to \w+/s);
});

test('a name leads to its line of the recorded graph', async () => {
  const link = page.locator(`#kernel-${dearest} .chips a >> nth=0`);
  const name = (await link.textContent())!;
  await link.click();
  expect(await page.locator('#view-graph').isVisible()).toBe(true);
  expect(await page.textContent('pre .found')).toMatch(new RegExp(`^\\s*${name} = `));
});

test('the table leads to kernels', async () => {
  await page.click('#tab-table');
  await page.click('#view-table a >> nth=5');
  expect(await visible()).toEqual([5]);
  expect(await page.locator('#view-table tr.on').count()).toBe(1);
});

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  test('everything that is written can be read', async () => {
    await page.emulateMedia({ colorScheme });
    await open();
    const poor = await page.evaluate(() => {
      const parse = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number);
      const light = (color: string): number => {
        const [r, g, b] = parse(color).map((part) => {
          const c = part / 255;
          return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
      };
      const behind = (element: Element): string => {
        for (let at: Element | null = element; at !== null; at = at.parentElement) {
          const { backgroundColor } = getComputedStyle(at);
          if (parse(backgroundColor)[3] !== 0) return backgroundColor;
        }
        return 'rgb(255, 255, 255)';
      };
      const found: string[] = [];
      for (const element of document.querySelectorAll<HTMLElement>('body *:not(svg, svg *)')) {
        const own = [...element.childNodes].some(
          (node) => node.nodeType === 3 && node.nodeValue!.trim() !== '',
        );
        if (!own || !element.checkVisibility() || element.closest('script, .spoken') !== null) continue;
        const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) found.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)}`);
      }
      return [...new Set(found)];
    });
    expect(poor).toEqual([]);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(paper).toBe(colorScheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(21, 23, 27)');
    await page.emulateMedia({ colorScheme: null });
  });
});

test.each([360, 800, 1440, 2200])('a window %i wide scrolls downwards only', async (width) => {
  await page.setViewportSize({ width, height: 800 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow).toBeLessThanOrEqual(0);
});

test('a program of hundreds of nodes opens as well', async () => {
  const training = explained('gptBlockTrain');
  fs.writeFileSync(path.join(folder, 'training.html'), explanationPage(training));
  await page.goto(url('training.html'));
  expect(await visible()).toHaveLength(1);
  expect(await page.locator('#cards .kernel').count()).toBe(training.kernels.length);
  await page.click('#tab-nodes');
  expect(await page.locator('#nodes .node').count()).toBeGreaterThan(300);
});

test('without scripts everything is there, one after the other', async () => {
  await page.goto(url('plain.html'));
  expect(await visible()).toEqual([...shown.kernels.keys()]);
  expect(await page.locator('svg.drawing').first().isVisible()).toBe(true);
});

test('a page of one’s own explains and draws as well', async () => {
  const project = path.join(folder, 'project');
  const home = stagePackage(project);
  const modules = path.join(import.meta.dirname, '../../node_modules/@dagrejs');
  fs.symlinkSync(modules, path.join(home, '../@dagrejs'));
  const program = [
    "import { explain, loadCompiler, zeros } from 'sinter';",
    "import { explanationPage } from 'sinter/explain';",
    '// Templates and emitters come with the first kernel of their kind; what compiles at once wants all of them.',
    'await loadCompiler();',
    'const shown = explain((x) => x.matmul(x).softmax(), zeros([64, 64]));',
    'globalThis.told = { text: String(shown), page: explanationPage(shown), sources: shown.nodes.map((node) => node.source) };',
  ];
  fs.writeFileSync(path.join(project, 'program.js'), program.join('\n'));
  const { files, imports } = await bundle(project, { program: path.join(project, 'program.js') });
  expect(imports).toEqual([]);
  const served = await serve((at) => {
    const body = at === '/' ? '<script type="module" src="/program.js"></script>' : files.get(at.slice(1));
    return body === undefined
      ? undefined
      : { body, headers: at === '/' ? { 'content-type': 'text/html' } : {} };
  });
  const other = await browser.context.newPage();
  try {
    const failures: string[] = [];
    other.on('pageerror', (error) => failures.push(String(error)));
    await other.goto(served.origin);
    await other.waitForFunction(() => 'told' in globalThis).catch(() => undefined);
    expect(failures).toEqual([]);
    const told = await other.evaluate(() => (globalThis as unknown as { told: Told }).told);
    expect(told.text).toContain('why kernels are separate');
    expect(told.page).toMatch(/^<!doctype html>/);
    // Minified, the stack tells the place of a call and nothing made up; what is one primitive has its name.
    for (const source of told.sources) expect(source?.at ?? 'program.js:1:1').toMatch(/^[\w-]+\.js:\d+:\d+$/);
  } finally {
    await other.close();
    await served.close();
  }
});

test('nothing went wrong meanwhile', () => {
  expect(complaints).toEqual([]);
  expect(asked.filter((address) => !/^about:|(?:page|plain|training)\.html/.test(address))).toEqual([]);
});
