// Where samples come from: random programs over all primitives, the trial of each differentiable primitive, and every operation
// that PyTorch's figures call, each at special points.

import * as fc from 'fast-check';
import { isFloat } from '../../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Op } from '../../../src/ir/ops.ts';
import { hostArray, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import { recordMany } from '../../../src/tensor/record.ts';
import { describeProgram, randomProgram } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { torchCall } from '../../support/torch/calls.ts';
import type { TorchCase } from '../../support/torch/figures.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { randomNumbers, record, type Trial } from '../differences.ts';
import { specialPoint, type Random, type Sample } from './sample.ts';

/** The graph's float outputs as tensors. */
function replay(graph: Graph, inputs: readonly Tensor[]): Tensor[] {
  return recordMany(inputs, (b, nodes) => {
    const made = new Map<Node, Node>(graph.parameters.map((parameter, i) => [parameter as Node, nodes[i]!]));
    for (const node of topological(graph.outputs)) {
      if (!made.has(node))
        made.set(
          node,
          b.copy(
            node,
            node.inputs.map((input) => made.get(input)!),
          ),
        );
    }
    return graph.outputs.filter(({ dtype }) => isFloat(dtype)).map((output) => made.get(output)!);
  });
}

/** The sample with some of its float inputs to differentiate, at times with one tensor for two of them. */
function chooseInputs(
  sample: Omit<Sample, 'wrt'>,
  random: Random,
  can: (input: number) => boolean = () => true,
): Sample | undefined {
  const floats = sample.inputs.flatMap(({ dtype, data }, i) =>
    isFloat(dtype) && data.length > 0 && can(i) ? [i] : [],
  );
  if (floats.length === 0) return undefined;
  const some = floats.filter(() => random() < 0.6);
  const wrt = some.length > 0 ? some : [floats[Math.floor(random() * floats.length)]!];
  const pair = floats.flatMap((i) =>
    floats
      .filter((j) => i < j && String(sample.inputs[i]!.shape) === String(sample.inputs[j]!.shape))
      .map((j) => [i, j] as const),
  );
  if (pair.length === 0 || random() < 0.7) return { ...sample, wrt };
  const [one, other] = pair[Math.floor(random() * pair.length)]!;
  return {
    ...sample,
    name: `${sample.name}, inputs ${one} and ${other} the same`,
    wrt: [...new Set([one, ...wrt.filter((i) => i !== other)])],
    call: (inputs) => sample.call(inputs.with(other, inputs[one]!)),
  };
}

export interface Drawn {
  readonly sample: Sample | undefined;
  readonly random: Random;
  /** What the sample consists of. */
  readonly ops: readonly Op[];
}

function described(drawn: Drawn, text: () => string): Drawn {
  return Object.assign(drawn, {
    [fc.toStringMethod]: () =>
      `${drawn.sample?.name ?? 'nothing'}, with respect to ${String(drawn.sample?.wrt)}${text()}`,
  });
}

/** Random programs of floats, integers and booleans at special points. */
export const programSamples: fc.Arbitrary<Drawn> = fc
  .tuple(
    randomProgram({
      dtypes: ['f64', 'f64', 'f64', 'f64', 'f64', 'f64', 'i32', 'bool'],
      maxSteps: 14,
      maxElements: 48,
      without: ['marker', 'bitcast', 'random', 'factor'],
      fill: (dtype, shape, seed) =>
        dtype === 'f64' ? specialPoint(shape, randomNumbers(seed)) : randomArray(dtype, shape, seed, 'tame'),
    }),
    fc.integer(),
  )
  .map(([program, seed]) => {
    const random = randomNumbers(seed);
    const { graph, inputs } = program;
    const sample = chooseInputs(
      {
        name: 'a program',
        inputs,
        call: (tensors) => replay(graph, tensors),
        mayBeUndefined: true,
      },
      random,
    );
    return described({ sample, random, ops: topological(graph.outputs).map(({ op }) => op) }, () =>
      describeProgram(program),
    );
  });

/** The trial of one primitive, its floats moved to a special point where the function has a value there. */
export function trialSamples(op: Op, trial: fc.Arbitrary<Trial>): fc.Arbitrary<Drawn> {
  return fc.tuple(trial, fc.integer()).map(([{ inputs: drawn, build }, seed]) => {
    const random = randomNumbers(seed);
    const graph = record(drawn, build);
    const special = drawn.map((input) =>
      isFloat(input.dtype) && random() < 0.8 ? specialPoint(input.shape, random) : input,
    );
    const inputs = isFiniteAt(graph, special) ? special : drawn;
    const sample = chooseInputs({ name: op, inputs, call: (tensors) => replay(graph, tensors) }, random);
    return described({ sample, random, ops: [op] }, () => describeProgram({ graph, inputs }));
  });
}

function isFiniteAt(graph: Graph, inputs: readonly HostArray[]): boolean {
  return interpret(graph, inputs).every(({ data }) =>
    data.every((x: number | bigint) => Number.isFinite(Number(x))),
  );
}

/** A call of PyTorch's figures at a special point, or at its own where it has no value there. */
export function callSample(one: TorchCase, random: Random): Drawn {
  const own = one.inputs.map(({ dtype, shape, data }) =>
    isFloat(dtype)
      ? hostArray('f64', shape, data as Float64Array)
      : hostArray(dtype, shape, data as ArrayLike<Scalar>),
  );
  // A few of the inputs are special at a time: positive ones stay so, probabilities and variances for instance.
  const inputs = own.map((input) => {
    if (!isFloat(input.dtype) || random() < 0.3) return input;
    const data = input.data as Float64Array;
    const point = specialPoint(input.shape, random);
    return data.every((x) => x >= 0)
      ? ({ ...point, data: (point.data as Float64Array).map(Math.abs) } as HostArray)
      : point;
  });
  // The row of padding is not trained, though the result depends on it. As in PyTorch, that of ctcLoss is the gradient by the logits whose logSoftmax it was given, and that of gaussianNllLoss is 1 for
  // the lower limit of the variance.
  const asInTorch = ['ctcLoss', 'gaussianNllLoss'].some((name) => one.name.includes(`/${name}`));
  const chosen = asInTorch || 'paddingIdx' in one.args;
  const wide = {
    ...one,
    outputs: one.outputs.map((output) =>
      isFloat(output.dtype) ? { ...output, dtype: 'f64' as const } : output,
    ),
  };
  // Running statistics come along untracked.
  const count = one.op === 'batchNorm' ? 1 : one.outputs.length;
  const call = (tensors: readonly Tensor[]): readonly Tensor[] => torchCall(wide, tensors).slice(0, count);
  // PyTorch tracks no gradient of running statistics, nor (in these figures) of targets.
  const reached = (i: number): boolean =>
    one.grads?.[i]?.data.some((x: number | bigint) => Number(x) !== 0) ?? false;
  const sample = chooseInputs({ name: one.name, inputs, call, chosen }, random, reached);
  return { sample, random, ops: [] };
}
