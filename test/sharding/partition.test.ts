// A program over whole tensors, and what the processes of a mesh make of it together: the same values, whatever is split.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { cotangents } from '../../src/autograd/vjp.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import { full } from '../../src/ir/build.ts';
import { dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { parseMesh, type Mesh } from '../../src/ir/mesh/mesh.ts';
import { partsOf, showSplit, wholeShape, type Split } from '../../src/ir/mesh/split.ts';
import { isCollective } from '../../src/ir/ops.ts';
import { print } from '../../src/ir/text/print.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { partition } from '../../src/sharding/partition.ts';
import { partOf, runOnMesh, wholeOf } from '../support/ranks/mesh.ts';
import type { StepKind } from '../support/random/steps.ts';
import { checkLaw } from '../support/property.ts';
import { expectClose, randomProgram, type Program } from '../support/random/graph.ts';
import { casesOf } from '../support/sample.ts';

const meshes = ['data=2', 'data=3', 'a=2,b=2', 'a=2,b=3', 'data=4', 'a=2,b=2,c=2', 'data=1'].map((text) =>
  parseMesh(text)!,
);

/** Sizes that meshes divide in several ways. */
const sizes = [1, 2, 4, 6, 8, 12, 3, 2, 4, 6, 0];

/** A split that fits a shape, chosen by numbers: each mesh axis goes to some axis of the value, or to none. */
function splitFor(mesh: Mesh, shape: readonly number[], dice: readonly number[]): Split {
  const split: string[][] = shape.map(() => []);
  mesh.axes.forEach(({ name }, i) => {
    const axis = dice[i % dice.length]! % (shape.length + 1);
    const names = split[axis];
    if (names !== undefined && shape[axis]! % partsOf(mesh, [...names, name]) === 0) names.push(name);
  });
  return split;
}

/** Runs a graph on a mesh, its inputs and some of its outputs split as the dice say. Fails where a value is not laid out as is told. */
function onMesh({ graph, inputs }: Program, mesh: Mesh, dice: readonly number[]): HostArray[] {
  const at = (i: number): number[] => dice.map((die) => Math.floor(die / (i + 1)));
  const given = graph.parameters.map((node, i) => splitFor(mesh, dims(node), at(i)));
  const wanted = graph.outputs.map((node, i) =>
    dice[i % dice.length]! % 3 === 0 ? undefined : splitFor(mesh, dims(node), at(i + 3)),
  );
  const made = partition(graph, mesh, { inputs: given, outputs: wanted });
  try {
    const own = Array.from({ length: mesh.size }, (_, rank) =>
      inputs.map((value, i) => partOf(mesh, value, given[i]!, rank)),
    );
    const complete = [...made.layouts].filter(([, { pending }]) => pending === undefined);
    const results = runOnMesh(
      { ...made.graph, outputs: [...made.graph.outputs, ...complete.map(([node]) => node)] },
      own,
    );
    complete.forEach(([node, { split }], i) => {
      const parts = results.map((values) => values[graph.outputs.length + i]!);
      wholeOf(mesh, wholeShape(mesh, dims(node), split), parts, split);
    });
    const meetings = topological(made.graph.outputs).filter((node) => isCollective(node.op));
    expect([...made.useOf.keys()].map(({ id }) => id).toSorted()).toEqual(
      meetings.map(({ id }) => id).toSorted(),
    );
    expect(made.collectives).toHaveLength(meetings.length);
    return graph.outputs.map((node, i) => {
      if (wanted[i] !== undefined) expect(made.outputs[i]).toEqual(wanted[i]);
      const parts = results.map((values) => values[i]!);
      return wholeOf(mesh, dims(node), parts, made.outputs[i]!);
    });
  } catch (error) {
    const splits = given.map(showSplit).join(' ');
    throw new Error(
      `on ${mesh.text}, inputs split ${splits}\n${print(graph)}\nbecame\n${print(made.graph)}`,
      {
        cause: error,
      },
    );
  }
}

const randomCase = (without: readonly StepKind[]) =>
  fc.record({
    program: randomProgram({ sizes, maxSteps: 14, dtypes: ['f32', 'i32', 'bool', 'f64'], without }),
    mesh: fc.constantFrom(...meshes),
    dice: fc.array(fc.nat({ max: 2 ** 20 }), { minLength: 6, maxLength: 6 }),
  });

test('random programs on meshes equal the whole program', () => {
  checkLaw(casesOf(3000, 120), randomCase([]), ({ program, mesh, dice }) => {
    const expected = interpret(program.graph, program.inputs);
    onMesh(program, mesh, dice).forEach((value, i) => expectClose(value, expected[i]!, 1e-4));
  });
});

/** The gradients of the sum of the float outputs, by the float parameters; undefined where there is none. */
function gradientOf(graph: Graph): Graph | undefined {
  const b = new GraphBuilder();
  const parameters = graph.parameters.filter(({ dtype }) => isFloat(dtype)) as readonly Node[];
  const outputs = graph.outputs.filter(({ dtype }) => isFloat(dtype));
  if (parameters.length === 0 || outputs.length === 0) return undefined;
  const seeds = outputs.map((node) => full(b, dims(node), 1, node.dtype));
  const found = cotangents(b, outputs, seeds, parameters);
  const gradients = found.flatMap((node) => (node === undefined ? [] : [node]));
  return gradients.length === 0 ? undefined : { ...graph, outputs: gradients };
}

test('gradients of random programs on meshes equal those of the whole program', () => {
  checkLaw(casesOf(1500, 60), randomCase(['factor']), ({ program, mesh, dice }) => {
    const graph = gradientOf(program.graph);
    if (graph === undefined) return;
    const expected = interpret(graph, program.inputs);
    onMesh({ ...program, graph }, mesh, dice).forEach((value, i) => expectClose(value, expected[i]!, 1e-4));
  });
});
