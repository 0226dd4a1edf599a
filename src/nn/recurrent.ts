// Recurrent layers and their cells. Weights have PyTorch's names, shapes and order of gates, so that
// its state dictionaries load as they are: `weight_ih_l0` [gates·H, inputs], `weight_hh_l0` [gates·H,
// H], `bias_ih_l0`, `bias_hh_l0`, `weight_hr_l0` of a projection, and `…_reverse` of the other way.

import type { DType } from '../ir/dtype.ts';
import type { Weighed } from '../tensor/inferred.ts';
import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isFloat } from '../ir/dtype.ts';
import { aTensor } from '../tensor/expect.ts';
import { zeros, tensor } from '../tensor/ops/creation/creation.ts';
import { dropout } from '../tensor/ops/creation/random.ts';
import { casted, show } from '../tensor/ops/operand.ts';
import { linear } from '../tensor/ops/product/matmul.ts';
import type { LstmState, Nonlinearity } from '../tensor/ops/sequence/cells.ts';
import { gruStep, lstmStep, rnnStep, type StateWeights } from '../tensor/ops/sequence/steps.ts';
import { overTime } from '../tensor/ops/sequence/time.ts';
import { select } from '../tensor/ops/shape/indexing.ts';
import { cat, stack } from '../tensor/ops/shape/join.ts';
import { squeeze, transpose, unsqueeze } from '../tensor/ops/shape/view.ts';
import { Tensor } from '../tensor/tensor.ts';
import { initOptions, symmetric, typeOf, type InitOptions } from './init.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

export interface RecurrentOptions extends InitOptions {
  /** Layers, each over the outputs of the one below; 1 by default. */
  readonly numLayers?: number;
  /** A second run from the end, whose outputs stand beside the first's; false by default. */
  readonly bidirectional?: boolean;
  /** Probability with which outputs between layers are dropped in training; 0 by default. */
  readonly dropout?: number;
  /** Inputs and outputs are [batch, time, …] instead of [time, batch, …]; false by default. */
  readonly batchFirst?: boolean;
  /** true by default. */
  readonly bias?: boolean;
}

export interface RnnOptions extends RecurrentOptions {
  /** 'tanh' by default. */
  readonly nonlinearity?: Nonlinearity;
}

export interface LstmOptions extends RecurrentOptions {
  /** The width that outputs are projected to (Sak et al., 2014); none by default. */
  readonly projSize?: number;
}

export interface SequenceOptions {
  /** How many steps each sequence of the batch has; all by default. Later outputs are 0. */
  readonly lengths?: Tensor | readonly number[];
}

const table: arg.Table<RecurrentOptions> = {
  ...initOptions,
  numLayers: arg.count(1),
  bidirectional: arg.flag,
  dropout: arg.share,
  batchFirst: arg.flag,
  bias: arg.flag,
};
const lengthsKind = arg.either<Tensor, readonly number[]>(aTensor, arg.listOf(arg.count(0)));
const sequenceTable: arg.Table<SequenceOptions> = { lengths: lengthsKind };

/** One direction of one layer. */
interface Run {
  readonly ending: string;
  readonly isReverse: boolean;
}

/** What all recurrent layers share: weights by PyTorch's names, layers, directions, lengths. */
abstract class Recurrent extends Module {
  [name: `weight_${string}`]: Tensor;
  [name: `bias_${string}`]: Tensor;
  readonly inputs: number;
  readonly hidden: number;
  readonly numLayers: number;
  readonly bidirectional: boolean;
  readonly dropout: number;
  readonly batchFirst: boolean;
  /** The width of outputs, other than `hidden` where they are projected. */
  readonly outputs: number;

  constructor(gates: number, inputs: number, hidden: number, options: LstmOptions) {
    super();
    const { numLayers = 1, bidirectional = false, bias = true, projSize } = options;
    this.inputs = inputs;
    this.hidden = hidden;
    this.numLayers = numLayers;
    this.bidirectional = bidirectional;
    this.dropout = options.dropout ?? 0;
    this.batchFirst = options.batchFirst ?? false;
    this.outputs = projSize ?? hidden;
    const bound = 1 / Math.sqrt(hidden);
    const start = (...shape: readonly number[]): Tensor =>
      parameter(symmetric(shape, bound, typeOf(options)));
    for (let layer = 0; layer < numLayers; layer++) {
      for (const { ending } of this.runs(layer)) {
        const width = layer === 0 ? inputs : this.outputs * (bidirectional ? 2 : 1);
        this[`weight_ih_${ending}`] = start(gates * hidden, width);
        this[`weight_hh_${ending}`] = start(gates * hidden, this.outputs);
        if (bias) {
          this[`bias_ih_${ending}`] = start(gates * hidden);
          this[`bias_hh_${ending}`] = start(gates * hidden);
        }
        if (projSize !== undefined) this[`weight_hr_${ending}`] = start(projSize, hidden);
      }
    }
  }

  /** The directions of a layer and the endings of their weights' names. */
  protected runs(layer: number): readonly Run[] {
    const forward = { ending: `l${layer}`, isReverse: false };
    return this.bidirectional ? [forward, { ending: `l${layer}_reverse`, isReverse: true }] : [forward];
  }

  /** What a step multiplies its state by. */
  protected stateWeights(ending: string): StateWeights {
    return { weight: this[`weight_hh_${ending}`]!, bias: this[`bias_hh_${ending}`] };
  }

  /** One step from the input's projection and the states. */
  protected abstract step(fromInput: Tensor, states: readonly Tensor[], ending: string): readonly Tensor[];

  /** Runs all layers; states are [layers·directions, batch, width], one or two of them. */
  protected run(
    op: string,
    input: Tensor,
    given: readonly Tensor[] | undefined,
    widths: readonly number[],
    options: SequenceOptions,
  ): { output: Tensor; states: Tensor[] } {
    const isBatched = input.rank === 3;
    if ((input.rank !== 2 && !isBatched) || !isFloat(input.dtype) || input.shape.at(-1) !== this.inputs)
      throw new TensorError('E_SHAPE', op, `expects floats [time,batch,${this.inputs}]: ${show(input)}`);
    const taken = casted('cell', input);
    const x = timeFirst(this, isBatched ? taken : unsqueeze(taken, this.batchFirst ? 0 : 1));
    const [steps, batch] = x.shape as readonly [number, number, number];
    if (steps === 0) throw new TensorError('E_SHAPE', op, `the sequence has no steps: ${show(input)}`);
    const count = this.numLayers * (this.bidirectional ? 2 : 1);
    const starts = widths.map((width, i) => {
      const state = given?.[i];
      const shape = isBatched ? [count, batch, width] : [count, width];
      if (state === undefined) return zeros([count, batch, width], { dtype: x.dtype });
      if (state.rank !== shape.length || !shape.every((dim, k) => dim === state.shape[k]))
        throw new TensorError('E_SHAPE', op, `a state must be [${shape.join(',')}]: ${show(state)}`);
      const held = casted('cell', state);
      return isBatched ? held : unsqueeze(held, 1);
    });
    const lengths = lengthsOf(op, options.lengths, batch, steps);
    const finals: (readonly Tensor[])[] = [];
    let at = x;
    for (let layer = 0; layer < this.numLayers; layer++) {
      const isDropped = layer > 0 && this.training && this.dropout > 0;
      const from = isDropped ? dropout(at, this.dropout) : at;
      const sides = this.runs(layer).map(({ ending, isReverse }, side) => {
        const start = starts.map((state) => select(state, 0, finalsAt(this, layer, side)));
        // The input's part of all steps is one product.
        const projected = linear(from, this[`weight_ih_${ending}`]!, this[`bias_ih_${ending}`]);
        const { outputs, state } = overTime(
          projected,
          start,
          (part, states) => this.step(part, states, ending),
          lengths,
          isReverse,
        );
        finals.push(state);
        return outputs;
      });
      at = sides.length === 1 ? sides[0]! : cat(sides, -1);
    }
    const output = timeFirst(this, at);
    const states = widths.map((_, i) =>
      stack(
        finals.map((state) => state[i]!),
        0,
      ),
    );
    if (isBatched) return { output, states };
    return {
      output: squeeze(output, this.batchFirst ? 0 : 1),
      states: states.map((state) => squeeze(state, 1)),
    };
  }
}

/** Time before batch, for a layer whose batch may come first. */
function timeFirst(layer: Recurrent, x: Tensor): Tensor {
  return layer.batchFirst ? transpose(x, 0, 1) : x;
}

/** Which of the states a direction of a layer begins with and ends in. */
function finalsAt(layer: Recurrent, number: number, side: number): number {
  return layer.bidirectional ? 2 * number + side : number;
}

function lengthsOf(
  op: string,
  given: SequenceOptions['lengths'],
  batch: number,
  steps: number,
): Tensor | undefined {
  if (given === undefined) return undefined;
  if (given instanceof Tensor) {
    if (given.rank === 1 && given.size === batch && !isFloat(given.dtype) && given.dtype !== 'bool')
      return given;
    throw new TensorError('E_SHAPE', op, `lengths must be integers [${batch}]: ${show(given)}`);
  }
  const list = Array.from(given);
  if (list.length === batch && list.every((length) => length >= 0 && length <= steps))
    return tensor(Int32Array.from(list));
  throw new TensorError(
    'E_VALUE',
    op,
    `lengths must be ${batch} numbers up to ${steps}: [${list.join(',')}]`,
  );
}

const stateTable = arg.optional(aTensor);
const takesForward = arg.takes<RNN['forward']>(
  ['x', aTensor],
  ['the state', stateTable],
  ['options', arg.options<SequenceOptions>(sequenceTable)],
);

const takesRNN = arg.takes<typeof RNN>(
  ['the number of inputs', arg.count(1)],
  ['the hidden size', arg.count(1)],
  ['options', arg.options<RnnOptions>({ ...table, nonlinearity: arg.oneOf('tanh', 'relu') })],
);

/** A plain recurrent layer (Elman, 1990) over [time, batch, inputs]. */
export class RNN extends Recurrent {
  readonly nonlinearity: Nonlinearity;

  constructor(inputs: number, hidden: number, options: RnnOptions = {}) {
    takesRNN('RNN', inputs, hidden, options);
    super(1, inputs, hidden, options);
    this.nonlinearity = options.nonlinearity ?? 'tanh';
  }

  protected step(fromInput: Tensor, states: readonly Tensor[], ending: string): readonly Tensor[] {
    return rnnStep(fromInput, states, this.stateWeights(ending), this.nonlinearity);
  }

  /** The outputs of all steps, and the last state [layers·directions, batch, hidden]. */
  forward<D extends DType>(
    x: Tensor<D>,
    state?: Tensor,
    options: SequenceOptions = {},
  ): [output: Tensor<Weighed<D>>, state: Tensor<Weighed<D>>] {
    takesForward('RNN', x, state, options);
    const { output, states } = this.run('RNN', x, state && [state], [this.hidden], options);
    return [output, states[0]!];
  }
}

const takesGRU = arg.takes<typeof GRU>(
  ['the number of inputs', arg.count(1)],
  ['the hidden size', arg.count(1)],
  ['options', arg.options<RecurrentOptions>(table)],
);

/** Gated recurrent units (Cho et al., 2014) over [time, batch, inputs]. */
export class GRU extends Recurrent {
  constructor(inputs: number, hidden: number, options: RecurrentOptions = {}) {
    takesGRU('GRU', inputs, hidden, options);
    super(3, inputs, hidden, options);
  }

  protected step(fromInput: Tensor, states: readonly Tensor[], ending: string): readonly Tensor[] {
    return gruStep(fromInput, states, this.stateWeights(ending));
  }

  /** The outputs of all steps, and the last state [layers·directions, batch, hidden]. */
  forward<D extends DType>(
    x: Tensor<D>,
    state?: Tensor,
    options: SequenceOptions = {},
  ): [output: Tensor<Weighed<D>>, state: Tensor<Weighed<D>>] {
    takesForward('GRU', x, state, options);
    const { output, states } = this.run('GRU', x, state && [state], [this.hidden], options);
    return [output, states[0]!];
  }
}

const takesLSTM = arg.takes<typeof LSTM>(
  ['the number of inputs', arg.count(1)],
  ['the hidden size', arg.count(1)],
  ['options', arg.options<LstmOptions>({ ...table, projSize: arg.count(1) })],
);
const takesLstmForward = arg.takes<LSTM['forward']>(
  ['x', aTensor],
  ['the state', arg.optional(arg.tupleOf<LstmState>(aTensor, aTensor))],
  ['options', arg.options<SequenceOptions>(sequenceTable)],
);

/** Long short-term memory (Hochreiter and Schmidhuber, 1997) over [time, batch, inputs]. */
export class LSTM extends Recurrent {
  constructor(inputs: number, hidden: number, options: LstmOptions = {}) {
    takesLSTM('LSTM', inputs, hidden, options);
    super(4, inputs, hidden, options);
    if (this.outputs > hidden) {
      const problem = `projSize ${this.outputs} must not be above the hidden size ${hidden}`;
      throw new TensorError('E_VALUE', 'LSTM', problem);
    }
  }

  protected step(fromInput: Tensor, states: readonly Tensor[], ending: string): readonly Tensor[] {
    return lstmStep(fromInput, states, this.stateWeights(ending), this[`weight_hr_${ending}`]);
  }

  /** The outputs of all steps, and the last [hidden, cell], each [layers·directions, batch, width]. */
  forward<D extends DType>(
    x: Tensor<D>,
    state?: LstmState,
    options: SequenceOptions = {},
  ): [output: Tensor<Weighed<D>>, state: [hidden: Tensor<Weighed<D>>, cell: Tensor<Weighed<D>>]] {
    takesLstmForward('LSTM', x, state, options);
    const widths = [this.outputs, this.hidden];
    const { output, states } = this.run('LSTM', x, state, widths, options);
    return [output, [states[0]!, states[1]!]];
  }
}
