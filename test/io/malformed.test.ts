// Texts and headers that no program writes are refused by a typed error: nesting deeper than a stack, and sizes of minus zero.

import { expect, test } from 'vitest';
import { ParseError } from '../../src/errors.ts';
import {
  loadTorch,
  readNpy,
  readSafetensors,
  readTorch,
  writeNpy,
  writeSafetensors,
  type HostTensor,
} from '../../src/io/index.ts';
import { readCsv } from '../../src/data/index.ts';
import { ones, rearrange, setDevice, tensor } from '../../src/index.ts';
import { parse } from '../../src/ir/index.ts';
import { kernel } from '../../src/notation/index.ts';
import { cpuTimeOf } from '../support/cpu-time.ts';
import { tensorView, torchFile } from './archive.ts';

setDevice('interpreter');

const empty: HostTensor = { dtype: 'u8', shape: [0], data: new Uint8Array() };
/** A file with a text of it replaced by one as long. */
function replaced(file: Uint8Array, from: string, to: string): Uint8Array {
  return Uint8Array.from(Buffer.from(Buffer.from(file).toString('latin1').replace(from, to), 'latin1'));
}

test.each([1000])('text that nests %d deep is refused', (deep) => {
  const [open, close] = ['('.repeat(deep), ')'.repeat(deep)];
  expect(() => kernel(`y[i] = ${open}x[i]${close}`)).toThrow(ParseError);
  expect(() => kernel(`y[i] = x[i]${' + x[i]'.repeat(5 * deep)}`)).toThrow(ParseError);
  const lists = '['.repeat(5 * deep) + ']'.repeat(5 * deep);
  expect(() => parse(`graph {\n  %0 = constant {value: ${lists}} : i32[]\n  return %0\n}`)).toThrow(
    ParseError,
  );
});

test('a text of index notation is short', () => {
  // What reads it takes time and memory by the kilobyte for each character.
  expect(() => kernel(`y[i] = x[i]${' + x[i]'.repeat(100_000)}`)).toThrow(/at most 32768 characters/);
});

test.each([
  ['i32', '9007199254740994'],
  ['i32', '2147483648'],
  ['i32', '1.5'],
  ['i64', 'nan'],
  ['i64', '9007199254740994'],
  ['u8', '-1'],
  ['bool', '2'],
])('a constant of %s that is %s is refused', (dtype, value) => {
  const text = (given: string): string =>
    `graph {\n  %0 = constant {value: ${given}} : ${dtype}[]\n  return %0\n}`;
  expect(() => parse(text(value))).toThrow(new RegExp(`${dtype} does not hold`));
  expect(parse(text('1')).outputs).toHaveLength(1);
});

test('arrays nest deeper than the stack', async () => {
  let given: unknown = 5;
  for (let depth = 0; depth < 30_000; depth++) given = [given];
  const x = tensor(given as number[]);
  expect(x.shape).toHaveLength(30_000);
  let found: unknown = await ones(Array.from({ length: 3000 }, () => 1)).array();
  for (let depth = 0; depth < 3000; depth++) found = (found as readonly unknown[])[0];
  expect(found).toBe(1);
});

test('arrays with nothing in them are not made without end', async () => {
  const time = await cpuTimeOf(async () => {
    const empty = rearrange(ones([3, 0, 3]), 'b (h w) c -> b c h w', { h: 2 ** 31 });
    await expect(empty.array()).rejects.toMatchObject({ code: 'E_LIMIT' });
    await expect(ones([2 ** 31, 0]).array()).rejects.toMatchObject({ code: 'E_LIMIT' });
  });
  expect(time).toBeLessThan(1500);
  expect(await ones([2, 0, 3]).array()).toEqual([[], []]);
  expect(await ones([0, 2 ** 31]).array()).toEqual([]);
});

test('tables of cells without letters need the caller’s word', async () => {
  const lines = new TextEncoder().encode(`a,b\n${',\n'.repeat(2_000_000)}`);
  await expect(readCsv(lines)).rejects.toMatchObject({ code: 'E_LIMIT' });
  const short = lines.subarray(0, 4 + 2 * 1000);
  expect((await readCsv(short)).length).toBe(1000);
  expect((await readCsv(short, { maxBytes: Infinity })).length).toBe(1000);
});

test('tables of many columns take time by their size', async () => {
  const names = Array.from({ length: 50_000 }, (_, i) => `c${i}`);
  const file = new TextEncoder().encode(`${names.join(',')}\n${','.repeat(49_999)}`);
  const time = await cpuTimeOf(async () => {
    expect((await readCsv(file)).length).toBe(1);
  });
  expect(time).toBeLessThan(3000);
});

test('sizes of minus zero are refused', () => {
  expect(() => readNpy(replaced(writeNpy(empty), '(0,), ', '(-0,),'))).toThrow(ParseError);
  expect(() =>
    readSafetensors(replaced(writeSafetensors([['a', empty]]), '"shape":[0],', '"shape":[-0],').with(0, 57)),
  ).toThrow(ParseError);
});

test('booleans of a view are 0 or 1', async () => {
  const file = torchFile(tensorView('Bool', 0, [2, 2], [1, 2]), Uint8Array.of(7, 2, 3, 0));
  expect([...((await readTorch(file)) as HostTensor).data]).toEqual([1, 1, 1, 0]);
});

test('a tensor called __proto__ is a tensor', async () => {
  const name = 'X\x09\0\0\0__proto__';
  const found = await loadTorch(torchFile(`}${name}${tensorView('Float', 0, [2], [1])}s`));
  expect(Object.keys(found)).toEqual(['__proto__']);
  expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
});
