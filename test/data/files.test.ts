// Datasets in files: arrays, images in folders, CSV and Parquet give the items that were written, and say what is wrong with a file.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { encode as encodePng } from 'fast-png';
import { encode as encodeJpeg } from 'jpeg-js';
import { afterAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import * as data from '../../src/data/index.ts';
import { writeIdx, writeNpy, writeNpz, writeSafetensors, type HostTensor } from '../../src/io/index.ts';

setDevice('interpreter');

const folder = mkdtempSync(join(tmpdir(), 'sinter-data-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, bytes: Uint8Array | string): string {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, bytes);
  return path;
}

const resized: readonly (readonly [readonly [number, number], readonly number[]])[] = [
  [
    [3, 4],
    [41.748, 50.6, 37.303, 52.531, 43.069, 56.293, 47.164, 62.783, 43.626, 62.371, 46.189, 48.224],
  ],
  [
    [5, 7],
    [
      0.0, 37.0, 74.0, 10.0, 47.0, 84.0, 20.0, 57.0, 94.0, 30.0, 67.0, 3.0, 40.0, 77.0, 13.0, 50.0, 87.0,
      23.0, 60.0, 97.0, 33.0, 70.0, 6.0, 43.0, 80.0, 16.0, 53.0, 90.0, 26.0, 63.0, 100.0, 36.0, 73.0, 9.0,
      46.0,
    ],
  ],
  [
    [8, 10],
    [
      0.0, 20.35, 46.25, 72.15, 32.4, 22.95, 48.85, 74.75, 55.2, 20.0, 24.938, 45.287, 60.141, 55.109, 41.872,
      32.422, 29.6, 55.5, 55.834, 44.938, 54.25, 74.6, 76.828, 36.447, 53.509, 44.059, 8.412, 34.312, 57.372,
      74.25, 26.75, 47.1, 65.109, 68.916, 48.103, 38.653, 44.037, 69.938, 64.591, 46.75, 30.812, 33.803, 45.5,
      71.4, 52.166, 42.716, 48.1, 74.0, 68.653, 50.812, 66.438, 34.709, 18.0, 43.9, 65.697, 56.247, 20.6,
      46.5, 69.559, 86.438, 45.25, 41.297, 47.312, 73.213, 62.184, 52.734, 47.072, 33.203, 44.9, 65.25, 26.0,
      46.35, 72.25, 98.15, 58.4, 48.95, 69.8, 25.0, 25.65, 46.0,
    ],
  ],
  [
    [2, 2],
    [48.143, 49.023, 50.039, 52.308],
  ],
];

const x: HostTensor = {
  dtype: 'f32',
  shape: [2, 3],
  data: new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer),
};
const y: HostTensor = { dtype: 'u8', shape: [2], data: Uint8Array.of(7, 9) };

describe('arrays', () => {
  const parts = { x: file('x.npy', writeNpy(x)), y: file('y.idx.gz', gzipSync(writeIdx(y))) };

  test('come by name, each from its file, or all from one', async () => {
    const bundle = [
      ['x', x],
      ['y', y],
    ] as const;
    const sets = [
      await data.fromFiles(parts),
      await data.fromFiles(file('a.npz', writeNpz(bundle))),
      await data.fromFiles(pathToFileURL(file('a.safetensors', writeSafetensors(bundle)))),
      await data.fromFiles(new Blob([writeNpz(bundle) as Uint8Array<ArrayBuffer>])),
    ];
    for (const set of sets) {
      expect(set.length).toBe(2);
      const batch = data.collate([await set.get(1)]) as {
        x: import('../../src/index.ts').Tensor;
        y: unknown;
      };
      expect([batch.x.dtype, await batch.x.array()]).toEqual(['f32', [[4, 5, 6]]]);
      expect(await set.get(0)).toMatchObject({ y: { dtype: 'u8', shape: [], data: Uint8Array.of(7) } });
    }
  });

  test('that are not what is meant are refused', async () => {
    await expect(data.fromFiles(parts.x)).rejects.toThrow(
      /x\.npy is of the format npy: one array, which has no name/,
    );
    await expect(data.fromFiles(join(folder, 'none.npz'))).rejects.toMatchObject({ code: 'E_IO' });
    await expect(
      data.fromFiles({
        x: file(
          'b.npz',
          writeNpz([
            ['p', x],
            ['q', y],
          ]),
        ),
      }),
    ).rejects.toThrow(/has 2 arrays where one is meant: p, q/);
  });
});

describe('images', () => {
  /** A picture with a gradient: red along columns, green along rows. */
  const pixels = (width: number, height: number, channels: number, depth = 8): Uint8Array | Uint16Array => {
    const out =
      depth === 8 ? new Uint8Array(width * height * channels) : new Uint16Array(width * height * channels);
    const unit = depth === 8 ? 1 : 257;
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++)
        for (let c = 0; c < channels; c++)
          out[(row * width + column) * channels + c] = unit * [10 * column, 20 * row, 200, 128][c]!;
    return out;
  };
  const png = (width: number, height: number, channels: number, depth: 8 | 16 = 8): Uint8Array =>
    encodePng({ width, height, channels, depth, data: pixels(width, height, channels, depth) });

  test('are classes by folder, in the order of the names', async () => {
    for (const [path, channels] of [
      ['pets/dog/b.png', 3],
      ['pets/dog/deep/a.PNG', 3],
      ['pets/cat/z.png', 3],
    ] as const)
      file(path, png(4, 3, channels));
    file('pets/dog/notes.txt', 'no image');
    const pets = await data.imageFolder(join(folder, 'pets'));
    expect(pets.classes).toEqual(['cat', 'dog']);
    expect(pets.files.map((path) => path.slice(folder.length + 6))).toEqual([
      'cat/z.png',
      'dog/b.png',
      'dog/deep/a.PNG',
    ]);
    const loader = new data.DataLoader(pets, { batchSize: 3 });
    for await (const { image, label } of loader) {
      expect([image.dtype, image.shape, label.dtype]).toEqual(['u8', [3, 3, 3, 4], 'i32']);
      expect(await label.array()).toEqual([0, 1, 1]);
      expect(await image.select(0, 0).array()).toEqual([
        Array.from({ length: 3 }, () => [0, 10, 20, 30]),
        [0, 20, 40].map((value) => [value, value, value, value]),
        Array.from({ length: 3 }, () => [200, 200, 200, 200]),
      ]);
    }
  });

  test('have the channels asked for', async () => {
    const colour = png(2, 1, 3);
    const grey = await data.readImage(colour, { channels: 1 });
    expect([grey.shape, [...grey.data]]).toEqual([[1, 1, 2], [22.8, 0.299 * 10 + 22.8].map(Math.round)]);
    expect([...(await data.readImage(colour, { channels: 4 })).data.subarray(6)]).toEqual([255, 255]);
    expect([...(await data.readImage(png(2, 1, 4), { channels: 4 })).data.subarray(6)]).toEqual([128, 128]);
    expect([...(await data.readImage(png(2, 1, 1))).data]).toEqual([0, 10, 0, 10, 0, 10]);
    expect([...(await data.readImage(png(2, 1, 3, 16))).data]).toEqual([0, 10, 0, 0, 200, 200]);
  });

  test('may be JPEG', async () => {
    const rgba = pixels(16, 8, 4) as Uint8Array;
    const { shape, data: read } = await data.readImage(
      new Uint8Array(encodeJpeg({ width: 16, height: 8, data: rgba }, 95).data),
    );
    expect(shape).toEqual([3, 8, 16]);
    for (let i = 0; i < 128; i++) expect(Math.abs(read[i]! - rgba[4 * i]!)).toBeLessThan(12);
  });

  // Corners of a picture that is bright in the quarter at the left and top, and darker below it: as PIL.ImageOps.exif_transpose has them.
  test.each([
    [1, [8, 16], '2010'],
    [2, [8, 16], '0201'],
    [3, [8, 16], '0102'],
    [4, [8, 16], '1020'],
    [5, [16, 8], '2100'],
    [6, [16, 8], '1200'],
    [7, [16, 8], '0012'],
    [8, [16, 8], '0021'],
  ] as const)('of orientation %i are turned upright', async (orientation, [height, width], expected) => {
    const rgba = Uint8Array.from({ length: 4 * 16 * 8 }, (_, i) => {
      const [x, y] = [(i >> 2) % 16, i >> 6];
      return i % 4 === 3 ? 255 : x >= 8 ? 0 : y < 4 ? 250 : 120;
    });
    const plain = encodeJpeg({ width: 16, height: 8, data: rgba }, 100).data;
    for (const isLittle of [true, false]) {
      const exif = new DataView(new ArrayBuffer(36));
      [...'Exif\0\0'].forEach((letter, i) => exif.setUint8(4 + i, letter.charCodeAt(0)));
      exif.setUint32(0, 0xffe10022);
      exif.setUint16(10, isLittle ? 0x4949 : 0x4d4d);
      exif.setUint16(12, 42, isLittle);
      exif.setUint32(14, 8, isLittle);
      exif.setUint16(18, 1, isLittle);
      exif.setUint16(20, 0x0112, isLittle);
      exif.setUint16(22, 3, isLittle);
      exif.setUint32(24, 1, isLittle);
      exif.setUint16(28, orientation, isLittle);
      const bytes = Uint8Array.from([
        ...plain.subarray(0, 2),
        ...new Uint8Array(exif.buffer),
        ...plain.subarray(2),
      ]);
      const { shape, data: read } = await data.readImage(bytes, { channels: 1 });
      expect(shape).toEqual([1, height, width]);
      const at = (y: number, x: number): string =>
        read[y * width + x]! > 185 ? '2' : read[y * width + x]! > 60 ? '1' : '0';
      const corners = [at(1, 1), at(1, width - 2), at(height - 2, 1), at(height - 2, width - 2)].join('');
      expect(corners).toBe(expected);
    }
  });

  test('may have samples of fewer bits than a byte', async () => {
    for (const depth of [1, 2, 4] as const) {
      const most = 2 ** depth - 1;
      const own = Array.from({ length: 15 }, (_, i) => (i * 3 + 1) % (most + 1));
      const packed = new Uint8Array(3 * Math.ceil((5 * depth) / 8));
      for (const [i, value] of own.entries()) {
        const bit = (i % 5) * depth;
        const at = Math.floor(i / 5) * (packed.length / 3) + (bit >> 3);
        packed[at]! |= value << (8 - depth - (bit & 7));
      }
      const bytes = encodePng({ width: 5, height: 3, channels: 1, depth, data: packed });
      const expected = own.map((value) => Math.round((value * 255) / most));
      expect([...(await data.readImage(bytes, { channels: 1 })).data]).toEqual(expected);
    }
  });

  // Figures of torch.nn.functional.interpolate(x, mode='bilinear', antialias=True).
  test('are resized by areas, as torch does it', async () => {
    const own = Uint8Array.from({ length: 35 }, (_, i) => (i * 37) % 101);
    const image = encodePng({ width: 7, height: 5, channels: 1, depth: 8, data: own });
    for (const [size, expected] of resized) {
      const found = await data.readImage(image, { channels: 1, size });
      expect(found.shape).toEqual([1, ...size]);
      expect([...found.data]).toEqual(expected.map(Math.round));
    }
  });

  test('that are none, or of sizes that do not fit together, are told', async () => {
    await expect(data.readImage(file('c.png', 'text'))).rejects.toThrow(/c\.png is neither PNG nor JPEG/);
    await expect(data.readImage(png(4, 3, 3).subarray(0, 40))).rejects.toMatchObject({ code: 'E_FORMAT' });
    const files = [png(2, 2, 3), png(3, 2, 3)].map((bytes, label) => ({ file: bytes, label }));
    const uneven = new data.DataLoader(data.imageFiles(files), { batchSize: 2 });
    await expect(uneven[Symbol.asyncIterator]().next()).rejects.toThrow(
      /different shapes at \.image: \[3,2,2\] and \[3,2,3\]/,
    );
    const even = new data.DataLoader(data.imageFiles(files, { size: [2, 2] }), { batchSize: 2 });
    expect((await even[Symbol.asyncIterator]().next()).value?.image.shape).toEqual([2, 3, 2, 2]);
    await expect(data.imageFolder(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'E_IO' });
    mkdirSync(join(folder, 'empty'));
    await expect(data.imageFolder(join(folder, 'empty'))).rejects.toThrow(/has no PNG or JPEG images/);
  });
});

describe('CSV', () => {
  const text = 'name,age,"height, cm"\nAda,36,165.5\n"Grace ""Amazing""",85,1e2\n\n';

  test('gives rows by the names of the columns, with the types asked for', async () => {
    const rows = await data.readCsv(file('people.csv', `\uFEFF${text}`), {
      columns: { age: 'number', name: 'text' },
    });
    expect(rows.length).toBe(2);
    expect(await rows.get(0)).toEqual({ age: 36, name: 'Ada' });
    expect(await rows.get(1)).toEqual({ age: 85, name: 'Grace "Amazing"' });
    const all = await data.readCsv(new TextEncoder().encode(text));
    expect(await all.get(0)).toEqual({ name: 'Ada', age: '36', 'height, cm': '165.5' });
    const plain = await data.readCsv(new TextEncoder().encode('1;2\n3;nan\n'), {
      header: ['a', 'b'],
      delimiter: ';',
      columns: { b: 'number', a: 'number' },
    });
    expect([await plain.get(0), await plain.get(1)]).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: NaN },
    ]);
  });

  test('goes through a loader', async () => {
    const rows = await data.readCsv(new TextEncoder().encode(text), {
      columns: { age: 'number', 'height, cm': 'number' },
    });
    const pairs = data.map(rows, (row) => ({
      x: Float32Array.of(row.age, row['height, cm']),
      y: data.scalar(row.age > 50, 'i32'),
    }));
    for await (const { x: features, y: label } of new data.DataLoader(pairs, { batchSize: 2 })) {
      expect(await features.array()).toEqual([
        [36, 165.5],
        [85, 100],
      ]);
      expect([label.dtype, await label.array()]).toEqual(['i32', [0, 1]]);
    }
  });

  test('that is broken is told with its line', async () => {
    const read = (content: string, columns: Readonly<Record<string, 'number'>>): Promise<unknown> =>
      data.readCsv(file('bad.csv', content), { columns });
    await expect(read('a,b\n1,2\n3,x\n', { b: 'number' })).rejects.toThrow(
      /bad\.csv: line 3: 'x' in the column b is no number/,
    );
    await expect(read('a,b\n1,2\n3,\n', { b: 'number' })).rejects.toThrow(/line 3: '' in the column b/);
    await expect(read('a,b\n1,2\n3\n', { a: 'number' })).rejects.toMatchObject({ code: 'E_FORMAT' });
    await expect(read('a,b\n1,2\n', { B1: 'number' })).rejects.toThrow(
      /has no column B1: it has a, b[^]*try: b/,
    );
    await expect(read('a,a\n1,2\n', {})).rejects.toThrow(/two columns are called 'a'/);
    await expect(read('a,b\n"1,2\n', {})).rejects.toMatchObject({ code: 'E_FORMAT' });
    await expect(data.readCsv(Uint8Array.of(97, 10, 99, 97, 102, 0xe9))).rejects.toThrow(
      /is not UTF-8[^]*latin1/,
    );
  });
});

describe('Parquet', () => {
  /** hyparquet's writer; its name is a variable, so that types of it are not asked for. */
  const writer = async (): Promise<Uint8Array> => {
    const name: string = 'hyparquet-writer';
    const { parquetWriteBuffer } = (await import(name)) as {
      parquetWriteBuffer(options: unknown): ArrayBuffer;
    };
    const columns = [
      { name: 'id', data: [1, 2, 3], type: 'INT32' },
      { name: 'big', data: [1n, 2n ** 60n, -5n], type: 'INT64' },
      { name: 'price', data: [0.5, 1.25, -2], type: 'DOUBLE' },
      { name: 'name', data: ['a', 'ü', ''], type: 'STRING' },
      { name: 'sold', data: [true, false, true], type: 'BOOLEAN' },
    ];
    return new Uint8Array(parquetWriteBuffer({ columnData: columns }));
  };

  test('gives rows', async () => {
    const path = file('a.parquet', await writer());
    const rows = await data.readParquet<{
      id: number;
      big: bigint;
      price: number;
      name: string;
      sold: boolean;
    }>(path);
    expect([await rows.get(0), await rows.get(1)]).toEqual([
      { id: 1, big: 1n, price: 0.5, name: 'a', sold: true },
      { id: 2, big: 2n ** 60n, price: 1.25, name: 'ü', sold: false },
    ]);
    for await (const batch of new data.DataLoader(rows, { batchSize: 3 })) {
      expect([batch.big.dtype, batch.price.dtype, batch.sold.dtype, batch.name]).toEqual([
        'i64',
        'f32',
        'bool',
        ['a', 'ü', ''],
      ]);
      expect(await batch.price.array()).toEqual([0.5, 1.25, -2]);
    }
    const some = await data.readParquet(path, { columns: ['price'] });
    expect(await some.get(2)).toEqual({ price: -2 });
  });

  test('gives bytes where the file does not say that they are text', async () => {
    const name: string = 'hyparquet-writer';
    const { parquetWriteBuffer } = (await import(name)) as {
      parquetWriteBuffer(options: unknown): ArrayBuffer;
    };
    const column = {
      name: 'picture',
      data: [Uint8Array.of(0, 0xff, 0xd8), Uint8Array.of(65)],
      type: 'BYTE_ARRAY',
    };
    const bytes = new Uint8Array(parquetWriteBuffer({ columnData: [column] }));
    for (const reader of [undefined, await import('hyparquet')]) {
      const rows = await data.readParquet<{ picture: unknown }>(
        bytes,
        reader === undefined ? {} : { reader },
      );
      expect((await rows.get(0)).picture).toEqual(Uint8Array.of(0, 0xff, 0xd8));
      expect((await rows.get(1)).picture).toEqual(Uint8Array.of(65));
    }
  });

  test('that is broken, or lacks a column, is told', async () => {
    await expect(data.readParquet(file('b.parquet', 'no table'))).rejects.toMatchObject({ code: 'E_FORMAT' });
    await expect(data.readParquet(await writer(), { columns: ['prize'] })).rejects.toThrow(
      /has no column prize: it has id, big[^]*try: price/,
    );
  });

  test('may be read by a module that is handed in', async () => {
    const reader = {
      parquetMetadata: () => ({}),
      parquetSchema: () => ({ children: [] }),
      parquetReadObjects: () => Promise.resolve([{ a: 1 }]),
    };
    const rows = await data.readParquet(Uint8Array.of(1), { reader });
    expect(await rows.get(0)).toEqual({ a: 1 });
  });
});
