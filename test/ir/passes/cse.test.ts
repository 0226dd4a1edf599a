import { expect, test } from 'vitest';

import { parse } from '../../../src/ir/text/parse.ts';
import { canonicalise } from '../../../src/ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../../src/ir/passes/cse.ts';
import { print } from '../../../src/ir/text/print.ts';

test('equal expressions become one node', () => {
  const graph = parse(`graph {
    %0 = parameter {index: 0, name: "x"} : f32[2]
    %1 = exp(%0) : f32[2]
    %2 = exp(%0) : f32[2]
    %3 = mul(%1, %2) : f32[2]
    return %3, %2
  }`);
  expect(print(shareSubexpressions(graph))).toBe(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[2]
  %1 = exp(%0) : f32[2]
  %2 = mul(%1, %1) : f32[2]
  return %2, %1
}
`);
});

test('constants that differ only in the sign of zero stay two', () => {
  const graph = parse(`graph {
    %0 = constant {value: 0} : f32[]
    %1 = constant {value: -0} : f32[]
    return %0, %1
  }`);
  const [zero, minusZero] = shareSubexpressions(graph).outputs;
  expect(zero).not.toBe(minusZero);
});

test('canonical order makes x + y and y + x one node', () => {
  const graph = parse(`graph {
    %0 = parameter {index: 0, name: "x"} : f32[2]
    %1 = parameter {index: 1, name: "y"} : f32[2]
    %2 = add(%0, %1) : f32[2]
    %3 = add(%1, %0) : f32[2]
    return %2, %3
  }`);
  const [left, right] = shareSubexpressions(canonicalise(graph)).outputs;
  expect(left).toBe(right);
});
