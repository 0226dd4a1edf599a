// The measure of pages: how many bytes and requests a page needs until its first result, and how long that takes, beside the
// same page by jax-js. `npm run bench:pages -- --help` says what can be chosen; test/browser/pages.test.ts holds the counts.
//
// To read: `site.ts` has the pages (`programs/`), what they must print and what they may cost; `build.ts` builds one by Vite,
// `bundlers.ts` by the others; `visit.ts` opens it in Chromium and counts what is sent; `measure.ts` does so by turns;
// `makeup.ts` tells from source maps which folders a script's bytes come from; `report.ts` prints it all.

import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { openChromium } from '../../test/support/browser/chromium.ts';
import { chosen, count } from '../options.ts';
import { buildPage, type BuiltPage } from './build.ts';
import { buildBy, bundlers } from './bundlers.ts';
import { devices, measure, type Device, type Figures, type Subject } from './measure.ts';
import { bundlerTable, chunkTable, makeupOf, makeupTable, pageTable } from './report.ts';
import { isExpected, openSite, pageNames, type PageName, type Site } from './site.ts';

const help = `usage: npm run bench:pages -- [options]

  --page LIST      of ${pageNames.join(', ')}, jax; all by default
  --device LIST    of ${devices.join(', ')}; wasm,webgpu:software by default;
                   'default' is a page that chooses none
  --repeat N       counted visits of each page on each device; 5 by default
  --chunks         the files that each page asks for, and the folders that they are made of
  --bundlers       the page 'one' by ${bundlers.join(', ')} as well
  --json           figures as JSON
  --help           this text

Bytes are those of the bodies as sent, gzipped at level 9, with the page itself; times are medians of visits with
empty caches over the loopback, of a browser that has been warmed up. 'jax' is installed from the npm registry
into a temporary folder, and left out where there is none.`;

interface Options {
  readonly pages: readonly (PageName | 'jax')[];
  readonly devices: readonly Device[];
  readonly repeat: number;
  readonly chunks: boolean;
  readonly bundlers: boolean;
  readonly json: boolean;
}

function readOptions(): Options | 'help' {
  const { values } = parseArgs({
    options: {
      page: { type: 'string', default: [...pageNames, 'jax'].join() },
      device: { type: 'string', default: 'wasm,webgpu:software' },
      repeat: { type: 'string', default: '5' },
      chunks: { type: 'boolean', default: false },
      bundlers: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { chunks, json } = values;
  return {
    pages: chosen('page', values.page, [...pageNames, 'jax']),
    devices: chosen('device', values.device, devices),
    repeat: count('repeat', values),
    chunks,
    bundlers: values.bundlers,
    json,
  };
}

const note = (text: string): void => void process.stderr.write(`${text}\n`);

/** The pages that were asked for, built; `left` says what had to be left out. */
async function builtPages(
  site: Site,
  { pages, chunks }: Options,
): Promise<{ readonly subjects: readonly Subject[]; readonly jax?: string; readonly left: string[] }> {
  const subjects: Subject[] = [];
  for (const name of pageNames.filter((one) => pages.includes(one))) {
    note(`building ${name}`);
    const page = await buildPage(await site.folderOf(name), chunks);
    subjects.push({ name, page, isRight: (values) => isExpected(name, values) });
  }
  if (!pages.includes('jax')) return { subjects, left: [] };
  const found = await site.jax();
  if (typeof found === 'string') return { subjects, left: [`jax is left out: ${found}`] };
  const page = await buildPage(found.folder, chunks);
  subjects.push({ name: 'jax', page, isRight: (values) => isExpected('one', values) });
  return { subjects, jax: found.version, left: [] };
}

/** The page `one` by every bundler. */
async function bundledPages(site: Site): Promise<ReadonlyMap<string, BuiltPage>> {
  const folder = await site.folderOf('one');
  const built = new Map<string, BuiltPage>();
  for (const bundler of bundlers) {
    note(`building one by ${bundler}`);
    built.set(bundler, await buildBy[bundler](folder));
  }
  return built;
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options === 'help') return console.log(help);
  const site = openSite();
  try {
    const { subjects, jax, left } = await builtPages(site, options);
    const bundled = options.bundlers ? await bundledPages(site) : new Map<string, BuiltPage>();
    const browser = await openChromium();
    const plan = { devices: options.devices, repeat: options.repeat, note };
    const others = [...bundled].map(([name, page]) => ({
      name,
      page,
      isRight: (values: readonly number[]) => isExpected('one', values),
    }));
    try {
      const { figures, problems } = await measure(browser, subjects, plan);
      const byBundler = await measure(browser, others, plan);
      const trouble = [...problems, ...byBundler.problems];
      if (trouble.length > 0) process.exitCode = 1;
      const makeup = options.chunks ? makeups(subjects, figures) : [];
      if (options.json) {
        const rooms = makeup.map(({ name, own, entry, asked }) => ({
          page: name,
          device: own[0]!.device,
          entry,
          asked,
        }));
        const told = { jax, figures, bundlers: byBundler.figures, rooms, left, problems: trouble };
        return console.log(JSON.stringify(told));
      }
      console.log(pageTable(figures));
      if (jax !== undefined) console.log(`jax is @jax-js/jax ${jax}`);
      if (options.bundlers) console.log(`\n${bundlerTable(byBundler.figures, bundled)}`);
      for (const { name, page, own, ...rooms } of makeup) {
        console.log(`\n${name}: files in the order of their requests\n${chunkTable(own, page)}`);
        console.log(`\n${name}: minified bytes on ${own[0]!.device}\n${makeupTable(rooms)}`);
      }
      [...left, ...trouble].forEach((line) => console.log(line));
    } finally {
      await browser.close();
    }
  } finally {
    site.remove();
  }
}

/** Of each page that ran: its figures, and what its scripts are made of on the first device. */
function makeups(subjects: readonly Subject[], figures: readonly Figures[]) {
  return subjects.flatMap(({ name, page }) => {
    const own = figures.filter((one) => one.page === name);
    return own.length === 0 ? [] : [{ name, page, own, ...makeupOf(page, own[0]!) }];
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await main().catch((error: unknown) => {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exitCode = 2;
  });
