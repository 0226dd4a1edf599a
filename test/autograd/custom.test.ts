import { describe, expect, it } from 'vitest';
import { customOf, derivativeBy, type CustomRule } from '../../src/autograd/custom.ts';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { add, cast, mul, neg, reduce, unary } from '../../src/ir/build.ts';
import type { GraphBuilder, Graph, Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { hostArray } from '../../src/ir/value.ts';
import { record } from './differences.ts';

const x = hostArray('f64', [3], [-1, 0.5, 2]);

function custom(b: GraphBuilder, rule: CustomRule, value: Node, ...args: readonly Node[]): Node {
  return derivativeBy(rule).node(b, [value, ...args]);
}

function firstGradient(graph: Graph): number[] {
  const inputs = graph.parameters.map(() => x);
  return [...(interpret(gradientGraph(graph, [0]), inputs)[graph.outputs.length]!.data as Float64Array)];
}

const total = (b: GraphBuilder, y: Node): Node => reduce(b, 'sum', y, [0]);

const passed: CustomRule = (_b, _args, _value, g) => [g];
const reversed: CustomRule = (b, _args, _value, g) => [neg(b, g)];
const nothing: CustomRule = () => [undefined];
const tripled: CustomRule = (b, _args, _value, g) => [mul(b, g, 3)];
const doubled: CustomRule = (b, _args, value, g) => [mul(b, mul(b, value, 2), g)];

describe('customVjp', () => {
  it('is its value forwards and the rule backwards', () => {
    const graph = record([x], (b, [p]) => total(b, custom(b, reversed, mul(b, p!, p!), p!)));
    expect(interpret(graph, [x])[0]!.data[0]).toBeCloseTo(5.25, 12);
    expect(firstGradient(graph)).toEqual([-1, -1, -1]);
  });

  it('passes nothing into its value, also where the value has a path of its own', () => {
    const graph = record([x, x], (b, [p, q]) => total(b, custom(b, nothing, mul(b, p!, p!), q!)));
    expect(firstGradient(graph)).toEqual([0, 0, 0]);
  });

  it('gives an argument that is also its value the cotangent of the argument', () => {
    const graph = record([x], (b, [p]) => total(b, custom(b, tripled, p!, p!)));
    expect(firstGradient(graph)).toEqual([3, 3, 3]);
  });

  it('keeps to the rule in second derivatives, which see the result as `value`', () => {
    // y = eˣ with the rule g·2y: dy = 2y, and the derivative of that is 2·2y.
    const graph = record([x], (b, [p]) => total(b, custom(b, doubled, unary(b, 'exp', p!), p!)));
    const first = gradientGraph(graph, [0]);
    const gradient = { parameters: first.parameters, outputs: [first.outputs[1]!] };
    const seeded = gradientGraph(gradient, [0]);
    const second = interpret(seeded, [x, hostArray('f64', [3], [1, 1, 1])])[1]!;
    second.data.forEach((value: number | bigint, i: number) => {
      expect(value).toBeCloseTo(4 * Math.exp(x.data[i] as number), 10);
    });
  });

  it('is called once per node, whatever the number of arguments', () => {
    let calls = 0;
    const counted: CustomRule = (_b, args, _value, g) => {
      calls += 1;
      return args.map(() => g);
    };
    const graph = record([x, x], (b, [p, q]) => total(b, custom(b, counted, add(b, p!, q!), p!, q!, p!)));
    expect(firstGradient(graph)).toEqual([2, 2, 2]);
    expect(calls).toBe(1);
  });

  it.each([
    ['another count', (() => []) as CustomRule, /gave 0 cotangent\(s\) for 1 argument/],
    [
      'another shape',
      ((b, _a, _v, g) => [reduce(b, 'sum', g, [0])]) as CustomRule,
      /f64\[3\], but .* f64\[\]/,
    ],
    ['another dtype', ((b, _a, _v, g) => [cast(b, g, 'f32')]) as CustomRule, /f64\[3\], but .* f32\[3\]/],
  ])('a rule that gives %s is refused', (_, rule, message) => {
    const graph = record([x], (b, [p]) => total(b, custom(b, rule, p!, p!)));
    expect(() => gradientGraph(graph, [0])).toThrow(message);
  });
});

describe('the registry', () => {
  it('has one derivative per function', () => {
    expect(derivativeBy(passed)).toBe(derivativeBy(passed));
    expect(derivativeBy(passed)).not.toBe(derivativeBy((_b, _args, _value, g) => [g]));
    expect(customOf(derivativeBy(passed).numbers[0]!).custom.results).toBe(1);
  });

  it('refuses numbers it never gave', () => {
    expect(() => customOf(1e9)).toThrow(/no rule 1000000000 is registered/);
  });
});
