// Pictures and tables that were changed anywhere, which packages of others decode: PNG, JPEG, Parquet.

import { deflateSync } from 'node:zlib';
import { encode as encodePng } from 'fast-png';
import { encode as encodeJpeg } from 'jpeg-js';
import { beforeAll, test } from 'vitest';
import { readImage, readParquet } from '../../src/data/index.ts';
import { crc32 } from '../../src/io/zip.ts';
import { keepsTo, type Subject } from './law.ts';
import { mutated, type Draw } from './mutate.ts';

function reader(
  whole: Uint8Array,
  read: (bytes: Uint8Array) => unknown,
  make = (draw: Draw): Uint8Array => mutated(draw, whole),
): Subject<Uint8Array> {
  return { whole: [whole], make, read, sizeOf: ({ length }) => length };
}

const rows = Uint8Array.from({ length: 5 * 4 * 3 }, (_, i) => 7 * i);
const picture = encodePng({ width: 5, height: 4, channels: 3, depth: 8, data: rows });

/** A PNG whose chunks are sound by themselves, with one changed. */
function resealed(draw: Draw): Uint8Array {
  const parts: Uint8Array[] = [picture.subarray(0, 8)];
  const view = new DataView(picture.buffer, picture.byteOffset, picture.byteLength);
  const wanted = draw(3);
  for (let at = 8, i = 0; at < picture.length; i++) {
    const length = view.getUint32(at);
    const own = picture.subarray(at + 8, at + 8 + length);
    let data = own;
    if (i === wanted) data = draw(2) === 0 ? mutated(draw, own) : deflateSync(mutated(draw, rows));
    const out = Buffer.concat([Buffer.alloc(4), picture.subarray(at + 4, at + 8), data, Buffer.alloc(4)]);
    out.writeUInt32BE(data.length, 0);
    out.writeUInt32BE(crc32(out.subarray(4, -4)), out.length - 4);
    parts.push(out);
    at += 12 + length;
  }
  return new Uint8Array(Buffer.concat(parts));
}

test('PNG', () =>
  keepsTo(
    reader(picture, readImage, (draw) => (draw(3) === 0 ? mutated(draw, picture) : resealed(draw))),
    3000,
    100,
  ));

const photo = new Uint8Array(
  encodeJpeg({ width: 8, height: 8, data: new Uint8Array(256).fill(90) }, 90).data,
);
test('JPEG', () => keepsTo(reader(photo, readImage), 1000, 30));

let table: Uint8Array;
beforeAll(async () => {
  const name: string = 'hyparquet-writer';
  const writer = (await import(name)) as { parquetWriteBuffer(options: unknown): ArrayBuffer };
  table = new Uint8Array(
    writer.parquetWriteBuffer({
      columnData: [
        { name: 'id', data: [1, 2, 3], type: 'INT32' },
        { name: 'big', data: [1n, 2n ** 60n, -5n], type: 'INT64' },
        { name: 'name', data: ['a', 'ü', ''], type: 'STRING' },
        { name: 'sold', data: [true, false, true], type: 'BOOLEAN' },
      ],
    }),
  );
});

test('Parquet', () =>
  keepsTo(
    reader(table, async (bytes) => {
      const set = await readParquet(bytes);
      return set.length > 0 ? set.get(0) : undefined;
    }),
    800,
    20,
  ));
