// Files of torch.save (scripts/torch-files.py): what they hold is read, and nothing of them is run.

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadTorch, readTorch, type TorchValue } from '../../src/io/index.ts';
import { ParseError } from '../../src/index.ts';

const file = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../fixtures/torch-files/${name}.pt`, import.meta.url)));

test("a state dictionary's tensors come under PyTorch's names", async () => {
  const tensors = await loadTorch(file('model'));
  expect(
    Object.entries(tensors).map(([name, { dtype, shape }]) => `${name} ${dtype}[${shape.join(',')}]`),
  ).toEqual([
    '0.weight f32[2,3]',
    '0.bias f32[2]',
    '1.weight f32[2]',
    '1.bias f32[2]',
    '1.running_mean f32[2]',
    '1.running_var f32[2]',
    '1.num_batches_tracked i64[]',
    '3.weight f32[2,2]',
  ]);
  expect(await tensors['1.num_batches_tracked']!.item()).toBe(1n);
});

test('views of a storage are what they show of it, every dtype keeps its bytes', async () => {
  const tensors = await loadTorch(file('checkpoint'));
  expect(await tensors['model.turned']!.array()).toEqual([
    [0, 4, 8],
    [1, 5, 9],
    [2, 6, 10],
    [3, 7, 11],
  ]);
  expect(await tensors['model.part']!.array()).toEqual([
    [4, 6],
    [8, 10],
  ]);
  expect(await tensors['model.scalar']!.item()).toBe(7.5);
  expect(tensors['model.empty']!.shape).toEqual([0, 3]);
  expect(await tensors['model.parameter']!.array()).toEqual([1, 1]);
  const kinds = ['bool', 'i8', 'u8', 'i16', 'i32', 'i64', 'f16', 'bf16', 'f64'];
  for (const [i, kind] of kinds.entries()) {
    const tensor = tensors[`kinds.${i}`]!;
    expect(tensor.dtype).toBe(kind);
    const last = kind === 'bool' ? 1 : 3;
    expect(await tensor.cast('f32').array()).toEqual([0, 1, last]);
  }
});

test('numbers, strings, lists and dictionaries are data', async () => {
  const value = (await readTorch(file('checkpoint'))) as ReadonlyMap<string | number, TorchValue>;
  const plain = ['epoch', 'loss', 'name', 'done', 'nothing', 'big', 'negative', 'betas', 'list', 'shape'];
  expect(plain.map((key) => value.get(key))).toEqual([
    3,
    0.25,
    'a run',
    false,
    null,
    2n ** 70n,
    -5,
    [0.9, 0.999],
    [1, [2.5]],
    [2, 3],
  ]);
  expect(value.has(0)).toBe(true);
});

test('a function of the pickle is named and refused, not run', async () => {
  await expect(readTorch(file('function'))).rejects.toThrow(/print.*nothing of a pickle is run/);
});

test('a file without a zip archive, as before PyTorch 1.6, says so', async () => {
  await expect(readTorch(file('old'))).rejects.toThrow(/no zip archive/);
});

test('damaged files are refused as such', async () => {
  const whole = file('model');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (changes, cut) => {
        const bytes = whole.slice();
        for (const [at, byte] of changes) bytes[at] = byte;
        const given = cut ? bytes.slice(0, changes[0]![0]) : bytes;
        const fate = await readTorch(given).catch((error: unknown) => error);
        if (fate instanceof Error) expect(fate).toBeInstanceOf(ParseError);
      },
    ),
    { numRuns: 200 },
  );
});
