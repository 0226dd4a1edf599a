// Texts that were changed anywhere: IR text, index notation, equations of einsum and rearrange, CSV.

import { test } from 'vitest';
import { readCsv } from '../../src/data/index.ts';
import { einsum, ones, rearrange } from '../../src/index.ts';
import { parse, print } from '../../src/ir/index.ts';
import { kernel } from '../../src/notation/index.ts';
import { keepsTo, type Subject } from './law.ts';
import { mutated, mutatedText } from './mutate.ts';

function reader(samples: readonly string[], read: (text: string) => unknown): Subject<string> {
  return {
    whole: samples,
    make: (draw) => mutatedText(draw, samples[draw(samples.length)]!),
    read,
    sizeOf: ({ length }) => length,
  };
}

const graph = `graph {
  %0 = parameter {index: 0, name: "x"} : f32[2]
  %1 = parameter {index: 1, name: "then"} : f32[2]
  %2 = constant {value: 7} : i32[]
  %3 = cast(%2) : f32[]
  %4 = broadcast(%3) : f32[2]
  %5 = mul(%0, %4) : f32[2]
  %6 = add(%5, %1) : f32[2]
  return %6, %2
}
`;
test('IR text', () =>
  keepsTo(
    reader([graph], (text) => void print(parse(text))),
    6000,
    100,
  ));

const x = ones([2, 3]);
const y = ones([3, 2]);
test('index notation', () =>
  keepsTo(
    reader(
      [
        'z[i, j] = sum(k: x[i, k] * y[k, j]) + 1',
        'z[i] = max(k: x[i, k]) > 0.5 ? 1 : f16(-x[i, 0])',
        'a[i] = x[i, 2 - 1]\nz[i < 2] = a[i] ** 2',
      ],
      (text) => {
        const call = kernel(text);
        const known = Object.entries({ x, y }).filter(([name]) => call.inputs.includes(name));
        return void call(Object.fromEntries(known));
      },
    ),
    4000,
    100,
  ));

test('equations of einsum', () =>
  keepsTo(
    reader(['ij,jk->ik', '...i,i...->...', 'ij,ji'], (text) => void einsum(text, x, y)),
    8000,
    200,
  ));

test('patterns of rearrange', () =>
  keepsTo(
    reader(
      ['a b -> b a', '(a c) b -> a (b c)', 'a ... -> ... a'],
      (text) => void rearrange(x, text, text.includes('c') ? { c: 1 } : {}),
    ),
    4000,
    200,
  ));

const table = new TextEncoder().encode('id,name,then\n1,"a, b",0.5\n2,"c ""d""",-1e3\n3,ü,\n');
test('CSV', () =>
  keepsTo(
    {
      whole: [table],
      make: (draw) => mutated(draw, table),
      read: async (bytes) => (await readCsv(bytes)).get(0),
      sizeOf: ({ length }) => length,
    },
    6000,
    200,
  ));
