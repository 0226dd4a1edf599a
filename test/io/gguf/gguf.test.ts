// GGUF files written and read back: metadata with their types, every type of tensor, and what is refused.

import { expect, test } from 'vitest';

import { fittingType, openGguf, type GgufType } from '../../../src/io/index.ts';
import { decodeBlocks } from '../../../src/ir/blocks/decode.ts';
import { encodeBlocks } from '../../../src/ir/blocks/encode.ts';
import { everyFormat, ggufBytes, values } from './files.ts';

test('metadata come back with the types that they had', async () => {
  const bytes = await ggufBytes({
    metadata: {
      'general.architecture': 'llama',
      'llama.block_count': { type: 'u64', value: 30 },
      'llama.context_length': 2048,
      'llama.rope.freq_base': 10000,
      'tokenizer.ggml.tokens': ['a', 'ä', '', '日本'],
      'tokenizer.ggml.scores': Float32Array.of(0, -1.5),
      'tokenizer.ggml.token_type': Int32Array.of(1, -3),
      'tokenizer.ggml.add_bos_token': false,
      low: -5,
      flags: [true, false],
      nested: { type: 'array', items: 'array', value: [['x'], [Uint8Array.of(1, 2)]] },
      empty: { type: 'array', items: 'string', value: [] },
      wide: { type: 'i64', value: -(2n ** 62n) },
      fine: 0.1,
    },
    tensors: [],
  });
  const { metadata, version } = await openGguf(bytes);
  expect(version).toBe(3);
  expect([...metadata.entries()].map(([key, { type, items }]) => [key, items ?? type])).toEqual([
    ['general.architecture', 'string'],
    ['llama.block_count', 'u64'],
    ['llama.context_length', 'u32'],
    ['llama.rope.freq_base', 'f32'],
    ['tokenizer.ggml.tokens', 'string'],
    ['tokenizer.ggml.scores', 'f32'],
    ['tokenizer.ggml.token_type', 'i32'],
    ['tokenizer.ggml.add_bos_token', 'bool'],
    ['low', 'i32'],
    ['flags', 'bool'],
    ['nested', 'array'],
    ['empty', 'string'],
    ['wide', 'i64'],
    ['fine', 'f32'],
  ]);
  expect(metadata.text('general.architecture')).toBe('llama');
  expect(metadata.count('llama.block_count')).toBe(30);
  expect(metadata.count('llama.context_length')).toBe(2048);
  expect(metadata.number('fine')).toBe(Math.fround(0.1));
  expect(metadata.number('missing')).toBeUndefined();
  expect(metadata.texts('tokenizer.ggml.tokens')).toEqual(['a', 'ä', '', '日本']);
  expect(metadata.numbers('tokenizer.ggml.scores')).toEqual(Float32Array.of(0, -1.5));
  expect(metadata.get('tokenizer.ggml.token_type')).toEqual(Int32Array.of(1, -3));
  expect(metadata.get('nested')).toEqual([['x'], [Uint8Array.of(1, 2)]]);
  expect(metadata.get('wide')).toBe(-(2n ** 62n));
  expect(metadata.flag('tokenizer.ggml.add_bos_token')).toBe(false);
  expect(() => metadata.count('general.architecture')).toThrow(
    /general\.architecture must be a count, is string 'llama'/,
  );
  expect(() => metadata.texts('tokenizer.ggml.scores')).toThrow(/list of strings, is array of 2 items/);
  // What was read is written again as it was.
  expect(await ggufBytes({ metadata, tensors: [] })).toEqual(bytes);
});

test('tensors of every format of blocks are what their encoder gives', async () => {
  const given = everyFormat();
  const file = await openGguf(await ggufBytes({ metadata: {}, tensors: given }));
  expect(file.tensors.size).toBe(13);
  for (const { name, type, data } of given) {
    const tensor = file.tensors.get(name)!;
    const expected = encodeBlocks(type, data);
    expect(tensor).toMatchObject({ name, type, shape: [2, 256], bytes: expected.length });
    expect(await tensor.read()).toEqual(expected);
    expect(await tensor.values()).toEqual(decodeBlocks(type, expected));
  }
});

test('tensors of elements keep their bytes and their row-major shapes', async () => {
  const types: GgufType[] = ['f32', 'f16', 'bf16'];
  const integers = new Uint8Array(new Int32Array([1, -2, 3]).buffer);
  const tensors = types.map((type) => ({ name: type, type, shape: [2, 3, 5], data: values(30) }));
  const bytes = await ggufBytes({
    metadata: {},
    tensors: [...tensors, { name: 'i32', type: 'i32', shape: [3], data: integers }],
  });
  const { tensors: read } = await openGguf(bytes);
  expect(read.get('f32')!.shape).toEqual([2, 3, 5]);
  expect(await read.get('f32')!.values()).toEqual(values(30));
  for (const [type, off] of [
    ['f16', 2 ** -11],
    ['bf16', 2 ** -8],
  ] as const) {
    const back = await read.get(type)!.values();
    values(30).forEach((value, i) => expect(Math.abs(back[i]! - value)).toBeLessThan(off));
  }
  expect(await read.get('i32')!.read()).toEqual(integers);
  await expect(read.get('i32')!.values()).rejects.toMatchObject({ code: 'E_DTYPE' });
});

test('pieces are whole blocks and join to the whole, and progress reaches its end', async () => {
  const data = values(16 * 256);
  const bytes = await ggufBytes({
    metadata: {},
    tensors: [{ name: 'w', type: 'q4_k', shape: [16, 256], data }],
  });
  const tensor = (await openGguf(bytes)).tensors.get('w')!;
  const whole = await tensor.read();
  const parts: number[] = [];
  const told: number[] = [];
  let at = 0;
  for await (const { offset, data: part } of tensor.chunks({
    bytes: 500,
    onProgress: ({ loaded }) => told.push(loaded),
  })) {
    expect(offset).toBe(at);
    expect(part).toEqual(whole.subarray(at, at + part.length));
    parts.push(part.length);
    at += part.length;
  }
  expect(parts).toEqual([432, 432, 432, 432, 432, 144]);
  expect(told.at(-1)).toBe(2304);
});

test('rows of a tensor are a tensor, and those that it has not are none', async () => {
  const data = values(16 * 256);
  const bytes = await ggufBytes({
    metadata: {},
    tensors: [{ name: 'w', type: 'q4_k', shape: [16, 256], data }],
  });
  const tensor = (await openGguf(bytes)).tensors.get('w')!;
  const whole = await tensor.values();
  const some = tensor.rows(3, 9);
  expect([some.shape, some.bytes]).toEqual([[6, 256], 6 * 144]);
  expect(await some.values()).toEqual(whole.subarray(3 * 256, 9 * 256));
  expect(await some.rows(5, 6).values()).toEqual(whole.subarray(8 * 256, 9 * 256));
  expect(tensor.rows(4, 4).bytes).toBe(0);
  for (const [from, to] of [
    [-1, 2],
    [3, 2],
    [0, 17],
    [0.5, 2],
  ] as const)
    expect(() => tensor.rows(from, to)).toThrow(/E_VALUE|rows .* of w, which has 16/);
  expect(() => some.rows(0, 7)).toThrow(/which has 6/);
});

test('a tensor of a file is written in another type, by pieces that are no whole blocks of it', async () => {
  const data = values(40 * 256);
  const first = await openGguf(
    await ggufBytes({ metadata: {}, tensors: [{ name: 'w', type: 'q8_0', shape: [40, 256], data }] }),
  );
  const from = first.tensors.get('w')!;
  // Pieces of 33 blocks of 32 values.
  const source = { ...from, chunks: () => from.chunks({ bytes: 33 * 34 }) };
  const second = await openGguf(
    await ggufBytes({ metadata: {}, tensors: [{ name: 'w', type: 'q6_k', shape: [40, 256], data: source }] }),
  );
  expect(await second.tensors.get('w')!.read()).toEqual(encodeBlocks('q6_k', await from.values()));
});

test('types that rows do not fill give way to those that they do', () => {
  expect(fittingType('q4_k', [8, 512])).toBe('q4_k');
  expect(fittingType('q4_k', [8, 576])).toBe('q8_0');
  expect(fittingType('q4_0', [8, 24])).toBe('f16');
  expect(fittingType('q4_0', [512])).toBe('f32');
});

test('what cannot be written is refused by name', async () => {
  const write = (tensor: object, metadata: object = {}): Promise<unknown> =>
    ggufBytes({
      metadata,
      tensors: [{ name: 'w', type: 'q8_0', shape: [2, 32], data: values(64), ...tensor }],
    } as never);
  await expect(write({ shape: [2, 33] })).rejects.toThrow(/w: q8_0 has rows of whole blocks of 32.*\[2,33\]/);
  await expect(write({ data: values(32) })).rejects.toThrow(/takes 68 bytes, got 34/);
  await expect(write({ data: values(96) })).rejects.toThrow(/takes 68 bytes, got more/);
  await expect(write({ data: 'text' })).rejects.toThrow(/w: data must be/);
  await expect(write({ type: 'q9' })).rejects.toThrow(/no type 'q9'/);
  await expect(write({ type: 'i32' })).rejects.toThrow(/f32 values cannot be converted to i32/);
  await expect(write({ type: 'f16', data: new Float32Array(64).fill(1e6) })).rejects.toThrow(
    /past the largest f16/,
  );
  await expect(write({}, { a: { type: 'u8', value: 300 } })).rejects.toThrow(
    /metadata a must be a value of u8, got 300/,
  );
  await expect(write({}, { a: [] })).rejects.toThrow(/a list whose type is told/);
  await expect(write({}, { a: ['x', 1] })).rejects.toThrow(/metadata a must be a value of string/);
  await expect(write({}, { 'general.alignment': 24 })).rejects.toThrow(/power of two/);
});

test('a signal stops reading and writing with its reason', async () => {
  const bytes = await ggufBytes({ metadata: {}, tensors: everyFormat() });
  const stop = new AbortController();
  const tensor = (await openGguf(bytes)).tensors.get('q4_k')!;
  stop.abort(new Error('enough'));
  await expect(openGguf(bytes, { signal: stop.signal })).rejects.toThrow('enough');
  await expect(tensor.read({ signal: stop.signal })).rejects.toThrow('enough');
  await expect(tensor.chunks({ signal: stop.signal }).next()).rejects.toThrow('enough');
});
