// What the functions of `sinter/io` take.

import { readFileSync } from 'node:fs';
import { ones } from '../../../src/index.ts';
import {
  toHostTensor,
  writeGguf,
  writeIdx,
  writeNpy,
  writeNpz,
  writeSafetensors,
  type HostTensor,
} from '../../../src/io/index.ts';
import { saveCheckpoint } from '../../../src/train/index.ts';
import { flag, fn, maybe, meaning, notNegative, options, shape, t, type Meaning } from '../kinds.ts';
import type { Rows } from './operation.ts';

const host: HostTensor = await toHostTensor(ones([2]));
const hostTensor = meaning(() => host);
const entries = meaning(() => [['a', host]], 'emptyList', 'set');
const metadata = maybe(meaning(() => ({ by: 'test' }), 'emptyObject'));
const file = (bytes: Uint8Array): Meaning => meaning(() => bytes, 'bytes');
const path = meaning(() => new URL(import.meta.url), 'text');
const gzipped = new Uint8Array(
  await new Response(
    new Blob([Uint8Array.of(1, 2)]).stream().pipeThrough(new CompressionStream('gzip')),
  ).arrayBuffer(),
);

const torchFile = new Uint8Array(
  readFileSync(new URL('../../fixtures/torch-files/model.pt', import.meta.url)),
);

const ggufFile: Uint8Array[] = [];
await writeGguf(
  { write: (bytes) => void ggufFile.push(bytes) },
  { metadata: { 'general.architecture': 'none' }, tensors: [] },
);
const reading = options({ signal: meaning(() => new AbortController().signal), onProgress: fn });

const kept: Uint8Array[] = [];
await saveCheckpoint((bytes) => kept.push(bytes), { step: 1 });
const objects = meaning(() => ({ step: 1 }), 'emptyObject');

export const trainRows: Rows = {
  loadCheckpoint: [meaning(() => kept[0], 'bytes', 'text'), objects, options({ rng: flag })],
};

const limits = options({ maxBytes: notNegative });

export const ioRows: Rows = {
  fittingType: [meaning(() => 'q4_k'), shape(256)],
  fromHostTensor: [hostTensor],
  gunzip: [file(gzipped), options({ limit: notNegative })],
  loadIdx: [file(writeIdx(host))],
  loadNpy: [file(writeNpy(host))],
  loadSafetensors: [file(writeSafetensors([['a', host]]))],
  openGguf: [meaning(() => ggufFile[0], 'bytes', 'text', 'emptyList', 'texts'), reading],
  readFile: [path],
  readIdx: [file(writeIdx(host))],
  readNpy: [file(writeNpy(host))],
  readNpz: [file(writeNpz([['a', host]])), limits],
  readTorch: [file(torchFile), limits],
  loadTorch: [file(torchFile), limits],
  readSafetensors: [file(writeSafetensors([['a', host]]))],
  saveNpy: [t(2)],
  saveSafetensors: [meaning(() => ({ a: ones([2]) }), 'emptyObject'), metadata],
  toHostTensor: [t(2)],
  writeIdx: [hostTensor],
  writeNpy: [hostTensor],
  writeNpz: [entries],
  writeSafetensors: [entries, metadata],
};
