// Visits to built pages: each in a context of the browser that has seen nothing yet, over HTTP, gzipped. The first thing that
// a page prints is its first result; what was asked for until then is counted.

import { gzipSync } from 'node:zlib';
import { serve } from '../../test/browser/serve.ts';
import type { Chromium } from '../../test/support/browser/chromium.ts';
import type { BuiltPage } from './build.ts';

/** A file as it went over the line. */
export interface Sent {
  readonly name: string;
  readonly bytes: number;
}

/** What a page had done when it printed for the first time. */
export interface Visit {
  /** In the order of the requests, the page itself first. */
  readonly sent: readonly Sent[];
  /** From the beginning of the navigation, by the page's own clock. */
  readonly ms: number;
  readonly values: readonly number[];
}

/** How long a page may take, in ms. */
const longest = 120_000;

/** Runs before the page's own scripts, and costs the page no bytes: tells the server of the first thing that is printed. */
const listener = `{
  const print = console.log;
  console.log = (...values) => {
    const ms = performance.now();
    console.log = print;
    void fetch('/told', { method: 'POST', body: JSON.stringify({ ms, values: Array.from(values[0], Number) }) });
  };
}`;

/** Files are held back until another is asked for, each given by a pattern of its name. */
export interface Hold {
  readonly files: RegExp;
  readonly until: RegExp;
}

/** Pages behind a server of their own, one after the other. */
export interface Visitor {
  /** Opens the page on a device, or on what it chooses by itself; rejects with what the page complains of. */
  visit(page: BuiltPage, device?: string, hold?: Hold): Promise<Visit>;
  close(): Promise<void>;
}

/** Serves what `visit` is given, to `browser`. */
export async function openVisitor(browser: Chromium): Promise<Visitor> {
  const packed = new WeakMap<BuiltPage, ReadonlyMap<string, Uint8Array>>();
  let files: ReadonlyMap<string, Uint8Array> = new Map();
  let sent: Sent[] = [];
  let told: (report: string) => void = () => {};
  let held: { readonly hold: Hold; readonly when: Promise<void>; readonly release: () => void } | undefined;
  const served = await serve((at, _, body) => {
    if (at === '/told') {
      told(body);
      return { body: '' };
    }
    const name = at === '/' ? 'index.html' : at.slice(1);
    const file = files.get(name);
    if (file === undefined) return undefined;
    sent.push({ name, bytes: file.length });
    const type = at === '/' ? { 'content-type': 'text/html; charset=utf-8' } : {};
    if (held?.hold.until.test(name)) held.release();
    const after = held?.hold.files.test(name) === true ? held.when : undefined;
    return {
      body: file,
      ...(after !== undefined && { after }),
      headers: { 'content-encoding': 'gzip', ...type },
    };
  });

  return {
    async visit(page, device, hold) {
      // Compressed beforehand, so that no visit waits for it.
      const ready = packed.get(page) ?? gzipped(page.files);
      packed.set(page, ready);
      [files, sent] = [ready, []];
      held = hold && { hold, ...released() };
      const context = await browser.context.browser()!.newContext();
      try {
        const tab = await context.newPage();
        const report = new Promise<string>((resolve, reject) => {
          told = resolve;
          setTimeout(() => reject(new Error(`nothing printed within ${longest} ms`)), longest).unref();
          tab.on('pageerror', reject);
          tab.on('crash', () => reject(new Error('the page crashed')));
          tab.on('requestfailed', (request) => reject(new Error(`no answer for ${request.url()}`)));
          tab.on('response', (response) => {
            if (response.status() >= 400) reject(new Error(`${response.status()} for ${response.url()}`));
          });
        });
        // It may reject before it is awaited.
        report.catch(() => {});
        await tab.addInitScript(listener);
        const query = device === undefined ? '' : `?device=${encodeURIComponent(device)}`;
        await tab.goto(`${served.origin}/${query}`, { waitUntil: 'commit' });
        const text = await report;
        const until = [...sent];
        return { ...(JSON.parse(text) as Pick<Visit, 'ms' | 'values'>), sent: until };
      } finally {
        await context.close();
      }
    },
    close: () => served.close(),
  };
}

/** A promise that `release` resolves. */
function released(): { readonly when: Promise<void>; readonly release: () => void } {
  let release = (): void => {};
  const when = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { when, release };
}

/** Every file at the highest level of compression. */
export function gzipped(files: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
  return new Map([...files].map(([name, bytes]) => [name, gzipSync(bytes, { level: 9 })]));
}
