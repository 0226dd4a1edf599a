// Schedules as JSON: what is written is read, what was not written by us is refused by name.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { tilingFields, type TilingFieldContent } from '../../src/codegen/template/contract/fields.ts';
import type { ContractTiling } from '../../src/codegen/template/contract/strategies.ts';
import { ParseError } from '../../src/errors.ts';
import { parseBook, printBook, readBook, schedulesOf } from '../../src/tune/book.ts';
import { checkLaw } from '../support/property.ts';

const kinds = Object.keys(tilingFields) as readonly ContractTiling['kind'][];
const field: Readonly<Record<TilingFieldContent, fc.Arbitrary<unknown>>> = {
  count: fc.integer({ min: 1, max: 1024 }),
  'n or k': fc.constantFrom('n', 'k'),
};
const tile = { flip: fc.boolean(), rows: field.count, columns: field.count };
/** Tilings of every strategy, as its row says. */
const schedule: fc.Arbitrary<ContractTiling> = fc.constantFrom(...kinds).chain((kind) => {
  const own = Object.entries<TilingFieldContent>(tilingFields[kind]).map(
    ([name, of]) => [name, field[of]] as const,
  );
  const fields = Object.fromEntries<fc.Arbitrary<unknown>>([...Object.entries(tile), ...own]);
  return fc.record(fields).map((values) => ({ kind, ...values }) as ContractTiling);
});
const book = fc.array(fc.tuple(fc.string(), schedule)).map((entries) => new Map(entries));

test('what is printed is read again, whatever the order', () => {
  checkLaw(300, book, (entries) => {
    // An object has no own `__proto__` to write.
    entries.delete('__proto__');
    expect(parseBook('store', printBook(entries))).toEqual(entries);
    const turned = new Map([...entries].reverse());
    expect(printBook(turned)).toBe(printBook(entries));
    expect(readBook('store', schedulesOf(entries))).toEqual(entries);
  });
});

test('an entry with a field less, or with what a field does not hold, is refused', () => {
  checkLaw(200, fc.tuple(schedule, fc.nat(), fc.boolean()), ([entry, at, isMissing]) => {
    const fields = Object.entries(entry);
    const [name] = fields[at % fields.length]!;
    const broken = Object.fromEntries(
      fields.flatMap(([key, value]) => (key !== name ? [[key, value]] : isMissing ? [] : [[key, -1]])),
    );
    expect(() => readBook('store', { version: 1, entries: { k: broken } })).toThrow(ParseError);
  });
});

test.each([
  ['tensor', 'mma', { tileM: 128, tileN: 64, tileK: 32, stages: 3 }],
  ['warpgroup', 'wgmma', { tileM: 128, tileN: 64, tileK: 64, stages: 8 }],
  ['slices', 'split-k', { threads: 16, slices: 16, along: 'k' }],
  ['stream', 'gemv', { along: 'n' }],
])('what was called %s before is read as %s', (former, kind, fields) => {
  const entry = { flip: true, rows: 4, columns: 8, ...fields };
  const read = readBook('store', { version: 1, entries: { k: { kind: former, ...entry } } });
  expect(read.get('k')).toEqual({ kind, ...entry });
});

test.each([
  ['', 'is not JSON'],
  ['{"version":1', 'is not JSON'],
  ['[]', 'expects { version: 1, entries'],
  ['{"version":2,"entries":{}}', 'expects { version: 1, entries'],
  ['{"version":1,"entries":[]}', 'expects { version: 1, entries'],
  ['{"version":1,"entries":{"a key":{"kind":"registers"}}}', "the entry 'a key' is no schedule"],
  ['{"version":1,"entries":{"k":{"kind":"toString","flip":false,"rows":1,"columns":4}}}', 'is no schedule'],
  ['{"version":1,"entries":{"k":{"kind":"registers","flip":0,"rows":1,"columns":4}}}', 'is no schedule'],
  ['{"version":1,"entries":{"k":{"kind":"registers","flip":true,"rows":1.5,"columns":4}}}', 'is no schedule'],
  ['{"version":1,"entries":{"k":{"kind":"registers","flip":true,"rows":0,"columns":4}}}', 'is no schedule'],
  [
    '{"version":1,"entries":{"k":{"kind":"registers","flip":true,"rows":1,"columns":4,"x":1}}}',
    'no schedule',
  ],
])('%s is refused', (text, problem) => {
  const attempt = (): unknown => parseBook('the store', text);
  expect(attempt).toThrow(ParseError);
  expect(attempt).toThrow(`the store: `);
  expect(attempt).toThrow(problem);
});
