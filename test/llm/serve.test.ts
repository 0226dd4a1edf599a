// The server, asked by the clients that people use: OpenAI's own package and the Vercel AI SDK; and by
// plain requests that are wrong, too many, or broken off.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BadRequestError, NotFoundError, OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modelServer } from '../../src/cli/llm/serve/server.ts';
import * as sn from '../../src/index.ts';
import { loadModel, type LanguageModel } from '../../src/llm/index.ts';
import { letters } from '../support/llm/letters.ts';
import { smallModel, sourceOf } from '../support/llm/small.ts';

const name = 'small';
let model: LanguageModel;
let server: Server;
let url: string;
let client: OpenAI;

beforeAll(async () => {
  sn.setDevice('wasm');
  const source = { ...sourceOf(smallModel('llama')), codec: letters };
  model = await loadModel(source, { contextLength: 64, sequences: 2 });
  server = modelServer(model, { name, parallel: 2, queue: 1 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
  model.dispose();
});

const messages = [{ role: 'user', content: 'tell me' }] as const;
const asked = { model: name, messages: [...messages], max_tokens: 8, temperature: 0 };

/** What the model itself says to it. */
const expected = (): Promise<string> => model.chat(messages, { maxTokens: 8, temperature: 0 }).text();

describe("OpenAI's client", () => {
  test('gets an answer whole, and as a stream', async () => {
    const whole = await client.chat.completions.create(asked);
    expect(whole.choices[0]!.message.content).toBe(await expected());
    expect(whole.usage?.total_tokens).toBe(
      (whole.usage?.prompt_tokens ?? 0) + (whole.usage?.completion_tokens ?? 0),
    );
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    let [text, finish, total] = ['', '', 0];
    for await (const { choices, usage } of stream) {
      text += choices[0]?.delta.content ?? '';
      finish = choices[0]?.finish_reason ?? finish;
      total = usage?.total_tokens ?? total;
    }
    expect([text, finish, total]).toEqual([
      await expected(),
      whole.choices[0]!.finish_reason,
      whole.usage?.total_tokens,
    ]);
  });

  test('gets texts, vectors and models', async () => {
    const { choices } = await client.completions.create({
      model: name,
      prompt: 'abc',
      max_tokens: 4,
      temperature: 0,
    });
    expect(choices[0]!.text).toBe(await model.generate('abc', { maxTokens: 4, temperature: 0 }).text());
    const { data } = await client.embeddings.create({ model: name, input: ['abc', 'xyz'] });
    const own = await model.embed('xyz');
    expect(data.length).toBe(2);
    data[1]!.embedding.forEach((value, i) => expect(value).toBeCloseTo(own[i]!, 6));
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([name]);
    expect((await client.models.retrieve(name)).id).toBe(name);
  });

  test('sees errors as its own', async () => {
    const wrong = client.chat.completions.create({ ...asked, temperature: 3 });
    await expect(wrong).rejects.toBeInstanceOf(BadRequestError);
    await expect(client.chat.completions.create({ ...asked, model: 'other' })).rejects.toBeInstanceOf(
      NotFoundError,
    );
  });
});

test('the AI SDK gets an answer whole, and as a stream', async () => {
  const provider = createOpenAICompatible({ name: 'sinter', baseURL: `${url}/v1` });
  const request = {
    model: provider(name),
    prompt: 'tell me',
    maxOutputTokens: 8,
    temperature: 0,
    maxRetries: 0,
  };
  const { text } = await generateText(request);
  expect(text).toBe(await expected());
  let streamed = '';
  for await (const piece of streamText(request).textStream) streamed += piece;
  expect(streamed).toBe(text);
});

const post = (path: string, body: string, signal?: AbortSignal): Promise<Response> =>
  fetch(url + path, { method: 'POST', body, ...(signal === undefined ? {} : { signal }) });

test.each([
  ['/v1/chat/completions', '{', 400, 'no JSON'],
  ['/v1/chat/completions', '[]', 400, 'an object'],
  ['/v1/chat/completions', '{}', 400, 'messages'],
  ['/v1/chat/completions', '{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}', 400, 'no text'],
  ['/v1/chat/completions', '{"messages":[{"role":"user","content":"a"}],"n":2}', 400, "'n'"],
  ['/v1/chat/completions', '{"messages":[{"role":"user","content":"a"}],"stop":3}', 400, "'stop'"],
  ['/v1/completions', '{"prompt":["a","b"]}', 400, 'prompt'],
  ['/v1/completions', `{"prompt":"${'a'.repeat(99)}"}`, 400, '99 tokens'],
  ['/v1/embeddings', '{"input":[]}', 400, 'input'],
  ['/v1/nothing', '{}', 404, 'nothing at'],
  ['/v1/models', '{}', 405, 'GET'],
])('%s refuses %s', async (path, body, status, message) => {
  const answer = await post(path, body);
  expect(answer.status).toBe(status);
  expect(((await answer.json()) as { error: { message: string } }).error.message).toContain(message);
});

test('four requests at once get the texts that they get alone', async () => {
  const source = { ...sourceOf(smallModel('llama')), codec: letters };
  const wide = await loadModel(source, { contextLength: 64, sequences: 4 });
  const own = modelServer(wide, { name, parallel: 4, queue: 0 });
  own.listen(0, '127.0.0.1');
  await once(own, 'listening');
  const baseURL = `http://127.0.0.1:${(own.address() as AddressInfo).port}/v1`;
  const four = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  const prompts = ['abc', 'the quick brown fox', 'z', 'one more of them'];
  const write = async (prompt: string, i: number): Promise<string> => {
    const request = { model: name, prompt, max_tokens: 12, temperature: i % 2, top_p: 0.9, seed: i } as const;
    if (i > 1) return (await four.completions.create(request)).choices[0]!.text;
    let text = '';
    for await (const { choices } of await four.completions.create({ ...request, stream: true }))
      text += choices[0]?.text ?? '';
    return text;
  };
  const alone: string[] = [];
  for (const [i, prompt] of prompts.entries()) alone.push(await write(prompt, i));
  expect(await Promise.all(prompts.map(write))).toEqual(alone);
  expect(alone.every((text) => text !== '')).toBe(true);
  own.close();
  own.closeAllConnections();
  wide.dispose();
});

test('health is told, too many requests are refused, and clients that leave make room', async () => {
  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
  // Texts that nobody reads on hold all that the model can write at once.
  // Their first token is not drawn, since it could be the last.
  const options = { maxTokens: 60, temperature: 0 };
  const held = [1, 2].map(() => model.generate('abc', options)[Symbol.asyncIterator]());
  for (const first of await Promise.all(held.map((text) => text.next()))) expect(first.done).toBe(false);
  const leaving = new AbortController();
  const long = JSON.stringify({ prompt: 'abc', max_tokens: 60, stream: true });
  const refused: Response[] = [];
  const many = Array.from({ length: 6 }, async () => {
    const answer = await post('/v1/completions', long, leaving.signal);
    if (answer.status === 429) refused.push(answer);
    else await answer.text();
  });
  // Two are being written, one waits.
  await expect.poll(() => refused.length).toBe(3);
  expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1']);
  leaving.abort();
  await Promise.allSettled(many);
  await Promise.all(held.map((text) => text.return?.()));
  const short = '{"prompt":"abc","max_tokens":1}';
  await expect.poll(async () => (await post('/v1/completions', short)).status).toBe(200);
});
