// What files cost is in proportion to their sizes: a few bytes that ask for much time or memory are refused by a typed error, before
// either is spent.

import { readFileSync } from 'node:fs';
import { deflateSync, gzipSync } from 'node:zlib';
import { encode as encodeJpeg } from 'jpeg-js';
import { describe, expect, test } from 'vitest';
import { askPeer } from '../../src/data/files/peer.ts';
import { readImage, readParquet } from '../../src/data/index.ts';
import { Allowance } from '../../src/io/allowance.ts';
import { gunzip, loadTorch, readNpz, readTorch, writeNpy, type HostTensor } from '../../src/io/index.ts';
import { crc32 } from '../../src/io/zip.ts';
import { resolveFromProject } from '../../src/packages/node.ts';
import { cpuTimeOf } from '../support/cpu-time.ts';
import { archive, tensorView, torchFile } from './archive.ts';

const given = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../fixtures/data/${name}`, import.meta.url)));
const zeros = (bytes: number): HostTensor => ({ dtype: 'u8', shape: [bytes], data: new Uint8Array(bytes) });

/** What a call is refused with, in at most `most` milliseconds of processor time. */
async function refusedIn(call: () => Promise<unknown>, most = 1500): Promise<unknown> {
  let code: unknown = 'nothing is thrown';
  const time = await cpuTimeOf(async () => {
    await call().catch((error: unknown) => (code = (error as { code?: unknown }).code));
  });
  expect(time).toBeLessThan(most);
  return code;
}

describe('files of torch.save', () => {
  /** `](h0 h0 e` again and again: a list of twice the one before. */
  const doubled = (levels: number, first: string): string =>
    `${first}q\0${Array.from({ length: levels }, (_, i) => {
      const before = `h${String.fromCharCode(i)}`;
      return `](${before}${before}eq${String.fromCharCode(i + 1)}`;
    }).join('')}`;

  test('with lists in lists are read as they are shared', async () => {
    let value = await readTorch(torchFile(doubled(100, ']')));
    for (let level = 0; level < 100; level++) {
      const [one, other] = value as readonly (typeof value)[];
      expect(one).toBe(other);
      value = one!;
    }
    expect(value).toEqual([]);
    expect(await loadTorch(torchFile(doubled(10, ']')))).toEqual({});
  });

  test('whose shared tensors have too many names are refused', async () => {
    const file = torchFile(doubled(40, tensorView('Float', 0, [2], [1])));
    expect(await refusedIn(() => loadTorch(file), 5000)).toBe('E_LIMIT');
    expect(
      Object.keys(await loadTorch(torchFile(doubled(3, tensorView('Float', 0, [2], [1]))))),
    ).toHaveLength(8);
  });

  test('that hold themselves are refused', async () => {
    expect(await refusedIn(() => readTorch(torchFile(']q\0h\0a')))).toBe('E_FORMAT');
  });

  test('that copy a long list again and again are refused', async () => {
    const pairs = Array.from({ length: 2000 }, () => 'K\x01K\x02\x86').join('');
    const calls = 'h\x01h\x00R0'.repeat(5000);
    const pickle = `(](${pairs}etq\0ccollections\nOrderedDict\nq\x010${calls}`;
    expect(await refusedIn(() => readTorch(torchFile(`${pickle}N`)), 3000)).toBe('E_LIMIT');
    const again = await readTorch(torchFile(`${pickle}N`), { maxBytes: Infinity });
    expect(again).toBe(null);
  });

  test('with long lists are read', async () => {
    expect(await readTorch(torchFile(`](${'K\x01'.repeat(200_000)}e`))).toHaveLength(200_000);
  });
});

describe('archives', () => {
  test('whose members share their bytes are refused', async () => {
    const content = writeNpy(zeros(2 ** 20));
    const members = Array.from({ length: 10 }, (_, i) => ({ name: `${i}.npy`, content, isDeflated: true }));
    const shared = archive(members.map((member, i) => (i === 0 ? member : { ...member, at: 0 })));
    expect(shared.length).toBeLessThan(4000);
    expect(await refusedIn(() => readNpz(shared))).toBe('E_FORMAT');
    expect((await readNpz(archive(members.slice(0, 2)))).size).toBe(2);
  });

  test('that unpack to much more than they are need the caller’s word', async () => {
    const content = writeNpy(zeros(2 ** 27));
    const file = archive([{ name: 'a.npy', content, isDeflated: true }]);
    expect(await refusedIn(() => readNpz(file))).toBe('E_LIMIT');
    expect((await readNpz(file, { maxBytes: Infinity })).get('a')!.data.length).toBe(2 ** 27);
    const packed = gzipSync(content);
    expect(await refusedIn(() => gunzip(packed))).toBe('E_LIMIT');
    expect(await gunzip(packed, { limit: Infinity })).toHaveLength(content.length);
  });
});

function chunk(name: string, data: Uint8Array): Uint8Array {
  const out = Buffer.concat([Buffer.alloc(4), Buffer.from(name), data, Buffer.alloc(4)]);
  out.writeUInt32BE(data.length, 0);
  out.writeUInt32BE(crc32(out.subarray(4, -4)), out.length - 4);
  return out;
}

function header(width: number, height: number, type = 2, interlace = 0): Uint8Array {
  const out = Buffer.alloc(13);
  out.writeUInt32BE(width, 0);
  out.writeUInt32BE(height, 4);
  out.set([8, type, 0, 0, interlace], 8);
  return chunk('IHDR', out);
}

const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const png = (...chunks: Uint8Array[]): Uint8Array =>
  new Uint8Array(Buffer.concat([signature, ...chunks, chunk('IEND', new Uint8Array())]));

describe('PNG files', () => {
  const rows = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12);
  const own = chunk('IDAT', deflateSync(rows));

  test('of a picture that is there are read, whatever else they hold', async () => {
    const bomb = chunk('iCCP', Buffer.concat([Buffer.from('p\0\0'), deflateSync(Buffer.alloc(2 ** 26))]));
    const { shape, data } = await readImage(png(header(2, 2), bomb, own));
    expect(shape).toEqual([3, 2, 2]);
    expect([...data]).toEqual([1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]);
  });

  test.each([
    ['a width that takes more than the file can hold', png(header(0x3000_0004, 2), own)],
    ['the same of a fixture', given('wide.png')],
    ['much more behind the picture', png(header(2, 2), chunk('IDAT', deflateSync(Buffer.alloc(2 ** 27))))],
    ['less than the picture', png(header(2, 3), own)],
    ['two headers', png(header(2, 2), header(2, 2), own)],
    ['no header', png(own)],
    ['a damaged header', png(header(2, 2).with(9, 1), own)],
  ])('of %s are refused', async (_, file) => {
    expect(await refusedIn(() => readImage(file))).toBe('E_FORMAT');
  });

  test('of a picture that is large need the caller’s word', async () => {
    const file = png(header(6000, 6000, 0), chunk('IDAT', deflateSync(Buffer.alloc(6001 * 6000))));
    expect(await refusedIn(() => readImage(file, { channels: 1 }))).toBe('E_LIMIT');
    expect((await readImage(file, { channels: 1, maxBytes: Infinity })).shape).toEqual([1, 6000, 6000]);
  });
});

describe('JPEG files', () => {
  const whole = new Uint8Array(
    encodeJpeg({ width: 16, height: 8, data: new Uint8Array(512).fill(90) }, 90).data,
  );
  const frame = whole.findIndex((byte, i) => byte === 0xff && whole[i + 1] === 0xc0);

  test('of sizes that the file cannot hold are refused', async () => {
    const tall = whole.slice();
    tall.set([0xff, 0xff, 0xff, 0xff], frame + 5);
    expect(['E_FORMAT', 'E_LIMIT']).toContain(await refusedIn(() => readImage(tall)));
    const flat = whole.slice();
    flat[frame + 11] = 0;
    expect(await refusedIn(() => readImage(flat))).toBe('E_FORMAT');
  });
});

test('a decoder that takes too much time or memory is ended, and the next one runs', async () => {
  const ask = (task: () => unknown): Promise<unknown> =>
    askPeer({
      op: 'readImage',
      module: resolveFromProject('jpeg-js'),
      task,
      given: undefined,
      fileBytes: 1000,
      allowance: new Allowance('readImage', 1000),
    });
  const endless = ask(() => {
    for (;;);
  });
  const full = ask(() => {
    for (const kept: unknown[] = []; ;) kept.push(new Array(1000).fill(0));
  });
  const failed = ask(() => JSON.parse('{'));
  const well = ask(() => 5);
  await expect(endless).rejects.toMatchObject({
    code: 'E_LIMIT',
    message: expect.stringMatching(/ms to read/) as string,
  });
  await expect(full).rejects.toMatchObject({ code: 'E_LIMIT' });
  await expect(failed).rejects.toThrow(/JSON/);
  expect(await well).toBe(5);
});

/** Asks for a task of a module that it does not use. */
function asks(task: () => unknown, longestWait?: number): Promise<unknown> {
  return askPeer({
    op: 'readImage',
    module: resolveFromProject('jpeg-js'),
    task,
    given: undefined,
    fileBytes: 1000,
    allowance: new Allowance('readImage', 1000),
    ...(longestWait === undefined ? {} : { longestWait }),
  });
}

test('a decoder that waits for ever is ended, and the next one runs', async () => {
  await expect(asks(() => new Promise(() => {}), 200)).rejects.toThrow(/waits for data that never comes/);
  expect(await asks(() => 5)).toBe(5);
});

test('a decoder whose thread ended since the last one runs in another', async () => {
  const dies = (): number => {
    setTimeout(() => process.exit(1), 20);
    return 5;
  };
  expect(await asks(dies)).toBe(5);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await asks(() => 6)).toBe(6);
});

test('a Parquet file whose levels never end is ended', async () => {
  expect(await refusedIn(() => readParquet(given('levels.parquet')), 8000)).toBe('E_LIMIT');
});

test('a Parquet file whose footer has room for six bytes and says 16 million columns gets no list of them here', async () => {
  // The field of columns, a list of structures, and how many they are.
  const footer = [0x29, 0xfc, 0x80, 0x80, 0x80, 0x08];
  const ends = [...Buffer.from('PAR1')];
  const file = Uint8Array.from([...ends, ...footer, footer.length, 0, 0, 0, ...ends]);
  const { Array: own } = globalThis;
  let longest = 0;
  const construct = (target: object, args: readonly unknown[], by: object): object => {
    if (typeof args[0] === 'number') longest = Math.max(longest, args[0]);
    return Reflect.construct(target as typeof Array, args, by as typeof Array) as object;
  };
  globalThis.Array = new Proxy<typeof Array>(own, { construct });
  try {
    expect(['E_FORMAT', 'E_LIMIT']).toContain(await refusedIn(() => readParquet(file), 8000));
  } finally {
    globalThis.Array = own;
  }
  expect(longest).toBeLessThan(2 ** 16);
});
