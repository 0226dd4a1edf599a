// Random programs as ONNX files: ONNX Runtime and our own importer compute what the interpreter does.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { inOurs, inPeer, fileOf, withoutBf16 } from '../support/onnx/export.ts';
import { seed } from '../support/property.ts';
import { expectClose, randomProgram, type Program } from '../support/random/graph.ts';
import type { ValueKind } from '../support/random/values.ts';

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

/** Draws and factors have no spelling, bits of floats have one in opset 26 alone. */
const without = ['random', 'bitcast', 'factor'] as const;

async function expectSame({ graph: given, inputs }: Program, run: typeof inPeer): Promise<void> {
  const graph = withoutBf16(given);
  const carried = inputs.map((x) => (x.dtype === 'bf16' ? ({ ...x, dtype: 'f32' } as const) : x));
  const found = await run(fileOf(graph), carried);
  const expected = interpret(graph, carried);
  expect(found.length).toBe(expected.length);
  // As far apart as the random programs let a sloppy device be.
  found.forEach((array, i) => expectClose(array, expected[i]!, array.dtype === 'f16' ? 1e-1 : 2e-2));
}

interface Family {
  readonly dtypes: readonly DType[];
  readonly values: ValueKind;
  readonly runs: number;
}

const families: Readonly<Record<string, Family>> = {
  'floats, integers and bool': { dtypes: ['f32', 'i32', 'u32', 'bool'], values: 'tame', runs: 150 },
  'narrow floats': { dtypes: ['f16', 'bf16', 'f32'], values: 'tame', runs: 60 },
  'integers to their ends': {
    dtypes: ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'],
    values: 'special',
    runs: 200,
  },
};

describe.each(Object.entries(families))('random programs of %s', (_, { dtypes, values, runs }) => {
  const programs = randomProgram({ dtypes, values, without, maxSteps: 10 });
  const check = async (run: typeof inPeer, count: number): Promise<void> => {
    console.log(`random inputs from SINTER_SEED=${seed}`);
    await fc.assert(
      fc.asyncProperty(programs, (program) => expectSame(program, run)),
      { numRuns: count, seed },
    );
  };
  test('mean the same in ONNX Runtime', () => check(inPeer, runs), 120_000);
  test('mean the same when they are imported again', () => check(inOurs, Math.ceil(runs / 3)), 120_000);
});
