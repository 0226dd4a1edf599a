// Every operation on every register type at every width, as WebAssembly, against the interpreter's meaning of it.

import { describe, expect, test } from 'vitest';
import type { Width } from '../../../src/codegen/loop/loop.ts';
import { emitWasm } from '../../../src/codegen/emit/wasm/emit.ts';
import '../../../src/compile/all.ts';
import { mapLoop, type Arrays } from '../run-loop.ts';
import { runWasm } from './run-wasm.ts';
import { argumentsOf, disagreements, longCases, nameOf, spellingCases } from './spelling-cases.ts';

describe.each([1, 2, 4] as const)('width %i', (width: Width) => {
  test.each([...spellingCases, ...longCases].map((row) => [nameOf(row), row] as const))('%s', (name, row) => {
    const inputs = argumentsOf(row);
    const size = inputs[0]!.length;
    const arrays: Arrays = new Map(inputs.map((data, k) => [`x${k}`, data]));
    runWasm(mapLoop(row, width, size), arrays);
    const wrong = disagreements(row, width, inputs, arrays.get('out')!);
    // Exponentials below 2^−125 are 0: engines pay dearly for numbers that small.
    const counted = wrong.filter((line) => !row.op.startsWith('exp') || !/= 0, not \d\.\d+e-38$/.test(line));
    expect(counted.slice(0, 8), `${name}: ${counted.length} of ${size} wrong`).toEqual([]);
  });
});

test('whether any of four lanes is far from 0 is one instruction', () => {
  const { text } = emitWasm(mapLoop({ op: 'sin', args: ['f32'], result: 'f32' }, 4, 256));
  expect(text()).toContain('v128.any_true');
});
