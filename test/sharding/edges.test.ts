// What is written for one process, within a program over whole tensors: together the processes compute what they compute by
// themselves, and gradients of the whole pass through it.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { collectiveDerivatives } from '../../src/autograd/rules-collective.ts';
import { collectiveDerivative } from '../../src/autograd/slots.ts';
import { cotangents } from '../../src/autograd/vjp.ts';
import { full, mul, reduce, reshape, unary } from '../../src/ir/build.ts';
import { dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Mesh } from '../../src/ir/mesh/mesh.ts';
import { splitKey, type Split } from '../../src/ir/mesh/split.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print } from '../../src/ir/text/print.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { partition } from '../../src/sharding/partition.ts';
import { fill } from '../../src/slot.ts';
import { checkLaw } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { partOf, wholeOf } from '../support/ranks/mesh.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../support/ranks/program.ts';
import { casesOf } from '../support/sample.ts';

fill([collectiveDerivative, collectiveDerivatives]);

/** The leading axis is split over all processes, so that each has one row. */
const rowEach = (mesh: Mesh, rank: number): Split => [
  mesh.axes.map(({ name }) => name),
  ...Array.from({ length: rank - 1 }, () => []),
];

/** What `body` makes of the sines of whole values, doubled. */
function within(
  { graph }: Pick<LocalProgram, 'graph'>,
  mesh: Mesh,
  body: (b: GraphBuilder, inputs: readonly Node[]) => readonly Node[],
): Graph {
  const b = new GraphBuilder();
  const parameters = graph.parameters.map(({ attrs }) =>
    b.add('parameter', [], { ...attrs, shape: [mesh.size, ...(attrs.shape as readonly number[])] }),
  );
  const sines = parameters.map((one) => unary(b, 'sin', one as Node));
  return { parameters, outputs: body(b, sines).map((node) => mul(b, node, 2)) };
}

/** The graph's outputs, of these nodes. */
function applied(b: GraphBuilder, { parameters, outputs }: Graph, inputs: readonly Node[]): readonly Node[] {
  const made = new Map<Node, Node>(parameters.map((one, i) => [one as Node, inputs[i]!]));
  for (const node of topological(outputs))
    if (!made.has(node))
      made.set(
        node,
        b.copy(
          node,
          node.inputs.map((input) => made.get(input)!),
        ),
      );
  return outputs.map((output) => made.get(output)!);
}

/** The program between edges, over rows that the processes have. */
function ofRows({ graph, mesh }: LocalProgram): Graph {
  return within({ graph }, mesh, (b, inputs) => {
    const attrs = (node: Node) => ({ mesh: mesh.text, split: splitKey(rowEach(mesh, node.shape.length)) });
    const parts = inputs.map((input) => {
      const row = b.add('toPart', [input], attrs(input)) as Node;
      return reshape(b, row, dims(row).slice(1));
    });
    return applied(b, graph, parts).map((node) => {
      const row = reshape(b, node, [1, ...dims(node)]);
      return b.add('toWhole', [row], attrs(row)) as Node;
    });
  });
}

/** The same without edges, on a stack of all processes. */
const ofStacks = ({ graph, mesh }: LocalProgram): Graph =>
  within({ graph }, mesh, (b, inputs) => applied(b, simulate(graph, mesh), inputs));

function gradientOf(graph: Graph): Graph {
  const b = new GraphBuilder();
  const loss = graph.outputs.map((node) =>
    reduce(
      b,
      'sum',
      unary(b, 'sin', node),
      node.shape.map((_, axis) => axis),
    ),
  );
  const seeds = loss.map(() => full(b, [], 1, 'f64'));
  const found = cotangents(b, loss, seeds, graph.parameters as readonly Node[]);
  return {
    ...graph,
    outputs: found.map((node, i) => node ?? full(b, dims(graph.parameters[i] as Node), 0, 'f64')),
  };
}

/** The outputs of a graph that the processes of a mesh run together, its inputs cut by rows or whole. */
function onMesh(
  graph: Graph,
  mesh: Mesh,
  inputs: readonly HostArray[],
  cut: readonly boolean[],
): HostArray[] {
  const splits = inputs.map(({ shape }, i): Split =>
    cut[i % cut.length] === true ? rowEach(mesh, shape.length) : shape.map(() => []),
  );
  const made = partition(graph, mesh, { inputs: splits, outputs: graph.outputs.map(() => undefined) });
  const stacks = inputs.map((value, i) =>
    stackedRanks(Array.from({ length: mesh.size }, (_, rank) => partOf(mesh, value, splits[i]!, rank))),
  );
  return interpret(simulate(made.graph, mesh), stacks).map(({ dtype, shape: [, ...shape], data }, i) => {
    const size = data.length / mesh.size;
    const parts = Array.from({ length: mesh.size }, (_, rank) => ({
      dtype,
      shape,
      data: data.slice(rank * size, (rank + 1) * size),
    }));
    return wholeOf(mesh, dims(graph.outputs[i]!), parts, made.outputs[i]!);
  });
}

const trial = fc.record({
  program: localProgram(),
  cut: fc.array(fc.boolean(), { minLength: 2, maxLength: 2 }),
});

test('processes compute in a program over whole tensors what they compute by themselves', () => {
  checkLaw(casesOf(800, 40), trial, ({ program, cut }) => {
    const { graph, mesh, inputs } = program;
    const all = graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!)));
    const [edged, stacked] = [ofRows(program), ofStacks(program)];
    expect(print(parse(print(edged)))).toBe(print(edged));
    const expected = interpret(stacked, all);
    onMesh(edged, mesh, all, cut).forEach((value, i) => expectClose(value, expected[i]!, 1e-9));
  });
});

test('and so do their gradients', () => {
  checkLaw(casesOf(400, 20), trial, ({ program, cut }) => {
    const { graph, mesh, inputs } = program;
    const all = graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!)));
    const expected = interpret(gradientOf(ofStacks(program)), all);
    onMesh(gradientOf(ofRows(program)), mesh, all, cut).forEach((value, i) =>
      expectClose(value, expected[i]!, 1e-6),
    );
  });
});
