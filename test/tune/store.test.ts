// The store of measured schedules: what was added is found by the next process; a store that is
// broken costs its contents and says so, and nothing else.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { ContractTiling } from '../../src/codegen/template/contract/strategies.ts';
import { parseBook } from '../../src/tune/book.ts';
import { fileShelf } from '../../src/tune/file.ts';
import { Store, storeAt } from '../../src/tune/store.ts';

const small: ContractTiling = { kind: 'registers', flip: false, rows: 4, columns: 4 };
const wide: ContractTiling = { kind: 'registers', flip: true, rows: 1, columns: 64 };

let folder: string;
let file: string;
const warnings: string[] = [];
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-store-'));
  file = path.join(folder, 'deep', 'schedules.json');
  warnings.length = 0;
  vi.spyOn(console, 'warn').mockImplementation((text: string) => warnings.push(text));
});
afterEach(() => {
  vi.restoreAllMocks();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** What a process that opens the file finds in it. */
async function reopened(): Promise<ReadonlyMap<string, ContractTiling>> {
  const store = new Store(fileShelf(file));
  await store.load();
  return store.book;
}

test('what one process adds the next one finds', async () => {
  const store = new Store(fileShelf(file));
  await store.load();
  expect(store.book.size).toBe(0);
  await store.add(new Map([['a', small]]));
  expect(store.book.get('a')).toEqual(small);
  expect(await reopened()).toEqual(new Map([['a', small]]));
  expect(fs.readdirSync(path.dirname(file))).toEqual(['schedules.json']);
  expect(warnings).toEqual([]);
});

test('what others have added meanwhile is kept', async () => {
  const [one, other] = [new Store(fileShelf(file)), new Store(fileShelf(file))];
  await Promise.all([one.load(), other.load()]);
  await one.add(new Map([['a', small]]));
  await other.add(new Map([['b', wide]]));
  expect((await reopened()).size).toBe(2);
});

test.each(['{ half a', '{"version":1,"entries":{"k":{"kind":"quick"}}}', 'null'])(
  'a store that holds %s is ignored, said once, and written anew',
  async (text) => {
    fs.mkdirSync(path.dirname(file));
    fs.writeFileSync(file, text);
    const store = new Store(fileShelf(file));
    await Promise.all([store.load(), store.load()]);
    expect(store.book.size).toBe(0);
    expect(warnings.length).toBe(1);
    expect(warnings[0]).toContain(file);
    expect(warnings[0]).toContain('will be measured again');
    await store.add(new Map([['a', small]]));
    expect(parseBook(file, fs.readFileSync(file, 'utf8'))).toEqual(new Map([['a', small]]));
  },
);

test('a place that cannot be written costs only the keeping', async () => {
  fs.writeFileSync(path.join(folder, 'deep'), 'a file where a folder is wanted');
  const store = new Store(fileShelf(file));
  await store.load();
  await store.add(new Map([['a', small]]));
  expect(store.book.get('a')).toEqual(small);
  expect(warnings.at(-1)).toContain('are not kept');
});

test('one place has one store, and none of its own has no file', async () => {
  expect(await storeAt(file)).toBe(await storeAt(file));
  const nowhere = await storeAt(false);
  await nowhere.load();
  await nowhere.add(new Map([['a', small]]));
  expect(nowhere.book.has('a')).toBe(true);
  expect(fs.existsSync(file)).toBe(false);
});

test('the usual place lies in the cache folder', async () => {
  vi.stubEnv('SINTER_CACHE', folder);
  await new Store(fileShelf(undefined)).add(new Map([['a', small]]));
  vi.unstubAllEnvs();
  expect(fs.existsSync(path.join(folder, 'schedules.json'))).toBe(true);
});
