// Random models as a fast-check arbitrary: perceptrons, convolutional nets and transformers of random widths and depths, whose
// values are used several times and handed out on the way. A model is a small description; it is built through the public API,
// twice: once to see what parameters and data it asks for, once to record its graph on them. Layers that do not fit are left
// out, so that dropping layers and lowering dice shrinks a failure to a few lines.

import * as fc from 'fast-check';

import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import { showType } from '../../../src/ir/infer.ts';
import { print } from '../../../src/ir/text/print.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import type { Module } from '../../../src/nn/index.ts';
import {
  adagrad,
  adam,
  adamW,
  rmsprop,
  sgd,
  type FunctionalOptimizer,
  type OptimizerState,
} from '../../../src/optim/index.ts';
import { flatten } from '../../../src/tensor/tree.ts';
import { recorded } from '../../support/recorded.ts';
import { wordsFrom } from '../../support/random/values.ts';
import { layers, type LayerKind, type Workshop } from './models-layers.ts';

type OptimizerKind = 'sgd' | 'momentum' | 'adam' | 'adamW' | 'rmsprop' | 'adagrad';

const optimizers: Readonly<Record<OptimizerKind, () => FunctionalOptimizer>> = {
  sgd: () => sgd({ lr: 0.1 }),
  momentum: () => sgd({ lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
  // Where a gradient is 0 but for rounding, its root mean square is too: not divided by, or steps would be signs of noise.
  adam: () => adam({ lr: 0.01, eps: 1e-3 }),
  adamW: () => adamW({ lr: 0.01, eps: 1e-3, amsgrad: true }),
  rmsprop: () => rmsprop({ lr: 0.01, eps: 1e-3, centered: false, momentum: 0.5 }),
  adagrad: () => adagrad({ lr: 0.01, eps: 1e-3 }),
};

/** A model, in plain data. */
export interface Description {
  /** What goes in: rows, token numbers, a sequence or an image. */
  readonly input: 'rows' | 'tokens' | 'sequence' | 'image';
  /** Samples; positions or pixels along an edge; features or channels. */
  readonly sizes: readonly [samples: number, length: number, width: number];
  readonly layers: readonly {
    readonly kind: LayerKind;
    readonly dice: readonly number[];
    /** The value behind the layer is a result as well. */
    readonly tap: boolean;
  }[];
  /** What is computed: results, their gradients, or a training step. */
  readonly mode: 'forward' | 'gradient' | 'step';
  readonly optimizer: OptimizerKind;
  readonly loss: 'square' | 'crossEntropy';
  /** Of parameters, data and random draws. */
  readonly seed: number;
}

/** A model's graph with inputs. */
export interface Model {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
  /** Inputs that results of their type may be written over: by a training step, what it updates. */
  readonly donate: ReadonlyMap<number, number>;
  readonly description: Description;
}

const kinds = Object.keys(layers) as LayerKind[];
const of: Readonly<Record<Description['input'], readonly LayerKind[]>> = {
  rows: kinds.filter(
    (kind) => !['conv', 'enlarge', 'pool', 'plainAttention', 'attention', 'block'].includes(kind),
  ),
  tokens: kinds.filter((kind) => !['conv', 'enlarge'].includes(kind)),
  sequence: kinds.filter((kind) => !['conv', 'enlarge'].includes(kind)),
  image: kinds.filter((kind) => kind !== 'linear' && kind !== 'centre'),
};

/** Random models of at most `depth` layers. */
export function randomModel(depth: number): fc.Arbitrary<Model> {
  const size = fc.constantFrom(1, 2, 3, 4, 5, 7, 8, 9);
  const die = fc.nat({ max: 59 });
  const described = fc
    .constantFrom<Description['input']>('rows', 'tokens', 'sequence', 'image')
    .chain((input) =>
      fc.record({
        input: fc.constant(input),
        sizes: fc.tuple(fc.integer({ min: 1, max: 3 }), size, size),
        layers: fc.array(
          fc.record({
            kind: fc.constantFrom(...of[input]),
            dice: fc.array(die, { minLength: 10, maxLength: 10 }),
            tap: fc.nat({ max: 3 }).map((at) => at === 3),
          }),
          { minLength: 1, maxLength: depth, size: 'max' },
        ),
        mode: fc.constantFrom<Description['mode']>('forward', 'gradient', 'step', 'gradient'),
        optimizer: fc.constantFrom(...(Object.keys(optimizers) as OptimizerKind[])),
        loss: fc.constantFrom<Description['loss']>('square', 'crossEntropy'),
        seed: fc.integer({ min: 1, max: 2 ** 30 }),
      }),
    );
  return fc.noBias(described).map((description) => {
    const model = modelOf(description);
    return Object.assign(model, { [fc.toStringMethod]: () => describeModel(model) });
  });
}

/** Enough to build the model again, and its graph. */
function describeModel({ description, graph }: Model): string {
  return `\n${JSON.stringify(description)}\n${print(graph)}`;
}

/** Parameters and data that a model asks for, in order: collected when it is built first, handed out when it is recorded. */
class Supply {
  readonly parameters: unknown[];
  readonly data: Tensor[];
  readonly arrays: HostArray[] = [];
  readonly #collects: boolean;
  readonly #next: () => number;
  #parameter = 0;
  #datum = 0;

  constructor(
    seed: number,
    known?: { readonly parameters: readonly unknown[]; readonly data: readonly Tensor[] },
  ) {
    this.#collects = known === undefined;
    this.parameters = [...(known?.parameters ?? [])];
    this.data = [...(known?.data ?? [])];
    this.#next = uniformFrom(seed);
  }

  parameter<P>(make: () => P): P {
    if (this.#collects) this.parameters.push(make());
    return this.parameters[this.#parameter++] as P;
  }

  datum(dtype: HostArray['dtype'], shape: readonly number[], draw: (next: () => number) => number): Tensor {
    if (this.#collects) {
      const values = Array.from({ length: sizeOf(shape) }, () => draw(this.#next));
      this.arrays.push(hostArray(dtype, shape, values));
      this.data.push(sn.zeros(shape, { dtype }));
    }
    return this.data[this.#datum++]!;
  }
}

function uniformFrom(seed: number): () => number {
  const words = wordsFrom(seed);
  return () => (words() >>> 8) * 2 ** -24;
}

/** The result and what is tapped on the way. */
function forward({ input, sizes, layers: steps }: Description, supply: Supply): [Tensor, ...Tensor[]] {
  let x = start(input, sizes, supply);
  const values = [x];
  const taps: Tensor[] = [];
  for (const { kind, dice, tap } of steps) {
    let die = 0;
    const workshop: Workshop = {
      values,
      dice: (sides) => (dice[die++ % dice.length]! + Math.floor(die / dice.length)) % sides,
      parameter: (role, shape) =>
        supply.parameter(() => ({ [role]: sn.zeros(shape) }) as Record<string, Tensor>)[role]!,
      module: <M extends Module>(make: () => M): M => supply.parameter(make),
      mask: (dtype, shape) =>
        dtype === 'bool'
          ? supply.datum('bool', shape, (next) => Number(next() < 0.7))
          : supply.datum('f32', shape, (next) => (next() < 0.3 ? -Infinity : next())),
    };
    const next = layers[kind](workshop, x);
    if (next === undefined || next.size > 800) continue;
    x = next;
    values.push(x);
    if (tap) taps.push(x);
  }
  return [x, ...taps];
}

function start(
  input: Description['input'],
  [n, length, width]: Description['sizes'],
  supply: Supply,
): Tensor {
  const wide = (next: () => number): number => next() * 4 - 2;
  switch (input) {
    case 'rows':
      return supply.datum('f32', [n * length, width], wide);
    case 'sequence':
      return supply.datum('f32', [n, length, width], wide);
    case 'image':
      return supply.datum('f32', [n, Math.min(width, 4), length, length], wide);
    case 'tokens': {
      const table = supply.parameter(() => ({ bias: sn.zeros([7, width]) })).bias;
      return sn.embedding(
        supply.datum('i32', [n, length], (next) => Math.floor(next() * 7)),
        table,
      );
    }
    default:
      return input satisfies never;
  }
}

/** One number to train by: how far the results are from random targets. */
function lossOf(results: readonly Tensor[], kind: Description['loss'], supply: Supply): Tensor {
  const [y, ...taps] = results as [Tensor, ...Tensor[]];
  let loss: Tensor;
  if (kind === 'crossEntropy' && y.rank < 4) {
    const classes = y.shape.at(-1)!;
    const labels = supply.datum('i32', [y.size / classes], (next) => Math.floor(next() * classes));
    loss = sn.crossEntropy(y.reshape([-1, classes]), labels);
  } else
    loss = sn.mseLoss(
      y,
      supply.datum('f32', y.shape, (next) => next() * 2 - 1),
    );
  return taps.reduce((sum, tap) => sum.add(tap.square().mean().mul(0.1)), loss);
}

/** Records a model. */
export function modelOf(description: Description): Model {
  const { mode, loss, seed } = description;
  const supply = new Supply(seed);
  const results = forward(description, supply);
  if (mode === 'gradient')
    for (const { shape } of results) supply.datum('f32', shape, (next) => next() * 2 - 1);
  if (mode === 'step') lossOf(results, loss, supply);
  const { parameters, data } = supply;
  const optimizer = optimizers[description.optimizer]();
  const state = mode === 'step' ? optimizer.init(parameters) : [];
  const run = (weights: readonly unknown[], given: readonly Tensor[], before: typeof state): unknown => {
    const again = (own: readonly unknown[]): Supply => new Supply(seed, { parameters: own, data: given });
    if (mode === 'forward') return forward(description, again(weights));
    if (mode === 'gradient') {
      const taken = sn.vjp((own: readonly unknown[]) => forward(description, again(own)), weights);
      return [taken.value, taken.vjp(given.slice(-results.length) as [Tensor])];
    }
    const objective = (own: readonly unknown[]): Tensor => {
      const supplied = again(own);
      return lossOf(forward(description, supplied), loss, supplied);
    };
    const { value, grad } = sn.valueAndGrad(objective)(weights);
    return [value, optimizer.update(weights, grad, before as OptimizerState)];
  };
  const args = [parameters, data, state];
  const { graph, leaves } = recorded(run, args, seed % 1000);
  const arrays = argumentsOf(args, supply.arrays, seed);
  const donate = mode === 'step' ? donationsOf(graph) : new Map<number, number>();
  return { graph, inputs: leaves.map((leaf) => arrays[leaf]!), donate, description };
}

/** Each input offered to a result of its type, in their order. */
function donationsOf({ parameters, outputs }: Graph): Map<number, number> {
  const free = new Map<string, number[]>();
  outputs.forEach((node, i) => free.set(showType(node), [...(free.get(showType(node)) ?? []), i]));
  const donate = new Map<number, number>();
  parameters.forEach((node, i) => {
    const output = free.get(showType(node as Node))?.shift();
    if (output !== undefined) donate.set(i, output);
  });
  return donate;
}

/** Numbers for every leaf of parameters, data and state. */
function argumentsOf(args: readonly unknown[], data: readonly HostArray[], seed: number): HostArray[] {
  const next = uniformFrom(seed + 1);
  const { leaves, paths } = flatten(args);
  let datum = 0;
  return leaves.map((leaf, i) => {
    const { shape, dtype } = leaf as Tensor;
    const path = paths[i]!;
    if (path.startsWith('[1]')) return data[datum++]!;
    return hostArray(dtype, shape, Array.from({ length: sizeOf(shape) }, drawFor(path, shape, next)));
  });
}

/** What the numbers of a parameter or of an optimizer's state are like. */
function drawFor(path: string, shape: readonly number[], next: () => number): () => number {
  if (path.endsWith('.step')) return () => 3;
  // Squares among the state are no less than 0.
  if (path.startsWith('[2]')) return () => 0.01 + next() / 2;
  const inputs = sizeOf(shape.slice(1));
  if (shape.length > 1 && path.endsWith('weight')) return () => (next() * 2 - 1) * Math.sqrt(3 / inputs);
  return path.endsWith('bias') ? () => next() - 0.5 : () => next() + 0.5;
}
