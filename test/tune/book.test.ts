// Schedules as JSON: what is written is read, what was not written by us is refused by name.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import type { ContractSchedule } from '../../src/codegen/template/contract/schedule.ts';
import { ParseError } from '../../src/errors.ts';
import { parseBook, printBook, readBook, schedulesOf } from '../../src/tune/book.ts';
import { checkLaw } from '../support/property.ts';

const count = fc.integer({ min: 1, max: 1024 });
const tile = { flip: fc.boolean(), rows: count, columns: count };
const schedule: fc.Arbitrary<ContractSchedule> = fc.oneof(
  fc.record({ kind: fc.constant('registers' as const), ...tile }),
  fc.record({ kind: fc.constant('staged' as const), ...tile, tileM: count, tileN: count, tileK: count }),
  fc.record({
    kind: fc.constant('slices' as const),
    ...tile,
    threads: count,
    slices: count,
    along: fc.constantFrom('n' as const, 'k' as const),
  }),
  fc.record({ kind: fc.constant('window' as const), ...tile, lines: count, taps: count }),
);
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
