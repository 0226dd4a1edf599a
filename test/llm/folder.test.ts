// Folders of Hugging Face: every family against what transformers says of it (test/fixtures/llm/transformers.json, by
// scripts/llm/folder-fixtures.py) and against the GGUF file of the same weights, in every form that folders come in.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { writeSafetensors } from '../../src/io/index.ts';
import {
  loadModel,
  type GenerateOptions,
  type LanguageModel,
  type LoadModelOptions,
  type ModelInput,
} from '../../src/llm/index.ts';
import {
  folderConfig,
  folderFiles,
  folderSpecs,
  folderTensors,
  jsonBytes,
  type FolderSpec,
} from '../support/llm/folder.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';

interface Said {
  /** Every eighth score. */
  readonly scores: readonly number[];
  /** config.json as transformers writes it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** What a model writes that turns texts by their length. */
  readonly tokens?: readonly number[];
}

const fixture = new URL('../fixtures/llm/transformers.json', import.meta.url);
const said = JSON.parse(readFileSync(fixture, 'utf8')) as Readonly<Record<string, Said>>;
const prompt = Array.from({ length: 16 }, (_, i) => 33 + ((i * 7919) % 90));

async function opened(input: ModelInput, options: LoadModelOptions = {}): Promise<LanguageModel> {
  const model = await loadModel(input, { contextLength: 64, ...options });
  onTestFinished(() => model.dispose());
  return model;
}

const scoresOf = async (input: ModelInput, options: LoadModelOptions = {}): Promise<Float32Array> =>
  (await opened(input, options)).logits(prompt);

const specOf = (name: string): FolderSpec => folderSpecs.find((spec) => spec.name === name)!;
const differences = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i]!)));

beforeAll(() => sn.setDevice('wasm'));

describe('what transformers says', () => {
  test.each(folderSpecs)('$name', async (spec) => {
    const { scores, config } = said[spec.name]!;
    const files = folderFiles(spec);
    const found = await scoresOf(files);
    expect(
      differences(
        scores,
        found.filter((_, i) => i % 8 === 0),
      ),
    ).toBeLessThan(5e-5);
    // The same of the fields that transformers writes today.
    const again = await scoresOf(files.set('config.json', jsonBytes(config)));
    expect(again).toEqual(found);
  });

  test.each(folderSpecs.filter(({ name }) => /longrope|dynamic/.test(name)))(
    '$name, written',
    async (spec) => {
      const { tokens } = said[spec.name]!;
      const options = { temperature: 0, maxTokens: tokens!.length, ignoreEnd: true } as const;
      const model = await opened(folderFiles(spec), { sequences: 2 });
      const write = async (more: GenerateOptions = {}): Promise<readonly number[]> => {
        const generation = model.generate(prompt, { ...options, ...more });
        await generation.text();
        return generation.tokens;
      };
      expect(await write()).toEqual(tokens);
      expect(await write({ draft: 'lookup' })).toEqual(tokens);
      expect(await Promise.all([write(), write()])).toEqual([tokens, tokens]);
    },
  );

  test.each(['phi3 longrope of 20', 'llama dynamic of 20'])(
    '%s: texts of other lengths are read again',
    async (name) => {
      const files = folderFiles(specOf(name));
      const model = await opened(files);
      const long = [...prompt, ...prompt];
      for (const text of [
        prompt,
        long,
        prompt,
        long,
        long.slice(0, 21),
        long.slice(0, 20),
        long.slice(0, 31),
        long,
      ])
        expect(await model.logits(text)).toEqual(await (await opened(files)).logits(text));
    },
  );

  test('short texts are not turned as long ones', async () => {
    const model = await opened(folderFiles(specOf('phi3 longrope of 20')));
    const long = [...prompt, ...prompt];
    const [short, all] = [8, 128].map((original) => folderFiles(specOf(`phi3 longrope of ${original}`)));
    expect(await model.logits(long)).not.toEqual(await (await opened(all!)).logits(long));
    expect(await model.logits(prompt)).not.toEqual(await (await opened(short!)).logits(prompt));
  });

  test('a base that grows with the text is that of a model with a larger one, in several blocks', async () => {
    const spec = specOf('llama dynamic of 20');
    const long = Array.from({ length: 150 }, (_, i) => prompt[(i * 7) % prompt.length]! + (i % 3));
    const logits = await (await opened(folderFiles(spec), { contextLength: 160 })).logits(long);
    const base =
      10_000 * (1 + (8 * (long.length - 20)) / 20) ** (spec.file.headSize / (spec.file.headSize - 2));
    const config = { max_position_embeddings: 256, rope_theta: base };
    const fixed = await opened(folderFiles({ ...spec, config }), { contextLength: 160 });
    expect(differences(logits, await fixed.logits(long))).toBeLessThan(1e-5);
    const plain = await opened(folderFiles(specOf('llama')), { contextLength: 160 });
    expect(differences(logits, await plain.logits(long))).toBeGreaterThan(0.1);
    await expect(opened(folderFiles(spec), { contextLength: 161 })).rejects.toThrow(
      'contextLength is 161, and the model was made for 160',
    );
  });

  test('is about every family, and differs between them', () => {
    expect(Object.keys(said).sort()).toEqual(folderSpecs.map(({ name }) => name).sort());
    const all = new Set(Object.values(said).map(({ scores, tokens }) => `${scores}; ${tokens}`));
    expect(all.size).toBe(folderSpecs.length);
  });
});

describe('what the GGUF file of the same weights says', () => {
  const same = folderSpecs.filter(({ isFile }) => isFile === true);

  test.each(same)('$name', async (spec) => {
    const [found, expected] = [await scoresOf(folderFiles(spec)), await scoresOf(await ggufBytes(spec.file))];
    expect(differences(found, expected)).toBeLessThan(2e-5);
  });

  test('text too', async () => {
    const spec = specOf('llama');
    const folder = await opened(folderFiles(spec));
    const file = await opened(await ggufBytes(spec.file));
    for (const text of ['', 'the end', ' é<|endoftext|> x', '\u{1f600}\n']) {
      expect(folder.codec.encode(text)).toEqual(file.codec.encode(text));
      expect(folder.codec.decode(folder.codec.encode(text))).toBe(file.codec.decode(file.codec.encode(text)));
    }
    expect(folder.codec.template([{ role: 'user', content: 'Hi' }])).toBe('[Hi]');
    expect(folder.codec.eos).toEqual([257, 259]);
    const options = { temperature: 0, maxTokens: 12, ignoreEnd: true } as const;
    expect(await folder.generate('the', options).text()).toBe(await file.generate('the', options).text());
  });
});

describe('a folder is', () => {
  const spec = specOf('llama of bf16 in shards');
  const files = folderFiles(spec);
  let expected: Float32Array;
  beforeAll(async () => {
    const model = await loadModel(files, { contextLength: 64 });
    expected = await model.logits(prompt);
    model.dispose();
  });

  test('a path or a file: URL', async () => {
    const place = mkdtempSync(join(tmpdir(), 'sinter folder-'));
    onTestFinished(() => rmSync(place, { recursive: true }));
    for (const [name, bytes] of files) writeFileSync(join(place, name), bytes);
    for (const input of [place, `${place}/`, pathToFileURL(place), pathToFileURL(`${place}/`)])
      expect(await scoresOf(input)).toEqual(expected);
  });

  test('Files that a page was given, in any order, with others', async () => {
    const list = [...files].map(([name, bytes]) => new File([bytes as BlobPart], name)).reverse();
    expect(await scoresOf([new File([], 'README.md'), ...list])).toEqual(expected);
  });

  test('a URL that ends in a slash, of which ranges are read', async () => {
    const asked: string[] = [];
    const server = createServer(({ url = '', headers }, response) => {
      const bytes = files.get(decodeURIComponent(url.slice('/a%20b/'.length).replace(/\?.*/, '')));
      asked.push(`${url} ${headers.range ?? 'all'}`);
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
      if (bytes === undefined || from === undefined) {
        response.writeHead(404).end();
        return;
      }
      const part = bytes.subarray(Number(from), Number(to) + 1);
      const range = `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}`;
      response.writeHead(206, { 'content-range': range, 'content-length': part.length }).end(part);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await scoresOf(`http://127.0.0.1:${port}/a b/?key=1`)).toEqual(expected);
    expect(asked.every((each) => each.includes('?key=1 bytes='))).toBe(true);
    // A file that is missing and that the model can do without.
    await without(files, 'generation_config.json', async () => {
      expect(await scoresOf(`http://127.0.0.1:${port}/a b/`)).toEqual(expected);
    });
  });
});

/** Without a file, for a while. */
async function without(
  files: Map<string, Uint8Array>,
  name: string,
  use: () => Promise<void>,
): Promise<void> {
  const kept = files.get(name)!;
  files.delete(name);
  await use();
  files.set(name, kept);
}

describe('options and parts', () => {
  test('a head in the files is not used where config.json ties it to the embedding', async () => {
    const spec = specOf('llama');
    const files = folderFiles({ ...spec, config: { tie_word_embeddings: true } });
    const tied = await scoresOf(files);
    expect(differences(tied, await scoresOf(folderFiles(spec)))).toBeGreaterThan(0.1);
    const tensors = folderTensors(spec).filter(([name]) => name !== 'lm_head.weight');
    expect(await scoresOf(files.set('model.safetensors', writeSafetensors(tensors)))).toEqual(tied);
  });

  test('models that also take pictures are read for their text', async () => {
    const spec = specOf('gemma3');
    const files = folderFiles(spec);
    const tensors = folderTensors(spec).map(([name, tensor]) => [`language_model.${name}`, tensor] as const);
    const picture = { dtype: 'f32', shape: [1], data: new Uint8Array(4) } as const;
    const { model_type: _, ...text } = folderConfig(spec);
    files.set('model.safetensors', writeSafetensors([...tensors, ['vision_tower.a.weight', picture]]));
    files.set('config.json', jsonBytes({ model_type: 'gemma3', text_config: text, vision_config: {} }));
    expect(await scoresOf(files)).toEqual(await scoresOf(folderFiles(spec)));
  });

  test.each(['q8_0', 'q4_0', 'q4_k', 'q6_k'] as const)('quantize: %s is that of writeGguf', async (type) => {
    const isWide = type.endsWith('_k');
    const base = folderSpecs.find(({ name }) => name === 'llama')!;
    const file = fileSpecs.find(({ name }) => name === `llama ${isWide ? type : 'f32'}`)!;
    const spec = { ...base, file: { ...file, type: 'f32' } } as const;
    const found = await scoresOf(folderFiles(spec), { quantize: type });
    // GGUF files of Llama have rows in another order, which blocks along a row do not see.
    const expected = await scoresOf(await ggufBytes({ ...file, type }));
    expect(differences(found, expected)).toBeLessThan(1e-3);
    expect(differences(found, await scoresOf(folderFiles(spec)))).toBeGreaterThan(1e-3);
    expect(await scoresOf(await ggufBytes({ ...file, type: 'f32' }), { quantize: type })).toEqual(expected);
  });

  test('rows that blocks do not fill become smaller blocks', async () => {
    const model = await opened(folderFiles(specOf('mixtral')), { quantize: 'q4_k' });
    const eighth = await opened(folderFiles(specOf('mixtral')), { quantize: 'q8_0' });
    expect(await model.logits(prompt)).toEqual(await eighth.logits(prompt));
    expect(model.tokenBytes(0)).toBeLessThan(
      (await opened(folderFiles(specOf('mixtral')))).tokenBytes(0) / 3,
    );
    await expect(loadModel(new Map(), { quantize: 'q3' as never })).rejects.toMatchObject({
      code: 'E_VALUE',
    });
  });
});
