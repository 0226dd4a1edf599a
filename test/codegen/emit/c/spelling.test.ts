// Every operation on every register type at every width as C, against the interpreter's meaning of it: one library a width, of
// a kernel for each operation.

import { describe, expect, test } from 'vitest';
import type { Width } from '../../../../src/codegen/loop/loop.ts';
import { casesOf } from '../../../support/sample.ts';
import { CKernels, compiler } from '../../../support/text/c.ts';
import { mapLoop, type Arrays } from '../../run-loop.ts';
import {
  argumentsOf,
  byteCases,
  disagreements,
  longCases,
  nameOf,
  spellingCases,
} from '../spelling-cases.ts';

const rows = [...spellingCases, ...longCases, ...byteCases];

describe.skipIf(compiler === undefined)('operations as C', () => {
  test.each([1, 2, 4] as const)('at width %i equal the interpreter', (width: Width) => {
    // One row in so many, another one at each width.
    const step = Math.round(rows.length / casesOf(rows.length, 24));
    const cases = rows.filter((_, i) => i % step === width % step);
    const inputs = cases.map(argumentsOf);
    const kernels = new CKernels(cases.map((row, i) => mapLoop(row, width, inputs[i]![0]!.length)));
    const wrong = cases.flatMap((row, i) => {
      const arrays: Arrays = new Map(inputs[i]!.map((data, k) => [`x${k}`, data]));
      kernels.run(i, arrays);
      // Exponentials below 2^−125 are 0, as in WebAssembly.
      const found = disagreements(row, width, inputs[i]!, arrays.get('out')!).filter(
        (line) => !row.op.startsWith('exp') || !/= 0, not \d\.\d+e-38$/.test(line),
      );
      return found.length === 0
        ? []
        : [`${nameOf(row)}, ${found.length} wrong: ${found.slice(0, 3).join('; ')}`];
    });
    expect(wrong).toEqual([]);
  });
});
