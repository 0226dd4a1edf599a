// Pipeline parallelism: the layers of a model in stages, one stage a process along an axis of the mesh, and a batch in microbatches that go
// through the stages one behind the other. The schedule is that of one forward, one backward (1F1B: Narayanan et al., Efficient large-scale
// language model training on GPU clusters, 2021): a stage turns to the backward pass of a microbatch as soon as it can, so that it never holds
// more than 2·stages − 1 activations of microbatches, however many there are. All processes run one program, of ticks:
//
//   tick       0   1   2   3   4   5   6        (3 stages, 3 microbatches)
//   stage 0    F0  F1  F2      B0  B1  B2       at most 5 inputs held
//   stage 1        F0  F1  F2
//                      B0  B1  B2   (one tick later than stage 2, one earlier than stage 0)
//   stage 2            B0  B1  B2               forward and backward at once
//
// In a tick a stage does one forward, one backward, both, or nothing: what it has no microbatch for is skipped. Without regard to messages a step
// takes (microbatches + stages − 1) forward and backward passes of a stage, as 1F1B does. A backward pass computes the activations of its
// stage again, from the input that was held.

import { TensorError } from '../errors.ts';
import type { DType } from '../ir/dtype.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { axisSize, partsOf } from '../ir/mesh/split.ts';
import { wideType } from '../tensor/formula/elementwise.ts';
import { grad, valueAndGrad } from '../tensor/derivative/transform.ts';
import { cond } from '../tensor/ops/control/branch.ts';
import { foriLoop } from '../tensor/ops/control/scan.ts';
import { zeros, zerosLike } from '../tensor/ops/creation/creation.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { add, div, maximum, minimum, mul, remainder, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import { eq, ge, logicalAnd, lt, where } from '../tensor/ops/elementwise/compare.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { dynamicSlice, dynamicUpdateSlice } from '../tensor/ops/select/dynamic.ts';
import { select } from '../tensor/ops/shape/indexing.ts';
import { reshape, unsqueeze } from '../tensor/ops/shape/view.ts';
import { Tensor } from '../tensor/tensor.ts';
import { flatten, treeMap } from '../tensor/tree.ts';
import type { Spec } from './mesh.ts';
import { allReduce, permuteRanks, rankIndex, shardMap } from './shard-map.ts';

/** Parameters of a model in stages. */
export interface StagedParams<F, L, E> {
  /** What makes of inputs what goes through the layers, such as an embedding; every stage has it. */
  readonly first: F;
  /** The layers' parameters, each tensor with a leading axis of layers. A stage has some of them. */
  readonly layers: L;
  /** What makes the loss of what comes out of the layers; every stage has it. */
  readonly last: E;
}

/** A model in stages, as functions of a microbatch. */
export interface StagedModel<F, L, E> {
  /** Inputs to what goes through the layers. */
  readonly first: (params: F, inputs: Tensor) => Tensor;
  /** One layer, of its parameters without the leading axis. Shape and dtype stay. */
  readonly layer: (params: L, x: Tensor) => Tensor;
  /** The mean loss of a microbatch, of rank 0. */
  readonly last: (params: E, x: Tensor, targets: Tensor) => Tensor;
}

export interface PipelineOptions {
  readonly mesh: Mesh;
  /** The axis of the mesh along which the stages stand. */
  readonly axis: string;
  /** Into how many parts the batch is cut. More of them leave stages idle for a smaller share of the time. */
  readonly microbatches: number;
  /** The axis of the mesh that splits the batch, where the processes are data parallel as well; none by default. */
  readonly batch?: string;
}

/** A loss and its gradients by the parameters of a model in stages. */
export interface StagedGradient<F, L, E> {
  readonly value: Tensor;
  readonly grad: StagedParams<F, L, E>;
}

/**
 * The mean loss of a batch and its gradients, computed by stages: a function of the parameters, of inputs [batch, ..] and of targets [batch, ..],
 * as `valueAndGrad` of the whole model is. Layers are held by the stages, `shard(w, mesh, [axis, null, ..])`, and so are their gradients; what
 * comes first and last is whole on each process.
 *
 * Throws E_VALUE where the mesh has no such axis, and E_SHAPE where stages do not divide the layers, or microbatches the batch.
 */
export function pipelined<F, L, E>(
  model: StagedModel<F, L, E>,
  options: PipelineOptions,
): (params: StagedParams<F, L, E>, inputs: Tensor, targets: Tensor) => StagedGradient<F, L, E> {
  const { mesh, axis, batch } = options;
  for (const name of [axis, ...(batch === undefined ? [] : [batch])])
    if (!mesh.axes.some((one) => one.name === name))
      throw new TensorError('E_VALUE', 'pipelined', `the mesh ${mesh.text} has no axis ${name}`);
  const ofLayers = (path: string, { shape }: Tensor): Spec | undefined =>
    path.startsWith('layers') ? shape.map((_, i) => (i === 0 ? axis : null)) : undefined;
  const ofBatch = (_: string, { shape }: Tensor): Spec | undefined =>
    batch === undefined ? undefined : shape.map((_size, i) => (i === 0 ? batch : null));
  const inGrad = (path: string, tensor: Tensor): Spec | undefined =>
    ofLayers(path.replace(/^grad\./, ''), tensor);
  return (params, inputs, targets) => {
    checkSizes(params.layers, inputs, options);
    const step = new Step(model, options);
    return shardMap(
      (own: StagedParams<F, L, E>, x: Tensor, y: Tensor) => step.run(own, x, y),
      mesh,
      [ofLayers, ofBatch, ofBatch],
      inGrad,
    )(params, inputs, targets);
  };
}

function checkSizes(layers: unknown, inputs: Tensor, options: PipelineOptions): void {
  const { mesh, axis, batch, microbatches } = options;
  const stages = axisSize(mesh, axis);
  const parts = microbatches * (batch === undefined ? 1 : axisSize(mesh, batch));
  if (!Number.isInteger(microbatches) || microbatches < 1 || (inputs.shape[0] ?? 0) % parts !== 0) {
    const problem = `a batch of ${inputs.shape[0]} is not ${parts} equal microbatches`;
    throw new TensorError('E_SHAPE', 'pipelined', problem, 'microbatches that divide the batch');
  }
  const counts = flatten(layers, 'pipelined').leaves.flatMap((leaf) =>
    leaf instanceof Tensor ? [leaf.shape[0] ?? 0] : [],
  );
  const odd = counts.find((count) => count !== counts[0] || count === 0 || count % stages !== 0);
  if (odd === undefined) return;
  const problem = `${stages} stages cannot have equal parts of layers whose tensors have ${[...new Set(counts)].join(', ')}`;
  throw new TensorError('E_SHAPE', 'pipelined', problem, 'one leading axis of layers, which stages divide');
}

/** What a stage has between ticks. */
interface Held<F, L, E> {
  /** What the stage before sent for the next microbatch. */
  readonly arrived: Tensor;
  /** What the stage behind sent: the gradient of the loss by what this one sent. */
  readonly back: Tensor;
  /** [inputs held, ..]: inputs of microbatches that have not come back. */
  readonly inputs: Tensor;
  /** Sums over microbatches, 16-bit ones in f32. */
  readonly loss: Tensor;
  readonly grad: StagedParams<F, L, E>;
}

/** A step of one process. */
class Step<F, L, E> {
  readonly #model: StagedModel<F, L, E>;
  readonly #options: PipelineOptions;
  readonly #stages: number;

  constructor(model: StagedModel<F, L, E>, options: PipelineOptions) {
    this.#model = model;
    this.#options = options;
    this.#stages = axisSize(options.mesh, options.axis);
  }

  run(params: StagedParams<F, L, E>, batch: Tensor, labels: Tensor): StagedGradient<F, L, E> {
    const { mesh, axis, batch: dataAxis, microbatches } = this.#options;
    const stages = this.#stages;
    const stage = rankIndex(mesh, axis);
    const [xs, ys] = [batch, labels].map((x) =>
      reshape(x, [microbatches, x.shape[0]! / microbatches, ...x.shape.slice(1)]),
    ) as [Tensor, Tensor];
    const { shape, dtype } = this.#model.first(params.first, select(xs, 0, 0));
    const nothing = zeros(shape, { dtype });
    const loss = this.#model.last(params.last, nothing, select(ys, 0, 0)).dtype;
    const places = Math.min(microbatches, 2 * stages - 1);
    const start: Held<F, L, E> = {
      arrived: nothing,
      back: nothing,
      inputs: zeros([places, ...shape], { dtype }),
      loss: zeros([], { dtype: wideType(loss) }),
      grad: mapped(params, (w) => zerosLike(w, { dtype: wideType(w.dtype) })),
    };
    const forward = Array.from({ length: stages - 1 }, (_, i) => [i, i + 1] as const);
    const backward = forward.map(([from, to]) => [to, from] as const);
    const isLast = eq(stage, stages - 1);
    const end = loop(
      0,
      microbatches + 2 * (stages - 1),
      (tick, held): Held<F, L, E> => {
        const [ahead, behind] = [sub(tick, stage), sub(add(tick, stage), 2 * (stages - 1))];
        const [goes, comes] = [ahead, behind].map((at) => logicalAnd(ge(at, 0), lt(at, microbatches))) as [
          Tensor,
          Tensor,
        ];
        const input = branch(
          logicalAnd(goes, eq(stage, 0)),
          () => this.#model.first(params.first, at(xs, ahead)),
          () => held.arrived,
        );
        const inputs = where(goes, put(held.inputs, input, remainder(ahead, places)), held.inputs);
        // The last stage computes its layers in the backward pass, which begins at once.
        const output = branch(
          logicalAnd(goes, lt(stage, stages - 1)),
          () => this.#layers(params.layers, input),
          () => nothing,
        );
        const done = branch(
          comes,
          () => {
            const own = at(inputs, remainder(behind, places));
            const gradient = branch(
              isLast,
              () => this.#fromLoss(params, own, at(ys, behind)),
              () => this.#fromBehind(params, own, held.back, loss),
            );
            const first = branch(
              eq(stage, 0),
              () => this.#intoInputs(params.first, at(xs, behind), gradient.input),
              () => zerosOf(params.first),
            );
            const made = { first, layers: gradient.layers, last: gradient.last };
            return {
              loss: add(held.loss, gradient.loss),
              grad: sumOf(held.grad, made),
              input: gradient.input,
            };
          },
          () => ({ loss: held.loss, grad: held.grad, input: nothing }),
        );
        return {
          arrived: permuteRanks(output, mesh, axis, forward),
          back: permuteRanks(done.input, mesh, axis, backward),
          inputs,
          loss: done.loss,
          grad: done.grad,
        };
      },
      start,
    );
    const data = dataAxis === undefined ? [] : [dataAxis];
    const count = microbatches * partsOf(mesh, data);
    const mean = (over: readonly string[], x: Tensor, like: DType): Tensor =>
      cast(div(allReduce(x, mesh, over), count), like);
    const meanLike = <T>(made: T, like: T, over: readonly string[]): T =>
      treeMap((x, own) => mean(over, x, own!.dtype), made, like);
    // Of what every stage has, one has made the gradients, and the others have zeros.
    const all = [axis, ...data];
    return {
      value: mean(all, end.loss, loss),
      grad: {
        first: meanLike(end.grad.first, params.first, all),
        layers: meanLike(end.grad.layers, params.layers, data),
        last: meanLike(end.grad.last, params.last, all),
      },
    };
  }

  /** The layers of this stage, one behind the other. */
  #layers(layers: L, input: Tensor): Tensor {
    const count = flatten(layers, 'pipelined').leaves.find((leaf) => leaf instanceof Tensor)!.shape[0]!;
    let x = input;
    for (let i = 0; i < count; i++)
      x = this.#model.layer(
        mapped(layers, (w) => select(w, 0, i)),
        x,
      );
    return x;
  }

  #fromLoss(params: StagedParams<F, L, E>, input: Tensor, targets: Tensor): StageGradient<L, E> {
    const { value, grad: made } = valueAndGrad(
      (layers: L, last: E, x: Tensor) => this.#model.last(last, this.#layers(layers, x), targets),
      { argnums: [0, 1, 2] },
    )(params.layers, params.last, input) as { value: Tensor; grad: [L, E, Tensor] };
    const [layers, last, x] = made;
    return { loss: value, layers, last, input: x };
  }

  #fromBehind(params: StagedParams<F, L, E>, input: Tensor, back: Tensor, loss: DType): StageGradient<L, E> {
    const [layers, x] = grad((own: L, at: Tensor) => sum(mul(this.#layers(own, at), back)), {
      argnums: [0, 1],
    })(params.layers, input) as unknown as [L, Tensor];
    return { loss: zeros([], { dtype: loss }), layers, last: zerosOf(params.last), input: x };
  }

  #intoInputs(first: F, inputs: Tensor, back: Tensor): F {
    return grad((own: F) => sum(mul(this.#model.first(own, inputs), back)))(first) as F;
  }
}

/** What a stage makes of a microbatch on its way back. */
interface StageGradient<L, E> {
  readonly loss: Tensor;
  readonly layers: L;
  readonly last: E;
  /** By the input of the stage. */
  readonly input: Tensor;
}

/** What one of two functions gives, as its own type says. */
const branch = cond as <T>(predicate: Tensor, onTrue: () => T, onFalse: () => T) => T;

const loop = foriLoop as unknown as <C>(
  lower: number,
  upper: number,
  fn: (index: Tensor, carry: C) => C,
  init: C,
) => C;

const mapped = <T>(tree: T, fn: (x: Tensor) => Tensor): T => treeMap(fn, tree);

const zerosOf = <T>(tree: T): T => mapped(tree, (x) => zerosLike(x));

const sumOf = <T>(a: T, b: T): T => treeMap((x, y) => add(x, cast(y!, x.dtype)), a, b);

/** The entry of a number, which is moved into the range. */
function at(list: Tensor, index: Tensor): Tensor {
  const [count, ...shape] = list.shape as [number, ...number[]];
  const inside = minimum(maximum(index, 0), count - 1);
  const starts = [inside, ...shape.map(() => 0)];
  return reshape(dynamicSlice(list, starts, [1, ...shape]), shape);
}

function put(list: Tensor, value: Tensor, index: Tensor): Tensor {
  return dynamicUpdateSlice(list, unsqueeze(value, 0), [index, ...value.shape.map(() => 0)]);
}
