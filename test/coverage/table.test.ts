// The table of operations is whole: every operation has its row, every row of the catalogue what shows it, and what documents say of them is
// what the sources and the reference interpreter say.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkExamples } from '../../scripts/examples.ts';
import { examplesOf, operationPages } from '../../scripts/operations/pages.ts';
import * as sn from '../../src/index.ts';
import { operationRows } from '../arguments/rows/operation.ts';
import { catalogue, type Shown } from '../support/coverage/catalogue.ts';
import { allRows } from '../support/coverage/report.ts';
import { deviations, refusedModes } from '../support/coverage/refusals.ts';
import { systemRows } from '../support/coverage/system.ts';

// Where a call stands costs a test runner that maps sources much.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  sn.setDevice(undefined);
});

const names = new Set(allRows.map(({ name }) => name));
const operations = new Set([...names].map((name) => name.split('/')[0]!));
/** The members of the namespaces of the package. */
const spaces = new Map(
  Object.entries(sn).flatMap(([name, at]) =>
    typeof at === 'object' && Symbol.toStringTag in at ? [[name, at as object] as const] : [],
  ),
);

describe('every operation has a row', () => {
  test('at the top of the package', () => {
    const called = Object.keys(operationRows).filter((name) => name in sn);
    expect(called.filter((name) => !operations.has(name))).toEqual([]);
  });

  test.each([...spaces.keys()])('in %s', (space) => {
    const isOperation = (at: unknown): boolean =>
      typeof at === 'function' && !/^class\b/.test(Function.prototype.toString.call(at));
    const members = Object.entries(spaces.get(space)!).flatMap(([name, at]) =>
      isOperation(at) ? [name] : [],
    );
    expect(members.length).toBeGreaterThan(2);
    expect(members.filter((name) => !operations.has(`${space}.${name}`))).toEqual([]);
  });

  test('and every row is an operation', () => {
    const isThere = (name: string): boolean => {
      const [first, second] = name.split('.');
      if (second === undefined) return name in sn || name in sn.Tensor.prototype;
      return second in (spaces.get(first!) ?? {});
    };
    expect([...operations].filter((name) => !isThere(name))).toEqual([]);
  });
});

/** Whether a file in `test/` has a test of this title, as it is written there. */
function isThere({ file, title }: Shown): boolean {
  const place = new URL(`../${file}`, import.meta.url);
  if (!existsSync(place)) return false;
  const text = readFileSync(place, 'utf8');
  return [`'${title}'`, `"${title}"`, `\`${title}\``].some((quoted) => text.includes(`(${quoted}`));
}

describe('the catalogue', () => {
  test('has 229 rows in 28 sections, each once', () => {
    expect(new Set(catalogue.map(({ id }) => id)).size).toBe(229);
    expect(catalogue).toHaveLength(229);
    expect(new Set(catalogue.map(({ id }) => id.split('.')[0])).size).toBe(28);
  });

  test('names calls that there are', () => {
    const calls = catalogue.flatMap((row) => row.calls.map((call) => call.replace(/^grad /, '')));
    expect(calls.filter((call) => !names.has(call))).toEqual([]);
  });

  test('names tests that there are', () => {
    const shown = [...catalogue, ...systemRows].flatMap((row) => row.shown);
    expect(shown.length).toBeGreaterThan(50);
    expect(shown.filter((one) => !isThere(one)).map(({ file, title }) => `${file}: ${title}`)).toEqual([]);
  });

  test('has 35 rows of the whole system', () => {
    expect(systemRows.map(({ id }) => id)).toEqual(Array.from({ length: 35 }, (_, i) => `S${i + 1}`));
  });

  test('has no refusal of what there is not', () => {
    expect(deviations.flatMap(({ rows }) => rows).filter((name) => !names.has(name))).toEqual([]);
    expect(refusedModes.filter(({ rows }) => ![...names].some((name) => rows.test(name)))).toEqual([]);
  });
});

describe('the documents of operations', () => {
  const stored = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const folder = readdirSync(new URL('../../docs/ops/', import.meta.url));

  test('say what the sources say and what the interpreter gives', async () => {
    const pages = await operationPages();
    for (const [path, text] of pages) expect(stored(path), 'out of date: npm run docs').toBe(text);
    expect(folder.toSorted().map((name) => `docs/ops/${name}`)).toEqual(
      [...pages.keys()].filter((path) => path !== 'docs/ops.md').toSorted(),
    );
  });

  test('have examples that the type checker accepts', async () => {
    const modules = folder.map((name) => ({ code: examplesOf(stored(`docs/ops/${name}`)), expected: '' }));
    expect(await checkExamples(modules)).toBe('');
  });
});
