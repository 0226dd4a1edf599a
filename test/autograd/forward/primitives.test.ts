// Forward derivatives of every primitive: against central differences in f64 along a random line, and against the reverse rules,
// whose adjoint they are: ⟨u, J·v⟩ = ⟨Jᵀ·u, v⟩. Those of tangents and gradients in turn as well.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jvpRules } from '../../../src/autograd/jvp/rules.ts';
import { tangentGraph } from '../../../src/autograd/jvp/jvp.ts';
import { gradientGraph } from '../../../src/autograd/vjp.ts';
import { rules } from '../../../src/autograd/rules.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { opNames } from '../../../src/ir/ops.ts';
import { print } from '../../../src/ir/text/print.ts';
import type { FixedShape } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { verify } from '../../../src/ir/verify.ts';
import { floatInputs, randomNumbers, record, values } from '../differences.ts';
import { trials } from '../trials.ts';

type Random = () => number;

const inner = (a: readonly HostArray[], b: readonly HostArray[]): number =>
  a.reduce(
    (sum, { data }, k) =>
      sum +
      (data as Float64Array).reduce((part, x, i) => part + x * Number((b[k]!.data as Float64Array)[i]), 0),
    0,
  );

const isClose = (a: number, b: number, tolerance: number): boolean =>
  Object.is(a, b) || Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));

/** Checks the tangents of a graph's outputs, all of f64, and gives the tangent graph with the directions it was checked at. */
function checkTangents(
  graph: Graph,
  inputs: readonly HostArray[],
  random: Random,
  step = 1e-5,
  rounding = 1e-9,
): { readonly joint: Graph; readonly at: readonly HostArray[] } {
  const wrt = floatInputs(inputs);
  const joint = tangentGraph(graph, wrt);
  verify(joint, 'tangentGraph');
  const line = wrt.map((i) => values(inputs[i]!.shape, random));
  const at = [...inputs, ...line];
  const found = interpret(joint, at).slice(graph.outputs.length);
  const weights = graph.outputs.map(({ shape }) => values(shape as FixedShape, random));
  const forwards = inner(found, weights);
  const moved = (by: number): number => {
    const there = inputs.map((input, i) => {
      const k = wrt.indexOf(i);
      if (k < 0) return input;
      const d = line[k]!.data as Float64Array;
      return {
        ...input,
        data: Float64Array.from(input.data as Float64Array, (x, j) => x + by * d[j]!),
      } as HostArray;
    });
    return inner(interpret(graph, there), weights);
  };
  const told = (): string =>
    `\n${inputs.map(({ shape, data }) => `[${shape.join()}] ${[...data].join(' ')}`).join('\n')}\n${print(graph)}`;
  const expected = (moved(step) - moved(-step)) / (2 * step);
  // Over nothing an extremum is infinite, and stays so.
  if (Number.isFinite(expected) && !isClose(forwards, expected, Math.max(2e-5, 1e3 * rounding)))
    throw new Error(`J·v is ${forwards}, by differences ${expected}${told()}`);
  const gradients = interpret(gradientGraph(graph, wrt, { seedAll: true }), [...inputs, ...weights]);
  const backwards = inner(gradients.slice(graph.outputs.length), line);
  if (!isClose(forwards, backwards, rounding))
    throw new Error(`⟨u, J·v⟩ is ${forwards}, ⟨Jᵀ·u, v⟩ ${backwards}${told()}`);
  return { joint, at };
}

describe('tangents equal central differences, and are adjoint to gradients', () => {
  for (const op of opNames) {
    const trial = trials[op];
    if (typeof trial === 'string') continue;
    it(op, () => {
      fc.assert(
        fc.property(trial, fc.integer(), ({ inputs, build, step, order = 2 }, seed) => {
          const random = randomNumbers(seed);
          const graph = record(inputs, build);
          // Casts to narrower floats round, tangents as values.
          const rounding = op === 'cast' ? 1e-6 : 1e-9;
          const { joint, at } = checkTangents(graph, inputs, random, step, rounding);
          if (order === 1) return;
          // The derivative of a tangent, forwards and backwards; and the tangent of a gradient.
          const tangent = {
            parameters: joint.parameters,
            outputs: joint.outputs.slice(graph.outputs.length),
          };
          checkTangents(tangent, at, random, step);
          const wrt = floatInputs(inputs);
          const { parameters, outputs } = gradientGraph(graph, wrt, { seedAll: true });
          const seedOf = values(graph.outputs[0]!.shape as FixedShape, random);
          checkTangents(
            { parameters, outputs: outputs.slice(graph.outputs.length) },
            [...inputs, seedOf],
            random,
            step,
          );
        }),
        { numRuns: 30 },
      );
    });
  }
});

it('an op has a forward rule exactly if it has a reverse rule', () => {
  for (const op of opNames) {
    // It follows from the reverse rule, whatever that is.
    if (jvpRules[op] === 'partials') continue;
    expect([op, jvpRules[op] === 'flat']).toEqual([op, rules[op] === 'flat']);
  }
});
