import { expect, test } from 'vitest';

import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print, printNode } from '../../src/ir/text/print.ts';

function constants(values: readonly (number | bigint)[], dtype: 'f64' | 'i64'): Graph {
  const b = new GraphBuilder();
  return { parameters: [], outputs: values.map((value) => b.add('constant', [], { value, dtype }) as Node) };
}

test('a graph prints one node a line, numbered from the parameters on', () => {
  const b = new GraphBuilder();
  const two = b.add('constant', [], { value: 2, dtype: 'f32' }) as Node;
  const unused = b.add('parameter', [], { index: 1, name: 'unused', dtype: 'bool', shape: [] });
  const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [2, 3] });
  const full = b.add('broadcast', [two], { shape: [2, 3] }) as Node;
  const product = b.add('mul', [x as Node, full], {}) as Node;
  const last = b.add('slice', [product], { start: [1, 2], size: [2, 3], step: [-1, -1] }) as Node;
  expect(print({ parameters: [x, unused], outputs: [last, x as Node] })).toBe(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[2,3]
  %1 = parameter {index: 1, name: "unused"} : bool[]
  %2 = constant {value: 2} : f32[]
  %3 = broadcast(%2) : f32[2,3]
  %4 = mul(%0, %3) : f32[2,3]
  %5 = slice(%4) {start: [1,2], size: [2,3], step: [-1,-1]} : f32[2,3]
  return %5, %0
}
`);
});

test('a graph without outputs prints', () => {
  expect(print({ parameters: [], outputs: [] })).toBe('graph {\n  return\n}\n');
});

test('numbers print exactly', () => {
  const values = [-0, NaN, Infinity, -Infinity, 0.1, Math.PI, 5e-324, 1.7976931348623157e308, 1e21, -1e-7];
  const text = print(constants(values, 'f64'));
  const printed = [...text.matchAll(/value: (.*)}/g)].map((match) => match[1]);
  expect(printed).toEqual([
    '-0',
    'nan',
    'inf',
    '-inf',
    '0.1',
    '3.141592653589793',
    '5e-324',
    '1.7976931348623157e+308',
    '1e+21',
    '-1e-7',
  ]);
  expect(parse(text).outputs.map((node) => node.op === 'constant' && node.attrs.value)).toEqual(values);
});

test('64-bit integers print as bigints', () => {
  const values = [9223372036854775807n, -9223372036854775808n, 0n];
  const text = print(constants(values, 'i64'));
  expect(text).toContain('value: -9223372036854775808n} : i64[]');
  expect(parse(text).outputs.map((node) => node.op === 'constant' && node.attrs.value)).toEqual(values);
});

test('names of any characters and symbolic sizes print and read back', () => {
  const b = new GraphBuilder();
  const name = 'a "quoted" \\ name\n\t\u0000 with é, 😀, \u2028, \uD800 and // no comment';
  const shape = [{ name: 'seq', min: 1, max: 2048 }, 4, { name: 'two words', min: 0, max: 3 }];
  const x = b.add('parameter', [], { index: 0, name, dtype: 'bf16', shape });
  const text = print({ parameters: [x], outputs: [x as Node] });
  expect(text).toContain(' : bf16[seq:1..2048,4,"two words":0..3]');
  expect(text.split('\n')).toHaveLength(5);
  expect(parse(text).parameters[0]!.attrs).toEqual({ index: 0, name, dtype: 'bf16', shape });
});

test('one node prints on one line, its inputs called by id', () => {
  const b = new GraphBuilder();
  const x = b.add('iota', [], { shape: [3], axis: 0, dtype: 'i32' }) as Node;
  const y = b.add('reduce', [x], { monoid: 'sum', axes: [0] }) as Node;
  expect(printNode(y)).toBe(`%${y.id} = reduce(%${x.id}) {monoid: "sum", axes: [0]} : i32[]`);
});
