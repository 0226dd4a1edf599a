// What is given where something else is meant: one value of each kind that JavaScript has, made anew for each call.

import { ones, tensor, type Tensor } from '../../src/index.ts';

function disposed(): Tensor {
  const gone = tensor([1, 2]);
  gone.dispose();
  return gone;
}

export type Wrong =
  | 'nothing'
  | 'null'
  | 'true'
  | 'empty'
  | 'text'
  | 'bigint'
  | 'symbol'
  | 'nan'
  | 'infinity'
  | 'fraction'
  | 'negative'
  | 'large'
  | 'number'
  | 'emptyList'
  | 'texts'
  | 'numbers'
  | 'nested'
  | 'holes'
  | 'tensors'
  | 'emptyObject'
  | 'object'
  | 'bare'
  | 'function'
  | 'asynchronous'
  | 'class'
  | 'date'
  | 'map'
  | 'set'
  | 'promise'
  | 'regex'
  | 'error'
  | 'tensor'
  | 'bool'
  | 'integers'
  | 'disposed'
  | 'floats'
  | 'bytes'
  | 'bigints'
  | 'view'
  | 'buffer';

export const wrong: Readonly<Record<Wrong, () => unknown>> = {
  nothing: () => undefined,
  null: () => null,
  true: () => true,
  empty: () => '',
  text: () => 'text',
  bigint: () => 3n,
  symbol: () => Symbol('s'),
  nan: () => Number.NaN,
  infinity: () => Infinity,
  fraction: () => 1.5,
  negative: () => -7,
  large: () => 2 ** 53,
  number: () => 3,
  emptyList: () => [],
  texts: () => ['a', 'b'],
  numbers: () => [1.5, Number.NaN],
  nested: () => [[1], ['a']],
  holes: () => Object.assign(new Array<number>(2), { 1: 1 }),
  tensors: () => [ones([2]), ones([3])],
  emptyObject: () => ({}),
  object: () => ({ unheardOf: 1 }),
  bare: () => Object.assign(Object.create(null) as object, { unheardOf: 1 }),
  function: () => (x: unknown) => x,
  asynchronous: () => async () => {},
  class: () =>
    class Made {
      readonly field = 1;
    },
  date: () => new Date(0),
  map: () => new Map([['a', 1]]),
  set: () => new Set([1]),
  promise: () => Promise.resolve(1),
  regex: () => /a/,
  error: () => new Error('given'),
  tensor: () => ones([1]),
  bool: () => tensor([true, false]),
  integers: () => tensor([0, 1], { dtype: 'i32' }),
  disposed,
  floats: () => Float32Array.of(1.5, 2),
  bytes: () => Uint8Array.of(1, 2, 3),
  bigints: () => BigInt64Array.of(1n),
  view: () => new DataView(new ArrayBuffer(4)),
  buffer: () => new ArrayBuffer(4),
};

export const wrongNames = Object.keys(wrong) as readonly Wrong[];
