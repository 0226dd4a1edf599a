// Python literals: what repr prints reads back; mistakes are named with their place.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ParseError } from '../../src/errors.ts';
import { parseLiteral, type Literal } from '../../src/io/literal.ts';
import { failure } from './format.ts';

const parse = (text: string): Literal =>
  parseLiteral(text, (at, problem) => new ParseError('E_FORMAT', 'literal', `${at}: ${problem}`));

/** The literal as Python's repr spells it. */
function print(value: Literal): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replace(/['\\]/g, '\\$&')}'`;
  if (Array.isArray(value)) return `(${value.map((item: Literal) => `${print(item)},`).join(' ')})`;
  const entries = [...(value as ReadonlyMap<string, Literal>)];
  return `{${entries.map(([key, item]) => `${print(key)}: ${print(item)}`).join(', ')}}`;
}

const { literal } = fc.letrec<{ literal: Literal }>((tie) => ({
  literal: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<Literal>(null, true, false),
    fc.maxSafeInteger(),
    fc.string(),
    fc.array(tie('literal'), { maxLength: 3 }),
    fc.array(fc.tuple(fc.string(), tie('literal')), { maxLength: 3 }).map((entries) => new Map(entries)),
  ),
}));

describe('parseLiteral', () => {
  test('what Python prints reads back', () => {
    fc.assert(
      fc.property(literal, (value) => {
        expect(parse(print(value))).toEqual(Object.is(value, -0) ? 0 : value);
      }),
      { numRuns: 500 },
    );
  });

  test.each<[string, Literal]>([
    ['(3)', 3],
    ['(3,)', [3]],
    ['()', []],
    ['[]', []],
    ['[(1, 2), [3]]', [[1, 2], [3]]],
    [
      `{"a": 1, 'b': (),}`,
      new Map<string, Literal>([
        ['a', 1],
        ['b', []],
      ]),
    ],
    [' 12L ', 12],
    [`'it\\'s'`, "it's"],
  ])('%s', (text, value) => {
    expect(parse(text)).toEqual(value);
  });

  test.each([
    ['', /0: expected a value, found the end/],
    ['(1 2)', /3: expected "," or "\)", found "2"/],
    ['(,)', /1: expected a value, found ","/],
    ['[1)', /2: expected "," or "\]", found "\)"/],
    ['{1: 2}', /2: a key is not a string/],
    [`{'a' 1}`, /5: expected ":", found "1"/],
    [`{'a': 1, 'a': 2}`, /12: the key a is given twice/],
    ['true', /0: expected a value, found "t"/],
    [`'abc`, /0: a string does not end/],
    [`'abc\\`, /0: a string does not end/],
    ['1 1', /2: expected nothing more, found "1"/],
    [`${'['.repeat(20)}`, /9: nested too deeply/],
  ])('%s is refused with its place', (text, message) => {
    expect(String(failure(() => parse(text)))).toMatch(message);
  });

  test('any text gives a value or a ParseError', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '(',
      ')',
      '[',
      ']',
      ',',
      ':',
      `'`,
      '"',
      '\\',
      'True',
      '1',
      ' ',
      'a',
      '-',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          parse(parts.join(''));
        } catch (fault) {
          expect(fault).toBeInstanceOf(ParseError);
        }
      }),
      { numRuns: 3000 },
    );
  });
});
