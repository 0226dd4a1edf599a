import { describe, expect, test } from 'vitest';

import { ParseError } from '../../src/errors.ts';
import { sameAttrs, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { shareSubexpressions } from '../../src/ir/passes/cse.ts';
import { print } from '../../src/ir/text/print.ts';
import { sameShape } from '../../src/ir/shape.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

/** Throws unless the graphs have equal nodes in the same places. */
function expectSameGraph(a: Graph, b: Graph): void {
  const order = (graph: Graph): Node[] => [...new Set([...graph.parameters, ...topological(graph.outputs)])];
  const [as, bs] = [order(a), order(b)];
  expect(bs.length).toBe(as.length);
  const twin = new Map<Node, Node>(as.map((node, i) => [node, bs[i]!]));
  for (const [x, y] of twin) {
    const same =
      x.op === y.op &&
      x.dtype === y.dtype &&
      sameShape(x.shape, y.shape) &&
      sameAttrs(x.attrs, y.attrs) &&
      x.inputs.length === y.inputs.length &&
      x.inputs.every((input, i) => twin.get(input) === y.inputs[i]);
    expect(same, `${x.op} is read back`).toBe(true);
  }
  expect(b.outputs).toEqual(a.outputs.map((output) => twin.get(output)));
}

describe('reading back', () => {
  test('parse(print(graph)) is the graph', () => {
    const dtypes = ['f32', 'f64', 'f16', 'bf16', 'i8', 'u16', 'i32', 'u32', 'i64', 'u64', 'bool'] as const;
    checkLaw(150, randomProgram({ values: 'special', dtypes, maxSteps: 16 }), ({ graph }) => {
      const text = print(graph);
      const back = parse(text);
      expectSameGraph(graph, back);
      expect(print(back)).toBe(text);
    });
  });

  test('nodes that the text tells apart stay apart', () => {
    const text = `graph {
  %0 = constant {value: 1} : f32[]
  %1 = constant {value: 1} : f32[]
  %2 = add(%0, %1) : f32[]
  return %2
}
`;
    expect(print(parse(text))).toBe(text);
  });

  test('comments, blank lines, free spacing and any names are fine', () => {
    const graph = parse(`
// A comment before.
graph{ // and here

  %20=parameter{name:"y // z",index:1}:f32[ 2 ]\r
\t%3 = parameter { index : 0 , name : "x" } : f32 [2]
  %4 = sub( %3,%20 ) {} : f32[2]
  return %4,%4
} // end
`);
    expect(print(graph)).toBe(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[2]
  %1 = parameter {index: 1, name: "y // z"} : f32[2]
  %2 = sub(%0, %1) : f32[2]
  return %2, %2
}
`);
  });

  test('attributes in another order are the same attributes', () => {
    const graph = parse(`graph {
      %0 = parameter {index: 0, name: "x"} : f32[2]
      %1 = scan(%0) {monoid: "sum", axis: 0, reverse: false, exclusive: true} : f32[2]
      %2 = scan(%0) {exclusive: true, axis: 0, monoid: "sum", reverse: false} : f32[2]
      return %1, %2
    }`);
    const [a, b] = shareSubexpressions(graph).outputs;
    expect(a).toBe(b);
  });
});

/** Two lines that most malformed texts begin with; the third line is the one at fault. */
const opening = 'graph {\n  %0 = parameter {index: 0, name: "x"} : f32[2,3]\n';

const malformed: readonly (readonly [text: string, line: number, column: number, problem: string])[] = [
  ['', 1, 1, 'expected "graph {", but the text ends'],
  ['graph', 1, 6, 'expected "{", but the line ends'],
  ['module {', 1, 1, 'expected "graph", found module'],
  [opening, 3, 1, 'expected a node or "return", but the text ends'],
  [`${opening}  return %0\n`, 4, 1, 'expected "}", but the text ends'],
  [`${opening}  return %0\n}\n  %1 = neg(%0) : f32[2,3]`, 5, 3, 'expected nothing after the graph'],
  [`${opening}  return %0\n  %1 = neg(%0) : f32[2,3]\n}`, 4, 3, 'expected "}", found %'],
  [`${opening}}`, 3, 1, 'expected a node such as %0, "return", or a body such as @0, found }'],
  [`${opening}  %1 = neg(%0 : f32[2,3]`, 3, 15, 'expected ")" or ",", found :'],
  [`${opening}  %1 = neg(%0) f32[2,3]`, 3, 16, 'expected ":" or "{", found f32'],
  [`${opening}  %1 = neg(%0,) : f32[2,3]`, 3, 15, 'expected a node such as %0, found )'],
  [`${opening}  %1 = neg(%0) : f32[2,3`, 3, 25, 'expected "]", but the line ends'],
  [`${opening}  %1 = neg(%0) : f32[2,3] more`, 3, 27, 'expected end of line, found more'],
  [
    `${opening}  1 = neg(%0) : f32[2,3]`,
    3,
    3,
    'expected a node such as %0, "return", or a body such as @0, found 1',
  ],
  [`${opening}  %1 = constant {value: 1e} : f32[]`, 3, 26, 'expected "}", found e'],
  [`${opening}  %1 = constant {value: "open} : f32[]`, 3, 25, 'expected a value, found "'],
  [`${opening}  %1 = foo(%0) : f32[2,3]`, 3, 8, 'foo is no operation'],
  [`${opening}  %1 = constructor(%0) : f32[2,3]`, 3, 8, 'constructor is no operation'],
  [`${opening}  %1 = add(%0, %7) : f32[2,3]`, 3, 16, '%7 is not defined above'],
  [`${opening}  return %0, %1\n}`, 3, 14, '%1 is not defined above'],
  [`${opening}  %0 = neg(%0) : f32[2,3]`, 3, 3, '%0 is defined twice'],
  [`${opening}  %1 = neg(%0) : f99[2,3]`, 3, 18, 'f99 is no dtype'],
  [`${opening}  %1 = neg(%0) : f32[3,2]`, 3, 18, '%1 has type f32[2,3], not f32[3,2]'],
  [`${opening}  %1 = neg(%0) : i32[2,3]`, 3, 18, '%1 has type f32[2,3], not i32[2,3]'],
  [`${opening}  %1 = not(%0) : f32[2,3]`, 3, 8, 'not: expects an integer or bool dtype: f32[2,3]'],
  [`${opening}  %1 = neg(%0, %0) : f32[2,3]`, 3, 8, 'neg: expects 1 input(s), got 2: f32[2,3], f32[2,3]'],
  [
    `${opening}  %1 = reshape(%0) : f32[7]`,
    3,
    8,
    'reshape: cannot reshape to [7]: element counts differ: f32[2,3]',
  ],
  [`${opening}  %1 = permute(%0) : f32[3,2]`, 3, 8, 'permute needs the attribute order'],
  [
    `${opening}  %1 = permute(%0) {order: [1,0], axis: 0} : f32[3,2]`,
    3,
    35,
    'permute has no attribute axis (it has order)',
  ],
  [`${opening}  %1 = neg(%0) {axis: 0} : f32[2,3]`, 3, 17, 'neg has no attribute axis (it has none)'],
  [`${opening}  %1 = permute(%0) {order: 1} : f32[3,2]`, 3, 21, 'attribute order must be a list of integers'],
  [
    `${opening}  %1 = permute(%0) {order: [1,0.5]} : f32[3,2]`,
    3,
    21,
    'attribute order must be a list of integers',
  ],
  [
    `${opening}  %1 = reduce(%0) {monoid: "mean", axes: [1]} : f32[2]`,
    3,
    20,
    'attribute monoid must be one of sum, prod, min, max, and, or',
  ],
  [`${opening}  %1 = concat(%0) {axis: 0, axis: 0} : f32[2,3]`, 3, 29, 'attribute axis is given twice'],
  [
    `${opening}  %1 = cast(%0) {dtype: "i32"} : i32[2,3]`,
    3,
    18,
    'dtype belongs in the type, after the colon',
  ],
  [
    `${opening}  %1 = parameter {index: 2, name: "y"} : f32[]\n  return %1\n}`,
    3,
    1,
    'parameters must count 0, 1, 2…: index 2 stands where 1 must',
  ],
  [
    `${opening}  %1 = parameter {index: 0, name: "y"} : f32[]\n  return %1\n}`,
    3,
    1,
    'parameters must count 0, 1, 2…: index 0 stands where 1 must',
  ],
];

describe('malformed text is refused at its line and column', () => {
  test.each(malformed)('%j', (text, line, column, problem) => {
    let thrown: unknown;
    try {
      parse(text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ParseError);
    const { code, message, ...at } = thrown as ParseError;
    expect({ code, message, line: at.line, column: at.column }).toEqual({
      code: 'E_PARSE',
      message: `IR text: line ${line}, column ${column}: ${problem}`,
      line,
      column,
    });
  });

  test('whatever is cut out of a text, it is read or refused, never worse', () => {
    checkLaw(60, randomProgram({ maxSteps: 6 }), ({ graph }) => {
      const text = print(graph);
      for (let at = 1; at < text.length; at += 37) {
        try {
          parse(text.slice(0, at) + text.slice(at + 5));
        } catch (error) {
          expect(error).toBeInstanceOf(ParseError);
        }
      }
    });
  });
});
