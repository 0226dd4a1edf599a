import { expect, test } from 'vitest';

import { parse } from '../../../src/ir/text/parse.ts';
import { dropMarkers } from '../../../src/ir/passes/drop-markers.ts';
import { print } from '../../../src/ir/text/print.ts';

test('markers become the value they mark, and what only they read goes', () => {
  const graph = parse(`graph {
    %0 = parameter {index: 0, name: "x"} : f32[2]
    %1 = parameter {index: 1, name: "y"} : f32[2]
    %2 = stopGradient(%0) : f32[2]
    %3 = exp(%1) : f32[2]
    %4 = customVjp(%2, %3) {rule: 7} : f32[2]
    %5 = neg(%4) : f32[2]
    return %5
  }`);
  expect(print(dropMarkers(graph))).toBe(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[2]
  %1 = parameter {index: 1, name: "y"} : f32[2]
  %2 = neg(%0) : f32[2]
  return %2
}
`);
});
