// Every kernel that the manifest of main names is still generated, letter for letter. A change that means to change kernels writes the
// manifest anew: `npm run replay -- --write`; `npm run replay -- --against main` shows what it changes.

import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { hashesOf, replayed } from '../../scripts/replay/programs.ts';
import { setDevice } from '../../src/index.ts';

const manifest = JSON.parse(
  readFileSync(new URL('../golden/kernels.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, string>>;
const programs = await replayed();
afterAll(() => setDevice(undefined));

test('the manifest names these programs', () => {
  expect(programs.map(({ name }) => name)).toEqual(Object.keys(manifest));
  expect(programs.length).toBeGreaterThan(500);
});

test.each(programs.map(({ name, sources }) => [name, sources] as const))('%s', (name, sources) => {
  expect(hashesOf(sources()), 'its kernels changed: npm run replay -- --against main').toBe(manifest[name]);
});
