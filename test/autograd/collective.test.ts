// What a program over several processes means: processes that meet in its collectives compute what one graph over the values of all
// of them computes, and so do its derivatives and batches. Derivatives of that graph are held against differences.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { derivativeBy } from '../../src/autograd/custom.ts';
import { loopCotangents } from '../../src/autograd/rules-loop.ts';
import { collectiveDerivatives } from '../../src/autograd/rules-collective.ts';
import { collectiveDerivative, loopDerivative } from '../../src/autograd/slots.ts';
import { tangentGraph } from '../../src/autograd/jvp/jvp.ts';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { batched } from '../../src/autograd/vmap/vmap.ts';
import { meetOn } from '../../src/compile/interpreted.ts';
import { iterate } from '../../src/ir/control/iterate.ts';
import { allGather, allReduce, permuteRanks, rankIndex } from '../../src/ir/collectives.ts';
import { add, broadcast, cast, mul, unary } from '../../src/ir/build.ts';
import { dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { parseMesh, type Mesh } from '../../src/ir/mesh/mesh.ts';
import { isCollective } from '../../src/ir/ops.ts';
import { regionOf } from '../../src/ir/text/region.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { fill } from '../../src/slot.ts';
import { ranksOf } from '../../src/runtime/communicator.ts';
import { checkLaw, checkLawAsync, seed } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../support/ranks/program.ts';
import { inStep } from '../support/ranks/world.ts';
import { checkGraph, floatInputs, randomNumbers, record, values } from './differences.ts';

fill([loopDerivative, loopCotangents], [collectiveDerivative, collectiveDerivatives]);

/** What every rank computes, by output, stacked. */
async function ofProcesses(
  graph: Graph,
  mesh: Mesh,
  inputs: readonly (readonly HostArray[])[],
): Promise<HostArray[]> {
  const ranks = await inStep(mesh.size, (communicator) =>
    interpret(graph, inputs[communicator.rank]!, meetOn(ranksOf('test', () => communicator))),
  );
  return graph.outputs.map((_, i) => stackedRanks(ranks.map((outputs) => outputs[i]!)));
}

function stackedInputs({ graph, inputs }: Pick<LocalProgram, 'graph' | 'inputs'>): HostArray[] {
  return graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!)));
}

function simulated(graph: Graph, mesh: Mesh): Graph {
  const all = simulate(graph, mesh);
  verify(all, 'simulate');
  expect(topological(all.outputs).filter(({ op }) => isCollective(op) || op === 'rankIndex')).toEqual([]);
  return all;
}

function expectAll(found: readonly HostArray[], expected: readonly HostArray[], tolerance: number): void {
  expect(found.length).toBe(expected.length);
  found.forEach((array, i) => expectClose(array, expected[i]!, tolerance));
}

describe('a graph over the values of all processes computes what they compute', () => {
  test('of f64', async () => {
    await checkLawAsync(150, localProgram(), async ({ graph, mesh, inputs }) => {
      const all = simulated(graph, mesh);
      expectAll(
        interpret(all, stackedInputs({ graph, inputs })),
        await ofProcesses(graph, mesh, inputs),
        1e-9,
      );
    });
  });

  test('of i32, to the bit', async () => {
    await checkLawAsync(150, localProgram({ dtype: 'i32' }), async ({ graph, mesh, inputs }) => {
      const all = simulated(graph, mesh);
      expectAll(interpret(all, stackedInputs({ graph, inputs })), await ofProcesses(graph, mesh, inputs), 0);
    });
  });

  test('every collective comes up', () => {
    const programs = fc.sample(localProgram(), { numRuns: 100, seed: 1 });
    const used = programs.flatMap(({ graph }) => topological(graph.outputs).map(({ op }) => op));
    expect([...new Set(used)].filter(isCollective).toSorted()).toEqual([
      'allGather',
      'allReduce',
      'allToAll',
      'broadcastRank',
      'permuteRanks',
      'reduceScatter',
    ]);
  });

  test('what all have alike stays alike', () => {
    const mesh = parseMesh('a=3')!;
    const graph = record([], (b) => [
      allReduce(
        b,
        broadcast(b, b.add('constant', [], { value: 2, dtype: 'f64' }) as Node, [2]),
        mesh,
        ['a'],
        'sum',
      ),
      rankIndex(b, mesh, ['a']),
    ]);
    const [sum, place] = interpret(simulated(graph, mesh), []);
    expect(sum).toEqual(hostArray('f64', [3, 2], [6, 6, 6, 6, 6, 6]));
    expect(place).toEqual(hostArray('i32', [3], [0, 1, 2]));
  });

  test('graphs of other meshes are refused', () => {
    const [two, three] = [parseMesh('a=2')!, parseMesh('a=3')!];
    const graph = record([values([2], randomNumbers(1))], (b, [x]) => allReduce(b, x!, two, ['a'], 'sum'));
    expect(() => simulate(graph, three)).toThrow(/allReduce: is of the mesh a=2: the processes stand on a=3/);
  });
});

describe('derivatives', () => {
  const few = { steps: 5, meshes: ['a=2', 'a=3', 'a=2,b=2'] };

  test('backwards: of what each process does and of what all do are one', () => {
    checkLaw(120, fc.tuple(localProgram(few), fc.integer()), ([{ graph, mesh, inputs }, dice]) => {
      const wrt = floatInputs(inputs[0]!);
      const of = [0];
      const local = gradientGraph(graph, wrt, { of, seedAll: true });
      verify(local);
      const all = simulated(graph, mesh);
      const gradient = gradientGraph(all, wrt, { of, seedAll: true });
      const random = randomNumbers(dice);
      const at = [...stackedInputs({ graph, inputs }), values(dims(all.outputs[0]!), random)];
      expectAll(interpret(simulated(local, mesh), at), interpret(gradient, at), 1e-9);
      // And once more.
      const again = { of: [graph.outputs.length], seedAll: true };
      const further = [...at, values(dims(gradient.outputs[graph.outputs.length]!), random)];
      expectAll(
        interpret(simulated(gradientGraph(local, wrt, again), mesh), further),
        interpret(gradientGraph(gradient, wrt, again), further),
        1e-8,
      );
    });
  });

  test('backwards: those of all are differences', () => {
    checkLaw(25, fc.tuple(localProgram({ ...few, steps: 4 }), fc.integer()), ([program, dice]) => {
      const all = simulated(program.graph, program.mesh);
      checkGraph(all, stackedInputs(program), randomNumbers(dice));
    });
  });

  test('forwards: of what each process does and of what all do are one', () => {
    checkLaw(120, fc.tuple(localProgram(few), fc.integer()), ([{ graph, mesh, inputs }, dice]) => {
      const wrt = floatInputs(inputs[0]!);
      const all = simulated(graph, mesh);
      const random = randomNumbers(dice);
      const given = stackedInputs({ graph, inputs });
      const at = [...given, ...given.map(({ shape }) => values(shape, random))];
      expectAll(
        interpret(simulated(tangentGraph(graph, wrt), mesh), at),
        interpret(tangentGraph(all, wrt), at),
        1e-9,
      );
    });
  });

  test('an extremum that several places have is shared by them', () => {
    const mesh = parseMesh('a=3')!;
    const graph = record([hostArray('f64', [2], [0, 0])], (b, [x]) => allReduce(b, x!, mesh, ['a'], 'max'));
    const all = simulated(gradientGraph(graph, [0], { seedAll: true }), mesh);
    const x = hostArray('f64', [3, 2], [1, 5, 4, 5, 4, NaN]);
    const [, g] = interpret(all, [x, hostArray('f64', [3, 2], [1, 1, 10, 1, 100, 1])]);
    expect(g).toEqual(hostArray('f64', [3, 2], [0, NaN, 55.5, NaN, 55.5, NaN]));
  });
});

test('a batch of programs is a program of batches', () => {
  const size = 3;
  checkLaw(100, fc.tuple(localProgram({ steps: 5 }), fc.integer()), ([{ graph, mesh }, dice]) => {
    const b = new GraphBuilder();
    const tracers = new Map<Node, Node>();
    const parameters = graph.parameters.map((one) => {
      const all = b.add('parameter', [], { ...one.attrs, shape: [size, ...dims(one as Node)] });
      tracers.set(one as Node, all as Node);
      return all;
    });
    const found = batched(b, graph.outputs, tracers, size);
    const kept = [...graph.outputs.keys()].filter((i) => found[i] !== undefined);
    const ofBatch = simulated({ parameters, outputs: kept.map((i) => found[i]!) }, mesh);
    const random = randomNumbers(dice);
    const inputs = ofBatch.parameters.map(({ attrs }) => values(attrs.shape as readonly number[], random));
    const one = simulated({ ...graph, outputs: kept.map((i) => graph.outputs[i]!) }, mesh);
    const results = interpret(ofBatch, inputs);
    for (let k = 0; k < size; k++) {
      const alone = interpret(
        one,
        inputs.map((input) => example(input, k)),
      );
      alone.forEach((expected, i) => expectClose(example(results[i]!, k), expected, 1e-9));
    }
  });
});

/** Example k of what has the ranks in front, then the examples. */
function example({ dtype, shape, data }: HostArray, k: number): HostArray {
  const [ranks, size, ...own] = shape as [number, number, ...number[]];
  const count = data.length / ranks / size;
  const parts = Array.from({ length: ranks }, (_, rank) =>
    Array.from((data as Float64Array).slice((rank * size + k) * count, (rank * size + k + 1) * count)),
  );
  return hostArray(dtype, [ranks, ...own], parts.flat());
}

describe('inside of others', () => {
  const mesh = parseMesh('a=2,b=2')!;

  test('loops meet in every iteration', async () => {
    const random = randomNumbers(seed);
    const inside = new GraphBuilder();
    const [, x, row] = [
      inside.add('parameter', [], { index: 0, name: 'i', dtype: 'i32', shape: [] }),
      inside.add('parameter', [], { index: 1, name: 'x', dtype: 'f64', shape: [2] }),
      inside.add('parameter', [], { index: 2, name: 'row', dtype: 'f64', shape: [2] }),
    ] as unknown as readonly [Node, Node, Node];
    const i = inside.add('parameter', [], { index: 0, name: 'i', dtype: 'i32', shape: [] });
    const place = broadcast(inside, cast(inside, rankIndex(inside, mesh, ['b']), 'f64'), [2]);
    const next = unary(
      inside,
      'sin',
      add(inside, allReduce(inside, mul(inside, x, place), mesh, ['a'], 'sum'), row),
    );
    const shared = allReduce(inside, place, mesh, ['b'], 'max');
    const body = regionOf({
      parameters: [i, x as never, row as never],
      outputs: [next, permuteRanks(inside, next, mesh, ['b'], [[1, 0]]), shared],
    });
    const inputs = Array.from({ length: 4 }, () => [values([2], random), values([3, 2], random)]);
    const graph = record(inputs[0]!, (b, [first, rows]) =>
      iterate(b, [first!, rows!], {
        body,
        carries: 1,
        stacked: 1,
        trips: 3,
        reverse: false,
        recompute: false,
        guard: -1,
      }),
    );
    const all = interpret(simulate(graph, mesh), stackedInputs({ graph, inputs }));
    expectAll(all, await ofProcesses(graph, mesh, inputs), 1e-12);
    const gradient = gradientGraph(graph, [0, 1], { of: [0], seedAll: true });
    const at = [...stackedInputs({ graph, inputs }), values([4, 2], random)];
    const ofAll = gradientGraph(simulate(graph, mesh), [0, 1], { of: [0], seedAll: true });
    expectAll(interpret(simulate(gradient, mesh), at), interpret(ofAll, at), 1e-12);
  });

  test('rules of custom derivatives meet where they are applied', () => {
    const rule = derivativeBy((b, [x], _, g) => [
      allReduce(b, mul(b, g, unary(b, 'cos', x!)), mesh, ['a'], 'sum'),
    ]);
    const random = randomNumbers(seed);
    const graph = record([values([2], random)], (b, [x]) =>
      allGather(b, rule.node(b, [unary(b, 'sin', x!), x!]), mesh, ['b']),
    );
    const at = [values([4, 2], random), values([4, 4], random)];
    const local = simulated(gradientGraph(graph, [0], { seedAll: true }), mesh);
    const ofAll = gradientGraph(simulated(graph, mesh), [0], { seedAll: true });
    expectAll(interpret(local, at), interpret(ofAll, at), 1e-12);
  });
});
