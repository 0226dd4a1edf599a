// Writes test/fixtures/tokens.json: how llama.cpp cuts texts into tokens, for vocabularies of several kinds that are made here.
//
//     npm install node-llama-cpp@3      (in a folder of its own, NODE_LLAMA_CPP_SKIP_DOWNLOAD=true)
//     LLAMA_DIR=that/folder npx tsx scripts/llm/token-fixtures.ts
//
// Vocabularies are learned from the words below: pairs that stand most often are joined. They are small, so that texts fall
// apart in many ways; a vocabulary of scores has the same tokens, earlier ones higher.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { writeGguf } from '../../src/io/index.ts';
import { spellBytes } from '../../src/llm/text/byte-level.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const corpus = ['README.md', 'CONTRIBUTING.md']
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n');

/** Pairs joined one after the other, over the words of the corpus. */
function learn(words: readonly (readonly string[])[], count: number): string[][] {
  const tally = new Map<string, { symbols: string[]; times: number }>();
  for (const symbols of words) {
    const key = symbols.join(' ');
    const known = tally.get(key);
    if (known === undefined) tally.set(key, { symbols: [...symbols], times: 1 });
    else known.times++;
  }
  const merges: string[][] = [];
  while (merges.length < count) {
    const pairs = new Map<string, number>();
    for (const { symbols, times } of tally.values()) {
      for (let i = 0; i + 1 < symbols.length; i++) {
        const pair = `${symbols[i]} ${symbols[i + 1]}`;
        pairs.set(pair, (pairs.get(pair) ?? 0) + times);
      }
    }
    const [best] = [...pairs].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    if (best === undefined) break;
    const [left, right] = best[0].split(' ') as [string, string];
    merges.push([left, right]);
    for (const word of tally.values()) {
      const joined: string[] = [];
      for (const symbol of word.symbols) {
        if (symbol === right && joined.at(-1) === left) joined[joined.length - 1] = left + right;
        else joined.push(symbol);
      }
      word.symbols = joined;
    }
  }
  return merges;
}

const pieces = corpus.match(/ ?[^\s]+|\s+/g) ?? [];
const byteMerges = learn(pieces.map(spellBytes), 300);
const byteTokens = [
  ...Array.from({ length: 256 }, (_, byte) => spelledByte(byte)),
  ...byteMerges.map((pair) => pair.join('')),
];

function spelledByte(byte: number): string {
  // The spelling of each byte, taken from texts that have it: UTF-8 has no byte from 0xf8 on, nor 0xc0 and 0xc1.
  const seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  if (seen) return String.fromCodePoint(byte);
  const before = Array.from({ length: byte }, (_, i) => i).filter(
    (i) => !((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174),
  );
  return String.fromCodePoint(256 + before.length);
}

const special = ['<|start|>', '<|end|>', '<|endoftext|>'];
const added = ['[tool]'];
const types = (normal: number): Int32Array =>
  Int32Array.from([...Array.from({ length: normal }, () => 1), 3, 3, 3, 4]);

const scoreMerges = learn(
  pieces.map((piece) => [...piece.replaceAll(' ', '▁')]),
  300,
);
const chars = [...new Set(corpus.replaceAll(' ', '▁'))]
  .filter((char) => /[\p{L}\p{N}▁.,;:!?'"()-]/u.test(char))
  .toSorted();
const hex = (byte: number): string => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
const scoreTokens = [
  '<unk>',
  '<s>',
  '</s>',
  ...Array.from({ length: 256 }, (_, byte) => hex(byte)),
  ...scoreMerges.map((pair) => pair.join('')),
  ...chars,
];

const bytePair = {
  tokens: [...byteTokens, ...special, ...added],
  merges: byteMerges.map((pair) => pair.join(' ')),
  types: types(byteTokens.length),
};
const scored = {
  tokens: [...new Set([...scoreTokens, ...added])],
  types: Int32Array.from(
    [...new Set([...scoreTokens, ...added])].map((token, i) =>
      i === 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : token === '[tool]' ? 4 : 1,
    ),
  ),
};
const scores = Float32Array.from(scored.tokens, (_, i) => (i < 259 ? 0 : 259 - i));

const texts = [
  'Hello world',
  ' leading and  double   spaces ',
  'Numbers: 1, 12, 123, 1234567 and 3.14159',
  "It's what they'd've said; I'M SURE, WE'LL SEE 'tis",
  'lines\nand\r\n\r\n  more\n\n\tlines \n',
  'Größe, naïve café, Ελληνικά, Русский',
  '日本語のテキスト 한국어 中文。',
  'emoji 👍🏽 and 👩‍👩‍👧 flags 🇨🇭!',
  'a\u0301 combining, \u00a0 no-break\u2003em, \u0085 next line, \ufeff mark',
  'code: if (x[0] >= 1) { return a/b; } // ok\n    indented();',
  '<|start|>user\nhi<|end|>\n <|start|>[tool] x[tool]<|endoftext|>',
  'ﷺ ½ ② Ⅷ ²x',
  'camelCase HTTPServer XMLHttpRequest iPhone ÀÉ',
  'x'.repeat(50) + ' '.repeat(20) + '.'.repeat(9),
  '</s> <s>text</s>',
  '',
];

const kinds = {
  ...Object.fromEntries(
    ['gpt-2', 'llama-bpe', 'qwen2', 'smollm', 'gpt-4o', 'tekken', 'smaug-bpe', 'dbrx'].map((pre) => [
      pre,
      { model: 'gpt2', pre },
    ]),
  ),
  llama: { model: 'llama' },
  gemma: { model: 'llama', prefix: false },
} as Record<string, { model: string; pre?: string; prefix?: boolean }>;

/** What is called of the package. */
interface Llama {
  loadModel(
    options: object,
  ): Promise<{ tokenize(text: string, special: boolean): Iterable<number>; dispose(): Promise<void> }>;
  dispose(): Promise<void>;
}

const { getLlama } = (await import(
  pathToFileURL(resolve(process.env['LLAMA_DIR'] ?? '.', 'node_modules/node-llama-cpp/dist/index.js')).href
)) as {
  getLlama: (options: object) => Promise<Llama>;
};
const llama = await getLlama({ build: 'never', gpu: false, progressLogs: false, logLevel: 'error' });
const folder = mkdtempSync(join(tmpdir(), 'tokens-'));
const out: Record<string, { metadata: object; tokens: number[][] }> = {};
for (const [name, { model, pre, prefix }] of Object.entries(kinds)) {
  const metadata: Record<string, unknown> = { 'tokenizer.ggml.model': model };
  if (pre !== undefined) metadata['tokenizer.ggml.pre'] = pre;
  if (prefix !== undefined) metadata['tokenizer.ggml.add_space_prefix'] = prefix;
  if (model === 'gpt2')
    Object.assign(metadata, {
      'tokenizer.ggml.bos_token_id': byteTokens.length,
      'tokenizer.ggml.eos_token_id': byteTokens.length + 2,
    });
  const tables =
    model === 'gpt2'
      ? {
          'tokenizer.ggml.tokens': bytePair.tokens,
          'tokenizer.ggml.token_type': bytePair.types,
          'tokenizer.ggml.merges': bytePair.merges,
        }
      : {
          'tokenizer.ggml.tokens': scored.tokens,
          'tokenizer.ggml.token_type': scored.types,
          'tokenizer.ggml.scores': scores,
        };
  const sizes = Object.fromEntries(
    ['block_count', 'context_length', 'embedding_length', 'feed_forward_length', 'attention.head_count'].map(
      (key) => [`llama.${key}`, 32],
    ),
  );
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, {
    metadata: {
      'general.architecture': 'llama',
      ...sizes,
      'llama.attention.layer_norm_rms_epsilon': 1e-5,
      ...metadata,
      ...tables,
    } as never,
    tensors: [],
  });
  const loaded = await llama.loadModel({ modelPath: path, vocabOnly: true });
  out[name] = { metadata, tokens: texts.map((text) => [...loaded.tokenize(text, true)]) };
  await loaded.dispose();
}
rmSync(folder, { recursive: true });
const fixtures = {
  texts,
  bytePair: { ...bytePair, types: [...bytePair.types] },
  scored: { ...scored, types: [...scored.types], scores: [...scores] },
  kinds: out,
};
writeFileSync(join(root, 'test/fixtures/tokens.json'), `${JSON.stringify(fixtures)}\n`);
await llama.dispose();
process.exit(0);
