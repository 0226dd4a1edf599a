// `sinter generate`, `chat` and `serve` on a small model in a file, as their users start them: what is
// written is what llama.cpp writes (test/fixtures/llm/llama-cpp.json), and what the model itself says.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BenchResult } from '../../src/cli/bench/bench.ts';
import type { GenerateResult } from '../../src/cli/llm/generate.ts';
import { setDevice } from '../../src/index.ts';
import { loadModel } from '../../src/llm/index.ts';
import { sinter } from '../support/cli.ts';
import { folderFiles, folderSpecs } from '../support/llm/folder.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'sinter-llm-'));
const file = path.join(folder, 'small.gguf');
const fixture = new URL('../fixtures/llm/llama-cpp.json', import.meta.url);
const said = JSON.parse(readFileSync(fixture, 'utf8')) as Readonly<
  Record<string, Pick<GenerateResult, 'top' | 'tokens'>>
>;
const likely = ['--temperature', '0', '--new', '6', '--device', 'wasm:1'];

beforeAll(async () =>
  writeFileSync(file, await ggufBytes(fileSpecs.find(({ name }) => name === 'llama f32')!)),
);
afterAll(() => {
  rmSync(folder, { recursive: true });
  setDevice(undefined);
});

/** The program in a process of its own. */
function started(...args: readonly string[]): ChildProcess {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  return spawn(process.execPath, ['--import', 'tsx', main, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** What the model says to a conversation, of one turn each. */
async function answered(prompts: readonly string[]): Promise<string[]> {
  const model = await loadModel(file, { device: 'wasm:1' });
  const messages: { role: string; content: string }[] = [];
  for (const content of prompts) {
    messages.push({ role: 'user', content });
    const answer = await model.chat(messages, { temperature: 0, maxTokens: 6 }).text();
    messages.push({ role: 'assistant', content: answer });
  }
  model.dispose();
  return messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
}

test('generate writes on from a text, and tells how fast', async () => {
  const { code, out, err } = await sinter('generate', file, '--prompt', 'abc', ...likely);
  expect(code, err).toBe(0);
  const model = await loadModel(file, { device: 'wasm:1' });
  expect(out).toBe(`abc${await model.generate('abc', { temperature: 0, maxTokens: 6 }).text()}`);
  model.dispose();
  expect(err).toMatch(/^3 tokens in \d+ ms, then \d/);
});

test('generate takes a folder, with weights in blocks if that is wanted', async () => {
  const place = path.join(folder, 'small');
  mkdirSync(place);
  const spec = folderSpecs.find(({ name }) => name === 'llama')!;
  for (const [name, bytes] of folderFiles(spec)) writeFileSync(path.join(place, name), bytes);
  for (const quantize of [undefined, 'q8_0'] as const) {
    const more = quantize === undefined ? [] : ['--quantize', quantize];
    const { code, out, err } = await sinter('generate', place, '--prompt', 'abc', ...likely, ...more);
    expect(code, err).toBe(0);
    const model = await loadModel(place, {
      device: 'wasm:1',
      ...(quantize === undefined ? {} : { quantize }),
    });
    expect(out).toBe(`abc${await model.generate('abc', { temperature: 0, maxTokens: 6 }).text()}`);
    model.dispose();
  }
  const odd = await sinter('generate', place, '--prompt', 'abc', '--quantize', 'q1');
  expect([odd.code, odd.err]).toEqual([1, expect.stringContaining('quantize must be one of q8_0')]);
  const empty = await sinter('chat', path.join(folder, 'none'));
  expect([empty.code, empty.err]).toEqual([1, expect.stringContaining('ENOENT')]);
  rmSync(path.join(place, 'config.json'));
  const bare = await sinter('chat', place);
  expect([bare.code, bare.err]).toEqual([1, expect.stringContaining('has no config.json')]);
});

test('generate --json has the tokens and likeliest ones of llama.cpp', async () => {
  const { code, out, err } = await sinter('generate', file, '--prompt-tokens', '16', ...likely, '--json');
  expect(code, err).toBe(0);
  const found = JSON.parse(out) as GenerateResult;
  const { top, tokens } = said['llama f32']!;
  expect([found.prompt, found.tokens]).toEqual([16, tokens.slice(0, 6)]);
  const [best] = found.top;
  expect(best![0]).toBe(top[0]![0]);
  expect(best![1] / top[0]![1]).toBeCloseTo(1, 2);
  expect(Math.min(found.prefill_tok_s, found.decode_tok_s)).toBeGreaterThan(0);
});

test.each(['lookup', 'a model'])(
  'generate writes the same with --draft %s, and counts drafts',
  async (draft) => {
    const guesses = draft === 'lookup' ? draft : file;
    const given = ['generate', file, '--prompt-tokens', '16', ...likely, '--json', '--draft', guesses];
    const { code, out, err } = await sinter(...given, '--draft-tokens', '2');
    expect(code, err).toBe(0);
    const { tokens, drafts } = JSON.parse(out) as GenerateResult;
    expect(tokens).toEqual(said['llama f32']!.tokens.slice(0, 6));
    // The same model guesses what it writes: a round of two, of the first to the third token.
    expect(drafts).toEqual(draft === 'lookup' ? { tried: 0, kept: 0 } : { tried: 2, kept: 2 });
  },
);

test('bench counts tokens a second, and what they read', async () => {
  const given = ['bench', '--workload', 'decode', '--model', file];
  const { code, out, err } = await sinter(...given, '--device', 'wasm:1', '--json');
  expect(code, err).toBe(0);
  const { decode } = JSON.parse(out) as BenchResult;
  const { prefillTokens, decodeTokens, tokenBytes, copyBandwidth, bandwidthShare, host_us: host } = decode!;
  expect(Math.min(prefillTokens, decodeTokens, copyBandwidth, host)).toBeGreaterThan(0);
  expect(bandwidthShare / ((tokenBytes * decodeTokens) / copyBandwidth)).toBeCloseTo(1, 2);
  // All that the file holds but the rows of the embedding, and keys and values of 161 positions.
  const model = await loadModel(file, { device: 'wasm:1' });
  const { layers, keyHeads, headSize } = model.config;
  const cache = (positions: number): number => 2 * 4 * layers * keyHeads * headSize * positions;
  expect(tokenBytes - model.tokenBytes(0)).toBe(cache(160));
  expect(statSync(file).size).toBeGreaterThan(model.tokenBytes(0) - cache(1));
  model.dispose();
});

test.each([
  [['bench', '--workload', 'gelu', '--model', file], '--workload decode'],
  [['generate'], 'expects'],
  [['generate', file], '--prompt TEXT'],
  [['generate', file, '--prompt', 'a', '--top-p', 'x'], '--top-p: expects a number'],
  [['generate', file, '--prompt', 'a', '--cache', 'f64'], '--cache: expects f32, f16, q8_0'],
  [['generate', file, '--prompt', 'a', '--draft', path.join(folder, 'other.gguf')], 'other.gguf'],
  [['generate', file, '--prompt', 'a', '--draft', 'lookup', '--draft-tokens', '17'], 'draftTokens'],
  [['generate', path.join(folder, 'none.gguf'), '--prompt', 'a'], 'none.gguf'],
])('%j is refused', async (args, words) => {
  const { code, err } = await sinter(...args);
  expect([code > 0, err]).toEqual([true, expect.stringContaining(words)]);
});

test('chat answers line by line, and remembers what was said', async () => {
  const child = started('chat', file, ...likely);
  child.stdin!.end('ab\n\ncd\n');
  const out = await text(child.stdout!);
  expect(child.exitCode ?? (await once(child, 'exit'))[0]).toBe(0);
  expect(out).toBe((await answered(['ab', 'cd'])).map((answer) => `${answer}\n`).join(''));
});

test('serve says where it listens, answers there, and ends when it is told to', async () => {
  const child = started('serve', file, '--port', '0', '--device', 'wasm:1', '--json');
  const ended = once(child, 'exit');
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const { url, model } = JSON.parse(line.toString()) as { url: string; model: string };
  expect(model).toBe('small');
  const body = JSON.stringify({
    messages: [{ role: 'user', content: 'ab' }],
    max_tokens: 6,
    temperature: 0,
  });
  const response = await fetch(`${url}/chat/completions`, { method: 'POST', body });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  expect(choices[0]!.message.content).toBe((await answered(['ab']))[0]);
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
});
