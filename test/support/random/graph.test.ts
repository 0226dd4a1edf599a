import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { topological, type Node } from '../../../src/ir/graph.ts';
import { evaluateNode, interpret } from '../../../src/ir/interpret/interpret.ts';
import { isCollective, opNames } from '../../../src/ir/ops.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { checkLaw } from '../property.ts';
import { describeProgram, expectClose, randomProgram, type Program } from './graph.ts';

test('random programs use every op', () => {
  const programs = fc.sample(randomProgram({ values: 'special' }), { numRuns: 2500, seed: 1 });
  const used = new Set(programs.flatMap(({ graph }) => topological(graph.outputs).map(({ op }) => op)));
  // A custom derivative is an entry in autograd's registry, which the IR does not know; and sorts and scatters are split into
  // steps that have a meaning only together. Rotations of rows are one thing only up to signs and ties; complex numbers,
  // blocks, loops, bounds, what is computed again and programs over several processes have random programs of their own.
  const inner = ['fftPart', 'radixRank', 'permuteScatter', 'segmentReduce', 'customVjp'];
  const elsewhere = [
    'barrier',
    'shard',
    'iterate',
    'bounded',
    'jacobiRows',
    'completeRows',
    'dequantize',
    'complex',
    'real',
    'imag',
    'conj',
  ];
  const ofProcesses = ['rankIndex', 'toPart', 'toWhole', ...opNames.filter(isCollective)];
  const known = new Set([...inner, ...elsewhere, ...ofProcesses]);
  expect(opNames.filter((op) => !used.has(op) && !known.has(op))).toEqual([]);
});

/** Every float result a millionth off, as on a device with its own rounding. */
function interpretInexactly({ graph, inputs }: Program): HostArray[] {
  const values = new Map<Node, HostArray>();
  graph.parameters.forEach((parameter, i) => values.set(parameter, inputs[i]!));
  for (const node of topological(graph.outputs)) {
    if (values.has(node)) continue;
    const exact = evaluateNode(
      node,
      node.inputs.map((input) => values.get(input)!),
    );
    const rounds = [
      'add',
      'sub',
      'mul',
      'div',
      'fma',
      'exp',
      'sin',
      'reduce',
      'dot',
      'conv',
      'tanh',
    ].includes(node.op);
    const off = rounds && node.dtype === 'f32';
    values.set(
      node,
      off ? { ...exact, data: Float32Array.from(exact.data as Float32Array, (x) => x * (1 + 1e-6)) } : exact,
    );
  }
  return graph.outputs.map((output) => values.get(output)!);
}

test('tame programs are finite and well-conditioned', () => {
  checkLaw(300, randomProgram(), (program) => {
    const expected = interpret(program.graph, program.inputs);
    interpretInexactly(program).forEach((actual, i) => {
      expect(
        expected[i]!.data.every((x: number | bigint) => typeof x === 'bigint' || Number.isFinite(x)),
      ).toBe(true);
      expectClose(actual, expected[i]!, 1e-2);
    });
  });
});

test('a failure shrinks to the op at fault and prints as IR text', () => {
  const result = fc.check(
    fc.property(randomProgram(), ({ graph }) => !topological(graph.outputs).some(({ op }) => op === 'sub')),
    { numRuns: 2000, seed: 1 },
  );
  expect(result.failed).toBe(true);
  const text = describeProgram(result.counterexample![0]);
  expect(text).toMatch(/= sub\(/);
  expect(text.split('\n').filter((line) => line.includes(' = ')).length).toBeLessThanOrEqual(8);
});

describe('expectClose', () => {
  const f32 = (...values: number[]): HostArray => hostArray('f32', [values.length], values);
  test('takes NaN for NaN and differences within the tolerance', () => {
    expectClose(f32(NaN, 1000, 0, Infinity), f32(NaN, 1000.5, -0, Infinity), 1e-3);
  });
  test.each([
    [f32(1), f32(1.01), 1e-3],
    [f32(NaN), f32(1), 1e-3],
    [f32(1), f32(Infinity), 1e-3],
    [f32(Infinity), f32(1), 1e-3],
    [f32(Infinity), f32(-Infinity), 1e-3],
    [f32(0), f32(-0), 0],
    [hostArray('i32', [1], [1000]), hostArray('i32', [1], [1001]), 0.1],
  ])('tells %o from %o', (actual, expected, tolerance) => {
    expect(() => expectClose(actual, expected, tolerance)).toThrow(/element 0 of/);
  });
  test('tells shapes and dtypes apart', () => {
    expect(() => expectClose(f32(1, 2), f32(1), 1)).toThrow('expected f32[1], got f32[2]');
  });
});
