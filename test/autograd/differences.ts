// Central differences in f64: what every derivative rule is held against. A graph is differentiated as a transform and
// interpreted; the same numbers come from interpreting the graph itself a little to either side of each input element.

import { gradientGraph } from '../../src/autograd/vjp.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { print } from '../../src/ir/text/print.ts';
import { sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';

/** A function to differentiate and where: `build` records it on parameters like `inputs`. */
export interface Trial {
  readonly inputs: readonly HostArray[];
  readonly build: (b: GraphBuilder, parameters: readonly Node[]) => Node;
  /** Half the distance of the differences; default 1e-5. */
  readonly step?: number;
  /** The highest derivative that is exact; default 2. */
  readonly order?: 1 | 2;
}

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** f64 values of a shape, each made from a uniform number. */
export function values(
  shape: FixedShape,
  random: () => number,
  make: (u: number) => number = (u) => 4 * u - 2,
): HostArray {
  return hostArray(
    'f64',
    shape,
    Array.from({ length: sizeOf(shape) }, () => make(random())),
  );
}

/** f64 values at least 0.1 apart from each other, in random order: no two tie, also after a step of the differences. */
export function distinct(shape: FixedShape, random: () => number): HostArray {
  const size = sizeOf(shape);
  const ranks = Array.from({ length: size }, (_, i) => ({ i, key: random() }));
  ranks.sort((a, b) => a.key - b.key);
  return hostArray(
    'f64',
    shape,
    ranks.map(({ i }) => 0.2 * (i - size / 2) + 0.1 * random()),
  );
}

/** The graph that `build` records on parameters like `inputs`. */
export function record(
  inputs: readonly HostArray[],
  build: (b: GraphBuilder, parameters: readonly Node[]) => Node | readonly Node[],
): Graph {
  const b = new GraphBuilder();
  const parameters = inputs.map(({ dtype, shape }, index) =>
    b.add('parameter', [], { index, name: `x${index}`, dtype, shape }),
  );
  const built = build(b, parameters as unknown as Node[]);
  return { parameters, outputs: Array.isArray(built) ? (built as Node[]) : [built as Node] };
}

export function floatInputs(inputs: readonly HostArray[]): number[] {
  return inputs.flatMap((input, i) => (isFloat(input.dtype) ? [i] : []));
}

/** Checks the gradients of `graph`'s first output, weighted by random seeds, for every float input. */
export function checkGraph(
  graph: Graph,
  inputs: readonly HostArray[],
  random: () => number,
  step = 1e-5,
): void {
  const wrt = floatInputs(inputs);
  const gradient = gradientGraph(graph, wrt, { of: [0], seedAll: true });
  verify(gradient, 'gradientGraph');
  const seed = values(graph.outputs[0]!.shape as FixedShape, random);
  const results = interpret(gradient, [...inputs, seed]).slice(graph.outputs.length);
  const weighted = (at: readonly HostArray[]): number => {
    const output = interpret({ ...graph, outputs: [graph.outputs[0]!] }, at)[0]!;
    let sum = 0;
    for (let i = 0; i < seed.data.length; i++) sum += Number(seed.data[i]) * Number(output.data[i]);
    return sum;
  };
  wrt.forEach((index, k) => {
    const input = inputs[index]!;
    const moved = (i: number, by: number): readonly HostArray[] => {
      const data = Float64Array.from(input.data as Float64Array);
      data[i] = data[i]! + by;
      return inputs.map((other, j) => (j === index ? { ...input, data } : other));
    };
    for (let i = 0; i < input.data.length; i++) {
      const expected = (weighted(moved(i, step)) - weighted(moved(i, -step))) / (2 * step);
      const actual = Number(results[k]!.data[i]);
      const close = Math.abs(actual - expected) <= 1e-5 * Math.max(1e-1, Math.abs(expected));
      if (!close) {
        throw new Error(
          `d/d x${index}[${i}] = ${actual}, by differences ${expected}\n` +
            `inputs ${inputs.map(({ shape, data }) => `[${shape.join(',')}] ${[...data].join(' ')}`).join('\n  ')}\n` +
            print(graph),
        );
      }
    }
  });
}

/** Checks the first derivative of a trial, and the derivative of that derivative, seeds included. */
export function checkTrial({ inputs, build, step, order = 2 }: Trial, random: () => number): void {
  const graph = record(inputs, build);
  verify(graph, 'trial');
  checkGraph(graph, inputs, random, step);
  if (order === 1) return;
  const wrt = floatInputs(inputs);
  const { parameters, outputs } = gradientGraph(graph, wrt, { seedAll: true });
  const seed = values(graph.outputs[0]!.shape as FixedShape, random);
  for (const gradient of outputs.slice(graph.outputs.length)) {
    checkGraph({ parameters, outputs: [gradient] }, [...inputs, seed], random, step);
  }
}
