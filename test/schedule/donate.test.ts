// Donated inputs: a result is written over the input that it updates, however callers paired them, and then takes no binding of
// its own.

import { describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, broadcast, mul, sub, unary } from '../../src/ir/build.ts';
import type { Graph, Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { pairDonations } from '../../src/schedule/memory/donate.ts';
import { gpuTarget, softwareTarget, wasmTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { runLoops } from '../support/execute.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';

const shape = [16, 16];

/** A moment that runs along with a gradient, its square, and the parameter that they move: all of one type. */
function adam(s: Sketch, g: Node, [p, m, v]: readonly [Node, Node, Node]): [Node, Node, Node] {
  const mean = add(s.b, mul(s.b, m, 0.5), g);
  const square = add(s.b, mul(s.b, v, 0.5), mul(s.b, g, g));
  return [sub(s.b, p, mul(s.b, mean, add(s.b, square, 1))), mean, square];
}

describe('results and inputs are paired by what updates what', () => {
  test('in whatever order they are offered', () => {
    const s = new Sketch();
    const state = [0, 1, 2].map(() => s.input(shape)) as [Node, Node, Node];
    const results = adam(s, s.input(shape), state);
    for (const order of [
      [0, 1, 2],
      [1, 2, 0],
      [2, 1, 0],
    ]) {
      const offered = new Map(order.map((from, to) => [results[to]!, state[from]!]));
      expect(pairDonations(offered)).toEqual(new Map(results.map((result, i) => [result, state[i]!])));
    }
  });

  test('across parameters of one shape', () => {
    const s = new Sketch();
    const states = [0, 1].map(() => [0, 1, 2].map(() => s.input(shape)) as [Node, Node, Node]);
    const results = states.flatMap((state) => adam(s, s.input(shape), state));
    // As they come when the trace meets moments first.
    const met = states.flatMap(([p, m, v]) => [m, v, p]);
    const offered = new Map(results.map((result, i) => [result, met[i]!]));
    expect(pairDonations(offered)).toEqual(new Map(results.map((result, i) => [result, states.flat()[i]!])));
  });

  test('and what updates nothing takes what is left of its type', () => {
    const s = new Sketch();
    const [p, q, x] = [s.input(shape), s.input(shape), s.input(shape)];
    const [moved, product] = [unary(s.b, 'exp', p), s.matmul(x, x)];
    const offered = new Map([
      [product, p],
      [moved, q],
    ]);
    expect(pairDonations(offered)).toEqual(
      new Map([
        [moved, p],
        [product, q],
      ]),
    );
  });
});

describe('a result that is written over its input takes no binding', () => {
  /** A weight's gradient, and four tensors that follow from it: two operands, four inputs, four results. */
  function graph(): Graph {
    const s = new Sketch();
    const g = s.dot(s.input([32, 16]), s.input([32, 16]), [], [], [0], [0]);
    const [p, m, v, w] = [1, 2, 3, 4].map(() => s.input(shape)) as [Node, Node, Node, Node];
    const [moved, mean, square] = adam(s, g, [p, m, v]);
    return s.graph([moved, mean, square, add(s.b, mul(s.b, w, 0.9), moved)]);
  }
  const donate = new Map([2, 3, 4, 5].map((parameter, i) => [parameter, i]));

  test.each([gpuTarget, softwareTarget])('on $name', (target) => {
    const { program } = compileGraph(graph(), target, { donate, check: true });
    expect(program.steps.length).toBe(1);
    expect(program.donated.length).toBe(4);
    expect(program.kernels[0]!.bindings.length).toBe(6);
    expect(compileGraph(graph(), target).program.steps.length).toBeGreaterThan(1);
  });

  test('and where it cannot be, the kernel still binds no more than it may', () => {
    const { parameters, outputs } = graph();
    // Read after it would have been overwritten.
    const s = new Sketch();
    const late = s.b.add('dot', [outputs[0]!, parameters[2] as Node], {
      lhsBatch: [],
      rhsBatch: [],
      lhsContract: [1],
      rhsContract: [0],
      dtype: 'f32',
    }) as Node;
    const whole: Graph = { parameters, outputs: [...outputs, late] };
    const inputs = parameters.map(({ dtype }, i) =>
      randomArray(dtype, parameters[i]!.shape as number[], i + 1, 'tame'),
    );
    const { program } = compileGraph(whole, gpuTarget, { donate, check: true });
    for (const { bindings } of program.kernels) expect(bindings.length).toBeLessThanOrEqual(8);
    expect(program.donated.map(({ input }) => input)).not.toContain(2);
    const expected = interpret(whole, inputs);
    runLoops(gpuTarget, whole, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-3));
  });
});

describe('a scatter that is written over its operand copies nothing', () => {
  /** Rows of updates into each of two caches, which are read as a whole after that. */
  function graph(isReadBefore: boolean): Graph {
    const s = new Sketch();
    const rows = broadcast(s.b, s.input([2, 1], 'i32'), [2, 16]);
    const caches = [s.input(shape), s.input(shape)];
    const next = caches.map(
      (cache, i) =>
        s.b.add('scatter', [cache, rows, s.input([2, 16])], {
          axis: 0,
          mode: i === 0 ? 'set' : 'add',
        }) as Node,
    );
    const use = s.matmul(next[0]!, isReadBefore ? caches[1]! : next[1]!);
    return s.graph([...next, use]);
  }
  // Offered the wrong way round.
  const donate = new Map([
    [2, 0],
    [1, 1],
  ]);
  const inputsOf = ({ parameters }: Graph): HostArray[] =>
    parameters.map(({ dtype, shape: own }, i) =>
      dtype === 'i32'
        ? hostArray('i32', [2, 1], [11, 3])
        : randomArray(dtype, own as number[], i + 1, 'tame'),
    );

  test.each([gpuTarget, softwareTarget, wasmTarget])('on $name', (target) => {
    const whole = graph(false);
    const { program, kernels } = compileGraph(whole, target, { donate, check: true });
    expect(program.donated).toEqual([
      { output: 0, input: 1 },
      { output: 1, input: 2 },
    ]);
    expect(program.steps.every(({ kind }) => kind === 'dispatch')).toBe(true);
    const scatters = kernels.filter(({ kind }) => kind === 'scatter');
    // 2 rows of 16 are read, and written; those that are added to are read too. And two indices.
    expect(scatters.map(({ bytes }) => bytes)).toEqual([2 * 128 + 8, 3 * 128 + 8]);
    const inputs = inputsOf(whole);
    const expected = interpret(whole, inputs);
    const found = runLoops(target, whole, inputs, undefined, donate);
    found.forEach((got, i) => expectClose(got, expected[i]!, 1e-4));
  });

  test('unless the operand is wanted as it was', () => {
    const whole = graph(true);
    const inputs = inputsOf(whole);
    const expected = interpret(whole, inputs);
    const found = runLoops(gpuTarget, whole, inputs, undefined, donate);
    found.forEach((got, i) => expectClose(got, expected[i]!, 1e-4));
  });
});
