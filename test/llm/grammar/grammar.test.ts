// Text under a grammar: whatever a model prefers, what is written is a text of the grammar, and every such text can be written.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { TextCodec } from '../../../src/llm/codec.ts';
import { constraintOf, type Grammar } from '../../../src/llm/grammar/constraint.ts';
import { jsonGrammar } from '../../../src/llm/grammar/json.ts';
import { parseGrammar } from '../../../src/llm/grammar/notation.ts';
import { checkLaw } from '../../support/property.ts';
import { fits, schemas, valueOf } from './schemas.ts';

const encoder = new TextEncoder();
const words = [
  'true',
  'null',
  '{"',
  '":',
  '": ',
  '", "',
  '"]',
  '"}',
  '}}',
  '12',
  'ab',
  'a"',
  'é',
  '日本',
  '👍',
  '  ',
];
// Every byte, words, one that only steers, and the end.
const pieces = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...words.map((word) => encoder.encode(word)),
  new Uint8Array(0),
  new Uint8Array(0),
];
const eos = pieces.length - 1;

const codec: TextCodec = {
  eos: [eos],
  size: pieces.length,
  bytesOf: (token) => pieces[token]!,
  encode: (text) => [...encoder.encode(text)],
  decode: (tokens) => Buffer.concat(tokens.map((token) => pieces[token]!)).toString('utf8'),
  stream: () => ({ push: () => '', end: () => '' }),
  template: () => '',
};

/** Tokens that bring a text to its end. */
const closing = [eos, ...[...'"}]0'].map((char) => char.charCodeAt(0))];

/** A text that chance writes under a grammar; past so many tokens it is brought to its end. */
function written(grammar: Grammar, seed: number, patience = 40): string {
  let state = seed >>> 0;
  const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const constraint = constraintOf(grammar, codec);
  const tokens: number[] = [];
  for (let i = 0; i < 3000; i++) {
    const mask = constraint.allowed()!;
    const allowed = [...mask.keys()].filter((token) => mask[token] === 1);
    const close = i < patience ? undefined : closing.find((token) => mask[token] === 1);
    const token = close ?? allowed[Math.floor(random() * allowed.length)]!;
    constraint.accept(token);
    if (token === eos) {
      const bytes = Buffer.concat(tokens.map((at) => pieces[at]!));
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    }
    tokens.push(token);
  }
  throw new Error('the text did not end');
}

/** Lists of lists of any JSON. */
function deep(levels: number): unknown {
  let schema: unknown = true;
  for (let i = 0; i < levels; i++) schema = { items: schema };
  return schema;
}

describe('a schema', () => {
  test('is kept to by whatever is written under its grammar', () => {
    checkLaw(100, fc.tuple(schemas, fc.nat()), ([schema, seed]) => {
      const text = written(jsonGrammar(schema), seed);
      expect(fits(schema, JSON.parse(text)), `${JSON.stringify(schema)} wrote ${text}`).toBe(true);
    });
  });

  test('lets every value that fits be written', () => {
    const values = schemas.chain((schema) => valueOf(schema).map((value) => ({ schema, value })));
    checkLaw(150, values, ({ schema, value }) => {
      expect(fits(schema, value)).toBe(true);
      const text = JSON.stringify(value);
      expect(jsonGrammar(schema).matches(text), `${JSON.stringify(schema)} refused ${text}`).toBe(true);
    });
  });

  test('names parts of itself, which may hold themselves', () => {
    const list = {
      $ref: '#/$defs/list',
      $defs: {
        list: {
          type: 'object',
          properties: {
            head: { type: 'integer' },
            tail: { anyOf: [{ $ref: '#/$defs/list' }, { type: 'null' }] },
          },
          required: ['head', 'tail'],
        },
      },
    };
    const grammar = jsonGrammar(list);
    expect(grammar.matches('{"head":1,"tail":{"head":-20, "tail": null}}')).toBe(true);
    expect(grammar.matches('{"head":1,"tail":{"head":-20}}')).toBe(false);
    expect(grammar.matches('{"head":1.5,"tail":null}')).toBe(false);
  });

  test('with true stands for any JSON, and all that is written can be read', () => {
    const grammar = jsonGrammar(true);
    checkLaw(40, fc.nat(), (seed) => void JSON.parse(written(grammar, seed)));
    checkLaw(60, fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!/e[+-]?\d{3}|\d{15}|\\ud/.test(text));
      expect(grammar.matches(text), text).toBe(true);
    });
  });

  test('lists have their first items, and forms of text are kept to', () => {
    const pair = jsonGrammar({
      type: 'array',
      prefixItems: [{ type: 'null' }, { type: 'boolean' }],
      items: false,
      minItems: 1,
    });
    expect(
      ['[]', '[null]', '[null,true]', '[null,true,1]', '[true]'].map((text) => pair.matches(text)),
    ).toEqual([false, true, true, false, false]);
    const when = jsonGrammar({ type: 'string', format: 'date-time' });
    expect(when.matches('"2026-02-28T23:59:59.5Z"')).toBe(true);
    expect(when.matches('"2026-02-31T23:59:59Z"')).toBe(false);
    const map = jsonGrammar({ type: 'object', additionalProperties: { type: 'integer' } });
    expect([map.matches('{}'), map.matches('{"x": 1,"y":2}'), map.matches('{"x":"1"}')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test.each<readonly [what: string, schema: unknown, message: RegExp]>([
    ['a pattern', { type: 'string', pattern: 'a+' }, /#: pattern cannot be enforced/],
    [
      'a range',
      { type: 'object', properties: { a: { type: 'integer', minimum: 3 } } },
      /#\/properties\/a: minimum/,
    ],
    ['oneOf', { oneOf: [{ type: 'null' }] }, /oneOf cannot be enforced/],
    ['an unknown format', { type: 'string', format: 'email' }, /format 'email'/],
    ['another document', { $ref: 'other.json' }, /\$ref 'other\.json'/],
    ['a lost reference', { $ref: '#/$defs/none' }, /leads nowhere/],
    ['an unknown type', { type: 'text' }, /no type 'text'/],
    ['an empty enum', { enum: [] }, /enum is a list of at least one/],
    ['bounds that cross', { type: 'array', minItems: 3, maxItems: 2 }, /maxItems is less than minItems/],
    ['a value without end', { type: 'array', items: { $ref: '#' }, minItems: 1 }, /has no text that ends/],
    ['nothing', undefined, /a schema is an object, got undefined/],
    [
      'further properties of a number',
      { type: 'object', properties: { a: true }, additionalProperties: 3 },
      /additionalProperties is a schema, got 3/,
    ],
    ['too many levels', deep(9000), /nests too deeply/],
  ])('with %s is refused', (_, schema, message) => {
    expect(() => jsonGrammar(schema)).toThrow(message);
  });

  test('comes without options', () => {
    const loose = jsonGrammar as (schema: unknown, options?: unknown) => Grammar;
    const message = /^jsonGrammar: takes a schema alone, and no options, got .*strict.* behind it/;
    expect(() => loose(true, { strict: true })).toThrow(message);
    expect(() => loose(true, undefined)).toThrow(/got undefined behind it/);
  });
});

describe('a grammar as text', () => {
  const arithmetic = parseGrammar(`
    # sums of products
    root   ::= term (" "? [+-] " "? term)*
    term   ::= factor ("*" factor)*   # never empty
    factor ::= [0-9]{1,3} | "(" root ")"
             | "π"
  `);

  test('is matched as it says', () => {
    for (const text of ['1', '1+2', '12 - (3*π)', '((7))']) expect(arithmetic.matches(text), text).toBe(true);
    for (const text of ['', '1+', '1234', '(1', 'p', '1  + 2'])
      expect(arithmetic.matches(text), text).toBe(false);
  });

  test('has classes of characters that UTF-8 spells in several bytes', () => {
    const inside = parseGrammar(String.raw`root ::= [а-яЁ🙂-🙏\u4e00-\u9fff] [^"\\\x00-\x7f日] .`);
    const edges = [
      0x430, 0x44f, 0x450, 0x401, 0x1f642, 0x1f64f, 0x1f650, 0x4e00, 0x9fff, 0xa000, 0x65e5, 0x80, 0x7ff,
      0x10ffff,
    ];
    const code = fc.oneof(fc.nat(0x10ffff), fc.constantFrom(...edges));
    checkLaw(300, fc.tuple(code, code), ([first, second]) => {
      fc.pre([first, second].every((at) => at < 0xd800 || at > 0xdfff));
      const expected = /^[а-яЁ🙂-🙏\u4e00-\u9fff][^\0-\x7f日]A$/u;
      const text = String.fromCodePoint(first, second, 0x41);
      expect(inside.matches(text), text).toBe(expected.test(text));
    });
  });

  test.each<readonly [text: string, message: RegExp]>([
    ['root ::= "a', /line 1, column 12: a character is expected/],
    ['root ::= a', /the rule root names a, which is none/],
    ['a ::= "x"', /there is no rule root/],
    ['root ::= root "a" | "b"', /begins with itself/],
    ['root ::= empty root "a" | "b"\nempty ::= "x"?', /begins with itself/],
    ['root ::= "a" root', /has no text that ends/],
    ['root ::= ("a"', /line 1, column 14: \) is expected/],
    ['root ::= "a"{3,2}', /ends before it begins/],
    ['root ::= [z-a]', /a range ends before it begins/],
    ['root ::= "\\q"', /no escape/],
    ['root ::= "a"\nroot ::= "b"', /line 2, column 5: the rule root is there twice/],
    ['root = "a"', /line 1, column 6: ::= is expected/],
    ['root ::= "a"{5000}', /more than 1000/],
    [`root ::= ${'('.repeat(500)}"a"${')'.repeat(500)}`, /nest more than 200/],
  ])('%j is refused', (text, message) => {
    expect(() => parseGrammar(text)).toThrow(message);
  });
});

test('a token may come exactly where its bytes may', () => {
  const grammar = jsonGrammar({
    type: 'array',
    items: { type: 'object', properties: { ab: { type: 'string' }, 日本: { type: 'number' } } },
  });
  const { automaton } = grammar;
  checkLaw(20, fc.nat(), (seed) => {
    const constraint = constraintOf(grammar, codec, pieces.length + 5);
    let state = automaton.start;
    for (const byte of encoder.encode(written(grammar, seed, 12))) {
      const expected = new Uint8Array(pieces.length + 5);
      pieces.forEach((bytes, token) => {
        expected[token] = bytes.length > 0 && automaton.read(state, bytes) !== null ? 1 : 0;
      });
      expected[eos] = state.accepts ? 1 : 0;
      expect(Buffer.compare(constraint.allowed()!, expected)).toBe(0);
      constraint.accept(byte);
      state = automaton.step(state, byte)!;
    }
  });
});

test('a token that may not come is refused when it is accepted, and so is one behind the end', () => {
  const constraint = constraintOf(parseGrammar('root ::= "ab" "c"?'), codec);
  expect(() => constraint.accept(99)).toThrow(/token 99 may not come here/);
  expect(() => constraint.accept(eos)).toThrow(/may not come here/);
  constraint.accept(256 + words.indexOf('ab'));
  const mask = constraint.allowed()!;
  expect([...mask.keys()].filter((token) => mask[token] === 1)).toEqual([99, eos]);
  constraint.accept(eos);
  expect(() => constraint.allowed()).toThrow(/the text has ended/);
  const deaf: TextCodec = {
    eos: [],
    encode: codec.encode,
    decode: codec.decode,
    stream: codec.stream,
    template: codec.template,
  };
  expect(() => constraintOf(parseGrammar('root ::= "a"'), deaf)).toThrow(
    /does not say which text its tokens stand for/,
  );
});
