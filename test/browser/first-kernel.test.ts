// What a page that has all of `sinter` downloads until its first kernel has run, and that the rest comes when it is used: the
// published package, bundled with its parts apart, by Chromium.
//
// Its tests follow one another: what a page loads depends on what it has loaded.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as sinter from '../../src/index.ts';
import { bundle, stagePackage } from '../support/browser/package.ts';
import { openChromium, type Chromium } from '../support/browser/chromium.ts';
import { serve, type Served } from './serve.ts';

/** Bytes of gzipped scripts, all that was asked for until the first kernel's result was there. docs/browser.md tells of them. */
const limits = { wasm: 170_000, 'webgpu:software': 170_000 } as const;
type Device = keyof typeof limits;

const PROGRAM = "import * as sn from 'sinter';\nglobalThis.sn = sn;\n";
const PAGE = '<!doctype html><title>Sinter</title><script type="module" src="/everything.js"></script>';

let folder: string;
let served: Served;
let browser: Chromium;
/** Names of the scripts that were asked for since the page was opened. */
let asked: string[] = [];
let sizes: ReadonlyMap<string, number>;

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-first-kernel-'));
  stagePackage(folder);
  const entry = path.join(folder, 'everything.js');
  fs.writeFileSync(entry, PROGRAM);
  const { files } = await bundle(folder, { everything: entry }, false);
  sizes = new Map([...files].map(([name, code]) => [name, gzipSync(code, { level: 9 }).length]));
  served = await serve((at) => {
    if (at === '/page.html') return { body: PAGE };
    if (at === '/favicon.ico') return { body: '' };
    const body = files.get(at.slice(1));
    if (body !== undefined) asked.push(at.slice(1));
    return body === undefined ? undefined : { body };
  });
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  await served?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function bytesOf(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + sizes.get(name)!, 0);
}

/** Runs `program` in the page; gives its result, and the bytes of the scripts that it had to wait for. */
async function ran(
  page: Page,
  program: (sn: typeof sinter) => Promise<ArrayLike<number | bigint>>,
): Promise<{ readonly result: readonly number[]; readonly bytes: number }> {
  const before = asked.length;
  const text = `(${String(program)})(globalThis.sn).then((values) => Array.from(values, Number))`;
  const result = await page.evaluate<number[]>(text);
  return { result, bytes: bytesOf(asked.slice(before)) };
}

describe.each(Object.keys(limits) as Device[])('on %s', (device) => {
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

  test('a page has its first result of a part of Sinter', async () => {
    const { result } = await ran(page, (sn) => sn.tensor([1, 2, 3]).add(1).data());
    expect(result).toEqual([2, 3, 4]);
    const bytes = bytesOf(asked);
    console.log(
      `until the first kernel on ${device}: ${bytes} bytes gzipped in ${asked.length} files, ` +
        `of ${bytesOf([...sizes.keys()])} in ${sizes.size}`,
    );
    expect(bytes).toBeLessThan(limits[device]);
  });

  test('what compiles without waiting says what it lacks', async () => {
    const message = await page.evaluate<string>(
      'try { String(sn.explain(sn.ones([2]).add(1))) } catch (error) { `${error.code} ${error.message}` }',
    );
    expect(message).toMatch(
      /^E_STATE sinter: its part 'explain' is not loaded[^]*try: await loadCompiler\(\)/,
    );
  });

  test('what an operation gives that has not come has no shape until it is read', async () => {
    const seen = await page.evaluate<string[]>(`(async () => {
      const y = sn.cumsum(sn.tensor([1, 2, 3]), 0).neg();
      let before = 'nothing thrown';
      try { y.shape } catch (error) { before = \`\${error.code} \${error.message}\`; }
      return [String(y), before, String(await y.array()), String(y.shape)];
    })()`);
    expect(seen).toEqual([
      "Tensor (waits for 'scans and sorts')",
      expect.stringMatching(/^E_STATE sinter: its part 'scans and sorts' is not loaded/) as string,
      '-1,-3,-6',
      '3',
    ]);
  });

  test('products, transforms, sorts and gradients load what they need, and compute', async () => {
    const product = await ran(page, (sn) =>
      sn
        .ones([2, 3])
        .matmul(sn.ones([3, 1]))
        .data(),
    );
    expect(product).toEqual({
      result: [3, 3],
      bytes: expect.toSatisfy((bytes: number) => bytes > 5000) as number,
    });
    const transform = await ran(page, (sn) =>
      sn.fft
        .rfft(sn.tensor([1, 2, 3, 4]))
        .abs()
        .square()
        .data(),
    );
    expect(transform.result.map(Math.round)).toEqual([100, 8, 4]);
    expect(transform.bytes).toBeGreaterThan(1000);
    const sorted = await ran(page, (sn) => sn.sort(sn.tensor([3, 1, 2]))[0].data());
    expect(sorted.result).toEqual([1, 2, 3]);
    expect(sorted.bytes).toBeGreaterThan(1000);
    const gradient = await ran(page, (sn) => {
      const loss = (x: sinter.Tensor): sinter.Tensor => x.square().sum();
      return sn
        .grad(loss)(sn.tensor([1, 2, 3]))
        .data();
    });
    expect(gradient.result).toEqual([2, 4, 6]);
    const compiled = await ran(page, (sn) => {
      const doubled = sn.compile((x: sinter.Tensor) => x.mul(2));
      return doubled(sn.tensor([1, 2]))
        .add(doubled(sn.tensor([3, 4])))
        .data();
    });
    expect(compiled.result).toEqual([8, 12]);
    const reduced = await ran(page, (sn) => sn.tensor([1, 2, 3]).softmax(0).sum().data());
    expect(reduced.result[0]).toBeCloseTo(1);
    expect(reduced.bytes).toBeGreaterThan(1000);
    const again = await ran(page, (sn) =>
      sn
        .ones([2, 4])
        .matmul(sn.ones([4, 1]))
        .data(),
    );
    expect(again).toEqual({ result: [4, 4], bytes: 0 });
  });

  test('all of the compiler can be asked for beforehand', async () => {
    // What it makes of a function asks for its code when that is called.
    await page.evaluate('globalThis.rowSums = sn.vmap((row) => row.sum())');
    const early = 'try { String(rowSums(sn.ones([2, 3]))) } catch (error) { error.code }';
    expect(await page.evaluate(early)).toBe('E_STATE');
    await page.evaluate('sn.loadCompiler()');
    expect(await page.evaluate('rowSums(sn.ones([2, 3])).array()')).toEqual([3, 3]);
    const running = 'sn.scan((sum, x) => [sum.add(x), sum], 0, sn.tensor([1, 2, 3]))[0].item()';
    expect(await page.evaluate(running)).toBe(6);
    expect(await page.evaluate('String(sn.explain(sn.ones([2]).add(1)))')).toContain('kernel');
    const before = asked.length;
    const { result } = await ran(page, (sn) => sn.linalg.cholesky(sn.eye(2).mul(4)).data());
    expect(result).toEqual([2, 0, 0, 2]);
    expect(asked.slice(before)).toEqual([]);
  });
});
