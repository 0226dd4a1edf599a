// Every operation on every register type at every width, as C, against the interpreter's meaning of it.

import { describe, expect, test } from 'vitest';
import type { Width } from '../../../../src/codegen/loop/loop.ts';
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

describe.skipIf(compiler === undefined).each([1, 2, 4] as const)('C at width %i', (width: Width) => {
  const inputs = rows.map(argumentsOf);
  const sizeOf = (i: number): number => inputs[i]![0]!.length;
  const kernels = new CKernels(rows.map((row, i) => mapLoop(row, width, sizeOf(i))));

  test.each(rows.map((row, i) => [nameOf(row), i] as const))('%s', (name, i) => {
    const row = rows[i]!;
    const arrays: Arrays = new Map(inputs[i]!.map((data, k) => [`x${k}`, data]));
    kernels.run(i, arrays);
    const wrong = disagreements(row, width, inputs[i]!, arrays.get('out')!);
    // Exponentials below 2^−125 are 0, as in WebAssembly.
    const counted = wrong.filter((line) => !row.op.startsWith('exp') || !/= 0, not \d\.\d+e-38$/.test(line));
    expect(counted.slice(0, 8), `${name}: ${counted.length} of ${sizeOf(i)} wrong`).toEqual([]);
  });
});
