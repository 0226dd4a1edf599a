// Runs alone: it measures time.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkScalarLoss, cotangents, gradientGraph } from '../../src/autograd/vjp.ts';
import { TensorError } from '../../src/errors.ts';
import { add, binary, cast, full, fullLike, mul, reduce, unary } from '../../src/ir/build.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import { GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { showType } from '../../src/ir/infer.ts';
import { fixedShape, sizeOf } from '../../src/ir/shape.ts';
import { hostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { randomProgram } from '../support/random/graph.ts';
import { record } from './differences.ts';
import { cpuTime } from '../support/cpu-time.ts';

const vector = (...values: number[]) => hostArray('f64', [values.length], values);
const scalar = (value: number) => hostArray('f64', [], [value]);

function parameter(
  b: GraphBuilder,
  index: number,
  shape: readonly number[] = [],
  dtype: 'f32' | 'i32' = 'f32',
): Node {
  return b.add('parameter', [], { index, name: `x${index}`, dtype, shape }) as Node;
}

describe('cotangents', () => {
  it('add up over every path', () => {
    // d(x² + x·eˣ)/dx at 1
    const graph = record([scalar(1)], (b, [x]) => add(b, mul(b, x!, x!), mul(b, x!, unary(b, 'exp', x!))));
    const [, g] = interpret(gradientGraph(graph, [0]), [scalar(1)]);
    expect(g!.data[0]).toBeCloseTo(2 + 2 * Math.E, 12);
  });

  it('are undefined without a path, or only a flat one', () => {
    const b = new GraphBuilder();
    const [x, y, z] = [parameter(b, 0), parameter(b, 1), parameter(b, 2)];
    const stopped = b.add('stopGradient', [y], {}) as Node;
    const loss = add(b, mul(b, x, unary(b, 'floor', z)), stopped);
    const [gx, gy, gz] = cotangents(b, [loss], [full(b, [], 1, 'f32')], [x, y, z]);
    expect(gx).toBe(unary(b, 'floor', z));
    expect([gy, gz]).toEqual([undefined, undefined]);
  });

  it('of an output for itself are its seed, and of inner nodes what reaches them', () => {
    const b = new GraphBuilder();
    const x = parameter(b, 0);
    const inner = unary(b, 'sin', x);
    const loss = mul(b, inner, x);
    const seed = parameter(b, 1);
    const [gLoss, gInner] = cotangents(b, [loss], [seed], [loss, inner]);
    expect(gLoss).toBe(seed);
    expect(gInner).toBe(mul(b, seed, x));
  });

  it('of several outputs add up', () => {
    const b = new GraphBuilder();
    const [x, s, t] = [parameter(b, 0), parameter(b, 1), parameter(b, 2)];
    expect(cotangents(b, [x, x], [s, t], [x])).toEqual([add(b, s, t)]);
  });

  it('do not visit what is older than everything sought', () => {
    const b = new GraphBuilder();
    const visited = (): never => {
      throw new Error('visited');
    };
    const frozen = Object.defineProperty({ ...unary(b, 'sin', parameter(b, 0)) }, 'inputs', { get: visited });
    const x = parameter(b, 1);
    const [g] = cotangents(b, [mul(b, x, frozen)], [full(b, [], 1, 'f32')], [x]);
    expect(g === frozen).toBe(true);
  });

  it('of a sum of products are the operands themselves: ones are not multiplied with', () => {
    const graph = record([vector(1, 2), vector(3, 4)], (b, [x, y]) => reduce(b, 'sum', mul(b, x!, y!), [0]));
    const { parameters, outputs } = gradientGraph(graph, [0, 1]);
    expect(outputs.slice(1)).toEqual([parameters[1], parameters[0]]);
  });

  it('of a mean are one constant', () => {
    const graph = record([vector(1, 2, 3, 4)], (b, [x]) => mul(b, reduce(b, 'sum', x!, [0]), 0.25));
    const { outputs } = gradientGraph(graph, [0]);
    expect(topological([outputs[1]!]).map((node) => node.op)).toEqual(['constant', 'broadcast']);
  });
});

describe('gradientGraph', () => {
  const graph = record([vector(1, 2), scalar(3), scalar(4)], (b, [x, y]) => [
    mul(b, reduce(b, 'sum', unary(b, 'sin', x!), [0]), y!),
    cast(b, y!, 'i32'),
    unary(b, 'exp', x!),
  ]);

  it('keeps parameters and outputs, and appends seeds and gradients', () => {
    const joint = gradientGraph(graph, [0, 2]);
    verify(joint, 'gradientGraph');
    expect(joint.parameters.map(({ attrs }) => attrs.name)).toEqual(['x0', 'x1', 'x2', 'seed2']);
    expect(joint.outputs).toHaveLength(5);
    const inputs = [vector(1, 2), scalar(3), scalar(4), vector(10, 100)];
    const results = interpret(joint, inputs);
    expect(results.slice(0, 3)).toEqual(interpret(graph, inputs.slice(0, 3)));
    const expected = [3 * Math.cos(1) + 10 * Math.E, 3 * Math.cos(2) + 100 * Math.exp(2)];
    expected.forEach((value, i) => expect(results[3]!.data[i]).toBeCloseTo(value, 10));
    expect(results[4]).toEqual(scalar(0));
  });

  it('differentiates the outputs asked for, with seeds for all of them if asked', () => {
    expect(gradientGraph(graph, [0], { of: [0] }).parameters).toHaveLength(3);
    const joint = gradientGraph(graph, [1], { of: [0], seedAll: true });
    expect(joint.parameters.at(-1)).toMatchObject({ shape: [], attrs: { name: 'seed0', index: 3 } });
  });

  it('shares nodes between the passes: exp is computed once', () => {
    const exp = record([scalar(1)], (b, [x]) => unary(b, 'exp', x!));
    const { outputs } = gradientGraph(exp, [0]);
    expect(outputs[1]).toBe(outputs[0]);
  });

  it('applies to its own result: the fourth derivative of sin is sin', () => {
    let derivative: Graph = record([scalar(0.7)], (b, [x]) => unary(b, 'sin', x!));
    for (let i = 0; i < 4; i++) {
      const { parameters, outputs } = gradientGraph(derivative, [0]);
      derivative = { parameters, outputs: [outputs[1]!] };
    }
    expect(interpret(derivative, [scalar(0.7)])[0]!.data[0]).toBeCloseTo(Math.sin(0.7), 12);
  });
});

describe('any program', () => {
  it('of any dtypes has a first and a second derivative of the right types, and the same results', () => {
    // Reflections have no derivative of their own; factors have programs in their own tests.
    const programs = randomProgram({ without: ['factor'] });
    const property = fc.property(programs, ({ graph, inputs }) => {
      const floats = (graph: Graph): number[] =>
        graph.parameters.flatMap(({ dtype }, i) => (isFloat(dtype) ? [i] : []));
      if (!graph.outputs.some(({ dtype }) => isFloat(dtype))) return;
      const first = gradientGraph(graph, floats(graph));
      verify(first, 'first derivative');
      const seeds = first.parameters.slice(inputs.length).map(({ dtype, shape }) => {
        const size = sizeOf(fixedShape(shape, 'seed'));
        return hostArray(dtype, fixedShape(shape, 'seed'), new Float64Array(size).fill(1));
      });
      const results = interpret(first, [...inputs, ...seeds]);
      expect(results.slice(0, graph.outputs.length)).toEqual(interpret(graph, inputs));
      const gradients = first.outputs.slice(graph.outputs.length);
      expect(gradients.map(showType)).toEqual(floats(graph).map((i) => showType(graph.parameters[i]!)));
      if (gradients.length === 0) return;
      verify(gradientGraph({ ...first, outputs: gradients }, floats(first)), 'second derivative');
    });
    fc.assert(property, { numRuns: 200 });
  });
});

describe('errors name what cannot be differentiated', () => {
  const b = new GraphBuilder();
  const [x, n] = [parameter(b, 0, [2]), parameter(b, 1, [2], 'i32')];
  const one = full(b, [2], 1, 'f32');

  it.each([
    ['an integer sought', () => cotangents(b, [x], [one], [n]), /float dtype.*i32\[2\]/],
    ['an integer output', () => cotangents(b, [n], [n], [x]), /output.*float dtype.*i32\[2\]/],
    [
      'a seed of another shape',
      () => cotangents(b, [x], [full(b, [], 1, 'f32')], [x]),
      /f32\[\] for f32\[2\]/,
    ],
    ['a missing seed', () => cotangents(b, [x, x], [one], [x]), /2 output\(s\).*got 1/],
    ['a loss that is a vector', () => checkScalarLoss('backward', x), /backward: .*one element.*f32\[2\]/],
    [
      'a loss of integers',
      () => checkScalarLoss('backward', n),
      /backward: the loss must be of a float dtype/,
    ],
    [
      'a parameter that is not there',
      () => gradientGraph({ parameters: [], outputs: [one] }, [3]),
      /no parameter 3/,
    ],
    [
      'no float output',
      () => gradientGraph({ parameters: [], outputs: [fullLike(b, n, 1)] }, []),
      /no output has a float dtype/,
    ],
  ])('%s', (_, run, message) => {
    expect(run).toThrow(TensorError);
    expect(run).toThrow(expect.objectContaining({ code: 'E_GRAD' }));
    expect(run).toThrow(message);
  });

  it('a loss of one element in any shape is fine', () => {
    expect(() => checkScalarLoss('backward', full(b, [1, 1], 1, 'f32'))).not.toThrow();
  });
});

/** x ← c·tanh x + x, whose derivative takes a few nodes a step. */
function chain(steps: number): Graph {
  return record([hostArray('f32', [4], [1, 2, 3, 4])], (b, [x]) => {
    let y = x!;
    for (let i = 0; i < steps; i++) y = add(b, mul(b, unary(b, 'tanh', y), 1 + 1 / (i + 2)), y);
    return reduce(b, 'sum', binary(b, 'max', y, 0), [0]);
  });
}

/** Milliseconds that differentiating the chain takes. */
const time = (steps: number): number => {
  const graph = chain(steps);
  return cpuTime(() => gradientGraph(graph, [0]));
};

describe('size', () => {
  it('the adjoint of a window takes few nodes, however long the window is', () => {
    const graph = record([hostArray('f32', [400], new Float32Array(400))], (b, [x]) => {
      return b.add('window', [x!], { axis: 0, size: 100, stride: 2, dilation: 3 }) as Node;
    });
    expect(topological(gradientGraph(graph, [0]).outputs).length).toBeLessThan(16);
  });

  it('100,000 nodes neither overflow the stack nor take more than linear time', () => {
    time(2_000);
    const small = Math.min(time(2_000), time(2_000), time(2_000));
    const large = Math.min(time(20_000), time(20_000));
    // Five nodes a step. Quadratic time would take a hundred times as long.
    expect(large).toBeLessThan(50 * small);
  });
});
