// Answers of a form, asked for by OpenAI's client: whatever the model prefers, the text is JSON that fits; and what a
// form asks for that cannot be kept is refused in the client's own words.

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BadRequestError, OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelServer } from '../../src/cli/llm/serve/server.ts';
import * as sn from '../../src/index.ts';
import { loadModel, type LanguageModel, type TextCodec } from '../../src/llm/index.ts';
import { smallModel, sourceOf } from '../support/llm/small.ts';
import { fits, type Schema } from './grammar/schemas.ts';

/** Forty-nine characters that JSON is written with, a token each, and the end of a text. */
const alphabet = '{}[]":,.- 0123456789abcdefghijklmnopqrstuvwxyz_E+';
const shown = (token: number): string => alphabet[token] ?? '';
const codec: TextCodec = {
  encode: (text) => Array.from(text, (letter) => Math.max(0, alphabet.indexOf(letter))),
  decode: (tokens) => tokens.map(shown).join(''),
  stream: () => ({ push: shown, end: () => '' }),
  template: (messages) => messages.map(({ content }) => content).join(' '),
  eos: [49],
  size: 50,
  bytesOf: (token) => new TextEncoder().encode(shown(token)),
};

const name = 'small';
let model: LanguageModel;
let server: Server;
let client: OpenAI;

beforeAll(async () => {
  sn.setDevice('wasm');
  model = await loadModel({ ...sourceOf(smallModel('llama')), codec }, { contextLength: 64, sequences: 2 });
  server = modelServer(model, { name, parallel: 2, queue: 4 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'none', maxRetries: 0 });
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
  model.dispose();
});

type Format = NonNullable<OpenAI.ChatCompletionCreateParams['response_format']>;
const schemaFormat = (schema: Record<string, unknown>): Format => ({
  type: 'json_schema',
  json_schema: { name: 'answer', strict: true, schema },
});

interface Written {
  readonly text: string;
  readonly finish: string;
}

const request = (format: Format, seed: number): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
  model: name,
  messages: [{ role: 'user', content: 'tell me' }],
  response_format: format,
  seed,
});

async function whole(format: Format, seed: number): Promise<Written> {
  const { choices } = await client.chat.completions.create(request(format, seed));
  return { text: choices[0]!.message.content!, finish: choices[0]!.finish_reason };
}

async function streamed(format: Format, seed: number): Promise<Written> {
  let [text, finish] = ['', ''];
  for await (const { choices } of await client.chat.completions.create({
    ...request(format, seed),
    stream: true,
  })) {
    text += choices[0]?.delta.content ?? '';
    finish = choices[0]?.finish_reason ?? finish;
  }
  return { text, finish };
}

const seeds = Array.from({ length: 6 }, (_, seed) => seed);
const small: Schema = {
  type: 'object',
  properties: {
    city: { enum: ['bonn', 'rome'] },
    old: { type: 'boolean' },
    near: { type: 'array', items: { enum: [1, 2] }, maxItems: 2 },
  },
  required: ['city', 'old'],
  additionalProperties: false,
};

describe('an answer', () => {
  test('of a schema fits it, whole and as a stream alike', async () => {
    for (const seed of seeds) {
      const written = await whole(schemaFormat({ ...small }), seed);
      expect(written.finish).toBe('stop');
      expect(fits(small, JSON.parse(written.text)), written.text).toBe(true);
      expect(await streamed(schemaFormat({ ...small }), seed)).toEqual(written);
    }
  });

  test('of any JSON is an object, unless it is cut off', async () => {
    const done: unknown[] = [];
    for (const seed of Array.from({ length: 24 }, (_, at) => at)) {
      const { text, finish } = await whole({ type: 'json_object' }, seed);
      expect(text.startsWith('{'), text).toBe(true);
      if (finish === 'stop') done.push(JSON.parse(text));
      else expect(finish).toBe('length');
    }
    expect(done.length).toBeGreaterThan(0);
    for (const value of done) expect(value).toBeTypeOf('object');
  });

  test('of the interface for texts has the form too, and one of plain text has none', async () => {
    const asked = { model: name, prompt: 'abc', max_tokens: 40, seed: 1, stream: false } as const;
    const form = { response_format: schemaFormat({ ...small }) };
    const { choices } = await client.completions.create({ ...asked, ...form });
    expect(fits(small, JSON.parse(choices[0]!.text)), choices[0]!.text).toBe(true);
    const plain = await whole({ type: 'text' }, 1);
    expect(plain.text).toBe(await model.chat([{ role: 'user', content: 'tell me' }], { seed: 1 }).text());
  });
});

/** Schemas each of which names the next one. */
const chain = (length: number): Record<string, object> =>
  Object.fromEntries(Array.from({ length }, (_, i) => [i, { $ref: `#/$defs/${i + 1}` }]));

test.each<readonly [what: string, format: string, error: Partial<BadRequestError>, message: string]>([
  ['text', '"json"', { param: 'response_format', code: 'invalid_type' }, 'must be an object'],
  [
    'no type',
    '{}',
    { param: 'response_format.type', code: 'missing_required_parameter' },
    "Missing required parameter: 'response_format.type'.",
  ],
  [
    'an unknown type',
    '{"type":"xml"}',
    { param: 'response_format.type', code: 'invalid_value' },
    "one of text, json_object, json_schema, got 'xml'",
  ],
  [
    'no schema',
    '{"type":"json_schema"}',
    { param: 'response_format.json_schema', code: 'missing_required_parameter' },
    'response_format.json_schema',
  ],
  [
    'no name',
    '{"type":"json_schema","json_schema":{"schema":{}}}',
    { param: 'response_format.json_schema.name', code: 'missing_required_parameter' },
    'response_format.json_schema.name',
  ],
  [
    'a name of several words',
    '{"type":"json_schema","json_schema":{"name":"my answer","schema":{}}}',
    { param: 'response_format.json_schema.name', code: 'invalid_value' },
    'letters, digits',
  ],
  [
    'a strictness that is a number',
    '{"type":"json_schema","json_schema":{"name":"x","strict":1}}',
    { param: 'response_format.json_schema.strict', code: 'invalid_type' },
    'true or false',
  ],
  [
    'a schema that is a list',
    '{"type":"json_schema","json_schema":{"name":"x","schema":[]}}',
    { param: 'response_format.json_schema.schema', code: 'invalid_type' },
    'must be an object',
  ],
  [
    'a keyword that cannot be kept',
    '{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"string","pattern":"a+"}}}',
    { param: 'response_format', code: null },
    "Invalid schema for response_format 'x': jsonGrammar: #: pattern cannot be enforced",
  ],
  [
    'an unknown type in a schema',
    '{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"text"}}}',
    { param: 'response_format', code: null },
    "no type 'text'",
  ],
  [
    'a schema that nests without end',
    JSON.stringify(schemaFormat({ $ref: '#/$defs/0', $defs: chain(9000) })),
    { param: 'response_format', code: null },
    'nests too deeply',
  ],
])('a form with %s is refused', async (_, format, error, message) => {
  const asked = request(JSON.parse(format) as Format, 0);
  const refused = await client.chat.completions.create(asked).catch((reason: unknown) => reason);
  expect(refused).toBeInstanceOf(BadRequestError);
  expect(refused).toMatchObject({ status: 400, type: 'invalid_request_error', ...error });
  expect((refused as BadRequestError).message).toContain(message);
  const stream = client.chat.completions.create({ ...asked, stream: true });
  await expect(stream).rejects.toMatchObject({ status: 400, ...error });
});
