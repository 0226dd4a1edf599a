// What llama.cpp says of small models, of seeded weights and of those that scripts/llm/train-essay.ts trained:
// probabilities behind a prompt and greedy tokens, as test/fixtures/llm/llama-cpp.json. `LLAMA_DIR=DIR npx tsx scripts/llm/peer.ts`, where DIR has
// `npm i node-llama-cpp@3` (NODE_LLAMA_CPP_SKIP_DOWNLOAD=true: its programs come in npm packages).

import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fileSpecs, ggufBytes } from '../../test/support/llm/gguf-model.ts';
import { essayPrompt, inBlocks } from '../../test/support/llm/trained.ts';

const prompt = Array.from({ length: 16 }, (_, i) => 33 + ((i * 7919) % 90));
const written = 32;
const shown = 5;

interface Next {
  readonly token: number;
  readonly probabilities: Map<number, number>;
}
interface Sequence {
  controlledEvaluate(input: readonly unknown[]): Promise<({ readonly next: Next } | undefined)[]>;
}
interface Llama {
  loadModel(options: object): Promise<{
    createContext(options: object): Promise<{ getSequence(): Sequence; dispose(): Promise<void> }>;
    dispose(): Promise<void>;
  }>;
  dispose(): Promise<void>;
}

const { LLAMA_DIR: from } = process.env;
if (from === undefined) throw new Error('LLAMA_DIR must name a folder that has node-llama-cpp');
const entry = pathToFileURL(resolve(from, 'node_modules/node-llama-cpp/dist/index.js')).href;
const { getLlama } = (await import(entry)) as { getLlama(options: object): Promise<Llama> };
const llama = await getLlama({
  build: 'never',
  gpu: false,
  progressLogs: false,
  logLevel: 'error',
  maxThreads: 1,
});
const folder = mkdtempSync(join(tmpdir(), 'sinter-peer-'));

const generateNext = { probabilities: true, token: true, options: { temperature: 0 } };
const found: Record<string, { top: [number, number][]; tokens: number[] }> = {};
const essay = readFileSync(new URL('../../test/fixtures/llm/essay.gguf', import.meta.url));
const files: readonly (readonly [name: string, file: Uint8Array, prompt: readonly number[]])[] = [
  ...(await Promise.all(fileSpecs.map(async (spec) => [spec.name, await ggufBytes(spec), prompt] as const))),
  ['essay f16', essay, essayPrompt],
  ['essay q8_0', await inBlocks(essay), essayPrompt],
];
for (const [name, file, given] of files) {
  const path = join(folder, `${name.replaceAll(' ', '-')}.gguf`);
  writeFileSync(path, file);
  const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: 256,
    threads: { ideal: 1, min: 1 },
    flashAttention: false,
  });
  const sequence = context.getSequence();
  const next = async (tokens: readonly number[]): Promise<Next> => {
    const input = [...tokens.slice(0, -1), [tokens.at(-1), { generateNext }]];
    return (await sequence.controlledEvaluate(input)).at(-1)!.next;
  };
  const first = await next(given);
  const top = [...first.probabilities].slice(0, shown);
  const tokens = [first.token];
  while (tokens.length < written) tokens.push((await next([tokens.at(-1)!])).token);
  found[name] = { top: top.map(([token, p]) => [token, Number(p.toPrecision(6))]), tokens };
  await context.dispose();
  await model.dispose();
}
await llama.dispose();
const rows = Object.entries(found).map(([name, row]) => `  ${JSON.stringify(name)}: ${JSON.stringify(row)}`);
writeFileSync(
  new URL('../../test/fixtures/llm/llama-cpp.json', import.meta.url),
  `{\n${rows.join(',\n')}\n}\n`,
);
