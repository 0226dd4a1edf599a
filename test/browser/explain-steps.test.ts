// The page of a train step of more than a hundred kernels, and those of fewer, in a real browser: nothing lies on anything
// else at either width, everything is in view when fitted, and keys and search reach every kernel. Geometry is the page's own.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explain } from '../../src/explain/explain.ts';
import { explanationPage } from '../../src/explain/index.ts';
import * as sn from '../../src/index.ts';
import type { Explained } from '../../src/index.ts';
import { adam } from '../../src/optim/index.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';

type Weights = readonly sn.Tensor[];

/** A train step of a perceptron of so many layers: products of four sizes, and as many updates. */
function perceptron(layers: number): Explained {
  const sizes = Array.from({ length: layers + 1 }, (_, i) => [24, 40, 56, 32][i % 4]!);
  const weights = sizes.slice(1).map((size, i) => sn.zeros([sizes[i]!, size]));
  const optimizer = adam({ lr: 1e-3 });
  const step = (params: Weights, x: sn.Tensor): unknown => {
    const loss = (list: Weights): sn.Tensor =>
      list
        .reduce((h, w) => h.matmul(w).tanh(), x)
        .square()
        .mean();
    const { value, grad } = sn.valueAndGrad(loss)(params);
    return [value, optimizer.update(params, grad, optimizer.init(params))];
  };
  return explain(step, weights, sn.zeros([16, sizes[0]!]));
}

const makers = {
  three: () =>
    explain(
      (x: sn.Tensor, y: sn.Tensor) => x.matmul(y).softmax().matmul(y).cumsum(1).matmul(y),
      sn.zeros([48, 48]),
      sn.zeros([48, 48]),
    ),
  few: () => perceptron(3),
  many: () => perceptron(34),
} as const;
type Name = keyof typeof makers;

const explained = new Map<Name, Explained>();

/** A program, explained once, where a test looks at it. */
function programOf(name: Name): Explained {
  const known = explained.get(name) ?? makers[name]();
  explained.set(name, known);
  return known;
}

let folder: string;
let browser: Chromium;
let page: Page;
const complaints: string[] = [];

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-explained-steps-'));
  browser = await openChromium();
  page = await browser.context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
});
afterAll(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function open(name: Name, width: number, hash = ''): Promise<void> {
  const file = path.join(folder, `${name}.html`);
  if (!fs.existsSync(file)) fs.writeFileSync(file, explanationPage(programOf(name), { title: name }));
  await page.setViewportSize({ width, height: 900 });
  await page.goto('about:blank');
  await page.goto(pathToFileURL(file).href + hash);
}

/** Kernels whose frames overlap, and edges that run through the title of a card, in one drawing. */
const collisions = (id: string): Promise<string[]> =>
  page.evaluate((drawing) => {
    const svg = document.querySelector<SVGElement>(`#${drawing}`)!;
    const cards = [...svg.querySelectorAll<SVGElement>('.kernel')].map((card) => {
      const { x, y, width, height } = card.querySelector<SVGRectElement>('.box')!.getBBox();
      return { name: card.dataset['kernel']!, x, y, right: x + width, bottom: y + height };
    });
    const found: string[] = [];
    cards.forEach((a, i) => {
      for (const b of cards.slice(i + 1))
        if (a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom)
          found.push(`card ${a.name} lies on ${b.name}`);
    });
    for (const edge of svg.querySelectorAll<SVGElement>('.edge')) {
      const line = edge.querySelector<SVGPathElement>('.line')!;
      const [length, box] = [line.getTotalLength(), line.getBBox()];
      const near = cards.filter(
        (c) => c.x < box.x + box.width && box.x < c.right && c.y < box.y + box.height && box.y < c.bottom,
      );
      for (let at = 0; near.length > 0 && at <= length; at += 3) {
        const { x, y } = line.getPointAtLength(at);
        for (const card of near)
          if (x > card.x + 1 && x < card.right - 1 && y > card.y + 1 && y < card.y + 27)
            found.push(
              `edge ${edge.dataset['from']} to ${edge.dataset['to']} crosses the title of ${card.name}`,
            );
      }
    }
    return [...new Set(found)];
  }, id);

/** What of the drawing is not wholly in view: cards, stages, and names of stages. */
const outside = (): Promise<string[]> =>
  page.evaluate(() => {
    const view = document.querySelector('#view-cards')!.getBoundingClientRect();
    return [
      ...document.querySelectorAll<SVGElement>('#cards .kernel .box, #cards .group rect, #cards .group text'),
    ]
      .filter((part) => {
        const { left, right, top, bottom } = part.getBoundingClientRect();
        return (
          left < view.left - 1 || right > view.right + 1 || top < view.top - 1 || bottom > view.bottom + 1
        );
      })
      .map((part) => part.outerHTML.slice(0, 80));
  });

const chosen = (): Promise<number> =>
  page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('.about')].findIndex((about) => !about.hidden),
  );

test('the programs are what they are meant to be', () => {
  expect(programOf('three').kernels).toHaveLength(3);
  expect(programOf('few').kernels.length).toBeLessThan(20);
  expect(programOf('many').kernels.length).toBeGreaterThanOrEqual(100);
});

describe.each([1400, 2000])('%i wide', (width) => {
  test.each(Object.keys(makers) as Name[])(
    '%s: nothing lies on anything, and all is in view',
    async (name) => {
      await open(name, width);
      expect(await collisions('cards')).toEqual([]);
      expect(await collisions('nodes')).toEqual([]);
      await page.click('#tab-cards');
      await page.keyboard.press('Escape');
      await page.keyboard.press('f');
      expect(await outside()).toEqual([]);
    },
  );

  test.each(Object.keys(makers) as Name[])('%s: the memory table keeps to its half', async (name) => {
    await open(name, width);
    for (const place of [0, programOf(name).kernels.length - 1]) {
      await page.evaluate((at) => (location.hash = `#kernel-${at}`), place);
      const lost = await page.evaluate((at) => {
        const half = document.querySelector(`#kernel-${at} .halves > div`)!.getBoundingClientRect();
        return [...document.querySelectorAll(`#kernel-${at} .memory td.n`)]
          .filter((cell) => cell.getBoundingClientRect().right > half.right + 1)
          .map((cell) => cell.textContent);
      }, place);
      expect(lost).toEqual([]);
    }
  });
});

describe('a hundred kernels', () => {
  test('open whole, under the stages of the step, whose names can be read', async () => {
    await open('many', 1400);
    expect(await outside()).toEqual([]);
    const titles = await page
      .locator('#cards .group .title')
      .evaluateAll((all) =>
        all.map((title) => [title.textContent, title.getBoundingClientRect().height] as const),
      );
    expect(titles.map(([text]) => text)).toEqual(
      ['Forward', 'Backward', 'Update'].filter((name) =>
        programOf('many').kernels.some(({ stage }) => stage === name.toLowerCase()),
      ),
    );
    for (const [, height] of titles) expect(height).toBeGreaterThan(12);
  });

  test('are all reached by arrows, one after the other', async () => {
    await open('many', 1400, '#kernel-0');
    const seen = await page.evaluate(() => {
      const press = (key: string): boolean =>
        (document.activeElement ?? document.body).dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
        );
      const count = document.querySelectorAll('.about').length;
      const places = new Set<string>();
      for (let i = 0; i < count; i++) {
        places.add(document.querySelector<SVGElement>('#cards .kernel.on')!.dataset['kernel']!);
        press('ArrowRight');
      }
      return places.size;
    });
    expect(seen).toBe(programOf('many').kernels.length);
    const before = await chosen();
    await page.keyboard.press('ArrowUp');
    expect(await chosen()).not.toBe(before);
  });

  test('are each found by name', async () => {
    await open('many', 1400);
    await page.keyboard.press('/');
    const names = programOf('many').kernels.map(({ name }) => name);
    const missed = await page.evaluate((all) => {
      const search = document.querySelector<HTMLInputElement>('#search')!;
      if (document.activeElement !== search) return ['the field is not in focus'];
      return all.filter((name, i) => {
        search.value = name;
        search.dispatchEvent(new Event('input', { bubbles: true }));
        return !document.querySelector(`#cards [data-kernel="${i}"]`)!.classList.contains('hit');
      });
    }, names);
    expect(missed).toEqual([]);
    await page.fill('#search', names[7]!);
    await page.keyboard.press('Enter');
    expect(await chosen()).toBe(7);
    await page.fill('#search', 'no such thing');
    expect(await page.textContent('#hits')).toBe('nothing found');
    await page.keyboard.press('Escape');
    expect(await page.inputValue('#search')).toBe('');
    expect(await page.locator('#cards .dim').count()).toBe(0);
  });
});

test('the keys are told, and Escape closes them', async () => {
  await open('few', 1400);
  await page.keyboard.press('?');
  expect(await page.locator('#help').isVisible()).toBe(true);
  await page.keyboard.press('Escape');
  expect(await page.locator('#help').isVisible()).toBe(false);
});

test('a kernel, its memory and its source lead to each other', async () => {
  await open('few', 1400);
  await page.click('#tab-table');
  const place = await chosen();
  await page.click(`#kernel-${place} a[href="#memory-${place}"]`);
  expect(await chosen()).toBe(place);
  await page.click(`#kernel-${place} .locate`);
  const focused = await page.evaluate(() => (document.activeElement as SVGElement | null)?.dataset['kernel']);
  expect(focused).toBe(String(place));
  const value = await page.getAttribute('#cards .edge', 'data-values');
  await page.locator('#cards .edge .grip').first().dispatchEvent('click');
  const found = await page.locator('.about:not([hidden]) tr.found').getAttribute('data-node');
  expect(found).toBe(value!.split(' ')[0]);
  await page.hover('.about:not([hidden]) tr.found');
  expect(await page.locator('#cards .edge.found').count()).toBeGreaterThan(0);
});

test('nothing went wrong meanwhile', () => expect(complaints).toEqual([]));
