// Text as tokens and back: as llama.cpp cuts it (scripts/llm/token-fixtures.ts), as a tokenizer.json of the same tables does, in
// pieces that never split a character, and conversations as templates write them.

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { GgufMetadata } from '../../../src/io/gguf/metadata.ts';
import { entriesOf } from '../../../src/io/gguf/entries.ts';
import type { TextCodec } from '../../../src/llm/codec.ts';
import { textOfGguf } from '../../../src/llm/text/gguf.ts';
import { textOfJson } from '../../../src/llm/text/json.ts';
import { joinSymbols } from '../../../src/llm/text/merge.ts';
import { checkLaw } from '../../support/property.ts';

interface Fixtures {
  readonly texts: readonly string[];
  readonly bytePair: { readonly tokens: string[]; readonly merges: string[]; readonly types: number[] };
  readonly scored: { readonly tokens: string[]; readonly scores: number[]; readonly types: number[] };
  readonly kinds: Readonly<
    Record<string, { metadata: Record<string, string | number | boolean>; tokens: number[][] }>
  >;
}

const fixtures = JSON.parse(
  readFileSync(new URL('../../fixtures/tokens.json', import.meta.url), 'utf8'),
) as Fixtures;

/** The codec of one kind of vocabulary, with other metadata besides. */
async function codec(kind: string, more: Record<string, string | number | boolean> = {}): Promise<TextCodec> {
  const { metadata } = fixtures.kinds[kind]!;
  const { bytePair, scored } = fixtures;
  const tables =
    metadata['tokenizer.ggml.model'] === 'gpt2'
      ? {
          'tokenizer.ggml.tokens': bytePair.tokens,
          'tokenizer.ggml.token_type': Int32Array.from(bytePair.types),
          'tokenizer.ggml.merges': bytePair.merges,
        }
      : {
          'tokenizer.ggml.tokens': scored.tokens,
          'tokenizer.ggml.token_type': Int32Array.from(scored.types),
          'tokenizer.ggml.scores': Float32Array.from(scored.scores),
        };
  const all = { ...metadata, ...tables, ...more };
  return textOfGguf({ name: kind, metadata: new GgufMetadata(entriesOf('test', all), kind) });
}

const plain = { 'tokenizer.ggml.add_bos_token': false };
const kinds = Object.keys(fixtures.kinds);

describe.each(kinds)('a vocabulary of the kind %s', (kind) => {
  test('gives the tokens that llama.cpp gives', async () => {
    const { encode } = await codec(kind, plain);
    const found = fixtures.texts.map((text) => ({ text, tokens: encode(text) }));
    const expected = fixtures.texts.map((text, i) => ({ text, tokens: fixtures.kinds[kind]!.tokens[i] }));
    expect(found).toEqual(expected);
  });

  test('gives any text back, at once and piece by piece', async () => {
    const { encode, decode, stream } = await codec(kind, plain);
    const words = fc.constantFrom(...fixtures.texts.filter((text) => !/[<[]/.test(text)));
    const text = fc.oneof(words, fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
    checkLaw(40, text, (text) => {
      // What stands for special tokens comes back as nothing, half of a pair of surrogates as a character for any.
      fc.pre(!/<|\[tool\]|\p{Surrogate}/u.test(text));
      const tokens = encode(text);
      expect(decode(tokens)).toBe(kind === 'gemma' || kind === 'llama' ? text.replaceAll('▁', ' ') : text);
      const { push, end } = stream();
      const pieces = [...tokens.map(push), end()];
      expect(pieces.join('').endsWith(decode(tokens))).toBe(true);
      if (!text.includes('\uFFFD')) expect(pieces.filter((piece) => piece.includes('\uFFFD'))).toEqual([]);
    });
  });
});

test('texts begin with the first token once, whether a template wrote it or not', async () => {
  const { encode, bos } = await codec('llama-bpe');
  expect(encode('hi')[0]).toBe(bos);
  expect(encode('<|start|>hi')).toEqual(encode('hi'));
  expect((await codec('gpt-2')).encode('hi')[0]).not.toBe(bos);
  expect((await codec('llama')).encode('x')[0]).toBe(1);
});

test('the tokens that end a text are the one that is named and those that are known by name', async () => {
  const { eos } = await codec('qwen2');
  const { tokens } = fixtures.bytePair;
  expect(eos).toEqual([tokens.indexOf('<|endoftext|>'), tokens.indexOf('<|end|>')]);
});

test('a character that is not finished is held back', async () => {
  const { encode, stream } = await codec('gpt-2');
  const tokens = encode('日');
  expect(tokens.length).toBeGreaterThan(1);
  const { push, end } = stream();
  expect(tokens.slice(0, -1).map(push).join('')).toBe('');
  expect(push(tokens.at(-1)!)).toBe('日');
  push(tokens[0]!);
  expect(end()).toBe('\uFFFD');
  expect(() => push(1e6)).toThrow(/there is no token 1000000/);
});

test('a tokenizer.json of the same tables gives the same tokens', async () => {
  const { tokens, merges, types } = fixtures.bytePair;
  const tokenizer = {
    version: '1.0',
    added_tokens: tokens.flatMap((content, id) =>
      types[id] === 1
        ? []
        : [
            {
              id,
              content,
              special: types[id] === 3,
              single_word: false,
              lstrip: false,
              rstrip: false,
              normalized: false,
            },
          ],
    ),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(tokens.flatMap((token, id) => (types[id] === 1 ? [[token, id]] : []))),
      merges,
    },
  };
  const config = {
    eos_token: '<|endoftext|>',
    bos_token: '<|start|>',
    chat_template: '{{ messages[0].content }}',
  };
  const generation = { eos_token_id: [258] };
  const json = await textOfJson({ tokenizer, config, generation });
  const gguf = await codec('gpt-2');
  for (const text of fixtures.texts.filter((text) => !/\u0085|\ufeff/.test(text))) {
    expect(json.encode(text), text).toEqual(gguf.encode(text));
    expect(json.decode(json.encode(text))).toBe(gguf.decode(gguf.encode(text)));
  }
  expect(json.eos).toEqual([tokens.indexOf('<|endoftext|>'), 258, tokens.indexOf('<|end|>')]);
  expect(json.bos).toBe(tokens.indexOf('<|start|>'));
  expect(json.template([{ role: 'user', content: 'Hi' }])).toBe('Hi');
  await expect(textOfJson({ tokenizer: {} })).rejects.toThrow(/no model.vocab/);
});

test('a conversation is written as the template says, up to the answer', async () => {
  const template =
    "{% if messages[0].role != 'user' %}{{ raise_exception('the user begins') }}{% endif %}" +
    '{% for m in messages %}{{ bos_token }}{{ m.role }}\n{{ m.content | trim }}{{ eos_token }}\n{% endfor %}' +
    '{% if add_generation_prompt %}{{ bos_token }}assistant\n{% endif %}';
  const { template: write } = await codec('qwen2', { 'tokenizer.chat_template': template });
  expect(write([{ role: 'user', content: ' Hi ' }])).toBe(
    '<|start|>user\nHi<|endoftext|>\n<|start|>assistant\n',
  );
  expect(() => write([{ role: 'system', content: '' }])).toThrow(
    /cannot write this conversation: the user begins/,
  );
  expect(() => write([])).toThrow(/expects messages of a role and a content/);
  expect(() => write('Hi' as never)).toThrow(/expects messages/);
  const broken = await codec('qwen2', { 'tokenizer.chat_template': '{% if %}' });
  expect(() => broken.template([{ role: 'user', content: '' }])).toThrow(/chat template cannot be read/);
  const without = await codec('qwen2');
  expect(() => without.template([{ role: 'user', content: '' }])).toThrow(/has no chat template/);
});

test('what a file lacks, and kinds that are not known, are told', async () => {
  const metadata = (given: Record<string, unknown>): Parameters<typeof textOfGguf>[0] => ({
    name: 'a.gguf',
    metadata: new GgufMetadata(entriesOf('test', given as never), 'a.gguf'),
  });
  const tokens = { 'tokenizer.ggml.tokens': ['a'] };
  const model = (name: string): object => ({ ...tokens, 'tokenizer.ggml.model': name });
  await expect(textOfGguf(metadata({}))).rejects.toThrow(/a\.gguf: has no tokenizer/);
  await expect(textOfGguf(metadata({ ...model('bert') }))).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
  await expect(textOfGguf(metadata({ ...model('llama') }))).rejects.toThrow(/has no scores/);
  await expect(textOfGguf(metadata({ ...model('gpt2') }))).rejects.toThrow(/has no merges/);
  const pre = { 'tokenizer.ggml.merges': ['a b'], 'tokenizer.ggml.pre': 'new-bpe' };
  await expect(textOfGguf(metadata({ ...model('gpt2'), ...pre }))).rejects.toThrow(/"new-bpe" is not known/);
  const far = { 'tokenizer.ggml.merges': ['a b'], 'tokenizer.ggml.eos_token_id': 7 };
  await expect(textOfGguf(metadata({ ...model('gpt2'), ...far }))).rejects.toThrow(
    /eos_token_id is 7, there are 1/,
  );
  const { encode } = await codec('gpt-2');
  expect(() => encode(7 as never)).toThrow(/expects text/);
});

test.each<readonly [options: unknown, message: RegExp]>([
  [{ package: {} }, /there is no option 'package'/],
  [{ packages: { ninja: () => undefined } }, /there is no option 'ninja'/],
  [{ packages: { jinja: 'jinja' } }, /expects a function, got 'jinja'/],
  ['jinja', /expects options as an object, got 'jinja'/],
])('the options %j of a codec are refused', async (options, message) => {
  const metadata = new GgufMetadata(new Map(), 'a.gguf');
  const ofGguf = textOfGguf({ name: 'a.gguf', metadata }, options as never);
  await expect(ofGguf).rejects.toThrow(new RegExp(`^textOfGguf: .*${message.source}`));
  const ofJson = textOfJson({ tokenizer: { model: { vocab: { a: 0 } } } }, options as never);
  await expect(ofJson).rejects.toThrow(new RegExp(`^textOfJson: .*${message.source}`));
  await expect(ofJson).rejects.toMatchObject({ code: 'E_VALUE' });
});

test('pairs are joined as by looking for the best one again and again', () => {
  const order = (left: string, right: string): number | undefined => {
    const text = left + right;
    return text.length > 5
      ? undefined
      : [...text].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 17, 7) || undefined;
  };
  const slow = (symbols: readonly string[]): string[] => {
    const parts = [...symbols];
    for (;;) {
      let best: { at: number; order: number } | undefined;
      for (let at = 0; at + 1 < parts.length; at++) {
        const found = order(parts[at]!, parts[at + 1]!);
        if (found !== undefined && (best === undefined || found < best.order)) best = { at, order: found };
      }
      if (best === undefined) return parts;
      parts.splice(best.at, 2, parts[best.at]! + parts[best.at + 1]!);
    }
  };
  checkLaw(200, fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 24 }), (symbols) => {
    expect(joinSymbols(symbols, order)).toEqual(slow(symbols));
  });
});
