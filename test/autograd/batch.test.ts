// Batching of every primitive: what it gives for all examples at once is what it gives for each of them, whichever operands are
// mapped. Bit by bit, but for the order of sums.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Together } from '../../src/autograd/vmap/rule.ts';
import { batched } from '../../src/autograd/vmap/vmap.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import { GraphBuilder, topological, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { isCollective, opNames, type Op } from '../../src/ir/ops.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { hostArray, type HostArray, type Scalar } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import * as sn from '../../src/index.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';
import { seed } from '../support/property.ts';
import { record } from './differences.ts';
import { trials } from './trials.ts';
import { describeProgram, expectClose, randomProgram, type Program } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';
import { meshRules } from '../../src/ir/typing/collective.ts';
import { meshTypes } from '../../src/ir/typing/slots.ts';

meshTypes.fill(meshRules);

const runs = Number(process.env['SINTER_BATCH_RUNS'] ?? 300);

type Build = (b: GraphBuilder, inputs: readonly Node[]) => Node;

/** Arrays of one type, one after the other. */
function stacked(examples: readonly HostArray[]): HostArray {
  const { dtype, shape } = examples[0]!;
  const data = examples.flatMap(({ data: each }) => [...(each as Iterable<Scalar>)]);
  return hostArray(dtype, [examples.length, ...shape], data);
}

function example({ dtype, shape, data }: HostArray, index: number, parts: number): HostArray {
  const [, ...rest] = shape;
  const count = sizeOf(rest) * parts;
  return hostArray(dtype, rest, [...(data as Iterable<Scalar>)].slice(index * count, (index + 1) * count));
}

/** The graph over the parameters that `mapped` marks stacked; outputs that are not mapped are undefined. */
function batchGraph(
  graph: Graph,
  mapped: readonly boolean[],
  size: number,
): { graph: Graph; isMapped: boolean[] } {
  const b = new GraphBuilder();
  const tracers = new Map<Node, Node>();
  const parameters = graph.parameters.map((parameter, i): NodeOf<'parameter'> => {
    if (mapped[i] !== true) return parameter;
    const { attrs } = parameter;
    const whole = b.add('parameter', [], { ...attrs, shape: [size, ...attrs.shape] });
    tracers.set(parameter as Node, whole as Node);
    return whole;
  });
  const found = batched(b, graph.outputs, tracers, size);
  return {
    graph: { parameters, outputs: graph.outputs.map((output, i) => found[i] ?? output) },
    isMapped: found.map((node) => node !== undefined),
  };
}

const ops = new Set<Op>();

function checkBatch({ graph, inputs }: Program, dice: number, size: number): void {
  const mapped = inputs.map((_, i) => ((dice >> i) & 1) === 1);
  if (!mapped.includes(true)) mapped[0] = true;
  const examples = inputs.map((input, i) =>
    mapped[i] === true
      ? Array.from({ length: size }, (_, k) =>
          k === 0 ? input : randomArray(input.dtype, input.shape, dice + k, 'tame'),
        )
      : [input],
  );
  const whole = batchGraph(graph, mapped, size);
  verify(whole.graph, 'batchGraph');
  const at = examples.map((each, i) => (mapped[i] === true ? stacked(each) : each[0]!));
  const results = interpret(whole.graph, at);
  for (let k = 0; k < size; k++) {
    const alone = interpret(
      graph,
      examples.map((each) => each[k] ?? each[0]!),
    );
    alone.forEach((expected, i) => {
      const parts = expected.data.length / Math.max(1, sizeOf(expected.shape));
      const result = whole.isMapped[i] === true ? example(results[i]!, k, parts || 1) : results[i]!;
      expectClose(result, expected, isFloat(expected.dtype) ? 1e-5 : 0);
    });
  }
  for (const { op, inputs: read } of topological(graph.outputs)) if (read.length > 0) ops.add(op);
}

for (const op of opNames) {
  const trial = trials[op];
  if (typeof trial === 'string') continue;
  it(op, () => {
    const samples = fc.tuple(trial, fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 3 }));
    fc.assert(
      fc.property(samples, ([{ inputs, build }, dice, size]) =>
        checkBatch({ graph: record(inputs, build), inputs }, dice, size),
      ),
      { numRuns: 20, seed },
    );
  });
}

/** Primitives that only passes and linear algebra make, and random words from counters of each example's own. */
const cases: Readonly<Record<string, { readonly inputs: readonly HostArray[]; readonly build: Build }>> = {
  radixRank: {
    inputs: [hostArray('u32', [2, 5], [3, 1, 2, 1, 0, 7, 7, 0, 4, 1])],
    build: (b, [x]) => b.add('radixRank', [x!], { shift: 0, digits: 4, block: 2 }) as Node,
  },
  // Rows of two blocks: codes in eight words, scales in the next.
  dequantize: {
    inputs: [
      hostArray(
        'u32',
        [2, 12],
        Array.from({ length: 24 }, (_, i) => 0x3c003c00 + 7 * i),
      ),
    ],
    build: (b, [x]) => b.add('dequantize', [x!], { format: 'q4_0', columns: 64 }) as Node,
  },
  jacobiRows: {
    inputs: [hostArray('f64', [1, 2, 3], [3, 1, 2, 1, 0, 7])],
    build: (b, [x]) => b.add('jacobiRows', [x!], { width: 3, parts: 1 }) as Node,
  },
  completeRows: {
    inputs: [hostArray('f64', [1, 2, 2], [1, 0, 0, 0]), hostArray('bool', [1, 2], [0, 1])],
    build: (b, [x, missing]) => b.add('completeRows', [x!, missing!], { parts: 1 }) as Node,
  },
  randomBits: {
    inputs: [1, 2, 0xfffffffe, 3].map((word) => hostArray('u32', [], [word])),
    build: (b, words) => b.add('randomBits', words, { shape: [3, 5] }) as Node,
  },
  stopGradient: {
    inputs: [hostArray('f64', [2], [1, 2])],
    build: (b, [x]) => b.add('stopGradient', [x!], {}) as Node,
  },
};

for (const [name, { inputs, build }] of Object.entries(cases)) {
  it(name, () => {
    for (const dice of [1, 2, 3, 5, 15]) checkBatch({ graph: record(inputs, build), inputs }, dice, 3);
  });
}

const programs = randomProgram({ maxSteps: 10, maxElements: 60 });

it(`${runs} random programs: a batch is a stack of calls`, () => {
  fc.assert(
    fc.property(
      programs,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 3 }),
      (program, dice, size) => {
        try {
          checkBatch(program, dice, size);
        } catch (error) {
          throw new Error(`${String(error)}\n${describeProgram(program)}`, { cause: error });
        }
      },
    ),
    { numRuns: runs, seed },
  );
  console.log(`seed ${seed}: ${ops.size} primitives: ${[...ops].toSorted().join(' ')}`);
  const never: ReadonlySet<Op> = new Set(['parameter', 'constant', 'iota', 'rankIndex']);
  // `flat` ops that no trial has are tried by programs, some of them seldom.
  const missed = opNames.filter((op) => !ops.has(op) && !never.has(op) && !isCollective(op));
  if (runs >= 3000) expect(missed).toEqual([]);
});

it('a loop in a loop costs its own nodes again, not those of the loop inside', () => {
  type Three = readonly [sn.Tensor, sn.Tensor, sn.Tensor];
  const nested = (depth: number, [x, y, z]: Three): Three => {
    if (depth === 0) return [x.add(y).sin(), y.mul(z), z.add(1)];
    const once = (held: Three): Three => {
      const [p, q, r] = nested(depth - 1, held);
      return [p, q.add(p), r];
    };
    const [ended, sums] = sn.scan((held: Three) => [once(held), held[1]], [x, y, z] as Three, undefined, {
      length: 3,
    }) as [Three, sn.Tensor];
    return [ended[0].add(sums.sum()), ended[1], ended[2]];
  };
  /** How many nodes are batched where the first argument is mapped. */
  const visited = (depth: number): number => {
    const one = sn.tensor(1);
    const { graph } = traceFunction((...args: Three) => nested(depth, args), [one, one, one]);
    const b = new GraphBuilder();
    const [first] = graph.parameters;
    const whole = b.add('parameter', [], { ...first!.attrs, shape: [2] }) as Node;
    let count = 0;
    const together: Together = {
      key: `count ${depth}`,
      onAll: () => {
        count++;
        return undefined;
      },
    };
    batched(b, graph.outputs, new Map([[first as Node, whole]]), 2, undefined, together);
    return count;
  };
  const [one, two, three, four] = [1, 2, 3, 4].map(visited) as [number, number, number, number];
  expect(two - one).toBeGreaterThan(0);
  expect(three - two).toBeLessThanOrEqual(2 * (two - one));
  expect(four - three).toBeLessThanOrEqual(2 * (two - one));
});
