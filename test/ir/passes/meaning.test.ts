import { describe, expect, test } from 'vitest';

import type { Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { canonicalise } from '../../../src/ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../../src/ir/passes/cse.ts';
import { removeDeadCode } from '../../../src/ir/passes/dead-code.ts';
import { dropMarkers } from '../../../src/ir/passes/drop-markers.ts';
import { foldConstants } from '../../../src/ir/passes/fold.ts';
import { simplify } from '../../../src/ir/passes/simplify.ts';
import { print } from '../../../src/ir/text/print.ts';
import { verify } from '../../../src/ir/verify.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose, randomProgram, type Program, type ProgramOptions } from '../../support/random/graph.ts';

const passes: Readonly<Record<string, (graph: Graph) => Graph>> = {
  canonicalise,
  foldConstants,
  simplify,
  removeDeadCode,
  shareSubexpressions,
  dropMarkers,
};

/** The passes as a compiler runs them: until nothing changes, for a few rounds at most. */
function pipeline(graph: Graph): Graph {
  let now = dropMarkers(graph);
  for (let round = 0; round < 4; round++) {
    for (const pass of [canonicalise, foldConstants, simplify, removeDeadCode]) now = pass(now);
  }
  return now;
}

function expectSameMeaning({ graph, inputs }: Program, pass: (graph: Graph) => Graph, name: string): void {
  const before = print(graph);
  const changed = pass(graph);
  verify(changed, name);
  expect(print(graph), 'passes are pure').toBe(before);
  expect(changed.parameters.map(({ attrs }) => attrs)).toEqual(graph.parameters.map(({ attrs }) => attrs));
  const expected = interpret(graph, inputs);
  for (const [i, actual] of interpret(changed, inputs).entries()) {
    try {
      expectClose(actual, expected[i]!, 0);
    } catch (error) {
      throw new Error(`output ${i} differs after ${name}:\n${print(changed)}`, { cause: error });
    }
  }
}

const special: ProgramOptions = { values: 'special' };
const everyDType: ProgramOptions = {
  values: 'special',
  dtypes: ['f32', 'f16', 'bf16', 'f64', 'i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64', 'bool'],
};

describe('a pass keeps every bit of the results, and the graph valid', () => {
  for (const [name, pass] of Object.entries(passes)) {
    test(`${name}, on special values`, () => {
      checkLaw(250, randomProgram(special), (program) => expectSameMeaning(program, pass, name));
    });
  }
  test('all of them in rounds, on special values', () => {
    checkLaw(500, randomProgram(special), (program) => expectSameMeaning(program, pipeline, 'the pipeline'));
  });
  test('all of them in rounds, on every dtype', () => {
    checkLaw(500, randomProgram(everyDType), (program) =>
      expectSameMeaning(program, pipeline, 'the pipeline'),
    );
  });
  test('all of them in rounds, on tame programs', () => {
    checkLaw(100, randomProgram(), (program) => expectSameMeaning(program, pipeline, 'the pipeline'));
  });
});
