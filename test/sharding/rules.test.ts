// The sharding rule of every primitive: what processes compute of their parts, put together, is what the op computes of the whole,
// and where a rule says that an op is linear, sums of its results are the results of sums.

import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';

import { isInexact, realDTypes } from '../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { evaluateNode } from '../../src/ir/interpret/interpret.ts';
import { parseMesh, type Mesh } from '../../src/ir/mesh/mesh.ts';
import { opNames, type Op } from '../../src/ir/ops.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { linearOf, ruleOf, shardingRules } from '../../src/sharding/rules.ts';
import { seed } from '../support/property.ts';
import { describeProgram, randomProgram } from '../support/random/graph.ts';
import type { ValueKind } from '../support/random/values.ts';
import { randomLoop } from '../support/random/loop.ts';
import { casesOf, needsWholeFile } from '../support/sample.ts';
import { randomNumbers } from '../autograd/differences.ts';
import { checkForm, combine, drawAssignment, expectNear, largestOf, roundings, runSplit } from './split.ts';
import { Dice, isFinite, isNumeric, nodeTrials } from './trials.ts';

const meshes = ['x=2', 'x=3', 'x=4', 'x=2,y=2', 'x=2,y=3'].map((text) => parseMesh(text)!);

/** Ops of which something was split, folded, and summed over processes. */
const split = new Set<Op>();
const folded = new Set<Op>();
const summed = new Set<Op>();

function checkSplit(
  node: Node,
  inputs: readonly HostArray[],
  mesh: Mesh,
  random: () => number,
  folds: boolean,
): void {
  const rule = ruleOf(node)!;
  checkForm(node, rule);
  const assignment = drawAssignment(rule, mesh, random, folds);
  const whole = evaluateNode(node, inputs);
  const { value, largest, fold } = runSplit(node, inputs, rule, mesh, assignment);
  try {
    expectNear(value, whole, fold === undefined ? 0 : roundings(node.dtype) * Math.max(1, largest));
  } catch (error) {
    throw new Error(`${mesh.text} splits ${JSON.stringify(rule)} as ${JSON.stringify(assignment)}`, {
      cause: error,
    });
  }
  if (assignment.some((names) => names.length > 0)) split.add(node.op);
  if (fold !== undefined) folded.add(node.op);
}

/** Parts that add up to the whole, up to rounding. */
function addends(whole: HostArray, count: number, dice: Dice): HostArray[] {
  const drawn = Array.from({ length: count - 1 }, () => dice.array(whole.dtype, whole.shape));
  return [...drawn, drawn.reduce((rest, each) => combine('sub', rest, each), whole)];
}

function checkLinear(node: Node, inputs: readonly HostArray[], dice: Dice): void {
  const linear = linearOf(node);
  if (linear === undefined || !inputs.every(isFinite)) return;
  const chosen = linear.kind === 'one' ? [dice.one(linear.operands)] : linear.operands;
  if (!chosen.every((operand) => isNumeric(inputs[operand]!.dtype)) || !isNumeric(node.dtype)) return;
  const whole = evaluateNode(node, inputs);
  if (!isFinite(whole)) return;
  const count = 2 + dice.below(2);
  const parts = new Map(chosen.map((operand) => [operand, addends(inputs[operand]!, count, dice)]));
  const results = Array.from({ length: count }, (_, i) =>
    evaluateNode(
      node,
      inputs.map((input, operand) => parts.get(operand)?.[i] ?? input),
    ),
  );
  const sum = results.reduce((all, each) => combine('add', all, each));
  const narrowest = Math.max(roundings(node.dtype), ...inputs.map(({ dtype }) => roundings(dtype)));
  const largest = largestOf([...results, ...[...parts.values()].flat()]);
  expectNear(sum, whole, isInexact(node.dtype) ? narrowest * Math.max(1, largest) : 0);
  summed.add(node.op);
}

/** The order of folds shows beside special values. */
function checkNode(
  node: Node,
  inputs: readonly HostArray[],
  mesh: Mesh,
  drawn: number,
  values: ValueKind = 'tame',
): void {
  const random = randomNumbers(drawn);
  checkSplit(node, inputs, mesh, random, values === 'tame');
  if (values === 'tame') checkLinear(node, inputs, new Dice(random));
}

/** Each node of a graph on its own. */
function checkGraph(
  graph: Graph,
  inputs: readonly HostArray[],
  mesh: Mesh,
  drawn: number,
  values: ValueKind,
): void {
  const known = new Map<Node, HostArray>();
  graph.parameters.forEach((parameter, i) => known.set(parameter as Node, inputs[i]!));
  for (const [step, node] of topological(graph.outputs).entries()) {
    const read = node.inputs.map((input) => known.get(input)!);
    if (!known.has(node)) known.set(node, evaluateNode(node, read));
    if (ruleOf(node) === undefined) continue;
    try {
      checkNode(node, read, mesh, drawn + step, values);
    } catch (error) {
      throw new Error(`${node.op}: ${String(error)}: ${String((error as Error).cause)}`, { cause: error });
    }
  }
}

const drawing = fc.tuple(fc.constantFrom(...meshes), fc.integer());

describe('parts put together', () => {
  for (const op of opNames) {
    const make = nodeTrials[op];
    if (make === undefined) continue;
    it(op, () => {
      fc.assert(
        fc.property(drawing, ([mesh, drawn]) => {
          const { node, inputs } = make(new Dice(randomNumbers(drawn)));
          try {
            checkNode(node, inputs, mesh, drawn);
          } catch (error) {
            const parameters = inputs.map((_, i) => node.inputs[i] as never);
            const program = describeProgram({ graph: { parameters, outputs: [node] }, inputs });
            throw new Error(`${String(error)}: ${String((error as Error).cause)}${program}`, {
              cause: error,
            });
          }
        }),
        { numRuns: casesOf(300, 60), seed },
      );
    });
  }

  const sizes = [2, 4, 6, 3, 1, 8, 12, 0];
  const programs = (values: 'tame' | 'special') =>
    randomProgram({ maxSteps: 14, sizes, values, dtypes: realDTypes, maxElements: 400 });

  for (const values of ['tame', 'special'] as const) {
    it(`the ops of random programs on ${values} values`, () => {
      fc.assert(
        fc.property(programs(values), drawing, (program, [mesh, drawn]) => {
          checkGraph(program.graph, program.inputs, mesh, drawn, values);
        }),
        { numRuns: casesOf(2000, 150), seed },
      );
    });
  }
});

it('random loops', () => {
  fc.assert(
    fc.property(fc.integer(), drawing, (loop, [mesh, drawn]) => {
      const { graph, inputs } = randomLoop(loop);
      checkGraph(graph, inputs, mesh, drawn, 'tame');
    }),
    // The first has a loop in its body, one of whose results does not depend on the operand that is split.
    { numRuns: casesOf(1000, 100), seed, examples: [[1767067683, [parseMesh('x=2')!, 0]]] },
  );
});

test('every op with a rule was split', (context) => {
  needsWholeFile(context);
  const isCalled = (op: Op, ...words: readonly string[]): boolean =>
    words.some((word) => shardingRules[op] === word);
  // A shard is where its own split says (partition.ts).
  const isLaidOut = (op: Op): boolean => op === 'shard' || split.has(op);
  // Elementwise ops have one rule together, and some of them are rare.
  const words = ['source', 'collective', 'edge', 'whole', 'elementwise'] as const;
  const missed = opNames.filter((op) => !isLaidOut(op) && !isCalled(op, ...words));
  expect(missed).toEqual([]);
});
