// What the functions of `sinter/runtime` take.

import {
  encodeQ8,
  fenceId,
  Layout,
  openDevice,
  toDlpack,
  uploadBuffer,
  type Backend,
} from '../../../src/interop/index.ts';
import {
  count,
  flag,
  maybe,
  meaning,
  notNegative,
  options,
  shape,
  t,
  text,
  word,
  type Meaning,
  dtype,
  number,
} from '../kinds.ts';
import type { Rows } from './operation.ts';

const buffer = await uploadBuffer([1, 2], { device: 'interpreter' });
/** A buffer of two f32. */
export const aBuffer: Meaning = meaning(() => buffer);
const interpreter = await openDevice('interpreter');
const device = meaning(() => interpreter);
const format = meaning(() => 'f32');
const onDevice = { dtype: format, device: word('interpreter') };
const elements = meaning(() => [1, 2], 'emptyList', 'numbers', 'floats', 'bytes', 'bigints');
const size = meaning(() => 2, 'number');
const bytes = meaning(() => encodeQ8(Float32Array.of(1, 2)), 'bytes');
const floats = meaning(() => Float32Array.of(1, 2), 'floats');
const block = maybe(meaning(() => 4));
let names = 0;

const described = await toDlpack(buffer);

export const runtimeRows: Rows = {
  arrange: [t(2), meaning(() => new Layout([2]))],
  fromDlpack: [meaning(() => described)],
  gradMeta: [t(2)],
  incomingGrads: [t(2), t(2)],
  layoutOf: [t(2)],
  storageId: [t(2)],
  toDlpack: [t(2)],
  Layout: [shape(2), maybe(shape(1)), maybe(size)],
  allocateBuffer: [size, options(onDevice)],
  capabilities: [device],
  cdistSupports: [device, dtype, number],
  decodeQ8: [bytes, size, block],
  describeFormat: [format],
  deviceByteSize: [format, size],
  elemSize: [format],
  encodeQ8: [floats, block],
  fenceId: [meaning(() => fenceId(1), 'number')],
  getBackend: [text('wasm')],
  gpuBackend: [text('named'), meaning(() => ({ createBuffer: () => undefined }))],
  hasBackend: [text('wasm')],
  limitPool: [device, { ...notNegative, sample: () => Infinity }],
  nativeDevice: [device, word('host')],
  openDevice: [maybe(word('interpreter'))],
  poolStats: [device],
  q8: [block],
  q8BlockStride: [meaning(() => ({ kind: 'q8', blockSize: 4 }))],
  registerBackend: [
    meaning((): Backend => ({ name: `named ${names++}`, open: () => Promise.resolve(interpreter) })),
  ],
  streamCount: [device],
  trimPool: [device, maybe(notNegative)],
  uploadBuffer: [elements, options({ ...onDevice, pinned: flag })],
  wrapBuffer: [
    meaning(() => new Float32Array(4), 'floats', 'bytes', 'bigints', 'view', 'bigint', 'number'),
    options({
      ...onDevice,
      length: count,
      byteOffset: size,
      byteLength: size,
      release: meaning(() => () => undefined, 'function', 'asynchronous'),
    }),
  ],
};
