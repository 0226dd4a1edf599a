// Where GGUF files lie: at paths, behind URLs, in Blobs, in several files. Nothing of a file is read but its head and what is
// asked for.

import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { openGguf, writeGguf } from '../../../src/io/index.ts';
import { encodeBlocks } from '../../../src/ir/blocks/encode.ts';
import { ggufBytes, values } from './files.ts';

let folder: string;
let server: Server;
let origin: string;
/** What the server sent: first and last byte. */
const sent: [path: string, first: number, last: number][] = [];

const data = values(64 * 256);
const contents = {
  // A head that one piece does not hold.
  metadata: {
    'general.architecture': 'llama',
    tokens: Array.from({ length: 40000 }, (_, i) => `token ${i}`),
  },
  tensors: [
    { name: 'a', type: 'f32', shape: [4096, 256], data: () => Array.from({ length: 64 }, () => data) },
    { name: 'b', type: 'q8_0', shape: [64, 256], data },
  ],
} as const;

/** A server that answers ranges, or, below /whole/, does not. */
async function answer(
  path: string,
  range: string | undefined,
): Promise<{ status: number; head: Record<string, string>; body: Uint8Array }> {
  const whole = path.startsWith('/whole/');
  const bytes = await readFile(join(folder, path.split('/').at(-1)!)).catch(() => undefined);
  if (bytes === undefined) return { status: 404, head: {}, body: new Uint8Array() };
  const found = /^bytes=(\d+)-(\d+)$/.exec(range ?? '');
  if (whole || found === null) return { status: 200, head: {}, body: bytes };
  const [first, last] = [Number(found[1]), Math.min(Number(found[2]), bytes.length - 1)];
  sent.push([path, first, last]);
  const head = { 'content-range': `bytes ${first}-${last}/${bytes.length}` };
  return { status: 206, head, body: bytes.subarray(first, last + 1) };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sinter-gguf-'));
  await writeGguf(join(folder, 'model.gguf'), contents);
  server = createServer((request, response) => {
    void answer(request.url ?? '/', request.headers.range).then(({ status, head, body }) => {
      response.writeHead(status, head).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

test('a path, its URL, a Blob and bytes give the same file', async () => {
  const path = join(folder, 'model.gguf');
  const bytes = new Uint8Array(await readFile(path));
  expect(await readdir(folder)).toEqual(['model.gguf']);
  const expected = encodeBlocks('q8_0', data);
  for (const source of [path, pathToFileURL(path), new Blob([bytes]), bytes]) {
    const file = await openGguf(source);
    expect(file.metadata.texts('tokens')).toHaveLength(40000);
    expect(file.size).toBe(bytes.length);
    expect(await file.tensors.get('b')!.read()).toEqual(expected);
    await file.close();
  }
});

test('of a URL the head is asked for by growing ranges, and a tensor by its own', async () => {
  sent.length = 0;
  const file = await openGguf(`${origin}/model.gguf`);
  expect(file.metadata.texts('tokens')![39999]).toBe('token 39999');
  const head = sent.reduce((most, [, , last]) => Math.max(most, last + 1), 0);
  // About 0.8 MB of head, before 4 MB of tensors; pieces grow fourfold.
  expect(head).toBeLessThan(1.2e6);
  expect(sent.length).toBeLessThanOrEqual(4);
  sent.length = 0;
  const tensor = file.tensors.get('b')!;
  expect(await tensor.read()).toEqual(encodeBlocks('q8_0', data));
  expect(sent).toEqual([['/model.gguf', file.size - tensor.bytes, file.size - 1]]);
  sent.length = 0;
  let count = 0;
  for await (const { data: part } of file.tensors.get('a')!.chunks({ bytes: 2 ** 20 })) {
    count += part.length;
    if (count >= 2 ** 21) break;
  }
  // Two pieces, and the one that is asked for ahead.
  expect(sent.length).toBeLessThanOrEqual(3);
});

test('a server without ranges, and one without the file, are refused', async () => {
  await expect(openGguf(`${origin}/whole/model.gguf`)).rejects.toMatchObject({
    code: 'E_UNSUPPORTED',
    message: expect.stringMatching(/whole file where a range is asked for[^]*blob\(\)/),
  });
  await expect(openGguf(`${origin}/none.gguf`)).rejects.toMatchObject({
    code: 'E_IO',
    message: expect.stringMatching(/404/),
  });
  await expect(openGguf(join(folder, 'none.gguf'))).rejects.toMatchObject({ code: 'E_IO' });
});

test('a file that shrinks behind the reader is an error, not zeros', async () => {
  const path = join(folder, 'shrinking.gguf');
  await writeGguf(path, contents);
  const file = await openGguf(path);
  await writeFile(path, (await readFile(path)).subarray(0, 2 ** 20));
  await expect(file.tensors.get('b')!.read()).rejects.toThrow(/were asked for, 0 of \d+ came/);
  await file.close();
});

test('a model in several files is opened by its first', async () => {
  const part = async (i: number, name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const bytes = await ggufBytes({
      metadata: {
        'general.architecture': 'llama',
        'part.no': { type: 'u16', value: i },
        'part.count': { type: 'u16', value: 2 },
      },
      tensors: [{ name, type: 'f32', shape: [2, 32], data: values(64, i) }],
    });
    // The writer writes whole models: these keys it would leave out.
    const text = Buffer.from(bytes.buffer)
      .toString('latin1')
      .replace('\x07\0\0\0\0\0\0\0part.no', '\x08\0\0\0\0\0\0\0split.no')
      .replace('\x0a\0\0\0\0\0\0\0part.count', '\x0b\0\0\0\0\0\0\0split.count');
    return new Uint8Array(Buffer.from(text.slice(0, -258) + text.slice(-256), 'latin1'));
  };
  const parts = [await part(0, 'a'), await part(1, 'b')];
  await Promise.all(
    parts.map((bytes, i) => writeFile(join(folder, `two-0000${i + 1}-of-00002.gguf`), bytes)),
  );
  const first = 'two-00001-of-00002.gguf';
  for (const source of [
    join(folder, first),
    pathToFileURL(join(folder, first)),
    `${origin}/${first}`,
    parts,
  ]) {
    const file = await openGguf(source);
    expect([...file.tensors.keys()]).toEqual(['a', 'b']);
    expect(await file.tensors.get('b')!.values()).toEqual(values(64, 1));
    await file.close();
  }
  await expect(openGguf(parts[0]!)).rejects.toThrow(/one of 2 files, 1 of which are given/);
  await expect(openGguf(parts.toReversed())).rejects.toThrow(/is file 1 of the model, not 0/);
  await expect(openGguf(join(folder, 'two-00002-of-00002.gguf'))).rejects.toThrow(
    /is file 2 of 2[^]*-00001-of-/,
  );
  await expect(openGguf([])).rejects.toThrow(/at least one file/);
});

test('a file that fails on the way leaves nothing behind', async () => {
  const path = join(folder, 'failed.gguf');
  const data = function* (): Generator<Float32Array> {
    yield values(32);
    throw new Error('no more');
  };
  const tensors = [{ name: 'w', type: 'f32', shape: [2, 32], data } as const];
  await expect(writeGguf(path, { metadata: {}, tensors })).rejects.toThrow('no more');
  expect((await readdir(folder)).filter((name) => name.includes('failed'))).toEqual([]);
});
