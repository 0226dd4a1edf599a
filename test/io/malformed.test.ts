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
import { parse } from '../../src/ir/index.ts';
import { kernel } from '../../src/notation/index.ts';
import { tensorView, torchFile } from './archive.ts';

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
